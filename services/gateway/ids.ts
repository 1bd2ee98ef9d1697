import { createHash, createHmac, randomFillSync } from 'node:crypto';
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

/** The same ones for every repeat of a request, on every gateway: caller, route and Idempotency-Key name the command. */
export function derivedBits(secret: string, actor: string, route: string, idempotencyKey: string): string {
  return createHmac('sha256', secret).update(`${actor}\0${route}\0${idempotencyKey}`).digest('hex').slice(0, 32);
}

/** SHA-256 (first 128 bits) over path parameters and the validated body: what makes two requests the same one. */
export function fingerprint(params: Record<string, string>, body: unknown): string {
  return createHash('sha256').update(canonicalJson([params, body])).digest('hex').slice(0, 32);
}

/** JSON with sorted keys, in which an absent field and a null one are the same. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const members = Object.entries(value)
    .filter(([, item]) => item !== undefined && item !== null)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`);
  return `{${members.join(',')}}`;
}
