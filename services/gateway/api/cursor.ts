import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import type { Position } from '#libs/contracts/message-fields.ts';
import { refuseViolations } from '../http/errors.ts';

export type Cursors = ReturnType<typeof createCursors>;

const notOurs = 'cursor is not one of this list with these filters';
const signatureBytes = 16;

/**
 * Opaque positions in lists. A cursor is signed together with its list (endpoint, path, filters, order), so
 * that only our own cursors are accepted, and only for their own list. All gateways have the same secrets, from which the
 * keys are derived: the first one signs, all are accepted.
 */
export function createCursors(secrets: readonly string[]) {
  const keys = secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', 'core-banking cursors 1', 32)));
  const sign = (key: Buffer, list: string, place: string): Buffer =>
    createHmac('sha256', key).update(list).update('\0').update(place).digest().subarray(0, signatureBytes);

  return {
    make(list: string, { at, id }: Position): string {
      const place = JSON.stringify([at, id]);
      return Buffer.concat([sign(keys[0] as Buffer, list, place), Buffer.from(place)]).toString('base64url');
    },
    /** Throws a Refused (invalid_cursor) for anything that `make` did not create for this list. */
    read(list: string, cursor: string): Position {
      const bytes = Buffer.from(cursor, 'base64url');
      const place = bytes.subarray(signatureBytes).toString();
      // A different encoding of the same bytes is not accepted either.
      const isSignedBy = (key: Buffer): boolean =>
        timingSafeEqual(bytes.subarray(0, signatureBytes), sign(key, list, place));
      const ours = bytes.length > signatureBytes && bytes.toString('base64url') === cursor && keys.some(isSignedBy);
      if (!ours) throw refuseViolations([{ field: 'cursor', code: 'invalid_cursor', message: notOurs }]);
      const [at, id] = JSON.parse(place) as [string, string];
      return { at, id };
    },
  };
}

/** Returns the name of a list: the same for the same endpoint, path, filters, and order, whatever the limit. */
export function listName(path: string, query: Record<string, unknown>): string {
  const filters = Object.keys(query)
    .filter((name) => name !== 'limit' && name !== 'cursor' && query[name] !== undefined)
    .sort()
    .map((name) => [name, query[name]]);
  return JSON.stringify([path, filters]);
}
