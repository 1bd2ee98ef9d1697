import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Campaign, type Result } from '../faults/campaign.ts';
import { print, totals } from '../faults/report.ts';
import { reportVerdict, type Verdict } from '../support/verdict.ts';
import { startHaCluster } from './cluster.ts';
import type { HaRow } from './measure.ts';
import { kafkaRows } from './rows-kafka.ts';
import { postgresRows } from './rows-postgres.ts';

/** `npm run test:ha`: what dies for good, and what is replaced, under load: three brokers, a database with a standby. */
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    seed: { type: 'string' },
    only: { type: 'string' },
    json: { type: 'string' },
    list: { type: 'boolean', default: false },
    'write-docs': { type: 'boolean', default: false },
  },
});
const say = (line: string) => void process.stdout.write(`${line}\n`);
const rows: HaRow[] = [...kafkaRows, ...postgresRows];

async function main(): Promise<Verdict> {
  const wanted = options.only?.split(',');
  const unknown = wanted?.filter((name) => !rows.some((row) => row.name === name)) ?? [];
  if (unknown.length > 0) throw new Error(`there is no row ${unknown.join(', ')}; --list names them`);
  const chosen = wanted ? rows.filter(({ name }) => wanted.includes(name)) : rows;
  const seed = options.seed ?? String(Date.now() % 1_000_000_007);
  const slowness = Number(process.env['FAULTS_SLOWNESS'] ?? 1);
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-ha-'));
  say(`seed ${seed}, ${chosen.length} rows${options.quick ? ', quick' : ''}; logs and journal in ${dir}`);
  const startedAt = performance.now();
  const campaign = await Campaign.start({ seed, quick: options.quick, dir, slowness, say, start: startHaCluster });
  say(`the cluster runs after ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  const results: Result[] = [];
  try {
    for (const row of chosen) {
      results.push(await campaign.run(row));
      print(results.at(-1), say);
    }
    results.push(await campaign.verify());
    print(results.at(-1), say);
  } finally {
    await campaign.stop();
  }
  const failed = results.filter(({ findings }) => findings.length > 0).length;
  say(`\n${totals(results)}; ${Math.round((performance.now() - startedAt) / 1000)} s`);
  if (options.json) writeFileSync(options.json, JSON.stringify(results, null, 2));
  if (failed === 0) rmSync(dir, { recursive: true, force: true });
  else say(`logs and journal are kept in ${dir}`);
  return { passed: results.length - failed, failed };
}

if (options.list) for (const { name, title } of rows) say(`${name.padEnd(26)} ${title}`);
else await reportVerdict(main);
