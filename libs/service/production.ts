import { hash } from 'node:crypto';
import { approvalActions } from '#libs/contracts/approvals.ts';
import { refusedKey } from '#libs/contracts/mac.ts';
import { isCurrency, toMinor } from '#libs/contracts/money.ts';
import { passwordSeparator } from '#libs/postgres/passwords.ts';
import { areVast, touchLocal } from './networks.ts';

/**
 * Settings with which a process refuses to start in production: unencrypted connections, brokers without a
 * login, guessable secrets, disabled limits, and settings for development. There is one rule per variable, and
 * one for all secrets together. A message says what is wrong and how to fix it, but does not contain the value.
 */
type Rule = (value: string | undefined, all: Record<string, string>) => string | undefined;

/** Every process is in production unless BANK_MODE is exactly trial. */
export function isProduction(mode: string | undefined): boolean {
  return mode !== 'trial';
}

const tlsToPostgres =
  'must have ?sslmode=verify-full (and &sslrootcert=<file> for a private CA), because no other mode verifies the identity of the server';
const makeOne = 'create one with: openssl rand -hex 32';

/** Returns the problems of these variables in production; empty if there are none. */
export function productionProblems(
  names: string[],
  values: Record<string, string>,
): { name: string; problem: string }[] {
  // Of id:secret, only the secret is judged.
  const client = values['DASHBOARD_CLIENT'];
  const all = client === undefined ? values : { ...values, DASHBOARD_CLIENT: client.slice(client.indexOf(':') + 1) };
  return names.flatMap((name) => {
    if (!Object.hasOwn(rules, name)) return [];
    const problem = rules[name as keyof typeof rules](all[name], all) ?? sameAsAnother(name, all);
    return problem === undefined ? [] : [{ name, problem }];
  });
}

/** A refused key is named, not disclosed. */
const macKeys: Rule = (value) =>
  eachSecret(
    value &&
      splitList(value)
        .filter((key) => !refusedKey.test(key))
        .join(),
  );

/** Variables that Node itself and OpenTelemetry read, for the whole process, and the process' own options. */
export const readByOthers = [
  'NODE_TLS_REJECT_UNAUTHORIZED',
  'NODE_OPTIONS',
  'NODE_DEBUG',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
] as const;

const rules = {
  NODE_TLS_REJECT_UNAUTHORIZED: (value) =>
    value === '0' ? 'must not be 0, because then no certificate of any server is verified' : undefined,
  NODE_OPTIONS: nodeOptions,
  NODE_DEBUG: (value) =>
    value ? 'must not be set, because Node then prints requests with their credentials' : undefined,
  LOG_LEVEL: (value) =>
    ['error', 'fatal', 'silent'].includes(value ?? '')
      ? 'must be warn or lower, because attacks and controls that are switched off are logged at warn; at info, every refused request leaves a line'
      : undefined,
  OTEL_EXPORTER_OTLP_HEADERS: collectorHeaders,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: collectorHeaders,
  KAFKA_SSL_CA: atBrokers((value) =>
    value === undefined
      ? 'must be system, or a private CA (KAFKA_SSL_CA_FILE): unencrypted connections to Kafka are refused'
      : undefined,
  ),
  KAFKA_SASL_MECHANISM: atBrokers((value, all) =>
    value === undefined && all['KAFKA_SSL_KEY'] === undefined
      ? 'must be set: a login for the brokers, or else a client certificate (KAFKA_SSL_KEY_FILE), because anyone with access to a broker without login could move money'
      : undefined,
  ),
  KAFKA_SASL_PASSWORD: secret(16, 'set a longer random one at the broker'),
  DATABASE_URL: (value) =>
    database(value) ??
    (value !== undefined && URL.canParse(value) && administrators.test(new URL(value).username)
      ? "must have the service's own role: an administrator of the database could also change what is posted"
      : undefined),
  MIGRATION_DATABASE_URL: database,
  JWT_ISSUER: https,
  JWKS_URL: https,
  JWT_WHOLE_BANK_CLIENTS: (value, all) =>
    value === undefined && all['JWKS_URL'] !== undefined
      ? 'must name the OAuth clients (azp or client_id) whose tokens may act for the whole bank, or be * for all of them'
      : undefined,
  API_KEY_PEPPER: (value) => {
    const [current = '', previous] = splitList(value);
    // A previous one from before this rule can still be rotated.
    return (current && findGuessable(current)) || secret(32, makeOne)(previous, {});
  },
  GATEWAY_MAC_KEYS: macKeys,
  ACCOUNTS_MAC_KEYS: macKeys,
  LEDGER_MAC_KEYS: macKeys,
  WEBHOOKS_MAC_KEYS: macKeys,
  WEBHOOK_SECRET_KEYS: eachSecret,
  WEBHOOK_ALLOW_NETWORKS: noLoopback,
  DASHBOARD_CLIENT: secret(24, 'create a longer random secret at the issuer'),
  SESSION_SECRET: eachSecret,
  PUBLIC_URL: (value) =>
    value === undefined || /^https:\/\//i.test(value)
      ? undefined
      : 'must begin with https://, because session cookies are sent to it',
  // CORS_ORIGINS may be *: the API accepts no cookies, and the dashboard sends no CORS headers.
  TRUST_PROXY: proxies,
  FOUR_EYES: (value, all) => {
    const named = splitList(value ?? 'all');
    const off = approvalActions.filter((action) => !named.includes('all') && !named.includes(action));
    return off.length > 0 && all['FOUR_EYES_OFF_REASON'] === undefined
      ? `needs FOUR_EYES_OFF_REASON, which the dashboard shows: why no second person must approve ${off.join(', ')}`
      : undefined;
  },
  FOUR_EYES_LIMITS: (value, all) =>
    all['FOUR_EYES_OFF_REASON'] === undefined && (value ?? '').split(/[\s,]+/).some(isNoLimit)
      ? 'needs FOUR_EYES_OFF_REASON, which the dashboard shows: why a limit is so high that no posting reaches it'
      : undefined,
  RATE_LIMIT_PER_MINUTE: limit(1_000_000),
  AUTH_FAILURES_PER_MINUTE: limit(10_000),
  RETENTION_YEARS: (value) =>
    value !== undefined && Number(value) === 0
      ? 'must not be 0, because the law requires clients and their accounts to be kept for years'
      : undefined,
  // The identity provider of npm start has one password for all users.
  IDP_CLIENT_SECRET: () =>
    'this identity provider is for local development: set JWT_ISSUER and JWKS_URL of the gateway to a real one',
} satisfies Record<string, Rule>;

