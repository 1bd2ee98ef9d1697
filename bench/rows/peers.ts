import { type Goal, type GoalId, goals } from '../goals.ts';
import { type Effort, inTurn, median, ratio } from '../measure.ts';
import { bankContender } from '../peers/bank.ts';
import { blnk } from '../peers/blnk.ts';
import { formance } from '../peers/formance.ts';
import type { Contender, Figure, Row } from '../peers/peer.ts';
import { pgledger } from '../peers/pgledger.ts';
import type { Bench, Group, Line, Outcome, Point } from '../row.ts';
import type { World } from '../world.ts';
import { rates, tooLateMs } from './curves.ts';

const pacedRate = 200;
const pageSize = 50;
/** With this number of connections, peers still respond to the rates of the picture. */
const curveConnections = 64;
const bankName = 'bank';

/** A contender. It is started again after it has stalled. */
interface Entrant {
  name: string;
  start(): Promise<Contender>;
  now: Contender;
}

interface Entrants {
  running: Entrant[];
  /** The reasons why peers are not measured, by name. */
  missing: Record<string, string>;
}

/** The result of one contender in a row. */
export interface Result {
  connections: number;
  /** The figures, one per round. */
  figures: Figure[];
  /** The number of callers at which it stopped responding. */
  stalledAt?: number;
}

/** The results by row and contender. */
export type Results = Partial<Record<Row, Record<string, Result>>>;

const entrants = new WeakMap<World, Promise<Entrants>>();

async function startAll(world: World): Promise<Entrants> {
  const missing: Entrants['missing'] = {};
  const startBank = () => bankContender(world);
  const running: Entrant[] = [{ name: bankName, start: startBank, now: await startBank() }];
  for (const peer of [formance, blnk, pgledger]) {
    const start = () => peer.start(world);
    try {
      const reason = peer.missing();
      if (reason === undefined) running.push({ name: peer.name, start, now: await start() });
      else missing[peer.name] = reason;
    } catch (error) {
      missing[peer.name] = `it does not start: ${(error as Error).message}`;
    }
    if (missing[peer.name] !== undefined) world.say(`  ${peer.name} is left out: ${missing[peer.name]}`);
  }
  return { running, missing };
}

function allEntrants(world: World): Promise<Entrants> {
  const known = entrants.get(world) ?? startAll(world);
  entrants.set(world, known);
  return known;
}

/** Measures once. A contender with unanswered requests is started again. */
async function measured(entrant: Entrant, row: Row, connections: number, timing: Timing): Promise<Figure> {
  const figure = await entrant.now.offers[row]?.run({ connections, ...timing });
  if (figure === undefined) throw new Error(`${entrant.name} no longer offers ${row}`);
  if (figure.unanswered > 0) {
    await entrant.now.stop();
    entrant.now = await entrant.start();
  }
  return figure;
}

type Timing = Pick<Effort, 'seconds' | 'warmUpSeconds'> & { rate?: number | undefined };

/**
 * Returns the number of callers at which a contender has the highest throughput. The search ends when the contender
 * stalls, or after two steps with less throughput, except for deposits, which are meant to show which contender stalls
 * with many callers on one account.
 */
async function search(entrant: Entrant, row: Row, effort: Effort): Promise<Omit<Result, 'figures'>> {
  const tried = entrant.now.offers[row]?.connections ?? [];
  const found = { connections: tried[0] ?? 1, perSecond: 0 };
  if (tried.length === 1) return found;
  let worse = 0;
  for (const [i, connections] of tried.entries()) {
    const warmUpSeconds = i === 0 ? effort.firstSeconds : 0.5;
    const figure = await measured(entrant, row, connections, { seconds: effort.searchSeconds, warmUpSeconds });
    if (figure.unanswered > 0) return { ...found, stalledAt: connections };
    if (figure.perSecond > found.perSecond * 1.03) {
      Object.assign(found, { connections, perSecond: figure.perSecond });
      worse = 0;
    } else if (++worse === 2 && row !== 'deposits') break;
  }
  return found;
}

/**
 * Measures all contenders in turn. A peer that fails is omitted from the row, and the reason is stored in `missing`.
 */
