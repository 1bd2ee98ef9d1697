import { source } from '#libs/contracts/envelope.ts';
import { deadLetterTopics, topicName, topicTable } from '#libs/contracts/topics.ts';
import type { TopicName } from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka } from '#libs/kafka/client.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { consume } from '#libs/kafka/consume/consume.ts';
import type { Consumer } from '#libs/kafka/consume/consume.ts';
import { createPublisher } from '#libs/kafka/publish/publish.ts';
import { readMessage } from '#libs/kafka/consume/read-message.ts';
import { requireReplication } from '#libs/kafka/topics.ts';
import { checkDatabase } from '#libs/postgres/check.ts';
import { lastMigration } from '#libs/postgres/migrate.ts';
import { createPool, lookupPlans } from '#libs/postgres/pool.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { createRelay } from '#libs/postgres/outbox/relay.ts';
import { readTime } from '#libs/postgres/time.ts';
import { createClock } from '#libs/service/clock.ts';
import { kafkaOptions, loadConfig, relayOptions } from '#libs/service/config.ts';
import type { CommandConsumer } from '#libs/service/command-consumer.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { deadLetterCounter, measureClock, measureExecution, measureOutbox, measurePools } from '#libs/service/measures.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { createReplies } from '#libs/service/replies.ts';
import { run } from '#libs/service/run.ts';
import type { RunContext } from '#libs/service/run.ts';
import { createTracing, publishTracer } from '#libs/service/tracing.ts';
import { accountsConfig } from './config.ts';
import { accountsCommands, accountsQueries } from './consumer.ts';
import type { ConsumerDeps } from './consumer.ts';
import { handlingMetrics, measureBacklogs } from './measure.ts';
import { migrationsDir, schema } from './schema.ts';
import { handlingTracer } from './trace.ts';
import { createSweeper } from './commands/sweeper.ts';

type Config = ReturnType<typeof accountsConfig.parse>;

/** Reading a dead letter, and sending it: together below the 5 s that a transaction may idle. */
const deadLetterTimeoutMs = 2000;

