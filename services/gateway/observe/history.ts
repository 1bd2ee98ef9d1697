import type { Operations } from '#libs/contracts/operations.ts';
import type { ConsumerLag } from './consumer-lag.ts';

/** One sample covers a minute, as the counts of recent requests do. */
export const sampleMs = 60_000;
const mostSamples = 60;

export type History = ReturnType<typeof createHistory>;

/** Queries that somebody who looks at operations makes are behind for a moment; they say nothing about the bank. */
const isQueryTopic = (topic: string): boolean => topic.endsWith('.queries');

/** What the last hour was like, for this process only: lag of all groups, and the requests of each minute. */
export function createHistory({
  consumerLag,
  recent,
  now,
}: {
  consumerLag: ConsumerLag;
  recent(): Operations['requests'];
  now(): number;
}) {
  const samples: Operations['history'] = [];
  return {
    async sample(): Promise<void> {
      const rows = await consumerLag().catch(() => null);
      const lag = rows && rows.reduce((sum, row) => sum + (isQueryTopic(row.topic) ? 0 : row.lag), 0);
      const { count, mean_ms, slowest_ms } = recent();
      samples.push({ at: new Date(now()).toISOString(), lag, count, mean_ms, slowest_ms });
      if (samples.length > mostSamples) samples.shift();
    },
    /** Oldest first. */
    read: (): Operations['history'] => [...samples],
  };
}
