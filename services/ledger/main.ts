import { topicTable } from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { createKafka } from '#libs/kafka/client.ts';
import type { Consumer, ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { requireReplication } from '#libs/kafka/topics.ts';
import { checkDatabase } from '#libs/postgres/check.ts';
import { readTime } from '#libs/postgres/time.ts';
import { createClock } from '#libs/service/clock.ts';
import { kafkaOptions, loadConfig } from '#libs/service/config.ts';
import { type CheckResult, createHealthServer } from '#libs/service/health.ts';
import { measureClock, measureExecution, measurePools } from '#libs/service/measures.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { run } from '#libs/service/run.ts';
import { macKeys } from '#libs/service/signing.ts';
import { createTracing } from '#libs/service/tracing.ts';
import { ledgerBatches } from './batch/batches.ts';
import { ledgerCommands } from './batch/commands.ts';
import { createHoldSweeper } from './batch/hold-sweeper.ts';
import { ledgerConfig } from './config.ts';
import { createConsumers } from './consumers.ts';
import { createEraser } from './erasure/erase-texts.ts';
import { measureBooks, observeBatches } from './measure.ts';
import { createPools } from './pools.ts';
import { createHistory, createLedgerPublishing } from './publishing.ts';
import { ledgerQueries } from './queries/serve-queries.ts';
import { createVerifier } from './verify/verifications.ts';

/** Single commands are considered to be arriving if the last ones are not older, in ms. */
const recentMs = 1_000;
const partitionsOf = (consumer: Consumer): number[] => consumer.assigned().flatMap(({ partitions }) => partitions);
const worseOf = (one: CheckResult, other: CheckResult): CheckResult => (one.ok ? other : one);

/** Starts the ledger. It stops in reverse order: readiness, consumers, probes, verifications, publishers, pools. */
run('ledger', async ({ logger, instance, onStop }) => {
  const config = loadConfig(ledgerConfig);
  const prefix = config.TOPIC_PREFIX;
  const metrics = createMetrics('ledger');
  const tracing = await createTracing('ledger', config, logger);
  onStop('tracing', () => tracing?.stop());
  const brokers = kafkaOptions(config, `ledger-${instance}`);
  const kafka = createKafka(brokers, logger);
  const history = createHistory(kafka, prefix);
  const pools = createPools(config, instance, (client) => history.verify(client), logger);
  for (const [name, pool] of Object.entries(pools)) onStop(name, () => pool.end());
  const { writes, reads, searches, verifyPool } = pools;
  await checkDatabase(reads);
  const clock = createClock({ read: () => readTime(reads), logger });
  await clock.start();
  onStop('clock', () => clock.stop());
  await checkBrokers(kafka, brokers);

  const now = () => clock.now();
  const keys = macKeys(config);
  const { publishers, replies, relay, auditSender } = createLedgerPublishing(kafka, config, {
    keys,
    pools,
    history,
    metrics,
    tracing,
    now,
    logger,
  });
  onStop('publishers', () => Promise.all(Object.values(publishers).map((publisher) => publisher.stop())));
  onStop('relay', () => relay.stop());
  onStop('audit sender', () => auditSender.stop());
  const verifier = createVerifier({ pool: verifyPool, reads, now, logger });
  const holdSweeper = createHoldSweeper({ pool: writes, wake: () => relay.wake(), logger });
  onStop('hold sweeper', () => holdSweeper.stop());
  onStop('verifier', () => verifier.stop());

  const answerQueries = ledgerQueries({
    pool: reads,
    searches,
    replies,
    prefix,
    keys,
    logger,
    now,
    concurrency: config.DATABASE_POOL_MAX,
    verifier,
    eraser: createEraser(pools.erasures),
  });
  const writing = {
    pool: writes,
    replies,
    prefix,
    keys,
    logger,
    wake: () => relay.wake(),
    observe: observeBatches(metrics, tracing),
    answerQueries,
  };
  const pace = { full: config.BATCH_MAX, ms: config.BATCH_PACE_MS };
  const singles = ledgerCommands({ ...writing, pace, partitions: () => partitionsOf(commands) });
  let singlesAt = -Infinity;
  const hasSingles = () => performance.now() - singlesAt < recentMs;
  const callersBatches = ledgerBatches({ ...writing, hasSingles, partitions: () => partitionsOf(batches) });
  const takeSingles = (messages: ReceivedMessage[]) => {
    singlesAt = performance.now();
    return singles.handle(messages);
  };
  const { commands, batches, queries } = createConsumers(
    kafka,
    config,
    { commands: takeSingles, batches: callersBatches.handle, queries: answerQueries },
    logger,
  );
  const execution = { health: () => worseOf(singles.health(), callersBatches.health()) };
  measurePools(metrics, { writes, reads, searches });
  measureClock(metrics, clock);
  measureBooks(metrics, reads, () => relay.active());
  measureExecution(metrics, execution);

  const health = createHealthServer({
    host: config.HEALTH_HOST,
    port: config.HEALTH_PORT,
    metrics,
    logger,
    live: {
      commands: () => commands.alive(),
      batches: () => batches.alive(),
      queries: () => queries.alive(),
      relay: () => relay.health(),
    },
    ready: {
      database: async () => (await reads.query('select')).rowCount === 1,
      clock: () => clock.check(),
      history: () => history.health(),
      commands: () => commands.health(),
      batches: () => batches.health(),
      execution: () => execution.health(),
      queries: () => queries.health(),
      replies: () => publishers.replies.health(),
    },
  });
  await health.start();
  onStop('health', () => health.stop());
  onStop('consumers', () => Promise.all([commands, batches, queries].map((consumer) => consumer.stop())));
  onStop('drain', () => health.drain());
  // If Kafka is unreachable, this waits, and the readiness probe says for what.
  if (!config.ALLOW_UNREPLICATED) await requireReplication(kafka, [...topicTable(prefix).keys()]);
  await Promise.all([...Object.values(publishers), commands, batches, queries].map((part) => part.start()));
  relay.start();
  auditSender.start();
  holdSweeper.start();
});
