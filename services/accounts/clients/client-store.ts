import type { Client, identityFields } from '#libs/contracts/clients.ts';
import { isId } from '#libs/contracts/ids.ts';
import { uniqueViolation } from '#libs/postgres/errors.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { insertRows, rowById } from '#libs/postgres/rows.ts';
import { foldClient, foldedColumns } from './folded.ts';

/** SQL of clients. Rows have the fields of resources, and columns that resources omit. */

type Text = 'client_id' | 'email' | 'contact_number' | 'created_at' | 'updated_at';
type Optional = (typeof identityFields)[number] | 'address' | 'ussd_phone_number' | 'external_id' | 'erased_at';

export interface ClientRow extends Record<Text, string>, Record<Optional, string | null> {
  client_type: 'Retail' | 'Corporate';
  ussd_status: 'active' | 'inactive';
  metadata: Record<string, string> | null;
  client_metadata: Record<string, string> | null;
}

export const clientColumns =
  'client_id, client_type, first_name, last_name, company_name, registration_number, email, contact_number, address, ussd_phone_number, ussd_status, external_id, metadata, client_metadata, created_at, updated_at, erased_at';

const columns = clientColumns.split(', ') as (keyof ClientRow)[];

/** A row in which nothing is set. */
export const emptyRow = Object.fromEntries(columns.map((column) => [column, null]));

/** The fields of the other type of client. */
export const foreignFields = {
  Retail: ['company_name', 'registration_number'],
  Corporate: ['first_name', 'last_name', 'ussd_phone_number', 'ussd_status'],
} as const;

/** Callers see these only if they are set. */
const shownIfSet: readonly string[] = ['external_id', 'metadata', 'client_metadata', 'erased_at'];

/** The filters of clients, with `?` for the folded value. Each has its own index. */
export const clientFilters = {
  email: 'folded_email = ?',
  registration_number: 'folded_registration = ?',
  q: 'array_to_tsvector(folded_words) @@ ?::tsquery',
};

/** Converts a row to the client that callers see: only the fields of its type, in the order of the columns. */
export function toClient(row: ClientRow): Client {
  const foreign: readonly string[] = foreignFields[row.client_type];
  const isShown = (column: keyof ClientRow): boolean =>
    !foreign.includes(column) && (row[column] !== null || !shownIfSet.includes(column));
  return Object.fromEntries(columns.filter(isShown).map((column) => [column, row[column]])) as Client;
}

/**
 * Inserts clients and returns the ids of those inserted. Each of the others has an active USSD phone or an external_id
 * that another client has; of several rows with the same one, the first gets it. Waits for concurrent transactions that
 * may take the same ones.
 */
export async function insertClients(client: Queries, rows: ClientRow[]): Promise<Set<string>> {
  const inserted = await client.query<{ client_id: string }>({
    name: 'insert_clients',
    text: `${insertRows('clients', `${clientColumns}, ${foldedColumns}`)} on conflict do nothing returning client_id`,
    values: [JSON.stringify(rows.map((row) => ({ ...row, ...foldClient(row) })))],
  });
  return new Set(inserted.rows.map((row) => row.client_id));
}

export async function takenExternalIds(client: Queries, externalIds: string[]): Promise<Set<string>> {
  const { rows } = await client.query<{ external_id: string }>(
    'select external_id from clients where external_id = any($1::text[])',
    [externalIds],
  );
  return new Set(rows.map(({ external_id }) => external_id));
}

/** Locks and returns the client. With `update`, nothing new can be started for it (clientStates). */
export function lockClient(
  client: Queries,
  clientId: string,
  strength: 'no key update' | 'update' = 'no key update',
): Promise<ClientRow | undefined> {
  const statement = `select ${clientColumns} from clients where client_id = $1 for ${strength}`;
  return rowById(client, 'client', clientId, statement);
}

const mutableColumns = `first_name, last_name, company_name, registration_number, email, contact_number, address, ussd_phone_number, ussd_status, external_id, metadata, client_metadata, updated_at, ${foldedColumns}`;

const uniqueNames = ['clients_active_ussd_phone', 'clients_by_external_id'];

/**
 * Updates the mutable columns of a client. If another client has its active USSD phone or its external_id, nothing is
 * written, and the name of the unique index is returned.
 */
export async function updateClientRow(client: Queries, row: ClientRow): Promise<string | undefined> {
  await client.query('savepoint unchanged');
  try {
    await client.query(
      `update clients set (${mutableColumns}) = (select ${mutableColumns} from json_populate_record(null::clients, $2)) where client_id = $1`,
      [row.client_id, JSON.stringify({ ...row, ...foldClient(row) })],
    );
    return undefined;
  } catch (error) {
    const taken = uniqueViolation(error) ?? '';
    if (!uniqueNames.includes(taken)) throw error;
    await client.query('rollback to savepoint unchanged');
    return taken;
  }
}

/** Whether something may be done for a client: nothing new during an erasure, and nothing at all afterwards. */
export type ClientState = 'live' | 'being erased' | 'erased';

/**
 * Locks the existing clients among the ids and returns their states. No erasure can start before this
 * transaction ends, and one that has started is visible. Clients are never deleted.
 */
export async function clientStates(client: Queries, ids: string[]): Promise<Map<string, ClientState>> {
  const wellFormed = ids.filter((id) => isId('client', id));
  const found = await client.query<Pick<ClientRow, 'client_id' | 'erased_at'>>({
    name: 'lock_clients',
    text: 'select client_id, erased_at from clients where client_id = any($1::text[]) order by client_id for share',
    values: [wellFormed],
  });
  // A separate statement, which sees the step of an erasure for which the locks may have waited.
  const erasing = await client.query<{ client_id: string }>({
    name: 'find_erasing',
    text: `select account_id as client_id from saga_steps where message = 'check_erasure' and account_id = any($1::text[])`,
    values: [wellFormed],
  });
  const under = new Set(erasing.rows.map(({ client_id }) => client_id));
  const clientState = ({ client_id, erased_at }: Pick<ClientRow, 'client_id' | 'erased_at'>): ClientState =>
    erased_at !== null ? 'erased' : under.has(client_id) ? 'being erased' : 'live';
  return new Map(found.rows.map((row) => [row.client_id, clientState(row)]));
}
