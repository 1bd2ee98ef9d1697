/**
 * Calls `check` every 50 ms until it returns a value, for at most `timeoutMs`. If it throws, it is called again. A
 * failed assertion is rethrown immediately, because it states a condition that must always hold.
 */
export async function eventually<T>(check: () => Promise<T | undefined | false>, timeoutMs = 15_000): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let last: unknown = 'nothing';
  for (;;) {
    try {
      const result = await check();
      if (result !== undefined && result !== false) return result;
    } catch (error) {
      if (error instanceof Error && error.name === 'AssertionError') throw error;
      last = error;
    }
    if (Date.now() > deadline)
      throw new Error(`not true within ${timeoutMs} ms; the last result was ${String(last)}`, { cause: last });
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}
