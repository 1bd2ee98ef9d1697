/** What is touched of kafkajs' classes; its package ships no types for them. */
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
   * Ours: whether there ever were several brokers, those that owe an answer, the next question,
   * whose turn it is to be asked, and until when questions go on.
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
/** Longer than any send or fetch takes, so that questions go on while one of them waits for its answer. */
const asksForMs = 15_000;
/** As long as kafkajs believes an answer: a topic that was deleted and made again begins at epoch 0. */
const keptMs = 60_000;

/**
 * A broker that is cut off from the others, while its clients still reach it, says for as long that
 * it leads what it led. Whoever believes it writes and fetches nothing; kafkajs asks again after a
 * minute only, maybe the same broker, and a new client begins with the first broker of its list.
 * So, where there are several brokers, each of them is asked in turn who leads while a client is in
 * use; and as in Kafka's own client (KIP-320) the highest leader epoch that any client of this
 * process was told wins. kafkajs asks in a version that has no epochs: the next one, 7, has them,
 * and is the same otherwise. Throws when kafkajs is not what this was written against.
 */
export function followNewestLeaders(require: NodeJS.Require): void {
  askForEpochs(require);
  const { prototype: brokers } = require('kafkajs/src/broker/index') as { prototype: Broker };
  const { prototype: clusters } = require('kafkajs/src/cluster/index') as { prototype: Cluster };
  const { metadata } = brokers;
  const { findBroker } = clusters;
  if (typeof metadata !== 'function' || typeof findBroker !== 'function')
    throw new Error('kafkajs has no Broker.metadata or Cluster.findBroker');
  const newest = new NewestLeaders();
  brokers.metadata = async function ask(this: Broker, topics): Promise<Metadata> {
    const answer = await metadata.call(this, topics);
    newest.merge(answer, performance.now());
    return answer;
  };
  // Each produce and each fetch begins with it.
  clusters.findBroker = function find(this: Cluster, args): Promise<unknown> {
    this.asksUntil = performance.now() + asksForMs;
    if (this.asking === undefined && canAsk(this)) this.asking = setTimeout(() => askNext(this), askEveryMs).unref();
    return findBroker.call(this, args);
  };
}

/**
 * Where there is one broker, or no topic to ask for, there is nothing to learn: no timer wakes the
 * process for it. One that is left of several is asked on, for those that come back.
 */
function canAsk(cluster: Cluster): boolean {
  cluster.hasSeveral ||= Object.keys(cluster.brokerPool.brokers).length > 1;
  return cluster.hasSeveral && cluster.targetTopics.size > 0;
}

/** Asks the broker whose turn it is, unless it still owes an answer, and goes on until the client is no more in use. */
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
  // Disconnected meanwhile.
  if (brokerPool.metadata === null) return;
  brokerPool.metadata = answer;
  // A broker that is back is a stranger to kafkajs, which fetches from those that it knows, and misses no other.
  if (leadersOf(answer).some((leader) => leader >= 0 && !(leader in brokerPool.brokers)))
    await brokerPool.refreshMetadata([...targetTopics]);
}

function leadersOf({ topicMetadata }: Metadata): number[] {
  return topicMetadata.flatMap(({ partitionMetadata }) => partitionMetadata.map(({ leader }) => leader));
}

/** Of each partition the answer with the highest leader epoch, by cluster. */
export class NewestLeaders {
  readonly #clusters = new Map<string, Map<string, { partition: PartitionMetadata; at: number }>>();

  /** Replaces in `answer` what is older than what is known, and remembers the rest. `now` is in milliseconds. */
  merge({ clusterId, topicMetadata }: Metadata, now: number): void {
    let known = this.#clusters.get(clusterId);
    if (known === undefined) this.#clusters.set(clusterId, (known = new Map()));
    for (const { topic, partitionMetadata } of topicMetadata) {
      for (const [i, partition] of partitionMetadata.entries()) {
        const name = `${topic}/${partition.partitionId}`;
        const told = known.get(name);
        const isOlder =
          told && now - told.at < keptMs && (partition.leaderEpoch ?? 0) < (told.partition.leaderEpoch ?? 0);
        if (isOlder) partitionMetadata[i] = told.partition;
        else known.set(name, { partition, at: now });
      }
    }
  }
}

function askForEpochs(require: NodeJS.Require): void {
  const definitions = require('kafkajs/src/protocol/requests/metadata') as RequestDefinitions;
  const { versions, protocol } = definitions;
  if (!versions.includes('6') || versions.includes(String(epochVersion)))
    throw new Error('kafkajs asks for metadata in other versions than 0 to 6');
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

/** The answer to a Metadata request of version 7; its fields are in the order of the wire. */
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
