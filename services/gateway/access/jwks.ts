import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Logger } from 'pino';
import { z } from 'zod';

export type KeySet = ReturnType<typeof createKeySet>;

export class KeysUnavailable extends Error {
  override name = 'KeysUnavailable';
}

export interface KeySetOptions {
  url: string;
  logger: Logger;
  /** The maximum age of keys, in ms. After a fifth of it, they are refreshed in the background. */
  maxStaleMs: number;
  /**
   * The minimum time between two fetches in ms, so that invented key ids cannot cause many requests to the issuer.
   * Default 5 s.
   */
  cooldownMs?: number;
  timeoutMs?: number;
}

const maxBytes = 1_048_576;
const jwksSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(100) });

/**
 * The issuer's public keys. They are fetched when first needed, when a token names an unknown key, and repeatedly while tokens arrive.
 * There is no timer: if no token arrives for a while, the keys expire, and the next token waits for the issuer.
 */
export function createKeySet({ url, logger, maxStaleMs, cooldownMs = 5_000, timeoutMs = 3_000 }: KeySetOptions) {
  let known: { text: string; find: JWTVerifyGetKey } | undefined;
  let fetchedAt = -Infinity;
  let triedAt = -Infinity;
  let fetching: Promise<void> | undefined;

  const fetchKeys = async (): Promise<void> => {
    const begunAt = performance.now();
    triedAt = begunAt;
    try {
      const response = await fetch(url, {
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
        headers: { accept: 'application/jwk-set+json, application/json' },
      });
      if (!response.ok) throw new Error(`status ${response.status}`);
      const set = jwksSchema.parse(JSON.parse(await readBounded(response)));
      const text = JSON.stringify(set);
      if (known?.text !== text) known = { text, find: createLocalJWKSet(set as JSONWebKeySet) };
      fetchedAt = begunAt;
    } catch (error) {
      logger.warn({ err: error, url }, 'the keys of the token issuer cannot be fetched');
      throw new KeysUnavailable('the issuer cannot be asked for its keys', { cause: error });
    }
  };
  const isCoolingDown = (): boolean => !fetching && performance.now() - triedAt < cooldownMs;
  const reload = (): Promise<void> => {
    if (isCoolingDown()) return Promise.reject(new KeysUnavailable('the issuer was asked for its keys a moment ago'));
    fetching ??= fetchKeys().finally(() => (fetching = undefined));
    return fetching;
  };
  /**
   * The current key set: the same object until a key is added or removed; undefined if there is none that is recent
   * enough.
   */
  const current = (): object | undefined => {
    const ageMs = performance.now() - fetchedAt;
    if (ageMs >= maxStaleMs) return undefined;
    // The failure is logged above. The keys remain valid until they are too old.
    if (ageMs >= maxStaleMs / 5) reload().catch(() => undefined);
    return known;
  };
  const findIn = (...token: Parameters<JWTVerifyGetKey>) => {
    if (!known) throw new KeysUnavailable('no keys of the issuer are known');
    return known.find(...token);
  };

  return {
    current,
    /**
     * Returns the key for a token's header. Rejects with KeysUnavailable if the key must be fetched and the issuer does
     * not respond.
     */
    async find(...token: Parameters<JWTVerifyGetKey>) {
      if (!current()) await reload();
      try {
        return await findIn(...token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || isCoolingDown()) throw error;
        await reload();
        return findIn(...token);
      }
    },
  };
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new Error(`more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
