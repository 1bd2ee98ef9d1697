import type { IHeaders, Kafka, KafkaMessage, Producer } from 'kafkajs';
import type { Origin } from './event.ts';

/** A message that was dead-lettered. */
export interface Letter extends Origin {
  /** The topic that it was published to. */
  deadLetterTopic: string;
  error: Error;
}

/** The default retention of the bank's events (EVENTS_RETENTION_DAYS). */
const retentionMs = 400 * 24 * 3_600_000;
/** The size of an event of the maximum size, with the reason in its headers. */
const maxMessageBytes = 5 * 1024 * 1024;
const reasonPrefix = 'kafka_dlt-';

/**
 * The dead letters of a group, in one topic with one partition, so that they stay in order. Key, value, and
 * headers are byte for byte those of the event. Further headers contain the reason, with the names and
 * encodings of Spring Kafka (DeadLetterPublishingRecoverer).
 */
export class DeadLetters {
  readonly #kafka: Kafka;
  readonly #groupId: string;
  readonly topic: string;
  #producer: Promise<Producer> | undefined;

  constructor(kafka: Kafka, groupId: string, topic: string) {
    this.#kafka = kafka;
    this.#groupId = groupId;
    this.topic = topic;
  }

  /**
   * Resolves when all in-sync replicas have the dead letter. Rejects if that is unknown; the dead letter may
   * then be published twice.
   */
  async put(origin: Origin, error: Error): Promise<Letter> {
    this.#producer ??= this.#connect().catch((failure: unknown) => {
      this.#producer = undefined;
      throw failure;
    });
    const { key, value, headers } = origin.message;
    await (await this.#producer).send({
      topic: this.topic,
      acks: -1,
      messages: [{ key, value, headers: { ...headers, ...this.#reasons(origin, error) } }],
    });
    return { ...origin, deadLetterTopic: this.topic, error };
  }

  /** Closes the connection. The next dead letter opens another one. */
  async close(): Promise<void> {
    const producer = this.#producer;
    this.#producer = undefined;
    await producer?.then((connected) => connected.disconnect()).catch(() => undefined);
  }

  /** Creates the topic if it is missing. */
  async #connect(): Promise<Producer> {
    const admin = this.#kafka.admin();
    await admin.connect();
    try {
      // Brokers may not know a new topic immediately after its creation: the producer waits for it,
      // but kafkajs's admin client fails.
      if (!(await admin.listTopics()).includes(this.topic))
        await admin.createTopics({
          waitForLeaders: false,
          topics: [
            {
              topic: this.topic,
              numPartitions: 1,
              configEntries: [
                { name: 'retention.ms', value: String(retentionMs) },
                { name: 'max.message.bytes', value: String(maxMessageBytes) },
              ],
            },
          ],
        });
    } finally {
      await admin.disconnect();
    }
    const producer = this.#kafka.producer({ allowAutoTopicCreation: false });
    await producer.connect();
    return producer;
  }

  #reasons({ topic, partition, offset, message }: Origin, error: Error): IHeaders {
    const { cause } = error;
    return {
      [`${reasonPrefix}original-topic`]: topic,
      [`${reasonPrefix}original-partition`]: int32(partition),
      [`${reasonPrefix}original-offset`]: int64(offset),
      [`${reasonPrefix}original-timestamp`]: int64(BigInt(message.timestamp)),
      [`${reasonPrefix}original-consumer-group`]: this.#groupId,
      [`${reasonPrefix}exception-fqcn`]: error.name,
      [`${reasonPrefix}exception-message`]: error.message,
      [`${reasonPrefix}exception-stacktrace`]: error.stack ?? '',
      ...(cause instanceof Error ? { [`${reasonPrefix}exception-cause-fqcn`]: cause.name } : {}),
    };
  }
}

/** Returns the event of a dead letter and where it was read, or undefined if the message is not a dead letter. */
export function readOrigin({ message }: Pick<Origin, 'message'>): Origin | undefined {
  const headers = message.headers ?? {};
  const reason = (name: string) => headers[reasonPrefix + name];
  const [topic, partition, offset, timestamp] = ['topic', 'partition', 'offset', 'timestamp'].map((name) =>
    reason(`original-${name}`),
  );
  if (!topic || !Buffer.isBuffer(partition) || !Buffer.isBuffer(offset) || !Buffer.isBuffer(timestamp))
    return undefined;
  const own = Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(reasonPrefix)));
  return {
    topic: String(topic),
    partition: partition.readInt32BE(),
    offset: offset.readBigInt64BE(),
    message: { ...message, headers: own, timestamp: String(timestamp.readBigInt64BE()) } as KafkaMessage,
  };
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
