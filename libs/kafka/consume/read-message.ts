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

/**
 * Returns the values in the last `count` offsets of a topic with one partition, oldest first. Rejects if the broker does
 * not respond within `timeoutMs`.
 */
export async function readLastValues(
  kafka: KafkaClient,
  topic: string,
  count: number,
  timeoutMs: number,
): Promise<string[]> {
  const [range] = await withTimeout(topicRanges(kafka, topic), timeoutMs, `reading the end of ${topic}`);
  if (range === undefined || range.high === range.low) return [];
  const { partition, low, high } = range;
  const { client: cluster, close } = kafka.newCluster();
  const read = async () => {
    const nodeId = await findLeader(cluster, topic, partition);
    if (nodeId === undefined) throw new Error(`${topic} has no leader`);
    const values: string[] = [];
    for (let at = high - BigInt(count) > low ? high - BigInt(count) : low; at < high; ) {
      const [batch] = await fetchFrom(cluster, nodeId, topic, new Map([[partition, at]]), maxWaitMs);
      if (batch === undefined || batch.corrupt !== undefined)
        throw new Error(`${topic}/${partition}: ${batch?.corrupt ?? 'nothing was read'}`);
      values.push(...batch.messages.flatMap((one) => one.received(topic, partition).value?.toString() ?? []));
      at = batch.nextOffset;
    }
    return values;
  };
  try {
    return await withTimeout(read(), timeoutMs, `reading the end of ${topic}`);
  } finally {
    void close(1_000);
  }
}

async function findLeader(cluster: Cluster, topic: string, partition: number): Promise<string | undefined> {
  await cluster.connect();
  await cluster.addTargetTopic(topic);
  return Object.keys(cluster.findLeaderForPartitions(topic, [partition]))[0];
}

async function fetchOne(cluster: Cluster, { topic, partition, offset }: Place): Promise<ReceivedMessage | undefined> {
  const nodeId = await findLeader(cluster, topic, partition);
  if (nodeId === undefined) return undefined;
  const [batch] = await fetchFrom(cluster, nodeId, topic, new Map([[partition, offset]]), maxWaitMs);
  const found = batch?.messages.find((message) => message.offset === offset);
  if (!found && batch?.corrupt !== undefined) throw new Error(`${topic}/${partition}: ${batch.corrupt}`);
  return found?.received(topic, partition);
}
