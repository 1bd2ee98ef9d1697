import { createHmac, hash } from 'node:crypto';
import { v7 } from 'uuid';
import { sortKeys } from '#libs/contracts/etag.ts';
import { idBits } from '#libs/contracts/ids.ts';

/** The 128 bits, as 32 hex digits, of a command's id, which is the id of what it creates. */

/**
 * Returns new bits: a UUIDv7 of this time (in ms since 1970), so that ids of the same time are close together in an
 * index.
 */
export function freshBits(ms: number): string {
  return v7({ msecs: ms }).replaceAll('-', '');
}

/** Returns the time of fresh bits in an id; -Infinity for other bits, which look like them in one of 64 cases. */
export function freshAt(id: string): number {
  const bits = idBits(id);
  return /^.{12}7.{3}[89ab]/.test(bits) ? Number.parseInt(bits.slice(0, 12), 16) : -Infinity;
}

/**
 * Returns the bits for a request with an Idempotency-Key, derived from caller, route, and key: the same on
 * every repeat and every gateway.
 */
export function derivedBits(secret: string, actor: string, route: string, idempotencyKey: string): string {
  return createHmac('sha256', secret).update(`${actor}\0${route}\0${idempotencyKey}`).digest('hex').slice(0, 32);
}

/**
 * Returns the first 128 bits of a SHA-256 over path parameters and validated body. Requests with the same
 * fingerprint are the same request.
 */
export function fingerprint(params: Record<string, string>, body: unknown): string {
  return hash('sha256', canonicalJson([params, body]), 'hex').slice(0, 32);
}

/** Serializes JSON with sorted keys. An absent field and a null one are the same. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sortKeys(value, false));
}