/** If two settings contain the same secret, the second one is reported. */
const secrets = [
  'API_KEY_PEPPER',
  'SESSION_SECRET',
  'DATABASE_URL',
  'MIGRATION_DATABASE_URL',
  'DASHBOARD_CLIENT',
  'KAFKA_SASL_PASSWORD',
  'GATEWAY_MAC_KEYS',
  'ACCOUNTS_MAC_KEYS',
  'LEDGER_MAC_KEYS',
  'WEBHOOKS_MAC_KEYS',
  'WEBHOOK_SECRET_KEYS',
];

function sameAsAnother(name: string, values: Record<string, string>): string | undefined {
  const own = secretsIn(values[name]);
  const other = secrets
    .slice(0, Math.max(0, secrets.indexOf(name)))
    .find((earlier) => secretsIn(values[earlier]).some((secret) => own.includes(secret)));
  return other && `must differ from ${other}: otherwise the disclosure of one secret exposes both`;
}

/** Returns the secrets in a value: the passwords of a database URL, or each element of a list. */
function secretsIn(value = ''): string[] {
  if (/^\s*postgres(ql)?:/i.test(value) && URL.canParse(value))
    return new URL(value).password.split(passwordSeparator).flatMap((password) => decoded(password) || []);
  return splitList(value);
}

