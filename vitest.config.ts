import { defineConfig } from 'vitest/config';

/**
 * Three projects, run one after the other: `unit` (*.test.ts) needs nothing; `integration` (*.int.test.ts) and `e2e`
 * (*.e2e.test.ts, whole banks of several processes) get a real Kafka and Postgres from tests/support/global-setup.ts.
 * The numbers of workers suit two cores: end-to-end tests start processes of their own, but wait for them half of the time.
 */
const shared = { testTimeout: 60_000, hookTimeout: 120_000, pool: 'forks', env: { NODE_ENV: 'test' } } as const;
const servers = ['tests/support/global-setup.ts'];
const exclude = ['**/node_modules/**', '**/.local/**'];

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...shared,
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...exclude, '**/*.int.test.ts', '**/*.e2e.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...shared,
          name: 'integration',
          include: ['**/*.int.test.ts'],
          exclude,
          globalSetup: servers,
          // kafkajs as published, which clients/consumer is tried with, has timers that Node 24 warns of.
          execArgv: ['--disable-warning=TimeoutNegativeWarning'],
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: { ...shared, name: 'e2e', include: ['**/*.e2e.test.ts'], exclude, globalSetup: servers, maxWorkers: 2, sequence: { groupOrder: 3 } },
      },
    ],
  },
});
