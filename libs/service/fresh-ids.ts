import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { v7 } from 'uuid';
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
 * Returns a new request id. It contains this time (in ms since 1970), so that its postings are found without an index. The
 * proxy of docker-compose.yml generates the same form.
 */
export function freshRequestId(ms: number): string {
  return `req_${ms}_${randomUUID()}`;
}

const requestIdForm = /^[\x20-\x7e]{1,128}$/;

/** Returns the X-Request-Id of a caller or a proxy, or a new one. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : freshRequestId(Date.now());
}

/** The clocks of processes differ by less than this. */
const beforeMs = 10_000;
/** A request is accepted within this time, because its body must arrive within 13 s (`patience`). */
const afterMs = 30_000;

/**
 * Returns the period in which the postings of a request were accepted if the bank generated its id; undefined if the id has
 * another form. Ids of callers may have this form too, and their postings another time: a request may be repeated, or
 * approved, later.
 */
export function periodOfRequest(id: string): { from: string; to: string } | undefined {
  const ms = Number(/^req_(\d{13})_/.exec(id)?.[1]);
  if (Number.isNaN(ms)) return undefined;
  return { from: new Date(ms - beforeMs).toISOString(), to: new Date(ms + afterMs).toISOString() };
}
