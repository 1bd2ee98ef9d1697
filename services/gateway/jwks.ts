import { createPublicKey } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import type { Logger } from 'pino';
import { z } from 'zod';

/**
 * The issuer's public keys. Ours rather than get-jwks, which fetches without a time-out and once per unknown kid, keeps
 * a key for a minute when the issuer is away, and whose PEM conversion knows no EdDSA.
 */
export interface KeySet {
  /**
   * The key of that kid in PEM. Undefined when the issuer has none of that kid and algorithm. Rejects with
   * KeysUnavailable when the kid is not known and the issuer cannot be asked.
   */
  find(kid: string, algorithm: string): Promise<string | undefined>;
}

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
const jwksSchema = z.object({
  keys: z.array(z.looseObject({ kid: z.string().optional(), kty: z.string(), use: z.string().optional(), alg: z.string().optional() })).max(100),
});

interface Key {
  pem: string;
  algorithm: string | undefined;
}

/** Keys are fetched when first needed, kept while the issuer is away, and gone when it no longer publishes them. */
export function createKeySet({ url, logger, refreshMs = 300_000, cooldownMs = 5_000, timeoutMs = 3_000 }: KeySetOptions): KeySet {
  let keys: Map<string, Key> | undefined;
  let triedAt = -Infinity;
  let failed = false;
  let fetching: Promise<void> | undefined;

  const load = async (): Promise<void> => {
    try {
      keys = await fetchKeys(url, timeoutMs, logger);
      failed = false;
    } catch (error) {
      failed = true;
      logger.warn({ err: error, url }, 'the keys of the token issuer cannot be fetched');
    }
  };
  const refetch = (minAgeMs: number): Promise<void> => {
    const now = performance.now();
    if (!fetching && now - triedAt >= minAgeMs) {
      triedAt = now;
      fetching = load().finally(() => {
        fetching = undefined;
      });
    }
    return fetching ?? Promise.resolve();
  };

  return {
    async find(kid, algorithm) {
      let key = keys?.get(kid);
      if (key) void refetch(refreshMs);
      else {
        await refetch(cooldownMs);
        key = keys?.get(kid);
        if (!key && (failed || !keys)) throw new KeysUnavailable('the issuer cannot be asked for its keys');
      }
      return key && (key.algorithm === undefined || key.algorithm === algorithm) ? key.pem : undefined;
    },
  };
}

async function fetchKeys(url: string, timeoutMs: number, logger: Logger): Promise<Map<string, Key>> {
  const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: 'error', headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const { keys } = jwksSchema.parse(JSON.parse(await readBounded(response)));
  const found = new Map<string, Key>();
  for (const jwk of keys) {
    if (jwk.kid === undefined || jwk.kty === 'oct' || (jwk.use !== undefined && jwk.use !== 'sig')) continue;
    try {
      const pem = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString();
      found.set(jwk.kid, { pem, algorithm: jwk.alg });
    } catch (error) {
      logger.warn({ err: error, kid: jwk.kid }, 'a key of the token issuer cannot be read');
    }
  }
  return found;
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
