import { setTimeout as sleep } from 'node:timers/promises';

type Nothing = undefined | false;

/**
 * Calls `check` until it returns a value, at first after 5 ms and then, the longer it has waited, up to every 200 ms, for
 * at most `timeoutMs`. If it throws, it is called again. A failed assertion is rethrown immediately, because it states a
 * condition that must always hold.
 */
export async function eventually<T>(
  check: () => Promise<T | Nothing> | T | Nothing,
  timeoutMs = 30_000,
): Promise<Exclude<T, Nothing>> {
  const startedAt = Date.now();
  let last: unknown = 'nothing';
  for (;;) {
    try {
      const result = await check();
      if (result !== undefined && result !== false) return result as Exclude<T, Nothing>;
    } catch (error) {
      if (error instanceof Error && error.name === 'AssertionError') throw error;
      last = error;
    }
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > timeoutMs)
      throw new Error(`not true within ${timeoutMs} ms: ${check}; the last result was ${String(last)}`, {
        cause: last,
      });
    await sleep(Math.min(Math.max(5, waitedMs / 8), 200));
  }
}
