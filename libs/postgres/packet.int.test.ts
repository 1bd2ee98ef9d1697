import { afterAll, beforeEach, expect, test } from 'vitest';
import { PacketClient } from './packet.ts';
import { createPool } from './pool.ts';
import type { PoolClient, Queries } from './pool.ts';
import { createTestDatabase, silent } from './test-database.ts';

const database = await createTestDatabase();
const pool = createPool({ url: database.url, application_name: 'packets', schema: 'public', max: 1 }, silent);
await pool.query('create table t (id int primary key, amount int8, at timestamptz)');
beforeEach(() => pool.query('truncate t'));
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const ids = async () => (await pool.query<{ id: number }>('select id from t order by id')).rows.map((row) => row.id);
const insert = (client: Queries, id: number) => client.query({ name: 'insert', text: 'insert into t (id) values ($1)', values: [id] });
const reasonOf = (promise: Promise<unknown>) => promise.then(() => 'was fulfilled', (error: unknown) => (Reflect.get(error as object, 'code') as string | undefined) ?? String(error));

/** What is sent on the pool's connection meanwhile, by pg's names. */
async function sent(fn: (client: PacketClient) => Promise<unknown>): Promise<string[]> {
  const connection = await pool.connect();
  const wire = (connection as unknown as { connection: Record<string, (message: unknown) => void> }).connection;
  const seen: string[] = [];
  for (const name of ['parse', 'describe', 'execute', 'sync']) {
    wire[name] = function record(message) {
      seen.push(name);
      Object.getPrototypeOf(wire)[name].call(wire, message);
    };
  }
  try {
    await fn(new PacketClient(connection));
  } finally {
    for (const name of ['parse', 'describe', 'execute', 'sync']) delete wire[name];
    connection.release();
  }
  return seen;
}

async function withClient<T>(fn: (client: PacketClient, connection: PoolClient) => Promise<T>): Promise<T> {
  const connection = await pool.connect();
  try {
    return await fn(new PacketClient(connection), connection);
  } finally {
    connection.release();
  }
}

test('what is queried at once is answered at once, in its order', async () => {
  const both = (client: PacketClient) => Promise.all([insert(client, 1), client.query('select count(*) as n from t'), insert(client, 2), client.query('select $1::int as two', [2])]);
  await withClient(async (client) => {
    const [first, counted, second, two] = await both(client);
    expect([first.command, first.rowCount, second.rowCount, counted.rows, two.rows]).toEqual(['INSERT', 1, 1, [{ n: 1n }], [{ two: 2 }]]);
  });
  expect(await ids()).toEqual([1, 2]);
  await pool.query('truncate t');
  expect((await sent(both)).filter((name) => name === 'execute' || name === 'sync')).toEqual(['execute', 'execute', 'execute', 'execute', 'sync']);
});

test('a named statement is parsed and described once, and its rows are the same afterwards', async () => {
  const row = { id: 7, amount: 9_007_199_254_740_993n, at: '2026-01-02T03:04:05.678Z' };
  await pool.query('insert into t values ($1, $2, $3), (8, null, null)', Object.values(row));
  const read = (client: Queries) => client.query({ name: 'read', text: 'select * from t where id >= $1 order by id', values: [7] });
  for (const expected of [['parse', 'describe', 'execute', 'sync'], ['execute', 'sync']]) {
    expect(await sent(async (client) => expect((await read(client)).rows).toEqual([row, { id: 8, amount: null, at: null }]))).toEqual(expected);
  }
  expect((await withClient((client) => client.query({ name: 'read', text: 'select * from t where id >= $1 order by id', values: [9] }))).rows).toEqual([]);
});

test('what held queries come to is one packet over several turns, begun with before it is closed', async () => {
  expect(await sent(async (client) => {
    client.hold();
    const first = insert(client, 1);
    client.flush();
    await expect.poll(async () => (await second.query(`select count(*) as n from pg_stat_activity where application_name = 'packets' and query like 'insert%'`)).rows[0]?.n).toBe(1n);
    const last = insert(client, 2);
    client.close();
    await Promise.all([first, last]);
  })).toEqual(expect.arrayContaining(['execute', 'execute', 'sync']));
  expect(await ids()).toEqual([1, 2]);
});
const second = createPool({ url: database.url, application_name: 'observer', schema: 'public', max: 1 }, silent);
afterAll(() => second.end());

test('where one fails none behind it is executed, all of them say why, and the connection goes on', async () => {
  await withClient(async (client) => {
    const late = { name: 'late', text: 'select $1::int as late', values: [3] };
    const answers = [insert(client, 1), client.query('select 1 / 0'), insert(client, 2), client.query(late)];
    expect(await Promise.all(answers.map(reasonOf))).toEqual(['was fulfilled', '22012', '22012', '22012']);
    expect((await client.query(late)).rows).toEqual([{ late: 3 }]);
  });
  // All of it was one transaction of its own.
  expect(await ids()).toEqual([]);
});

