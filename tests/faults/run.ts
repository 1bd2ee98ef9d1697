import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { reportVerdict, type Verdict } from '../support/verdict.ts';
import { Campaign, type CampaignOptions, type Result } from './campaign.ts';
import { print, table, totals } from './report.ts';
import { type Row, titleOf } from './row.ts';
import { rows } from './rows/all.ts';
import { selfTest } from './self-test.ts';

/**
 * `npm run test:faults`: injects every fault of the table once under load, and checks I1-I12 from outside after each.
 * row.ts explains how to add a fault. The exit code is 0 only if every check passed. With --self-test it tests banks
 * with planted bugs (self-test.ts), and succeeds if it finds each.
 */
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    seed: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'string' },
    list: { type: 'boolean', default: false },
    'self-test': { type: 'boolean', default: false },
  },
});
const say = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<Verdict> {
  const wanted = options.only?.split(',');
  const unknown = wanted?.filter((name) => !rows.some((row) => row.name === name)) ?? [];
  if (unknown.length > 0) throw new Error(`there is no row ${unknown.join(', ')}; --list shows all rows`);
  const chosen = wanted ? rows.filter(({ name }) => wanted.includes(name)) : rows;
  const seed = options.seed ?? String(Date.now() % 1_000_000_007);
  const slowness = Number(process.env['FAULTS_SLOWNESS'] ?? 1);
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-faults-'));
  say(
    `seed ${seed}, ${chosen.length} rows${options.quick ? ', quick' : ''}${slowness === 1 ? '' : `, recovery bounds × ${slowness}`}; logs and journal in ${dir}`,
  );
  const startedAt = performance.now();
  const results = await runAll({ seed, quick: options.quick, dir, slowness, say }, chosen);
  const failed = results.filter(({ findings }) => findings.length > 0).length;
  const skipped = results.filter((result) => result.skipped !== undefined).length;
  say(
    `\n${table(results, options.quick)}\n\n${totals(results)}; ${Math.round((performance.now() - startedAt) / 1000)} s`,
  );
  if (options.json) writeFileSync(options.json, JSON.stringify(results, null, 2));
  if (failed === 0) rmSync(dir, { recursive: true, force: true });
  else
    say(
      `to run it again: npm run test:faults -- --seed ${seed}${options.quick ? ' --quick' : ''}${options.only ? ` --only ${options.only}` : ''}; logs and journal are kept in ${dir}`,
    );
  return { passed: results.length - failed - skipped, failed, skipped };
}

/** Runs the rows one after the other, and finally repeats all checks. */
async function runAll(settings: CampaignOptions, chosen: Row[]): Promise<Result[]> {
  const startedAt = performance.now();
  const campaign = await Campaign.start(settings);
  say(`the cluster runs after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  const results: Result[] = [];
  try {
    for (const row of chosen) {
      results.push(await campaign.run(row));
      print(results.at(-1), say);
    }
    results.push(await campaign.verify());
    print(results.at(-1), say);
    return results;
  } finally {
    await campaign.stop();
  }
}

if (options.list) for (const row of rows) say(`${row.name.padEnd(26)} ${titleOf(row, options.quick)}`);
else await reportVerdict(options['self-test'] ? selfTest : main);
