import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../tools/local/local-dir.ts';
import { type Chart, type Series, stackedBars, svg } from './chart.ts';
import type { Machine } from './machine.ts';
import { goalsTable, table } from './report.ts';
import type { Minute, Outcome } from './row.ts';
import { groups } from './rows.ts';

/**
 * The content of docs/performance/results.json: the last result of each group, with the time and
 * machine of its measurement.
 */
type Kept = Record<string, { measured_at: string; machine: Machine; outcome: Outcome }>;

const pictures = join(PROJECT, 'docs', 'performance');
const page = join(pictures, 'results.md');
const results = join(pictures, 'results.json');

/**
 * Writes docs/performance/results.md, its pictures, and results.json. A run of some groups replaces only those; each has
 * the commit at which it was measured. Results of groups that no longer exist are removed.
 */
export function writeDocs(outcomes: Record<string, Outcome>, machine: Machine): void {
  mkdirSync(pictures, { recursive: true });
  const kept: Kept = existsSync(results) ? (JSON.parse(readFileSync(results, 'utf8')) as Kept) : {};
  for (const [name, { raw: _raw, ...outcome }] of Object.entries(outcomes))
    kept[name] = { measured_at: new Date().toISOString(), machine, outcome };
  for (const name of Object.keys(kept)) if (!groups.some((group) => group.name === name)) delete kept[name];
  writeFileSync(results, `${JSON.stringify(kept, null, 1)}\n`);
  const all = Object.values(kept).map(({ outcome }) => outcome);
  writeFileSync(join(pictures, 'latency.svg'), svg(latencyChart(all)));
  writeFileSync(join(pictures, 'accounts.svg'), svg(accountsChart(all)));
  writeFileSync(join(pictures, 'cost.svg'), costChart(all));
  writeFileSync(join(pictures, 'endurance.svg'), svg(enduranceChart(all)));
  writeFileSync(page, resultsPage(kept));
}

function resultsPage(kept: Kept): string {
  const outcomes = Object.fromEntries(Object.entries(kept).map(([name, { outcome }]) => [name, outcome]));
  const measured = Object.entries(kept).map(([name, { measured_at, machine, outcome }]) => [
    name,
    machine['commit'] ?? '',
    measured_at.slice(0, 10),
    machine['processor']?.split(',')[0] ?? '',
    outcome.trust?.mostElsewhere.toFixed(2) ?? '–',
  ]);
  return `# Results

Written by \`npm run bench -- --write-docs\`; [performance.md](../performance.md) explains what is compared with what. results.json has all
figures.

${goalsTable(outcomes)}

Each group of rows was measured at this commit. *Others* is the CPU that other programs used meanwhile, at most, in cores.

${table(['rows', 'commit', 'on', 'processor', 'others'], measured)}

![Latency against load](latency.svg)

![CPU per transfer by process](cost.svg)

![Latency of each minute](endurance.svg)

![Throughput against accounts](accounts.svg)
`;
}

/** Returns the contenders in their order, each with its color. */
function byContender<T extends { contender: string }>(points: T[]): [string, T[], number][] {
  return [...Map.groupBy(points, ({ contender }) => contender)].map(([name, own], i) => [name, own, i]);
}

export function latencyChart(outcomes: Outcome[]): Chart {
  const points = outcomes.flatMap(({ latencies = [] }) => latencies);
  const series = byContender(points).flatMap(([name, own, colour]): Series[] => [
    { name: `${name} p99`, colour, points: own.map(({ perSecond, latency }) => ({ x: perSecond, y: latency.p99 })) },
    {
      name: `${name} p50`,
      colour,
      dashed: true,
      points: own.map(({ perSecond, latency }) => ({ x: perSecond, y: latency.p50 })),
    },
  ]);
  return {
    title: 'Latency against load',
    x: { label: 'transfers per second', scale: 'log' },
    y: { label: 'ms', scale: 'log' },
    series,
  };
}

function costChart(outcomes: Outcome[]): string {
  const rows = outcomes
    .flatMap(({ costs = [] }) => costs)
    .map(({ contender, micros }) => ({ name: contender, parts: Object.entries(micros) }));
  return stackedBars('CPU per transfer at saturation, by process', 'µs', rows);
}

function enduranceChart(outcomes: Outcome[]): Chart {
  const minutes = outcomes.flatMap(({ minutes = [] }) => minutes);
  const series = (name: string, colour: number, of: (minute: Minute) => number, dashed = false): Series => ({
    name,
    colour,
    dashed,
    points: minutes.map((one) => ({ x: one.minute, y: of(one) })),
  });
  return {
    title: 'Latency of each minute at half load',
    x: { label: 'minute', scale: 'linear' },
    y: { label: 'ms; MB', scale: 'log' },
    series: [
      series('p50, ms', 0, ({ latency }) => latency.p50),
      series('p99, ms', 1, ({ latency }) => latency.p99),
      series('p99.9, ms', 2, ({ latency }) => latency.p999),
      ...Object.keys(minutes[0]?.memory ?? {}).map((name, i) =>
        series(`${name}, MB`, 3 + i, ({ memory }) => memory[name] ?? 0, true),
      ),
      series('checkpoint, 1,000 pages', 4, ({ checkpointBuffers }) => checkpointBuffers / 1000),
      series('vacuum runs', 5, ({ vacuums }) => vacuums),
    ],
  };
}

export function accountsChart(outcomes: Outcome[]): Chart {
  const points = outcomes.flatMap(({ growth = [] }) => growth);
  const series = byContender(points).map(
    ([name, own, colour]): Series => ({
      name,
      colour,
      points: own.map(({ accounts, perSecond }) => ({ x: accounts, y: perSecond })).sort((a, b) => a.x - b.x),
    }),
  );
  return {
    title: 'Throughput against the number of accounts',
    x: { label: 'accounts, chosen uniformly', scale: 'log' },
    y: { label: 'transfers per second', scale: 'linear' },
    series,
  };
}
