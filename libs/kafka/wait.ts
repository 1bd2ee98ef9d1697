import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Returns the outcome of `promise`, or rejects after `timeoutMs`. A later outcome is ignored; the caller must end the
 * work itself if that matters.
 */
export function withTimeout<T>(promise: Promise<T>, timeoutMs: number, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} took longer than ${timeoutMs} ms`)), timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Waits `ms` milliseconds or until the signal is aborted, whichever comes first. Never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return sleep(ms, undefined, signal && { signal }).catch(() => undefined);
}

/** A back-off that doubles from `firstMs` to `maxMs`, with 20 % jitter. reset() starts over. */
export function createBackoff(firstMs: number, maxMs: number): { next(): number; reset(): void } {
  let current = firstMs;
  return {
    next: () => {
      const ms = current * (0.8 + 0.4 * Math.random());
      current = Math.min(current * 2, maxMs);
      return ms;
    },
    reset: () => {
      current = firstMs;
    },
  };
}

/**
 * Calls until a call succeeds. For a start, which waits for unreachable servers instead of failing. Rejects with
 * an error that no repeat would mend.
 */
export async function repeatUntilDone<T>(
  call: () => Promise<T>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<T> {
  const backoff = createBackoff(100, 2_000);
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (isFinal(error)) throw error;
      await pause(backoff.next());
    }
  }
}
