import { readdirSync } from 'node:fs';
import { runner } from 'node-pg-migrate';
import type { Client } from 'pg';
import pg from 'pg';
import type { Logger } from 'pino';
import { scramVerifier } from './scram.ts';

export interface MigrateOptions {
  /** URL of a role that may create roles and schemas in that database. It will own the schema. */
  owner_url: string;
  schema: string;
  /** The service's log-in role; made when missing. Roles are global per server: its name should hold the database's. */
  role: string;
  /** Printable ASCII. Set where the role cannot log in with it. */
  role_password: string;
  /**
   * Folder with the migrations: numbered .sql files (0001-name.sql), each run once, in order, in
   * one transaction each.
   */
  dir: string;
  /** Statements run after the migrations, each time; gets the role's name quoted as an identifier. */
  grants: (role: string) => string[];
}

/** The name of the newest migration in a folder, as it is recorded in the schema's table of migrations. */
export function lastMigration(dir: string): string {
  const last = readdirSync(dir)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .at(-1);
  if (last === undefined) throw new Error(`${dir} holds no migration`);
  return last.slice(0, -'.sql'.length);
}

/** One lock for all schemas of a database: migrations of two services run one after the other. */
const lockKey = 7_241_865_001;
const turnTimeoutMs = 120_000;
/** A migration that waits for a table lock makes every query behind it wait too: it had better fail and be repeated. */
const tableLockTimeoutMs = 10_000;
const migrationsTable = 'migrations';

/**
 * Brings role, schema, tables and grants to what the files say. Safe to repeat and to run several
 * at once (they queue, two minutes at most); rejects at the first migration that fails, with that
 * migration rolled back and those before it kept.
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
    await client.query(`set lock_timeout = ${turnTimeoutMs}`);
    await client.query('select pg_advisory_lock($1)', [lockKey]);
    await client.query(`set lock_timeout = ${tableLockTimeoutMs}`);
    await ensureRole(client, options, logger);
    await client.query(`create schema if not exists ${pg.escapeIdentifier(options.schema)}`);
    await runFiles(client, options, logger);
    await grant(client, options);
  } finally {
    await client.end();
  }
}

async function runFiles(client: Client, options: MigrateOptions, logger: Logger): Promise<void> {
  const done = await runner({
    dbClient: client,
    dir: options.dir,
    ignorePattern: '(\\..*|.*(?<!\\.sql))',
    schema: options.schema,
    migrationsSchema: options.schema,
    migrationsTable,
    direction: 'up',
    count: Infinity,
    singleTransaction: false,
    noLock: true,
    logger: {
      debug: () => undefined,
      info: (message) => logger.debug(message),
      warn: (message) => logger.warn(message),
      error: (message) => logger.error(message),
    },
  });
  logger.info({ schema: options.schema, migrations: done.map((migration) => migration.name) }, 'schema is up to date');
}

/** What the service's role may do with the tables of outbox.sql: messages are never changed. */
export function outboxGrants(role: string): string[] {
  return [
    `grant select, insert, delete on outbox to ${role}`,
    `grant select, insert, update (published_at), delete on outbox_batches to ${role}`,
    `grant select, insert, update (holder, expires_at) on outbox_lease to ${role}`,
  ];
}

async function grant(client: Client, options: MigrateOptions): Promise<void> {
  const role = pg.escapeIdentifier(options.role);
  const schema = pg.escapeIdentifier(options.schema);
  await client.query('begin');
  await client.query(`set local search_path to ${schema}`);
  await client.query(`grant usage on schema ${schema} to ${role}`);
  // What was once granted and is no longer: rights are what the statements below say.
  await client.query(`revoke all on all tables in schema ${schema} from ${role}`);
  await client.query(`grant select on ${migrationsTable} to ${role}`);
  for (const statement of options.grants(role)) await client.query(statement);
  await client.query('commit');
}

async function ensureRole(client: Client, options: MigrateOptions, logger: Logger): Promise<void> {
  const role = pg.escapeIdentifier(options.role);
  const found = await client.query('select from pg_roles where rolname = $1', [options.role]);
  if (found.rowCount === 0) {
    await createRole(client, role, options.role_password);
    logger.info({ role: options.role }, 'role created');
  }
  const database = await client.query<{ name: string }>('select current_database() as name');
  const name = pg.escapeIdentifier(database.rows[0]?.name ?? '');
  await client.query(`grant connect on database ${name} to ${role}`);
  // Temporary tables stand before all others in a search path, and everybody may make some unless that is taken away.
  await client.query(`revoke temporary on database ${name} from public, ${role}`);
  if (await canLogIn(options)) return;
  await client.query(`alter role ${role} login password ${pg.escapeLiteral(scramVerifier(options.role_password))}`);
  logger.info({ role: options.role }, 'password of the role set');
}

/** The lock is per database, roles are per server: another database's migration may win the race for the same name. */
async function createRole(client: Client, role: string, password: string): Promise<void> {
  try {
    await client.query(`create role ${role} login password ${pg.escapeLiteral(scramVerifier(password))}`);
  } catch (error) {
    const lostRace = error instanceof pg.DatabaseError && (error.code === '42710' || error.code === '23505');
    if (!lostRace) throw error;
  }
}

/** A real log-in, since only a superuser may read the stored password. */
async function canLogIn(options: MigrateOptions): Promise<boolean> {
  const url = new URL(options.owner_url);
  url.username = encodeURIComponent(options.role);
  url.password = encodeURIComponent(options.role_password);
  const client = new pg.Client({
    connectionString: url.href,
    application_name: 'migrate',
    connectionTimeoutMillis: 10_000,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code?.startsWith('28')) return false;
    throw error;
  } finally {
    await client.end();
  }
}