async function measureRow(
  row: Row,
  { world, effort }: Bench,
  running: Entrant[],
  missing: Record<string, string>,
): Promise<Record<string, Result>> {
  const results: Record<string, Result> = {};
  // A bulk request may take longer than a second.
  const longer = row === 'bulk' ? 3 : 1;
  const searching = { ...effort, searchSeconds: effort.searchSeconds * longer };
  const timing = {
    seconds: effort.seconds * longer,
    warmUpSeconds: effort.warmUpSeconds,
    rate: row === 'paced' ? pacedRate : undefined,
  };
  const unlessFailed = (entrant: Entrant, work: () => Promise<void>) => async () => {
    if (missing[entrant.name] !== undefined) return;
    await work().catch((error: Error) => {
      if (entrant.name === bankName || world.stopping) throw error;
      delete results[entrant.name];
      missing[entrant.name] = `it failed: ${error.message}`;
    });
  };
  const offering = running.filter(({ now }) => now.offers[row] !== undefined);
  for (const entrant of offering)
    await unlessFailed(entrant, async () => {
      results[entrant.name] = { figures: [], ...(await search(entrant, row, searching)) };
    })();
  const parts = offering.map((entrant) => {
    const once = async () => {
      const result = results[entrant.name] ?? { connections: 1, figures: [] };
      const figure = await measured(entrant, row, result.connections, timing);
      result.figures.push(figure);
      if (figure.unanswered > 0) result.stalledAt = result.connections;
    };
    return [entrant.name, unlessFailed(entrant, once)] as const;
  });
  await inTurn(effort.rounds, Object.fromEntries(parts));
  for (const [name, { connections, figures }] of Object.entries(results))
    world.say(
      `  ${row}, ${name}: ${Math.round(median(figures.map((one) => one.perSecond)))}/s, callers: ${connections}`,
    );
  return results;
}

function peerGroup(name: string, rows: Row[], goalsOfRow: GoalId[], prepare?: Prepare): Group {
  return {
    name: `peers-${name}`,
    quick: false,
    onRequest: true,
    async measure(bench) {
      const all = await allEntrants(bench.world);
      await prepare?.(bench, all);
      const results: Results = {};
      const missing = { ...all.missing };
      for (const row of rows) results[row] = await measureRow(row, bench, all.running, missing);
      return outcome(goalsOfRow, results, missing);
    },
  };
}

type Prepare = (bench: Bench, entrants: Entrants) => Promise<void>;

/** Adds a million transactions and measures page 10,000 of them, or a tenth of both with --quick. */
async function fillAll({ quick, world }: Bench, { running }: Entrants): Promise<void> {
  const transactions = quick ? 100_000 : 1_000_000;
  for (const { name, now } of running) {
    const begun = performance.now();
    await now.fill?.(transactions, transactions / 2 / pageSize);
    if (now.fill)
      world.say(`  ${name}: ${transactions} transactions in ${((performance.now() - begun) / 1000).toFixed(0)} s`);
  }
}

/** Measures latency against load, for the picture. The bank's latency is in the group of curves. */
const peerCurves: Group = {
  name: 'peers-curves',
  quick: false,
  onRequest: true,
  async measure(bench) {
    const { running } = await allEntrants(bench.world);
    const latencies: Point[] = [];
    for (const entrant of running) {
      if (entrant.name === bankName || entrant.now.offers.paced === undefined) continue;
      for (const rate of rates) {
        const timing = { seconds: bench.effort.searchSeconds, warmUpSeconds: 1, rate };
        const { latency, wrong } = await measured(entrant, 'paced', curveConnections, timing);
        if (latency === undefined || wrong > 0 || latency.p99 > tooLateMs) break;
        latencies.push({ contender: entrant.name, perSecond: rate, latency });
      }
    }
    return { lines: [], latencies };
  },
};

export const peers: Group[] = [
  peerGroup('transfers', ['transfers'], ['peers-transfers', 'peers-sql-transfers']),
  peerGroup('deposits', ['deposits'], ['peers-deposits', 'peers-sql-deposits']),
  peerGroup('bulk', ['bulk'], ['peers-bulk']),
  peerGroup('reads', ['reads'], ['peers-reads']),
  peerGroup('latency', ['paced'], ['peers-p50', 'peers-p99']),
  peerGroup('lists', ['first', 'deep'], ['peers-first', 'peers-deep'], fillAll),
  peerCurves,
];

