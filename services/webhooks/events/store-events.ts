import type { Logger } from 'pino';
import { isId } from '#libs/contracts/ids.ts';
import type { EventKeys } from '#libs/contracts/mac.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transactionInTwoTrips } from '#libs/postgres/transaction.ts';
import { unverifiable } from '#libs/service/faults.ts';
import { type FeedEvent, readEvent } from './read-event.ts';

/**
 * Stores the events in messages of the event topics, and returns the numbers of new events, of messages that are not
 * events, and of those without a MAC of the bank. When it resolves, they are committed, so that no offset is committed
 * before its event. Only the last two are skipped and logged. An error of the database is thrown, and so is an event whose
 * MAC this process cannot check, because it lacks the key: readers rely on every event being there, so the events wait.
 */
export async function takeEvents(
  pool: Pool,
  messages: readonly ReceivedMessage[],
  keys: Pick<EventKeys, 'verify' | 'missingKey'>,
  logger: Logger,
  apiUrl?: string,
): Promise<{ stored: number; unreadable: number; forged: number }> {
  const skipped = { unreadable: 0, forged: 0 };
  const events = messages.flatMap((message) => {
    const { topic, partition, offset } = message;
    const at = { topic, partition, offset: String(offset) };
    const isOurs = keys.verify(message);
    const missing = isOurs ? undefined : keys.missingKey(message);
    if (missing !== undefined) {
      const reason = `it is signed with the key ${missing}, which is not in ACCOUNTS_MAC_KEYS; refused:${missing} there skips such events`;
      throw unverifiable(message, { kind: 'unknown_key', reason });
    }
    const event = isOurs ? readEvent(message, apiUrl) : undefined;
    if (event) return event;
    skipped[isOurs ? 'unreadable' : 'forged'] += 1;
    logger.error(
      at,
      isOurs ? 'skipped a message that is not a valid event' : 'skipped an event without a MAC of the bank',
    );
    return [];
  });
  const stored = events.length > 0 ? await storeEvents(pool, events) : 0;
  return { stored, ...skipped };
}

/**
 * Stores events, each once, in order. Every transaction that assigns positions holds the lock of event_head
 * until it commits (migrations/0001), so a reader that sees a position sees all earlier ones. Returns the
 * number of new events. The positions of repeated events stay unused.
 */
export function storeEvents(pool: Pool, events: readonly FeedEvent[]): Promise<number> {
  return transactionInTwoTrips(pool, async (client) => {
    await client.query('select from event_head for update');
    const owned = addOwners(client, events);
    const added = client.query({
      name: 'store_events',
      text: `with given as materialized (
         select (select position from event_head) + n as position, e.* from json_to_recordset($1::json) as e (n int8,
           event_id uuid, type text, subject text, subjects text[], occurred_at timestamptz, event text)
       ), added as (
         insert into events (position, event_id, type, subject, occurred_at, event)
         select position, event_id, type, subject, occurred_at, event from given order by position
         on conflict (event_id) do nothing returning position
       ), found_by as (
         insert into event_subjects (subject, position, event_position)
         select found.subject, position, position from given cross join lateral (
           select unnest(subjects) union select client_id from account_owners where account_id = any(subjects)
         ) as found (subject) where position = any(array(select position from added))
       ), advanced as (
         update event_head set position = (select max(position) from given)
       ) select from added`,
      values: [JSON.stringify(events.map((event, i) => ({ ...event, n: i + 1 })))],
    });
    return { last: [owned, added], result: async () => (await added).rowCount ?? 0 };
  });
}

/**
 * Stores the owners of accounts: if an event names one account and one client, the account belongs to that client.
 * Assigns them events that arrived before the owner was known, because topics are not ordered among each other.
 */
async function addOwners(client: Queries, events: readonly FeedEvent[]): Promise<void> {
  const owners = events.flatMap(({ subjects }) => {
    const [account_id = '', client_id = '', ...others] = subjects.toSorted();
    const isOwner = isId('account', account_id) && isId('client', client_id) && others.length === 0;
    return isOwner ? [{ account_id, client_id }] : [];
  });
  if (owners.length === 0) return;
  await client.query({
    name: 'add_owners',
    text: `with owners as (
       insert into account_owners (account_id, client_id)
       select * from json_to_recordset($1::json) as o (account_id text, client_id text)
       on conflict do nothing returning account_id, client_id
     ), late as (
       select distinct s.event_position, o.client_id from owners o join event_subjects s on s.subject = o.account_id
       where not exists (
         select from event_subjects k where k.event_position = s.event_position and k.subject = o.client_id)
     ), numbered as (
       insert into event_subjects (subject, position, event_position)
       select client_id, (select position from event_head) + row_number() over (order by event_position, client_id),
         event_position from late returning 1
     ) update event_head set position = position + (select count(*) from numbered)`,
    values: [JSON.stringify(owners)],
  });
}

/** Returns the known owners of these accounts. */
export async function readOwners(queries: Queries, accountIds: readonly string[]): Promise<Map<string, string>> {
  if (accountIds.length === 0) return new Map();
  const { rows } = await queries.query<{ account_id: string; client_id: string }>(
    'select account_id, client_id from account_owners where account_id = any($1)',
    [[...new Set(accountIds)]],
  );
  return new Map(rows.map((row) => [row.account_id, row.client_id]));
}
