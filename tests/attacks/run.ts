import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runToEnd, stopAllChildren } from '../../tools/local/child.ts';
import { PROJECT } from '../../tools/local/local-dir.ts';
import { startBank } from '../support/bank.ts';
import startServers from '../support/global-setup.ts';
import { reportVerdict, type Verdict } from '../support/verdict.ts';
import { fuzz, installSchemathesis } from './schemathesis.ts';

/**
 * `npm run test:attacks`: attacks on a real bank from outside: the tables of hostile input and the
 * attacks, which `npm run test:all` runs, too, then Schemathesis (`--cases N`, 20,000 by default; skipped if
 * there is no Python, which is a failure with CI_STRICT=1). The exit code is 0 only if everything
 * passed.
 */
const { values: options } = parseArgs({
  options: {
    cases: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const say = (line: string) => void process.stdout.write(`${line}\n`);

const tablesMs = 60 * 60_000;
const tables = [
  'tests/attacks/',
  'tests/bad-input/',
  'tests/contract/credentials',
  'tests/contract/access',
  'tests/contract/api-keys',
  'services/gateway/access/',
  'services/gateway/http/client-errors',
  'services/gateway/http/body',
  'libs/contracts/api-key.test',
];

async function runTables(dir: string): Promise<Verdict> {
  const report = join(dir, 'vitest.json');
  const { code } = await runToEnd(
    process.execPath,
    [
      join(PROJECT, 'node_modules', 'vitest', 'vitest.mjs'),
      'run',
      ...tables,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
    ],
    {
      cwd: PROJECT,
      env: { ...process.env, STARVE_FULL: '1' },
      timeoutMs: tablesMs,
      groupGraceMs: 10_000,
      isShown: true,
    },
  );
  const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(report, 'utf8')) as {
    numPassedTests: number;
    numFailedTests: number;
  };
  // A file that cannot be loaded fails without a failed test.
  return { passed: numPassedTests, failed: code === 0 ? numFailedTests : Math.max(1, numFailedTests) };
}

/** Returns one row per operation of the document, and one for all responses, none of which may be 5xx. */
async function runSchemathesis(dir: string): Promise<Verdict> {
  let program: string;
  try {
    program = await installSchemathesis(join(PROJECT, '.local'));
  } catch (error) {
    say(`schemathesis is left out: ${(error as Error).message}`);
    return { passed: 0, failed: process.env['CI_STRICT'] === '1' ? 1 : 0 };
  }
  const bank = await startBank({ webhooks: 1 });
  try {
    const { cases, statuses, operations, failed, output } = await fuzz(program, bank, dir, {
      cases: Number(options.cases),
      seed: Number(options.seed),
      say,
    });
    const faults = Object.entries(statuses).reduce((sum, [status, count]) => (status >= '500' ? sum + count : sum), 0);
    if (failed.length > 0) {
      writeFileSync(join(dir, 'schemathesis.log'), output);
      say(`${output.slice(0, 20_000)}\nfindings: ${failed.join(', ')}; the whole output is in ${dir}`);
    }
    say(`schemathesis: ${cases} cases, ${faults} answered 5xx`);
    return {
      passed: operations - Math.min(failed.length, operations) + (faults === 0 ? 1 : 0),
      failed: failed.length + (faults === 0 ? 0 : 1),
    };
  } finally {
    await bank.stop();
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stopAllChildren(5_000).finally(() => process.exit(1)));

const parts = { tables: runTables, schemathesis: runSchemathesis };

async function main(): Promise<Verdict> {
  const dir = mkdtempSync(join(tmpdir(), 'core-banking-attacks-'));
  const stopServers = await startServers();
  const sum: Verdict = { passed: 0, failed: 0 };
  try {
    for (const [name, run] of Object.entries(parts)) {
      if (options.only !== undefined && options.only !== name) continue;
      const { passed, failed } = await run(dir);
      sum.passed += passed;
      sum.failed += failed;
    }
  } finally {
    await stopServers();
  }
  if (sum.failed === 0) rmSync(dir, { recursive: true, force: true });
  return sum;
}

await reportVerdict(main);
