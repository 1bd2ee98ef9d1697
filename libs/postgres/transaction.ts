import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Pool } from 'pg';
import { isReadTimeout, isRetryable } from './errors.ts';
import { PacketClient } from './packet.ts';
import type { Queries } from './pool.ts';

export { isRetryable, isUnavailable, tookTooLong, uniqueViolation } from './errors.ts';

const maxAttempts = 6;
const nextTick = promisify<void>((done) => process.nextTick(done));

export type TransactionMode = 'read write' | 'read only snapshot';

const beginStatement: Record<TransactionMode, string> = {
  'read write': 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
  'read only snapshot': 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
};

/**
 * Sends COMMIT right behind the transaction's last query, without waiting for its answer, and resolves to that answer
 * once COMMIT is confirmed: a round trip less. `await finish(() => client.query(…))`; nothing may be queried after it.
 * `first`: queries that the database is at while `last` still makes its own; where one of them fails, all does. The pool should
 * have a transaction_timeout_ms then.
 */
export type Finish = <R>(last: () => Promise<R>, first?: () => readonly Promise<unknown>[]) => Promise<R>;

/**
 * Runs fn between BEGIN and COMMIT on one connection and returns what fn returned, only after COMMIT was confirmed.
 * - When fn throws, everything is rolled back and its error passed on.
 * - On 40001 and 40P01 fn itself is run again, up to 5 times after a random pause of 5 to 200 ms: fn must have no effect
 *   outside the transaction.
 * - A connection that broke or did not answer is destroyed and never given back to the pool.
 * - A swallowed error inside fn does not turn into a silent loss: Postgres answers COMMIT with ROLLBACK then, and this throws.
 * - What is queried at once is one packet, and one answer comes of it: the queries run in the order of the calls, and where
 *   one fails those behind it are not executed and reject with its error. BEGIN is the first of the first packet; were it to fail,
 *   no later packet would be sent.
 * When COMMIT itself is lost (isUnavailable), the work may or may not have been done: callers rely on their command id.
 */
export async function transaction<T>(
  pool: Pool,
  fn: (client: Queries, finish: Finish) => Promise<T>,
  mode: TransactionMode = 'read write',
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await attemptOnce(pool, fn, mode);
    } catch (error) {
      if (attempt >= maxAttempts || !isRetryable(error)) throw error;
      await sleep(5 + Math.random() * Math.min(195, 10 * 2 ** attempt));
    }
  }
}

async function attemptOnce<T>(pool: Pool, fn: (client: Queries, finish: Finish) => Promise<T>, mode: TransactionMode): Promise<T> {
  const connection = await pool.connect();
  let unusable = false;
  const markUnusable = () => {
    unusable = true;
  };
  connection.on('error', markUnusable);
  const client = new PacketClient(connection);
  try {
    const begun = client.begin({ name: `begin ${mode}`, text: beginStatement[mode] });
    begun.catch(() => undefined);
    let committed = false;
    const result = await fn(client, async (last, first = () => []) => {
      client.hold();
      try {
        const queries = [begun, ...first()];
        client.flush();
        const query = Promise.try(last);
        const committing = (await failedAtOnce([...queries, query])) ? undefined : commit(client);
        client.close();
        await Promise.all([...queries, query, committing]);
        committed = true;
        return query;
      } finally {
        client.close();
      }
    });
    await begun;
    if (!committed) await commit(client);
    return result;
  } catch (error) {
    if (!unusable) unusable = isReadTimeout(error) || !(await rolledBack(client));
    throw error;
  } finally {
    connection.off('error', markUnusable);
    connection.release(unusable);
  }
}

async function commit(client: Queries): Promise<void> {
  const answer = await client.query({ name: 'commit', text: 'COMMIT' });
  if (answer.command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it had failed');
}

/**
 * True where a query failed before it was sent (a value that cannot be encoded, say). The server would know nothing of that
 * failure, and COMMIT would commit the others.
 */
async function failedAtOnce(queries: readonly Promise<unknown>[]): Promise<boolean> {
  let failed = false;
  for (const query of queries) {
    query.catch(() => {
      failed = true;
    });
  }
  // By the second tick whatever awaits a promise that is rejected already has been told.
  await nextTick();
  await nextTick();
  return failed;
}

/** False where the connection did not answer to ROLLBACK. Harmless when nothing is open. */
async function rolledBack(client: Queries): Promise<boolean> {
  try {
    await client.query('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}
