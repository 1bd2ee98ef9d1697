import { bigintArray, textArray, timestampArray, uuidArray } from '#libs/postgres/arrays.ts';
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
    const given = [...new Map(events.map((event) => [event.event_id, event])).values()];
    const [head, stored, owned] = await Promise.all([
      client.query<{ position: bigint }>('select position from event_head for update'),
      client.query<{ event_id: string }>('select event_id from events where event_id = any($1::uuid[])', [
        uuidArray(given.map(({ event_id }) => event_id)),
      ]),
      client.query<{ account_id: string; client_id: string }>(
        'select account_id, client_id from account_owners where account_id = any($1::text[])',
        [textArray([...new Set(given.flatMap(({ account_ids }) => account_ids))])],
      ),
    ]);
    const known = new Set(stored.rows.map((row) => row.event_id));
    const fresh = given.filter(({ event_id }) => !known.has(event_id));
    if (fresh.length === 0) return 0;
    const owners = new Map(owned.rows.map((row) => [row.account_id, row.client_id]));
    const found = new Map([...ownersIn(fresh)].filter(([account]) => !owners.has(account)));
    const before =
      (head.rows[0]?.position ?? 0n) +
      BigInt(found.size > 0 ? await giveTo(client, found, head.rows[0]?.position ?? 0n) : 0);
    for (const [account, owner] of found) owners.set(account, owner);
    await insertEvents(
      client,
      fresh.map((event) => withOwners(event, owners)),
      before,
    );
    return fresh.length;
  });
}

function withOwners(event: FeedEvent, owners: ReadonlyMap<string, string>): FeedEvent {
  const ofAccounts = event.account_ids.flatMap((account) => owners.get(account) ?? []);
  return { ...event, client_ids: [...new Set([...event.client_ids, ...ofAccounts])] };
}

/**
 * Stores the owners of these accounts, and assigns them events that arrived before the owner was known, because
 * topics are not ordered among each other. Returns the number of positions used.
 */
async function giveTo(client: Queries, owners: ReadonlyMap<string, string>, head: bigint): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `with owners as (
       insert into account_owners (account_id, client_id) select * from unnest($1::text[], $2::text[]) returning account_id, client_id
     ), late as (
       select distinct e.position, o.client_id from owners o
       join event_subjects s on s.subject = o.account_id join events e on e.position = s.event_position
       where o.client_id <> all(e.client_ids)
     ), told as (
       update events e set client_ids = e.client_ids || l.client_ids
       from (select position, array_agg(client_id) as client_ids from late group by position) l where e.position = l.position
     ), numbered as (
       insert into event_subjects (subject, position, event_position)
       select client_id, $3 + row_number() over (order by position, client_id), position from late returning 1
     ) select count(*)::int as count from numbered`,
    [textArray([...owners.keys()]), textArray([...owners.values()]), head],
  );
  return rows[0]?.count ?? 0;
}

async function insertEvents(client: Queries, events: readonly FeedEvent[], before: bigint): Promise<void> {
  const positions = events.map((_, i) => before + BigInt(i) + 1n);
  const subjects = events.flatMap(({ account_ids, client_ids }, i) =>
    [...account_ids, ...client_ids].map((subject) => ({ subject, position: before + BigInt(i) + 1n })),
  );
  await client.query(
    `with added as (
       insert into events (position, event_id, type, subject, account_ids, client_ids, occurred_at, event)
       select position, event_id, type, subject, string_to_array(account_ids, ','), string_to_array(client_ids, ','), occurred_at, event
       from unnest($1::int8[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[])
         as e (position, event_id, type, subject, account_ids, client_ids, occurred_at, event)
     ), found_by as (
       insert into event_subjects (subject, position, event_position) select subject, position, position from unnest($9::text[], $10::int8[]) as s (subject, position)
     ) update event_head set position = $11`,
    [
      bigintArray(positions),
      uuidArray(events.map(({ event_id }) => event_id)),
      textArray(events.map(({ type }) => type)),
      textArray(events.map(({ subject }) => subject)),
      textArray(events.map(({ account_ids }) => account_ids.join(','))),
      textArray(events.map(({ client_ids }) => client_ids.join(','))),
      timestampArray(events.map(({ occurred_at }) => occurred_at)),
      textArray(events.map(({ event }) => event)),
      textArray(subjects.map(({ subject }) => subject)),
      bigintArray(subjects.map(({ position }) => position)),
      before + BigInt(events.length),
    ],
  );
}

/** Returns the known owners of these accounts. */
export async function ownersOf(queries: Queries, accountIds: readonly string[]): Promise<Map<string, string>> {
  if (accountIds.length === 0) return new Map();
  const { rows } = await queries.query<{ account_id: string; client_id: string }>(
    'select account_id, client_id from account_owners where account_id = any($1::text[])',
    [textArray([...new Set(accountIds)])],
  );
  return new Map(rows.map((row) => [row.account_id, row.client_id]));
}
