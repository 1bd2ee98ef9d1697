import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { eventsRetentionDays } from '#libs/contracts/topics.ts';
import { setPasswords } from '#libs/postgres/passwords.ts';
import { isProduction, productionProblems, readByOthers } from './production.ts';

/** The configuration is invalid. The message lists every invalid variable, one per line, and never a value. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

export type Environment = Record<string, string | undefined>;

/**
 * Reads the schema's variables from the environment (the only place that reads process.env). Every variable
 * NAME may be given as NAME_FILE, the path of a file that contains the value, for secrets. An empty variable
 * counts as unset. Unless BANK_MODE is trial, insecure values are errors too (production.ts). A database URL gets
 * the password in its `password_file`.
 * Throws one ConfigError for all problems.
 */
export function loadConfig<Schema extends z.ZodObject>(
  schema: Schema,
  env: Environment = process.env,
): z.output<Schema> {
  const problems: string[] = [];
  const input: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    try {
      const value = readVariable(name, env);
      if (value !== undefined) input[name] = value;
    } catch (error) {
      problems.push(`  ${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  problems.push(...insertPasswords(input));
  const failed = new Set(problems.map((line) => line.trim().split(':')[0]));
  const parsed = schema.safeParse(input);
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0] ?? '(together)');
    if (failed.has(name)) continue;
    failed.add(name);
    problems.push(`  ${name}: ${name in input || issue.path.length === 0 ? issue.message : 'is missing'}`);
  }
  const others = Object.fromEntries(readByOthers.map((name) => [name, env[name] ?? '']));
  // Options in the command line have the same effect.
  if (env === process.env) others['NODE_OPTIONS'] += ` ${process.execArgv.join(' ')}`;
  const unsafe = isProduction(env['BANK_MODE'])
    ? productionProblems([...Object.keys(schema.shape), ...readByOthers], { ...input, ...others }).filter(
        ({ name }) => !failed.has(name),
      )
    : [];
  problems.push(...unsafe.map(({ name, problem }) => `  ${name}: ${problem}`));
  if (!parsed.success || problems.length > 0) {
    const hint =
      unsafe.length > 0 && env['BANK_MODE'] !== 'production'
        ? '\n  (BANK_MODE is not trial, so this is production)'
        : '';
    throw new ConfigError(`the configuration is not valid:\n${problems.join('\n')}${hint}`);
  }
  return parsed.data;
}

/**
 * OpenTelemetry's own variables that its SDK does not read by itself. An endpoint turns on tracing; the exporter reads it, and
 * its other variables, too.
 */
export const openTelemetry = () => ({
  endpoint: process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] || undefined,
  sampler: process.env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on',
  ratio: Number(process.env['OTEL_TRACES_SAMPLER_ARG'] || '1'),
});

/** Reports whether this process is in production, and not in a trial. */
export const inProduction = (): boolean => isProduction(process.env['BANK_MODE']);

/**
 * Reads the configuration of a tool that a person runs against servers of their choice. It accepts insecure
 * settings unless BANK_MODE is set to production, as in the image.
 */
export function loadToolConfig<Schema extends z.ZodObject>(schema: Schema): z.output<Schema> {
  return loadConfig(schema, { BANK_MODE: 'trial', ...process.env });
}

/** Puts the passwords of files into their URL, where they are checked and used like one that was there. */
function insertPasswords(input: Record<string, string>): string[] {
  return ['DATABASE_URL', 'MIGRATION_DATABASE_URL'].flatMap((name) => {
    if (!URL.canParse(input[name] ?? '')) return [];
    const url = new URL(input[name] ?? '');
    const [file, ...others] = url.searchParams.getAll('password_file');
    if (file === undefined) return [];
    url.searchParams.delete('password_file');
    if (url.password !== '' || others.length > 0) return [`  ${name}: has two passwords, one of them a password_file`];
    const password = readText(file);
    if (password === undefined) return [`  ${name}: its password_file cannot be read`];
    // Only the service's role is ever known by several passwords.
    setPasswords(url, name === 'DATABASE_URL' ? password.split(/\s*,\s*/).filter(Boolean) : [password]);
    input[name] = url.href;
    return [];
  });
}

/** Returns undefined if the file cannot be read. */
function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trimEnd();
  } catch {
    return undefined;
  }
}

function readVariable(name: string, env: Environment): string | undefined {
  const value = env[name] || undefined;
  const file = env[`${name}_FILE`] || undefined;
  if (file === undefined) return value;
  if (value !== undefined) throw new Error(`is given twice: ${name}_FILE is set too`);
  const text = readText(file);
  if (text === undefined) throw new Error(`the file named by ${name}_FILE cannot be read`);
  return text || undefined;
}

/** A whole number from text, within bounds. */
export function wholeNumber(min: number, max: number) {
  return z
    .string()
    .regex(/^-?\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be ${min} to ${max}`)
    .meta({ title: `whole number, ${min} to ${max}` });
}

/** A TCP port on which to listen, on all addresses unless it follows one; 0 lets the system choose. */
const port = z
  .string()
  .regex(/^([^\s:]+:)?\d{1,5}$/, 'must be a port, or address:port with an IPv4 address')
  .transform((text) => {
    const [number = '', host = '0.0.0.0'] = text.split(':').toReversed();
    return { host, port: Number(number) };
  })
  .refine((at) => at.port <= 65_535, 'must be 0 to 65535')
  .meta({ title: 'port, or address:port' });

/** true or false (also 1/0, yes/no, on/off). */
export const flag = z.stringbool().meta({ title: 'true or false' });

/** A comma-separated list; spaces and empty parts are ignored. */
export const list = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  )
  .meta({ title: 'list, separated by commas' });

