import type { Admin, Kafka } from 'kafkajs';

/** Determines where reading of a partition starts, and which messages the topic no longer has. */
export interface Place {
  position: bigint;
  /** Messages from this offset to the one before `position` were deleted before this group read them. */
  lostFrom?: bigint;
  /** The group has read the topic from its beginning, which the topic still has. */
  isWhole: boolean;
}

interface Range {
  low: bigint;
  high: bigint;
}

/** The brokers' offsets of the group and of the topics. */
export class Places {
  readonly #kafka: Kafka;
  readonly #groupId: string;
  #admin: Promise<Admin> | undefined;

  constructor(kafka: Kafka, groupId: string) {
    this.#kafka = kafka;
    this.#groupId = groupId;
  }

  /**
   * Returns where the group continues in each partition of a topic: after the last message that it has read or,
   * if the topic no longer has the next one, at the oldest message. A new group starts at the oldest message,
   * at `from`, or after the newest. Only a new group can start at the end.
   */
  async next(
    topic: string,
    { from, fromBeginning = true }: { from?: Date; fromBeginning?: boolean },
  ): Promise<Map<number, Place>> {
    const admin = await this.#connected();
    const [committed, ranges, moments] = await Promise.all([
      this.committed(topic),
      this.ranges(topic),
      from ? admin.fetchTopicOffsetsByTimestamp(topic, from.getTime()) : [],
    ]);
    const first = new Map(moments.map(({ partition, offset }) => [partition, BigInt(offset)]));
    return new Map(
      [...ranges].map(([partition, range]) => {
        const start = first.get(partition) ?? (fromBeginning ? range.low : range.high);
        const isWhole = from === undefined && fromBeginning && range.low === 0n;
        return [partition, { ...decidePlace(committed.get(partition), range, start, from !== undefined), isWhole }];
      }),
    );
  }

  /** Returns the group's committed offset of each partition of a topic that has one. */
  async committed(topic: string): Promise<Map<number, bigint>> {
    const [read] = await (await this.#connected()).fetchOffsets({ groupId: this.#groupId, topics: [topic] });
    const offsets = read?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)] as const);
    return new Map(offsets?.filter(([, offset]) => offset >= 0n));
  }

  /** Returns the range of offsets of each partition of a topic. */
  async ranges(topic: string): Promise<Map<number, Range>> {
    const offsets = await (await this.#connected()).fetchTopicOffsets(topic);
    return new Map(offsets.map(({ partition, low, high }) => [partition, { low: BigInt(low), high: BigInt(high) }]));
  }

  /** Closes the connection. The next request opens another one. */
  async close(): Promise<void> {
    const admin = this.#admin;
    this.#admin = undefined;
    await admin?.then((connected) => connected.disconnect()).catch(() => undefined);
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
 * Pure. `committed` is undefined if the group has read nothing. If the topic was deleted and created again, it
 * may end before the committed offset.
 */
function decidePlace(
  committed: bigint | undefined,
  { low, high }: Range,
  start: bigint,
  isFromMoment: boolean,
): Omit<Place, 'isWhole'> {
  if (committed === undefined) return { position: start };
  if (committed > high) return { position: low };
  const wanted = isFromMoment && start > committed ? start : committed;
  return wanted < low ? { position: low, lostFrom: wanted } : { position: wanted };
}
