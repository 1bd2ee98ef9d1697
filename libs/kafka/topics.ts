import type { Admin } from 'kafkajs';
import type { KafkaClient } from './client.ts';
import { pause, repeatUntilDone, startTimeoutMs } from './wait.ts';

/** Topic settings by their Kafka names, for example 'cleanup.policy'. */
export type Settings = Record<string, string>;

export interface TopicSpec {
  name: string;
  partitions: number;
  replication_factor: number;
  config: Settings;
}

const createTimeoutMs = 15_000;
/** A broker that has just started makes two hundred partitions slowly. */
const visibleTimeoutMs = 30_000;

/**
 * Creates the topics that are missing and waits until they can be used; leaves existing ones as they are, their
 * partitions and settings included (more partitions would move keys). Several callers at once are safe.
 * Returns the names it created.
 */
export async function ensureTopics(kafka: KafkaClient, specs: readonly TopicSpec[]): Promise<string[]> {
  return kafka.withAdmin(async (admin) => {
    const existing = new Set(await admin.listTopics());
    const missing = specs.filter(({ name }) => !existing.has(name));
    // One request per topic: in one for all, a rival's creation of one of them would show as the error of the rest.
    await Promise.all(missing.map((spec) => createTopic(admin, spec)));
    await waitUntilUsable(admin, specs);
    return missing.map(({ name }) => name);
  }, createTimeoutMs + visibleTimeoutMs);
}

async function createTopic(admin: Admin, { name, partitions, replication_factor, config }: TopicSpec): Promise<void> {
  try {
    // Resolves with false when the topic exists.
    await admin.createTopics({
      timeout: createTimeoutMs,
      waitForLeaders: false,
      topics: [
        {
          topic: name,
          numPartitions: partitions,
          replicationFactor: replication_factor,
          configEntries: Object.entries(config).map(([key, value]) => ({ name: key, value })),
        },
      ],
    });
  } catch (error) {
    // A slow broker makes it all the same: whether it is there is seen by waiting for it.
    if ((error as Error).name !== 'KafkaJSRequestTimeoutError') throw error;
  }
}

async function waitUntilUsable(admin: Admin, specs: readonly TopicSpec[]): Promise<void> {
  const deadline = performance.now() + visibleTimeoutMs;
  const topics = specs.map(({ name }) => name);
  for (;;) {
    const ready = await admin.fetchTopicMetadata({ topics }).then(
      ({ topics: found }) =>
        found.every(({ partitions }) => partitions.length > 0 && partitions.every(({ leader }) => leader >= 0)),
      () => false,
    );
    if (ready || topics.length === 0) return;
    if (performance.now() > deadline)
      throw new Error(`topics without a leader after ${visibleTimeoutMs} ms: ${topics.join(', ')}`);
    await pause(50);
  }
}

/**
 * Gives existing topics these settings, and leaves their others as they are. Returns the names of those that
 * had another value. Nobody else should change them at that moment: kafkajs knows only the request that replaces
 * all settings of a topic.
 */
export async function changeSettings(kafka: KafkaClient, wanted: ReadonlyMap<string, Settings>): Promise<string[]> {
  if (wanted.size === 0) return [];
  const { ConfigResourceTypes, ConfigSource } = kafka.kafkajs;
  return kafka.withAdmin(async (admin) => {
    const resources = [...wanted.keys()].map((name) => ({ type: ConfigResourceTypes.TOPIC, name }));
    const described = await admin.describeConfigs({ resources, includeSynonyms: false });
    const changed = described.resources.flatMap(({ resourceName: name, configEntries }) => {
      const ofTopic = configEntries.filter(({ configSource }) => configSource === ConfigSource.TOPIC_CONFIG);
      const present = Object.fromEntries(ofTopic.map(({ configName, configValue }) => [configName, configValue]));
      const settings = wanted.get(name) ?? {};
      if (Object.entries(settings).every(([setting, value]) => present[setting] === value)) return [];
      const entries = Object.entries({ ...present, ...settings }).map(([setting, value]) => ({ name: setting, value }));
      return [{ type: ConfigResourceTypes.TOPIC, name, configEntries: entries }];
    });
    if (changed.length > 0) await admin.alterConfigs({ validateOnly: false, resources: changed });
    return changed.map(({ name }) => name);
  });
}

/** The number of partitions of each topic; rejects when one of them does not exist. */
export async function partitionCounts(kafka: KafkaClient, topics: readonly string[]): Promise<Map<string, number>> {
  return kafka.withAdmin(async (admin) => {
    const metadata = await admin.fetchTopicMetadata({ topics: [...topics] });
    return new Map(metadata.topics.map(({ name, partitions }) => [name, partitions.length]));
  });
}

/** The offset after the last message of every partition, by topic and partition. */
export async function endOffsets(
  kafka: KafkaClient,
  topics: readonly string[],
): Promise<Map<string, Map<number, bigint>>> {
  const endsOf = async (topic: string) =>
    new Map((await topicRanges(kafka, topic)).map(({ partition, high }) => [partition, high]));
  return new Map(await Promise.all(topics.map(async (topic) => [topic, await endsOf(topic)] as const)));
}