/** The addresses or networks of proxies; none for an explicit empty list. */
const proxyList = list
  .transform((proxies) => (proxies.join() === 'none' ? [] : proxies))
  .meta({ title: 'list, separated by commas, or none' });

/** A URL with one of these schemes. The error message never contains it, because it may contain a password. */
export function url(...schemes: string[]) {
  return z
    .string()
    .refine(
      (text) => URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1)),
      `must be a URL beginning with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
    )
    .meta({ title: `URL, ${schemes.join(' or ')}` });
}

/** Returns a rule that a text satisfies if `use` accepts it without throwing. */
export function works(use: (text: string) => unknown) {
  return (text: string): boolean => {
    try {
      use(text);
      return true;
    } catch {
      return false;
    }
  };
}

/** Variables of every process: `z.object({...processConfig, ...kafkaConfig, …})`. */
export const processConfig = {
  BANK_MODE: z
    .enum(['production', 'trial'])
    .default('production')
    .describe(
      'trial: unencrypted connections, a single broker, guessable secrets, and keys for tests are accepted. Pages, logs, and GET / say so; never for real money',
    ),
  LOG_LEVEL: z
    .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'])
    .default('info')
    .describe('Lowest level that is logged'),
  HEALTH_PORT: port.prefault('9090').describe('Port of the probes and metrics: /livez, /readyz, /metrics'),
};

export function pem(kind: string) {
  return z
    .string()
    .regex(
      new RegExp(`-----BEGIN ${kind}-----`),
      'must be PEM text; the path of a file is given by the name with _FILE',
    )
    .meta({ title: 'PEM' });
}

const certificate = /-----BEGIN CERTIFICATE-----/;

export const kafkaConfig = {
  KAFKA_BROKERS: list
    .refine((brokers) => brokers.length > 0, 'must contain at least one broker')
    .refine(
      // kafkajs ends the host at the first colon, so it would wait forever for an IPv6 address.
      (brokers) => brokers.every((broker) => /^[^\s:]+:\d{1,5}$/.test(broker)),
      'must be host:port, separated by commas; a host is a name or an IPv4 address, not an IPv6 address',
    )
    .describe('Bootstrap brokers, host:port separated by commas'),
  TOPIC_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9._-]{0,100}$/, 'may contain letters, digits, dots, dashes, and underscores')
    .default('')
    .describe('Prefix of every topic and group name'),
  KAFKA_SSL_CA: z
    .string()
    .refine(
      (text) => text === 'system' || certificate.test(text),
      'must be system, or PEM text; the path of a file is given as KAFKA_SSL_CA_FILE',
    )
    .optional()
    .meta({ title: 'system, or PEM' })
    .describe(
      "Who has signed the brokers' certificates, which are verified with their names: system for the CAs that Node trusts, or the PEM of a private one, usually as KAFKA_SSL_CA_FILE. Without it connections are not encrypted",
    ),
  KAFKA_SSL_KEY: pem('[A-Z ]*PRIVATE KEY')
    .regex(certificate, 'must also contain the certificate of the key')
    .optional()
    .describe("PEM of this client's private key and certificate, if the brokers ask for one"),
  KAFKA_SASL_MECHANISM: z
    .enum(['plain', 'scram-sha-256', 'scram-sha-512'])
    .optional()
    .describe('SASL mechanism; requires user and password'),
  KAFKA_SASL_USERNAME: z.string().optional().describe('User at the brokers'),
  KAFKA_SASL_PASSWORD: z.string().optional().describe('Password at the brokers'),
};

/** Variables of processes that serve HTTP. */
export const httpConfig = {
  PORT: port.prefault('3000').describe('Port of the public API, or of the dashboard'),
  TRUST_PROXY: proxyList
    .prefault('')
    .describe('Addresses or networks of proxies whose X-Forwarded-For is trusted; required in production, or none'),
};

export const databaseUrlConfig = {
  DATABASE_URL: url('postgres', 'postgresql').describe(
    "Database URL with the service's own role. `password_file=<path>` in it names a file with its password; of several, separated by commas, the migration sets the first, and services use the one that works",
  ),
};

/**
 * Used by programs that create topics; by accounts, which reports how long topics keep a client's data; and by
 * webhooks, which stores events for the same time, but at least 35 days.
 */
export const eventsRetentionConfig = {
  EVENTS_RETENTION_DAYS: wholeNumber(-1, 36_500)
    .refine((days) => days !== 0, 'must not be 0')
    .prefault(String(eventsRetentionDays))
    .describe(
      'Retention of event topics in days, including existing ones; -1: unlimited. `balances`, `account-masters`, and `client-masters` always keep the latest states',
    ),
};

/**
 * Returns the options of libs/kafka's createKafka. Throws a ConfigError if only some of several required
 * variables are set.
 */
export function kafkaOptions(config: z.output<z.ZodObject<typeof kafkaConfig>>, clientId: string) {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = config;
  const { KAFKA_SSL_CA: ca, KAFKA_SSL_KEY: own } = config;
  const sasl =
    mechanism && username !== undefined && password !== undefined ? { mechanism, username, password } : undefined;
  if (!sasl && (mechanism ?? username ?? password) !== undefined) {
    throw new ConfigError(
      'KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME, and KAFKA_SASL_PASSWORD must be set together, and one of them is missing',
    );
  }
  if (ca === undefined && own !== undefined) throw new ConfigError('KAFKA_SSL_KEY requires KAFKA_SSL_CA');
  return {
    brokers: config.KAFKA_BROKERS,
    client_id: clientId,
    // Node finds the key and the certificate in the same text.
    ssl: ca !== undefined && {
      ...(ca === 'system' ? {} : { ca }),
      ...(own === undefined ? {} : { cert: own, key: own }),
    },
    ...(sasl ? { sasl } : {}),
  };
}
