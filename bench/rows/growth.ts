import { type Bank, pageSize, readCursor, startBank } from '../bank.ts';
import { accountCount } from '../contenders/posting.ts';
import type { GoalId } from '../goals.ts';
import { type DataSize, generateData } from '../growth-data.ts';
import type { Reading, Target } from '../load-plan.ts';
import { best, inTurn, load, median, ratio } from '../measure.ts';
import type { Bench, Group, Line, Outcome } from '../row.ts';
import type { World } from '../world.ts';

const deepPage = 10_000;
const listRequests = 500;
/** The time until the pages of the large tables are in memory and have been logged since the checkpoint. */
const warmSeconds = 60;

/** Compares the bank with many accounts and a long history with an empty one, and measures lists over that history. */
export const growth: Group = {
  name: 'growth',
  quick: false,
  onRequest: true,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const empty = await startBank(world, { name: 'empty', accounts: accountCount });
    const grown = await startBank(world, { name: 'grown', accounts: 1 });
    try {
      const size = await world.withPool(grown.databaseUrl, 'ledger', (pool) =>
        generateData(pool, bench.growth, world.say),
      );
      const targets = { empty: uniform(empty), grown: { kind: 'transfer', generated: size.accounts } as Target };
      const { connections } = await best(world, empty, effort, targets.empty);
      await world.checkpoint();
      await load(world, grown, { target: targets.grown, connections, seconds: 1, warmUpSeconds: warmSeconds });
      const at = (bank: Bank, target: Target, rate?: number) =>
        load(world, bank, {
          target,
          connections: rate === undefined ? connections : 256,
          rate,
          seconds: effort.seconds,
          warmUpSeconds: effort.warmUpSeconds,
        });
      const full = await inTurn(effort.rounds, {
        grown: () => at(grown, targets.grown),
        empty: () => at(empty, targets.empty),
      });
      const half = Math.round(median(full.empty.map((one) => one.perSecond)) / 2);
      const paced = await inTurn(effort.rounds, {
        grown: () => at(grown, targets.grown, half),
        empty: () => at(empty, targets.empty, half),
      });
      const lists = await measureLists(world, grown, size);
      return outcome({ full, paced, lists, size, half });
    } finally {
      await Promise.all([empty.stop(), grown.stop()]);
    }
  },
};

const uniform = (bank: Bank): Target => ({ kind: 'transfer', accounts: bank.accounts });

interface Measured {
  full: Record<'grown' | 'empty', Reading[]>;
  paced: Record<'grown' | 'empty', Reading[]>;
  lists: { goal: GoalId; page: number; reading: Reading }[];
  size: DataSize;
  half: number;
}

function outcome(measured: Measured): Outcome {
  const { full, paced, lists, size, half } = measured;
  const perSecond = (name: 'grown' | 'empty') => full[name].map((one) => one.perSecond);
  const p99 = (name: 'grown' | 'empty') => paced[name].map((one) => one.latency.p99);
  const text = (name: 'grown' | 'empty') => `${Math.round(median(perSecond(name)))}/s`;
  const listLines = lists.map(
    ({ goal, page, reading }): Line => ({
      goal,
      value: reading.latency.p99,
      note: `p50 ${reading.latency.p50.toFixed(1)} ms, ${pageSize} a page, page ${page}; ${reading.wrong} not 2xx`,
    }),
  );
  return {
    lines: [
      {
        goal: 'growth',
        value: ratio(perSecond('grown'), perSecond('empty')),
        note: `${text('grown')} with ${size.accounts} accounts and ${size.transactions} transactions ÷ ${text('empty')}`,
      },
      {
        goal: 'growth-p99',
        value: ratio(p99('grown'), p99('empty')),
        note: `${median(p99('grown')).toFixed(1)} ms ÷ ${median(p99('empty')).toFixed(1)} ms at ${half}/s`,
      },
      ...listLines,
    ],
    growth: [{ accounts: size.accounts, contender: 'bank', perSecond: median(perSecond('grown')) }],
    raw: measured,
  };
}

/** Measures a caller that reads one page after the other: the first, a deep one, and first pages by account. */
async function measureLists(
  world: World,
  bank: Bank,
  { accounts, transactions }: DataSize,
): Promise<Measured['lists']> {
  const page = Math.min(deepPage, Math.floor((transactions * 0.9) / pageSize));
  const cursor = await readCursor(bank, page);
  const byAccount = await world.withPool(bank.databaseUrl, 'ledger', (pool) =>
    pool.query<{ id: string }>(
      `select 'acc_' || md5('account ' || n) as id from (select (random() * $1)::int as n from generate_series(1, $2)) r`,
      [accounts - 1, listRequests],
    ),
  );
  const first = `/transactions?limit=${pageSize}`;
  const wanted: { goal: GoalId; page: number; paths: string[] }[] = [
    { goal: 'list-first', page: 1, paths: [first] },
    { goal: 'list-deep', page, paths: [`${first}&cursor=${cursor}`] },
    { goal: 'list-account', page: 1, paths: byAccount.rows.map(({ id }) => `${first}&account_id=${id}`) },
  ];
  const lists: Measured['lists'] = [];
  for (const { goal, page, paths } of wanted)
    lists.push({
      goal,
      page,
      reading: await load(world, bank, {
        target: { kind: 'get', paths },
        connections: 1,
        seconds: 4,
        warmUpSeconds: 2,
      }),
    });
  return lists;
}
