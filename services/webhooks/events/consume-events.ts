import type { Logger } from 'pino';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { isDataError } from '#libs/postgres/errors.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type FeedEvent, readEvent } from './read-event.ts';
import { storeEvents } from './store-events.ts';

export interface EventConsumerOptions {
  pool: Pool;
  logger: Logger;
  /** Called after the commit. */
  onStored(count: number): void;
  /** Something that is no event of the contract lies in a topic of events; it was left out. */
  onUnreadable(): void;
}

/**
 * Stores what comes on the topics of events: what it was called with is committed when it resolves,
 * so that no offset is kept of an event that is not stored. Only what no service of ours writes is
 * left out, and logged: no event of the contract, or one whose data Postgres refuses.
 */
export function createEventConsumer({
  pool,
  logger,
  onStored,
  onUnreadable,
}: EventConsumerOptions): (messages: ReceivedMessage[]) => Promise<void> {
  const leaveOut = ({ topic, partition, offset }: ReceivedMessage, error?: unknown): void => {
    onUnreadable();
    logger.error({ err: error, topic, partition, offset: String(offset) }, 'no event of the contract: it is left out');
  };
  const store = async (read: { message: ReceivedMessage; event: FeedEvent }[]): Promise<void> => {
    try {
      onStored(
        await storeEvents(
          pool,
          read.map(({ event }) => event),
        ),
      );
    } catch (error) {
      if (!isDataError(error)) throw error;
      const [only] = read;
      if (read.length === 1 && only) return leaveOut(only.message, error);
      for (const one of read) await store([one]);
    }
  };
  return async (messages) => {
    const read = messages.map((message) => ({ message, event: readEvent(message) }));
    for (const { message, event } of read) if (!event) leaveOut(message);
    const events = read.filter((one): one is { message: ReceivedMessage; event: FeedEvent } => one.event !== undefined);
    if (events.length > 0) await store(events);
  };
}
