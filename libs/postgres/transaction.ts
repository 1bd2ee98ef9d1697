import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { isRetryable, leavesConnectionSound } from './errors.ts';
import type { Queries } from './pool.ts';

const maxAttempts = 6;

export type TransactionMode = 'read write' | 'read only snapshot';

const beginStatement: Record<TransactionMode, string> = {
  'read write': 'BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE',
  'read only snapshot': 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
};

/**
 * Runs fn between BEGIN and COMMIT on one connection and returns what fn returned, only after COMMIT was confirmed.
 * - When fn throws, everything is rolled back and its error passed on.
 * - On 40001 and 40P01 fn itself is run again, up to 5 times after a random pause of 5 to 200 ms:
 *   fn must have no effect
 *   outside the transaction.
 * - Unless the error leaves the connection sound (see errors.ts), it is destroyed and never given back to the pool.
 * - A swallowed error inside fn does not turn into a silent loss: Postgres answers COMMIT with
 *   ROLLBACK then, and this throws.
 * - Queries that fn makes without waiting for each other's results run in the order of the calls;
 *   where one fails, those
 *   behind it fail too.
 * When COMMIT itself is lost, the work may or may not have been done: callers rely on their command id.
 */
export async function transaction<T>(
  pool: Pool,
  fn: (client: Queries) => Promise<T>,
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

async function attemptOnce<T>(pool: Pool, fn: (client: Queries) => Promise<T>, mode: TransactionMode): Promise<T> {
  const client = await pool.connect();
  let unusable = false;
  const markUnusable = () => {
    unusable = true;
  };
  client.on('error', markUnusable);
  try {
    await client.query(beginStatement[mode]);
    const result = await fn(client);
    const { command } = await client.query('COMMIT');
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back: a statement in it had failed');
    return result;
  } catch (error) {
    if (!unusable) unusable = !leavesConnectionSound(error) || !(await rolledBack(client));
    throw error;
  } finally {
    client.off('error', markUnusable);
    client.release(unusable);
  }
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
