import type { Logger } from 'pino';
import type { z } from 'zod';
import { endedSessionSchema } from '#libs/contracts/sessions.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import { longestMs, type Session } from './session.ts';

export type EndedSessions = ReturnType<typeof createEndedSessions>;

const publishTimeoutMs = 5_000;

/** The sessions that were ended by signing out or in again. Every gateway reads them from the topic `sessions`. */
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
}) {
  /** By session or actor. Sessions that began before `beforeMs` have ended. */
  const ended = new Map<string, { beforeMs: number; expiresMs: number }>();
  const add = (key: string, beforeMs: number, expiresMs: number): void => {
    const nowMs = now();
    // Expired sessions are rejected anyway.
    for (const [known, { expiresMs: until }] of ended) if (until <= nowMs) ended.delete(known);
    const known = ended.get(key);
    if (expiresMs > nowMs && beforeMs > (known?.beforeMs ?? -Infinity)) ended.set(key, { beforeMs, expiresMs });
  };
  const publish = async (key: string, message: z.input<typeof endedSessionSchema>): Promise<void> => {
    await publisher.publish(
      { topic: topicName(prefix, 'sessions'), partition: 0, key, value: JSON.stringify(message), headers: {} },
      { timeoutMs: publishTimeoutMs },
    );
  };
  return {
    /** Processes one message of the topic. */
    take(key: string | null, value: Buffer | null): void {
      if (key === null || value === null) return;
      try {
        const { expires_at, before } = endedSessionSchema.parse(JSON.parse(value.toString()));
        add(key, before === undefined ? Infinity : Date.parse(before), Date.parse(expires_at));
      } catch (error) {
        logger.error({ err: error, session_id: key }, 'a message of the topic sessions cannot be read');
      }
    },
    isEnded: ({ id, actor, begun_ms }: Pick<Session, 'id' | 'actor' | 'begun_ms'>): boolean =>
      [id, actor].some((key) => (ended.get(key)?.beforeMs ?? -Infinity) > begun_ms),
    /**
     * Ends a session: on this gateway at once, and on the others when they have read the message. Rejects with a
     * PublishError if the broker does not accept the message; on this gateway the session is ended nevertheless.
     */
    async end({ id, expires_ms }: Pick<Session, 'id' | 'expires_ms'>): Promise<void> {
      add(id, Infinity, expires_ms);
      await publish(id, { expires_at: new Date(expires_ms).toISOString() });
    },
    /** Ends this person's sessions that began before this one. */
    async endEarlier({ actor, begun_ms }: Pick<Session, 'actor' | 'begun_ms'>): Promise<void> {
      const expiresMs = begun_ms + longestMs;
      add(actor, begun_ms, expiresMs);
      await publish(actor, { expires_at: new Date(expiresMs).toISOString(), before: new Date(begun_ms).toISOString() });
    },
  };
}
