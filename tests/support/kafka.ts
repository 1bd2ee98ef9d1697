import { randomUUID } from 'node:crypto';
import { type TopicName, topicName, topicTable } from '#libs/contracts/topics.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { Consumer, type ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { type OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';
import { topicRanges } from '#libs/kafka/topics.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { signedForTest } from '#libs/service/test/keys.ts';
import type { Bank } from './bank.ts';
import { eventually } from './eventually.ts';

/** Kafka functions for tests; they use only libs/kafka. */

/** The brokers and topic prefix of a bank. */
export type BankTopics = Pick<Bank, 'kafka_brokers' | 'topic_prefix'>;

export function createTestKafka(bank: BankTopics): KafkaClient {
  return createKafka({ brokers: bank.kafka_brokers.split(','), client_id: 'test' }, silent);
}

/**
 * Returns all messages in a topic now, in order per partition. It does not wait for offsets that compaction removed.
 */
export async function readTopics(
  bank: BankTopics,
  names: TopicName[],
  timeoutMs = 30_000,
): Promise<Map<TopicName, ReceivedMessage[]>> {
  const kafka = createTestKafka(bank);
  const byTopic = new Map(names.map((name) => [topicName(bank.topic_prefix, name), name]));
  const wanted = new Map<string, bigint>();
  for (const topic of byTopic.keys()) {
    for (const { partition, low, high } of await topicRanges(kafka, topic))
      if (high > low) wanted.set(`${topic}/${partition}`, high);
  }
  const read = new Map(names.map((name) => [name, [] as ReceivedMessage[]]));
  const reached = new Map<string, bigint>();
  const consumer = new Consumer(kafka, {
    groupId: `test-${randomUUID()}`,
    topics: [...byTopic.keys()],
    logger: silent,
    handle: async (messages) => {
      for (const message of messages) {
        read.get(byTopic.get(message.topic) as TopicName)?.push(message);
        reached.set(`${message.topic}/${message.partition}`, message.offset + 1n);
      }
    },
  });
  await consumer.start();
  try {
    await eventually(async () => [...wanted].every(([place, high]) => (reached.get(place) ?? 0n) >= high), timeoutMs);
  } finally {
    await consumer.stop();
  }
  return read;
}

export async function readTopic(bank: BankTopics, name: TopicName): Promise<ReceivedMessage[]> {
  return (await readTopics(bank, [name])).get(name) ?? [];
}

/** Returns the number of messages in a topic now. */
export async function countMessages(bank: BankTopics, name: TopicName): Promise<bigint> {
  const ranges = await topicRanges(createTestKafka(bank), topicName(bank.topic_prefix, name));
  return ranges.reduce((sum, { low, high }) => sum + high - low, 0n);
}

/** Provides a publisher while `use` runs. */
async function withPublisher<T>(bank: BankTopics, use: (publisher: Publisher) => Promise<T>): Promise<T> {
  const publisher = new Publisher(createTestKafka(bank), {
    logger: silent,
    name: 'test',
    topics: topicTable(bank.topic_prefix),
  });
  await publisher.start();
  try {
    return await use(publisher);
  } finally {
    await publisher.stop();
  }
}

/** Returns the same message again: topic, partition, key, value, and headers. */
export function again({ topic, partition, key, value, headers }: ReceivedMessage): OutgoingMessage {
  return { topic, partition, key, value, headers };
}

const asksForSomething = ({ topic }: OutgoingMessage) => /\.(commands|batches|queries|audit)$/.test(topic);

/** Publishes messages with the MACs of the services that send their kinds, or unchanged. */
export async function publish(
  bank: BankTopics,
  messages: OutgoingMessage[],
  { asTheyAre = false } = {},
): Promise<void> {
  const signed = messages.map((message) =>
    asTheyAre || !asksForSomething(message) ? message : signedForTest(message),
  );
  await withPublisher(bank, (publisher) => publisher.publishAll(signed, { timeoutMs: 20_000 }));
}

/**
 * Resolves when the consumer group of a service has committed all commands that the topic contains at
 * this call, or another group all of `name`. Later messages, for example of other test files, are not
 * waited for: with a steady stream of them the group would never be seen at the end.
 */
export async function caughtUp(
  bank: BankTopics,
  group: string,
  timeoutMs = 30_000,
  name: TopicName = `${group as 'ledger' | 'accounts'}.commands`,
): Promise<void> {
  const topic = topicName(bank.topic_prefix, name);
  const groupId = `${bank.topic_prefix}${group}`;
  const kafka = createTestKafka(bank);
  let ends: Awaited<ReturnType<typeof topicRanges>> | undefined;
  await eventually(
    () =>
      kafka.withAdmin(async (admin) => {
        ends ??= await topicRanges(kafka, topic);
        const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] });
        const done = new Map(committed?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
        return ends.every(({ partition, high, low }) => high === low || (done.get(partition) ?? -1n) >= high);
      }),
    timeoutMs,
  );
}
