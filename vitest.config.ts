import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The kinds run one after the other. `unit*` (*.test.ts) needs no servers; `integration*` (*.int.test.ts), and `e2e*`
 * (*.e2e.test.ts, complete banks of several processes) get a real Kafka and Postgres from
 * tests/support/global-setup.ts. The numbers of workers suit two cores: three end-to-end files, which start their own
 * processes, use both of them all the time, and five integration files only half of them, because they wait for sessions
 * and leases to end.
 *
 * Modules are loaded once per worker, because loading them for each file took most of the time of most files.
 */
const shared = {
  testTimeout: 60_000,
  hookTimeout: 120_000,
  pool: 'forks',
  isolate: false,
  // Node loads the sources itself, as it does in production, and each worker gets them compiled from the first.
  experimental: { viteModuleRunner: false },
  env: { BANK_MODE: 'trial', NODE_COMPILE_CACHE: `${import.meta.dirname}/node_modules/.cache/node-compile-cache` },
} as const;
const servers = ['tests/support/global-setup.ts'];
const exclude = ['**/node_modules/**', '**/.local/**'];
const notUnit = [...exclude, '**/*.int.test.ts', '**/*.e2e.test.ts'];
/** A task in a browser takes a minute and more when three files run on a machine that does other things, too. */
const e2e = {
  ...shared,
  testTimeout: 180_000,
  globalSetup: servers,
  maxWorkers: 3,
  sequence: { groupOrder: 3 },
} as const;
const unit = { ...shared, maxWorkers: 2, maxConcurrency: 24, sequence: { groupOrder: 1 } } as const;
const integration = {
  ...shared,
  testTimeout: 120_000,
  globalSetup: servers,
  // kafkajs as published, which clients/consumer is tested with, uses timers that Node 24 warns about.
  execArgv: ['--disable-warning=TimeoutNegativeWarning'],
  maxWorkers: 6,
  sequence: { groupOrder: 2 },
};
/** These files need processes of their own: kafkajs is as published in some and patched in others, or they change the environment. */
const apart = ['libs/kafka/**/*.int.test.ts', 'clients/consumer/*.int.test.ts', 'tests/failures/*.int.test.ts'];

/** One story of each kind of user: newcomers, callers of the API, consumers of events, staff, operators. `npm test` runs them. */
const stories = [
  'tests/documents/readme.e2e.test.ts',
  'tests/contract/interface.e2e.test.ts',
  'tests/events/events.e2e.test.ts',
  'tests/dashboard/tasks.e2e.test.ts',
  'tests/failures/rollout.e2e.test.ts',
];

/**
 * These files take longest. They start first, so that no worker is left alone with one at the end.
 * vitest knows durations only after a first run, and starts with the largest files until then.
 */
const longest = [
  'tests/dashboard/tasks',
  'tools/local/start',
  'tests/dashboard/',
  'tests/documents/',
  'tests/failures/',
  'tests/contract/webhooks',
  'tests/attacks/audit',
  'clients/consumer/examples',
  'libs/postgres/outbox/relay',
  'services/webhooks/deliveries/deliveries',
  'clients/consumer/members',
  'tests/events/late-copies',
  'libs/kafka/consume/consume',
  'tools/local/refused-starts',
  'services/ledger/verify/verify-events',
  'clients/consumer/',
];

/** The files of the shared bank are last and together, because even an idle bank takes a tenth of a core. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      if (readFileSync(moduleId, 'utf8').includes('useSharedBank(')) return longest.length + 1;
      const found = longest.findIndex((path) => moduleId.includes(path));
      return found < 0 ? longest.length : found;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: { ...unit, name: 'unit', include: ['**/*.test.ts'], exclude: [...notUnit, 'libs/kafka/**'] } },
      {
        // These compare kafkajs as published with its replacements, so they need separate processes.
        test: { ...unit, name: 'unit-kafka', isolate: true, include: ['libs/kafka/**/*.test.ts'], exclude: notUnit },
      },
      { test: { ...integration, name: 'integration', include: ['**/*.int.test.ts'], exclude: [...exclude, ...apart] } },
      { test: { ...integration, name: 'integration-apart', isolate: true, include: apart, exclude } },
      { test: { ...e2e, name: 'e2e-stories', include: stories, exclude } },
      { test: { ...e2e, name: 'e2e', include: ['**/*.e2e.test.ts'], exclude: [...exclude, ...stories] } },
    ],
  },
});
