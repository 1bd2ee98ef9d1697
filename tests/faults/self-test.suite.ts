import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runToEnd } from '../../tools/local/child.ts';
import { copyCheckout, plant, typeErrors } from '../planted/plant.ts';
import { options } from '../suites/options.ts';
import { banks } from './self-test.ts';

/**
 * `npm run test:faults -- --self-test`: tests the campaign. Runs it, in its quick form and with the relevant rows,
 * against copies of this checkout with planted bugs. Each bug must be found by its own finding. All banks run at the
 * same time, because each waits most of the time.
 */
const campaignMs = 30 * 60_000;

interface Report {
  testResults: { assertionResults: { failureMessages: string[] }[] }[];
}

const selected = banks.filter(({ rows }) => options.only?.split(',').includes(rows) ?? true);

test.concurrent.each(selected)('$rows', async ({ rows, bugs }) => {
  const copy = copyCheckout();
  try {
    for (const bug of bugs) plant(copy, bug);
    expect(await typeErrors(copy)).toEqual([]);
    // The logs of a failed campaign are kept, but here they are in the copy and are deleted with it.
    mkdirSync(join(copy, 'tmp'));
    const report = join(copy, 'report.json');
    const args = [join(copy, 'tests/suites/run.ts'), 'faults', '--quick', '--only', rows, '--json', report];
    const { stdout, stderr } = await runToEnd(process.execPath, args, {
      cwd: copy,
      env: { ...process.env, TMPDIR: join(copy, 'tmp') },
      timeoutMs: campaignMs,
      groupGraceMs: 30_000,
    });
    if (!existsSync(report)) throw new Error(`the campaign ended without a report\n${stdout}${stderr}`);
    const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as Report;
    const findings = testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .flatMap(({ failureMessages }) => failureMessages)
      .flatMap((message) => message.split('\n'));
    const notFound = bugs.filter(({ found }) => !findings.some((finding) => found.test(finding)));
    expect(
      notFound.map(({ name }) => name),
      findings.join('\n'),
    ).toEqual([]);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
});
