import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { violationsRefusal } from '#libs/contracts/errors.ts';
import { typePatterns } from '#libs/contracts/event-feed.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { cutPage, Where } from '#libs/postgres/keyset.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { showTo } from '../events/for-client.ts';
import { readOwners } from '../events/store-events.ts';
import type { Read } from './queries.ts';

/**
 * The number of positions examined for one page. If few events have the requested types, a page may be empty
 * although more follow.
 */
const maxExamined = 10_000;

const [ivBytes, placeBytes, tagBytes] = [12, 12, 16];

/**
 * A cursor is a position in the order of events, and when it was issued, in seconds: it is valid for as long as events
 * are kept. It is sealed, because positions count the events of the whole bank, with a key that is stored beside them, so
 * that it outlives every change of the configuration.
 */
export function sealCursor(key: Buffer, position: bigint, issuedS: number): string {
  const iv = randomBytes(ivBytes);
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  const place = Buffer.alloc(placeBytes);
  place.writeBigUInt64BE(position);
  place.writeUInt32BE(issuedS, 8);
  return Buffer.concat([iv, cipher.update(place), cipher.final(), cipher.getAuthTag()]).toString('base64url');
}

function openCursor(key: Buffer, cursor: string): { position: bigint; issuedS: number } | undefined {
  const bytes = Buffer.from(cursor, 'base64url');
  // A different encoding of the same bytes is not accepted either.
  if (bytes.length !== ivBytes + placeBytes + tagBytes || bytes.toString('base64url') !== cursor) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes), { authTagLength: tagBytes });
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  try {
    const place = Buffer.concat([decipher.update(bytes.subarray(ivBytes, -tagBytes)), decipher.final()]);
    return { position: place.readBigUInt64BE(), issuedS: place.readUInt32BE(8) };
  } catch {
    return undefined;
  }
}

interface Head {
  position: bigint;
  cursor_key: Buffer;
}

const invalid = (message: string): ReplyBody => ({
  ok: false,
  refusal: violationsRefusal([{ field: 'after', code: 'invalid_cursor', message }]),
});

/**
 * Returns the events after a position. Head and events are read from one snapshot that contains all positions
 * up to the head (migrations/0001). A page that is not full ends at the head, and no event can appear before it
 * later.
 */
export async function listEvents(
  { pool, context, now, retentionDays }: Read,
  { after, types, account_id, limit }: MessageData<'list_events'>,
): Promise<ReplyBody> {
  const issuedS = Math.floor(now / 1000);
  const client_id = context.bound_client_id ?? null;
  const readPage = async (client: Queries): Promise<ReplyBody> => {
    const [head] = (await client.query<Head>('select position, cursor_key from event_head')).rows;
    if (!head) throw new TypeError('event_head has no row');
    const { position: end, cursor_key } = head;
    const page = (items: unknown[], position: bigint, more: boolean): ReplyBody => ({
      ok: true,
      data: { items, cursor: sealCursor(cursor_key, position, issuedS), more },
    });
    const place = after === undefined ? { position: 0n, issuedS } : openCursor(cursor_key, after);
    if (!place || place.position > end) return invalid('after is not a cursor of this list');
    if (retentionDays !== -1 && issuedS - place.issuedS > retentionDays * 86_400)
      return invalid('after is older than the events that are kept: begin without it');
    // The owner of an account may become known later, so the cursor does not advance.
    if (account_id !== undefined && !(await isShown(client, account_id, client_id)))
      return page([], place.position, false);
    const subject = account_id ?? client_id ?? undefined;
    const range = new Where().equal({ subject }).add('position > ?', place.position).add('position <= ?', end);
    const { rows } = await client.query<{ position: bigint; event: string | null; last: bigint | null }>(
      selectEvents(range, subject, types, limit),
      range.values,
    );
    const found = rows.flatMap(({ position, event }) => (event === null ? [] : [{ position, event, client_id }]));
    const { items, next } = cutPage(await showTo(client, found), limit, {
      item: ({ event }): unknown => JSON.parse(event),
      position: ({ position }) => ({ at: '', id: String(position) }),
    });
    if (next) return page(items, BigInt(next.id), true);
    const position = rows[0]?.last ?? end;
    return page(items, position, position < end);
  };
  return transaction(pool, readPage, 'read only snapshot');
}

async function isShown(client: Queries, accountId: string, clientId: string | null): Promise<boolean> {
  if (!isId('account', accountId)) return false;
  return clientId === null || (await readOwners(client, [accountId])).get(accountId) === clientId;
}

/**
 * Selects one more event than the limit from a range of positions. `last` is the last examined position if the
 * range may continue after it, otherwise null. If no event was found, there is one row without an event.
 */
function selectEvents(range: Where, subject: string | undefined, types: string[] | undefined, limit: number): string {
  const source =
    subject === undefined ? 'position as event_position from events' : 'event_position from event_subjects';
  const most = types === undefined ? limit + 1 : maxExamined;
  const isWanted = `e.type like any(${range.parameter(typePatterns(types ?? ['*']))})`;
  return `with examined as materialized (
      select position, ${source} where ${range} order by position limit ${most}
    ), found as (
      select x.position, e.event from examined x join events e on e.position = x.event_position
      where ${isWanted} order by x.position limit ${range.parameter(limit + 1)}
    )
    select f.position, f.event, x.last
    from (select case when count(*) = ${most} then max(position) end as last from examined) x
    left join found f on true order by f.position`;
}
