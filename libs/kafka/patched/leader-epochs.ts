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
  protocol(options: { version: number }): (options: object) => { request: object; response: { decode(data: Buffer): Promise<Metadata>; parse: unknown } };
}

export interface Metadata {
  topicMetadata: { topic: string; partitionMetadata: { partitionId: number; leaderEpoch?: number }[] }[];
}

interface BrokerPool {
  metadataMaxAge: number;
  brokers: Record<string, unknown>;
  /** Ours: behind the property `metadata`. */
  newest?: { metadata: Metadata; takenAt: number };
}

interface Cluster {
  brokerPool: BrokerPool;
  /** Ours: when the leaders were last asked for beside the work. */
  askedAt?: number;
  findBroker(args: unknown): Promise<unknown>;
  refreshMetadata(): Promise<void>;
}

const epochVersion = 7;
const askEveryMs = 1_000;

/**
 * A broker that is cut off from the others, while its clients still reach it, says for as long that it leads what it led.
 * Whoever believes it fetches nothing, and kafkajs asks again after a minute only, maybe the same broker. So, where there are
 * several brokers, one of them is asked each second who leads, beside the work; and as in Kafka's own client (KIP-320) an
 * answer with an older leader epoch than one that is known is not taken. kafkajs asks in a version that has no epochs: the next
 * one, 7, has them, and is the same otherwise. Throws when kafkajs is not what this was written against.
 */
export function followNewestLeaders(require: NodeJS.Require): void {
  askForEpochs(require);
  keepNewest(require);
  const { prototype } = require('kafkajs/src/cluster/index') as { prototype: Cluster };
  const { findBroker } = prototype;
  if (typeof findBroker !== 'function' || typeof prototype.refreshMetadata !== 'function') throw new Error('kafkajs Cluster has no findBroker or refreshMetadata');
  // Each produce and each fetch begins with it.
  prototype.findBroker = function find(this: Cluster, args): Promise<unknown> {
    const now = performance.now();
    if (now - (this.askedAt ?? 0) >= askEveryMs && Object.keys(this.brokerPool.brokers).length > 1) {
      this.askedAt = now;
      this.refreshMetadata().catch(() => undefined);
    }
    return findBroker.call(this, args);
  };
}

function askForEpochs(require: NodeJS.Require): void {
  const definitions = require('kafkajs/src/protocol/requests/metadata') as RequestDefinitions;
  const { versions, protocol } = definitions;
  if (!versions.includes('6') || versions.includes(String(epochVersion))) throw new Error('kafkajs asks for metadata in other versions than 0 to 6');
  const KafkaDecoder = require('kafkajs/src/protocol/decoder') as new (data: Buffer) => Decoder;
  definitions.versions = [...versions, String(epochVersion)];
  definitions.protocol = ({ version }) => {
    if (version !== epochVersion) return protocol({ version });
    return (options) => {
      const { request, response } = protocol({ version: epochVersion - 1 })(options);
      return { request: { ...request, apiVersion: epochVersion }, response: { ...response, decode: async (data) => decode(new KafkaDecoder(data)) } };
    };
  };
}

const readInt32 = (decoder: Decoder): number => decoder.readInt32();

/** The answer to a Metadata request of version 7; its fields are in the order of the wire. */
function decode(decoder: Decoder) {
  return {
    clientSideThrottleTime: decoder.readInt32(),
    throttleTime: 0,
    brokers: decoder.readArray((d) => ({ nodeId: d.readInt32(), host: d.readString(), port: d.readInt32(), rack: d.readString() })),
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

function keepNewest(require: NodeJS.Require): void {
  const { prototype } = require('kafkajs/src/cluster/brokerPool') as { prototype: BrokerPool };
  Object.defineProperty(prototype, 'metadata', {
    get(this: BrokerPool): Metadata | null {
      return this.newest?.metadata ?? null;
    },
    set(this: BrokerPool, metadata: Metadata | null) {
      if (metadata === null) {
        this.newest = undefined;
        return;
      }
      const now = performance.now();
      // A topic that was deleted and made again begins at epoch 0: nothing is kept for longer than kafkajs would keep it.
      const keeps = this.newest && now - this.newest.takenAt < this.metadataMaxAge && isOlder(metadata, this.newest.metadata);
      if (!keeps) this.newest = { metadata, takenAt: now };
    },
  });
}

/** Brokers follow one log of metadata: an answer with one older epoch is older as a whole. */
function isOlder(answer: Metadata, known: Metadata): boolean {
  const epochs = new Map(known.topicMetadata.map(({ topic, partitionMetadata }) => [topic, new Map(partitionMetadata.map(({ partitionId, leaderEpoch }) => [partitionId, leaderEpoch]))]));
  return answer.topicMetadata.some(({ topic, partitionMetadata }) =>
    partitionMetadata.some(({ partitionId, leaderEpoch = 0 }) => leaderEpoch < (epochs.get(topic)?.get(partitionId) ?? 0)));
}
