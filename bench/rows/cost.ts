import { defaultBank } from '../bank.ts';
import type { Reading, Target } from '../load-plan.ts';
import { best, bestPool, defaultTarget, inTurn, load, median, perItem, ratio } from '../measure.ts';
import { pgbench, pgbenchMissing } from '../pgbench.ts';
import type { Bench, Group, Line, Outcome } from '../row.ts';
import type { Side, World } from '../world.ts';
import { batchConnections } from './batches.ts';

const batchItems = 100;

/**
 * Measures the transfers per second of every contender, each at its best number of connections, and the CPU cost of
 * one; and the cost of an item of a batch and of a balance read.
 */
export const cost: Group = {
  name: 'cost',
  quick: true,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const missing = pgbenchMissing();
    const bank = await defaultBank(world);
    const direct = await bestPool(world, 'direct', effort);
    const sides = [bank, direct, await bestPool(world, 'function', effort)];
    const transfers: Loaded[] = [];
    for (const side of sides) transfers.push(await findBestLoad(bench, side.name, side, defaultTarget(side)));
    const reads = [
      await findBestLoad(bench, 'bank, balance reads', bank, { kind: 'balance', numbers: bank.numbers }),
      await findBestLoad(bench, 'direct, balance reads', direct, { kind: 'balance', numbers: direct.numbers }),
    ];
    const batches: Loaded = {
      name: `bank, batches of ${batchItems}`,
      side: bank,
      target: { kind: 'batch', accounts: bank.accounts, items: batchItems },
      connections: batchConnections,
      items: batchItems,
    };
    const all = [...transfers, batches, ...reads];
    const parts: Record<string, () => Promise<Reading | number>> = Object.fromEntries(
      all.map((one) => [one.name, () => full(world, one, bench)]),
    );
    if (missing === undefined) parts['pgbench'] = () => pgbench(world, effort.seconds, true);
    const measured = await inTurn(effort.rounds, parts);
    const of = (name: string) => (measured[name] ?? []).map((one) => (typeof one === 'number' ? one : one.perSecond));
    const readings = (name: string) => (measured[name] ?? []).filter((one) => typeof one !== 'number');
    (await best(world, bank, effort)).perSecond = median(of('bank'));
    const over = (goal: 'over-direct' | 'over-function' | 'over-pgbench', name: string): Line => ({
      goal,
      value: ratio(of('bank'), of(name)),
      note: `${perSecond(of('bank'))} ÷ ${perSecond(of(name))}`,
    });
    const costs = (goal: 'cost-transfer' | 'cost-item' | 'cost-read', one: string, other: string): Line => {
      const [above, below] = [one, other].map((name) => readings(name).map((each) => each.cpuMicrosPerRequest));
      return {
        goal,
        value: ratio(above ?? [], below ?? []),
        note: `${Math.round(median(above ?? []))} µs ÷ ${Math.round(median(below ?? []))} µs`,
      };
    };
    return {
      lines: [
        costs('cost-transfer', 'bank', 'direct'),
        costs('cost-item', batches.name, 'direct'),
        costs('cost-read', 'bank, balance reads', 'direct, balance reads'),
        over('over-direct', 'direct'),
        over('over-function', 'function'),
        missing === undefined ? over('over-pgbench', 'pgbench') : { goal: 'over-pgbench', missing },
      ],
      figures: [
        {
          title:
            'Throughput and cost of each contender at its best number of connections. Figures for batches are per item',
          columns: [
            'contender',
            'connections',
            'per second',
            'p50 ms',
            'p99 ms',
            'CPU µs each',
            'of these',
            'generator, cores',
            'other processes, cores',
            'not 2xx',
          ],
          rows: [
            ...all.map((one) => formatFigures(one, readings(one.name))),
            ...(missing === undefined
              ? [['pgbench, relay running', '8', median(of('pgbench')).toFixed(0), ...Array<string>(7).fill('–')]]
              : []),
          ],
        },
      ],
      costs: [...transfers, batches].map(({ name }) => ({ contender: name, micros: medians(readings(name)) })),
      raw: { connections: Object.fromEntries(all.map(({ name, connections }) => [name, connections])), measured },
    };
  },
};

/** A side with a load. */
interface Loaded {
  name: string;
  side: Side;
  target: Target;
  connections: number;
  /** Per request. */
  items: number;
}

async function findBestLoad({ world, effort }: Bench, name: string, side: Side, target: Target): Promise<Loaded> {
  return { name, side, target, connections: (await best(world, side, effort, target)).connections, items: 1 };
}

/** Returns the figures of one item. */
async function full(world: World, { side, target, connections, items }: Loaded, { effort }: Bench): Promise<Reading> {
  const { seconds, warmUpSeconds } = effort;
  return perItem(await load(world, side, { target, connections, seconds, warmUpSeconds }), items);
}

/** Returns the figures by process over all rounds. */
function medians(readings: Reading[]): Record<string, number> {
  const names = Object.keys(readings[0]?.cpuMicros ?? {});
  return Object.fromEntries(names.map((name) => [name, median(readings.map((one) => one.cpuMicros[name] ?? 0))]));
}

function perSecond(values: number[]): string {
  return `${Math.round(median(values))}/s`;
}

function formatFigures({ name, connections }: Loaded, readings: Reading[]): string[] {
  const of = (value: (reading: Reading) => number, digits = 0) => median(readings.map(value)).toFixed(digits);
  return [
    name,
    String(connections),
    of((r) => r.perSecond),
    of((r) => r.latency.p50, 1),
    of((r) => r.latency.p99, 1),
    of((r) => r.cpuMicrosPerRequest),
    Object.entries(medians(readings))
      .map(([process, micros]) => `${process} ${micros.toFixed(0)}`)
      .join(', '),
    of((r) => r.generatorCores, 2),
    of((r) => r.elsewhere, 2),
    String(readings.reduce((sum, { wrong }) => sum + wrong, 0)),
  ];
}
