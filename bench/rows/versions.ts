import { startBank } from '../bank.ts';
import { inTurn, load, median, ratio } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';

const accounts = 1000;
const connections = 64;
const warmSeconds = 20;

/** Compares the CPU per transfer with that of another version, in many short rounds, because the machine's speed changes. */
export const versions: Group = {
  name: 'versions',
  quick: false,
  onRequest: true,
  async measure({ world, effort, against }: Bench): Promise<Outcome> {
    if (against === undefined)
      return { lines: [{ goal: 'cost-before', missing: '--against names no folder with another version' }] };
    const before = await startBank(world, { name: 'before', accounts, project: against });
    const now = await startBank(world, { name: 'now', accounts });
    try {
      const at = (bank: typeof now, seconds: number, warmUpSeconds: number) =>
        load(world, bank, {
          target: { kind: 'transfer', accounts: bank.accounts },
          connections,
          seconds,
          warmUpSeconds,
        });
      for (const bank of [before, now]) await at(bank, 1, warmSeconds);
      const measured = await inTurn(effort.rounds, {
        before: () => at(before, effort.seconds, effort.warmUpSeconds),
        now: () => at(now, effort.seconds, effort.warmUpSeconds),
      });
      const costs = (name: 'before' | 'now') => measured[name].map((one) => one.cpuMicrosPerRequest);
      const ratios = costs('now').map((micros, i) => micros / (costs('before')[i] ?? NaN));
      const parts = Object.keys(measured.now[0]?.cpuMicros ?? {}).map((part) => {
        const of = (name: 'before' | 'now') => measured[name].map((one) => one.cpuMicros[part] ?? NaN);
        return `${part} ${ratio(of('now'), of('before')).toFixed(3)}`;
      });
      return {
        lines: [
          {
            goal: 'cost-before',
            value: ratio(costs('now'), costs('before')),
            note: `${median(costs('now')).toFixed(0)} µs ÷ ${median(costs('before')).toFixed(0)} µs; ${ratios.length} rounds, ratios ${spread(ratios)}; ${parts.join(', ')}`,
          },
        ],
        raw: { measured, ratios },
      };
    } finally {
      await Promise.all([before.stop(), now.stop()]);
    }
  },
};

/** Returns the middle half of these values, and the uncertainty of their median. */
function spread(values: number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.round((sorted.length - 1) * part)] ?? NaN;
  const error = (1.57 * (at(0.75) - at(0.25))) / Math.sqrt(values.length);
  return `${at(0.25).toFixed(3)} to ${at(0.75).toFixed(3)} (median ± ${error.toFixed(3)})`;
}
