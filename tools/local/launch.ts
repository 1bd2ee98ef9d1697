import { performance } from 'node:perf_hooks';
import { stopAllChildren } from './child.ts';
import type { Step } from './infra.ts';
import { logTail } from './log-file.ts';
import { awaitReady } from './ready.ts';
import type { Supervised } from './supervisor.ts';

const STOP_REST_MS = 5000;

/** The order in which parts are stopped: services before the servers that they need. */
const stopOrder = {
  connection: 0,
  dashboard: 1,
  gateway: 2,
  services: 3,
  'identity-provider': 4,
  kafka: 5,
  postgres: 6,
} as const;

/** The data that the parts of a start share: output, and the list of parts to stop. */
export type Launch = {
  say: (line: string) => void;
  /** Says what happens to a process. What happens to one while all are being stopped is not worth a line. */
  report: (line: string) => void;
  step: Step;
  onStop: (part: keyof typeof stopOrder, stop: () => Promise<void>) => void;
  /** Stops everything in order, including parts that are still being started. */
  stopAll: () => Promise<void>;
};

/** Returns the launcher's output and its list of parts to stop. */
export function createLaunch(): Launch {
  // A closed pipe (npm start | head) must not end the bank.
  process.stdout.on('error', () => {});
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  let isStopping = false;
  const stops: { part: keyof typeof stopOrder; stop: () => Promise<void> }[] = [];
  return {
    say,
    report(line) {
      if (!isStopping) say(line);
    },
    async step(title, work) {
      const startedAt = performance.now();
      const line = (mark: string) =>
        say(`  ${mark} ${title.padEnd(48)} ${((performance.now() - startedAt) / 1000).toFixed(1).padStart(5)} s`);
      try {
        const result = await work();
        line('✓');
        return result;
      } catch (error) {
        line('✗');
        throw error;
      }
    },
    onStop: (part, stop) => void stops.push({ part, stop }),
    async stopAll() {
      isStopping = true;
      const parts = Object.keys(stopOrder) as (keyof typeof stopOrder)[];
      for (const part of parts) {
        const ofPart = stops.filter((entry) => entry.part === part);
        await Promise.all(ofPart.map(({ stop }) => stop().catch((error: Error) => say(error.message))));
      }
      await stopAllChildren(STOP_REST_MS);
    },
  };
}

/**
 * Waits until a process responds at this URL. Throws an error with the end of its log if it does not in time, or has ended
 * three times.
 */
export async function untilReady(process: Supervised, url: string, log: string, timeoutMs: number): Promise<void> {
  const keepsDying = () => (process.deaths() < 3 ? undefined : `never answered: ${process.name} keeps dying`);
  await awaitReady({ url }, timeoutMs, keepsDying).catch((error: Error) => {
    throw new Error(`${error.message}\nThe end of ${log}:\n${logTail(log)}`);
  });
}
