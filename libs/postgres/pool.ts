import type { Writable } from 'node:stream';
import type { ClientBase, CustomTypesConfig, Pool, PoolConfig, QueryConfig, QueryResult, QueryResultRow } from 'pg';
import pg from 'pg';
import type { Logger } from 'pino';
import { createRotatingPool } from './rotating-pool.ts';

export type { ClientBase, Pool, PoolClient } from 'pg';

/** A statement and its parameters. `query_timeout` (ms) overrides the pool's response timeout. */
export type Query = QueryConfig & { query_timeout?: number };

/** Anything that runs queries: a pool, a connection, a transaction. Each call runs one statement. */
export interface Queries {
  // biome-ignore lint/suspicious/noExplicitAny: the default of pg's own types.
  query<R extends QueryResultRow = any>(query: string | Query, values?: unknown[]): Promise<QueryResult<R>>;
}

export interface PoolOptions {
  /**
   * The postgres:// URL of the service's role, with its password or several (passwords.ts). sslmode and sslrootcert in it
   * enable TLS.
   */
  url: string;
  application_name: string;
  /** The only schema on search_path (besides pg_catalog). */
  schema: string;
  /** The migrations that the code knows (knownMigrations in migrate.ts). A schema without one of them is not used. */
  migrations?: readonly { name: string; checksum: string }[];
  /** The maximum number of connections of this process; default 10. */
  max?: number;
  statement_timeout_ms?: number;
  lock_timeout_ms?: number;
  idle_in_transaction_session_timeout_ms?: number;
  /** The timeout for a new connection and for waiting for a free one. */
  connection_timeout_ms?: number;
  /** Rejects if a new connection must not be used. */
  verify?: (client: ClientBase) => Promise<void>;
  /**
   * Additional session settings, for example {plan_cache_mode: 'force_custom_plan'}. Names must be plain
   * setting names.
   */
  options?: Record<string, string>;
}

/**
 * The `options` of a pool whose statements all look up rows by index with keys in arrays. Each named statement is
 * planned once, with index scans and nested loops only. A plan made for empty tables is then also right for full ones,
 * and no call needs planning.
 */
export const lookupPlans = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
};
/** Connections that survive a failover, or lead to another server through a proxy, must not stay open. */
const maxLifetimeSeconds = 600;

const int8 = 20;
const timestamptz = 1184;
const date = 1082;

/**
 * Creates a pool whose sessions behave the same regardless of the server's defaults:
 * - int8 is returned as bigint, timestamptz as ISO 8601 UTC text with three decimals (truncated), date and numeric as text;
 * - search_path is the one schema, TimeZone is UTC, and jit is off (it costs more than it saves on short statements);
 * - queries on one connection are sent without waiting for earlier responses (pg's pipeline mode);
 * - a commit waits for the synchronous standby if the server has one (synchronous_commit on);
 * - each connection leads to a primary whose schema the code knows (verifyConnection) and is used for at most ten
 *   minutes;
 * - waiting is limited: for a connection (3 s), a statement (5 s), a lock (3 s), an idle transaction (5 s), and the
 *   response of a silent server (statement timeout + 2 s, after which the connection is closed). Errors of idle or
 *   checked-out connections are logged and never unhandled; the next query on such a connection fails.
 */
export function createPool(options: PoolOptions, logger: Logger): Pool {
  const pool = createRotatingPool(poolConfig(options));
  pool.on('connect', (client) => {
    client.on('error', (error) => logger.warn({ err: error }, 'postgres connection lost'));
    writeTogether(client);
  });
  // pg-pool reports the same error again on the pool; without a listener, Node would exit.
  pool.on('error', () => undefined);
  return pool;
}

/**
 * Makes the connection send all statements of one turn of the event loop by one system call, each of which costs as much as
 * the rest of a statement.
 */
function writeTogether(client: ClientBase): void {
  const { stream } = Reflect.get(client, 'connection') as { stream: Writable };
  const query = client.query.bind(client) as (...parameters: unknown[]) => unknown;
  let isCorked = false;
  const uncork = (): void => {
    isCorked = false;
    stream.uncork();
  };
  client.query = (...parameters: unknown[]) => {
    if (!isCorked) {
      isCorked = true;
      stream.cork();
      process.nextTick(uncork);
    }
    return query(...parameters) as never;
  };
}

