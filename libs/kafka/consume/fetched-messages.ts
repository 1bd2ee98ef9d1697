import type { OffsetsByTopicPartition } from 'kafkajs';
import type { FetchedMessage } from '../received-message.ts';

/** The part of kafkajs' batch that is used: the messages of one partition in one fetch. */
export interface BatchPayload {
  batch: {
    topic: string;
    partition: number;
    messages: readonly FetchedMessage[];
    /** Describes corruption after these messages. */
    corrupt?: string | undefined;
    /** The last offset of this batch, whether or not it has a message. The next fetch starts after it. */
    lastOffset(): bigint;
  };
  /**
   * Makes the next fetch start after this offset, or after the whole batch if this is the offset of its last
   * message.
   */
  resolveOffset(offset: bigint): void;
  heartbeat(): Promise<void>;
  /** Stops fetching from this partition. Returns a function that resumes it. */
  pause(): () => void;
  /** Returns the offsets after resolved ones that were not yet committed. */
  uncommittedOffsets(): OffsetsByTopicPartition;
  commitOffsetsIfNecessary(offsets: OffsetsByTopicPartition): Promise<void>;
}
