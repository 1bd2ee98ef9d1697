import { createRemoteJWKSet, customFetch } from 'jose';
import type { FetchImplementation, JWTVerifyGetKey } from 'jose';
import type { Logger } from 'pino';
import { z } from 'zod';

/** Finds the issuer's key for a token's header. Rejects with KeysUnavailable when the issuer must be asked and cannot be. */
export type KeySet = JWTVerifyGetKey;

export class KeysUnavailable extends Error {
  override name = 'KeysUnavailable';
}

export interface KeySetOptions {
  url: string;
  logger: Logger;
  /** Older keys are fetched again, in the background. Default 5 min. */
  refreshMs?: number;
  /** The least time between two fetches, so that made-up kids cannot flood the issuer. Default 5 s. */
  cooldownMs?: number;
  timeoutMs?: number;
}

const maxBytes = 1_048_576;
const jwksSchema = z.object({ keys: z.array(z.looseObject({ kty: z.string() })).max(100) });

/**
 * The issuer's public keys: fetched when first needed and when a token names an unknown one, gone when the issuer no longer
 * publishes them. Jose would stop using keys that are too old to be fresh; ours are refreshed in the background instead, and
 * so are kept while the issuer is away.
 */
export function createKeySet({ url, logger, refreshMs = 300_000, cooldownMs = 5_000, timeoutMs = 3_000 }: KeySetOptions): KeySet {
  let triedAt = -Infinity;
  const fetchKeys: FetchImplementation = async (href, options) => {
    // Jose's own cool-down begins with a fetch that succeeded.
    if (performance.now() - triedAt < cooldownMs) throw new KeysUnavailable('the issuer was asked for its keys a moment ago');
    triedAt = performance.now();
    try {
      const response = await fetch(href, { ...options, redirect: 'error' });
      if (!response.ok) throw new Error(`status ${response.status}`);
      return Response.json(jwksSchema.parse(JSON.parse(await readBounded(response))));
    } catch (error) {
      logger.warn({ err: error, url }, 'the keys of the token issuer cannot be fetched');
      throw new KeysUnavailable('the issuer cannot be asked for its keys', { cause: error });
    }
  };
  const keys = createRemoteJWKSet(new URL(url), {
    timeoutDuration: timeoutMs,
    cooldownDuration: cooldownMs,
    cacheMaxAge: Infinity,
    [customFetch]: fetchKeys,
  });
  return (header, token) => {
    const isDue = keys.jwks() !== undefined && performance.now() - triedAt >= refreshMs;
    // A failure is logged above, and the known keys stay.
    if (isDue) keys.reload().catch(() => undefined);
    return keys(header, token);
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
