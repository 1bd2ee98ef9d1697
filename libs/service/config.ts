import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { z } from 'zod';
import { eventsRetentionDays } from '#libs/contracts/topics.ts';
import { setPasswords } from '#libs/postgres/passwords.ts';
import { isProduction, productionProblems, readByNode } from './production.ts';

/** The configuration is invalid. The message lists every invalid variable, one per line, and never a value. */
export class ConfigError extends Error {
  override name = 'ConfigError';
}

export type Environment = Record<string, string | undefined>;

/**
 * Reads the schema's variables from the environment (the only place that reads process.env). Every variable
 * NAME may be given as NAME_FILE, the path of a file that contains the value, for secrets. An empty variable
 * counts as unset. Unless BANK_MODE is trial, insecure values are errors too (production.ts). DATABASE_PASSWORD becomes
 * the password of DATABASE_URL, and so on.
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
  const ofNode = Object.fromEntries(readByNode.map((name) => [name, env[name] ?? '']));
  // Options in the command line have the same effect.
  if (env === process.env) ofNode['NODE_OPTIONS'] += ` ${process.execArgv.join(' ')}`;
  const unsafe = isProduction(env['BANK_MODE'])
    ? productionProblems([...Object.keys(schema.shape), ...readByNode], { ...input, ...ofNode }).filter(
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

/** Reports whether this process is in production, and not in a trial. */
export const inProduction = (): boolean => isProduction(process.env['BANK_MODE']);

/**
 * Reads the configuration of a tool that a person runs against servers of their choice. It accepts insecure
 * settings unless BANK_MODE is set to production, as in the image.
 */
export function loadToolConfig<Schema extends z.ZodObject>(schema: Schema): z.output<Schema> {
  return loadConfig(schema, { BANK_MODE: 'trial', ...process.env });
}

/** Puts passwords that are given by themselves into their URL, where they are checked and used like one that was there. */
function insertPasswords(input: Record<string, string>): string[] {
  return ['DATABASE', 'MIGRATION_DATABASE'].flatMap((database) => {
    const [name, address, password] = [
      `${database}_PASSWORD`,
      input[`${database}_URL`] ?? '',
      input[`${database}_PASSWORD`],
    ];
    if (password === undefined || !URL.canParse(address)) return [];
    const url = new URL(address);
    if (url.password !== '') return [`  ${name}: is given twice: ${database}_URL has a password too`];
    // Only the service's role is ever known by several passwords.
    setPasswords(url, database === 'DATABASE' ? password.split(/\s*,\s*/).filter(Boolean) : [password]);
    input[`${database}_URL`] = url.href;
    return [];
  });
}

function readVariable(name: string, env: Environment): string | undefined {
  const value = env[name] || undefined;
  const file = env[`${name}_FILE`] || undefined;
  if (file === undefined) return value;
  if (value !== undefined) throw new Error(`is given twice: ${name}_FILE is set too`);
  try {
    return readFileSync(file, 'utf8').trimEnd() || undefined;
  } catch {
    throw new Error(`the file named by ${name}_FILE cannot be read`);
  }
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

/** A TCP port; 0 lets the system choose. */
export const port = wholeNumber(0, 65_535).meta({ title: 'port' });

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
  INSTANCE: z
    .string()
    .max(100)
    .default(`${hostname()}-${process.pid}`)
    .describe('Name of this process, unique among its replicas'),
  HOST: z.string().default('0.0.0.0').describe('Address on which this process listens'),
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
  KAFKA_SSL: flag.prefault('false').describe('Use TLS to the brokers and verify their certificates and names'),
  KAFKA_SSL_CA: pem('CERTIFICATE')
    .optional()
    .describe(
      "PEM of the CA of the brokers' certificates, if Node does not trust it already; usually given as KAFKA_SSL_CA_FILE",
    ),
  KAFKA_SSL_CERT: pem('CERTIFICATE').optional().describe("PEM of this client's certificate; requires KAFKA_SSL_KEY"),
  KAFKA_SSL_KEY: pem('[A-Z ]*PRIVATE KEY').optional().describe('PEM of its private key'),
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
  SHUTDOWN_DELAY_MS: wholeNumber(0, 20_000)
    .prefault('300')
    .describe(
      'How long requests are still accepted after readiness has failed; set it to the time that the load balancer needs to notice',
    ),
};

export const databaseUrlConfig = {
  DATABASE_URL: url('postgres', 'postgresql').describe("Database URL with the service's own role"),
  DATABASE_PASSWORD: z
    .string()
    .optional()
    .describe(
      'Its password, if the URL has none; of several, separated by commas, the migration sets the first, and services use the one that works',
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

/** Variables of services with an outbox. */
export const outboxConfig = {
  OUTBOX_RETENTION_HOURS: wholeNumber(1, 8760)
    .prefault('24')
    .describe(
      'Hours for which published messages stay in the outbox, for `npm run bank -- republish` and timelines. About 400 bytes per posting under load, 900 for single postings',
    ),
};

/**
 * Returns the options of libs/kafka's createKafka. Throws a ConfigError if only some of several required
 * variables are set.
 */
export function kafkaOptions(config: z.output<z.ZodObject<typeof kafkaConfig>>, clientId: string) {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username, KAFKA_SASL_PASSWORD: password } = config;
  const { KAFKA_SSL: ssl, KAFKA_SSL_CA: ca, KAFKA_SSL_CERT: cert, KAFKA_SSL_KEY: key } = config;
  const sasl =
    mechanism && username !== undefined && password !== undefined ? { mechanism, username, password } : undefined;
  if (!sasl && (mechanism ?? username ?? password) !== undefined) {
    throw new ConfigError(
      'KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME, and KAFKA_SASL_PASSWORD must be set together, and one of them is missing',
    );
  }
  if (!ssl && (ca ?? cert ?? key) !== undefined)
    throw new ConfigError('KAFKA_SSL_CA, KAFKA_SSL_CERT, and KAFKA_SSL_KEY require KAFKA_SSL=true');
  if ((cert === undefined) !== (key === undefined))
    throw new ConfigError('KAFKA_SSL_CERT and KAFKA_SSL_KEY must be set together, and one of them is missing');
  const own = cert !== undefined && key !== undefined ? { cert, key } : {};
  return {
    brokers: config.KAFKA_BROKERS,
    client_id: clientId,
    ssl: ssl && { ...(ca === undefined ? {} : { ca }), ...own },
    ...(sasl ? { sasl } : {}),
  };
}
