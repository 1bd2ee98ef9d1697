import { topicName } from '#libs/contracts/topics.ts';
import type { Consumer, ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { topicRanges } from '#libs/kafka/topics.ts';
import { readTime } from '#libs/postgres/time.ts';
import { loadConfig } from '#libs/service/config.ts';
import { cpuMeter } from '#libs/service/cpu-meter.ts';
import { calendarIn } from '#libs/service/days.ts';
import { firstFailure } from '#libs/service/faults.ts';
import { measurePools, onDuty } from '#libs/service/measures.ts';
import { run } from '#libs/service/run.ts';
import { connectDatabase, consumerGroups, createBasics, serve } from '#libs/service/service.ts';
import { macKeys } from '#libs/service/signing.ts';
import { createVerifier } from '#libs/service/verifications.ts';
import { ledgerBatches } from './batch/batches.ts';
import { type DecidedBatch, ledgerCommands } from './batch/commands.ts';
import { createHoldSweeper } from './batch/hold-sweeper.ts';
import { createCloser } from './closings/closer.ts';
import { checkZone } from './closings/zone.ts';
import { ledgerConfig } from './config.ts';
import { setCalendar } from './domain/calendar.ts';
import { measureBooks, measurePartitions, observeBatches } from './measure.ts';
import { createPools, readConnections } from './pools.ts';
import { createHistory, createLedgerPublishing } from './publishing.ts';
import { ledgerQueries } from './queries/serve-queries.ts';
import { createDailyCheck } from './verify/daily-check.ts';
import { ofBooks } from './verify/verify-books.ts';

/** Single commands are considered to be arriving if the last one is not older than this, in ms. */
const recentMs = 1_000;
/** How long a ledger must be busy before another one helps it (docs/decisions/0069). */
const busyWindowMs = 10_000;
const queryConcurrency = 4;
/**
 * The minimum time between the starts of batches with more than one command that are not full, once the ledger is busy for
 * half of the time; proportionally less below that. A pace makes batches larger, which needs less CPU.
 */
const paceMs = 6;
/** The maximum number of commands per transaction. From 200 on, the cost per command is constant. */
const maxBatch = 500;
const assignedPartitions = (consumer: Consumer): number[] =>
  consumer.assigned().flatMap(({ partitions }) => partitions);

/** Starts the ledger. It stops in reverse order: readiness, consumers, probes, verifications, publishers, pools. */
run('ledger', async (context) => {
  const { logger, instance, onStop } = context;
  const config = loadConfig(ledgerConfig);
  setCalendar(calendarIn(config.BANK_TIME_ZONE), config.BACKDATE_DAYS);
  const prefix = config.TOPIC_PREFIX;
  const { metrics, tracing, kafka, checkBrokers } = await createBasics('ledger', config, context);
  const keys = macKeys(config);
  const history = createHistory(kafka, prefix, keys, logger);
  const pools = createPools(config, instance, (client) => history.verify(client), logger);
  const { watch, ...others } = pools;
  const { writes, reads, searches, verifyPool } = others;
  const clock = await connectDatabase(watch, Object.values(others), context);
  await checkZone(watch);
  await checkBrokers();

  const now = Date.now;
  const { publishers, replies, relay, auditSender } = createLedgerPublishing(kafka, config, {
    keys,
    pools,
    history,
    metrics,
    tracing,
    now,
    logger,
    onStop,
  });
  onStop('audit sender', () => auditSender.stop());
  const lastOffsets = async () => {
    const ranges = await topicRanges(kafka, topicName(prefix, 'transactions'));
    return Object.fromEntries(ranges.map(({ partition, high }) => [partition, Number(high) - 1]));
  };
  // An uncaught error ends the process.
  const fail = (error: Error) => void setImmediate(() => Promise.reject(error));
  const closer = createCloser({ pool: pools.closePool, lastOffsets, fail, wake: () => relay.wake(), logger });
  onStop('closer', () => closer.stop());
  const verifier = createVerifier(ofBooks, { pool: verifyPool, reads, now, logger });
  const holdSweeper = createHoldSweeper({ pool: writes, wake: () => relay.wake(), logger });
  onStop('hold sweeper', () => holdSweeper.stop());
  onStop('verifier', () => verifier.stop());
  const isOnDuty = () => relay.active();
  const { BOOKS_CHECK_AT: at, BANK_TIME_ZONE: timeZone } = config;
  const dailyCheck = createDailyCheck({ verifier, reads, at, timeZone, isOnDuty, now: () => readTime(reads), logger });
  onStop('daily check', () => dailyCheck.stop());

  const queries = ledgerQueries({
    pool: reads,
    searches,
    replies,
    prefix,
    keys,
    logger,
    now,
    concurrency: readConnections,
    verifier,
  });
  const observe = observeBatches(metrics, tracing);
  const writing = {
    pool: writes,
    replies,
    prefix,
    keys,
    logger,
    relay,
    observe(batch: DecidedBatch) {
      if (batch.commands.some(({ name }) => name === 'close_day')) closer.wake();
      observe(batch);
    },
    answerQueries: queries.handle,
  };
  const pace = { full: maxBatch, ms: paceMs };
  const singles = ledgerCommands({ ...writing, pace, partitions: () => assignedPartitions(consumers.commands) });
  let singlesAt = -Infinity;
  // A hot spare does not see whether single commands arrive, and assumes that they do.
  const isSpare = () => assignedPartitions(consumers.commands).length === 0;
  const hasSingles = () => isSpare() || performance.now() - singlesAt < recentMs;
  const callersBatches = ledgerBatches({
    ...writing,
    hasSingles,
    partitions: () => assignedPartitions(consumers.batches),
  });
  const takeSingles = (messages: ReceivedMessage[]) => {
    singlesAt = performance.now();
    return singles.handle(messages);
  };
  const group = consumerGroups(kafka, config, logger);
  // The relay's holder posts only while one thread is enough for both, or if all others are busy.
  const fill = config.SPREAD_COMMANDS ? {} : { fill: { busy: cpuMeter(busyWindowMs), keeps: isOnDuty } };
  // Separate groups, so that reads do not wait behind writes, and single commands do not wait behind batches.
  const consumers = {
    commands: group('ledger', ['ledger.commands'], { handle: takeSingles, maxBatch, ...fill }),
    batches: group('ledger-batches', ['ledger.batches'], { handle: callersBatches.handle }),
    queries: group('ledger-queries', ['ledger.queries'], { handle: queries.handle, concurrency: queryConcurrency }),
  };
  const execution = { health: () => firstFailure(singles.health(), callersBatches.health(), queries.health()) };
  measurePartitions(metrics, () => assignedPartitions(consumers.commands).length);
  measurePools(metrics, { writes, reads, searches });
  measureBooks(onDuty(metrics, isOnDuty), reads);

  const ready = { history: () => history.health(), replies: () => publishers.replies.health() };
  const parts = { kafka, pool: reads, watch, clock, consumers, execution, publishers, relay, metrics, ready };
  await serve(config, parts, context);
  auditSender.start();
  holdSweeper.start();
  closer.start();
  dailyCheck.start();
});