/** Returns the settings of a pool, which are also those of its connection for LISTEN (outbox/listen.ts). */
function poolConfig(options: PoolOptions): PoolConfig {
  const statementTimeoutMs = options.statement_timeout_ms ?? 5000;
  const settings = {
    search_path: `"${options.schema.replaceAll('"', '""')}"`,
    TimeZone: 'UTC',
    DateStyle: 'ISO',
    jit: 'off',
    synchronous_commit: 'on',
    ...options.options,
  };
  return {
    connectionString: options.url,
    application_name: options.application_name,
    max: options.max ?? 10,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + 2000,
    lock_timeout: options.lock_timeout_ms ?? 3000,
    idle_in_transaction_session_timeout: options.idle_in_transaction_session_timeout_ms ?? 5000,
    connectionTimeoutMillis: options.connection_timeout_ms ?? 3000,
    idleTimeoutMillis: 30_000,
    maxLifetimeSeconds,
    onConnect: async (client) => {
      await verifyConnection(client, options);
      await options.verify?.(client);
    },
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    pipeline: true,
    options: Object.entries(settings).map(sessionSetting).join(' '),
    types,
  };
}

/** Thrown if sessions are shared by a pooler: LISTEN, session settings, and prepared statements do not work there. */
export class PooledSessionError extends Error {
  override name = 'PooledSessionError';
}

/**
 * Rejects a new connection that cannot be used: it leads through a pooler (the responding process is not the one
 * assigned at connect), the server is a standby or read-only, or its schema is older than the code, or was made by other
 * files. A newer schema is accepted, because migrations keep what the previous version needs. The check costs round
 * trips when connecting, but none at checkout.
 */
async function verifyConnection(
  client: ClientBase,
  { schema, migrations }: Pick<PoolOptions, 'schema' | 'migrations'>,
): Promise<void> {
  const { rows } = await client.query<{ pid: number; is_read_only: boolean }>(
    "select pg_backend_pid() as pid, current_setting('transaction_read_only')::boolean as is_read_only",
  );
  if (rows[0]?.pid !== Reflect.get(client, 'processID'))
    throw new PooledSessionError('a connection pooler such as PgBouncer shares its sessions');
  if (rows[0]?.is_read_only) throw new Error('the database server is a standby or read-only: only a primary is used');
  if (migrations === undefined) return;
  const { rows: applied } = await client
    .query<{ name: string; checksum: string }>('select name, checksum from migrations')
    .catch((cause: unknown) => {
      throw new Error(`the migrations of schema ${schema} cannot be read; was it migrated for this version?`, {
        cause,
      });
    });
  const checksums = new Map(applied.map(({ name, checksum }) => [name, checksum]));
  const wrong = migrations.find(({ name, checksum }) => checksums.get(name) !== checksum);
  if (wrong === undefined) return;
  throw new Error(
    checksums.has(wrong.name)
      ? `schema ${schema} was made by another version: its migration ${wrong.name} is another file`
      : `schema ${schema} is older than this version: migration ${wrong.name} is missing`,
  );
}

function sessionSetting([name, value]: [string, string]): string {
  if (!/^[A-Za-z_][A-Za-z0-9_.]*$/.test(name)) throw new Error(`not a session setting: ${name}`);
  return `-c ${name}=${value.replace(/[\\ ]/g, '\\$&')}`;
}

const parsers: Record<number, (text: string) => unknown> = {
  [int8]: BigInt,
  [timestamptz]: isoTimestamp,
  [date]: String,
};

const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (format === 'binary' ? undefined : parsers[oid]) ?? pg.types.getTypeParser(oid, format),
};

/**
 * Converts '2026-01-02 03:04:05.678901+00' to '2026-01-02T03:04:05.678Z'. Other values (infinity, BC) are
 * returned unchanged.
 */
export function isoTimestamp(text: string): string {
  if (!text.endsWith('+00') || text.charAt(10) !== ' ') return text;
  const fraction = text.charAt(19) === '.' ? text.slice(20, -3) : '';
  return `${text.slice(0, 10)}T${text.slice(11, 19)}.${fraction.slice(0, 3).padEnd(3, '0')}Z`;
}
