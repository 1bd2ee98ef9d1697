import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';

/** Work that a process repeats in the background. */
export interface Sweeping {
  start(): void;
  /** Resolves when the current sweep has finished. */
  stop(): Promise<void>;
}

/**
 * Calls `sweep` until stopped: immediately again if it returns true (there is more to do), otherwise after `pauseMs`.
 * A sweep that fails is logged and repeated after the pause.
 */
export function sweeping(sweep: () => Promise<boolean>, pauseMs: number, logger: Logger): Sweeping {
  const stopping = new AbortController();
  const { signal } = stopping;
  let loop: Promise<void> = Promise.resolve();
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const hasMore = await sweep().catch((error: unknown) => {
        logger.warn({ err: error }, 'sweeping failed; trying again');
        return false;
      });
      if (!hasMore) await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
  return {
    start: () => void (loop = run()),
    stop: () => {
      stopping.abort();
      return loop;
    },
  };
}
