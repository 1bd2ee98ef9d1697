import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { isRetryable, leavesConnectionSound } from './errors.ts';
import type { Queries } from './pool.ts';

const maxAttempts = 6;

export type TransactionMode = 'read write' | 'read only snapshot';

type NoticeLike = { code?: string | undefined; message?: string | undefined };

const beginStatement: Record<TransactionMode, string> = {
  'read write': 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
  'read only snapshot': 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
};

/**
 * Runs fn between BEGIN and COMMIT on one connection. Returns the result of fn after COMMIT was confirmed.
 * - If fn throws, the transaction is rolled back, and the error is passed on.
 * - After 40001 and 40P01, fn is run again, up to 5 times after a random pause of 5 to 200 ms, so fn must have no
 *   effect outside the transaction.
 * - Unless the connection is still usable after the error (see errors.ts), it is destroyed, not returned to the pool.
 * - An error that fn catches does not cause a silent loss: Postgres then answers COMMIT with ROLLBACK, and this
 *   function throws.
 * - Queries that fn starts without waiting for earlier results run in call order; if one fails, the later ones fail
 *   too.
 * - If the response to COMMIT is lost, the work may or may not be committed; callers rely on their command id. The same
 *   is true after a warning: if the wait for the synchronous standby is cancelled, Postgres commits on its own server
 *   only, warns, and confirms.
 */
export async function transaction<T>(
  pool: Pool,
  fn: (client: Queries) => Promise<T>,
  mode: TransactionMode = 'read write',
): Promise<T> {
  return repeating(() =>
    onConnection(pool, async (client) => {
      await client.query(beginStatement[mode]);
      const result = await fn(client);
      await commit(client);
      return result;
    }),
  );
}

async function repeating<T>(attemptOnce: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptOnce();
    } catch (error) {
      if (attempt >= maxAttempts || !isRetryable(error)) throw error;
      await sleep(5 + Math.random() * Math.min(195, 10 * 2 ** attempt));
    }
  }
}

/** How a transaction in two trips ends. */
export interface Sent<T> {
  /** The last statements, which were sent and not waited for. */
  last: readonly Promise<unknown>[];
  /** Returns the result of the transaction. It is called after COMMIT was confirmed. */
  result(): T | Promise<T>;
}

/**
 * Does the same as `transaction`, with two round trips fewer, for which locks are not held. BEGIN is sent with the first
 * statements of fn, which must change nothing and be waited for: if it failed, they would run without a transaction. COMMIT
 * is sent after the last statements, which fn does not wait for: if one could not be sent, because its parameters could not
 * be made, it is not sent, and if one fails, Postgres answers it with ROLLBACK. This function throws the error of that
 * statement.
 */
export async function transactionInTwoTrips<T>(pool: Pool, fn: (client: Queries) => Promise<Sent<T>>): Promise<T> {
  return repeating(() =>
    onConnection(pool, async (client) => {
      const begun = client.query(beginStatement['read write']);
      begun.catch(() => undefined);
      let isEnding = false;
      const query = async (...parameters: Parameters<Queries['query']>) => {
        if (isEnding) throw new Error('a statement was to be sent after COMMIT');
        const [answer] = await Promise.all([client.query(...parameters), begun]);
        return answer;
      };
      const { last, result } = await fn({ query } as Queries);
      isEnding = true;
      let isUnsent = false;
      for (const statement of last) statement.catch(() => (isUnsent = true));
      await begun;
      await endOfTurn();
      if (isUnsent) await sentTogether(last);
      await sentTogether([...last, commit(client)]);
      return await result();
    }),
  );
}

/**
 * Resolves when everything that has failed without an answer of the server has been reported: pg does so in the next tick,
 * and promises pass it on in the microtasks after it.
 */
async function endOfTurn(): Promise<void> {
  for (let i = 0; i < 2; i++) await new Promise<void>((resolve) => process.nextTick(resolve));
}

/** Runs fn as `transaction` does up to its COMMIT, and rolls back. Resolves if it could have been committed. */
export async function rehearse(pool: Pool, fn: (client: Queries) => Promise<unknown>): Promise<void> {
  const done = new Error('rolled back');
  const attempt = transaction(pool, async (client) => {
    await fn(client);
    await client.query('SET CONSTRAINTS ALL IMMEDIATE');
    throw done;
  });
  await attempt.catch((error: unknown) => {
    if (error !== done) throw error;
  });
}

/** Runs fn, which begins and ends the transaction, on a connection, and rolls back if it fails. */
async function onConnection<T>(pool: Pool, fn: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let unusable = false;
  const markUnusable = () => {
    unusable = true;
  };
  client.on('error', markUnusable);
  try {
    return await fn(client);
  } catch (error) {
    if (!unusable) unusable = !leavesConnectionSound(error) || !(await rolledBack(client));
    throw error;
  } finally {
    client.off('error', markUnusable);
    client.release(unusable);
  }
}

async function commit(client: PoolClient): Promise<void> {
  const warnings: string[] = [];
  const collect = ({ code, message }: NoticeLike): void => {
    // Severities are translated, codes are not: a notice that is no warning has the code of success.
    if (code !== '00000') warnings.push(message ?? '');
  };
  client.on('notice', collect);
  try {
    const { command } = await client.query('COMMIT');
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it had failed');
    if (warnings.length > 0) throw new Error(`the transaction may not be durable: ${warnings.join('; ')}`);
  } finally {
    client.off('notice', collect);
  }
}

/**
 * Promise.all for statements that are sent together, in their order. It rejects with the error of the first one that
 * failed, which may be retryable: those after it report only that the transaction is aborted.
 */
export async function sentTogether<const T extends readonly unknown[]>(
  statements: T,
): Promise<{ -readonly [I in keyof T]: Awaited<T[I]> }> {
  await Promise.allSettled(statements);
  return Promise.all(statements);
}

/**
 * Makes the commit of this transaction wait for the synchronous standby although it changes nothing. A repeat must not
 * be answered while the first outcome is on one server only. The commit of a transaction that has written no WAL does
 * not wait.
 */
export async function requireReplication(client: Queries): Promise<void> {
  await client.query("select pg_logical_emit_message(true, 'repeat', '')");
}

/** Returns false if the connection did not respond to ROLLBACK, which has no effect if no transaction is open. */
async function rolledBack(client: Queries): Promise<boolean> {
  try {
    await client.query('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}
