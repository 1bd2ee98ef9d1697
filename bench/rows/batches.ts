import { defaultBank } from '../bank.ts';
import { startGenerator } from '../helper.ts';
import type { Reading, Target } from '../load-plan.ts';
import { best, defaultTarget, inTurn, load, median, ratio } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';
import type { Side } from '../world.ts';

const batchTarget = (side: Side, items: number, mode: 'independent' | 'atomic' = 'independent'): Target => ({
  kind: 'batch',
  accounts: side.accounts,
  items,
  mode,
});
/** The number of concurrent batches: as many as the gateway accepts of one caller, of a few kilobytes each. */
export const batchConnections = 8;
const singlesPerSecond = 200;

/**
 * Measures the cost of an item of a batch compared with a single transfer, and the effect of batches on concurrent
 * transfers.
 */
export const batches: Group = {
  name: 'batches',
  quick: false,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const bank = await defaultBank(world);
    const { connections } = await best(world, bank, effort);
    const timing = { seconds: effort.seconds, warmUpSeconds: effort.warmUpSeconds };
    // Longer, because a p99 of 800 requests is that of eight.
    const atEase = { ...timing, seconds: 5 * effort.seconds };
    const singles = () =>
      load(world, bank, { target: defaultTarget(bank), connections: 64, rate: singlesPerSecond, ...atEase });
    const second = startGenerator();
    const beside = async (items: number, rate: number) => {
      const under = load(world, bank, { target: batchTarget(bank, items), connections: 2, rate, ...atEase }, second);
      const [single] = await Promise.all([singles(), under]);
      return single;
    };
    try {
      // Before the loads at saturation, after which the bank, Postgres, and the broker are busy for a while, as they are
      // now: the first load is not counted.
      await singles();
      const calm = await inTurn(effort.rounds, {
        alone: singles,
        beside100: () => beside(100, 5),
        beside1000: () => beside(1000, 1),
      });
      const measured = await inTurn(effort.rounds, {
        singles: () => load(world, bank, { target: defaultTarget(bank), connections, ...timing }),
        of100: () => load(world, bank, { target: batchTarget(bank, 100), connections: batchConnections, ...timing }),
        of1000: () => load(world, bank, { target: batchTarget(bank, 1000), connections: 2, ...timing }),
        atomic: () =>
          load(world, bank, { target: batchTarget(bank, 100, 'atomic'), connections: batchConnections, ...timing }),
        eight: () => load(world, bank, { target: defaultTarget(bank), connections: batchConnections, ...timing }),
        hundred: () => load(world, bank, { target: defaultTarget(bank), connections: 100, ...timing }),
        one: () => load(world, bank, { target: batchTarget(bank, 100), connections: 1, ...timing }),
      });
      return outcome({ ...calm, ...measured });
    } finally {
      second.stop();
    }
  },
};

type Name =
  | 'singles'
  | 'eight'
  | 'hundred'
  | 'one'
  | 'of100'
  | 'of1000'
  | 'atomic'
  | 'alone'
  | 'beside100'
  | 'beside1000';

const itemsIn: Partial<Record<Name, number>> = { of100: 100, one: 100, of1000: 1000, atomic: 100 };

function outcome(measured: Record<Name, Reading[]>): Outcome {
  const each = (name: Name) => measured[name].map((one) => one.cpuMicrosPerRequest / (itemsIn[name] ?? 1));
  const perSecond = (name: Name) => median(measured[name].map((one) => one.perSecond * (itemsIn[name] ?? 1)));
  const p99 = (name: Name) => measured[name].map((one) => one.latency.p99);
  const cpu = (name: Name) => `${Math.round(median(each(name)))} µs`;
  const ms = (name: Name) => `${median(p99(name)).toFixed(1)} ms`;
  return {
    lines: [
      { goal: 'batch-cpu', value: ratio(each('one'), each('hundred')), note: `${cpu('one')} ÷ ${cpu('hundred')}` },
      { goal: 'batch-cpu-eight', value: ratio(each('one'), each('eight')), note: `${cpu('one')} ÷ ${cpu('eight')}` },
      {
        goal: 'batch-cpu-saturated',
        value: ratio(each('of100'), each('singles')),
        note: `${cpu('of100')} ÷ ${cpu('singles')}; atomic ${cpu('atomic')}; ${Math.round(perSecond('of100'))} items/s ÷ ${Math.round(perSecond('singles'))} transfers/s`,
      },
      {
        goal: 'batch-1000',
        value: median(measured.of1000.map((one) => one.latency.max)),
        note: `two at a time, ${Math.round(perSecond('of1000'))} items/s, p50 ${median(measured.of1000.map((one) => one.latency.p50)).toFixed(0)} ms`,
      },
      {
        goal: 'batch-beside',
        value: ratio(p99('beside1000'), p99('alone')),
        note: `${ms('beside1000')} beside a batch of 1,000 each second ÷ ${ms('alone')}; beside five of 100 each second ${ms('beside100')}`,
      },
    ],
    figures: [
      {
        title: 'Batches: items posted per second, and CPU time of all processes per item',
        columns: ['load', 'items/s', 'CPU µs each', 'p50 ms', 'p99 ms', 'other processes, cores', 'not 2xx'],
        rows: (['eight', 'hundred', 'one', 'singles', 'of100', 'atomic', 'of1000'] as const).map((name) => [
          {
            eight: 'single transfers, 8 concurrent',
            hundred: 'single transfers, 100 concurrent',
            one: 'batches of 100, one at a time',
            singles: 'single transfers, at saturation',
            of100: 'batches of 100, at saturation',
            atomic: 'the same, atomic',
            of1000: 'batches of 1,000',
          }[name],
          String(Math.round(perSecond(name))),
          String(Math.round(median(each(name)))),
          median(measured[name].map((one) => one.latency.p50)).toFixed(1),
          median(p99(name)).toFixed(1),
          median(measured[name].map((one) => one.elsewhere)).toFixed(2),
          String(measured[name].reduce((sum, { wrong }) => sum + wrong, 0)),
        ]),
      },
    ],
    raw: measured,
  };
}
