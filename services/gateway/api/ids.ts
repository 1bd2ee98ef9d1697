import { hash } from 'node:crypto';
import { v7 } from 'uuid';
import { sortKeys } from '#libs/contracts/etag.ts';
import { bucketForKey, idBits } from '#libs/contracts/ids.ts';

/**
 * Bits are the 128 bits, as 32 hex digits, of a command's id, which is the id of what it creates. Their last byte is
 * computed from the others.
 */
const checked = (digits: string): string => digits + bucketForKey(digits).toString(16).padStart(2, '0');

/**
 * Returns new bits: a UUIDv7 of this time (in ms since 1970), so that ids of the same time are close together in an
 * index. Its last two bytes are check bytes, by which a mistyped id is not taken for one that was given out.
 */
export function freshBits(ms: number): string {
  return checked(checked(v7({ msecs: ms }).replaceAll('-', '').slice(0, 28)));
}

/** The last byte of these ids is the bucket of their command. */
const hasBucket = /^(txn|trf|hld|bat)_/;

/** Returns the time of fresh bits in an id; -Infinity for any other id. */
export function freshAt(id: string): number {
  const bits = idBits(id);
  const first = checked(bits.slice(0, 28));
  const isFresh = hasBucket.test(id) ? bits.startsWith(first) : bits === checked(first);
  return isFresh && /^.{12}7.{3}[89ab]/.test(bits) ? Number.parseInt(bits.slice(0, 12), 16) : -Infinity;
}

/**
 * Returns the bits for a request with an Idempotency-Key, derived from caller, route, and key: the same on
 * every repeat and every gateway, for ever. No secret takes part, because a lost or changed one would make the bank
 * execute repeats again (docs/decisions/0067). Never change what is hashed.
 */
export function derivedBits(actor: string, route: string, idempotencyKey: string): string {
  const named = JSON.stringify(['core-banking idempotency 1', actor, route, idempotencyKey]);
  return hash('sha256', named, 'hex').slice(0, 32);
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
