import { z } from 'zod';

/**
 * What a process refuses to start with where NODE_ENV is production: plain text on any wire, secrets that can be guessed, and
 * conveniences of development. By variable; each rule says what is wrong and the way out, and never a value.
 */
type Rule = (value: string | undefined, all: Record<string, string>) => string | undefined;

const tlsToPostgres = 'must have ?sslmode=verify-full (and &sslrootcert=<file> where the CA is a private one): nothing less proves which server it is';
const makeOne = 'make one with: openssl rand -hex 32';

/** The problems of these variables in production; empty when there are none. */
export function productionProblems(names: string[], values: Record<string, string>): { name: string; problem: string }[] {
  return names.flatMap((name) => {
    const problem = Object.hasOwn(rules, name) ? rules[name as keyof typeof rules](values[name], values) : undefined;
    return problem === undefined ? [] : [{ name, problem }];
  });
}

const rules = {
  KAFKA_SSL: (value) => (z.stringbool().safeParse(value).data === true ? undefined : 'must be true (with KAFKA_SSL_CA_FILE where the CA is a private one): plain text to Kafka is refused'),
  KAFKA_SASL_PASSWORD: secret(16, 'have the broker set a longer random one'),
  DATABASE_URL: database,
  MIGRATION_DATABASE_URL: database,
  SERVICE_ROLE_PASSWORD: secret(32, makeOne),
  JWT_ISSUER: https,
  JWKS_URL: https,
  JWT_HS256_SECRET: (value) => (value === undefined ? undefined : 'must not be set: tokens come from an issuer with JWKS_URL, whose private key nobody shares'),
  API_KEY_PEPPER: secret(32, makeOne),
  API_KEY_PEPPER_PREVIOUS: secret(32, makeOne),
  IDEMPOTENCY_SECRET: (value, all) =>
    value !== undefined && value === all['API_KEY_PEPPER'] ? `must differ from API_KEY_PEPPER; ${makeOne}` : secret(32, makeOne)(value, all),
  DASHBOARD_CLIENT_SECRET: secret(24, 'have the issuer make a longer random one'),
  SESSION_SECRET: secret(32, makeOne),
  PUBLIC_URL: (value) => (value === undefined || /^https:\/\//i.test(value) ? undefined : 'must begin with https://: session cookies travel there'),
  // CORS_ORIGINS may be *: the API takes no cookie, and the dashboard is marked for no other origin.
  TRUST_PROXY: (value) => (value !== undefined && /(^|,)\s*(\*|true|[^,]*\/0+)\s*(,|$)/.test(value) ? 'must name the proxies: with everybody trusted, callers choose their own address' : undefined),
} satisfies Record<string, Rule>;

function https(value: string | undefined): string | undefined {
  return value === undefined || /^https:\/\//i.test(value) ? undefined : 'must begin with https://: who can change what is read there can sign tokens';
}

function database(value: string | undefined): string | undefined {
  if (value === undefined || !URL.canParse(value)) return undefined;
  const { searchParams, password } = new URL(value);
  const modes = searchParams.getAll('sslmode');
  if (modes.length !== 1 || modes[0] !== 'verify-full' || searchParams.has('ssl')) return tlsToPostgres;
  const weakness = password === '' ? undefined : weaknessOf(decodeURIComponent(password), 16);
  return weakness && `its password ${weakness}; set a longer random one`;
}

function secret(length: number, wayOut: string): Rule {
  return (value) => {
    const weakness = value === undefined ? undefined : weaknessOf(value, length);
    return weakness && `${weakness}; ${wayOut}`;
  };
}

const wellKnown = /change.?me|password|passwort|secret|example|develop|default|insecure|placeholder|qwerty|12345678|postgres/i;

/** Why a secret can be guessed; undefined where nothing shows it. */
function weaknessOf(secretText: string, length: number): string | undefined {
  if (secretText.length < length) return `has less than ${length} characters`;
  // Four equal hex digits in a row are chance: one good secret in seventy has them.
  if (new Set(secretText).size < 8 || /(.)\1{7}|(.{2,16})\2{3}/s.test(secretText)) return 'repeats itself';
  return wellKnown.test(secretText) ? 'holds a word that everybody tries first' : undefined;
}
