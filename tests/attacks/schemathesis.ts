import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { runToEnd } from '../../tools/local/child.ts';
import type { Bank } from '../support/bank.ts';

/**
 * Runs Schemathesis against a bank: valid and invalid requests generated from the OpenAPI document
 * that the gateway serves.
 */

const requirements = join(import.meta.dirname, 'requirements.txt');
const minute = 60_000;
/** The maximum number of requests per round and operation. The findings of a round are known when it ends. */
const maxPerOperation = 60;

const reportSchema = z.object({
  operations: z.object({ total: z.number(), tested: z.number() }),
  test_cases: z.object({ generated: z.number() }),
  failures: z.array(z.object({ code: z.string(), title: z.string(), operations: z.array(z.string()) })),
  errors: z.array(z.unknown()),
  stop_reason: z.string(),
});

export interface Fuzzed {
  cases: number;
  /** Responses by status, over all rounds. */
  statuses: Record<string, number>;
  operations: number;
  /** Operations with findings; `output` describes them and how to reproduce them. */
  failed: string[];
  output: string;
}

/**
 * Returns the program `st`, installed into `cache` on first use. Throws with the reason if there is
 * no Python 3.10 or newer with venv, or the installation fails.
 */
export async function installSchemathesis(cache: string): Promise<string> {
  const venv = join(
    cache,
    `schemathesis-${createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)}`,
  );
  const program = join(venv, 'bin', 'st');
  const done = join(venv, 'installed');
  if (existsSync(done)) return program;
  const run = promisify(execFile);
  const { stdout } = await run('python3', ['-c', 'import sys; print(sys.version_info >= (3, 10))']);
  if (stdout.trim() !== 'True') throw new Error('python3 is older than 3.10');
  await run('python3', ['-m', 'venv', '--clear', venv], { timeout: 5 * minute });
  await run(
    join(venv, 'bin', 'python'),
    ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', requirements],
    { timeout: 10 * minute },
  );
  writeFileSync(done, '');
  return program;
}

/**
 * Runs rounds with consecutive seeds until `cases` requests have been sent; ends after the first
 * round with findings.
 */
export async function fuzz(
  program: string,
  bank: Bank,
  dir: string,
  options: { cases: number; seed: number; say: (line: string) => void },
): Promise<Fuzzed> {
  const total: Fuzzed = { cases: 0, statuses: {}, operations: 0, failed: [], output: '' };
  for (let round = 0; total.cases < options.cases && total.failed.length === 0; round++) {
    const seed = options.seed + round;
    const { report, statuses, output } = await fuzzOnce(
      program,
      bank,
      dir,
      seed,
      Math.min(maxPerOperation, Math.ceil(options.cases / 30)),
      round === 0 ? 'examples,coverage,fuzzing,stateful' : 'fuzzing,stateful',
    );
    total.cases += report.test_cases.generated;
    total.operations = report.operations.total;
    for (const [status, count] of Object.entries(statuses))
      total.statuses[status] = (total.statuses[status] ?? 0) + count;
    total.failed = [...new Set(report.failures.flatMap(({ operations }) => operations))];
    const isWhole =
      report.stop_reason === 'completed' &&
      report.errors.length === 0 &&
      report.operations.tested === report.operations.total;
    if (!isWhole) total.failed.push('the run itself');
    if (total.failed.length > 0) total.output = output;
    options.say(`  seed ${seed}: ${total.cases} cases, ${JSON.stringify(total.statuses)}`);
  }
  return total;
}

/** The requests use a token, because one of them would revoke an API key. */
async function fuzzOnce(program: string, bank: Bank, dir: string, seed: number, perOperation: number, phases: string) {
  const [report, statuses] = [join(dir, `report-${seed}.json`), join(dir, `statuses-${seed}.json`)];
  const { stdout, stderr } = await runToEnd(
    program,
    [
      'run',
      `${bank.base_urls[0]}/openapi.json`,
      '--header',
      `Authorization: Bearer ${await bank.token()}`,
      '--generation-with-security-parameters',
      'false',
      '--seed',
      String(seed),
      '--max-examples',
      String(perOperation),
      // In one thread: with two, Python 3.11 can fail with "AST constructor recursion depth mismatch".
      '--workers',
      '1',
      '--phases',
      phases,
      '--checks',
      'all',
      '--exclude-checks',
      'positive_data_acceptance',
      '--continue-on-failure',
      '--generation-database',
      'none',
      '--suppress-health-check',
      'all',
      '--request-timeout',
      '20',
      '--no-color',
      '--warnings',
      'off',
      '--report',
      'json',
      '--report-json-path',
      report,
    ],
    {
      cwd: dir,
      env: {
        ...process.env,
        PYTHONPATH: import.meta.dirname,
        PYTHONDONTWRITEBYTECODE: '1',
        SCHEMATHESIS_HOOKS: 'checks',
        STATUSES_FILE: statuses,
      },
      timeoutMs: 60 * minute,
    },
  );
  if (!existsSync(report)) throw new Error(`schemathesis left no report:\n${(stdout + stderr).slice(-4000)}`);
  return {
    report: reportSchema.parse(JSON.parse(readFileSync(report, 'utf8'))),
    statuses: JSON.parse(readFileSync(statuses, 'utf8')) as Record<string, number>,
    output: stdout + stderr,
  };
}
