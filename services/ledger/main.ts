import { source } from '#libs/contracts/envelope.ts';
import { type TopicName, topicName, topicTable } from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { consume } from '#libs/kafka/consume/consume.ts';
import { createPublisher } from '#libs/kafka/publish/publish.ts';
import { readLastValue } from '#libs/kafka/consume/read-message.ts';
import { requireReplication } from '#libs/kafka/topics.ts';
import { checkDatabase } from '#libs/postgres/check.ts';
import { History } from '#libs/postgres/outbox/history.ts';
import { lastMigration } from '#libs/postgres/migrate.ts';
import { type ClientBase, createPool, lookupPlans } from '#libs/postgres/pool.ts';
import { readTime } from '#libs/postgres/time.ts';
import { createRelay, type RelayOptions } from '#libs/postgres/outbox/relay.ts';
import { createClock } from '#libs/service/clock.ts';
import { kafkaOptions, relayOptions } from '#libs/service/config.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { deadLetterCounter, measureClock, measureExecution, measureOutbox, measurePools } from '#libs/service/measures.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { createReplies } from '#libs/service/replies.ts';
import { run } from '#libs/service/run.ts';
import { createTracing, publishTracer } from '#libs/service/tracing.ts';
import { createAuditSender } from './audit/audit-sender.ts';
import { ledgerCommands } from './batch/commands.ts';
import { loadLedgerConfig } from './config.ts';
import { batchMetrics, measureBooks } from './measure.ts';
import { ledgerSchema, migrationsDir } from './migrate.ts';
import { restateBalances } from './batch/restate.ts';
import { ledgerQueries } from './queries/serve-queries.ts';
import { batchTracer } from './trace.ts';
import { createVerifier } from './verify/verifications.ts';

const queryConcurrency = 4;
const readTimeoutMs = 2_000;

run('ledger', async ({ logger, instance, onStop }) => {
  const config = loadLedgerConfig();
  const prefix = config.TOPIC_PREFIX;
  const metrics = createMetrics('ledger');
  const tracing = await createTracing('ledger', config, logger);
  onStop('tracing', () => tracing?.stop());
  const database = { url: config.DATABASE_URL, application_name: `ledger ${instance}`, schema: ledgerSchema, migration: lastMigration(migrationsDir), statement_timeout_ms: config.STATEMENT_TIMEOUT_MS };
  const verify = (client: ClientBase) => history.verify(client);
  // One writer per process is enough.
  const writes = createPool({ ...database, verify, max: 2, options: lookupPlans }, logger);
  const reads = createPool({ ...database, max: config.DATABASE_POOL_MAX }, logger);
  const relayPool = createPool({ ...database, verify, max: 4, options: lookupPlans }, logger);
  // One connection for the lock, one for the check.
  const verifyPool = createPool({ ...database, application_name: `ledger ${instance} verifies`, max: 2 }, logger);
  for (const [name, pool] of Object.entries({ writes, reads, relayPool, verifyPool })) onStop(name, () => pool.end());
  await checkDatabase(reads);
  const clock = createClock({ read: () => readTime(reads), logger });
  await clock.start();
  onStop('clock', () => clock.stop());

  const brokers = kafkaOptions(config, `ledger-${instance}`);
  const kafka = createKafka(brokers, logger);
  await checkBrokers(kafka, brokers);
  const topics = topicTable(prefix);
  const repliesPublisher = createPublisher(kafka, { logger, name: 'replies', topics, maxQueued: 50_000 });
  const events = createPublisher(kafka, { logger, name: 'events', topics });
  const audits = createPublisher(kafka, { logger, name: 'audits', topics });
  onStop('publishers', () => Promise.all([repliesPublisher.stop(), events.stop(), audits.stop()]));

  const nameOf = (name: string) => topicName(prefix, name as TopicName);
  const readLast = () => readLastValue(kafka, nameOf('ledger.position'), readTimeoutMs);
  const history = new History({ topic: 'ledger.position', source: source.ledger, readLast });
  const tracePublished = publishTracer(tracing, prefix);
  const observe = measureOutbox(metrics, () => relay, tracePublished);
  const restate: RelayOptions['restate'] = (messages) => restateBalances(writes, messages, nameOf('balances'));
  const relay = createRelay({
    ...relayOptions(config), pool: relayPool, publisher: events, schema: 'ledger', source: source.ledger, logger, observe,
    topicName: nameOf, restate, history,
  });
  onStop('relay', () => relay.stop());
  const auditSender = createAuditSender({ pool: relayPool, publisher: audits, prefix, logger });
  onStop('audit sender', () => auditSender.stop());

  const verifier = createVerifier({ pool: verifyPool, reads, now: () => clock.now(), logger });
  onStop('verifier', () => verifier.stop());

  const countBatch = batchMetrics(metrics);
  const traceBatch = tracing && batchTracer(tracing);
  measurePools(metrics, { writes, reads });
  measureClock(metrics, clock);
  measureBooks(metrics, reads, () => relay.active());
  const replies = createReplies({ publisher: repliesPublisher, source: source.ledger, logger, now: () => clock.now(), onDeadLetter: deadLetterCounter(metrics, prefix), onReplies: tracePublished });
  const answerQueries = ledgerQueries({ pool: reads, replies, prefix, logger, now: () => clock.now(), concurrency: config.DATABASE_POOL_MAX, verifier });
  const execution = ledgerCommands({
    pool: writes,
    replies,
    prefix,
    logger,
    pace: { full: config.BATCH_MAX, ms: config.BATCH_PACE_MS },
    wake: () => relay.wake(),
    partitions: () => commands.assigned().flatMap(({ partitions }) => partitions),
    observe: (batch) => {
      countBatch(batch);
      traceBatch?.(batch);
    },
    answerQueries,
  });
  measureExecution(metrics, execution);
  const commands = consume(kafka, {
    groupId: `${prefix}ledger`,
    topics: [topicName(prefix, 'ledger.commands')],
    maxBatch: config.BATCH_MAX,
    sessionTimeoutMs: config.SESSION_TIMEOUT_MS,
    logger,
    handle: execution.handle,
  });
  const queries = consume(kafka, {
    groupId: `${prefix}ledger-queries`,
    topics: [topicName(prefix, 'ledger.queries')],
    concurrency: queryConcurrency,
    sessionTimeoutMs: config.SESSION_TIMEOUT_MS,
    logger,
    handle: answerQueries,
  });

  const health = createHealthServer({
    host: config.HEALTH_HOST,
    port: config.HEALTH_PORT,
    metrics,
    logger,
    live: { commands: () => commands.alive(), queries: () => queries.alive(), relay: () => relay.health() },
    ready: {
      database: async () => (await reads.query('select')).rowCount === 1,
      clock: () => clock.check(),
      history: () => history.health(),
      commands: () => commands.health(),
      execution: () => execution.health(),
      queries: () => queries.health(),
      replies: () => repliesPublisher.health(),
    },
  });
  await health.start();
  onStop('health', () => health.stop());
  onStop('consumers', () => Promise.all([commands.stop(), queries.stop()]));
  onStop('drain', () => health.drain());
  // Where Kafka comes late, this waits, and the probes say for what.
  if (!config.ALLOW_UNREPLICATED) await requireReplication(kafka, [...topics.keys()]);
  await Promise.all([repliesPublisher, events, audits, commands, queries].map((part) => part.start()));
  relay.start();
  auditSender.start();
});
