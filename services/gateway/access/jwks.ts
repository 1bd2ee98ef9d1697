import { type CryptoKey, createRemoteJWKSet, customFetch, type JWTHeaderParameters } from 'jose';
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
 * The issuer's public keys, by jose's remote key set. They are fetched when first needed, when a token names an unknown
 * key, and repeatedly while tokens arrive. There is no timer: if no token arrives for a while, the keys expire, and the
 * next token waits for the issuer. Added here: a limit of the response's size, a pause after a failure, and the refresh
 * in the background, so that known keys are kept while the issuer is unavailable.
 */
export function createKeySet({ url, logger, maxStaleMs, cooldownMs = 5_000, timeoutMs = 3_000 }: KeySetOptions) {
  /** The response to the last fetch that succeeded. */
  let known = '';
  let triedAt = -Infinity;
  let hasFailed = false;

  const fetchKeys = async (address: string, { headers, signal }: RequestInit): Promise<Response> => {
    if (hasFailed && Date.now() - triedAt < cooldownMs)
      throw new KeysUnavailable('the issuer was asked for its keys a moment ago');
    triedAt = Date.now();
    hasFailed = true;
    try {
      const response = await fetch(address, { redirect: 'error', headers, signal } as RequestInit);
      if (!response.ok) throw new Error(`status ${response.status}`);
      const text = await readBounded(response);
      jwksSchema.parse(JSON.parse(text));
      hasFailed = false;
      // The same string, so that callers compare it in no time.
      if (known !== text) known = text;
      return new Response(text);
    } catch (error) {
      logger.warn({ err: error, url }, 'the keys of the token issuer cannot be fetched');
      throw new KeysUnavailable('the issuer cannot be asked for its keys', { cause: error });
    }
  };
  const keys = createRemoteJWKSet(new URL(url), {
    cacheMaxAge: maxStaleMs,
    cooldownDuration: cooldownMs,
    timeoutDuration: timeoutMs,
    [customFetch]: fetchKeys,
  });

  return {
    /**
     * Returns the current keys as the issuer sent them: the same text until a key is added or removed; undefined if there
     * is none that is recent enough.
     */
    current(): string | undefined {
      if (!keys.fresh) return undefined;
      // A failure is logged above. The keys remain valid until they are too old.
      if (!keys.reloading && Date.now() - triedAt >= Math.max(maxStaleMs / 5, cooldownMs))
        keys.reload().catch(() => undefined);
      return known;
    },
    /**
     * Returns the key for a token's header. Rejects with KeysUnavailable if the key must be fetched and the issuer does
     * not respond.
     */
    find: (header: JWTHeaderParameters): Promise<CryptoKey> => keys(header),
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