/** The first and the end offset of every partition of a topic. */
export async function topicRanges(
  kafka: KafkaClient,
  topic: string,
): Promise<{ partition: number; low: bigint; high: bigint }[]> {
  return kafka.withAdmin(async (admin) => {
    const offsets = await admin.fetchTopicOffsets(topic);
    return offsets.map(({ partition, low, high }) => ({ partition, low: BigInt(low), high: BigInt(high) }));
  });
}

/** A place in a topic whose name is known. */
export interface PartitionOffset {
  partition: number;
  offset: bigint;
}

/** The first message of each partition from that moment on, by the topic's timestamps; where there is none, the end. */
export async function offsetsAt(kafka: KafkaClient, topic: string, moment: Date): Promise<PartitionOffset[]> {
  return kafka.withAdmin(async (admin) => {
    const offsets = await admin.fetchTopicOffsetsByTimestamp(topic, moment.getTime());
    return offsets.map(({ partition, offset }) => ({ partition, offset: BigInt(offset) }));
  });
}

/** How far a group is behind in one partition. */
export interface PartitionLag {
  topic: string;
  partition: number;
  /** Messages after the committed offset, or all that are kept when nothing is committed. */
  lag: bigint;
}

/**
 * How many messages each partition has that the group has not committed yet. Rejects after
 * `timeoutMs` (default 15 s).
 */
export async function groupLag(
  kafka: KafkaClient,
  groupId: string,
  topics: readonly string[],
  timeoutMs?: number,
): Promise<PartitionLag[]> {
  return kafka.withAdmin(async (admin) => {
    const committed = await admin.fetchOffsets({ groupId, topics: [...topics] });
    const lags = await Promise.all(
      committed.map(async ({ topic, partitions }) => {
        const done = new Map(partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
        const ends = await admin.fetchTopicOffsets(topic);
        return ends.map(({ partition, high, low }) => {
          const position = done.get(partition) ?? -1n;
          const lag = BigInt(high) - (position < 0n ? BigInt(low) : position);
          return { topic, partition, lag: lag > 0n ? lag : 0n };
        });
      }),
    );
    return lags.flat().sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition);
  }, timeoutMs);
}

/**
 * Of each topic, internal ones too, how many replicas are missing from the in-sync sets of its
 * partitions, where there should be `replicas`.
 */
export async function replicasInSync(
  kafka: KafkaClient,
  replicas: number,
): Promise<{ topic: string; missing: number }[]> {
  return kafka.withAdmin(async (admin) => {
    const { topics } = await admin.fetchTopicMetadata();
    return topics.map(({ name, partitions }) => ({
      topic: name,
      missing: partitions.reduce((sum, { isr }) => sum + replicas - isr.length, 0),
    }));
  });
}

const minReplicas = 3;
const minInSync = 2;
const topicResource = 2;
const replicationConfig = ['min.insync.replicas', 'unclean.leader.election.enable'];

/**
 * Resolves when each of these topics can lose a broker without a loss: three replicas, two of them
 * in sync with every write, and no leader that lacks what was acknowledged. Rejects where one
 * cannot, and names them all. Waits for brokers and topics that come later, at most ten minutes.
 */
export async function requireReplication(kafka: KafkaClient, topics: readonly string[]): Promise<void> {
  const fault = await repeatUntilDone(() => replicationFault(kafka, topics), startTimeoutMs);
  if (fault !== undefined) throw new Error(fault);
}

async function replicationFault(kafka: KafkaClient, topics: readonly string[]): Promise<string | undefined> {
  const weak = await unreplicated(kafka, topics).catch((error: Error & { type?: string }) => {
    if (error.type !== 'TOPIC_AUTHORIZATION_FAILED') throw error;
  });
  if (weak === undefined)
    return 'the user at the brokers needs Describe and DescribeConfigs on every topic: their replication is checked at the start';
  if (weak.length === 0) return undefined;
  return `topics that a broker's death may take along (ALLOW_UNREPLICATED=true takes them, for development):\n${weak.map((line) => `  ${line}`).join('\n')}`;
}

/** A line for each topic that is less than requireReplication asks for. */
async function unreplicated(kafka: KafkaClient, topics: readonly string[]): Promise<string[]> {
  return kafka.withAdmin(async (admin) => {
    const { topics: found } = await admin.fetchTopicMetadata({ topics: [...topics] });
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: topics.map((name) => ({ type: topicResource, name, configNames: replicationConfig })),
    });
    return found.flatMap(({ name, partitions }) => {
      const config = new Map(
        resources
          .find(({ resourceName }) => resourceName === name)
          ?.configEntries.map((entry) => [entry.configName, entry.configValue]),
      );
      const replicas = Math.min(...partitions.map(({ replicas: of }) => of.length));
      const inSync = Number(config.get('min.insync.replicas'));
      const isUnclean = config.get('unclean.leader.election.enable') === 'true';
      if (replicas >= minReplicas && inSync >= minInSync && inSync < replicas && !isUnclean) return [];
      return [
        `${name}: ${replicas} of ${minReplicas} replicas, min.insync.replicas ${inSync} of ${minInSync}${isUnclean ? ', unclean.leader.election.enable' : ''}`,
      ];
    });
  });
}
