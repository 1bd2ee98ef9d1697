/** The patched part of kafkajs' classes, for which its package has no types. */
interface Decoder {
  readInt16(): number;
  readInt32(): number;
  readString(): string;
  readBoolean(): boolean;
  readArray<T>(read: (decoder: Decoder) => T): T[];
}

interface RequestDefinitions {
  versions: string[];
  protocol(options: {
    version: number;
  }): (options: object) => { request: object; response: { decode(data: Buffer): Promise<Metadata>; parse: unknown } };
}

export interface Metadata {
  clusterId: string;
  topicMetadata: { topic: string; partitionMetadata: PartitionMetadata[] }[];
}

interface PartitionMetadata {
  partitionId: number;
  leader: number;
  leaderEpoch?: number;
}

interface Broker {
  metadata(topics: string[]): Promise<Metadata>;
}

interface Cluster {
  targetTopics: Set<string>;
  brokerPool: {
    metadata: Metadata | null;
    brokers: Record<string, unknown>;
    findBroker(args: { nodeId: string }): Promise<Broker>;
    refreshMetadata(topics: string[]): Promise<void>;
  };
  /**
   * Our additions: whether there were ever several brokers, the brokers that have not yet responded, the timer
   * of the next request, the broker to ask next, and the time at which to stop.
   */
  hasSeveral?: boolean;
  unanswered?: Set<string>;
  asking?: NodeJS.Timeout;
  turn?: number;
  asksUntil?: number;
  findBroker(args: unknown): Promise<unknown>;
}

const epochVersion = 7;
const askEveryMs = 500;
/** Longer than any send or fetch takes, so that requests for metadata continue while one of those is in progress. */
const asksForMs = 15_000;
/**
 * As long as kafkajs trusts a response. It must expire, because a topic that was deleted and recreated starts
 * at epoch 0.
 */
const keptMs = 60_000;

/**
 * A broker that is cut off from the others, but still reachable by clients, keeps claiming to lead its
 * partitions. A client that believes it can neither write nor fetch. kafkajs asks again only after a minute,
 * possibly the same broker, and a new client starts with the first broker of its list. With this patch, if
 * there are several brokers, each is asked in turn for the leaders while a client is in use. As in Kafka's own
 * client (KIP-320), the highest leader epoch seen by any client of this process wins. kafkajs requests metadata
 * in a version without epochs; the next version, 7, has them and is otherwise the same.
 */
export function followNewestLeaders(require: NodeJS.Require): void {
  askForEpochs(require);
  const { prototype: brokers } = require('kafkajs/src/broker/index') as { prototype: Broker };
  const { prototype: clusters } = require('kafkajs/src/cluster/index') as { prototype: Cluster };
  const { metadata } = brokers;
  const { findBroker } = clusters;
  const newest = new NewestLeaders();
  brokers.metadata = async function ask(this: Broker, topics): Promise<Metadata> {
    const answer = await metadata.call(this, topics);
    newest.merge(answer, performance.now());
    return answer;
  };
  // Every produce and every fetch starts with findBroker.
  clusters.findBroker = function find(this: Cluster, args): Promise<unknown> {
    this.asksUntil = performance.now() + asksForMs;
    if (this.asking === undefined && canAsk(this)) this.asking = setTimeout(() => askNext(this), askEveryMs).unref();
    return findBroker.call(this, args);
  };
}

/**
 * With one broker, or without topics, no metadata is requested, and no timer wakes the process. If there were
 * several brokers, the last one is still asked, in case the others return.
 */
function canAsk(cluster: Cluster): boolean {
  cluster.hasSeveral ||= Object.keys(cluster.brokerPool.brokers).length > 1;
  return cluster.hasSeveral && cluster.targetTopics.size > 0;
}

