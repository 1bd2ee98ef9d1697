import type { Logger } from 'pino';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { isDataError } from '#libs/postgres/errors.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { readEvent } from './read-event.ts';
import { storeEvents } from './store-events.ts';

interface EventConsumerOptions {
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
export function createEventConsumer({ pool, logger, onStored, onUnreadable }: EventConsumerOptions) {
  function skip({ topic, partition, offset }: ReceivedMessage, error?: unknown): void {
    onUnreadable();
    const about = { err: error, topic, partition, offset: String(offset) };
    logger.error(about, 'skipped a message that is not a valid event');
  }

  return async function store(messages: ReceivedMessage[]): Promise<void> {
    const read = messages.flatMap((message) => {
      const event = readEvent(message);
      if (!event) skip(message);
      return event ? [{ message, event }] : [];
    });
    const events = read.map(({ event }) => event);
    const [first] = read;
    if (!first) return;
    try {
      onStored(await storeEvents(pool, events));
    } catch (error) {
      if (!isDataError(error)) throw error;
      if (read.length === 1) return skip(first.message, error);
      // Each is stored alone.
      for (const { message } of read) await store([message]);
    }
  };
}
