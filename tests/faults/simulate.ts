import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { reportVerdict, type Verdict } from '../support/verdict.ts';
import { Campaign, type Result } from './campaign.ts';
import { createRandom, type Random } from './random.ts';
import { print, totals } from './report.ts';
import type { Row } from './row.ts';
import { rows } from './rows/all.ts';
import { together } from './rows/together.ts';

/**
 * `npm run simulate -- [--seed N,M] [--hours H | --minutes M]`: runs rows chosen at random, alone or up to three
 * concurrently, for hours of real time, divided among the seeds; everything is checked after each round. The same seed
 * gives the same rounds and requests; their timing depends on the machine.
 */
const text = { type: 'string' } as const;
const { values: options } = parseArgs({ options: { seed: text, hours: text, minutes: text } });
const say = (line: string) => void process.stdout.write(`${line}\n`);

const mostAtOnce = 3;
const spreadMs = 15_000;

/** Combines one to three rows that affect different parts into one. */
function draw(random: Random): Row {
  const count = random.int(1, mostAtOnce);
  const chosen: Row[] = [];
  for (const row of random.shuffle(rows)) {
    const alone = row.touches.includes('all') || row.withoutLoad === true;
    if (
      chosen.length === 0 ||
      (!alone && chosen.every(({ touches }) => !touches.some((part) => part === 'all' || row.touches.includes(part))))
    )
      chosen.push(row);
    if (chosen.length === count || alone) break;
  }
  const [only] = chosen;
  return chosen.length === 1 && only
    ? only
    : together(
        chosen,
        chosen.map(() => random.int(0, spreadMs)),
      );
}

/** Runs rounds until the time is over or there is a finding, and finally repeats all checks. */
async function simulate(seed: string, durationMs: number, dir: string): Promise<Result[]> {
  const begun = performance.now();
  const campaign = await Campaign.start({
    seed,
    quick: false,
    dir,
    slowness: Number(process.env['FAULTS_SLOWNESS'] ?? 1),
    say,
  });
  const random = createRandom(seed).fork('rounds');
  const rounds: Result[] = [];
  const take = (result: Result) => {
    rounds.push(result);
    print(result, say);
  };
  try {
    const isClean = () => rounds.every(({ findings }) => findings.length === 0);
    while (performance.now() < begun + durationMs && isClean()) take(await campaign.run(draw(random)));
    take(await campaign.verify());
  } finally {
    await campaign.stop();
  }
  say(`${totals(rounds)}; ${Math.round((performance.now() - begun) / 60_000)} minutes`);
  return rounds;
}

async function main(): Promise<Verdict> {
  const seeds = (options.seed ?? String(Date.now() % 1_000_000_007)).split(',');
  const totalMs =
    options.minutes === undefined ? Number(options.hours ?? 1) * 3_600_000 : Number(options.minutes) * 60_000;
  const durationMs = totalMs / seeds.length;
  const results: Result[] = [];
  for (const seed of seeds) {
    const dir = mkdtempSync(join(tmpdir(), 'core-banking-simulation-'));
    say(`seed ${seed}, ${Math.round(durationMs / 60_000)} minutes; logs and journal in ${dir}`);
    const rounds = await simulate(seed, durationMs, dir);
    results.push(...rounds);
    if (rounds.every(({ findings }) => findings.length === 0)) rmSync(dir, { recursive: true, force: true });
    else say(`the rounds again: npm run simulate -- --seed ${seed}; logs and journal are kept in ${dir}`);
  }
  const failed = results.filter(({ findings }) => findings.length > 0).length;
  return { passed: results.length - failed, failed };
}

await reportVerdict(main);
