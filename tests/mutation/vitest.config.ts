import { defineConfig } from 'vitest/config';

/**
 * The tests that Stryker runs against each mutant: the unit tests of the pure code of posting and of the order of
 * events, without the slow ones over random commands.
 */
export default defineConfig({
  test: {
    include: [
      'services/ledger/domain/*.test.ts',
      'services/ledger/batch/*.test.ts',
      'libs/contracts/money.test.ts',
      'libs/contracts/ids.test.ts',
    ],
    exclude: ['**/*.int.test.ts', '**/*-properties.test.ts', '**/node_modules/**'],
    testTimeout: 60_000,
  },
});
