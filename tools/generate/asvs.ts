import { readTags, readTexts } from './contract-rules.ts';

/**
 * docs/security/asvs.md: the sections of OWASP ASVS 5.0.0 and, for requirements that tests show, those tests. A test names
 * them in its first line, or after the rules of the contract: `asvs:` and their numbers in a comment.
 */

/** By section, what meets it besides the tests of its requirements. */
const met = [
  'V1.1 Encoding architecture: one decoder of JSON, at the entrance; output escaped by the template (libs/service/html.test.ts)',
  'V1.2 Injection: parameters in every SQL statement; html.test.ts; csv.test.ts; tests/attacks/secrets (headers, log lines)',
  'V1.3 Sanitization: rules of texts (tests/bad-input/texts); no HTML from callers, no template; webhooks are the only caller-supplied URLs',
  'V1.5 Deserialization: only JSON, validated by a schema (tests/bad-input/json); no XML',
  'V2.1, V6.1, V7.1, V8.1, V13.1, V14.1, V16.1 Documentation: the [contract](../contract/README.md), docs/openapi.json, docs/security.md, docs/configuration.md, docs/privacy.md, docs/observability.md',
  'V2.2 Input validation: one schema for each endpoint, at the gateway; messages are parsed again by services (tests/bad-input)',
  'V2.3 Business logic: one transaction for each decision, approval by a second person for large amounts (tests/contract/four-eyes, double-entry, model)',
  'V2.4 Anti-automation: limits per caller and address (tests/attacks/starvation)',
  'V3.2 Content interpretation: content types, nosniff, CSP (services/dashboard)',
  'V3.3 Cookies: `__Host-`, Secure, HttpOnly, SameSite (dashboard/session; production requires https)',
  'V3.4 Browser headers: HSTS, CSP, frame-ancestors, Referrer-Policy (gateway/app.test.ts)',
  'V3.5 Origin separation: no cookie at the API; forms carry a token; CORS by list (dashboard, http/cors.ts)',
  'V4.1 Web service: content type on all answers, TLS at the ingress, forwarding headers only from TRUST_PROXY',
  'V4.2 Message structure: tests/attacks/smuggling',
  'V7.2 Session management: sealed with AES-256-GCM, new at each sign-in, checked at the server (dashboard/session)',
  'V7.3 Time-outs: 30 idle minutes, 12 hours (session.test.ts)',
  'V8.2 General, V8.3 Operation: tests/contract/access, credentials; checked at the gateway and, bound credentials, in the services',
  'V8.4 Other: bound clients are tenants (tests/contract/access); the dashboard is a separate process',
  'V9.1 Token integrity, V9.2 content: tests/attacks/tokens, access/tokens.int.test.ts, issuers.int.test.ts',
  'V10.1 Generic OAuth: the token never reaches a script; it is in the sealed cookie',
  "V10.2 OAuth client: PKCE, state, the issuer's answer bound to the browser (sign-in.test.ts)",
  'V10.5 OIDC client: nonce, iss, aud of the ID token (issuer.int.test.ts)',
  "V11.2 Implementation: Node's OpenSSL and jose; each key can be changed: operations",
  'V11.3 Encryption: only AES-256-GCM (seal.ts)',
  'V11.4 Hashing, V11.5 Random values: SHA-256, HMAC-SHA-256; at least 128 bits of crypto.randomBytes',
  'V11.6 Public keys: Ed25519; RS256, PS256, ES256, EdDSA for tokens, by list',
  'V13.2 Backend communication: a separate user with least privilege for each service (tests/deploy/broker-rights, tests/attacks/database-rights)',
  'V13.4 Leakage: one error body, no stack, no version in headers (tests/attacks/secrets)',
  "V14.3 Client side: nothing in the browser's storage; no-store",
  'V15.2 Dependencies: tests/deploy/supply-chain; no development code in the image',
  'V15.3 Defensive coding: only named fields are read and written (unknown_field); prototype keys refused (tests/bad-input/json)',
  'V15.4 Concurrency: locks in one order, unique ids (tests/failures/races, services/ledger/batch)',
  'V16.2 Logging: JSON, UTC, request id, no secrets (tests/attacks/secrets)',
  'V16.3 Security events: summaries, topic `security`, alerts (tests/attacks/audit)',
  'V16.5 Errors: one body, fails closed (gateway/app.test.ts, tests/failures)',
];

