import type { Logger } from 'pino';
import type { z } from 'zod';
import { type TopicName, topicName, topicTable } from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { type ConsumeOptions, Consumer } from '#libs/kafka/consume/consume.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import { requireSafeTopics } from '#libs/kafka/topics.ts';
import { checkDatabase, checkRights } from '#libs/postgres/check.ts';
import { knownMigrations, type Migrations } from '#libs/postgres/migrate.ts';
import type { Relay } from '#libs/postgres/outbox/relay.ts';
import { createPool, type Pool, type PoolOptions } from '#libs/postgres/pool.ts';
import { readTime } from '#libs/postgres/time.ts';
import { type Clock, createClock } from './clock.ts';
import { type databaseUrlConfig, inProduction, type kafkaConfig, kafkaOptions, type processConfig } from './config.ts';
import { createTracing } from './create-tracing.ts';
import { type Check, type CheckResult, createHealthServer } from './health.ts';
import { measureClock, measureExecution } from './measures.ts';
import { createMembership } from './membership.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import type { RunContext } from './run.ts';

/** Starts a service that executes commands, answers queries, and publishes the messages of its outbox. */

type Config = z.output<z.ZodObject<typeof processConfig & typeof kafkaConfig>>;

/** Creates the metrics, the tracing, and the Kafka client of a process. Nothing is connected yet. */
export async function createBasics(name: string, config: Config, { logger, instance, onStop }: RunContext) {
  const metrics = createMetrics(name);
  const tracing = await createTracing(name, instance, logger);
  onStop('tracing', () => tracing?.stop());
  const brokers = kafkaOptions(config, `${name}-${instance}`);
  const kafka = createKafka(brokers, logger);
  return { metrics, tracing, kafka, checkBrokers: () => checkBrokers(kafka, brokers) };
}

/** Returns a function that creates connection pools of the service's schema. */
export function createPoolFactory(
  config: z.output<z.ZodObject<typeof databaseUrlConfig>>,
  schemaMigrations: Migrations,
  logger: Logger,
) {
  const common = {
    url: config.DATABASE_URL,
    schema: schemaMigrations.schema,
    migrations: knownMigrations(schemaMigrations),
  };
  return (application_name: string, options: Partial<PoolOptions>): Pool =>
    createPool({ ...common, application_name, ...options }, logger);
}

/**
 * The options of the pool that only watches the database. A busy process waits for connections of its other pools, which
 * does not mean that the database is away.
 */
export const watching: Partial<PoolOptions> = { max: 1, connection_timeout_ms: 4_000 };

/** Registers the pools to be closed, rejects an unusable database, and starts the bank's clock. */
export async function connectDatabase(
  watch: Pool,
  pools: readonly Pool[],
  { logger, onStop }: RunContext,
): Promise<Clock> {
  onStop('database pools', () => Promise.all([watch, ...pools].map((each) => each.end())));
  await checkDatabase(watch);
  if (inProduction()) await checkRights(watch);
  const clock = createClock({ read: () => readTime(watch), logger });
  await clock.start();
  onStop('clock', () => clock.stop());
  return clock;
}

/**
 * After this time without a heartbeat, other processes take over the partitions. A pause of a busy production process must
 * be shorter.
 */
const sessionTimeoutMs = { production: 6_000, trial: 3_000 };

/** Returns a function that creates the consumer of a group of the service. It starts nothing. */
export function consumerGroups(
  kafka: KafkaClient,
  { TOPIC_PREFIX: prefix, BANK_MODE: mode }: Pick<Config, 'TOPIC_PREFIX' | 'BANK_MODE'>,
  logger: Logger,
) {
  return (
    name: string,
    topics: readonly TopicName[],
    options: Pick<ConsumeOptions, 'handle' | 'concurrency' | 'maxBatch' | 'fill'>,
  ): Consumer => {
    const prefixed = topics.map((topic) => topicName(prefix, topic));
    return new Consumer(kafka, {
      groupId: prefix + name,
      topics: prefixed,
      sessionTimeoutMs: sessionTimeoutMs[mode],
      logger,
      ...options,
    });
  };
}

export interface ServeOptions {
  kafka: KafkaClient;
  pool: Pool;
  /** The pool that only watches the database (`watching`). */
  watch: Pool;
  clock: Clock;
  /** Those other than `queries` execute commands or store events. */
  consumers: Record<string, Consumer> & { queries: Consumer };
  execution: { health(): CheckResult };
  publishers: Record<string, Publisher>;
  relay: Relay;
  metrics: Metrics;
  /** Further checks that must pass before the process is ready. */
  ready: Record<string, Check>;
}

/**
 * Starts the probes, and then everything that uses Kafka. While Kafka or the database is unreachable, it waits, and
 * the readiness probe names the reason. Later it leaves its consumer groups while it cannot use the database
 * (membership.ts). During a stop, consumers stop after the process has become not ready, and
 * the probes stop last.
 */
export async function serve(
  config: Config,
  { kafka, pool, watch, clock, consumers, execution, publishers, relay, metrics, ready }: ServeOptions,
  { logger, onStop }: RunContext,
): Promise<void> {
  const membership = createMembership({
    probe: () => readTime(watch),
    clock,
    members: Object.values(consumers),
    logger,
  });
  const executing = {
    health: () => {
      const member = membership.health();
      return member.ok ? execution.health() : member;
    },
  };
  measureExecution(metrics, executing);
  measureClock(metrics, clock);
  const ofConsumers = (check: (consumer: Consumer) => CheckResult): Record<string, Check> =>
    Object.fromEntries(Object.entries(consumers).map(([name, consumer]) => [name, () => check(consumer)]));
  const health = createHealthServer({
    ...config.HEALTH_PORT,
    live: { ...ofConsumers((consumer) => consumer.alive()), relay: () => relay.health() },
    ready: {
      database: async () => (await pool.query('select')).rowCount === 1,
      clock: () => clock.check(),
      ...ofConsumers((consumer) => consumer.health()),
      execution: () => executing.health(),
      ...ready,
    },
    metrics,
    logger,
  });
  onStop('health server', () => health.stop());
  onStop('consumers', () => Promise.all(Object.values(consumers).map((consumer) => consumer.stop())));
  onStop('readiness', () => health.drain());
  await health.start();
  if (config.BANK_MODE === 'production') await requireSafeTopics(kafka, topicTable(config.TOPIC_PREFIX));
  await Promise.all(Object.values(publishers).map((publisher) => publisher.start()));
  onStop('membership', () => membership.stop());
  await membership.start();
  relay.start();
}
