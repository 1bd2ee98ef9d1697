import { maxActiveHolds } from '#libs/contracts/holds.ts';
import { type Columns, rowArray } from '#libs/postgres/arrays.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import type { AccountState, HoldState } from '../domain/records.ts';
import { holdColumns, holdTypes, prefixed, toHoldState, uuids } from '../rows.ts';

/**
 * The ledger's SQL for writing holds. It is not executed for a batch that neither names a hold nor has an
 * expired one on its accounts.
 */

/** Returns the accounts of these holds. They never change, so they can be read before locking. */
export async function readHoldAccounts(client: Queries, ids: string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query<{ hold_id: string; account_id: string }>(
    'select hold_id, account_id from holds where hold_id = any($1::uuid[])',
    [uuids(ids)],
  );
  return new Map(rows.map((row) => [prefixed('hld', row.hold_id), prefixed('acc', row.account_id)]));
}

/**
 * How many expired holds one transaction records at most, so that it is short even if many are due on each account of a
 * batch. It is more than one account can have.
 */
export const expiredAtOnce = 2 * maxActiveHolds;

export async function readHolds(client: Queries, ids: string[]): Promise<HoldState[]> {
  if (ids.length === 0) return [];
  const { rows } = await client.query<HoldState>(`select ${holdColumns} from holds where hold_id = any($1::uuid[])`, [
    uuids(ids),
  ]);
  return rows.map(toHoldState);
}

/** Reads the holds of these accounts that are due at `now`, at most expiredAtOnce. */
export async function readDueHolds(client: Queries, accountIds: string[], now: string): Promise<HoldState[]> {
  if (accountIds.length === 0) return [];
  // For each account, the index on its Active holds is read from the first to expire, and not beyond `now`.
  const { rows } = await client.query<HoldState>(
    `select ${holdColumns} from unnest($1::uuid[]) as own, lateral (
       select * from holds where account_id = own and status = 'Active' and expires_at <= $2 order by expires_at) h
     limit ${expiredAtOnce}`,
    [uuids(accountIds), now],
  );
  return rows.map(toHoldState);
}

/** Returns the first expiry after `now` of an Active hold of each of these accounts. */
export async function readNextExpiries(
  client: Queries,
  accountIds: string[],
  now: string,
): Promise<Map<string, string>> {
  if (accountIds.length === 0) return new Map();
  const { rows } = await client.query<{ account_id: string; next: string }>(
    `select own as account_id, h.expires_at as next from unnest($1::uuid[]) as own, lateral (
       select expires_at from holds where account_id = own and status = 'Active' and expires_at > $2 order by expires_at limit 1) h`,
    [uuids(accountIds), now],
  );
  return new Map(rows.map((row) => [prefixed('acc', row.account_id), row.next]));
}

/** Writes new and changed holds as they are after the batch. */
export async function writeHolds(client: Queries, holds: HoldState[]): Promise<void> {
  await client.query(
    `insert into holds (${holdColumns}) select ${holdColumns} from unnest($1::written_hold[])
     on conflict (hold_id) do update set status = excluded.status, captured_minor = excluded.captured_minor, updated_at = excluded.updated_at`,
    [rowArray(holds, holdTypes)],
  );
}

const heldTypes: Columns<AccountState> = [
  ['account_id', 'uuid'],
  ['held_minor', 'int8'],
  ['active_holds', 'int8'],
  ['hold_expires_at', 'timestamptz'],
  ['hold_version', 'int8'],
];

/**
 * Writes the changed held amounts of those accounts whose held amount decreases, or of those whose held amount
 * increases. Decreases are written before the batch's entries and increases after them, because the database
 * rejects every balance below the held amount.
 */
export async function writeHeldAmounts(
  client: Queries,
  accounts: AccountState[],
  becomes: 'less' | 'more',
): Promise<void> {
  if (accounts.length === 0) return;
  await client.query(
    `update accounts a set held_minor = h.held_minor, active_holds = h.active_holds, hold_expires_at = h.hold_expires_at, hold_version = h.hold_version
     from unnest($1::held_account[]) as h where a.account_id = h.account_id and h.held_minor ${becomes === 'less' ? '<=' : '>'} a.held_minor`,
    [rowArray(accounts, heldTypes)],
  );
}
