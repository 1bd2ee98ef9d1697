import { afterAll, test } from 'vitest';
import { options, say } from '../suites/options.ts';
import type { Result } from './campaign.ts';
import { createRandom, type Random } from './random.ts';
import { totals } from './report.ts';
import type { Row } from './row.ts';
import { Findings, seed as oneSeed, runFolder, startCampaign } from './row-tests.ts';
import { rows } from './rows/all.ts';
import { together } from './rows/together.ts';

/**
 * `npm run simulate -- [--seed N,M] [--hours H | --minutes M]`: runs rows chosen at random, alone or up to three
 * concurrently, for hours of real time, divided among the seeds; everything is checked after each round. The same seed
 * gives the same rounds and requests; their timing depends on the machine.
 */
const seeds = oneSeed.split(',');
const totalMs =
  options.minutes === undefined ? Number(options.hours ?? 1) * 3_600_000 : Number(options.minutes) * 60_000;
/** The last round, and the checks at the end. */
const moreMs = 3_600_000;
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

const folder = runFolder('simulation');
afterAll(() => folder.end(`simulate -- ${options.line}${options.seed === undefined ? ` --seed ${oneSeed}` : ''}`));

test.each(seeds)(
  'seed %s',
  async (seed) => {
    const endsMs = performance.now() + totalMs / seeds.length;
    const campaign = await startCampaign(folder.of(seed), { seed });
    const random = createRandom(seed).fork('rounds');
    const rounds: Result[] = [];
    const findings = () => rounds.flatMap((round) => round.findings);
    const take = (result: Result) => {
      rounds.push(result);
      const { title, recoveredMs, operations } = result;
      say(`${title}: ${operations} operations, normal after ${Math.round(recoveredMs)} ms`);
    };
    try {
      while (performance.now() < endsMs && findings().length === 0) take(await campaign.run(draw(random)));
      take(await campaign.verify());
    } finally {
      await campaign.stop();
    }
    say(`${rounds.length - 1} rounds, ${totals(rounds)}`);
    if (findings().length === 0) return;
    folder.keep();
    throw new Findings(findings());
  },
  totalMs + moreMs,
);