/** The figure and row that a goal compares. `sql` is pgledger only, otherwise the peers with HTTP are compared. */
const compared: Partial<Record<GoalId, { row: Row; of(figure: Figure): number; sql?: true }>> = {
  'peers-transfers': { row: 'transfers', of: (figure) => figure.perSecond },
  'peers-sql-transfers': { row: 'transfers', of: (figure) => figure.perSecond, sql: true },
  'peers-deposits': { row: 'deposits', of: (figure) => figure.perSecond },
  'peers-sql-deposits': { row: 'deposits', of: (figure) => figure.perSecond, sql: true },
  'peers-bulk': { row: 'bulk', of: (figure) => figure.perSecond },
  'peers-reads': { row: 'reads', of: (figure) => figure.perSecond },
  'peers-p50': { row: 'paced', of: (figure) => figure.latency?.p50 ?? NaN },
  'peers-p99': { row: 'paced', of: (figure) => figure.latency?.p99 ?? NaN },
  'peers-first': { row: 'first', of: (figure) => figure.latency?.p50 ?? NaN },
  'peers-deep': { row: 'deep', of: (figure) => figure.latency?.p50 ?? NaN },
};

/** Compares the bank with the best of the peers that were measured; a peer that is missing or has stalled is never counted as zero. */
export function outcome(wanted: GoalId[], results: Results, missing: Record<string, string>): Outcome {
  return {
    lines: wanted.map((goal) => line(goal, results, missing)),
    figures: [
      {
        title: `Peers: ${Object.keys(results)
          .map((row) => titles[row as Row])
          .join('; ')}`,
        columns: ['contender', 'callers', 'per second', 'p50 ms', 'p99 ms', 'CPU µs each', 'not 2xx', 'remark'],
        rows: [
          ...Object.entries(results).flatMap(([row, byName]) =>
            Object.entries(byName).map(([name, result]) => figureRow(row as Row, name, result)),
          ),
          ...Object.entries(missing).map(([name, reason]) => [
            name,
            '–',
            '–',
            '–',
            '–',
            '–',
            '–',
            `left out: ${reason}`,
          ]),
        ],
      },
    ],
    raw: results,
  };
}

const titles: Record<Row, string> = {
  transfers: 'transfers between 1,000 accounts',
  deposits: 'deposits on one hot account',
  bulk: 'bulk requests of 100 transfers, counted by transfer',
  reads: 'balance reads',
  paced: `transfers at ${pacedRate}/s`,
  first: `lists of transactions, ${pageSize} a page, one caller: page 1`,
  deep: 'the page in the middle',
};

function line(goal: GoalId, results: Results, missing: Record<string, string>): Line {
  const { row, of, sql } = compared[goal] ?? { row: 'transfers', of: () => NaN };
  const { [bankName]: bank, ...others } = results[row] ?? {};
  const resultValues = (result: Result | undefined) => result?.figures.map(of) ?? [];
  const isWhole = ({ figures }: Result) => figures.every((one) => one.unanswered === 0 && one.perSecond > 0);
  const sides = Object.entries(others).filter(
    ([name, result]) => (name === pgledger.name) === (sql ?? false) && isWhole(result),
  );
  const ratios = sides.map(([, result]) => ratio(resultValues(bank), resultValues(result)));
  const left = Object.entries(missing).map(([name, reason]) => `${name} is left out: ${reason}`);
  if (bank === undefined || ratios.length === 0) return { goal, missing: left.join('; ') || 'no peer was measured' };
  const { least }: Goal = goals[goal];
  const formatResult = (result: Result) => {
    const value = median(resultValues(result));
    return row === 'paced' || row === 'first' || row === 'deep' ? `${value.toFixed(2)} ms` : `${Math.round(value)}/s`;
  };
  const note = sides.map(([name, result]) => `${name} ${formatResult(result)}`).join(', ');
  return {
    goal,
    value: least === undefined ? Math.max(...ratios) : Math.min(...ratios),
    note: [`${formatResult(bank)} ÷ the best of ${note}`, ...left].join('; '),
  };
}

function figureRow(row: Row, name: string, { connections, figures, stalledAt }: Result): string[] {
  const of = (value: (figure: Figure) => number | undefined, digits: number) => {
    const text = median(figures.map((figure) => value(figure) ?? NaN)).toFixed(digits);
    return text === 'NaN' ? '–' : text;
  };
  const wrong = figures.reduce((sum, one) => sum + one.wrong, 0);
  return [
    row === 'first' || row === 'deep' ? `${name}, ${row === 'first' ? 'page 1' : 'the page in the middle'}` : name,
    String(connections),
    of((figure) => figure.perSecond, 0),
    of((figure) => figure.latency?.p50, 2),
    of((figure) => figure.latency?.p99, 2),
    of((figure) => figure.cpuMicrosPerRequest, 0),
    String(wrong),
    stalledAt === undefined ? '' : `stops responding at ${stalledAt} callers`,
  ];
}
