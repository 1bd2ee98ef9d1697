import type { KafkaMessage } from 'kafkajs';
import type { KafkaClient } from '../client.ts';
import { topicRanges } from '../topics.ts';
import { withTimeout } from '../wait.ts';
import { PublishedMessage } from './fetched-messages.ts';
import type { FetchedMessage, ReceivedMessage } from './received-message.ts';

/** One place in a topic. */
export interface Place {
  topic: string;
  partition: number;
  offset: bigint;
}

/** What is used of kafkajs' Cluster and its brokers; its package ships no types for them. */
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
/** The broker gives at least one record batch, however large it is. */
const maxBytes = 4 * 1024 * 1024;
/** kafkajs' names for: nothing is kept there, or no longer. */
const goneTypes = new Set(['OFFSET_OUT_OF_RANGE', 'UNKNOWN_TOPIC_OR_PARTITION']);

/**
 * Reads the one message at that place, by a fetch of its own without a consumer group. Undefined when nothing is kept
 * there: deleted by retention or compaction, or never written. Rejects when the broker cannot say within `timeoutMs`.
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

/** The value of the last message of a topic with one partition; undefined where it is empty. */
export async function readLastValue(kafka: KafkaClient, topic: string, timeoutMs: number): Promise<string | undefined> {
  const [range] = await withTimeout(topicRanges(kafka, topic), timeoutMs, `reading the end of ${topic}`);
  if (range === undefined || range.high === range.low) return undefined;
  const last = await readMessage(kafka, { topic, partition: range.partition, offset: range.high - 1n }, timeoutMs);
  if (last === undefined) throw new Error(`the last message of ${topic} is gone`);
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
  // A batch comes whole: with what stands before the offset in it.
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
