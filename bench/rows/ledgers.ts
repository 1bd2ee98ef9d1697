import { type Bank, startBank } from '../bank.ts';
import type { GoalId } from '../goals.ts';
import { generateData } from '../growth-data.ts';
import type { Reading, Target } from '../load-plan.ts';
import { inTurn, load, median, ratio } from '../measure.ts';
import type { Bench, Group, Line, Outcome } from '../row.ts';

const counts = [1, 2, 4, 8];
const accounts = 20_000;
const connections = 128;
/** Gateways have noticed hot destinations by then. */
const warmSeconds = 12;

const targets: Record<'200' | 'hot' | '20000', Target> = {
  '200': { kind: 'transfer', generated: 200 },
  hot: { kind: 'transfer', generated: 2_000, hot: 2 },
  '20000': { kind: 'transfer', generated: accounts },
};
const names = Object.keys(targets) as (keyof typeof targets)[];

/** Compares banks with 2, 4, and 8 ledgers with one that has a single ledger, all running, in turn. */
export const ledgers: Group = {
  name: 'ledgers',
  quick: false,
  async measure({ world, effort }: Bench): Promise<Outcome> {
    const banks = new Map<number, Bank>();
    try {
      for (const count of counts) {
        const bank = await startBank(world, { name: `several_${count}`, accounts: 1, ledgers: count });
        banks.set(count, bank);
        await world.withPool(bank.databaseUrl, 'ledger', (pool) =>
          generateData(pool, { accounts, transactions: 3 * accounts }, world.say),
        );
      }
      const at = (bank: Bank, name: keyof typeof targets, warmUpSeconds: number) =>
        load(world, bank, { target: targets[name], connections, seconds: effort.seconds, warmUpSeconds });
      for (const bank of banks.values()) await at(bank, 'hot', warmSeconds);
      const parts = names.flatMap((name) =>
        [...banks].map(([count, bank]) => [`${name} ${count}`, () => at(bank, name, effort.warmUpSeconds)] as const),
      );
      return outcome(await inTurn(effort.rounds, Object.fromEntries(parts)));
    } finally {
      await Promise.all([...banks.values()].map((bank) => bank.stop()));
    }
  },
};

function outcome(measured: Record<string, Reading[]>): Outcome {
  const of = (name: string, count: number, figure: (reading: Reading) => number) =>
    (measured[`${name} ${count}`] ?? []).map(figure);
  const rate = ({ perSecond }: Reading) => perSecond;
  const cpu = ({ cpuMicrosPerRequest }: Reading) => cpuMicrosPerRequest;
  const others = counts.slice(1);
  const ratios = (name: string, figure: (reading: Reading) => number) =>
    others.map((count) => ratio(of(name, count, figure), of(name, 1, figure)));
  const shown = (values: number[]) => others.map((count, i) => `${count}: ${values[i]?.toFixed(2)}`).join(', ');
  const lines: Line[] = names.map((name) => {
    const found = ratios(name, rate);
    return { goal: `ledgers-${name}` as GoalId, value: Math.min(...found), note: shown(found) };
  });
  const costs = names.map((name) => ratios(name, cpu));
  lines.push({
    goal: 'ledgers-cpu',
    value: Math.max(...costs.flat()),
    note: names.map((name, i) => `${name}: ${shown(costs[i] ?? [])}`).join('; '),
  });
  return {
    lines,
    figures: [
      {
        title: 'Several ledgers',
        columns: ['transfers/s with', ...counts.map((count) => `${count} ledger${count > 1 ? 's' : ''}`)],
        rows: names.map((name) => [name, ...counts.map((count) => median(of(name, count, rate)).toFixed(0))]),
      },
    ],
    raw: measured,
  };
}
