import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { listen } from './outbox/listen.ts';
import { passwordsOf, setPasswords } from './passwords.ts';
import { createPool, type Pool } from './pool.ts';
import { scramVerifier } from './scram.ts';
import { createTestDatabase, silent, type TestDatabase } from './test/test-database.ts';

const [old, next] = ['the old, long one', 'p@ss/w%rd:new'];
let database: TestDatabase;
let owner: Pool;
let role: string;
let pool: Pool | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = createPool({ url: database.url, application_name: 'owner', schema: 'public', max: 2 }, silent);
  role = `${database.name}_role`;
  await owner.query(`create role ${role} login`);
});
afterAll(async () => {
  await owner.end();
  await database.drop();
});
beforeEach(() => give(old));
afterEach(() => pool?.end());

const give = (password: string) => owner.query(`alter role ${role} password '${scramVerifier(password)}'`);

function open(...passwords: string[]): Pool {
  const url = new URL(database.url);
  url.username = role;
  setPasswords(url, passwords);
  pool = createPool({ url: url.href, application_name: 'rotating', schema: 'public', max: 3 }, silent);
  return pool;
}

/** Ten statements at once, each of which ends its connection. */
const statements = (of: Pool) =>
  Promise.all(
    Array.from({ length: 10 }, async (_, i) => {
      const client = await of.connect();
      const { rows } = await client.query('select $1::int as i', [i]);
      client.release(true);
      expect(rows).toEqual([{ i }]);
    }),
  );

test('no statement fails while the password changes, in any round, and back', async () => {
  for (const passwords of [
    [old, next],
    [next, old],
  ]) {
    await give(old);
    const service = open(...passwords);
    await statements(service);
    const running = statements(service);
    await give(next);
    await running;
    await statements(service);
    expect((await service.query('select current_user as name')).rows).toEqual([{ name: role }]);
    await give(old);
    await statements(service);
    if (passwords[0] === old) await service.end();
  }
});

test('the password that worked is used first: one connection fails after a change, and none later', async () => {
  const service = open(old, next);
  await give(next);
  const tried: unknown[] = [];
  const of = service as Pool & { Client: new (config: unknown) => { password: string } };
  const { Client } = of;
  of.Client = class extends Client {
    constructor(config: unknown) {
      super(config);
      tried.push(this.password);
    }
  };
  for (let i = 0; i < 3; i++) {
    const client = await service.connect();
    client.release(true);
  }
  expect(tried).toEqual([old, next, next, next]);
});

test('with a password that is none of them, the refusal is reported, and the pool recovers', async () => {
  const service = open(old, next);
  await give('a third one');
  await expect(service.query('select')).rejects.toMatchObject({ code: '28P01' });
  await expect(service.connect()).rejects.toMatchObject({ code: '28P01' });
  await give(next);
  await statements(service);
});

test('the connection that listens finds the password, too', async () => {
  const service = open(old, next);
  let heard = 0;
  const listener = listen(service, 'rotated', () => heard++, silent);
  try {
    await vi.waitUntil(() => heard > 0);
    await give(next);
    await owner.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role]);
    await vi.waitUntil(() => heard > 1, { timeout: 5000 });
  } finally {
    await listener.stop();
  }
});

test('a comma in a URL is a part of the password', async () => {
  const url = new URL(database.url);
  [url.username, url.password] = [role, 'one,two'];
  expect([url.password, passwordsOf(url)]).toEqual(['one,two', ['one,two']]);
  await give('one,two');
  pool = createPool({ url: url.href, application_name: 'rotating', schema: 'public' }, silent);
  await statements(pool);
  await give('one');
  await expect(pool.query('select')).rejects.toMatchObject({ code: '28P01' });
});
