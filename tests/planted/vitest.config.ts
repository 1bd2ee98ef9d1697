import { defineConfig } from 'vitest/config';

/** For run.ts, which starts the servers: the unit and integration tests that it selects. */
export default defineConfig({
  test: {
    root: '.',
    include: ['**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/*.e2e.test.ts'],
    env: { BANK_MODE: 'trial' },
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 240_000,
  },
});
