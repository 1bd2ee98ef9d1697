import { parseArgs } from 'node:util';
import type { SerializedError } from 'vitest';
import { createVitest, type Reporter } from 'vitest/node';
import { optionsVariable, say } from './options.ts';

/**
 * `node tests/suites/run.ts SUITE [OPTIONS]`: runs a suite of vitest.config.ts. `--list` lists its tests, `--only A,B`
 * selects some, and `--json FILE` writes the results in vitest's form. The last line is "N passed, N failed"; the exit
 * code is 0 only if something passed and nothing failed. With CI_STRICT=1, a skipped test is a failure.
 */
const [suite = '', ...args] = process.argv.slice(2);
const { values: given } = parseArgs({
  args,
  options: {
    only: { type: 'string' },
    seed: { type: 'string' },
    json: { type: 'string' },
    cases: { type: 'string' },
    hours: { type: 'string' },
    minutes: { type: 'string' },
    list: { type: 'boolean' },
    quick: { type: 'boolean' },
    short: { type: 'boolean' },
    keep: { type: 'boolean' },
    'write-docs': { type: 'boolean' },
    'self-test': { type: 'boolean' },
  },
});
const { json, list, ...options } = given;

let isInterrupted = false;
let verdict = '';
const seconds = (ms = 0) => `${(ms / 1000).toFixed(1)} s`;
const marks = { passed: '✓', failed: '✗', skipped: '-', pending: '-' };

function printErrors(errors: readonly SerializedError[] = []): void {
  for (const { stack, message, diff } of errors) say([stack || message, diff].filter(Boolean).join('\n'));
}

/** Prints each test when it ends, and the errors outside of tests: of files that do not load, and of hooks. */
const reporter: Reporter = {
  onTestCaseResult(test) {
    const result = test.result();
    const { state, errors } = result;
    const rest = state === 'skipped' ? `: ${result.note ?? ''}` : ` (${seconds(test.diagnostic()?.duration)})`;
    say(`${marks[state]} ${test.fullName}${rest}`);
    for (const { message } of test.annotations()) say(`    ${message}`);
    printErrors(errors);
  },
  onTestSuiteResult: (group) => printErrors(group.errors()),
  onTestModuleEnd: (module) => printErrors(module.errors()),
  onTestRunEnd(modules, errors, reason) {
    printErrors(errors);
    const states = modules.flatMap((module) => [...module.children.allTests()].map((test) => test.result().state));
    const count = (state: string) => states.filter((one) => one === state).length;
    const skipped = count('skipped') + count('pending');
    const strictly = process.env['CI_STRICT'] === '1' ? skipped : 0;
    const isWhole = reason === 'passed' && !isInterrupted && count('passed') > 0;
    const failed = Math.max(count('failed') + strictly, isWhole ? 0 : 1);
    verdict = `${skipped > 0 ? `${skipped} skipped\n` : ''}${count('passed')} passed, ${failed} failed`;
    process.exitCode = failed === 0 ? 0 : 1;
  },
};

process.env[optionsVariable] = JSON.stringify({
  ...options,
  line: args.join(' ').replace(/ ?--json \S+/, ''),
});
const vitest = await createVitest('test', {
  config: 'tests/suites/vitest.config.ts',
  project: options['self-test'] && suite === 'faults' ? ['faults-self-test'] : suite.split(','),
  watch: false,
  reporters: list ? [] : [reporter, ...(json === undefined ? [] : ['json' as const])],
  outputFile: json,
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.removeAllListeners(signal);
  // The first signal ends the running test, which clears up; a second one ends this process.
  process.on(signal, () => {
    if (isInterrupted) process.exit(1);
    isInterrupted = true;
    say(`ended by ${signal}`);
    void vitest.cancelCurrentRun('keyboard-input');
  });
}
if (list) {
  const { testModules } = await vitest.collect([], { staticParse: false });
  for (const module of testModules) for (const test of module.children.allTests()) say(test.fullName);
} else {
  await vitest.start();
  say(verdict);
}
await vitest.close();
