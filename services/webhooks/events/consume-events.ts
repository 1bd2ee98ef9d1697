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
  /** Called when a message in an event topic was skipped because it is not a valid event. */
  onUnreadable(): void;
}

/**
 * Stores the events of the event topics. When it resolves, they are committed, so that no offset is committed
 * before its event. Only messages that no service of ours writes are skipped and logged: invalid events, and
 * events whose data Postgres refuses.
 */
export function createEventConsumer({
  pool,
  logger,
  onStored,
  onUnreadable,
}: EventConsumerOptions): (messages: ReceivedMessage[]) => Promise<void> {
  const leaveOut = ({ topic, partition, offset }: ReceivedMessage, error?: unknown): void => {
    onUnreadable();
    logger.error(
      { err: error, topic, partition, offset: String(offset) },
      'skipped a message that is not a valid event',
    );
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
