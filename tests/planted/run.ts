import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import setup from '../support/global-setup.ts';
import { bugs, type PlantedBug } from './bugs.ts';
import { copyCheckout, plant, root } from './plant.ts';

/**
 * `npm run test:planted`: does the suite notice? Plants one bug after the other in a copy of this checkout and runs the
 * tests that are named to catch it: with the bug each must fail, without any bug each must pass. Arguments are parts of
 * names of bugs: only those. Exit code 0 only if every bug is caught.
 */
const testRunMs = 1_800_000;

type Outcome = 'passed' | 'failed' | 'not run';

interface Report {
  testResults: { name: string; assertionResults: { title: string; status: string }[] }[];
}

/** Runs the named tests in the copy; what became of each. */
async function outcomes(copy: string, tests: PlantedBug['caughtBy']): Promise<{ file: string; test: string; outcome: Outcome }[]> {
  const report = join(copy, 'planted-report.json');
  rmSync(report, { force: true });
  const files = [...new Set(tests.map(({ file }) => file))];
  const pattern = [...new Set(tests.map(({ test }) => test.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')))].join('|');
  const vitest = ['run', '--config', 'tests/planted/vitest.config.ts', ...files, '-t', pattern, '--reporter=json', `--outputFile=${report}`];
  const child = spawn(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), ...vitest], { cwd: copy, stdio: 'ignore', timeout: testRunMs });
  await new Promise((resolve) => child.once('exit', resolve));
  const { testResults } = existsSync(report) ? (JSON.parse(readFileSync(report, 'utf8')) as Report) : { testResults: [] };
  const statusOf = (file: string, test: string) => testResults.find(({ name }) => name.endsWith(file))?.assertionResults.find(({ title }) => title === test)?.status;
  return tests.map(({ file, test }) => {
    const status = statusOf(file, test);
    return { file, test, outcome: status === 'passed' || status === 'failed' ? status : 'not run' };
  });
}

async function main(): Promise<boolean> {
  const wanted = process.argv.slice(2);
  const chosen = bugs.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
  const isNamed = Boolean(process.env['KAFKA_BROKERS'] && process.env['DATABASE_URL']);
  const stopServers = isNamed ? async () => undefined : await setup();
  const copy = copyCheckout();
  const say = (line: string) => process.stdout.write(`${line}\n`);
  let passed = 0;
  try {
    for (const { file, test, outcome } of await outcomes(copy, chosen.flatMap(({ caughtBy }) => caughtBy))) {
      if (outcome !== 'passed') throw new Error(`without a bug: ${outcome}: ${file}: ${test}`);
    }
    say('| planted bug | caught by |\n|---|---|');
    for (const bug of chosen) {
      const remove = plant(copy, bug);
      const found = await outcomes(copy, bug.caughtBy).finally(remove);
      const isCaught = found.every(({ outcome }) => outcome === 'failed');
      if (isCaught) passed += 1;
      say(`| ${bug.name} | ${isCaught ? '' : 'NOT CAUGHT: '}${found.map(({ file, test, outcome }) => `${file}: ${test}${outcome === 'failed' ? '' : ` (${outcome})`}`).join('; ')} |`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
    await stopServers();
  }
  say(`${passed} passed, ${chosen.length - passed} failed`);
  return passed === chosen.length && passed > 0;
}

process.exitCode = (await main()) ? 0 : 1;
