import { setTimeout as sleep } from 'node:timers/promises';
import type { Child } from './child.ts';

/**
 * The delays before the 1st, 2nd, … consecutive restart of a process that ends repeatedly. The last delay is used for
 * all further restarts.
 */
const BACKOFF_MS = [50, 100, 200, 400, 800, 2000, 5000];
/** A process that ran this long counts as healthy again. */
const HEALTHY_AFTER_MS = 5000;

export type Supervised = {
  name: string;
  /** The process that runs now, or ran last. */
  pid: () => number;
  /** The number of times that it has ended. */
  deaths: () => number;
  /** Ends the process and does not restart it. */
  stop: (timeoutMs: number) => Promise<void>;
};

export type SupervisorEvents = {
  /** Called when the process was restarted and has a new pid. */
  onRestart?: (child: Child) => void;
  report: (line: string) => void;
};

/**
 * Keeps a process running: restarts it within a second when it ends, and later if it ends repeatedly. Resolves when it
 * was started the first time, and rejects if that fails.
 */
export async function supervise(
  name: string,
  start: () => Promise<Child>,
  events: SupervisorEvents,
): Promise<Supervised> {
  const stopped = new AbortController();
  let child = await start();
  let died = 0;
  const watch = async () => {
    let deaths = 0;
    while (!stopped.signal.aborted) {
      const startedAt = Date.now();
      const reason = await child.exited;
      if (stopped.signal.aborted) return;
      if (Date.now() - startedAt > HEALTHY_AFTER_MS) deaths = 0;
      died += 1;
      events.report(`${name} died (${reason}) and is started again`);
      deaths = await startAgain(deaths);
    }
  };
  const startAgain = async (deaths: number): Promise<number> => {
    for (;;) {
      await sleep(BACKOFF_MS[Math.min(deaths, BACKOFF_MS.length - 1)], undefined, { signal: stopped.signal }).catch(
        () => {},
      );
      if (stopped.signal.aborted) return deaths;
      deaths += 1;
      try {
        child = await start();
        if (!stopped.signal.aborted) events.onRestart?.(child);
        return deaths;
      } catch (error) {
        events.report(`${name} could not be started: ${(error as Error).message}`);
      }
    }
  };
  const watching = watch();
  return {
    name,
    pid: () => child.pid,
    deaths: () => died,
    async stop(timeoutMs) {
      stopped.abort();
      await child.stop(timeoutMs);
      await watching;
      await child.stop(timeoutMs); // The process may just have been started.
    },
  };
}