/** Starts accounts; it is stopped in reverse order: consumers, sweeper, relay, publishers, pools, probes. */
run('accounts', async ({ logger, instance, onStop }) => {
  const config = loadConfig(accountsConfig);
  const prefix = config.TOPIC_PREFIX;
  const metrics = createMetrics('accounts');
  const tracing = await createTracing('accounts', config, logger);
  onStop('tracing', () => tracing?.stop());
  const { pool, relayPool } = createPools(config, logger);
  onStop('database pools', () => Promise.all([pool.end(), relayPool.end()]));
  await checkDatabase(pool);
  const clock = createClock({ read: () => readTime(pool), logger });
  await clock.start();
  onStop('clock', () => clock.stop());
  const brokers = kafkaOptions(config, `accounts-${instance}`);
  const kafka = createKafka(brokers, logger);
  await checkBrokers(kafka, brokers);

  const topics = topicTable(prefix);
  const repliesPublisher = createPublisher(kafka, { logger, name: 'replies', topics });
  const events = createPublisher(kafka, { logger, name: 'events', topics });
  onStop('publishers', () => Promise.all([repliesPublisher.stop(), events.stop()]));
  const tracePublished = publishTracer(tracing, prefix);
  const observe = measureOutbox(metrics, () => relay, tracePublished);
  const relay = createRelay({
    ...relayOptions(config), pool: relayPool, publisher: events, schema, source: source.accounts, logger, observe,
    topicName: (name) => topicName(prefix, name as TopicName),
  });
  onStop('outbox relay', () => relay.stop());
  const sweeper = createSweeper({ pool, prefix, wakeRelay: () => relay.wake(), logger });
  onStop('sweeper', () => sweeper.stop());

  const count = handlingMetrics(metrics);
  const trace = tracing && handlingTracer(tracing);
  const onDeadLetter = deadLetterCounter(metrics, prefix);
  const deps: Omit<ConsumerDeps, 'concurrency'> = {
    pool,
    prefix,
    logger,
    replies: createReplies({ publisher: repliesPublisher, source: source.accounts, logger, now: () => clock.now(), onDeadLetter, onReplies: tracePublished }),
    deadLetters: {
      read: (topic, partition, offset) =>
        readMessage(kafka, { topic, partition, offset }, deadLetterTimeoutMs).catch((error: unknown) => {
          logger.warn({ err: error, topic, partition, offset: String(offset) }, 'a dead letter could not be read');
          throw error;
        }),
      publish: (message) => repliesPublisher.publish(message, { timeoutMs: deadLetterTimeoutMs }),
    },
    wakeRelay: () => relay.wake(),
    now: () => new Date(clock.now()),
    observe(handled) {
      count(handled);
      trace?.(handled);
    },
  };
  const execution = accountsCommands({ ...deps, concurrency: config.COMMAND_CONCURRENCY });
  const consumers = createConsumers(kafka, config, deps, execution);
  measureExecution(metrics, execution);
  measureBacklogs(metrics, pool);
  measurePools(metrics, { pool });
  measureClock(metrics, clock);
  onStop('consumers', () => Promise.all(Object.values(consumers).map((consumer) => consumer.stop())));

  const health = createHealthServer({
    host: config.HEALTH_HOST,
    port: config.HEALTH_PORT,
    live: { commands: () => consumers.commands.alive(), queries: () => consumers.queries.alive(), relay: () => relay.health() },
    ready: {
      database: async () => (await pool.query('select 1')).rowCount === 1,
      clock: () => clock.check(),
      commands: () => consumers.commands.health(),
      execution: () => execution.health(),
      queries: () => consumers.queries.health(),
      replies: () => repliesPublisher.health(),
      events: () => events.health(),
    },
    metrics,
    logger,
  });
  onStop('health server', () => health.stop());
  onStop('readiness', () => health.drain());
  const port = await health.start();
  // Where Kafka comes late, this waits, and the probes say for what.
  if (!config.ALLOW_UNREPLICATED) await requireReplication(kafka, [...topics.keys()]);
  await Promise.all([repliesPublisher, events, ...Object.values(consumers)].map((part) => part.start()));
  relay.start();
  sweeper.start();
  logger.info({ port }, 'accounts is ready');
});

function createPools(config: Config, logger: RunContext['logger']): { pool: Pool; relayPool: Pool } {
  const common = { url: config.DATABASE_URL, schema, migration: lastMigration(migrationsDir), statement_timeout_ms: config.STATEMENT_TIMEOUT_MS };
  return {
    pool: createPool({ ...common, application_name: 'accounts', max: config.DATABASE_POOL_MAX }, logger),
    relayPool: createPool({ ...common, application_name: 'accounts-relay', max: 3, options: lookupPlans }, logger),
  };
}

function createConsumers(kafka: KafkaClient, config: Config, deps: Omit<ConsumerDeps, 'concurrency'>, execution: CommandConsumer): { commands: Consumer; queries: Consumer } {
  const { logger, prefix } = deps;
  const sessionTimeoutMs = config.SESSION_TIMEOUT_MS;
  // Each call runs one statement at a time: calls side by side are the concurrency.
  const handleQueries = accountsQueries({ ...deps, concurrency: 1 });
  return {
    commands: consume(kafka, {
      groupId: `${prefix}accounts`,
      topics: ['accounts.commands' as const, 'ledger.audit' as const, ...deadLetterTopics].map((name) => topicName(prefix, name)),
      handle: execution.handle,
      logger,
      sessionTimeoutMs,
    }),
    queries: consume(kafka, {
      groupId: `${prefix}accounts-queries`,
      topics: [topicName(prefix, 'accounts.queries')],
      handle: handleQueries,
      logger,
      sessionTimeoutMs,
      concurrency: config.QUERY_CONCURRENCY,
      maxBatch: 50,
    }),
  };
}
