import { setTimeout as sleep } from 'node:timers/promises';
import { EventKeys } from '#libs/contracts/mac.ts';
import { feedTopics, storedDays, topicName } from '#libs/contracts/topics.ts';
import { createSecretKeys } from '#libs/contracts/webhook-secret.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { repeatUntilDone } from '#libs/kafka/wait.ts';
import { lookupPlans } from '#libs/postgres/pool.ts';
import { whileClocksAgree } from '#libs/service/clock.ts';
import { loadConfig } from '#libs/service/config.ts';
import { firstFailure, watchFaults } from '#libs/service/faults.ts';
import { measurePools, onDuty } from '#libs/service/measures.ts';
import { isDefect } from '#libs/service/poison.ts';
import { createPublishing } from '#libs/service/publishing.ts';
import { queriesLast } from '#libs/service/query-consumer.ts';
import { run } from '#libs/service/run.ts';
import {
  connectDatabase,
  consumerGroups,
  createBasics,
  createPoolFactory,
  serve,
  watching,
} from '#libs/service/service.ts';
import { macKeys } from '#libs/service/signing.ts';
import { sweeping } from '#libs/service/sweeping.ts';
import { webhooksConfig } from './config.ts';
import { allowedAddresses } from './deliveries/addresses.ts';
import { createDeliverer } from './deliveries/deliverer.ts';
import { createSender } from './deliveries/send.ts';
import { type Expired, sweep } from './deliveries/sweeper.ts';
import { takeEvents } from './events/store-events.ts';
import { countWork, measureDeliveries } from './measure.ts';
import { webhooksQueries } from './queries/queries.ts';
import { migrations, schema } from './schema.ts';
import { webhooksCommands } from './webhooks/execute.ts';
import { resealSecrets } from './webhooks/store.ts';

/**
 * The minimum time between the starts of rounds that store events, in ms, because each round costs a transaction and a fetch.
 * One of many events is followed by the next at once.
 */
const storePaceMs = 100;
const manyEvents = 100;
/** The maximum number of concurrent requests to receivers, in addition to one per webhook. */
const maxRequests = 512;

/** Starts webhooks. It stops in reverse order: readiness, consumers, probes, deliveries, relay, publishers, pools. */
run('webhooks', async (context) => {
  const { logger, onStop } = context;
  const config = loadConfig(webhooksConfig);
  const prefix = config.TOPIC_PREFIX;
  const { metrics, tracing, kafka, checkBrokers } = await createBasics('webhooks', config, context);
  const newPool = createPoolFactory(config, migrations, logger);
  const pool = newPool('webhooks', { max: 10 });
  // Stores events and creates deliveries, with one connection each.
  const feedPool = newPool('webhooks-feeds', { max: 2, options: lookupPlans });
  const relayPool = newPool('webhooks-relay', { max: 3, options: lookupPlans });
  const watch = newPool('webhooks-watch', watching);
  const clock = await connectDatabase(watch, [pool, feedPool, relayPool], context);
  await checkBrokers();
  const secretKeys = createSecretKeys(config.WEBHOOK_SECRET_KEYS);

  const now = Date.now;
  const keys = macKeys(config);
  // Audit records, and replies to approved commands.
  const sign = (message: OutgoingMessage) =>
    void (message.topic === topicName(prefix, 'accounts.commands') && keys.sign('webhooks', message));
  const { publishers, replies, relay } = createPublishing(kafka, config, {
    service: 'webhooks',
    schema,
    relayPool,
    metrics,
    tracing,
    now,
    logger,
    onStop,
    signReply: sign,
    signEvent: sign,
  });
  const count = countWork(metrics);
  const addresses = allowedAddresses(config.WEBHOOK_ALLOW_NETWORKS);
  const sender = createSender(addresses);
  onStop('connections to receivers', () => sender.stop());
  const deliverer = createDeliverer({
    pool,
    feedPool,
    sender,
    secretKeys,
    now,
    mayDecide: () => clock.check().ok,
    concurrency: maxRequests,
    logger,
    onRecorded({ ended, disabled }) {
      ended.forEach(count.attempt);
      if (!disabled) return;
      count.disabled.inc();
      relay.wake();
    },
  });
  onStop('deliveries', () => deliverer.stop());
  const retentionDays = storedDays(config.EVENTS_RETENTION_DAYS);
  const onExpired = (expired: Expired) => {
    count.expired.inc(expired.events);
    logger.error(
      expired,
      'events were deleted that a webhook has not received: an earlier one of their account is refused',
    );
  };
  const sweepNow = async () => clock.check().ok && (await sweep(pool, retentionDays, onExpired));
  const sweeper = sweeping('deleting expired rows', sweepNow, 60_000, logger);
  onStop('sweeper', () => sweeper.stop());
  const reseal = async () => {
    const resealed = await resealSecrets(pool, secretKeys);
    if (resealed > 0) logger.info({ webhooks: resealed }, 'secrets were sealed with the new key');
    return false;
  };
  // During a rotation, a gateway that was not restarted yet seals secrets with the old key.
  const resealer = sweeping('sealing secrets with the new key', reseal, 60_000, logger);
  onStop('resealer', () => resealer.stop());
  const deps = { pool, prefix, keys, logger, replies, addresses, retentionDays, now };
  const commands = webhooksCommands({
    ...deps,
    onExecuted(name, outcome) {
      count.command(name, outcome);
      relay.wake();
      deliverer.wake();
      resealer.wake();
    },
  });
  const eventKeys = new EventKeys(config.ACCOUNTS_MAC_KEYS);
  const events = watchFaults(async (messages) => {
    const pace = messages.length < manyEvents ? sleep(storePaceMs) : undefined;
    const { stored, unreadable, forged } = await takeEvents(feedPool, messages, eventKeys, logger, config.API_URL);
    count.stored.inc(stored);
    count.unreadable.inc(unreadable);
    count.forged.inc(forged);
    deliverer.wake();
    await pace;
  });
  const group = consumerGroups(kafka, config, logger);
  // Each call for queries runs one statement at a time, so concurrent calls are the concurrency.
  const queries = webhooksQueries(deps);
  const consumers = {
    commands: group('webhooks', ['webhooks.commands'], {
      handle: queriesLast(whileClocksAgree(clock, commands.handle), queries.handle),
    }),
    queries: group('webhooks-queries', ['webhooks.queries'], { handle: queries.handle, concurrency: 4, maxBatch: 20 }),
    events: group('webhooks-events', feedTopics, { handle: events.handle }),
  };
  measureDeliveries(
    metrics,
    onDuty(metrics, () => relay.active()),
    pool,
    deliverer,
  );
  measurePools(metrics, { pool, feeds: feedPool });
  const execution = { health: () => firstFailure(commands.health(), queries.health(), events.health()) };
  const ready = { replies: () => publishers.replies.health(), outbox: () => publishers.events.health() };
  const parts = { kafka, pool, watch, clock, consumers, execution, publishers, relay, metrics, ready };
  await serve(config, parts, context);
  // If Postgres is unreachable, this waits, and the readiness probe says for what. A secret whose key is not
  // configured is a defect, which no repeat would mend.
  await repeatUntilDone(reseal, isDefect);
  deliverer.start();
  sweeper.start();
  resealer.start();
});
