import type { KafkaMessage } from 'kafkajs';
import type { KafkaClient } from '../client.ts';
import { topicRanges } from '../topics.ts';
import { withTimeout } from '../wait.ts';
import { PublishedMessage } from './fetched-messages.ts';
import type { FetchedMessage, ReceivedMessage } from './received-message.ts';

/** A position in a topic. */
export interface Place {
  topic: string;
  partition: number;
  offset: bigint;
}

/** The used part of kafkajs' Cluster and its brokers, for which its package has no types. */
export interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  addTargetTopic(topic: string): Promise<void>;
  findLeaderForPartitions(topic: string, partitions: number[]): Record<string, number[]>;
  findBroker(options: { nodeId: string }): Promise<FetchingBroker>;
}

interface FetchingBroker {
  fetch(request: {
    maxWaitTime: number;
    minBytes: number;
    maxBytes: number;
    topics: { topic: string; partitions: { partition: number; fetchOffset: string; maxBytes: number }[] }[];
  }): Promise<{ responses: { partitions: { messages: FetchedMessage[] | KafkaMessage[]; corrupt?: string }[] }[] }>;
}

const maxWaitMs = 100;
/** The broker returns at least one record batch, regardless of its size. */
const maxBytes = 4 * 1024 * 1024;
/** kafkajs' error types for an offset that does not exist or no longer exists. */
const goneTypes = new Set(['OFFSET_OUT_OF_RANGE', 'UNKNOWN_TOPIC_OR_PARTITION']);

/**
 * Reads the message at a position with a single fetch and no consumer group. Returns undefined if there is no
 * message, because it was deleted by retention or compaction, or never written. Rejects if the broker does not
 * respond within `timeoutMs`.
 */
export async function readMessage(
  kafka: KafkaClient,
  place: Place,
  timeoutMs: number,
): Promise<ReceivedMessage | undefined> {
  const { client: cluster, close } = kafka.newCluster();
  try {
    return await withTimeout(fetchOne(cluster, place, kafka.asPublished), timeoutMs, `reading ${place.topic}`);
  } catch (error) {
    if (goneTypes.has((error as { type?: string }).type ?? '')) return undefined;
    throw error;
  } finally {
    void close(1_000);
  }
}

/** Returns the value of the last message of a topic with one partition, or undefined if the topic is empty. */
export async function readLastValue(kafka: KafkaClient, topic: string, timeoutMs: number): Promise<string | undefined> {
  const [range] = await withTimeout(topicRanges(kafka, topic), timeoutMs, `reading the end of ${topic}`);
  if (range === undefined || range.high === range.low) return undefined;
  const last = await readMessage(kafka, { topic, partition: range.partition, offset: range.high - 1n }, timeoutMs);
  if (last === undefined) throw new Error(`the last message of ${topic} does not exist`);
  return last.value?.toString();
}

async function fetchOne(
  cluster: Cluster,
  { topic, partition, offset }: Place,
  asPublished: boolean,
): Promise<ReceivedMessage | undefined> {
  await cluster.connect();
  await cluster.addTargetTopic(topic);
  const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]));
  if (nodeId === undefined) return undefined;
  const broker = await cluster.findBroker({ nodeId });
  const partitions = [{ partition, fetchOffset: String(offset), maxBytes }];
  const { responses } = await broker.fetch({
    maxWaitTime: maxWaitMs,
    minBytes: 1,
    maxBytes,
    topics: [{ topic, partitions }],
  });
  const fetched = responses.flatMap((response) => response.partitions);
  // The broker returns whole record batches, including messages before the requested offset.
  const messages = fetched.flatMap((one) =>
    asPublished
      ? (one.messages as KafkaMessage[]).map((each) => new PublishedMessage(each))
      : (one.messages as FetchedMessage[]),
  );
  const found = messages.find((message) => message.offset === offset);
  const corrupt = fetched.find((one) => one.corrupt !== undefined)?.corrupt;
  if (!found && corrupt !== undefined) throw new Error(`${topic}/${partition}: ${corrupt}`);
  return found?.received(topic, partition);
}
