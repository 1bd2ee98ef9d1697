import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { runToEnd, stopAllChildren } from '../../tools/local/child.ts';
import setup from '../support/global-setup.ts';
import { bugs } from './bugs.ts';
import { copyCheckout, plant, root, typeErrors } from './plant.ts';

/**
 * `npm run test:planted`: tests the test suite. Plants one bug after the other in a copy of this checkout and runs the
 * unit and integration tests of the folder that the bug names until one fails. Without a bug all must pass. A bug with
 * which the code does not type-check counts as not caught. Arguments select bugs by parts of their names. The exit code
 * is 0 only if every bug is caught.
 */
const testRunMs = 1_800_000;

interface Report {
  testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[];
}

/**
 * Runs the tests of these folders until one fails, and returns its name. A file that cannot be loaded counts as an
 * error, not as a failed test.
 */
async function runTests(copy: string, folders: string[]): Promise<{ isSound: boolean; failed: string[] }> {
  const report = join(copy, 'planted-report.json');
  rmSync(report, { force: true });
  const vitest = [
    'run',
    '--config',
    'tests/planted/vitest.config.ts',
    ...folders.map((folder) => `${folder}/`),
    '--bail=1',
    '--reporter=json',
    `--outputFile=${report}`,
  ];
  const { code } = await runToEnd(process.execPath, [join(root, 'node_modules', 'vitest', 'vitest.mjs'), ...vitest], {
    cwd: copy,
    timeoutMs: testRunMs,
    groupGraceMs: 10_000,
  });
  const { testResults } = existsSync(report)
    ? (JSON.parse(readFileSync(report, 'utf8')) as Report)
    : { testResults: [] };
  const tests = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map(({ fullName, status }) => ({ title: `${relative(copy, name)}: ${fullName}`, status })),
  );
  return {
    isSound: code === 0 && tests.length > 0,
    failed: tests.filter(({ status }) => status === 'failed').map(({ title }) => title),
  };
}

async function main(): Promise<boolean> {
  const wanted = process.argv.slice(2);
  const chosen = bugs.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
  const isNamed = Boolean(process.env['KAFKA_BROKERS'] && process.env['DATABASE_URL']);
  const stopServers = isNamed ? async () => undefined : await setup();
  const copy = copyCheckout();
  const say = (line: string) => process.stdout.write(`${line}\n`);
  let caught = 0;
  try {
    const sound = await runTests(copy, [...new Set(chosen.map(({ tests }) => tests))]);
    if (!sound.isSound) throw new Error(`without a bug: ${sound.failed.join('; ') || 'not all tests ran'}`);
    say('| planted bug | caught by |\n|---|---|');
    for (const bug of chosen) {
      const remove = plant(copy, bug);
      try {
        const errors = await typeErrors(copy);
        const { failed } = errors.length > 0 ? { failed: [] } : await runTests(copy, [bug.tests]);
        if (failed.length > 0) caught += 1;
        const notCaught = `NOT CAUGHT in ${bug.tests} ${errors.join('; ')}`.trim();
        say(`| ${bug.name} | ${failed.join('; ') || notCaught} |`);
      } finally {
        remove();
      }
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
    await stopServers();
  }
  say(`${caught} passed, ${chosen.length - caught} failed`);
  return caught === chosen.length && caught > 0;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stopAllChildren(5_000).finally(() => process.exit(1)));

process.exitCode = (await main()) ? 0 : 1;
