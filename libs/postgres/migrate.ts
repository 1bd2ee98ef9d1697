import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from 'pg';
import pg from 'pg';
import type { Logger } from 'pino';
import { scramVerifier } from './scram.ts';
import { checkVersion } from './version.ts';

/** How the schema of a service is made. */
export interface Migrations {
  schema: string;
  /** The folder of migrations: numbered .sql files (0001-name.sql), each run once, in order, in its own transaction. */
  dir: string;
  /** SQL files of tables that several schemas have. Like outbox.sql, they run before the other files. */
  shared?: readonly URL[];
  /** Returns the statements to run after the migrations, every time. The argument is the role's quoted name. */
  grants: (role: string) => string[];
  /** The views for read-only SQL. They are granted to the role readerRole(role), which has no login. */
  readable?: readonly string[];
  /** Looks at the migrated data, as the owner, and logs what people have to correct. */
  review?: (client: Client, logger: Logger) => Promise<void>;
}

/** The database that is migrated, and the login role of the service. */
export interface MigrationTarget {
  /** The URL of a role that may create roles and schemas in that database. It will own the schema. */
  owner_url: string;
  /**
   * The service's login role, created if missing. Roles are global per server, so its name should contain the
   * database's name.
   */
  role: string;
  /** Printable ASCII. Migrating sets this password if the role cannot log in with it. */
  role_password: string;
  /** Those that the role may have had before. The password of a role with data is not changed without one of them. */
  former_passwords?: readonly string[];
}

export type MigrateOptions = MigrationTarget & Migrations;

/**
 * Returns the name of the read-only role, of which a warehouse or an auditor becomes a member. Postgres truncates names
 * to 63 bytes.
 */
export const readerRole = (role: string): string => `${role.slice(0, 56)}_reader`;

/** A file of SQL that makes or changes a schema. */
export interface Migration {
  /** The file's name without .sql, as it is recorded in the schema's table of migrations. */
  name: string;
  /** SHA-256 of the file's text with Unix line ends, in hexadecimal digits. */
  checksum: string;
  sql: string;
}

/** Returns the paths of the files that make a schema, in the order in which they run. */
export function migrationFiles({ dir, shared = [] }: Pick<Migrations, 'dir' | 'shared'>): string[] {
  const own = readdirSync(dir)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  if (own.length === 0) throw new Error(`${dir} contains no migration`);
  return [...[outboxTables, ...shared].map((file) => fileURLToPath(file)), ...own.map((name) => join(dir, name))];
}

/** Reads the migrations of a schema that this version knows, in the order in which they run. */
export function knownMigrations(of: Pick<Migrations, 'dir' | 'shared'>): Migration[] {
  return migrationFiles(of).map((file) => {
    const sql = readFileSync(file, 'utf8').replaceAll('\r\n', '\n');
    return { name: basename(file, '.sql'), checksum: createHash('sha256').update(sql).digest('hex'), sql };
  });
}

/** There is one lock per database, so migrations of two services run one after the other. */
const lockKey = 7_241_865_001;
const turnTimeoutMs = 120_000;
/**
 * A migration that waits for a table lock blocks every later query on that table, so it must fail soon and be repeated.
 */
const tableLockTimeoutMs = 10_000;
/** Every schema has an outbox. */
const outboxTables = new URL('./outbox/outbox.sql', import.meta.url);

/**
 * Brings role, schema, outbox, tables, and grants up to date. It can be repeated, and several can run concurrently:
 * they run one after the other and wait for at most two minutes. Rejects, before it changes anything, if the schema was
 * made by files other than those of this version, or if it has migrations and the role none of the passwords given.
 * Rejects at the first migration that fails: that migration is rolled back, and those before it are kept.
 */
