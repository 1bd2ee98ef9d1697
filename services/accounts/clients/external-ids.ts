import type { Queries } from '#libs/postgres/pool.ts';

const taken = {
  clients: 'select external_id from clients where external_id = any($1::text[])',
  accounts: "select external_id from accounts where external_id = any($1::text[]) and state <> 'refused'",
};

/**
 * Returns which of the external_ids are in use. The others cannot be used by other transactions until this one ends:
 * they wait here, so that the unique index never fails a statement. Without external_ids, nothing is executed.
 */
export async function claimExternalIds(
  client: Queries,
  of: keyof typeof taken,
  wanted: (string | null | undefined)[],
): Promise<Set<string>> {
  const ids = wanted.filter((id) => id != null);
  if (ids.length === 0) return new Set();
  await client.query(
    `select pg_advisory_xact_lock(key) from
       (select distinct hashtextextended(id, $2) as key from unnest($1::text[]) as id order by key) sorted`,
    [ids, of === 'clients' ? 1 : 2],
  );
  // This is a separate statement, which sees the commits of concurrent transactions.
  const { rows } = await client.query<{ external_id: string }>(taken[of], [ids]);
  return new Set(rows.map(({ external_id }) => external_id));
}
