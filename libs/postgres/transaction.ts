import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Pool, PoolClient } from 'pg';
import { isReadTimeout, isRetryable } from './errors.ts';

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
 * `underWay`: queries before it whose answers nobody has waited for either; they are waited for, and fail it.
 * On a pool without `pipeline` it merely waits for the queries.
 */
export type Finish = <R>(last: () => Promise<R>, underWay?: readonly Promise<unknown>[]) => Promise<R>;

/**
 * Runs fn between BEGIN and COMMIT on one connection and returns what fn returned, only after COMMIT was confirmed.
 * - When fn throws, everything is rolled back and its error passed on.
 * - On 40001 and 40P01 fn itself is run again, up to 5 times after a random pause of 5 to 200 ms: fn must have no effect
 *   outside the transaction.
 * - A connection that broke or did not answer is destroyed and never given back to the pool.
 * - A swallowed error inside fn does not turn into a silent loss: Postgres answers COMMIT with ROLLBACK then, and this throws.
 * - On a pool with `pipeline` BEGIN is not waited for. Were it to fail, the queries behind it would be refused (25006),
 *   because such a pool's sessions are read-only outside of a transaction.
 * When COMMIT itself is lost (isUnavailable), the work may or may not have been done: callers rely on their command id.
 */
export async function transaction<T>(
  pool: Pool,
  fn: (client: PoolClient, finish: Finish) => Promise<T>,
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

/**
 * The answers to statements that one connection was given at once, in their order. Rejects with the error of the first that
 * failed: the server refuses those behind it for no more than that (25P02), and whose promise rejects first is an accident.
 */
export async function inOrder<T extends readonly unknown[] | []>(statements: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(statements);
  for (const statement of statements) await statement;
  return Promise.all(statements);
}

async function attemptOnce<T>(
  pool: Pool,
  fn: (client: PoolClient, finish: Finish) => Promise<T>,
  mode: TransactionMode,
): Promise<T> {
  const client = await pool.connect();
  let unusable = false;
  const markUnusable = () => {
    unusable = true;
  };
  client.on('error', markUnusable);
  try {
    // What fn queries at once leaves together with BEGIN.
    const stream = streamOf(client);
    stream.cork();
    process.nextTick(() => stream.uncork());
    const begun = client.query(beginStatement[mode]);
    if (client.pipeline) begun.catch(() => undefined);
    else await begun;
    let committed = false;
    const result = await fn(client, async (last, underWay = []) => {
      if (!client.pipeline) return await inOrder(underWay).then(last);
      const { query, committing } = await sendWithCommit(client, last, underWay);
      await inOrder([begun, ...underWay, query, committing]);
      committed = committing !== undefined;
      return query;
    });
    await begun;
    if (!committed) await commit(client);
    return result;
  } catch (error) {
    if (!unusable) unusable = isReadTimeout(error) || !(await rolledBack(client));
    throw error;
  } finally {
    client.off('error', markUnusable);
    client.release(unusable);
  }
}

/** What pg's client has and its types do not name. Corked, what is written leaves in one system call and in one packet. */
function streamOf(client: PoolClient): { cork(): void; uncork(): void } {
  return (client as unknown as { connection: { stream: { cork(): void; uncork(): void } } }).connection.stream;
}

async function commit(client: PoolClient): Promise<void> {
  const answer = await client.query('COMMIT');
  if (answer.command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it had failed');
}

/** COMMIT follows in the same packet, unless the driver refused a query. */
async function sendWithCommit<R>(client: PoolClient, last: () => Promise<R>, underWay: readonly Promise<unknown>[]): Promise<{ query: Promise<R>; committing: Promise<void> | undefined }> {
  const stream = streamOf(client);
  stream.cork();
  try {
    const query = last();
    return { query, committing: (await failedAtOnce([...underWay, query])) ? undefined : commit(client) };
  } finally {
    stream.uncork();
  }
}

/**
 * True where the driver refused a query before it was sent (a value it cannot encode, say). The server would know
 * nothing of that failure, and COMMIT would commit the others.
 */
async function failedAtOnce(queries: readonly Promise<unknown>[]): Promise<boolean> {
  let failed = false;
  for (const query of queries) {
    query.catch(() => {
      failed = true;
    });
  }
  // The driver reports at the next tick; the second one comes after what that report has set off.
  await nextTick();
  await nextTick();
  return failed;
}

/** False where the connection did not answer to ROLLBACK. Harmless when nothing is open. */
async function rolledBack(client: PoolClient): Promise<boolean> {
  try {
    await client.query('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}
