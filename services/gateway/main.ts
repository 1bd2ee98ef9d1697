import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { replyPartitions, topicName, topicTable } from '#libs/contracts/topics.ts';
import type { TopicName } from '#libs/contracts/topics.ts';
import { checkBrokers } from '#libs/kafka/check.ts';
import { requireReplication } from '#libs/kafka/topics.ts';
import { createKafka } from '#libs/kafka/client.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { follow } from '#libs/kafka/consume/follow.ts';
import type { Follower } from '#libs/kafka/consume/follow.ts';
import { createPublisher } from '#libs/kafka/publish/publish.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import { createRequester } from '#libs/kafka/request-reply/request-reply.ts';
import { createClock } from '#libs/service/clock.ts';
import { kafkaOptions } from '#libs/service/config.ts';
import { createHealthServer } from '#libs/service/health.ts';
import { measureClock } from '#libs/service/measures.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { run } from '#libs/service/run.ts';
import { createTracing } from '#libs/service/tracing.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { createAdmission } from './admission.ts';
import type { Admission } from './admission.ts';
import { createApiKeys } from './api-keys.ts';
import { createApp } from './app.ts';
import { createTimeReader } from './bank-time.ts';
import { loadGatewayConfig } from './config.ts';
import type { GatewayConfig } from './config.ts';
import { createConsumerLag } from './consumer-lag.ts';
import { createCursors } from './cursor.ts';
import { createEndedSessions } from './dashboard/ended-sessions.ts';
import type { DashboardOptions } from './dashboard/dashboard.ts';
import { createForwarder, encodeNotice } from './forward.ts';
import type { Forwarder } from './forward.ts';
import { createGatewayMetrics, measureGateway } from './gateway-metrics.ts';
import type { GatewayMetrics } from './gateway-metrics.ts';
import { createKeySet } from './jwks.ts';
import { createAuditRecords } from './audit-records.ts';
import type { TokenOptions } from './tokens.ts';

/** Starts the gateway; it is stopped in reverse order: readiness, HTTP, breakers, requester, follower, publisher, probes. */
run('gateway', async ({ logger, instance, onStop }) => {
  const config = loadGatewayConfig();
  const metrics = createMetrics('gateway');
  const tracing = await createTracing('gateway', config, logger);
  onStop('tracing', () => tracing?.stop());
  const gatewayMetrics = createGatewayMetrics(metrics);
  const brokers = kafkaOptions(config, `gateway-${instance}`);
  const kafka = createKafka(brokers, logger);
  await checkBrokers(kafka, brokers);
  const admission = createAdmission();
  onStop('admission', () => admission.stop());
  const { publisher, apiKeys, keyFollower, requester } = createMessaging(kafka, config, { logger, instance, metrics: gatewayMetrics, admission, now: () => clock.now() });
  const clock = createClock({ read: createTimeReader((message, options) => requester.request(message, options), config.TOPIC_PREFIX), logger });
  const consumerLag = createConsumerLag(kafka, config.TOPIC_PREFIX);
  let forwarder: Forwarder | undefined;
  measureGateway(metrics, { requester, publisher, consumerLag, forwarder: () => forwarder });
  measureClock(metrics, clock);

  let state: 'starting' | 'running' | 'draining' = 'starting';
  const health = createHealthServer({
    host: config.HEALTH_HOST,
    port: config.HEALTH_PORT,
    ready: {
      http: () => ({ ok: state === 'running', reason: state }),
      requests: () => publisher.health(),
      replies: () => requester.health(),
      api_keys: () => keyFollower.health(),
      clock: () => clock.check(),
    },
    metrics,
    logger,
  });
  onStop('health server', () => health.stop());
  await health.start();

  onStop('publisher', () => publisher.stop());
  await publisher.start();
  onStop('key follower', () => keyFollower.stop());
  onStop('requester', () => requester.stop());
  const dashboard = createDashboard(kafka, config, { logger, instance, publisher, now: clock.now });
  onStop('session follower', () => dashboard?.follower.stop());
  if (!config.ALLOW_UNREPLICATED) await requireReplication(kafka, [...topicTable(config.TOPIC_PREFIX).keys()]);
  await Promise.all([keyFollower.start(), requester.start(), dashboard?.follower.start()]);

  onStop('clock', () => clock.stop());
  await clock.start();

  const asking = createForwarder({
    request: (message, options) => requester.request(message, options),
    admission,
    now: clock.now,
    prefix: config.TOPIC_PREFIX,
    logger,
    metrics: gatewayMetrics,
    tracing,
  });
  forwarder = asking;
  onStop('breakers', () => asking.stop());
  const auditRecords = createAuditRecords({ publisher, prefix: config.TOPIC_PREFIX, logger, now: clock.now });
  const app = await createApp({ ...appOptions(config, logger), admission, clock, forwarder: asking, consumerLag, apiKeys, dashboard: dashboard?.options, auditRecords, logger, metrics: gatewayMetrics, tracing, isDraining: () => state === 'draining' });
  onStop('HTTP server', () => app.close());
  logger.info({ address: await app.listen({ host: config.HOST, port: config.PORT }) }, 'the gateway takes requests');
  state = 'running';
  onStop('readiness', async () => {
    health.drain();
    state = 'draining';
    await sleep(config.SHUTDOWN_DELAY_MS);
  });
}, { stopStepMs: 21_000, stopMs: 28_000 });

