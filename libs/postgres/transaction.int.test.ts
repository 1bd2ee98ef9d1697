import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { Proxy } from '../../tests/support/proxy.ts';
import { isRetryable, leavesConnectionSound, uniqueViolation } from './errors.ts';
import type { Pool, Queries } from './pool.ts';
import { createPool } from './pool.ts';
import { createTestDatabase, silent } from './test/test-database.ts';
import { transaction, transactionInTwoTrips } from './transaction.ts';

const database = await createTestDatabase();
const observer = createPool({ url: database.url, application_name: 'observer', schema: 'public' }, silent);
await observer.query('create table t (id int primary key, v int not null default 0)');
afterAll(async () => {
  await observer.end();
  await database.drop();
});

const ids = async () =>
  (await observer.query<{ id: number }>('select id from t order by id')).rows.map((row) => row.id);
const insert = (client: Queries, id: number) => client.query('insert into t (id) values ($1)', [id]);
const readPid = async (client: Queries) =>
  (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
const catchFailure = (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error('was fulfilled');
    },
    (error: unknown) => error,
  );

describe('transaction', () => {
  const pool = createPool({ url: database.url, application_name: 'tx', schema: 'public', max: 2 }, silent);
  afterAll(() => pool.end());
  beforeEach(() => observer.query('truncate t'));

  test("commits and returns fn's value", async () => {
    expect(await transaction(pool, async (client) => (await insert(client, 1)).rowCount)).toBe(1);
    expect(await ids()).toEqual([1]);
  });

  /** Returns whether the connection is reused after a transaction in which `fail` was called. */
  async function isKeptAfter(fail: (client: Queries) => Promise<unknown>): Promise<boolean> {
    let pid: unknown;
    await catchFailure(
      transaction(pool, async (client) => {
        pid = await readPid(client);
        await insert(client, 1);
        await fail(client);
      }),
    );
    expect(await ids()).toEqual([]);
    return pid === (await transaction(pool, readPid));
  }

  test.each([
    ['23505', true],
    ['22012', true],
    ['0A000', false],
    ['25006', false],
    ['26000', false],
    ['XX000', false],
  ])('rolls back after %s; the connection is reused: %s', async (code, isKept) => {
    expect(
      await isKeptAfter((client) => client.query(`do $$ begin raise exception 'no' using errcode = '${code}'; end $$`)),
    ).toBe(isKept);
  });

  test('rolls back if fn throws, and discards the connection', async () => {
    expect(await isKeptAfter(() => Promise.reject(new Error('no')))).toBe(false);
  });

  test('an error that fn catches still fails the transaction', async () => {
    await expect(
      transaction(pool, async (client) => {
        await insert(client, 1);
        await insert(client, 1).catch(() => undefined);
      }),
    ).rejects.toThrow('rolled back');
    expect(await ids()).toEqual([]);
  });

  test('a unique violation names its constraint', async () => {
    const error = await catchFailure(
      transaction(pool, async (client) => {
        await insert(client, 1);
        await insert(client, 1);
      }),
    );
    expect([uniqueViolation(error), isRetryable(error)]).toEqual(['t_pkey', false]);
  });

  test('a deadlock runs fn again until both succeed', async () => {
    await observer.query('insert into t (id) values (1), (2)');
    let runs = 0;
    const bothHoldOne = Promise.withResolvers<void>();
    const both = (first: number, second: number) =>
      transaction(pool, async (client) => {
        runs += 1;
        await client.query('update t set v = v + 1 where id = $1', [first]);
        if (runs === 2) bothHoldOne.resolve();
        await bothHoldOne.promise;
        await client.query('update t set v = v + 1 where id = $1', [second]);
      });
    await Promise.all([both(1, 2), both(2, 1)]);
    expect(runs).toBeGreaterThan(2);
    expect((await observer.query('select v from t')).rows).toEqual([{ v: 2 }, { v: 2 }]);
  });

  test('retries at most five times', async () => {
    let runs = 0;
    const error = await catchFailure(
      transaction(pool, async (client) => {
        runs += 1;
        await client.query(`do $$ begin raise exception 'again' using errcode = '40001'; end $$`);
      }),
    );
    expect([runs, isRetryable(error)]).toEqual([6, true]);
  });

  test('a transaction whose connection is killed is rolled back, and the pool gets a new connection', async () => {
    const error = await catchFailure(
      transaction(pool, async (client) => {
        await insert(client, 1);
        await observer.query('select pg_terminate_backend($1)', [await readPid(client)]);
        await insert(client, 2);
      }),
    );
    // The server's last message (57P01), or the driver's error if it has already noticed that the connection is closed.
    expect(error).toBeInstanceOf(Error);
    expect(leavesConnectionSound(error)).toBe(false);
    await transaction(pool, (client) => insert(client, 3));
    expect(await ids()).toEqual([3]);
    expect(pool.totalCount).toBeLessThanOrEqual(2);
  });

  test('queries that are not awaited individually run in order, and the first error is the result', async () => {
    await transaction(pool, (client) => Promise.all([insert(client, 1), insert(client, 2)]));
    expect(await ids()).toEqual([1, 2]);
    const atServer = await catchFailure(
      transaction(pool, (client) => Promise.all([insert(client, 3), insert(client, 3), insert(client, 4)])),
    );
    expect(uniqueViolation(atServer)).toBe('t_pkey');
    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    const refused = transaction(pool, (client) =>
      Promise.all([insert(client, 5), client.query('insert into t (id, v) values (6, length($1::text))', [circular])]),
    );
    await expect(refused).rejects.toThrow('circular');
    expect(await ids()).toEqual([1, 2]);
  });

  /** Returns a pool whose only connection is inside a transaction, so that BEGIN fails. */
  async function poolInTransaction(): Promise<Pool> {
    const options = { default_transaction_isolation: 'serializable' };
    const one = createPool({ url: database.url, application_name: 'tx', schema: 'public', max: 1, options }, silent);
    const connection = await one.connect();
    await connection.query('begin');
    await connection.query('select');
    // Inside an open transaction, Postgres rejects BEGIN with another isolation level after a first read.
    connection.release();
    return one;
  }

  test('nothing is written if BEGIN fails', async () => {
    const one = await poolInTransaction();
    let ran = false;
    const error = await catchFailure(
      transaction(one, async (client) => {
        ran = true;
        await insert(client, 1);
      }),
    );
    await one.end();
    expect([ran, Reflect.get(error as object, 'code')]).toEqual([false, '25001']);
    expect(await ids()).toEqual([]);
  });

  describe('in two trips', () => {
    const none = () => undefined;

    test('commits the last statements, and returns the result', async () => {
      const count = await transactionInTwoTrips(pool, async (client) => {
        await readPid(client);
        const last = [insert(client, 1), insert(client, 2)];
        return { last, result: async () => (await Promise.all(last)).length };
      });
      expect([count, await ids()]).toEqual([2, [1, 2]]);
    });

    test('writes nothing if BEGIN fails', async () => {
      const one = await poolInTransaction();
      const error = await catchFailure(
        transactionInTwoTrips(one, async (client) => {
          await readPid(client);
          return { last: [insert(client, 1)], result: none };
        }),
      );
      await one.end();
      expect([Reflect.get(error as object, 'code'), await ids()]).toEqual(['25001', []]);
    });

    test('writes nothing if one of the last statements fails, throws its error, and keeps the connection', async () => {
      let pid: unknown;
      const error = await catchFailure(
        transactionInTwoTrips(pool, async (client) => {
          pid = await readPid(client);
          return { last: [insert(client, 1), insert(client, 1), insert(client, 2)], result: none };
        }),
      );
      expect([uniqueViolation(error), await ids()]).toEqual(['t_pkey', []]);
      expect(await transaction(pool, readPid)).toBe(pid);
    });

    const circular: Record<string, unknown> = {};
    circular['self'] = circular;
    const wrap = (statement: Promise<unknown>) => Promise.all([Promise.all([statement]).then((all) => all)]);
    test.each<[string, RegExp, (client: Queries) => Promise<unknown>]>([
      ['its function throws', /no parameters/, async () => Promise.reject(new Error('no parameters'))],
      ['pg cannot write its parameters', /circular/, (client) => client.query('select length($1::text)', [circular])],
      ['pg refuses it', /must be an array/, (client) => client.query('select 1', 'text' as never)],
      ['others wait for it', /must be an array/, (client) => wrap(wrap(client.query('select 1', 'text' as never)))],
    ])('writes nothing if one of the last statements is not sent: %s', async (_, message, fail) => {
      for (const isFirst of [true, false]) {
        const error = await catchFailure(
          transactionInTwoTrips(pool, async (client) => {
            await readPid(client);
            const last = isFirst
              ? [fail(client), insert(client, 1)]
              : [insert(client, 1), fail(client), insert(client, 2)];
            return { last, result: none };
          }),
        );
        expect([isFirst, String(error)]).toEqual([isFirst, expect.stringMatching(message)]);
        expect(await ids()).toEqual([]);
      }
    });

    test('writes nothing if an earlier statement fails or fn throws', async () => {
      for (const fail of [(client: Queries) => client.query('select 1 / 0'), () => Promise.reject(new Error('no'))])
        await catchFailure(
          transactionInTwoTrips(pool, async (client) => {
            await insert(client, 1);
            await fail(client);
            return { last: [insert(client, 2)], result: none };
          }),
        );
      expect(await ids()).toEqual([]);
    });

    test('a statement after COMMIT is an error', async () => {
      const error = await catchFailure(
        transactionInTwoTrips(pool, async (client) => ({
          last: [readPid(client).then(() => insert(client, 1))],
          result: none,
        })),
      );
      expect([String(error), await ids()]).toEqual(['Error: a statement was to be sent after COMMIT', []]);
    });

    test('is repeated after a serialization failure of one of the last statements', async () => {
      let runs = 0;
      await transactionInTwoTrips(pool, async (client) => {
        await readPid(client);
        runs++;
        if (runs === 3) return { last: [insert(client, runs)], result: none };
        const fail = "do $$ begin raise exception 'no' using errcode = '40001'; end $$";
        return { last: [insert(client, runs), client.query(fail)], result: none };
      });
      expect([runs, await ids()]).toEqual([3, [3]]);
    });
  });

  test('a read-only transaction sees one snapshot and cannot write', async () => {
    await transaction(
      pool,
      async (client) => {
        const count = async () => (await client.query<{ n: bigint }>('select count(*) as n from t')).rows[0]?.n;
        expect(await count()).toBe(0n);
        await observer.query('insert into t (id) values (7)');
        expect(await count()).toBe(0n);
      },
      'read only snapshot',
    );
    expect(await catchFailure(transaction(pool, (client) => insert(client, 8), 'read only snapshot'))).toMatchObject({
      code: '25006',
    });
  });
});

