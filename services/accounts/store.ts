import { isId } from '#libs/contracts/ids.ts';
import type { AccountMaster, AccountStatus, AccountType, Client } from '#libs/contracts/resources.ts';
import { intArray, textArray, timestampArray } from '#libs/postgres/arrays.ts';
import type { Queries } from '#libs/postgres/pool.ts';
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

/**
 * Inserts clients; returns the ids of those inserted. The others want a USSD phone active that another client has active.
 * Waits for a rival that is about to take it.
 */
export async function insertClients(client: Queries, rows: ClientRow[]): Promise<Set<string>> {
  const fields = clientColumns.split(', ') as (keyof ClientRow)[];
  const types = fields.map((_, i) => `$${i + 1}::text[]`).join(', ');
  const values = fields.map((field) => (field.endsWith('_at') ? `${field}::timestamptz` : field)).join(', ');
  const inserted = await client.query<{ client_id: string }>(
    `insert into clients (${clientColumns}) select ${values} from unnest(${types}) as c (${clientColumns})
     on conflict (ussd_phone_number) where ussd_status = 'active' do nothing returning client_id`,
    fields.map((field) => textArray(rows.map((row) => row[field]))),
  );
  return new Set(inserted.rows.map((row) => row.client_id));
}

export async function lockClient(client: Queries, clientId: string): Promise<ClientRow | undefined> {
  if (!isId('client', clientId)) return undefined;
  const found = await client.query<ClientRow>(`select ${clientColumns} from clients where client_id = $1 for no key update`, [clientId]);
  return found.rows[0];
}

/** Writes what may change of a client. False, and nothing written, when another active client has the phone. */
export async function updateClientRow(client: Queries, row: ClientRow): Promise<boolean> {
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

/** Those of the ids that are clients. Clients are never deleted, so that no lock is needed to rely on the answer. */
export async function existingClients(client: Queries, ids: string[]): Promise<Set<string>> {
  const wellFormed = ids.filter((id) => isId('client', id));
  const found = await client.query<{ client_id: string }>('select client_id from clients where client_id = any($1::text[])', [textArray(wellFormed)]);
  return new Set(found.rows.map((row) => row.client_id));
}

export interface NewAccount {
  account_id: string;
  client_id: string;
  account_number: string;
  account_type: AccountType;
  currency: string;
  status: AccountStatus;
  created_at: string;
}

/** Inserts accounts as opening; returns the ids of those inserted. The numbers of the others are taken. */
export async function insertOpenings(client: Queries, accounts: NewAccount[]): Promise<Set<string>> {
  const column = (field: keyof NewAccount) => textArray(accounts.map((account) => account[field]));
  const inserted = await client.query<{ account_id: string }>(
    `insert into accounts (account_id, client_id, account_number, account_type, currency, status, created_at, updated_at)
     select a.*, created_at from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
       as a (account_id, client_id, account_number, account_type, currency, status, created_at)
     on conflict on constraint accounts_number do nothing returning account_id`,
    [column('account_id'), column('client_id'), column('account_number'), column('account_type'), column('currency'), column('status'), timestampArray(accounts.map((account) => account.created_at))],
  );
  return new Set(inserted.rows.map((row) => row.account_id));
}

export interface ClosedOpening {
  account_id: string;
  state: 'open' | 'refused';
  /** The ledger's, where it opened the account. */
  status: AccountStatus | null;
  status_version: number;
}

/** Ends openings: the accounts are open with the ledger's status, or refused for good. Returns them all, by id. */
export async function closeOpenings(client: Queries, closed: ClosedOpening[]): Promise<Map<string, AccountMaster>> {
  const updated = await client.query<AccountMaster>(
    `update accounts as a set state = c.state, status = coalesce(c.status, a.status), status_version = c.status_version
     from unnest($1::text[], $2::text[], $3::text[], $4::int4[]) as c (account_id, state, status, status_version)
     where a.account_id = c.account_id and a.state = 'opening' returning ${accountColumns.replaceAll(/\w+/g, 'a.$&')}`,
    [textArray(closed.map((row) => row.account_id)), textArray(closed.map((row) => row.state)), textArray(closed.map((row) => row.status)), intArray(closed.map((row) => row.status_version))],
  );
  return new Map(updated.rows.map((row) => [row.account_id, row]));
}

/** The open accounts among the ids. */
export async function findAccounts(db: Queries, ids: string[]): Promise<Map<string, AccountMaster>> {
  const wellFormed = ids.filter((id) => isId('account', id));
  const found = await db.query<AccountMaster>(`select ${accountColumns} from accounts where account_id = any($1::text[]) and state = 'open'`, [textArray(wellFormed)]);
  return new Map(found.rows.map((row) => [row.account_id, row]));
}

/** Follows the ledger to a status version, only forward, and returns the account as it is then. */
export async function followStatus(client: Queries, accountId: string, status: AccountStatus, version: number, changedAt: string): Promise<AccountMaster> {
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

export async function insertTransition(client: Queries, row: TransitionRow): Promise<void> {
  await client.query(
    `insert into status_transitions (transition_id, account_id, status_version, from_status, to_status, reason, note, actor, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [row.transition_id, row.account_id, row.status_version, row.from_status, row.to_status, row.reason, row.note, row.actor, row.created_at],
  );
}
