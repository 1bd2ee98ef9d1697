import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { violationsRefusal } from '#libs/contracts/errors.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { typesOf } from '#libs/contracts/webhooks.ts';
import { cutPage, Where } from '#libs/postgres/keyset.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { accountsIn, forClient } from '../events/for-client.ts';
import { ownersOf } from '../events/store-events.ts';
import type { Read } from './queries.ts';

/**
 * The number of positions examined for one page. If few events have the requested types, a page may be empty
 * although more follow.
 */
const lookedAt = 10_000;

/**
 * A cursor is a position in the order of events, and when it was issued, in seconds: it is valid for as long as events
 * are kept. It contains no secret: a caller who invents one still sees only its own events.
 */
const cursorOf = (position: bigint, issuedS: number): string => `${position.toString(36)}-${issuedS.toString(36)}`;

function placeOf(cursor: string): { position: bigint; issuedS: number } | undefined {
  const [, position = '', issued = ''] = /^([0-9a-z]{1,12})-([0-9a-z]{1,8})$/.exec(cursor) ?? [];
  const place = Number.parseInt(position, 36);
  return Number.isSafeInteger(place) ? { position: BigInt(place), issuedS: Number.parseInt(issued, 36) } : undefined;
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
  const place = after === undefined ? { position: 0n, issuedS } : placeOf(after);
  if (!place) return invalid('after is not a cursor of this list');
  if (retentionDays !== -1 && issuedS - place.issuedS > retentionDays * 86_400)
    return invalid('after is older than the events that are kept: begin without it');
  const bound = context.bound_client_id;
  const read = (items: unknown[], position: bigint, more: boolean): ReplyBody => ({
    ok: true,
    data: { items, cursor: cursorOf(position, issuedS), more },
  });
  const readPage = async (client: Queries): Promise<ReplyBody> => {
    const head = await client.query<{ position: bigint }>('select position from event_head');
    const end = head.rows[0]?.position ?? 0n;
    if (place.position > end) return invalid('after is not a cursor of this list');
    if (account_id !== undefined && bound !== undefined) {
      // The owner of an account may become known later. Until then the cursor does not advance.
      const owners = await ownersOf(client, [account_id]);
      if (owners.get(account_id) !== bound) return read([], place.position, false);
    }
    if (account_id !== undefined && !isId('account', account_id)) return read([], end, false);
    const window = { subject: account_id ?? bound, after: place.position, end, types: types?.flatMap(typesOf), limit };
    const { rows, last } = await readWindow(client, window);
    const owners =
      bound === undefined
        ? undefined
        : await ownersOf(
            client,
            rows.flatMap(({ event }) => accountsIn(event)),
          );
    const { items, next } = cutPage(rows, limit, {
      item: ({ event }): unknown =>
        JSON.parse(bound === undefined || owners === undefined ? event : forClient(event, bound, owners)),
      position: ({ position }) => ({ at: '', id: String(position) }),
    });
    return next ? read(items, BigInt(next.id), true) : read(items, last ?? end, last !== null && last < end);
  };
  return transaction(pool, readPage, 'read only snapshot');
}

interface EventRow {
  position: bigint;
  event: string;
}

interface Window {
  /** The requested account or client; undefined: the whole bank. */
  subject: string | undefined;
  after: bigint;
  end: bigint;
  types: string[] | undefined;
  limit: number;
}

/** Reads one more event than the limit from a range of positions. `last` is the end of the range; null: no end. */
async function readWindow(
  client: Queries,
  { subject, after, end, types, limit }: Window,
): Promise<{ rows: EventRow[]; last: bigint | null }> {
  const range = new Where().equal({ subject }).add('position > ?', after).add('position <= ?', end);
  const most = types === undefined ? limit + 1 : lookedAt;
  const from = subject === undefined ? 'position as event_position from events' : 'event_position from event_subjects';
  const isMeant = types === undefined ? 'true' : `e.type = any(${range.parameter(types)})`;
  const { rows } = await client.query<{ [Field in keyof EventRow]: EventRow[Field] | null } & { last: bigint | null }>(
    `with stretch as materialized (
       select position, ${from} where ${range} order by position limit ${most}
     ), hits as (
       select s.position, e.event from stretch s join events e on e.position = s.event_position
       where ${isMeant} order by s.position limit ${range.parameter(limit + 1)}
     )
     select h.position, h.event, l.last
     from (select case when count(*) = ${most} then max(position) end as last from stretch) l
     left join hits h on true order by h.position`,
    range.values,
  );
  return {
    rows: rows.filter((row): row is EventRow & typeof row => row.position !== null),
    last: rows[0]?.last ?? null,
  };
}
