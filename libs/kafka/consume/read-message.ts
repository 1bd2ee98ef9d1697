import type { KafkaClient } from '../client.ts';
import type { Cluster } from '../cluster.ts';
import type { ReceivedMessage } from '../received-message.ts';
import { topicRanges } from '../topics.ts';
import { withTimeout } from '../wait.ts';
import { fetchFrom } from './partition-reader.ts';

/** A position in a topic. */
export interface Place {
  topic: string;
  partition: number;
  offset: bigint;
}

const maxWaitMs = 100;
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
    return await withTimeout(fetchOne(cluster, place), timeoutMs, `reading ${place.topic}`);
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

async function fetchOne(cluster: Cluster, { topic, partition, offset }: Place): Promise<ReceivedMessage | undefined> {
  await cluster.connect();
  await cluster.addTargetTopic(topic);
  const [nodeId] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]));
  if (nodeId === undefined) return undefined;
  const [batch] = await fetchFrom(cluster, nodeId, topic, new Map([[partition, offset]]), maxWaitMs);
  const found = batch?.messages.find((message) => message.offset === offset);
  if (!found && batch?.corrupt !== undefined) throw new Error(`${topic}/${partition}: ${batch.corrupt}`);
  return found?.received(topic, partition);
}
