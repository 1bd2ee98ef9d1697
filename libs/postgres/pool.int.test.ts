import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import type { PoolOptions } from './pool.ts';
import { createPool, isoTimestamp } from './pool.ts';
import { createTestDatabase, silent } from './test/test-database.ts';

const database = await createTestDatabase();
const base: PoolOptions = { url: database.url, application_name: 'pool-test', schema: 'public', max: 3 };
const pool = createPool(base, silent);
afterAll(async () => {
  await pool.end();
  await database.drop();
});

async function value(sql: string): Promise<unknown> {
  const result = await pool.query<{ v: unknown }>(`select ${sql} as v`);
  return result.rows[0]?.v;
}

describe('types', () => {
  test.each([
    ['9223372036854775807::int8', 9223372036854775807n],
    ['count(*)', 1n],
    ['0.10::numeric', '0.10'],
    ['7::int4', 7],
    ["'2026-01-02 03:04:05.678901+00'::timestamptz", '2026-01-02T03:04:05.678Z'],
    ["'2026-01-02 05:04:05+02'::timestamptz", '2026-01-02T03:04:05.000Z'],
    ["'2026-01-02 03:04:05.6+00'::timestamptz", '2026-01-02T03:04:05.600Z'],
    ["'infinity'::timestamptz", 'infinity'],
  ])('%s', async (sql, expected) => {
    expect(await value(sql)).toEqual(expected);
  });

  test('other time zones and centuries are kept', () => {
    expect(isoTimestamp('2026-01-02 03:04:05+02')).toBe('2026-01-02 03:04:05+02');
    expect(isoTimestamp('0044-03-15 00:00:00+00 BC')).toBe('0044-03-15 00:00:00+00 BC');
  });
});

test("session settings override the server's", async () => {
  const odd = createPool(
    { ...base, schema: 'o"dd name', options: { plan_cache_mode: 'force_custom_plan', 'my.note': 'two words \\ and' } },
    silent,
  );
  const show = async (name: string) =>
    (await odd.query<{ v: string }>(`select current_setting('${name}') as v`)).rows[0]?.v;
  expect(await show('search_path')).toBe('"o""dd name"');
  expect([await show('TimeZone'), await show('jit'), await show('plan_cache_mode')]).toEqual([
    'UTC',
    'off',
    'force_custom_plan',
  ]);
  expect([
    await show('statement_timeout'),
    await show('lock_timeout'),
    await show('idle_in_transaction_session_timeout'),
  ]).toEqual(['5s', '3s', '5s']);
  expect([await show('my.note'), await show('application_name')]).toEqual(['two words \\ and', 'pool-test']);
  await odd.end();
  expect(() => createPool({ ...base, options: { 'a b': 'c' } }, silent)).toThrow('not a session setting');
});

describe('waiting is limited', () => {
  test('for a statement, a lock, and a free connection', async () => {
    const quick = createPool(
      { ...base, max: 1, statement_timeout_ms: 200, lock_timeout_ms: 100, connection_timeout_ms: 2_000 },
      silent,
    );
    const slow = await quick.query('select pg_sleep(5)').catch((error: unknown) => error);
    expect(slow).toMatchObject({ code: '57014' });
    await pool.query('create table locked (id int)');
    const holder = await pool.connect();
    await holder.query('begin; lock table locked');
    const waited = await quick.query('select * from locked').catch((error: unknown) => error);
    expect(waited).toMatchObject({ code: '55P03' });
    await holder.query('rollback');
    holder.release();
    const only = await quick.connect();
    const none = await quick.connect().catch((error: unknown) => error);
    expect(String(none)).toContain('timeout exceeded when trying to connect');
    only.release();
    await quick.end();
  });

  test('for a server that accepts connections but never responds', async () => {
    const sockets: Socket[] = [];
    const mute = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    const nowhere = createPool(
      {
        ...base,
        url: `postgres://u:p@127.0.0.1:${(mute.address() as AddressInfo).port}/d`,
        connection_timeout_ms: 200,
      },
      silent,
    );
    const error = await nowhere.query('select 1').catch((reason: unknown) => reason);
    expect(String(error)).toContain('connection timeout');
    await nowhere.end();
    sockets.forEach((socket) => socket.destroy());
    mute.close();
  });
});

test('a connection killed while idle or in use causes no unhandled error, and the pool continues', async () => {
  const held = await pool.connect();
  const pid = async () => (await held.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
  const idle = await pool.query<{ pid: number }>('select pg_backend_pid() as pid');
  await pool.query('select pg_terminate_backend($1)', [idle.rows[0]?.pid]).catch(() => undefined);
  const killer = createPool({ ...base, max: 1 }, silent);
  await killer.query('select pg_terminate_backend($1)', [await pid()]);
  await killer.end();
  const error = await held.query('select 1').catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(Error);
  held.release(true);
  expect(await value('1')).toBe(1);
});
