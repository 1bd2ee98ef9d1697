import type { Admin } from 'kafkajs';
import { maxBatchBytes, type TopicSettings } from '#libs/contracts/topics.ts';
import type { KafkaClient } from './client.ts';
import type { Cluster } from './cluster.ts';
import { pause, repeatUntilDone, withTimeout } from './wait.ts';

/** Topic settings by their names in Kafka, for example 'cleanup.policy'. */
export type Settings = Record<string, string>;

export interface TopicSpec {
  name: string;
  partitions: number;
  replication_factor: number;
  config: Settings;
}

const createTimeoutMs = 15_000;
/** A broker that has just started takes long to create two hundred partitions. */
const visibleTimeoutMs = 60_000;

/**
 * Creates missing topics and waits until they are usable. Existing topics keep their partitions and settings,
 * because more partitions would move keys. Concurrent callers are safe. Returns the names of the created
 * topics.
 */
export async function ensureTopics(kafka: KafkaClient, specs: readonly TopicSpec[]): Promise<string[]> {
  return kafka.withAdmin(async (admin) => {
    const existing = new Set(await admin.listTopics());
    const missing = specs.filter(({ name }) => !existing.has(name));
    // One request per topic: in a combined request, a concurrent creation of one topic would appear as the
    // error of the others.
    await Promise.all(missing.map((spec) => createTopic(admin, spec)));
    await waitUntilUsable(admin, specs);
    return missing.map(({ name }) => name);
  }, createTimeoutMs + visibleTimeoutMs);
}

async function createTopic(admin: Admin, { name, partitions, replication_factor, config }: TopicSpec): Promise<void> {
  try {
    // Resolves with false if the topic exists.
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
    // A slow broker still creates the topic, so wait until it appears.
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
 * Changes these settings of existing topics and keeps all others. Returns the names of topics that had other
 * values. Nothing else should change them at the same time, because kafkajs only supports the request that
 * replaces all settings of a topic.
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

/** Returns the number of partitions of each topic. Rejects if one does not exist. */
export async function partitionCounts(kafka: KafkaClient, topics: readonly string[]): Promise<Map<string, number>> {
  return kafka.withAdmin(async (admin) => {
    const metadata = await admin.fetchTopicMetadata({ topics: [...topics] });
    return new Map(metadata.topics.map(({ name, partitions }) => [name, partitions.length]));
  });
}

/** Returns the first and the end offset of every partition of a topic. */
export async function topicRanges(
  kafka: KafkaClient,
  topic: string,
): Promise<{ partition: number; low: bigint; high: bigint }[]> {
  return kafka.withAdmin(async (admin) => {
    const offsets = await admin.fetchTopicOffsets(topic);
    return offsets.map(({ partition, low, high }) => ({ partition, low: BigInt(low), high: BigInt(high) }));
  });
}

/** An offset in a partition of a known topic. */
export interface PartitionOffset {
  partition: number;
  offset: bigint;
}

/**
 * Returns, for each partition, the offset of its first message at or after `moment` by the topic's timestamps,
 * or the end offset if there is none.
 */
export async function offsetsAt(kafka: KafkaClient, topic: string, moment: Date): Promise<PartitionOffset[]> {
  return kafka.withAdmin(async (admin) => {
    const offsets = await admin.fetchTopicOffsetsByTimestamp(topic, moment.getTime());
    return offsets.map(({ partition, offset }) => ({ partition, offset: BigInt(offset) }));
  });
}

/** The lag of a group in one partition. */
export interface PartitionLag {
  topic: string;
  partition: number;
  /** The messages after the committed offset, or all messages if nothing is committed. */
  lag: bigint;
}

/**
 * Returns, for each group, the number of messages in each partition of its topics that it has not committed, by one request
 * for the ends of all partitions and two for each group. Rejects after `timeoutMs` (default 15 s).
 */
export async function groupLags(
  kafka: KafkaClient,
  groups: ReadonlyMap<string, readonly string[]>,
  timeoutMs = 15_000,
): Promise<Map<string, PartitionLag[]>> {
  const { client: cluster, close } = kafka.newCluster();
  try {
    return await withTimeout(readLags(cluster, groups), timeoutMs, 'reading the lag of groups');
  } finally {
    await close(1_000);
  }
}

/** The same for one group. */
export async function groupLag(
  kafka: KafkaClient,
  groupId: string,
  topics: readonly string[],
  timeoutMs?: number,
): Promise<PartitionLag[]> {
  return (await groupLags(kafka, new Map([[groupId, topics]]), timeoutMs)).get(groupId) ?? [];
}

async function readLags(
  cluster: Cluster,
  groups: ReadonlyMap<string, readonly string[]>,
): Promise<Map<string, PartitionLag[]>> {
  const topics = [...new Set([...groups.values()].flat())];
  await cluster.connect();
  await cluster.addMultipleTargetTopics(topics);
  const partitionsOf = (topic: string) =>
    cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => ({ partition: partitionId }));
  const offsets = async (fromBeginning: boolean) => {
    const all = await cluster.fetchTopicsOffset(
      topics.map((topic) => ({ topic, partitions: partitionsOf(topic), fromBeginning })),
    );
    return new Map(all.flatMap((one) => one.partitions.map((p) => [`${one.topic} ${p.partition}`, BigInt(p.offset)])));
  };
  const committed = async (groupId: string, ofGroup: readonly string[]) => {
    const coordinator = await cluster.findGroupCoordinator({ groupId });
    const asked = ofGroup.map((topic) => ({ topic, partitions: partitionsOf(topic) }));
    return (await coordinator.offsetFetch({ groupId, topics: asked })).responses;
  };
  // The ends are read last, so that a group which has caught up meanwhile never seems to be ahead of them.
  const read = await Promise.all([...groups].map(async ([id, ofGroup]) => [id, await committed(id, ofGroup)] as const));
  const [lows, highs] = await Promise.all([offsets(true), offsets(false)]);
  return new Map(
    read.map(([id, found]) => [
      id,
      found
        .flatMap(({ topic, partitions }) =>
          partitions.map(({ partition, offset }) => {
            const place = `${topic} ${partition}`;
            const position = BigInt(offset) < 0n ? (lows.get(place) ?? 0n) : BigInt(offset);
            const lag = (highs.get(place) ?? position) - position;
            return { topic, partition, lag: lag > 0n ? lag : 0n };
          }),
        )
        .sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition),
    ]),
  );
}

