import { defaultBank } from '../bank.ts';
import { residentMb } from '../cpu.ts';
import type { Reading } from '../load-plan.ts';
import { best, defaultTarget, load } from '../measure.ts';
import type { Bench, Group, Minute, Outcome } from '../row.ts';

const sampleMs = 10_000;

/**
 * Runs half of the maximum load for --minutes. Reports the latency of each minute, the memory of each process, and when
 * Postgres wrote checkpoints and vacuumed.
 */
export const endurance: Group = {
  name: 'endurance',
  quick: false,
  onRequest: true,
  async measure({ world, effort, minutes: length }: Bench): Promise<Outcome> {
    const bank = await defaultBank(world);
    const half = Math.round((await best(world, bank, effort)).perSecond / 2);
    const samples: { at: number; memory: Record<string, number> }[] = [];
    const sample = () =>
      samples.push({
        at: performance.now(),
        memory: Object.fromEntries(bank.processes.map(({ name, pid }) => [name, residentMb(pid)])),
      });
    const timer = setInterval(sample, sampleMs);
    const minutes: Minute[] = [];
    const readings: Reading[] = [];
    try {
      await world.withPool(bank.databaseUrl, 'ledger', async (pool) => {
        const maintenance = async () =>
          (
            await pool.query<{ buffers: number; vacuums: number }>(
              `select (select buffers_written from pg_stat_checkpointer)::int4 as buffers,
                 (select sum(autovacuum_count + autoanalyze_count) from pg_stat_user_tables)::int4 as vacuums`,
            )
          ).rows[0] ?? { buffers: 0, vacuums: 0 };
        let before = await maintenance();
        for (let minute = 1; minute <= length; minute++) {
          const reading = await load(world, bank, {
            target: defaultTarget(bank),
            connections: 256,
            rate: half,
            seconds: 60,
            warmUpSeconds: minute === 1 ? effort.firstSeconds : 0,
          });
          const after = await maintenance();
          readings.push(reading);
          minutes.push({
            minute,
            latency: reading.latency,
            memory: samples.at(-1)?.memory ?? {},
            checkpointBuffers: after.buffers - before.buffers,
            vacuums: after.vacuums - before.vacuums,
          });
          before = after;
        }
      });
    } finally {
      clearInterval(timer);
    }
    const worst = minutes.reduce((one, other) => (tailRatio(one) >= tailRatio(other) ? one : other));
    const lastHalf = samples.slice(-Math.ceil(samples.length / 2));
    const slopes = bank.processes.map(({ name }) => ({
      name,
      slope: slopePerHour(lastHalf.map(({ at, memory }) => [at / 3_600_000, memory[name] ?? 0])),
    }));
    const steepest = slopes.reduce((one, other) => (one.slope >= other.slope ? one : other));
    const wrong = readings.reduce((sum, one) => sum + one.wrong, 0);
    return {
      lines: [
        {
          goal: 'tail-in-time',
          value: tailRatio(worst),
          note: `minute ${worst.minute} of ${length}: p50 ${worst.latency.p50.toFixed(1)}, p99 ${worst.latency.p99.toFixed(1)}, p99.9 ${worst.latency.p999.toFixed(1)} ms at ${half}/s; ${wrong} not 2xx`,
        },
        {
          goal: 'memory-slope',
          value: steepest.slope,
          note: slopes.map(({ name, slope }) => `${name} ${slope.toFixed(1)} MB/h`).join(', '),
        },
      ],
      minutes,
    };
  },
};

const tailRatio = ({ latency }: Minute): number => latency.p999 / latency.p50;

/** Returns the slope of the line with the least squared distance to the points. */
export function slopePerHour(points: [number, number][]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map(([at]) => at)), mean(points.map(([, mb]) => mb))];
  const [above, below] = points.reduce(
    ([up, down], [at, mb]) => [up + (at - x) * (mb - y), down + (at - x) ** 2],
    [0, 0],
  );
  return above / below;
}
