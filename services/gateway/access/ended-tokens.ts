import type { Logger } from 'pino';
import type { z } from 'zod';
import type { MacKeys } from '#libs/contracts/mac.ts';
import { endedTokenSchema } from '#libs/contracts/sign-ins.ts';
import { topicName } from '#libs/contracts/topics.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import type { AccessToken } from './caller.ts';

export type EndedTokens = ReturnType<typeof createEndedTokens>;

const publishTimeoutMs = 5_000;

export interface EndedTokensOptions {
  /** Signs what it publishes with the key of gateways. */
  publisher: Pick<Publisher, 'publish'>;
  keys: Pick<MacKeys, 'verifySigner'>;
  prefix: string;
  /** The maximum lifetime of a token, in seconds. */
  maxLifetimeS: number;
  logger: Logger;
  now?: () => number;
}

/**
 * The access tokens that were ended before they expired: by signing out, or by the person's next sign-in with the same
 * OAuth client. Every gateway reads them from the topic `sessions`.
 */
export function createEndedTokens({
  publisher,
  keys,
  prefix,
  maxLifetimeS,
  logger,
  now = Date.now,
}: EndedTokensOptions) {
  /** By the token's id or its owner. Tokens issued before `beforeMs` have ended; times of issue are whole seconds. */
  const ended = new Map<string, { beforeMs: number; expiresMs: number; kept: string | undefined }>();
  const add = (key: string, beforeMs: number, expiresMs: number, kept?: string): void => {
    const nowMs = now();
    // Expired tokens are refused anyway.
    for (const [known, { expiresMs: until }] of ended) if (until <= nowMs) ended.delete(known);
    const known = ended.get(key);
    if (expiresMs > nowMs && beforeMs >= (known?.beforeMs ?? -Infinity)) ended.set(key, { beforeMs, expiresMs, kept });
  };
  const isEndedBy = (key: string, { id, issuedMs }: AccessToken): boolean => {
    const { beforeMs = -Infinity, kept } = ended.get(key) ?? {};
    return issuedMs < beforeMs || (issuedMs === beforeMs && kept !== undefined && id !== kept);
  };
  const publish = async (key: string, message: Omit<z.input<typeof endedTokenSchema>, 'key'>): Promise<void> => {
    await publisher.publish(
      {
        topic: topicName(prefix, 'sessions'),
        partition: 0,
        key,
        value: JSON.stringify({ key, ...message }),
        headers: {},
      },
      { timeoutMs: publishTimeoutMs },
    );
  };
  return {
    /** Processes one message of the topic. One that no gateway has signed for this key is ignored. */
    take(recordKey: string | null, value: Buffer | null, headers: Record<string, string>): void {
      if (recordKey === null || value === null) return;
      if (keys.verifySigner({ headers, value }) !== 'gateway') {
        logger.error('ignored a message of the topic sessions without a MAC of a gateway');
        return;
      }
      try {
        const { key, expires_at, before, kept } = endedTokenSchema.parse(JSON.parse(value.toString()));
        if (key !== recordKey) throw new RangeError('it was signed for another key');
        add(key, before === undefined ? Infinity : Date.parse(before), Date.parse(expires_at), kept);
      } catch (error) {
        logger.error({ err: error }, 'a message of the topic sessions cannot be read');
      }
    },
    isEnded: (token: AccessToken): boolean => isEndedBy(token.id, token) || isEndedBy(token.owner, token),
    /**
     * Ends a token: on this gateway at once, and on the others when they have read the message. Rejects with a
     * PublishError if the broker does not accept the message; on this gateway the token is ended nevertheless.
     */
    async end({ id, expiresMs }: AccessToken): Promise<void> {
      add(id, Infinity, expiresMs);
      await publish(id, { expires_at: new Date(expiresMs).toISOString() });
    },
    /** Ends the other tokens of the same person and OAuth client that were issued before this one or in the same second. */
    async endEarlier({ id, owner, issuedMs }: AccessToken): Promise<void> {
      const expiresMs = issuedMs + maxLifetimeS * 1000;
      add(owner, issuedMs, expiresMs, id);
      const expires_at = new Date(expiresMs).toISOString();
      await publish(owner, { expires_at, before: new Date(issuedMs).toISOString(), kept: id });
    },
  };
}
