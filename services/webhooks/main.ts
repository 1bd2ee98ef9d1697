import { leastStoredDays, topicName, topicTable } from '#libs/contracts/topics.ts';
import { createSecretKeys } from '#libs/contracts/webhook-secret.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { requireReplication } from '#libs/kafka/topics.ts';
import { repeatUntilDone, startTimeoutMs } from '#libs/kafka/wait.ts';
import { checkDatabase } from '#libs/postgres/check.ts';
import { lastMigration } from '#libs/postgres/migrate.ts';
import { createPool, lookupPlans } from '#libs/postgres/pool.ts';
import { readTime } from '#libs/postgres/time.ts';
import { allowedAddresses } from '#libs/service/addresses.ts';
import { createClock } from '#libs/service/clock.ts';
import { kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { measureClock, measureExecution, measurePools } from '#libs/service/measures.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { isDefect } from '#libs/service/poison.ts';
import { createPublishing } from '#libs/service/publishing.ts';
import { run } from '#libs/service/run.ts';
import { macKeys } from '#libs/service/signing.ts';
import { createTracing } from '#libs/service/tracing.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { webhooksConfig } from './config.ts';
import { type ConsumerDeps, createConsumers, webhooksCommands, webhooksQueries } from './consumers.ts';
import { createDeliverer } from './deliveries/deliverer.ts';
import { createSender } from './deliveries/send.ts';
import { createSweeper } from './deliveries/sweeper.ts';
import { createEventConsumer } from './events/consume-events.ts';
import { countWork, measureDeliveries } from './measure.ts';
import { migrationsDir, schema } from './schema.ts';
import { resealSecrets } from './webhooks/reseal.ts';

/** Returns a defect, such as a secret whose key is not configured, which no repeat would mend; throws anything else. */
function defectAsValue(error: Error): Error {
  if (isDefect(error)) return error;
  throw error;
}

/** Starts webhooks. It stops in reverse order: readiness, probes, consumers, deliveries, relay, publishers, pools. */
run('webhooks', async ({ logger, instance, onStop }) => {
  const config = loadConfig(webhooksConfig);
  const prefix = config.TOPIC_PREFIX;
  const metrics = createMetrics('webhooks');
  const tracing = await createTracing('webhooks', config, logger);
  onStop('tracing', () => tracing?.stop());
  const common = {
    url: config.DATABASE_URL,
    schema,
    migration: lastMigration(migrationsDir),
    statement_timeout_ms: config.STATEMENT_TIMEOUT_MS,
  };
  const pool = createPool({ ...common, application_name: 'webhooks', max: config.DATABASE_POOL_MAX }, logger);
  const relayPool = createPool({ ...common, application_name: 'webhooks-relay', max: 3, options: lookupPlans }, logger);
  onStop('database pools', () => Promise.all([pool.end(), relayPool.end()]));
  await checkDatabase(pool);
  const clock = createClock({ read: () => readTime(pool), logger });
  await clock.start();
  onStop('clock', () => clock.stop());
  const brokers = kafkaOptions(config, `webhooks-${instance}`);
  const kafka = createKafka(brokers, logger);
  await checkBrokers(kafka, brokers);
  const secretKeys = createSecretKeys(config.WEBHOOK_SECRET_KEYS);

  const now = () => clock.now();
  const keys = macKeys(config);
  const audited = topicName(prefix, 'accounts.commands');
  const { publishers, replies, relay } = createPublishing(kafka, config, {
    service: 'webhooks',
    schema,
    relayPool,
    metrics,
    tracing,
    now,
    logger,
    signEvent: (message) => void (message.topic === audited && keys.sign('webhooks', message)),
  });
  onStop('publishers', () => Promise.all(Object.values(publishers).map((publisher) => publisher.stop())));
  onStop('outbox relay', () => relay.stop());
  const count = countWork(metrics);
  const addresses = allowedAddresses(config.WEBHOOK_ALLOW_NETWORKS);
  const sender = createSender(addresses);
  onStop('connections to receivers', () => sender.stop());
  const deliverer = createDeliverer({
    pool,
    sender,
    secretKeys,
    now,
    concurrency: config.WEBHOOK_CONCURRENCY,
    userAgent: `core-banking/${packageJson.version}`,
    logger,
    observe: count.attempt,
    onDisabled() {
      count.disabled();
      relay.wake();
    },
  });
  onStop('deliveries', () => deliverer.stop());
  const retentionDays =
    config.EVENTS_RETENTION_DAYS === -1 ? -1 : Math.max(config.EVENTS_RETENTION_DAYS, leastStoredDays);
  const sweeper = createSweeper({ pool, retentionDays, logger });
  onStop('sweeper', () => sweeper.stop());
  const onWritten = () => {
    relay.wake();
    deliverer.wake();
  };
  const deps: ConsumerDeps = {
    pool,
    prefix,
    keys,
    logger,
    replies,
    addresses,
    retentionDays,
    onWritten,
    now: () => new Date(now()),
    observe: count.command,
  };
  const execution = webhooksCommands(deps);
  const onStored = (stored: number) => {
    count.stored(stored);
    deliverer.wake();
  };
  const storing = createEventConsumer({ pool, logger, onStored, onUnreadable: count.unreadable });
  const consumers = createConsumers(
    kafka,
    prefix,
    config.SESSION_TIMEOUT_MS,
    { commands: execution.handle, queries: webhooksQueries(deps), events: storing },
    logger,
  );
  const { commands, queries, events } = consumers;
  onStop('consumers', () => Promise.all(Object.values(consumers).map((consumer) => consumer.stop())));
  measureExecution(metrics, execution);
  measureDeliveries(metrics, pool, deliverer);
  measurePools(metrics, { pool });
  measureClock(metrics, clock);

  const health = createHealthServer({
    host: config.HEALTH_HOST,
    port: config.HEALTH_PORT,
    live: {
      commands: () => commands.alive(),
      queries: () => queries.alive(),
      events: () => events.alive(),
      relay: () => relay.health(),
    },
    ready: {
      database: async () => (await pool.query('select 1')).rowCount === 1,
      clock: () => clock.check(),
      commands: () => commands.health(),
      execution: () => execution.health(),
      queries: () => queries.health(),
      events: () => events.health(),
      replies: () => publishers.replies.health(),
      outbox: () => publishers.events.health(),
    },
    metrics,
    logger,
  });
  onStop('health server', () => health.stop());
  onStop('readiness', () => health.drain());
  const port = await health.start();
  // If Postgres or Kafka is unreachable, this waits, and the readiness probe says for what.
  const resealed = await repeatUntilDone(() => resealSecrets(pool, secretKeys).catch(defectAsValue), startTimeoutMs);
  if (resealed instanceof Error) throw resealed;
  if (resealed > 0) logger.info({ webhooks: resealed }, 'secrets were sealed with the new key');
  if (!config.ALLOW_UNREPLICATED) await requireReplication(kafka, [...topicTable(prefix).keys()]);
  await Promise.all([...Object.values(publishers), ...Object.values(consumers)].map((part) => part.start()));
  relay.start();
  deliverer.start();
  sweeper.start();
  logger.info({ port }, 'webhooks is ready');
});
