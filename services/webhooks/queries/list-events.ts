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

interface Place {
  position: bigint;
  /** When the cursor was issued, in seconds. It is valid for as long as events are kept. */
  issuedS: number;
}

/**
 * Encodes a position in the order of events. It contains no secret: a caller who invents one still sees only
 * its own events.
 */
function cursorOf({ position, issuedS }: Place): string {
  return `${position.toString(36)}-${issuedS.toString(36)}`;
}

function placeOf(cursor: string): Place | undefined {
  const [, position = '', issued = ''] = /^([0-9a-z]{1,12})-([0-9a-z]{1,8})$/.exec(cursor) ?? [];
  return position === ''
    ? undefined
    : { position: BigInt(Number.parseInt(position, 36)), issuedS: Number.parseInt(issued, 36) };
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
  if (!place || place.position > BigInt(Number.MAX_SAFE_INTEGER)) return invalid('after is not a cursor of this list');
  const agedS = issuedS - place.issuedS;
  if (retentionDays !== -1 && agedS > retentionDays * 86_400)
    return invalid('after is older than the events that are kept: begin without it');
  return transaction(
    pool,
    async (client) => {
      const bound = context.bound_client_id;
      const read = (items: unknown[], position: bigint, more: boolean): ReplyBody => ({
        ok: true,
        data: { items, cursor: cursorOf({ position, issuedS }), more },
      });
      const {
        rows: [head],
      } = await client.query<{ position: bigint }>('select position from event_head');
      const end = head?.position ?? 0n;
      if (place.position > end) return invalid('after is not a cursor of this list');
      // The owner of an account may become known later. Until then the cursor does not advance.
      if (
        bound !== undefined &&
        account_id !== undefined &&
        (await ownersOf(client, [account_id])).get(account_id) !== bound
      )
        return read([], place.position, false);
      if (account_id !== undefined && !isId('account', account_id)) return read([], end, false);
      const found = await readWindow(client, {
        subject: account_id ?? bound,
        after: place.position,
        end,
        types: types?.flatMap(typesOf),
        limit,
      });
      const owners =
        bound === undefined
          ? new Map<string, string>()
          : await ownersOf(
              client,
              found.rows.flatMap(({ event }) => accountsIn(event)),
            );
      const shown = ({ event }: EventRow): unknown =>
        JSON.parse(bound === undefined ? event : forClient(event, bound, owners));
      const page = cutPage(found.rows, limit, {
        item: shown,
        position: ({ position }: EventRow) => ({ at: '', id: String(position) }),
      });
      if (page.next) return read(page.items, BigInt(page.next.id), true);
      return found.last === null ? read(page.items, end, false) : read(page.items, found.last, found.last < end);
    },
    'read only snapshot',
  );
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
  const values = new Where();
  const most = types === undefined ? limit + 1 : lookedAt;
  const from =
    subject === undefined
      ? 'select position, position as event_position from events where true'
      : `select position, event_position from event_subjects where subject = ${values.parameter(subject)}`;
  const { rows } = await client.query<{ position: bigint | null; event: string | null; last: bigint | null }>(
    `with stretch as materialized (
       ${from} and position > ${values.parameter(after)} and position <= ${values.parameter(end)} order by position limit ${most}
     ), hits as (
       select s.position, e.event from stretch s join events e on e.position = s.event_position
       where ${types === undefined ? 'true' : `e.type = any(${values.parameter(types)})`} order by s.position limit ${values.parameter(limit + 1)}
     )
     select h.position, h.event, l.last from (select case when count(*) = ${most} then max(position) end as last from stretch) l left join hits h on true order by h.position`,
    values.values,
  );
  return {
    rows: rows.filter((row): row is EventRow & { last: bigint | null } => row.position !== null),
    last: rows[0]?.last ?? null,
  };
}