describe('network failures', () => {
  const options = {
    application_name: 'tx',
    schema: 'public',
    max: 1,
    statement_timeout_ms: 1000,
    connection_timeout_ms: 2000,
  };

  async function withProxy(fn: (proxy: Proxy, pool: Pool) => Promise<void>) {
    await observer.query('truncate t');
    const proxy = await new Proxy({ target: database.url }).start();
    const pool = createPool({ ...options, url: proxy.url }, silent);
    try {
      await fn(proxy, pool);
    } finally {
      await pool.end();
      await proxy.stop();
    }
  }

  test('a transaction that is disconnected fails, and the next one succeeds', () =>
    withProxy(async (proxy, pool) => {
      const error = await catchFailure(
        transaction(pool, async (client) => {
          await insert(client, 1);
          await proxy.set({ kind: 'cut' });
          await insert(client, 2);
        }),
      );
      const refused = await catchFailure(transaction(pool, (client) => insert(client, 3)));
      expect([error, refused]).toEqual([expect.any(Error), expect.any(Error)]);
      await proxy.heal();
      await transaction(pool, (client) => insert(client, 4));
      expect(await ids()).toEqual([4]);
    }));

  test('a transaction fails if the server is silent, and its connection is destroyed', () =>
    withProxy(async (proxy, pool) => {
      const error = await catchFailure(
        transaction(pool, async (client) => {
          await insert(client, 1);
          await proxy.set({ kind: 'silent' });
          await insert(client, 2);
        }),
      );
      expect(String(error)).toContain('Query read timeout');
      await proxy.heal();
      await transaction(pool, (client) => insert(client, 4));
      expect(await ids()).toEqual([4]);
    }));
});
