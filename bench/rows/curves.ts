import { defaultBank } from '../bank.ts';
import { best, bestPool, defaultTarget, load } from '../measure.ts';
import type { Bench, Group, Outcome, Point } from '../row.ts';
import type { Side } from '../world.ts';

export const rates = [100, 250, 500, 1000, 2000, 3000, 4500, 6500, 9000];
/** A contender with a higher latency, or with a throughput below the offered load, is beyond its capacity. */
export const tooLateMs = 1_000;
const openConnections = 512;
const counts = [2, 10, 100, 1_000];

/** Measures latency against load, and throughput against the number of accounts, for the pictures. */
export const curves: Group = {
  name: 'curves',
  quick: false,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const sides = [
      await defaultBank(world),
      await bestPool(world, 'direct', effort),
      await bestPool(world, 'function', effort),
    ];
    const latencies: Point[] = [];
    const growth: NonNullable<Outcome['growth']> = [];
    for (const side of sides) {
      const { connections } = await best(world, side, effort);
      latencies.push(...(await measureLatency(bench, side)));
      for (const accounts of counts) {
        const target = { kind: 'transfer' as const, accounts: side.accounts.slice(0, accounts) };
        const { perSecond } = await load(world, side, {
          target,
          connections,
          seconds: effort.searchSeconds,
          warmUpSeconds: 1,
        });
        growth.push({ contender: side.name, accounts, perSecond });
      }
    }
    return { lines: [], latencies, growth };
  },
};

async function measureLatency({ world, effort }: Bench, side: Side): Promise<Point[]> {
  const points: Point[] = [];
  for (const rate of rates) {
    const reading = await load(world, side, {
      target: defaultTarget(side),
      connections: openConnections,
      rate,
      seconds: effort.searchSeconds,
      warmUpSeconds: 1,
    });
    if (reading.wrong > 0 || reading.latency.p99 > tooLateMs) break;
    points.push({ contender: side.name, perSecond: rate, latency: reading.latency });
  }
  return points;
}
