import type { Logger } from 'pino';

/** Work that a process repeats in the background. */
export interface Sweeping {
  start(): void;
  /** Ends the current pause. After a sweep during which it is called, there is no pause. */
  wake(): void;
  /** Resolves when the current sweep has finished. */
  stop(): Promise<void>;
}

/**
 * Calls `sweep` until stopped: immediately again if it returns true (there is more to do) or was woken meanwhile,
 * otherwise after `pauseMs`. A sweep that fails is logged, with the name of the work, and repeated after the pause.
 */
export function sweeping(work: string, sweep: () => Promise<boolean>, pauseMs: number, logger: Logger): Sweeping {
  let isStopping = false;
  let loop: Promise<void> = Promise.resolve();
  let woken = Promise.withResolvers<void>();
  const wake = (): void => woken.resolve();
  const run = async (): Promise<void> => {
    while (!isStopping) {
      woken = Promise.withResolvers();
      const hasMore = await sweep().catch((error: unknown) => {
        logger.warn({ err: error }, `${work} failed; trying again`);
        return false;
      });
      if (hasMore) continue;
      const timer = setTimeout(wake, pauseMs);
      await woken.promise;
      clearTimeout(timer);
    }
  };
  return {
    start: () => void (loop = run()),
    wake,
    stop() {
      isStopping = true;
      wake();
      return loop;
    },
  };
}