test('one that comes behind a failure that is known already says the same', async () => {
  await withClient(async (client) => {
    client.hold();
    const failing = reasonOf(client.query('select 1 / 0'));
    client.flush();
    expect(await failing).toBe('22012');
    expect(await reasonOf(insert(client, 1))).toBe('22012');
    client.close();
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });
  expect(await ids()).toEqual([]);
});

test("the driver's refusal of one concerns no other", async () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  await withClient(async (client) => {
    const answers = [insert(client, 1), client.query('select $1', [circular]), client.query({ name: 'insert', text: 'select 2' }), insert(client, 2)];
    const reasons = await Promise.all(answers.map(reasonOf));
    expect(reasons).toEqual(['was fulfilled', expect.stringContaining('circular'), expect.stringContaining("'insert' was used for another"), 'was fulfilled']);
  });
  expect(await ids()).toEqual([1, 2]);
});

test('two statements of one packet cannot have one name', async () => {
  await withClient(async (client) => {
    const answers = [client.query({ name: 'same', text: 'select 1 as one' }), client.query({ name: 'same', text: 'select 2 as two' }), client.query({ name: 'same', text: 'select 1 as one' })];
    expect(await Promise.all(answers.map(reasonOf))).toEqual(['was fulfilled', expect.stringContaining("'same' was used for another"), 'was fulfilled']);
  });
});

test('a statement that the server does not parse is parsed again when it could be', async () => {
  const later = { name: 'later', text: 'select * from later' };
  await withClient(async (client) => {
    expect(await reasonOf(client.query(later))).toBe('42P01');
    await client.query('create table later (x int)');
    expect((await client.query(later)).rows).toEqual([]);
    await client.query('drop table later');
  });
});

test('a row that cannot be read fails its query alone', async () => {
  await withClient(async (client, connection) => {
    connection.setTypeParser(600 as number, () => {
      throw new Error('no point');
    });
    const answers = [client.query(`select '(1,2)'::point as p`), insert(client, 1)];
    expect(await Promise.all(answers.map(reasonOf))).toEqual(['Error: no point', 'was fulfilled']);
  });
});

test('what has no answer of rows: nothing at all, and COPY, which is refused', async () => {
  await withClient(async (client) => {
    expect((await client.query('')).rows).toEqual([]);
    expect(await reasonOf(client.query('copy t from stdin'))).toBe('57014');
    expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });
});

test('a connection that breaks fails all that wait for it', async () => {
  await expect(withClient(async (client, connection) => {
    const { pid } = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0] ?? {};
    const answers = [client.query('select pg_sleep(30)'), insert(client, 1)].map(reasonOf);
    await second.query('select pg_terminate_backend($1)', [pid]);
    expect(await Promise.all(answers)).toEqual(['57P01', '57P01']);
    await expect.poll(() => reasonOf(client.query('select 1'))).toContain('not queryable');
    connection.release(true);
    throw new Error('released');
  })).rejects.toThrow();
  expect(await ids()).toEqual([]);
});

test('a query may take longer than the pool lets its answers', async () => {
  const hasty = createPool({ url: database.url, application_name: 'hasty', schema: 'public', max: 1, statement_timeout_ms: 0 }, silent);
  const connection = await hasty.connect();
  const client = new PacketClient(connection);
  // The pool's bound is 2 s.
  const answers = [client.query('select 1'), client.query({ text: 'select pg_sleep(2.2)', query_timeout: 60_000 }), client.query({ text: 'select 1', query_timeout: 1_000 })];
  expect(await Promise.all(answers.map(reasonOf))).toEqual(['was fulfilled', 'was fulfilled', 'was fulfilled']);
  expect(await reasonOf(client.query({ text: 'select pg_sleep(60)', query_timeout: 100 }))).toBe('Error: Query read timeout');
  connection.release(true);
  await hasty.end();
});

test('who stops in the middle of a packet loses its transaction, and the locks with it', async () => {
  const frozen = createPool({ url: database.url, application_name: 'frozen', schema: 'public', max: 1, transaction_timeout_ms: 300 }, silent);
  const connection = await frozen.connect();
  connection.on('error', () => undefined);
  await pool.query('insert into t (id, amount) values (1, 0)');
  const client = new PacketClient(connection);
  client.hold();
  const answers = ['begin', 'update t set amount = 1 where id = 1'].map((text) => reasonOf(client.query(text)));
  client.flush();
  await expect.poll(async () => (await second.query(`select count(*) as n from pg_stat_activity where application_name = 'frozen' and xact_start is not null`)).rows[0]?.n).toBe(1n);
  await second.query('update t set amount = 2 where id = 1');
  expect(await Promise.all(answers)).toEqual(['was fulfilled', 'was fulfilled']);
  expect(await reasonOf(client.query('commit'))).toBe('25P04');
  client.close();
  connection.release(true);
  await frozen.end();
  expect((await pool.query('select amount from t')).rows).toEqual([{ amount: 2n }]);
});
