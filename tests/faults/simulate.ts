import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { reportVerdict, type Verdict } from '../support/verdict.ts';
import { Campaign, type Result } from './campaign.ts';
import { createRandom, type Random } from './random.ts';
import { print, totals } from './report.ts';
import type { Bench, Row } from './row.ts';
import { rows } from './rows/all.ts';

/**
 * `npm run simulate -- [--seed N] [--hours H | --minutes M]`: rows drawn by the seed, alone or up to three at once, at random
 * moments, for hours; everything is checked after each round. The seed gives the same rounds and requests again; when they
 * meet is up to the machine.
 */
const { values: options } = parseArgs({ options: { seed: { type: 'string' }, hours: { type: 'string' }, minutes: { type: 'string' } } });
const say = (line: string) => void process.stdout.write(`${line}\n`);

const mostAtOnce = 3;
const spreadMs = 15_000;

/** One to three rows that hurt different parts, as one. */
function draw(random: Random): Row {
  const count = random.int(1, mostAtOnce);
  const chosen: Row[] = [];
  for (const row of random.shuffle(rows)) {
    const alone = row.touches.includes('all') || row.withoutLoad === true;
    if (chosen.length === 0 || (!alone && chosen.every(({ touches }) => !touches.some((part) => part === 'all' || row.touches.includes(part))))) chosen.push(row);
    if (chosen.length === count || alone) break;
  }
  const [only] = chosen;
  return chosen.length === 1 && only ? only : together(chosen, chosen.map(() => random.int(0, spreadMs)));
}

/** Each begins at its own moment; what callers may see is what any of them allows. */
function together(chosen: Row[], delays: number[]): Row {
  return {
    name: chosen.map(({ name }) => name).join('+'),
    title: chosen.map(({ title }) => title).join('; '),
    touches: chosen.flatMap(({ touches }) => touches),
    recoveryMs: Math.max(...chosen.map(({ recoveryMs }) => recoveryMs)),
    callers: chosen.some(({ callers }) => callers === 'cut') ? 'cut' : undefined,
    frozen: chosen.find(({ frozen }) => frozen !== undefined)?.frozen,
    async inject(bench: Bench) {
      const gone = await Promise.all(chosen.map(async (row, i) => {
        await sleep(delays[i] ?? 0);
        return (await row.inject(bench)) ?? performance.now();
      }));
      return Math.max(...gone);
    },
    check: async (evidence, bench) => (await Promise.all(chosen.map(async (row) => (await row.check?.(evidence, bench)) ?? []))).flat(),
  };
}

async function main(): Promise<Verdict> {
  const seed = options.seed ?? String(Date.now() % 1_000_000_007);
  const durationMs = options.minutes === undefined ? Number(options.hours ?? 1) * 3_600_000 : Number(options.minutes) * 60_000;
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-simulation-'));
  say(`seed ${seed}, ${Math.round(durationMs / 60_000)} minutes; logs and journal in ${dir}`);
  const slowness = Number(process.env['FAULTS_SLOWNESS'] ?? 1);
  const campaign = await Campaign.start({ seed, quick: false, dir, slowness, say });
  const random = createRandom(seed).fork('rounds');
  const until = performance.now() + durationMs;
  const results: Result[] = [];
  try {
    while (performance.now() < until && results.every(({ findings }) => findings.length === 0)) {
      results.push(await campaign.run(draw(random)));
      print(results.at(-1), say);
    }
    results.push(await campaign.verify());
    print(results.at(-1), say);
  } finally {
    await campaign.stop();
  }
  const failed = results.filter(({ findings }) => findings.length > 0).length;
  say(totals(results));
  if (failed === 0) rmSync(dir, { recursive: true, force: true });
  else say(`the rounds again: npm run simulate -- --seed ${seed}; logs and journal are kept in ${dir}`);
  return { passed: results.length - failed, failed };
}

await reportVerdict(main);