export async function migrate(options: MigrateOptions, logger: Logger): Promise<void> {
  const client = new pg.Client({
    connectionString: options.owner_url,
    application_name: 'migrate',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
  });
  client.on('error', (error) => logger.warn({ err: error }, 'migration connection lost'));
  await client.connect();
  try {
    await checkVersion(client);
    await client.query(`set lock_timeout = ${turnTimeoutMs}`);
    await client.query('select pg_advisory_lock($1)', [lockKey]);
    await client.query(`set lock_timeout = ${tableLockTimeoutMs}`);
    await client.query(`set search_path to ${pg.escapeIdentifier(options.schema)}`);
    const { missing, isNewer, isEmpty } = await compareMigrations(client, options);
    if (!isEmpty) await refuseOtherPassword(client, options);
    await ensureRole(client, options, logger);
    await client.query(`create schema if not exists ${pg.escapeIdentifier(options.schema)}`);
    await client.query(migrationsTable);
    for (const migration of missing) await run(client, migration);
    logger.info({ schema: options.schema, migrations: missing.map(({ name }) => name) }, 'schema is up to date');
    // Services of the later release may still run, and these grants would take from them what it has added.
    if (!isNewer) await grant(client, options);
    // A review may take minutes, and the migrations of the other services wait for the lock for two.
    await client.query('select pg_advisory_unlock($1)', [lockKey]);
    await options.review?.(client, logger);
  } finally {
    await client.end();
  }
}

const migrationsTable = `create table if not exists migrations (
  id       int generated always as identity primary key,
  name     text not null unique,
  checksum text not null,
  run_at   timestamptz not null default clock_timestamp()
)`;

/**
 * Returns the migrations that have not run, in order, whether others have run that this version does not know (those of a
 * later release, which keep what this one needs), and whether none has run. Throws if one that has run was another file,
 * or if all are others.
 */
async function compareMigrations(
  client: Client,
  options: MigrateOptions,
): Promise<{ missing: Migration[]; isNewer: boolean; isEmpty: boolean }> {
  const known = knownMigrations(options);
  // Development versions recorded no checksums. The fields of a row as JSON may lack one, without an error.
  const exists = await client.query<{ found: boolean }>("select to_regclass('migrations') is not null as found");
  if (!exists.rows[0]?.found) return { missing: known, isNewer: false, isEmpty: true };
  const { rows } = await client.query<{ name: string; checksum: string | null }>(
    "select name, to_jsonb(m) ->> 'checksum' as checksum from migrations m",
  );
  const applied = new Map(rows.map(({ name, checksum }) => [name, checksum]));
  const unknown = rows.filter(({ name }) => known.every((one) => one.name !== name));
  const other =
    known.find(({ name, checksum }) => applied.has(name) && applied.get(name) !== checksum) ??
    unknown.find(({ checksum }) => checksum === null || unknown.length === rows.length);
  if (other) throw new Error(madeByOther(options.schema, other.name));
  const last = known.findLastIndex(({ name }) => applied.has(name));
  const late = known.find(({ name }, i) => i < last && !applied.has(name));
  if (late) throw new Error(`migration ${late.name} of schema ${options.schema} sorts before those that have run`);
  return { missing: known.slice(last + 1), isNewer: unknown.length > 0, isEmpty: rows.length === 0 };
}

/**
 * Says what to do. The database of a development is deleted with its Kafka, because a ledger refuses an empty database
 * beside topics that are ahead of it.
 */
const madeByOther = (schema: string, file: string): string =>
  `schema ${schema} was made by a development version, or by a changed file: its ${file}.sql is not that of this version. \
Nothing was changed. If the data may go, stop everything and delete the database and Kafka together \
(npm start: the folder LOCAL_DIR, rm -rf .local; Docker: docker compose down --volumes), then start again. \
If it must stay, keep the version that made it, and move its clients and accounts into a new bank of this one (docs/moving-in.md)`;

async function run(client: Client, { name, checksum, sql }: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(sql);
    await client.query('insert into migrations (name, checksum) values ($1, $2)', [name, checksum]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw new Error(`migration ${name} failed: ${error instanceof Error ? error.message : 'unknown'}`, {
      cause: error,
    });
  }
}

/** Returns the grants of the service's role on the tables of outbox.sql. Messages can never be changed. */
function outboxGrants(role: string): string[] {
  return [
    `grant select, insert, delete on outbox to ${role}`,
    `grant select, insert, update (published_at), delete on outbox_batches to ${role}`,
    `grant select, insert, update (holder, expires_at, swept_at, sweep_after, sweep_last) on outbox_lease to ${role}`,
  ];
}

