import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkDatabase } from './check.ts';
import { knownMigrations, type Migration, migrate } from './migrate.ts';
import { createPool, type Pool, type PoolOptions } from './pool.ts';
import { createTestDatabase, silent, type TestDatabase } from './test/test-database.ts';

/** Tests the requirements for each new connection: it leads directly to a primary with a schema that the code knows. */
const dir = mkdtempSync(join(tmpdir(), 'core-banking-connection-'));
const migrations = join(dir, 'migrations');
let database: TestDatabase;
let serviceUrl: string;

beforeAll(async () => {
  database = await createTestDatabase();
  mkdirSync(migrations);
  writeFileSync(join(migrations, '0001-first.sql'), 'create table t (id int);');
  await migrateNow();
  const url = new URL(database.url);
  [url.username, url.password] = [`${database.name}_role`, 'test-password'];
  serviceUrl = url.href;
});
afterAll(async () => {
  await database?.drop();
  rmSync(dir, { recursive: true });
});

const migrateNow = () =>
  migrate(
    {
      owner_url: database.url,
      schema: 'app',
      role: `${database.name}_role`,
      role_password: 'test-password',
      dir: migrations,
      grants: () => [],
    },
    silent,
  );

/** Runs `fn` with a pool of one connection with these options. */
async function withPool<T>(options: Partial<PoolOptions>, use: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = createPool(
    { url: serviceUrl, application_name: 'connection', schema: 'app', max: 1, ...options },
    silent,
  );
  try {
    return await use(pool);
  } finally {
    await pool.end();
  }
}

const tryOne = (options: Partial<PoolOptions>) =>
  withPool(options, (pool) => pool.query('select 1').then(() => 'taken', String));

test('a read-only server is rejected, and a connection is used for at most ten minutes', async () => {
  expect(await tryOne({})).toBe('taken');
  expect(await tryOne({ options: { default_transaction_read_only: 'on' } })).toMatch(/standby or read-only/);
  await withPool({}, async (pool) => expect(pool.options.maxLifetimeSeconds).toBe(600));
});

test("a commit waits for the standby, whatever the role's setting", async () => {
  await withPool({ url: database.url }, (owner) =>
    owner.query(`alter role ${database.name}_role set synchronous_commit = off`),
  );
  await withPool({}, async (pool) =>
    expect((await pool.query('show synchronous_commit')).rows).toEqual([{ synchronous_commit: 'on' }]),
  );
});

test('a schema older than the code, or made by other files, is rejected, a newer one is accepted', async () => {
  const older = knownMigrations({ dir: migrations });
  expect([older.map(({ name }) => name), await tryOne({ migrations: older })]).toEqual([
    ['outbox', '0001-first'],
    'taken',
  ]);
  writeFileSync(join(migrations, '0002-second.sql'), 'alter table t add column v int;');
  const newer = knownMigrations({ dir: migrations });
  expect(await tryOne({ migrations: newer })).toMatch(
    /schema app is older than this version: migration 0002-second is missing/,
  );
  await migrateNow();
  expect([await tryOne({ migrations: newer }), await tryOne({ migrations: older })]).toEqual(['taken', 'taken']);
  const [outbox, first] = older as [Migration, Migration];
  expect(await tryOne({ migrations: [outbox, { ...first, checksum: outbox.checksum }] })).toMatch(
    /schema app was made by another version: its migration 0001-first is another file/,
  );
});

test('a schema whose migrations the service cannot read counts as older', async () => {
  const known = { migrations: knownMigrations({ dir: migrations }) };
  await withPool({ url: database.url }, (owner) =>
    owner.query(`revoke select on app.migrations from ${database.name}_role`),
  );
  expect(await tryOne(known)).toMatch(/migrations of schema app cannot be read/);
  await migrateNow();
  expect(await tryOne(known)).toBe('taken');
});

const ignored = 'extra_float_digits,options,statement_timeout,lock_timeout,idle_in_transaction_session_timeout';

describe.skipIf(spawnSync('pgbouncer', ['--version']).status !== 0)('PgBouncer (where it is installed)', () => {
  test.each([
    ['transaction', ''],
    ['transaction', ignored],
    ['session', ignored],
  ])('pooling per %s, ignoring the parameters [%s], is refused at the start', async (mode, parameters) => {
    const { port, bouncer } = await startPgBouncer(mode, parameters);
    const url = new URL(serviceUrl);
    url.host = `127.0.0.1:${port}`;
    try {
      await withPool({ url: url.href }, (pool) =>
        expect(checkDatabase(pool)).rejects.toThrow(/^DATABASE_URL: it leads to a connection pooler/),
      );
    } finally {
      bouncer.kill();
    }
  });
});

async function startPgBouncer(mode: string, parameters: string): Promise<{ port: number; bouncer: ChildProcess }> {
  const { hostname, port: serverPort, pathname, username, password } = new URL(serviceUrl);
  const port = await freePort();
  const [config, users] = [join(dir, 'pgbouncer.ini'), join(dir, 'users.txt')];
  writeFileSync(users, `"${username}" "${password}"\n`);
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    pool_mode: mode,
    ignore_startup_parameters: parameters,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const server = `${pathname.slice(1)} = host=${hostname} port=${serverPort} user=${username} password=${password}`;
  writeFileSync(config, ['[databases]', server, '[pgbouncer]', ...lines, ''].join('\n'));
  // PgBouncer does not run as root.
  chmodSync(dir, 0o755);
  const asNobody = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const bouncer = spawn('pgbouncer', [config], { ...asNobody, stdio: 'ignore' });
  for (let i = 0; i < 200 && !(await accepts(port)); i++) await sleep(25);
  return { port, bouncer };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)));
    socket.on('error', () => resolve(false));
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
