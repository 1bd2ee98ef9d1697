import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import type { FeedEvent } from './read-event.ts';

/**
 * Stores events, each once, in order. Every transaction that assigns positions holds the lock of event_head
 * until it commits (migrations/0001), so a reader that sees a position sees all earlier ones. Returns the
 * number of new events. The positions of repeated events stay unused.
 */
export function storeEvents(pool: Pool, events: readonly FeedEvent[]): Promise<number> {
  return transaction(pool, async (client) => {
    await client.query('select from event_head for update');
    await addOwners(client, events);
    const { rows } = await client.query<{ stored: number }>(
      `with given as materialized (
         select h.position + n as position, e.* from event_head h cross join json_to_recordset($1::json) as e (n int8,
           event_id uuid, type text, subject text, account_ids text[], client_ids text[], occurred_at timestamptz, event text)
       ), added as (
         insert into events (position, event_id, type, subject, occurred_at, event)
         select position, event_id, type, subject, occurred_at, event from given order by position
         on conflict (event_id) do nothing returning position
       ), found_by as (
         insert into event_subjects (subject, position, event_position)
         select found.subject, position, position from added join given using (position) cross join lateral (
           select unnest(account_ids || client_ids)
           union select client_id from account_owners where account_id = any(account_ids)
         ) as found (subject)
       ), advanced as (
         update event_head h set position = a.last from (select max(position) as last from added) a
         where a.last is not null
       ) select count(*)::int as stored from added`,
      [JSON.stringify(events.map((event, i) => ({ ...event, n: i + 1 })))],
    );
    return rows[0]?.stored ?? 0;
  });
}

/**
 * Stores the owners of accounts: if an event names one account and one client, the account belongs to that client.
 * Assigns them events that arrived before the owner was known, because topics are not ordered among each other.
 */
async function addOwners(client: Queries, events: readonly FeedEvent[]): Promise<void> {
  const owners = events.flatMap(({ account_ids: [account_id, ...more], client_ids: [client_id, ...others] }) =>
    account_id && client_id && more.length + others.length === 0 ? [{ account_id, client_id }] : [],
  );
  if (owners.length === 0) return;
  await client.query(
    `with owners as (
       insert into account_owners (account_id, client_id)
       select * from json_to_recordset($1::json) as o (account_id text, client_id text)
       on conflict do nothing returning account_id, client_id
     ), late as (
       select distinct s.event_position, o.client_id from owners o join event_subjects s on s.subject = o.account_id
       where not exists (
         select from event_subjects k where k.event_position = s.event_position and k.subject = o.client_id)
     ), numbered as (
       insert into event_subjects (subject, position, event_position)
       select client_id, h.position + row_number() over (order by event_position, client_id), event_position
       from late cross join event_head h returning 1
     ) update event_head set position = position + (select count(*) from numbered)`,
    [JSON.stringify(owners)],
  );
}

/** Returns the known owners of these accounts. */
export async function ownersOf(queries: Queries, accountIds: readonly string[]): Promise<Map<string, string>> {
  if (accountIds.length === 0) return new Map();
  const { rows } = await queries.query<{ account_id: string; client_id: string }>(
    'select account_id, client_id from account_owners where account_id = any($1)',
    [[...new Set(accountIds)]],
  );
  return new Map(rows.map((row) => [row.account_id, row.client_id]));
}
