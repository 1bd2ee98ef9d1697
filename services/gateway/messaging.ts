import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { createVerifier, signatureHeader } from '#libs/contracts/signature.ts';
import type { TopicName } from '#libs/contracts/topics.ts';
import { replyPartitions, topicName, topicTable } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { follow } from '#libs/kafka/consume/follow.ts';
import { Publisher } from '#libs/kafka/publish/publish.ts';
import { Requester } from '#libs/kafka/request-reply/request-reply.ts';
import { macKeys } from '#libs/service/signing.ts';
import { createApiKeys } from './access/api-keys.ts';
import { createEndedTokens } from './access/ended-tokens.ts';
import { type GatewayConfig, maxTokenLifetimeS } from './config.ts';
import { encodeNotice } from './messages/encode.ts';
import { createKeyFloor } from './messages/key-floor.ts';
import type { GatewayMetrics } from './observe/gateway-metrics.ts';
import type { LoadShedding } from './overload/load-shedding.ts';

export interface MessagingDependencies {
  logger: Logger;
  instance: string;
  metrics: GatewayMetrics;
  loadShedding: Pick<LoadShedding, 'late'>;
  now: () => number;
}

/** The maximum number of requests waiting for a reply; more get a 503. */
const maxPending = 5_000;

/**
 * Creates the objects that use Kafka: the publisher, the requester, and the followers of API keys and ended tokens.
 * Does not start them.
 */
export function createMessaging(kafka: KafkaClient, config: GatewayConfig, deps: MessagingDependencies) {
  const { logger, instance, metrics, loadShedding, now } = deps;
  const prefix = config.TOPIC_PREFIX;
  const keys = macKeys(config);
  const publisher = new Publisher(kafka, {
    logger,
    name: 'requests',
    topics: topicTable(prefix),
    maxQueued: 2 * maxPending,
    sign: (message) => keys.sign('gateway', message),
  });
  const requester = new Requester(kafka, publisher, {
    topic: topicName(prefix, 'replies'),
    partitions: replyPartitions,
    instance,
    logger,
    maxPending,
    onLate: (_id, topic) => {
      metrics.lateReply();
      if (topic !== undefined) loadShedding.late(topic.slice(prefix.length) as TopicName);
    },
  });
  const apiKeys = createApiKeys({
    environments: config.BANK_MODE === 'trial' ? ['live', 'test'] : ['live'],
    peppers: config.API_KEY_PEPPER,
    logger,
    onUse: keyUseRecorder(publisher, prefix, logger),
    now,
  });
  const isSigned = createVerifier(config.API_KEY_PUBLIC_KEYS);
  const refuseState = (key: string | null): void => {
    metrics.forgedKeyState();
    logger.error({ key_id: key }, 'ignored an API key record without a valid signature of accounts');
  };
  const keyFollower = follow(kafka, {
    topic: topicName(prefix, 'api-keys'),
    onMessage: (key, value, headers) =>
      isSigned(value, headers[signatureHeader]) ? apiKeys.take(key, value) : refuseState(key),
    logger,
  });
  const keyFloor = createKeyFloor({
    apiKeys,
    request: (...request) => requester.request(...request),
    publisher,
    isSigned,
    prefix,
    logger,
  });
  const endedTokens = createEndedTokens({
    publisher,
    keys,
    prefix,
    maxLifetimeS: maxTokenLifetimeS,
    logger,
    now,
  });
  const tokenFollower = follow(kafka, { topic: topicName(prefix, 'sessions'), onMessage: endedTokens.take, logger });
  return {
    publisher,
    requester,
    apiKeys,
    keyFollower,
    keyFloor,
    endedTokens,
    tokenFollower,
  };
}

/** Reports the use of a key to accounts, without waiting. A lost report has no consequence. */
function keyUseRecorder(publisher: Publisher, prefix: string, logger: Logger) {
  return (keyId: string, at: Date): void => {
    const data = { key_id: keyId, used_at: at.toISOString() };
    const command = {
      name: 'record_api_key_use' as const,
      id: `use_${randomUUID()}`,
      key: keyId,
      data,
      acceptedAt: at,
    };
    publisher
      .publish(encodeNotice(command, command.id, prefix), { timeoutMs: 5_000 })
      .catch((error: unknown) => logger.debug({ err: error, key_id: keyId }, 'the use of a key was not recorded'));
  };
}