/** Returns the elements of a comma-separated list. */
function splitList(value = ''): string[] {
  return value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function collectorHeaders(value: string | undefined, all: Record<string, string>): string | undefined {
  const names = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
  const open = value && names.find((name) => /^http:/i.test(all[name] ?? ''));
  return open
    ? `must not be sent to an ${open} that begins with http://, because credentials in it are then readable on the network`
    : undefined;
}

/** A tool without brokers does not connect to any. */
function atBrokers(rule: Rule): Rule {
  return (value, all) => (all['KAFKA_BROKERS'] === undefined ? undefined : rule(value, all));
}

function limit(max: number): Rule {
  return (value) =>
    value !== undefined && !(Number(value) >= 1 && Number(value) <= max)
      ? `must be 1 to ${max}, because 0 disables the limit and more has no effect`
      : undefined;
}

function proxies(value: string | undefined): string | undefined {
  if (value === undefined)
    return 'must name the proxies in front of this process, or be none: otherwise limits and audit records have the address of the proxy';
  if (value?.trim() === 'none') return undefined;
  const isVast = areVast(splitList(value));
  if (isVast === undefined) return 'must name the proxies, each by an address or network such as 10.1.2.0/24';
  return isVast
    ? 'must name the proxies: if so many addresses are trusted, callers can choose their own address'
    : undefined;
}

function noLoopback(value: string | undefined): string | undefined {
  return splitList(value).some(touchLocal)
    ? 'must not contain loopback, link-local, or metadata addresses, also translated to IPv6 (NAT64, 6to4, Teredo), because services of this machine or of its cloud provider listen there'
    : undefined;
}

function https(value: string | undefined): string | undefined {
  return value === undefined || /^https:\/\//i.test(value)
    ? undefined
    : 'must begin with https://, because anyone who can change its content can sign tokens';
}

/** Any other parameter would replace what the URL says before it (host, password) or settings of the pool (options). */
const databaseParameters = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey'];

function database(value: string | undefined): string | undefined {
  if (value === undefined || !URL.canParse(value)) return undefined;
  const { searchParams, password: encoded } = new URL(value);
  if (decoded(encoded) === undefined) return 'must have a percent-encoded password, in which % is %25';
  const modes = searchParams.getAll('sslmode');
  if (modes.length !== 1 || modes[0] !== 'verify-full' || searchParams.has('ssl')) return tlsToPostgres;
  if ([...searchParams.keys()].some((name) => !databaseParameters.includes(name)))
    return `must have no parameters but ${databaseParameters.join(', ')}`;
  const weakness = secretsIn(value)
    .map((password) => findWeakness(password, 16))
    .find((found) => found !== undefined);
  return weakness && `its password ${weakness}; set a longer random one`;
}

function secret(length: number, wayOut: string): Rule {
  return (value) => {
    const weakness = value === undefined ? undefined : findWeakness(value, length);
    return weakness && `${weakness}; ${wayOut}`;
  };
}

function eachSecret(value: string | undefined): string | undefined {
  const given = secretsIn(value);
  if (new Set(given).size < given.length) return 'contains the same secret twice: a rotation needs a new one';
  return given.map(findGuessable).find((problem) => problem !== undefined);
}

const wellKnown =
  /change.?me|password|passwort|secret|example|develop|default|insecure|placeholder|qwerty|12345678|abcdefgh|postgres/i;

/** Returns why a secret is guessable, or undefined. */
function findWeakness(secretText: string, length: number): string | undefined {
  if (secretText.length < length) return `has less than ${length} characters`;
  // Repetitions of four hex digits occur by chance: one good secret in seventy has them.
  if (new Set(secretText).size < 8 || /(.)\1{7}|(.{2,16})\2{3}/s.test(secretText)) return 'repeats itself';
  return wellKnown.test(secretText) ? 'contains a word that is easily guessed' : undefined;
}

/**
 * Returns why a secret of ours was not made by a generator of random numbers, or undefined. One of 32 random bytes, as hex
 * digits or base64, is refused with a probability below one in a million.
 */
export function findGuessable(text: string): string | undefined {
  const weakness = findWeakness(text, 32) ?? findPattern(text);
  return weakness && `${weakness}; ${makeOne}`;
}

function findPattern(text: string): string | undefined {
  const isHex = /^[0-9a-f]{64,}$|^[0-9A-F]{64,}$/.test(text);
  if (!isHex && !/^[\w+/-]{43,}={0,2}$/.test(text)) return 'is not 64 hex digits or base64 of 32 random bytes';
  const bytes = Buffer.from(text, isHex ? 'hex' : 'base64');
  if (!isHex && !(/[a-z]/.test(text) && /[A-Z]/.test(text))) return 'is not base64 of random bytes';
  if (bytes.every((byte) => byte >= 0x20 && byte < 0x7f)) return 'is text, encoded';
  const steps = bytes.map((byte, i) => byte - (bytes[i - 1] ?? 0));
  if (new Set(bytes).size < 16 || new Set(steps).size < 16) return 'repeats itself';
  const isKnown = wellKnownTexts.some((known) => bytes.equals(hash('sha256', known, 'buffer')));
  return isKnown ? 'is the hash of a word that is easily guessed' : undefined;
}

const wellKnownTexts = ['', '\n', ' ', '0', '1', 'a', 'abc', 'foo', 'test', 'hello', 'admin', 'root', 'bank', 'pepper']
  .concat(['password', 'secret', 'changeme', 'letmein', 'qwerty', '123456', '12345678', 'default', 'hello world'])
  .flatMap((known) => [known, `${known}\n`]);

/** Names of the roles with which databases are delivered. */
const administrators = /^(postgres|root|admin|rdsadmin|cloudsqladmin|azure_superuser|doadmin|supabase_admin)$/i;

/** In minor units: a hundredth of the largest amount that an account can hold. */
const effectiveLimit = 10n ** 13n;

/** Reports whether a limit such as USD:9999999999999 is above every posting. */
export function isNoLimit(limit: string): boolean {
  const [currency = '', amount = ''] = limit.split(':');
  const minor = isCurrency(currency) ? toMinor(amount, currency) : undefined;
  return typeof minor === 'bigint' && minor > effectiveLimit;
}

/** All others could weaken TLS or HTTP framing, open a debugger, record keys, or run other code. */
const harmlessOptions =
  /^--(max-old-space-size|max-old-space-size-percentage|max-semi-space-size|min-semi-space-size|stack-trace-limit|max-http-header-size|dns-result-order|no-network-family-autoselection|enable-source-maps|(no-)?(deprecation|warnings)|trace-(warnings|deprecation|uncaught|exit)|disable-warning|use-(bundled|openssl|system)-ca|disable-sigusr1|expose-gc|heapsnapshot-near-heap-limit)(=|$)/;

/** Node accepts underscores for hyphens, and quoted options. */
function nodeOptions(value = ''): string | undefined {
  const options = value
    .replaceAll('"', '')
    .split(/\s+/)
    .filter((option) => option.startsWith('-'))
    .map((option) => option.split('=')[0]?.replaceAll('_', '-') ?? '');
  const wrong = options.find((option) => !harmlessOptions.test(option));
  return (
    wrong &&
    `must not contain ${wrong}: only options about memory, warnings, and CAs are accepted, because others weaken TLS or HTTP, disclose data, or run other code`
  );
}
