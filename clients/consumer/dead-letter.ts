import type { IHeaders, Kafka, Producer } from 'kafkajs';
import type { Origin } from './event.ts';

/** A message that was dead-lettered. */
export interface DeadLetter extends Origin {
  /** The topic that it went to. */
  deadLetterTopic: string;
  error: Error;
}

/**
 * Writes dead letters as Spring Kafka's DeadLetterPublishingRecoverer does: to the topic's name with a suffix, in the same
 * partition where there is one, key, value and headers byte for byte, and why in headers of Spring's names and encodings.
 */
export class DeadLetters {
  readonly #kafka: Kafka;
  readonly #groupId: string;
  readonly #suffix: string;
  #producer: Promise<Producer> | undefined;
  /** Numbers of partitions of the topics that dead letters go to. */
  readonly #partitions = new Map<string, number>();

  constructor(kafka: Kafka, groupId: string, suffix: string) {
    this.#kafka = kafka;
    this.#groupId = groupId;
    this.#suffix = suffix;
  }

  /** Resolves when all replicas in sync have it; rejects when that is not known, and then it may be there twice. */
  async put(origin: Origin, error: Error): Promise<DeadLetter> {
    const deadLetterTopic = origin.topic + this.#suffix;
    const { message, partition } = origin;
    const partitions = this.#partitions.get(deadLetterTopic) ?? (await this.#prepare(origin.topic, deadLetterTopic));
    const producer = await this.#connected();
    await producer.send({
      topic: deadLetterTopic,
      acks: -1,
      messages: [{ key: message.key, value: message.value, headers: { ...message.headers, ...this.#reasons(origin, error) }, ...(partition < partitions ? { partition } : {}) }],
    });
    return { ...origin, deadLetterTopic, error };
  }

  async close(): Promise<void> {
    const producer = await this.#producer?.catch(() => undefined);
    await producer?.disconnect();
  }

  /** Makes the topic where it is missing, with as many partitions as its source. */
  async #prepare(topic: string, deadLetterTopic: string): Promise<number> {
    const admin = this.#kafka.admin();
    await admin.connect();
    try {
      const count = async (name: string): Promise<number> => (await admin.fetchTopicMetadata({ topics: [name] })).topics[0]?.partitions.length ?? 0;
      if (!(await admin.listTopics()).includes(deadLetterTopic)) await admin.createTopics({ topics: [{ topic: deadLetterTopic, numPartitions: await count(topic) }] });
      const partitions = await count(deadLetterTopic);
      this.#partitions.set(deadLetterTopic, partitions);
      return partitions;
    } finally {
      await admin.disconnect();
    }
  }

  #connected(): Promise<Producer> {
    this.#producer ??= this.#connect();
    return this.#producer;
  }

  async #connect(): Promise<Producer> {
    try {
      const producer = this.#kafka.producer({ allowAutoTopicCreation: false });
      await producer.connect();
      return producer;
    } catch (error) {
      this.#producer = undefined;
      throw error;
    }
  }

  #reasons({ topic, partition, offset, message }: Origin, error: Error): IHeaders {
    const { cause } = error;
    return {
      'kafka_dlt-original-topic': topic,
      'kafka_dlt-original-partition': int32(partition),
      'kafka_dlt-original-offset': int64(offset),
      'kafka_dlt-original-timestamp': int64(BigInt(message.timestamp)),
      'kafka_dlt-original-consumer-group': this.#groupId,
      'kafka_dlt-exception-fqcn': error.name,
      'kafka_dlt-exception-message': error.message,
      'kafka_dlt-exception-stacktrace': error.stack ?? '',
      ...(cause instanceof Error ? { 'kafka_dlt-exception-cause-fqcn': cause.name } : {}),
    };
  }
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}
