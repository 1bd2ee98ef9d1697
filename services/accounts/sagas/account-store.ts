import type { StatusTransition } from '#libs/contracts/account-status.ts';
import type { AccountMaster, AccountStatus } from '#libs/contracts/accounts.ts';
import { isId } from '#libs/contracts/ids.ts';
import { pickNames } from '#libs/contracts/names.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { insertRows } from '#libs/postgres/rows.ts';

/** SQL of accounts and their status history. */

export const accountColumns =
  'account_id, client_id, account_number, account_type, currency, status, external_id, metadata, client_metadata, created_at, updated_at';

type MasterNames = Pick<AccountMaster, 'external_id' | 'metadata' | 'client_metadata'>;
export type AccountRow = Omit<AccountMaster, keyof MasterNames> & {
  [N in keyof MasterNames]-?: NonNullable<MasterNames[N]> | null;
};

/** Converts a row to the account that callers see. */
export function toAccountMaster(row: AccountRow): AccountMaster {
  const { external_id, metadata, client_metadata, created_at, updated_at, ...rest } = row;
  return { ...rest, ...pickNames({ external_id, metadata, client_metadata }), created_at, updated_at };
}

/**
 * Inserts accounts as opening and returns the ids of those inserted. Each of the others has a number or an external_id
 * that another account has; of several with the same one, the first gets it. Waits for concurrent transactions that may
 * take the same ones.
 */
export async function insertOpenings(client: Queries, accounts: AccountRow[]): Promise<Set<string>> {
  const inserted = await client.query<{ account_id: string }>({
    name: 'insert_openings',
    text: `${insertRows('accounts', accountColumns)} on conflict do nothing returning account_id`,
    values: [JSON.stringify(accounts)],
  });
  return new Set(inserted.rows.map((row) => row.account_id));
}

interface Taken {
  numbers: Set<string>;
  external_ids: Set<string>;
}

/** Returns which numbers and external_ids of these accounts others have whose opening was not refused. */
export async function takenBy(client: Queries, accounts: AccountRow[]): Promise<Taken> {
  const { rows } = await client.query<Pick<AccountRow, 'account_number' | 'external_id'>>(
    `select account_number, external_id from accounts
     where (account_number = any($1::text[]) or external_id = any($2::text[])) and state <> 'refused'`,
    [accounts.map(({ account_number }) => account_number), accounts.flatMap(({ external_id }) => external_id ?? [])],
  );
  return {
    numbers: new Set(rows.map(({ account_number }) => account_number)),
    external_ids: new Set(rows.flatMap(({ external_id }) => external_id ?? [])),
  };
}

export interface ClosedOpening {
  account_id: string;
  state: 'open' | 'refused';
  /** The ledger's status, if it opened the account. */
  status: AccountStatus | null;
  status_version: number;
}

/** Ends openings: the accounts are open with the ledger's status, or refused. Returns all of them by id. */
export async function closeOpenings(client: Queries, closed: ClosedOpening[]): Promise<Map<string, AccountMaster>> {
  const updated = await client.query<AccountRow>({
    name: 'close_openings',
    text: `update accounts as a set state = c.state, status = coalesce(c.status, a.status), status_version = c.status_version
     from unnest($1::text[], $2::text[], $3::text[], $4::int4[]) as c (account_id, state, status, status_version)
     where a.account_id = c.account_id and a.state = 'opening' returning ${accountColumns.replaceAll(/\w+/g, 'a.$&')}`,
    values: [
      closed.map(({ account_id }) => account_id),
      closed.map(({ state }) => state),
      closed.map(({ status }) => status),
      closed.map(({ status_version }) => status_version),
    ],
  });
  return new Map(updated.rows.map((row) => [row.account_id, toAccountMaster(row)]));
}

/** Returns the open accounts among the ids. */
export async function findAccounts(db: Queries, ids: string[]): Promise<Map<string, AccountMaster>> {
  const wellFormed = ids.filter((id) => isId('account', id));
  const found = await db.query<AccountRow>(
    `select ${accountColumns} from accounts where account_id = any($1::text[]) and state = 'open'`,
    [wellFormed],
  );
  return new Map(found.rows.map((row) => [row.account_id, toAccountMaster(row)]));
}

/** Applies the ledger's status if its version is newer, and returns the resulting account. */
export async function followStatus(
  client: Queries,
  accountId: string,
  status: AccountStatus,
  version: number,
  changedAt: string,
): Promise<AccountMaster> {
  const locked = await client.query<AccountRow & { status_version: number }>(
    `select ${accountColumns}, status_version from accounts where account_id = $1 and state = 'open' for no key update`,
    [accountId],
  );
  const row = locked.rows[0];
  if (!row) throw new TypeError(`account ${accountId} is not open`);
  const { status_version, ...account } = row;
  if (version <= status_version) return toAccountMaster(account);
  const updated = await client.query<AccountRow>(
    `update accounts set status = $2, status_version = $3, updated_at = greatest(updated_at, $4) where account_id = $1 returning ${accountColumns}`,
    [accountId, status, version, changedAt],
  );
  return toAccountMaster(updated.rows[0] ?? account);
}

export type TransitionRow = Required<StatusTransition> & { status_version: number };

export const transitionColumns =
  'transition_id, account_id, status_version, from_status, to_status, reason, note, actor, created_at';

export async function insertTransition(client: Queries, row: TransitionRow): Promise<void> {
  await client.query(insertRows('status_transitions', transitionColumns), [JSON.stringify([row])]);
}
