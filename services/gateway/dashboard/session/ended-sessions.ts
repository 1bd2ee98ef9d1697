import type { Logger } from 'pino';
import { endedSessionSchema } from '#libs/contracts/administration.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';

/** The sessions that were ended by signing out, as the topic `sessions` tells every gateway. */
export interface EndedSessions {
  /** Takes one message of the topic. */
  take(key: string | null, value: Buffer | null): void;
  isEnded(sessionId: string): boolean;
  /**
   * Ends a session that would last until `expiresMs`: here at once, on every gateway once it resolves and the message has
   * travelled. Rejects with a PublishError when the broker did not take it; it is ended here all the same.
   */
  end(sessionId: string, expiresMs: number): Promise<void>;
}

const publishTimeoutMs = 5_000;

export function createEndedSessions({ publisher, prefix, logger, now = Date.now }: { publisher: Pick<Publisher, 'publish'>; prefix: string; logger: Logger; now?: () => number }): EndedSessions {
  const ended = new Map<string, number>();
  const add = (id: string, expiresMs: number): void => {
    const nowMs = now();
    // What has expired by itself is refused without being known here.
    for (const [known, until] of ended) if (until <= nowMs) ended.delete(known);
    if (expiresMs > nowMs) ended.set(id, expiresMs);
  };
  return {
    take(key, value) {
      if (key === null || value === null) return;
      try {
        add(key, Date.parse(endedSessionSchema.parse(JSON.parse(value.toString())).expires_at));
      } catch (error) {
        logger.error({ err: error, session_id: key }, 'a message of the topic sessions cannot be read');
      }
    },
    isEnded: (sessionId) => ended.has(sessionId),
    async end(sessionId, expiresMs) {
      add(sessionId, expiresMs);
      const value = JSON.stringify({ expires_at: new Date(expiresMs).toISOString() });
      await publisher.publish({ topic: topicName(prefix, 'sessions'), partition: 0, key: sessionId, value, headers: {} }, { timeoutMs: publishTimeoutMs });
    },
  };
}
