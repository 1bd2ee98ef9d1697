import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { invalidField, type Refusal } from './errors.ts';
import { formatId, idBits } from './ids.ts';

/**
 * An API key has the form `cbk_<live|test>_<id>_<secret><checksum>` (contract: permission-13).
 * id: the 32 hex digits of the key_id. secret: 256 random bits as 43 base62 digits. checksum: the CRC-32 of
 * everything before it as 6 base62 digits, so that mistyped keys, and keys found by a secret scanner, are
 * recognized without a lookup.
 */
export type KeyEnvironment = 'live' | 'test';

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const form = /^cbk_(live|test)_([0-9a-f]{32})_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/;
const checksumLength = 6;

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; rest > 0n; rest /= 62n) text = alphabet.charAt(Number(rest % 62n)) + text;
  return text.padStart(length, '0');
}

/** Returns the last six characters of a key, computed from the preceding ones. */
export function apiKeyChecksum(preceding: string): string {
  return base62(BigInt(crc32(preceding)), checksumLength);
}

/** Creates a key for `keyId` (`key_` + 32 hex digits). Only tests pass `secret`, which is 32 random bytes. */
export function makeApiKey(environment: KeyEnvironment, keyId: string, secret: Uint8Array = randomBytes(32)): string {
  const number = BigInt(`0x${Buffer.from(secret).toString('hex')}`);
  const preceding = `cbk_${environment}_${idBits(keyId)}_${base62(number, 43)}`;
  return preceding + apiKeyChecksum(preceding);
}

/**
 * Returns the id and environment of a well-formed key, or undefined if its form or checksum is wrong. This does
 * not authenticate the key: see `hashApiKey`.
 */
export function parseApiKey(apiKey: string): { key_id: string; environment: KeyEnvironment } | undefined {
  const match = form.exec(apiKey);
  if (!match?.[2] || apiKeyChecksum(apiKey.slice(0, -checksumLength)) !== apiKey.slice(-checksumLength))
    return undefined;
  return { key_id: formatId('key', match[2]), environment: match[1] === 'live' ? 'live' : 'test' };
}

/** Returns the stored form of a key: the HMAC-SHA-256 of the whole key under the pepper, as 64 hex digits. */
export function hashApiKey(pepper: string, apiKey: string): string {
  return createHmac('sha256', pepper).update(apiKey).digest('hex');
}

const never = '9999-12-31T23:59:59.999Z';

/** Returns the earlier time; ISO 8601 UTC sorts as text. */
export function earlier(one: string, other: string | null | undefined): string {
  return typeof other !== 'string' || one < other ? one : other;
}

/** Returns the latest time at which a new key may expire. */
export function latestExpiry(
  notAfter: string | null | undefined,
  maker: { expires_at: string } | null | undefined,
): string {
  return earlier(notAfter ?? never, maker?.expires_at);
}

/** Returns the refusal of a new key because of its expiry, or undefined. */
export function expiryRefusal(expiresAt: string, latest: string, now: string): Refusal | undefined {
  const wrong = (rule: string) => invalidField('expires_at', `expires_at ${rule}`);
  if (expiresAt <= now) return wrong('must be in the future');
  return expiresAt > latest
    ? wrong(
        `must not be later than ${latest}: an API key cannot outlive its creator or exceed the bank's maximum lifetime`,
      )
    : undefined;
}

/** Compares two hashes or tokens in constant time. */
export function sameHash(left: string, right: string): boolean {
  const a = Buffer.from(left);
  const b = Buffer.from(right);
  return a.length === b.length && timingSafeEqual(a, b);
}
