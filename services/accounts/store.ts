import { isId } from '#libs/contracts/ids.ts';
import type { AccountMaster, AccountStatus, AccountType, Client } from '#libs/contracts/resources.ts';
import type { Pool, PoolClient } from '#libs/postgres/pool.ts';
import { uniqueViolation } from '#libs/postgres/transaction.ts';

/** SQL of clients, accounts and status history. Rows are resources but for the columns that a resource leaves out. */

export interface ClientRow {
  client_id: string;
  client_type: 'Retail' | 'Corporate';
  first_name: string | null;
  last_name: string | null;
  company_name: string | null;
  registration_number: string | null;
  email: string;
  contact_number: string;
  address: string | null;
  ussd_phone_number: string | null;
  ussd_status: 'active' | 'inactive';
  created_at: string;
  updated_at: string;
}

export const clientColumns =
  'client_id, client_type, first_name, last_name, company_name, registration_number, email, contact_number, address, ussd_phone_number, ussd_status, created_at, updated_at';
export const accountColumns = 'account_id, client_id, account_number, account_type, currency, status, created_at, updated_at';

/** A client as callers see it: only the fields of its type. */
export function clientOf(row: ClientRow): Client {
  const { client_id, email, contact_number, address, created_at, updated_at } = row;
  if (row.client_type === 'Corporate') {
    const { company_name, registration_number } = row;
    return { client_id, client_type: 'Corporate', company_name: company_name ?? '', registration_number: registration_number ?? '', email, contact_number, address, created_at, updated_at };
  }
  const { first_name, last_name, ussd_phone_number, ussd_status } = row;
  return { client_id, client_type: 'Retail', first_name: first_name ?? '', last_name: last_name ?? '', email, contact_number, address, ussd_phone_number, ussd_status, created_at, updated_at };
}

/** False when another active client has the row's active USSD phone. Waits for a rival that is about to take it. */
export async function insertClient(client: PoolClient, row: ClientRow): Promise<boolean> {
  const inserted = await client.query(
    `insert into clients (${clientColumns}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     on conflict (ussd_phone_number) where ussd_status = 'active' do nothing`,
    [row.client_id, row.client_type, row.first_name, row.last_name, row.company_name, row.registration_number, row.email, row.contact_number, row.address, row.ussd_phone_number, row.ussd_status, row.created_at, row.updated_at],
  );
  return inserted.rowCount === 1;
}

export async function lockClient(client: PoolClient, clientId: string): Promise<ClientRow | undefined> {
  if (!isId('client', clientId)) return undefined;
  const found = await client.query<ClientRow>(`select ${clientColumns} from clients where client_id = $1 for no key update`, [clientId]);
  return found.rows[0];
}

/** Writes what may change of a client. False, and nothing written, when another active client has the phone. */
export async function updateClientRow(client: PoolClient, row: ClientRow): Promise<boolean> {
  await client.query('savepoint phone');
  try {
    await client.query(
      'update clients set email = $2, contact_number = $3, address = $4, ussd_phone_number = $5, ussd_status = $6, updated_at = $7 where client_id = $1',
      [row.client_id, row.email, row.contact_number, row.address, row.ussd_phone_number, row.ussd_status, row.updated_at],
    );
    return true;
  } catch (error) {
    if (uniqueViolation(error) !== 'clients_active_ussd_phone') throw error;
    await client.query('rollback to savepoint phone');
    return false;
  }
}

/** Clients are never deleted, so that no lock is needed to rely on the answer. */
export async function clientExists(client: Pool | PoolClient, clientId: string): Promise<boolean> {
  if (!isId('client', clientId)) return false;
  const found = await client.query('select from clients where client_id = $1', [clientId]);
  return found.rowCount === 1;
}

export interface NewAccount {
  account_id: string;
  client_id: string;
  account_type: AccountType;
  currency: string;
  status: AccountStatus;
  created_at: string;
}

/** Inserts the account as opening. False when the number is taken. */
export async function insertOpening(client: PoolClient, account: NewAccount, accountNumber: string): Promise<boolean> {
  const inserted = await client.query(
    `insert into accounts (account_id, client_id, account_number, account_type, currency, status, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $7) on conflict on constraint accounts_number do nothing`,
    [account.account_id, account.client_id, accountNumber, account.account_type, account.currency, account.status, account.created_at],
  );
  return inserted.rowCount === 1;
}

/** Ends an opening: the account is open with the ledger's status, or refused for good. */
export async function closeOpening(client: PoolClient, accountId: string, state: 'open' | 'refused', status?: AccountStatus, version?: number): Promise<AccountMaster> {
  const updated = await client.query<AccountMaster>(
    `update accounts set state = $2, status = coalesce($3, status), status_version = greatest(status_version, coalesce($4, 0))
     where account_id = $1 and state = 'opening' returning ${accountColumns}`,
    [accountId, state, status ?? null, version ?? null],
  );
  const row = updated.rows[0];
  if (!row) throw new TypeError(`account ${accountId} is not opening`);
  return row;
}

/** An open account, of that client where one is named; undefined otherwise. */
export async function findAccount(client: Pool | PoolClient, accountId: string, boundClientId: string | undefined): Promise<AccountMaster | undefined> {
  if (!isId('account', accountId)) return undefined;
  const found = await client.query<AccountMaster>(
    `select ${accountColumns} from accounts where account_id = $1 and state = 'open' and ($2::text is null or client_id = $2)`,
    [accountId, boundClientId ?? null],
  );
  return found.rows[0];
}

/** Follows the ledger to a status version, only forward, and returns the account as it is then. */
export async function followStatus(client: PoolClient, accountId: string, status: AccountStatus, version: number, changedAt: string): Promise<AccountMaster> {
  const locked = await client.query<AccountMaster & { status_version: number }>(
    `select ${accountColumns}, status_version from accounts where account_id = $1 and state = 'open' for no key update`,
    [accountId],
  );
  const row = locked.rows[0];
  if (!row) throw new TypeError(`account ${accountId} is not open`);
  const { status_version, ...account } = row;
  if (version <= status_version) return account;
  const updated = await client.query<AccountMaster>(
    `update accounts set status = $2, status_version = $3, updated_at = greatest(updated_at, $4) where account_id = $1 returning ${accountColumns}`,
    [accountId, status, version, changedAt],
  );
  return updated.rows[0] ?? account;
}

export interface TransitionRow {
  transition_id: string;
  account_id: string;
  status_version: number;
  from_status: AccountStatus;
  to_status: AccountStatus;
  reason: string | null;
  note: string | null;
  actor: string;
  created_at: string;
}

export async function insertTransition(client: PoolClient, row: TransitionRow): Promise<void> {
  await client.query(
    `insert into status_transitions (transition_id, account_id, status_version, from_status, to_status, reason, note, actor, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [row.transition_id, row.account_id, row.status_version, row.from_status, row.to_status, row.reason, row.note, row.actor, row.created_at],
  );
}
