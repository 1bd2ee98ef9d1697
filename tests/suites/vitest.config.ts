import { defineConfig } from 'vitest/config';

/**
 * The suites that `npm test` does not run, because they take long or change the machine. run.ts starts them. The tests
 * of a suite run one after the other, because each wants the whole machine.
 */
const hourMs = 60 * 60_000;
const suite = (name: string, include: string[], more = {}) => ({
  test: {
    name,
    include,
    env: { BANK_MODE: 'trial' },
    pool: 'forks' as const,
    maxWorkers: 1,
    testTimeout: 2 * hourMs,
    hookTimeout: hourMs / 4,
    setupFiles: ['tests/suites/interrupts.ts'],
    // What a suite prints is its report.
    disableConsoleIntercept: true,
    ...more,
  },
});
const servers = { globalSetup: ['tests/support/global-setup.ts'] };

export default defineConfig({
  test: {
    root: '.',
    projects: [
      suite('faults', ['tests/faults/faults.suite.ts']),
      suite('faults-self-test', ['tests/faults/self-test.suite.ts']),
      suite('simulate', ['tests/faults/simulate.suite.ts']),
      suite('ha', ['tests/ha/ha.suite.ts']),
      suite('planted', ['tests/planted/planted.suite.ts'], servers),
      suite('schemathesis', ['tests/attacks/schemathesis.suite.ts'], servers),
      suite(
        'attacks',
        [
          'tests/attacks/*.test.ts',
          'tests/bad-input/*.test.ts',
          'tests/contract/{credentials,access,api-keys}.e2e.test.ts',
          'services/gateway/access/*.test.ts',
          'services/gateway/http/{client-errors,body}*.test.ts',
          'libs/contracts/api-key.test.ts',
        ],
        { ...servers, env: { BANK_MODE: 'trial', STARVE_FULL: '1' }, maxWorkers: 3 },
      ),
      suite('record', ['tests/released/record.suite.ts'], servers),
      suite('pictures', ['tests/dashboard/pictures.suite.ts'], servers),
      suite('deploy', ['deploy/check/deploy.suite.ts']),
    ],
  },
});
