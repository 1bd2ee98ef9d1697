import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runToEnd } from '../../tools/local/child.ts';
import { options } from '../suites/options.ts';
import { bugs } from './bugs.ts';
import { copyCheckout, plant, root, typeErrors } from './plant.ts';

/**
 * `npm run test:planted`: tests the test suite. Plants one bug after the other in a copy of this checkout and runs the
 * unit and integration tests of the folder that the bug names until one fails. Without a bug all must pass. A bug with
 * which the code does not type-check counts as not caught. `--only` selects bugs by parts of their names.
 */
const testRunMs = 1_800_000;
const parts = options.only?.split(',');
const chosen = bugs.filter(({ name }) => parts?.some((part) => name.includes(part)) ?? true);
const copy = copyCheckout();
afterAll(() => rmSync(copy, { recursive: true, force: true }));

interface Report {
  testResults: { name: string; assertionResults: { fullName: string; status: string }[] }[];
}

/**
 * Runs the tests of these folders until one fails, and returns its name. A file that cannot be loaded counts as an
 * error, not as a failed test.
 */
async function runTests(folders: string[]): Promise<{ isSound: boolean; failed: string[] }> {
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

beforeAll(async () => {
  const sound = await runTests([...new Set(chosen.map(({ tests }) => tests))]);
  if (!sound.isSound) throw new Error(`without a bug: ${sound.failed.join('; ') || 'not all tests ran'}`);
}, testRunMs);

test.each(chosen)('$name', async (bug) => {
  const remove = plant(copy, bug);
  try {
    expect(await typeErrors(copy)).toEqual([]);
    const { failed } = await runTests([bug.tests]);
    expect(failed, `NOT CAUGHT in ${bug.tests}`).not.toEqual([]);
  } finally {
    remove();
  }
});
