import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandPartition, replyPartitions, topicName } from '#libs/contracts/topics.ts';
import { bucketOf } from '#libs/contracts/ids.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { follow } from '#libs/kafka/follow.ts';
import { createPublisher } from '#libs/kafka/publish.ts';
import type { Publisher } from '#libs/kafka/publish.ts';
import { createRequester } from '#libs/kafka/request-reply.ts';
import { kafkaOptions } from '#libs/service/config.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { run } from '#libs/service/run.ts';
import type { RunContext } from '#libs/service/run.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { createApiKeys } from './api-keys.ts';
import { createApp } from './app.ts';
import { loadGatewayConfig } from './config.ts';
import type { GatewayConfig } from './config.ts';
import { createCursors } from './cursor.ts';
import { createForwarder, encode } from './forward.ts';
import { createGatewayMetrics } from './gateway-metrics.ts';
import { createKeySet } from './jwks.ts';
import { createPendingAnswers } from './pending.ts';
import type { TokenOptions } from './tokens.ts';

/** Starts the gateway; it is stopped in reverse order: readiness, HTTP, requester, follower, publisher, probes. */
run('gateway', async ({ logger, instance, onStop }) => {
  const config = loadGatewayConfig();
  const prefix = config.TOPIC_PREFIX;
  const metrics = createMetrics('gateway');
  const gatewayMetrics = createGatewayMetrics(metrics);

  const kafka = createKafka(kafkaOptions(config, `gateway-${instance}`), logger);
  const publisher = createPublisher(kafka, { logger, name: 'requests', maxQueued: 2 * config.MAX_PENDING });
  onStop('publisher', () => publisher.stop());
  await publisher.start();

  const apiKeys = createApiKeys({ pepper: config.API_KEY_PEPPER, logger, onUse: keyUseRecorder(publisher, prefix, logger) });
  const keyFollower = follow(kafka, { topic: topicName(prefix, 'api-keys'), groupId: `${prefix}gateway-keys-${instance}`, onMessage: apiKeys.take, logger });
  onStop('key follower', () => keyFollower.stop());

  const requester = createRequester(kafka, publisher, {
    topic: topicName(prefix, 'replies'),
    partitions: replyPartitions,
    instance,
    logger,
    maxPending: config.MAX_PENDING,
    onLate: () => gatewayMetrics.lateReply(),
  });
  onStop('requester', () => requester.stop());
  await Promise.all([keyFollower.start(), requester.start()]);

  const pending = createPendingAnswers();
  const forwarder = createForwarder({ request: (message, options) => requester.request(message, options), prefix, logger, metrics: gatewayMetrics });
  onStop('breakers', () => forwarder.stop());
  metrics.gauge('gateway_pending_replies', 'Requests that wait for a reply', () => requester.pending());
  metrics.gauge('gateway_queued_messages', 'Messages that wait to be sent', () => publisher.queued());
  metrics.gauge('gateway_pending_answers', 'Ids answered 202 whose outcome nobody has asked for yet', () => pending.size());

  let draining = false;
  const app = await createApp({
    forwarder,
    pending,
    apiKeys,
    pepper: config.API_KEY_PEPPER,
    cursors: createCursors(config.IDEMPOTENCY_SECRET),
    idempotencySecret: config.IDEMPOTENCY_SECRET,
    apiVersion: packageJson.version,
    tokens: tokenOptions(config, logger),
    rateLimitPerMinute: config.RATE_LIMIT_PER_MINUTE,
    authFailuresPerMinute: config.AUTH_FAILURES_PER_MINUTE,
    trustProxy: config.TRUST_PROXY,
    corsOrigins: config.CORS_ORIGINS,
    docs: config.DOCS,
    logger,
    metrics: gatewayMetrics,
    isDraining: () => draining,
  });
  onStop('HTTP server', () => app.close());
  await app.listen({ host: config.HOST, port: config.PORT });

  const health = createHealthServer({
    host: config.HEALTH_HOST,
    port: config.HEALTH_PORT,
    ready: { requests: () => publisher.health(), replies: () => requester.health(), api_keys: () => keyFollower.health() },
    metrics,
    logger,
  });
  await health.start();
  onStop('readiness', async () => {
    health.drain();
    draining = true;
    await sleep(config.SHUTDOWN_DELAY_MS);
  });
  logger.info({ port: (app.server.address() as AddressInfo).port }, 'the gateway takes requests');
}, { stopStepMs: 21_000, stopMs: 28_000 });

function tokenOptions(config: GatewayConfig, logger: RunContext['logger']): TokenOptions {
  return {
    issuer: config.JWT_ISSUER ?? '',
    audience: config.JWT_AUDIENCE ?? '',
    algorithms: config.JWT_ALGORITHMS,
    keySet: config.JWKS_URL === undefined ? undefined : createKeySet({ url: config.JWKS_URL, logger }),
    hs256Secret: config.JWT_HS256_SECRET,
  };
}

/** Tells accounts of a key's use. Nobody waits for it, and nothing is lost when it does not arrive: it is only a hint. */
function keyUseRecorder(publisher: Publisher, prefix: string, logger: RunContext['logger']) {
  return (keyId: string, at: Date): void => {
    const command = { name: 'record_api_key_use' as const, id: `use_${randomUUID()}`, key: keyId, data: { key_id: keyId, used_at: at.toISOString() }, acceptedAt: at };
    const origin = { caller: { actor: '', scopes: new Set<string>(), boundClientId: undefined }, requestId: command.id, traceparent: undefined };
    const message = encode(command, origin, topicName(prefix, 'accounts.commands'), commandPartition(bucketOf(keyId)));
    publisher.publish(message, { timeoutMs: 5_000 }).catch((error: unknown) => logger.debug({ err: error, key_id: keyId }, 'the use of a key was not recorded'));
  };
}
