import type { Admin, Kafka } from 'kafkajs';

/** Where reading a partition begins, and what of it the topic no longer has. */
export interface Place {
  position: bigint;
  /** Messages from this offset to the one before `position` are gone, and this group has not read them. */
  lostFrom?: bigint;
}

interface Range {
  low: bigint;
  high: bigint;
}

/** What the brokers know of offsets: the group's, and those that topics have. */
export class Places {
  readonly #kafka: Kafka;
  readonly #groupId: string;
  #admin: Promise<Admin> | undefined;

  constructor(kafka: Kafka, groupId: string) {
    this.#kafka = kafka;
    this.#groupId = groupId;
  }

  /**
   * Where the group goes on in each partition of a topic. Behind what it has read; where the topic
   * no longer has that, at the oldest that it has; a group that has read nothing begins at the
   * oldest, or at `from`, or behind the newest. Never at the end otherwise.
   */
  async next(
    topic: string,
    { from, fromBeginning = true }: { from?: Date; fromBeginning?: boolean },
  ): Promise<Map<number, Place>> {
    const admin = await this.#connected();
    const [[read], ranges, moments] = await Promise.all([
      admin.fetchOffsets({ groupId: this.#groupId, topics: [topic] }),
      this.ranges(topic),
      from ? admin.fetchTopicOffsetsByTimestamp(topic, from.getTime()) : [],
    ]);
    const committed = new Map(read?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
    const first = new Map(moments.map(({ partition, offset }) => [partition, BigInt(offset)]));
    return new Map(
      [...ranges].map(([partition, range]) => {
        const start = first.get(partition) ?? (fromBeginning ? range.low : range.high);
        return [partition, placeOf(committed.get(partition) ?? -1n, range, start, from !== undefined)];
      }),
    );
  }

  /** What a topic has of each partition. */
  async ranges(topic: string): Promise<Map<number, Range>> {
    const offsets = await (await this.#connected()).fetchTopicOffsets(topic);
    return new Map(offsets.map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]));
  }

  async close(): Promise<void> {
    const admin = await this.#admin?.catch(() => undefined);
    await admin?.disconnect().catch(() => undefined);
  }

  #connected(): Promise<Admin> {
    this.#admin ??= this.#connect().catch((error: unknown) => {
      this.#admin = undefined;
      throw error;
    });
    return this.#admin;
  }

  async #connect(): Promise<Admin> {
    const admin = this.#kafka.admin();
    await admin.connect();
    return admin;
  }
}

/**
 * PURE. `committed` is negative where the group has read nothing; a topic that was made anew ends
 * before what was read of the old one.
 */
function placeOf(committed: bigint, { low, high }: Range, start: bigint, isFromMoment: boolean): Place {
  if (committed < 0n) return { position: start };
  if (committed > high) return { position: low };
  const wanted = isFromMoment && start > committed ? start : committed;
  return wanted < low ? { position: low, lostFrom: wanted } : { position: wanted };
}
