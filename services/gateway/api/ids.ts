import { createHmac, hash, randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

/** 128 bits in 32 hex digits for the id of a command, which is the id of what it creates. */

// Randomness is fetched for many ids at once: by the piece it costs more than all else of an id.
const pool = Buffer.alloc(16 * 256);
let used = pool.length;

/** Fresh ones: a UUIDv7, so that ids of one time lie together in an index. */
export function freshBits(): string {
  if (used >= pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.subarray(used, used + 16);
  used += 16;
  return v7({ random }).replaceAll('-', '');
}

/**
 * The same ones for every repeat of a request, on every gateway: caller, route and Idempotency-Key
 * name the command.
 */
export function derivedBits(secret: string, actor: string, route: string, idempotencyKey: string): string {
  return createHmac('sha256', secret).update(`${actor}\0${route}\0${idempotencyKey}`).digest('hex').slice(0, 32);
}

/** SHA-256 (first 128 bits) over path parameters and the validated body: what makes two requests the same one. */
export function fingerprint(params: Record<string, string>, body: unknown): string {
  return hash('sha256', canonicalJson([params, body]), 'hex').slice(0, 32);
}

/** JSON with sorted keys, in which an absent field and a null one are the same. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sorted(value));
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value).sort()) {
    const item: unknown = Reflect.get(value, key);
    if (item !== null) copy[key] = sorted(item);
  }
  return copy;
}
