import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { type FeedEvent, ownersIn } from './read-event.ts';

/**
 * Stores events, each once, in order. Every transaction that assigns positions holds the lock of event_head
 * until it commits (migrations/0001), so a reader that sees a position sees all earlier ones. Returns the
 * number of new events.
 */
export function storeEvents(pool: Pool, events: readonly FeedEvent[]): Promise<number> {
  return transaction(pool, async (client) => {
    const given = new Map(events.map((event) => [event.event_id, event]));
    const accounts = events.flatMap(({ account_ids }) => account_ids);
    const [head, stored, owners] = await Promise.all([
      client.query<{ position: bigint }>('select position from event_head for update'),
      client.query<{ event_id: string }>('select event_id from events where event_id = any($1)', [[...given.keys()]]),
      ownersOf(client, accounts),
    ]);
    for (const { event_id } of stored.rows) given.delete(event_id);
    const fresh = [...given.values()];
    if (fresh.length === 0) return 0;
    const found = [...ownersIn(fresh)].filter(([account]) => !owners.has(account));
    let position = head.rows[0]?.position ?? 0n;
    if (found.length > 0) position += await addOwners(client, found, position);
    for (const [account, owner] of found) owners.set(account, owner);
    const rows = fresh.map((event) => {
      const ofAccounts = event.account_ids.flatMap((account) => owners.get(account) ?? []);
      const client_ids = [...new Set([...event.client_ids, ...ofAccounts])];
      return { ...event, position: String(++position), client_ids };
    });
    await client.query(
      `with added as (
         insert into events (position, event_id, type, subject, account_ids, client_ids, occurred_at, event)
         select * from json_to_recordset($1::json) as e (position int8, event_id uuid, type text, subject text,
           account_ids text[], client_ids text[], occurred_at timestamptz, event text)
         returning position, account_ids || client_ids as subjects
       ), found_by as (
         insert into event_subjects (subject, position, event_position)
         select subject, position, position from added cross join unnest(subjects) as subject
       ) update event_head set position = $2`,
      [JSON.stringify(rows), position],
    );
    return fresh.length;
  });
}

/**
 * Stores the owners of these accounts, and assigns them events that arrived before the owner was known, because
 * topics are not ordered among each other. Returns the number of positions used.
 */
async function addOwners(client: Queries, owners: [account: string, client: string][], head: bigint): Promise<bigint> {
  const { rows } = await client.query<{ count: bigint }>(
    `with owners as (
       insert into account_owners (account_id, client_id) select * from unnest($1::text[], $2::text[])
       returning account_id, client_id
     ), late as (
       select distinct e.position, o.client_id from owners o
       join event_subjects s on s.subject = o.account_id join events e on e.position = s.event_position
       where o.client_id <> all(e.client_ids)
     ), told as (
       update events e set client_ids = e.client_ids || l.client_ids
       from (select position, array_agg(client_id) as client_ids from late group by position) l
       where e.position = l.position
     ), numbered as (
       insert into event_subjects (subject, position, event_position)
       select client_id, $3 + row_number() over (order by position, client_id), position from late returning 1
     ) select count(*) from numbered`,
    [owners.map(([account]) => account), owners.map(([, client]) => client), head],
  );
  return rows[0]?.count ?? 0n;
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
