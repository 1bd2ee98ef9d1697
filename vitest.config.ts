import { defineConfig } from 'vitest/config';

/**
 * Run one after the other: `unit` and `unit-kafka` (*.test.ts) need nothing; `integration`
 * (*.int.test.ts) and `e2e` (*.e2e.test.ts, whole banks of several processes) get a real Kafka and
 * Postgres from tests/support/global-setup.ts. The numbers of workers suit two cores: end-to-end
 * tests start processes of their own, but wait for them more than half of the time.
 */
const shared = { testTimeout: 60_000, hookTimeout: 120_000, pool: 'forks', env: { NODE_ENV: 'test' } } as const;
const servers = ['tests/support/global-setup.ts'];
const exclude = ['**/node_modules/**', '**/.local/**'];
const notUnit = [...exclude, '**/*.int.test.ts', '**/*.e2e.test.ts'];
const unit = { ...shared, include: ['**/*.test.ts'], maxWorkers: 2 } as const;

export default defineConfig({
  test: {
    projects: [
      {
        // Modules are loaded once per worker: most of the time was loading the same ones for each file.
        test: {
          ...unit,
          name: 'unit',
          isolate: false,
          exclude: [...notUnit, 'libs/kafka/**'],
          sequence: { groupOrder: 1 },
        },
      },
      {
        // These compare kafkajs as published with what is replaced in it, file by file.
        test: {
          ...unit,
          name: 'unit-kafka',
          include: ['libs/kafka/**/*.test.ts'],
          exclude: notUnit,
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
        test: {
          ...shared,
          name: 'e2e',
          include: ['**/*.e2e.test.ts'],
          exclude,
          globalSetup: servers,
          maxWorkers: 3,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
