import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';

/** Work that nobody asks for, done again and again. */
export interface Sweeping {
  start(): void;
  /** Resolves when what runs has ended. */
  stop(): Promise<void>;
}

/**
 * Calls `sweep` until stopped: again at once where it says that there is more, else after a pause. A sweep that fails
 * is logged and tried again after the pause.
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
