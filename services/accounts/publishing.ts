import type { Logger } from 'pino';
import { replyType } from '#libs/contracts/envelope.ts';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { createSigner, signatureHeader } from '#libs/contracts/signature.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { readMessage } from '#libs/kafka/consume/read-message.ts';
import type { OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { createPublishing, type PublishingDependencies } from '#libs/service/publishing.ts';
import type { AccountsConfig } from './config.ts';
import type { DeadLetterTopics } from './outcome.ts';
import { schema } from './schema.ts';
import { snapshotStates } from './snapshot-events.ts';

/** Reading and publishing a dead letter together take less than the 5 s for which a transaction may be idle. */
const deadLetterTimeoutMs = 2000;

interface Dependencies extends PublishingDependencies {
  keys: MacKeys;
  /** The pool of the service itself, for the states that are published again; the relay has its own pool. */
  pool: Pool;
}

/** Creates the publishers of replies, and of the events of the outbox. Does not start them. */
export function createAccountsPublishing(
  kafka: KafkaClient,
  config: AccountsConfig,
  { keys, pool, ...common }: Dependencies,
) {
  const prefix = config.TOPIC_PREFIX;
  const publishing = createPublishing(kafka, config, {
    ...common,
    service: 'accounts',
    schema,
    signReply: replySigner(prefix, keys),
    signEvent: eventSigner(config, keys),
    states: snapshotStates(pool, common.now),
  });
  return { ...publishing, deadLetters: createDeadLetterTopics(kafka, publishing.publishers.replies, common.logger) };
}

/** Signs replies to accounts itself, which executes some approved commands and ends their sagas with the reply. */
function replySigner(prefix: string, keys: MacKeys): (message: OutgoingMessage) => void {
  const forAccounts = topicName(prefix, 'accounts.commands');
  return (message) =>
    void (message.topic === forAccounts && message.headers['ce_type'] === replyType && keys.sign('accounts', message));
}

/**
 * Signs the messages of the outbox: commands to the ledger, webhooks, and accounts itself, and states of API keys,
 * which gateways trust.
 */
function eventSigner(
  { TOPIC_PREFIX: prefix, API_KEY_SIGNING_KEY: signingKey }: AccountsConfig,
  keys: MacKeys,
): (message: OutgoingMessage) => void {
  const signState = createSigner(signingKey);
  const requests = (['ledger.commands', 'ledger.queries', 'accounts.commands', 'webhooks.commands'] as const).map(
    (name) => topicName(prefix, name),
  );
  const states = topicName(prefix, 'api-keys');
  return (message) => {
    if (requests.includes(message.topic)) keys.sign('accounts', message);
    if (message.topic === states) message.headers[signatureHeader] = signState(String(message.value));
  };
}

function createDeadLetterTopics(kafka: KafkaClient, publisher: Publisher, logger: Logger): DeadLetterTopics {
  return {
    read: (topic, partition, offset) =>
      readMessage(kafka, { topic, partition, offset }, deadLetterTimeoutMs).catch((error: unknown) => {
        logger.warn({ err: error, topic, partition, offset: String(offset) }, 'a dead letter could not be read');
        throw error;
      }),
    publish: (message) => publisher.publish(message, { timeoutMs: deadLetterTimeoutMs }),
  };
}
