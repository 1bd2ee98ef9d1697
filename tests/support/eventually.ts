/**
 * Waits until `check` gives something, looking every 50 ms, for at most `timeoutMs`. A check that
 * throws counts as not yet, but an assertion that failed ends the wait: it says what must never be.
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
      throw new Error(`not so within ${timeoutMs} ms; the last look gave ${String(last)}`, { cause: last });
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}
