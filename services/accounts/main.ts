import { topicTable } from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { requireReplication } from '#libs/kafka/topics.ts';
import { checkDatabase } from '#libs/postgres/check.ts';
import { readTime } from '#libs/postgres/time.ts';
import { createClock } from '#libs/service/clock.ts';
import { kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { measureClock, measureExecution, measurePools } from '#libs/service/measures.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { run } from '#libs/service/run.ts';
import { macKeys } from '#libs/service/signing.ts';
import { createTracing } from '#libs/service/tracing.ts';
import { createAuditVerifier } from './audit/audit-checks.ts';
import { createHeadPublisher } from './audit/audit-heads.ts';
import { createSweeper } from './commands/sweeper.ts';
import { accountsConfig } from './config.ts';
import { createConsumers } from './consumers.ts';
import { measureBacklogs, observeHandled } from './measure.ts';
import { createPools } from './pools.ts';
import { createAccountsPublishing } from './publishing.ts';

/** Starts accounts. It stops in reverse order: readiness, probes, consumers, sweeper, relay, publishers, pools. */
run('accounts', async ({ logger, instance, onStop }) => {
  const config = loadConfig(accountsConfig);
  const prefix = config.TOPIC_PREFIX;
  const metrics = createMetrics('accounts');
  const tracing = await createTracing('accounts', config, logger);
  onStop('tracing', () => tracing?.stop());
  const { pool, relayPool, verifyPool } = createPools(config, logger);
  onStop('database pools', () => Promise.all([pool.end(), relayPool.end(), verifyPool.end()]));
  await checkDatabase(pool);
  const clock = createClock({ read: () => readTime(pool), logger });
  await clock.start();
  onStop('clock', () => clock.stop());
  const brokers = kafkaOptions(config, `accounts-${instance}`);
  const kafka = createKafka(brokers, logger);
  await checkBrokers(kafka, brokers);

  const keys = macKeys(config);
  const { publishers, replies, deadLetters, relay } = createAccountsPublishing(kafka, config, {
    keys,
    pool,
    relayPool,
    metrics,
    tracing,
    now: () => clock.now(),
    logger,
  });
  onStop('publishers', () => Promise.all(Object.values(publishers).map((publisher) => publisher.stop())));
  onStop('outbox relay', () => relay.stop());
  const wakeRelay = () => relay.wake();
  const sweeper = createSweeper({ pool, prefix, wakeRelay, logger });
  onStop('sweeper', () => sweeper.stop());
  const auditVerifier = createAuditVerifier({
    pool: verifyPool,
    reads: pool,
    now: () => new Date(clock.now()),
    wakeRelay,
    logger,
  });
  onStop('audit verifier', () => auditVerifier.stop());
  const heads = createHeadPublisher({ pool, now: () => new Date(clock.now()), wakeRelay, logger });
  onStop('audit heads', () => heads.stop());

  const { commands, queries, execution } = createConsumers(kafka, config, {
    pool,
    prefix,
    keys,
    logger,
    replies,
    deadLetters,
    retention: {
      years: config.RETENTION_YEARS,
      eventsDays: config.EVENTS_RETENTION_DAYS,
      outboxHours: config.OUTBOX_RETENTION_HOURS,
    },
    auditVerifier,
    wakeRelay,
    now: () => new Date(clock.now()),
    observe: observeHandled(metrics, tracing),
  });
  measureExecution(metrics, execution);
  measureBacklogs(metrics, pool);
  measurePools(metrics, { pool });
  measureClock(metrics, clock);
  onStop('consumers', () => Promise.all([commands.stop(), queries.stop()]));

  const health = createHealthServer({
    host: config.HEALTH_HOST,
    port: config.HEALTH_PORT,
    live: { commands: () => commands.alive(), queries: () => queries.alive(), relay: () => relay.health() },
    ready: {
      database: async () => (await pool.query('select 1')).rowCount === 1,
      clock: () => clock.check(),
      commands: () => commands.health(),
      execution: () => execution.health(),
      queries: () => queries.health(),
      replies: () => publishers.replies.health(),
      events: () => publishers.events.health(),
    },
    metrics,
    logger,
  });
  onStop('health server', () => health.stop());
  onStop('readiness', () => health.drain());
  const port = await health.start();
  // If Kafka is unreachable, this waits, and the readiness probe says for what.
  if (!config.ALLOW_UNREPLICATED) await requireReplication(kafka, [...topicTable(prefix).keys()]);
  await Promise.all([...Object.values(publishers), commands, queries].map((part) => part.start()));
  relay.start();
  sweeper.start();
  heads.start();
  logger.info({ port }, 'accounts is ready');
});
