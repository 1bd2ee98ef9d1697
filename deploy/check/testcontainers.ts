import { expect, type Part, run } from './check.ts';

/** Some tests of each kind: with a broker and a database directly, and with complete banks. */
const files = [
  'libs/kafka/publish/publish.int.test.ts',
  'libs/kafka/consume/consume.int.test.ts',
  'libs/postgres/migrate.int.test.ts',
  'libs/postgres/outbox/relay.int.test.ts',
  'services/ledger/batch/engine.int.test.ts',
  'tests/contract/idempotency.e2e.test.ts',
  'tests/failures/redelivery.e2e.test.ts',
];

const title = 'tests of the suite against Postgres and Kafka in containers';

/** Runs tests with a Postgres and a Kafka started by testcontainers instead of local processes. */
export const testcontainers: Part = {
  name: 'testcontainers',
  needsEngine: true,
  planted: { defect: 'an engine that cannot be reached', foundBy: title, says: /ran against something else/ },
  async run(check) {
    await check.step(title, async () => {
      const env = {
        ...check.env,
        KAFKA_BROKERS: '',
        DATABASE_URL: '',
        NO_COLOR: '1',
        ...(check.selfTest ? { DOCKER_HOST: 'unix:///nowhere.sock' } : {}),
      };
      const { stdout } = await run('npx', ['vitest', 'run', ...(check.selfTest ? files.slice(0, 1) : files)], {
        env,
        timeoutMs: 60 * 60_000,
      });
      expect(stdout.includes('Test servers: containers'), 'they ran against something else');
      return stdout
        .split('\n')
        .filter((line) => /^\s+(Test Files|Tests)\s/.test(line))
        .map((line) => line.trim().replaceAll(/\s+/g, ' '))
        .join(', ');
    });
  },
};