/** What no test can show, because it is missing. */
const partly = [
  'V3.1 Frontend documentation: headers are in the code and its tests; supported browsers are not documented',
  'V3.7 Other browser: no obsolete client technology; links to other sites show no warning (required at level 3)',
  'V5 Files: payment files are limited (overload/shed-requests), read as CSV in memory, and never stored (pages/batch-file, pages/batches); the extension of the name is not checked. Downloads are ours (html/csv)',
  'V6.3 General authentication: limits and alerts (BankCredentialStuffing); the token is not checked for a second factor (no `acr` or `amr`)',
  'V6.8 Identity provider: iss and sub together are the actor; signature, audience, typ (tests/attacks/tokens); strength and time of the sign-in are not checked',
  'V7.4 Termination: signing out ends it on every gateway; an administrator can end other sessions only at the issuer, and an access token is valid until it expires',
  'V7.5 Abuse: important operations need a second person; the first is not asked to sign in again, and people cannot list their sessions',
  'V7.6 Federated re-authentication: the session ends with the token; no `max_age` is asked for',
  'V10.3 Resource server: audience, scopes, sub with iss; sender-constrained tokens are refused, not verified (level 3), acr is not checked (level 2)',
  'V11.1 Inventory: keys and their rotation are in docs/operations.md; there is no plan for post-quantum algorithms',
  'V12.3 Service to service: Kafka, Postgres and issuer verified (tests/deploy/tls); from the ingress to the gateway it is plain HTTP',
  "V13.3 Secrets: files or Secrets, never in images; rotation of each; no vault is built in, and the pepper's rotation needs new keys",
  'V14.2 Protection: erasure, retention, no-store; personal data in the database is encrypted only by the disk, if at all',
  'V15.1 Documentation: SBOM and exact versions; no deadlines for fixing dependencies are promised',
  "V16.4 Log protection: the audit is chained; forwarding logs from the host is the operator's task",
];

/** What the operator or the identity provider answers for. */
const others = [
  "V6.2 Passwords: the issuer's; the service has none",
  'V6.4 to V6.7 Factors, recovery',
  'V10.4 Authorization server',
  'V10.6, V10.7 Provider, consent',
  'V12.1 TLS, V12.2 external: TLS ends at the ingress; the gateway sends HSTS',
];

/** Returns docs/security/asvs.md. */
export function asvsPage(): string {
  const tests = Object.entries(readTexts('{bench,cli,clients,deploy,libs,services,tests,tools}/**/*.test.ts')).flatMap(
    ([file, source]) => readTags(file, source, 'asvs'),
  );
  const rows = tests.flatMap(({ rules, file, title = '' }) => rules.map((id) => ({ id, file, title })));
  const inOrder = rows.toSorted((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }));
  const list = (items: string[]) => items.map((item) => `- ${item}`).join('\n');
  return `# ASVS 5.0, level 2

Generated by \`npm run generate\`. By sections of OWASP ASVS 5.0.0, levels 1 and 2: a self-assessment, not an audit.

## Requirements that tests show

A test named here fails if the requirement is no longer met.

| requirement | file | test |
|---|---|---|
${inOrder.map(({ id, file, title }) => `| ${id} | ${file} | \`\` ${title.replaceAll('|', '\\|')} \`\` |`).join('\n')}

## Met

${list(met)}

## Partly met, and what is missing

${list(partly)}

## The operator's

${list(others)}

V6 and V10: the issuer's.

## Does not apply

V1.4 Memory (no native code of ours), V4.3 GraphQL, V4.4 WebSocket, V17 WebRTC.
`;
}