const minReplicas = 3;
const minInSync = 2;
const topicResource = 2;
const checkedConfig = ['min.insync.replicas', 'unclean.leader.election.enable', 'max.message.bytes'];

/**
 * Resolves when each topic of the table can lose a broker without losing data (three replicas, two of them in sync
 * for every write, and no unclean leader election) and accepts record batches of the size that the table says, by
 * which publishers limit theirs. Rejects with the names of all topics that do not. Waits for brokers and topics.
 */
export async function requireSafeTopics(kafka: KafkaClient, table: ReadonlyMap<string, TopicSettings>): Promise<void> {
  const mayNot = (error: unknown) => (error as { type?: string }).type === 'TOPIC_AUTHORIZATION_FAILED';
  const unsafe = await repeatUntilDone(() => unsafeTopics(kafka, table), mayNot).catch((cause: unknown) => {
    const needed =
      'the Kafka user needs Describe and DescribeConfigs on every topic, because topics are checked at start';
    throw new Error(needed, { cause });
  });
  if (unsafe.length > 0)
    throw new Error(
      `topics that may be lost with a single broker, or are too small (BANK_MODE=trial allows them):\n${unsafe.map((line) => `  ${line}`).join('\n')}`,
    );
}

/** Returns a line for each topic that does not meet requireSafeTopics. */
async function unsafeTopics(kafka: KafkaClient, table: ReadonlyMap<string, TopicSettings>): Promise<string[]> {
  return kafka.withAdmin(async (admin) => {
    const { topics: found } = await admin.fetchTopicMetadata({ topics: [...table.keys()] });
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [...table.keys()].map((name) => ({ type: topicResource, name, configNames: checkedConfig })),
    });
    return [...table].flatMap(([name, settings]) => {
      const entries = resources.find(({ resourceName }) => resourceName === name)?.configEntries ?? [];
      const config = new Map(entries.map((entry) => [entry.configName, entry.configValue]));
      const partitions = found.find((topic) => topic.name === name)?.partitions ?? [];
      const replicas = Math.min(...partitions.map(({ replicas: of }) => of.length));
      const inSync = Number(config.get('min.insync.replicas'));
      const isUnclean = config.get('unclean.leader.election.enable') === 'true';
      const [bytes, least] = [Number(config.get('max.message.bytes')), maxBatchBytes(settings)];
      const isReplicated = replicas >= minReplicas && inSync >= minInSync && inSync < replicas && !isUnclean;
      const faults = [
        ...(isReplicated
          ? []
          : [`${replicas} of ${minReplicas} replicas, min.insync.replicas ${inSync} of ${minInSync}`]),
        ...(isUnclean ? ['unclean.leader.election.enable'] : []),
        ...(bytes >= least ? [] : [`max.message.bytes ${bytes} of ${least}`]),
      ];
      return faults.length === 0 ? [] : [`${name}: ${faults.join(', ')}`];
    });
  });
}