/** What goes over Kafka: requests out, replies in, and the API keys that this gateway follows. Nothing is started yet. */
function createMessaging(kafka: KafkaClient, config: GatewayConfig, { logger, instance, metrics, admission, now }: { logger: Logger; instance: string; metrics: GatewayMetrics; admission: Admission; now: () => number }) {
  const prefix = config.TOPIC_PREFIX;
  const publisher = createPublisher(kafka, { logger, name: 'requests', topics: topicTable(prefix), maxQueued: 2 * config.MAX_PENDING });
  const apiKeys = createApiKeys({ pepper: config.API_KEY_PEPPER, previousPepper: config.API_KEY_PEPPER_PREVIOUS, logger, onUse: keyUseRecorder(publisher, prefix, logger), now });
  const keyFollower = follow(kafka, { topic: topicName(prefix, 'api-keys'), groupId: `${prefix}gateway-keys-${instance}`, onMessage: apiKeys.take, logger });
  const requester = createRequester(kafka, publisher, {
    topic: topicName(prefix, 'replies'),
    partitions: replyPartitions,
    instance,
    logger,
    maxPending: config.MAX_PENDING,
    onLate: (_id, topic) => {
      metrics.lateReply();
      if (topic !== undefined) admission.late(topic.slice(prefix.length) as TopicName);
    },
  });
  return { publisher, apiKeys, keyFollower, requester };
}

/** The dashboard, where it is configured, and what follows the sessions that were ended. Nothing is started yet. */
function createDashboard(kafka: KafkaClient, config: GatewayConfig, { logger, instance, publisher, now }: { logger: Logger; instance: string; publisher: Publisher; now: () => number }): { options: DashboardOptions; follower: Follower } | undefined {
  const { DASHBOARD_CLIENT_ID: clientId, DASHBOARD_CLIENT_SECRET: clientSecret, SESSION_SECRET: sessionSecret, PUBLIC_URL: publicUrl, JWT_ISSUER: issuer, TOPIC_PREFIX: prefix } = config;
  if (clientId === undefined || clientSecret === undefined || sessionSecret === undefined || publicUrl === undefined || issuer === undefined) return undefined;
  const ended = createEndedSessions({ publisher, prefix, logger, now });
  const follower = follow(kafka, { topic: topicName(prefix, 'sessions'), groupId: `${prefix}gateway-sessions-${instance}`, onMessage: ended.take, logger });
  return { options: { issuer, clientId, clientSecret, sessionSecret, publicUrl, ended }, follower };
}

function appOptions(config: GatewayConfig, logger: Logger) {
  return {
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
  };
}

function tokenOptions(config: GatewayConfig, logger: Logger): TokenOptions {
  return {
    issuer: config.JWT_ISSUER ?? '',
    audience: config.JWT_AUDIENCE ?? '',
    algorithms: config.JWT_ALGORITHMS,
    keySet: config.JWKS_URL === undefined ? undefined : createKeySet({ url: config.JWKS_URL, logger }),
    hs256Secret: config.JWT_HS256_SECRET,
  };
}

/** Tells accounts of a key's use. Nobody waits for it, and nothing is lost when it does not arrive: it is only a hint. */
function keyUseRecorder(publisher: Publisher, prefix: string, logger: Logger) {
  return (keyId: string, at: Date): void => {
    const command = { name: 'record_api_key_use' as const, id: `use_${randomUUID()}`, key: keyId, data: { key_id: keyId, used_at: at.toISOString() }, acceptedAt: at };
    publisher.publish(encodeNotice(command, command.id, prefix), { timeoutMs: 5_000 }).catch((error: unknown) => logger.debug({ err: error, key_id: keyId }, 'the use of a key was not recorded'));
  };
}
