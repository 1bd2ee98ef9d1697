import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT } from '../tools/local/local-dir.ts';
import { type Chart, type Series, stackedBars, svg } from './chart.ts';
import type { Machine } from './machine.ts';
import { markdown, table } from './report.ts';
import type { Minute, Outcome } from './row.ts';
import { groups } from './rows.ts';

/**
 * The content of docs/performance/results.json: the last result of each group, with the time and
 * machine of its measurement.
 */
type Kept = Record<string, { measured_at: string; machine: Machine; outcome: Outcome }>;

const pictures = join(PROJECT, 'docs', 'performance');
const page = join(PROJECT, 'docs', 'performance.md');
const results = join(pictures, 'results.json');
const [begin, end] = ['<!-- written by npm run bench -- --write-docs, from here -->', '<!-- to here -->'];

/**
 * Writes docs/performance.md, its pictures, and results.json. A run of some groups replaces only those; each has the
 * commit at which it was measured. Text outside the two marks in the page is not changed. Results of groups that no
 * longer exist are removed.
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
  writeFileSync(
    page,
    between(existsSync(page) ? readFileSync(page, 'utf8') : `# Performance\n\n${begin}\n${end}\n`, generated(kept)),
  );
}

function between(text: string, part: string): string {
  const [before, rest] = text.split(begin);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined)
    throw new Error(`docs/performance.md lacks its marks: ${begin} and ${end}`);
  return `${before}${begin}\n\n${part}\n${end}${after}`;
}

function generated(kept: Kept): string {
  const newest = Object.values(kept).sort((a, b) => b.measured_at.localeCompare(a.measured_at))[0];
  const measured = Object.entries(kept).map(([name, { measured_at, machine }]) => [
    name,
    machine['commit'] ?? '',
    `${measured_at.slice(0, 16).replace('T', ' ')} UTC`,
  ]);
  return [
    markdown(
      Object.fromEntries(Object.entries(kept).map(([name, { outcome }]) => [name, outcome])),
      newest?.machine ?? {},
    ).trimEnd(),
    table(['rows', 'measured at commit', 'on'], measured),
    '![Latency against load](performance/latency.svg)',
    '![CPU per transfer by process](performance/cost.svg)',
    '![Latency of each minute](performance/endurance.svg)',
    '![Throughput against accounts](performance/accounts.svg)\n',
  ].join('\n\n');
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