/** Asks the next broker, unless it has not yet responded, and repeats until the client is no longer in use. */
function askNext(cluster: Cluster): void {
  const nodeIds = Object.keys(cluster.brokerPool.brokers);
  const goesOn = canAsk(cluster) && performance.now() < (cluster.asksUntil ?? 0);
  cluster.asking = goesOn ? setTimeout(() => askNext(cluster), askEveryMs).unref() : undefined;
  if (!goesOn) return;
  cluster.turn = ((cluster.turn ?? 0) + 1) % nodeIds.length;
  const nodeId = String(nodeIds[cluster.turn]);
  cluster.unanswered ??= new Set();
  const { unanswered } = cluster;
  if (unanswered.has(nodeId)) return;
  unanswered.add(nodeId);
  ask(cluster, nodeId)
    .catch(() => undefined)
    .finally(() => unanswered.delete(nodeId));
}

async function ask({ brokerPool, targetTopics }: Cluster, nodeId: string): Promise<void> {
  const broker = await brokerPool.findBroker({ nodeId });
  const answer = await broker.metadata([...targetTopics]);
  // The client was disconnected meanwhile.
  if (brokerPool.metadata === null) return;
  brokerPool.metadata = answer;
  // kafkajs fetches only from brokers that it knows, so it must learn of one that is back.
  if (listLeaders(answer).some((leader) => leader >= 0 && !(leader in brokerPool.brokers)))
    await brokerPool.refreshMetadata([...targetTopics]);
}

function listLeaders({ topicMetadata }: Metadata): number[] {
  return topicMetadata.flatMap(({ partitionMetadata }) => partitionMetadata.map(({ leader }) => leader));
}

/** For each partition and cluster, the response with the highest leader epoch. */
export class NewestLeaders {
  readonly #clusters = new Map<string, Map<string, { partition: PartitionMetadata; at: number }>>();

  /** Replaces leaders in `answer` that are older than known ones and stores the others. `now` is in ms. */
  merge({ clusterId, topicMetadata }: Metadata, now: number): void {
    let known = this.#clusters.get(clusterId);
    if (known === undefined) this.#clusters.set(clusterId, (known = new Map()));
    for (const { topic, partitionMetadata } of topicMetadata) {
      for (const [i, partition] of partitionMetadata.entries()) {
        const name = `${topic}/${partition.partitionId}`;
        const newest = known.get(name);
        const isOlder =
          newest && now - newest.at < keptMs && (partition.leaderEpoch ?? 0) < (newest.partition.leaderEpoch ?? 0);
        if (isOlder) partitionMetadata[i] = newest.partition;
        else known.set(name, { partition, at: now });
      }
    }
  }
}

function askForEpochs(require: NodeJS.Require): void {
  const definitions = require('kafkajs/src/protocol/requests/metadata') as RequestDefinitions;
  const { versions, protocol } = definitions;
  const KafkaDecoder = require('kafkajs/src/protocol/decoder') as new (data: Buffer) => Decoder;
  definitions.versions = [...versions, String(epochVersion)];
  definitions.protocol = ({ version }) => {
    if (version !== epochVersion) return protocol({ version });
    return (options) => {
      const { request, response } = protocol({ version: epochVersion - 1 })(options);
      return {
        request: { ...request, apiVersion: epochVersion },
        response: { ...response, decode: async (data) => decode(new KafkaDecoder(data)) },
      };
    };
  };
}

const readInt32 = (decoder: Decoder): number => decoder.readInt32();

/** Decodes a Metadata response of version 7; the fields are in wire order. */
function decode(decoder: Decoder) {
  return {
    clientSideThrottleTime: decoder.readInt32(),
    throttleTime: 0,
    brokers: decoder.readArray((d) => ({
      nodeId: d.readInt32(),
      host: d.readString(),
      port: d.readInt32(),
      rack: d.readString(),
    })),
    clusterId: decoder.readString(),
    controllerId: decoder.readInt32(),
    topicMetadata: decoder.readArray((d) => ({
      topicErrorCode: d.readInt16(),
      topic: d.readString(),
      isInternal: d.readBoolean(),
      partitionMetadata: d.readArray((p) => ({
        partitionErrorCode: p.readInt16(),
        partitionId: p.readInt32(),
        leader: p.readInt32(),
        leaderEpoch: p.readInt32(),
        replicas: p.readArray(readInt32),
        isr: p.readArray(readInt32),
        offlineReplicas: p.readArray(readInt32),
      })),
    })),
  };
}
