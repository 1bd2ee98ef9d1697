import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { stopAllChildren } from '../../tools/local/child.ts';
import { Campaign, type Result } from '../faults/campaign.ts';
import type { Cluster } from '../faults/cluster.ts';
import type { Random } from '../faults/random.ts';
import { print, totals } from '../faults/report.ts';
import { reportVerdict, type Verdict } from '../support/verdict.ts';
import { startHaCluster } from './cluster.ts';
import type { HaRow } from './measure.ts';
import { requirePrograms } from './preflight.ts';
import { table } from './report.ts';
import { certificateRows } from './rows-certificates.ts';
import { kafkaRows } from './rows-kafka.ts';
import { postgresRows } from './rows-postgres.ts';
import { selfTestRows } from './rows-self-test.ts';
import { startOldCluster, versionRows } from './rows-versions.ts';

/**
 * `npm run test:ha`: permanent failures and replacements under load, on three brokers and a database with a standby,
 * with the checks of the fault campaign after each row. `--short` is the part for continuous integration. The exit code
 * is 0 only if every check passed.
 */
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    short: { type: 'boolean', default: false },
    seed: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
});
const say = (line: string) => void process.stdout.write(`${line}\n`);

/** Rows by their cluster. */
interface Suite {
  name: string;
  rows: HaRow[];
  start(dir: string, random: Random): Promise<Cluster>;
  /** The rows of self-tests, which must find a loss. */
  mustFail?: true;
}

const suites: Suite[] = [
  { name: 'cluster', rows: [...kafkaRows, ...postgresRows, ...certificateRows], start: startHaCluster },
  { name: 'versions', rows: versionRows, start: startOldCluster },
  ...selfTestRows.map(
    (row): Suite => ({
      name: row.name,
      rows: [row],
      start: (dir, random) => startHaCluster(dir, random, row.without),
      mustFail: true,
    }),
  ),
];
const stopMs = 10_000;
const shortRows = ['broker-kill-each', 'postgres-kill-primary'];

async function runSuite({ name, rows, start }: Suite, seed: string, dir: string): Promise<Result[]> {
  const own = join(dir, name);
  mkdirSync(own, { recursive: true });
  const begun = performance.now();
  const slowness = Number(process.env['FAULTS_SLOWNESS'] ?? 1);
  const campaign = await Campaign.start({
    seed,
    quick: options.quick || options.short,
    dir: own,
    slowness,
    say,
    start,
  });
  say(`${name}: the cluster runs after ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  const results: Result[] = [];
  try {
    for (const row of rows) {
      results.push(await campaign.run(row));
      print(results.at(-1), say);
    }
    results.push(await campaign.verify());
    print(results.at(-1), say);
  } finally {
    await campaign.stop();
  }
  return results;
}

/** A self-test passes if a loss was found. */
function judged(results: Result[], { mustFail }: Suite): Result[] {
  if (!mustFail) return results;
  const isFound = results.some(({ findings }) => findings.some((finding) => /LOST|I3|I5/.test(finding)));
  return results
    .slice(0, 1)
    .map((result) => ({ ...result, findings: isFound ? [] : ['the loss that was planted was not found'] }));
}

async function main(): Promise<Verdict> {
  requirePrograms();
  const wanted = options.only?.split(',') ?? (options.short ? shortRows : undefined);
  const unknown = wanted?.filter((name) => !suites.some(({ rows }) => rows.some((row) => row.name === name))) ?? [];
  if (unknown.length > 0) throw new Error(`there is no row ${unknown.join(', ')}; --list shows all rows`);
  const seed = options.seed ?? String(Date.now() % 1_000_000_007);
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-ha-'));
  say(`seed ${seed}; logs and journal in ${dir}`);
  const startedAt = performance.now();
  const results: Result[] = [];
  for (const suite of suites) {
    const rows = wanted ? suite.rows.filter(({ name }) => wanted.includes(name)) : suite.rows;
    if (rows.length > 0) results.push(...judged(await runSuite({ ...suite, rows }, seed, dir), suite));
  }
  const failed = results.filter(({ findings }) => findings.length > 0).length;
  say(`\n${table(results)}\n\n${totals(results)}; ${Math.round((performance.now() - startedAt) / 1000)} s`);
  if (options.json) writeFileSync(options.json, JSON.stringify(results, null, 2));
  if (failed === 0) rmSync(dir, { recursive: true, force: true });
  else
    say(
      `to run it again: npm run test:ha -- --seed ${seed}${options.only ? ` --only ${options.only}` : ''}; logs and journal are kept in ${dir}`,
    );
  return { passed: results.length - failed, failed };
}

if (options.list) for (const { name, title } of suites.flatMap(({ rows }) => rows)) say(`${name.padEnd(26)} ${title}`);
// A failed start may have left servers that were still starting.
else await reportVerdict(() => main().finally(() => stopAllChildren(stopMs)));
