import { expect, type Part, run } from './check.ts';

/** Of each kind some: what talks to a broker and a database directly, and whole banks. */
const files = ['libs/kafka/publish/publish.int.test.ts', 'libs/kafka/consume/consume.int.test.ts', 'libs/postgres/migrate.int.test.ts', 'libs/postgres/outbox/relay.int.test.ts', 'services/ledger/batch/engine.int.test.ts', 'tests/contract/idempotency.e2e.test.ts', 'tests/failures/redelivery.e2e.test.ts'];

/** The suite against a Postgres and a Kafka that testcontainers starts, instead of local processes. */
export const testcontainers: Part = {
  name: 'testcontainers',
  needsEngine: true,
  async run(check) {
    await check.step('tests of the suite against Postgres and Kafka in containers', async () => {
      const env = { ...check.env, KAFKA_BROKERS: '', DATABASE_URL: '', NO_COLOR: '1' };
      const { stdout } = await run('npx', ['vitest', 'run', ...files], { env, timeoutMs: 15 * 60_000 });
      expect(stdout.includes('Test servers: containers'), 'they ran against something else');
      return stdout.split('\n').filter((line) => /^\s+(Test Files|Tests)\s/.test(line)).map((line) => line.trim().replaceAll(/\s+/g, ' ')).join(', ');
    });
  },
};
