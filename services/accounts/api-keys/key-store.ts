import type { ApiKey } from '#libs/contracts/api-keys.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { insertRows, rowById } from '#libs/postgres/rows.ts';

/** SQL of API keys. */

export type KeyRow = Omit<ApiKey, 'status'> & { family_id: string; secret_hash: string; version: number };

export const keyColumns =
  'key_id, family_id, name, scopes, environment, client_id, secret_hash, created_at, created_by, expires_at, last_used_at, revoked_at, rotated_from, version';

/** Converts a row to the key that callers see at the time `now`, without hash and family. */
export function toApiKey(row: KeyRow, now: string): ApiKey {
  const { family_id: _family, secret_hash: _hash, version: _version, ...key } = row;
  const status = row.revoked_at !== null ? 'revoked' : row.expires_at <= now ? 'expired' : 'active';
  return { ...key, status };
}

export async function insertKey(client: Queries, row: KeyRow): Promise<void> {
  await client.query(insertRows('api_keys', keyColumns), [JSON.stringify([row])]);
}

export function findKey(db: Queries, keyId: string): Promise<KeyRow | undefined> {
  return rowById(db, 'key', keyId, `select ${keyColumns} from api_keys where key_id = $1`);
}

/** Locks and returns the key. The order of its versions is the order of the transactions that lock it. */
export function lockKey(client: Queries, keyId: string): Promise<KeyRow | undefined> {
  return rowById(client, 'key', keyId, `select ${keyColumns} from api_keys where key_id = $1 for no key update`);
}

/** Changes one column of a locked key, and returns the key with its next version. */
export async function changeKey(
  client: Queries,
  keyId: string,
  column: 'expires_at' | 'secret_hash',
  value: string,
): Promise<KeyRow> {
  const updated = await client.query<KeyRow>(
    `update api_keys set ${column} = $2, version = version + 1 where key_id = $1 returning ${keyColumns}`,
    [keyId, value],
  );
  const row = updated.rows[0];
  if (!row) throw new TypeError(`API key ${keyId} does not exist`);
  return row;
}

/** The family $1 and, if $2 is true, its descendants. */
const families = `families (family_id) as (
  select $1::text collate "C"
  union
  select made.family_id from families f join api_keys made on made.created_by = 'key:' || f.family_id where $2
)`;

/** Returns the family and its descendants. */
export async function familiesMadeBy(client: Queries, familyId: string): Promise<string[]> {
  const { rows } = await client.query<{ family_id: string }>(
    `with recursive ${families} select family_id from families order by family_id`,
    [familyId, true],
  );
  return rows.map(({ family_id }) => family_id);
}

/**
 * Reports whether one hand may hold both credentials: one of them is a descendant of the other, which was shown its
 * secret, or one person or key created both. The bootstrap key does not count, or a bank that has only its keys could
 * approve nothing.
 */
export async function isOneHand(client: Queries, one: string, other: string): Promise<boolean> {
  if (one === other) return true;
  const { rows } = await client.query(
    `with recursive makers (of, actor) as (
       select given, given from unnest(array[$1::text, $2::text] collate "C") as given
       union
       select m.of, k.created_by from makers m join api_keys k on m.actor = 'key:' || k.family_id
     )
     select from makers a join makers b on b.actor = a.actor and b.of = $2
     where a.of = $1 and (a.actor in ($1, $2) or a.actor like 'jwt:%' or a.actor like 'key:%' and not exists (
       select from api_keys k where 'key:' || k.family_id = a.actor and k.created_by = 'system:bootstrap')) limit 1`,
    [one, other],
  );
  return rows.length > 0;
}

/** Reports whether a key of the family is valid at the time `now` and has these scopes. */
export async function hasValidKey(
  client: Queries,
  familyId: string,
  scopes: readonly string[],
  now: string,
): Promise<boolean> {
  const { rowCount } = await client.query(
    'select from api_keys where family_id = $1 and revoked_at is null and expires_at > $3 and scopes @> $2 limit 1',
    [familyId, scopes, now],
  );
  return rowCount === 1;
}

/** Returns when the last key of the family expires that is not revoked. */
export async function readLatestExpiry(client: Queries, familyId: string): Promise<string | undefined> {
  const { rows } = await client.query<{ expires_at: string | null }>(
    'select max(expires_at) as expires_at from api_keys where family_id = $1 and revoked_at is null',
    [familyId],
  );
  return rows[0]?.expires_at ?? undefined;
}

/**
 * Revokes the keys of a family that are not yet revoked and, with `descendants`, the families of its descendants. A
 * transaction that creates a key holds a lock on a key of that family. The statement waits for it and is repeated until
 * it finds nothing new.
 */
export async function revokeFamily(
  client: Queries,
  familyId: string,
  descendants: boolean,
  revokedAt: string,
): Promise<KeyRow[]> {
  const revoked: KeyRow[] = [];
  for (;;) {
    const { rows } = await client.query<KeyRow>(
      `with recursive ${families}
       update api_keys set revoked_at = $3, version = version + 1
       where family_id in (select family_id from families) and revoked_at is null returning ${keyColumns}`,
      [familyId, descendants, revokedAt],
    );
    if (rows.length === 0) return revoked;
    revoked.push(...rows);
  }
}

/** Returns the families with keys of this client that are not revoked. */
export async function readClientFamilies(client: Queries, clientId: string): Promise<string[]> {
  const { rows } = await client.query<{ family_id: string }>(
    'select distinct family_id from api_keys where client_id = $1 and revoked_at is null order by family_id',
    [clientId],
  );
  return rows.map(({ family_id }) => family_id);
}

/** Returns the number of keys, and of their changes since they were created. Keys are never deleted. */
export async function readCounts(db: Queries): Promise<{ keys: number; changes: number }> {
  const { rows } = await db.query<{ keys: number; changes: number }>(
    'select count(*)::int as keys, coalesce(sum(version - 1), 0)::int as changes from api_keys',
  );
  return rows[0] ?? { keys: 0, changes: 0 };
}

/** Records when a key was last used. The time never moves backwards, and unknown keys are ignored. */
export async function recordUse(client: Queries, keyId: string, usedAt: string): Promise<void> {
  await client.query(
    'update api_keys set last_used_at = $2 where key_id = $1 and (last_used_at is null or last_used_at < $2)',
    [keyId, usedAt],
  );
}
