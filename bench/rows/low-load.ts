import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from '#libs/postgres/pool.ts';
import { type Bank, startBank } from '../bank.ts';
import type { GoalId } from '../goals.ts';
import type { Reading } from '../load-plan.ts';
import { inTurn, load, median, ratio } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';

const rates = [20, 50, 200, 500, 1000] as const;
const accounts = 1000;
const connections = 64;
const warmSeconds = 10;
const idleSeconds = 10;

/** What a transfer costs at one rate, without what the idle bank uses in the same time. */
interface Cost {
  rate: number;
  /** CPU per transfer in µs, by process. */
  micros: Record<string, number>;
  latency: Reading['latency'];
  /** Transactions that Postgres committed, and bytes of write-ahead log, per transfer. */
  commits: number;
  walBytes: number;
}

interface Counters {
  at: number;
  commits: number;
  walBytes: number;
}

/**
 * Measures a bank with all services of `npm start` at the loads of a small bank: CPU by process, commits, and write-ahead
 * log of each transfer. With --against, another version runs in turn with it.
 */
export const lowLoad: Group = {
  name: 'low-load',
  quick: false,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort, against } = bench;
    const now = await startBank(world, { name: 'low', accounts, webhooks: 1 });
    const before =
      against === undefined
        ? undefined
        : await startBank(world, { name: 'before', accounts, webhooks: 1, project: against });
    const banks = { now, ...(before === undefined ? {} : { before }) };
    try {
      for (const bank of Object.values(banks))
        await load(world, bank, {
          target: { kind: 'transfer', accounts: bank.accounts },
          connections,
          seconds: 1,
          warmUpSeconds: warmSeconds,
        });
      const quiet = new Map<Bank, Record<string, number>>();
      for (const bank of Object.values(banks)) quiet.set(bank, await idleShares(bench, bank));
      const parts = Object.entries(banks).flatMap(([name, bank]) =>
        rates.map((rate) => [`${name} ${rate}`, () => costAt(bench, bank, rate, quiet.get(bank) ?? {})] as const),
      );
      const measured = await inTurn(effort.rounds, Object.fromEntries(parts));
      return outcome(measured);
    } finally {
      await Promise.all(Object.values(banks).map((bank) => bank.stop()));
    }
  },
};

/** Returns the CPU use of each process of an idle bank, in cores. */
async function idleShares({ world }: Bench, bank: Bank): Promise<Record<string, number>> {
  await sleep(3000);
  const begun = world.readCpu(bank);
  await sleep(idleSeconds * 1000);
  const used = world.readCpu(bank);
  return Object.fromEntries(
    Object.entries(used).map(([name, seconds]) => [name, (seconds - (begun[name] ?? 0)) / idleSeconds]),
  );
}

async function costAt(
  { world, effort }: Bench,
  bank: Bank,
  rate: number,
  quiet: Record<string, number>,
): Promise<Cost> {
  return world.withPool(bank.databaseUrl, 'ledger', async (pool) => {
    const plan = { target: { kind: 'transfer' as const, accounts: bank.accounts }, connections, rate };
    const before = await readCounters(pool);
    const reading = await load(world, bank, {
      ...plan,
      seconds: Math.max(effort.seconds, 200 / rate),
      warmUpSeconds: effort.warmUpSeconds,
    });
    const after = await readCounters(pool);
    const transfers = (rate * (after.at - before.at)) / 1000;
    return {
      rate,
      micros: Object.fromEntries(
        Object.entries(reading.cpuMicros).map(([name, micros]) => [name, micros - ((quiet[name] ?? 0) * 1e6) / rate]),
      ),
      latency: reading.latency,
      commits: (after.commits - before.commits) / transfers,
      walBytes: (after.walBytes - before.walBytes) / transfers,
    };
  });
}

async function readCounters(pool: Pool): Promise<Counters> {
  // A session reports its transactions at most once a second.
  await sleep(1100);
  const { rows } = await pool.query<{ commits: number; wal: number }>(
    `select xact_commit::float8 as commits, (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 as wal
     from pg_stat_database where datname = current_database()`,
  );
  return { at: performance.now(), commits: rows[0]?.commits ?? NaN, walBytes: rows[0]?.wal ?? NaN };
}

const total = ({ micros }: Cost): number => Object.values(micros).reduce((sum, each) => sum + each, 0);

function outcome(measured: Record<string, Cost[]>): Outcome {
  const of = (name: string, rate: number) => measured[`${name} ${rate}`] ?? [];
  const isCompared = of('before', 50).length > 0;
  const compared = ([50, 200] as const).map((rate) => {
    const goal: GoalId = `low-cost-${rate}`;
    if (!isCompared) return { goal, missing: '--against names no folder with another version' };
    const [now, before] = [of('now', rate).map(total), of('before', rate).map(total)];
    return { goal, value: ratio(now, before), note: `${ms(median(now))} ÷ ${ms(median(before))}` };
  });
  const commits = of('now', 50).map((one) => one.commits);
  return {
    lines: [...compared, { goal: 'low-commits', value: median(commits), note: `at 50 transfers/s, with webhooks` }],
    figures: ['now', ...(isCompared ? ['before'] : [])].map((name) => ({
      title: `CPU per transfer at low load${name === 'now' ? '' : ', the other version'}`,
      columns: ['transfers/s', 'p50 ms', 'p99 ms', 'CPU ms', 'cores', 'by process, ms', 'commits', 'WAL kB'],
      rows: rates.map((rate) => figures(rate, of(name, rate))),
    })),
    raw: measured,
  };
}

const ms = (micros: number): string => `${(micros / 1000).toFixed(2)} ms`;

function figures(rate: number, costs: Cost[]): string[] {
  const mid = (value: (cost: Cost) => number) => median(costs.map(value));
  const cpu = mid(total);
  const names = Object.keys(costs[0]?.micros ?? {});
  return [
    String(rate),
    mid((one) => one.latency.p50).toFixed(1),
    mid((one) => one.latency.p99).toFixed(1),
    (cpu / 1000).toFixed(2),
    ((cpu * rate) / 1e6).toFixed(2),
    names.map((name) => `${name} ${(mid((one) => one.micros[name] ?? NaN) / 1000).toFixed(2)}`).join(', '),
    mid((one) => one.commits).toFixed(1),
    (mid((one) => one.walBytes) / 1000).toFixed(1),
  ];
}
