import { isId } from '#libs/contracts/ids.ts';
import type { Client } from '#libs/contracts/resources.ts';
import { textArray } from '#libs/postgres/arrays.ts';
import { uniqueViolation } from '#libs/postgres/errors.ts';
import type { Queries } from '#libs/postgres/pool.ts';

/** SQL of clients. Rows are resources but for the columns that a resource leaves out. */

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
