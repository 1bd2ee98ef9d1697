import { setTimeout as sleep } from 'node:timers/promises';

type Nothing = undefined | false;

/**
 * Calls `check` until it returns a value, at first after 5 ms and then up to every 50 ms, for at most `timeoutMs`. If
 * it throws, it is called again. A failed assertion is rethrown immediately, because it states a condition that must
 * always hold.
 */
export async function eventually<T>(
  check: () => Promise<T | Nothing> | T | Nothing,
  timeoutMs = 30_000,
): Promise<Exclude<T, Nothing>> {
  const deadline = Date.now() + timeoutMs;
  let last: unknown = 'nothing';
  for (let waitMs = 5; ; waitMs = Math.min(2 * waitMs, 50)) {
    try {
      const result = await check();
      if (result !== undefined && result !== false) return result as Exclude<T, Nothing>;
    } catch (error) {
      if (error instanceof Error && error.name === 'AssertionError') throw error;
      last = error;
    }
    if (Date.now() > deadline)
      throw new Error(`not true within ${timeoutMs} ms: ${check}; the last result was ${String(last)}`, {
        cause: last,
      });
    await sleep(waitMs);
  }
}