async function grant(client: Client, options: MigrateOptions): Promise<void> {
  const role = pg.escapeIdentifier(options.role);
  const schema = pg.escapeIdentifier(options.schema);
  await client.query('begin');
  await client.query(`set local search_path to ${schema}`);
  await client.query(`grant usage on schema ${schema} to ${role}`);
  // Removes earlier grants, so that only the statements below apply.
  await client.query(`revoke all on all tables in schema ${schema} from ${role}`);
  await client.query(`grant select on migrations to ${role}`);
  for (const statement of [...outboxGrants(role), ...options.grants(role)]) await client.query(statement);
  if (options.readable) {
    const reader = pg.escapeIdentifier(readerRole(options.role));
    await client.query(`grant usage on schema ${schema} to ${reader}`);
    await client.query(`revoke all on all tables in schema ${schema} from ${reader}`);
    await client.query(`grant select on ${options.readable.join(', ')} to ${reader}`);
  }
  await client.query('commit');
}

async function ensureRole(client: Client, options: MigrateOptions, logger: Logger): Promise<void> {
  const role = pg.escapeIdentifier(options.role);
  const found = await client.query('select from pg_roles where rolname = $1', [options.role]);
  if (found.rowCount === 0) {
    await createRole(client, `${role} login password ${pg.escapeLiteral(scramVerifier(options.role_password))}`);
    logger.info({ role: options.role }, 'role created');
  }
  if (options.readable) {
    const reader = readerRole(options.role);
    const known = await client.query('select from pg_roles where rolname = $1', [reader]);
    if (known.rowCount === 0) await createRole(client, `${pg.escapeIdentifier(reader)} nologin`);
  }
  const database = await client.query<{ name: string }>('select current_database() as name');
  const name = pg.escapeIdentifier(database.rows[0]?.name ?? '');
  await client.query(`grant connect on database ${name} to ${role}`);
  // Temporary tables precede all other tables in a search path, and every role may create them unless that
  // right is revoked.
  await client.query(`revoke temporary on database ${name} from public, ${role}`);
  if ((await refusalOf(options, options.role_password)) === undefined) return;
  await client.query(`alter role ${role} login password ${pg.escapeLiteral(scramVerifier(options.role_password))}`);
  logger.info({ role: options.role }, 'password of the role set');
}

/**
 * The lock is per database, but roles are per server: a migration of another database may create the same role first.
 */
async function createRole(client: Client, definition: string): Promise<void> {
  try {
    await client.query(`create role ${definition}`);
  } catch (error) {
    const lostRace = error instanceof pg.DatabaseError && (error.code === '42710' || error.code === '23505');
    if (!lostRace) throw error;
  }
}

/**
 * Throws if none of the passwords is that of the role. Other secrets were probably lost with it (all are derived from one
 * master key), and a bank that starts with new ones would refuse its API keys and its own messages.
 */
async function refuseOtherPassword(client: Client, options: MigrateOptions): Promise<void> {
  const { rowCount } = await client.query('select from pg_roles where rolname = $1', [options.role]);
  if (rowCount === 0) return;
  for (const password of [options.role_password, ...(options.former_passwords ?? [])])
    if ((await refusalOf(options, password)) !== '28P01') return;
  throw new Error(
    `the role ${options.role} has another password than DATABASE_PASSWORD: restore the Secret <release>-master (MASTER_KEYS) \
from its backup; to change the password, give the new one and then the old one, separated by a comma. Nothing was changed`,
  );
}

/**
 * Tries to log in with a password, because only a superuser can read the stored one. Returns the SQLSTATE with which the
 * role is refused: 28P01 for a wrong password; 42501 for a right one without the right to connect to this database.
 */
async function refusalOf(options: MigrateOptions, password: string): Promise<string | undefined> {
  const url = new URL(options.owner_url);
  url.username = encodeURIComponent(options.role);
  url.password = encodeURIComponent(password);
  const client = new pg.Client({
    connectionString: url.href,
    application_name: 'migrate',
    connectionTimeoutMillis: 10_000,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return undefined;
  } catch (error) {
    if (error instanceof pg.DatabaseError && /^(28|42501$)/.test(error.code ?? '')) return error.code;
    throw error;
  } finally {
    await client.end();
  }
}
