import type { AccountStatus } from '#libs/contracts/accounts.ts';
import { erasedText } from '#libs/contracts/erasure.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { type ClientRow, clientColumns, toClient } from '../clients/client-store.ts';
import { foldedColumns } from '../clients/folded.ts';

/** SQL of erasures. */

export interface OwnAccount {
  account_id: string;
  status: AccountStatus;
  /** The time at which the account was opened or its status last changed. */
  changed_at: string;
}

/** Returns the client's accounts, or undefined while one of them is being opened or changed. */
export async function settledAccounts(client: Queries, clientId: string): Promise<OwnAccount[] | undefined> {
  const { rows } = await client.query<OwnAccount & { state: string }>(
    `select account_id, status, state,
       greatest(created_at, (select max(created_at) from status_transitions t where t.account_id = a.account_id)) as changed_at
     from accounts a where client_id = $1 and state <> 'refused' order by account_id`,
    [clientId],
  );
  const steps = await client.query('select from saga_steps where account_id = any($1::text[]) limit 1', [
    rows.map(({ account_id }) => account_id),
  ]);
  if (steps.rowCount !== 0 || rows.some(({ state }) => state === 'opening')) return undefined;
  return rows.map(({ state: _state, ...account }) => account);
}

const texts = ['first_name', 'last_name', 'company_name', 'registration_number', 'email', 'contact_number', 'address'];

/** Replaces the personal data in the client's row, which is no longer found by it. The time of the first erasure is kept. */
export async function eraseClientRow(client: Queries, clientId: string, now: string): Promise<ClientRow> {
  const { rows } = await client.query<ClientRow>(
    `update clients set ${texts.map((field) => `${field} = case when ${field} is not null then $2 end`).join(', ')},
       (${foldedColumns}) = (null, null, null, null, null, 0), ussd_phone_number = null, ussd_status = 'inactive', external_id = null, metadata = null, client_metadata = null, erased_at = coalesce(erased_at, $3), updated_at = coalesce(erased_at, $3)
     where client_id = $1 returning ${clientColumns}`,
    [clientId, erasedText, now],
  );
  const [row] = rows;
  if (!row) throw new TypeError(`client ${clientId} does not exist`);
  return row;
}

/**
 * Replaces stored replies that show the client, its accounts, or its API keys. Returns their number. Replies
 * are stored for repeats.
 */
export async function eraseReplies(client: Queries, row: ClientRow): Promise<number> {
  const { updated_at: _updated, created_at: _created, ...shown } = toClient(row);
  const { rowCount } = await client.query(
    `update commands set reply = jsonb_set(reply::jsonb, '{data}', (reply -> 'data')::jsonb - '{external_id,metadata,client_metadata}'::text[]
       || case when shown(reply, 'note_id') is not null then jsonb_build_object('note', $3::text)
          when shown(reply, 'account_id') is not null then '{}'
          when shown(reply, 'key_id') is not null then jsonb_build_object('name', $3::text) else $2::jsonb end)
     where shown(reply, 'client_id') = $1 and shown(reply, 'client_id') is not null
       and (coalesce(shown(reply, 'contact_number'), shown(reply, 'note'), shown(reply, 'name')) <> $3::text
         or shown(reply, 'external_id') is not null or shown(reply, 'metadata') is not null
         or shown(reply, 'client_metadata') is not null)`,
    [row.client_id, JSON.stringify(shown), erasedText],
  );
  return rowCount ?? 0;
}

export interface ErasedRecords {
  audit_records: number;
  approvals: number;
  /** Replaces replies that show an approval. */
  kept_replies: number;
  status_notes: number;
}

/** A function of the schema's owner replaces the columns that the service's role may not update. */
export async function eraseRecords(client: Queries, clientId: string, erasureAuditId: string): Promise<ErasedRecords> {
  const { rows } = await client.query<ErasedRecords>('select * from erase_records($1, $2)', [clientId, erasureAuditId]);
  return rows[0] ?? { audit_records: 0, approvals: 0, kept_replies: 0, status_notes: 0 };
}
