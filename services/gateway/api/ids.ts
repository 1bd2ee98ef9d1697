import { hash } from 'node:crypto';
import { sortKeys } from '#libs/contracts/etag.ts';

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
