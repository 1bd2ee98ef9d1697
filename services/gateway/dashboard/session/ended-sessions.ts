import type { Logger } from 'pino';
import type { z } from 'zod';
import { endedSessionSchema } from '#libs/contracts/administration.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import type { Session } from './session.ts';
import { longestMs } from './session.ts';

/** The sessions that were ended by signing out or in again. Every gateway reads them from the topic `sessions`. */
export interface EndedSessions {
  /** Processes one message of the topic. */
  take(key: string | null, value: Buffer | null): void;
  isEnded(session: Pick<Session, 'id' | 'actor' | 'begun_ms'>): boolean;
  /**
   * Ends a session: on this gateway at once, and on the others when they have read the message. Rejects with a
   * PublishError if the broker does not accept the message; on this gateway the session is ended nevertheless.
   */
  end(session: Pick<Session, 'id' | 'expires_ms'>): Promise<void>;
  /** Ends this person's sessions that began before this one. */
  endEarlier(session: Pick<Session, 'actor' | 'begun_ms'>): Promise<void>;
}

const publishTimeoutMs = 5_000;

export function createEndedSessions({
  publisher,
  prefix,
  logger,
  now = Date.now,
}: {
  publisher: Pick<Publisher, 'publish'>;
  prefix: string;
  logger: Logger;
  now?: () => number;
}): EndedSessions {
  /** By session or actor. Sessions that began before `beforeMs` have ended. */
  const ended = new Map<string, { beforeMs: number; expiresMs: number }>();
  const add = (key: string, beforeMs: number, expiresMs: number): void => {
    const nowMs = now();
    // Expired sessions are rejected anyway.
    for (const [known, { expiresMs: until }] of ended) if (until <= nowMs) ended.delete(known);
    const known = ended.get(key);
    if (expiresMs > nowMs && beforeMs > (known?.beforeMs ?? -Infinity)) ended.set(key, { beforeMs, expiresMs });
  };
  const tell = async (key: string, message: z.input<typeof endedSessionSchema>): Promise<void> => {
    await publisher.publish(
      { topic: topicName(prefix, 'sessions'), partition: 0, key, value: JSON.stringify(message), headers: {} },
      { timeoutMs: publishTimeoutMs },
    );
  };
  return {
    take(key, value) {
      if (key === null || value === null) return;
      try {
        const { expires_at, before } = endedSessionSchema.parse(JSON.parse(value.toString()));
        add(key, before === undefined ? Infinity : Date.parse(before), Date.parse(expires_at));
      } catch (error) {
        logger.error({ err: error, session_id: key }, 'a message of the topic sessions cannot be read');
      }
    },
    isEnded: ({ id, actor, begun_ms }) => [id, actor].some((key) => (ended.get(key)?.beforeMs ?? -Infinity) > begun_ms),
    async end({ id, expires_ms }) {
      add(id, Infinity, expires_ms);
      await tell(id, { expires_at: new Date(expires_ms).toISOString() });
    },
    async endEarlier({ actor, begun_ms }) {
      const expiresMs = begun_ms + longestMs;
      add(actor, begun_ms, expiresMs);
      await tell(actor, { expires_at: new Date(expiresMs).toISOString(), before: new Date(begun_ms).toISOString() });
    },
  };
}
