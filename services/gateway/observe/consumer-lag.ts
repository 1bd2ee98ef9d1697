import type { Operations } from '#libs/contracts/operations.ts';
import { deadLetterTopics, feedTopics, type TopicName, topicName } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { groupLags } from '#libs/kafka/topics.ts';
import { kept } from '#libs/service/metrics.ts';

/** Returns the lag of the bank's own consumers. Rejects if the brokers do not respond in time. */
export type ConsumerLag = () => Promise<NonNullable<Operations['consumer_lag']>>;

const groups: Record<string, readonly TopicName[]> = {
  ledger: ['ledger.commands'],
  'ledger-batches': ['ledger.batches'],
  'ledger-queries': ['ledger.queries'],
  accounts: ['accounts.commands', 'ledger.audit', ...deadLetterTopics],
  'accounts-queries': ['accounts.queries'],
  webhooks: ['webhooks.commands'],
  'webhooks-queries': ['webhooks.queries'],
  'webhooks-events': feedTopics,
};

const timeoutMs = 3_000;
/** The time for which an answer of the brokers is used, in ms, however many people read the lag. */
const keptMs = 2_000;

export function createConsumerLag(kafka: KafkaClient, prefix: string): ConsumerLag {
  const ask: ConsumerLag = async () => {
    const asked = Object.entries(groups).map(
      ([group, topics]) => [prefix + group, topics.map((name) => topicName(prefix, name))] as const,
    );
    const found = await groupLags(kafka, new Map(asked), timeoutMs);
    return [...found].flatMap(([id, lags]) =>
      lags.map(({ topic, partition, lag }) => ({
        group: id.slice(prefix.length),
        topic: topic.slice(prefix.length),
        partition,
        lag: Number(lag),
      })),
    );
  };
  return kept(ask, keptMs);
}
