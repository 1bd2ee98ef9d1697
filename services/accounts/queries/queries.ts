import type { StatusTransition } from '#libs/contracts/account-status.ts';
import type { AccountMaster } from '#libs/contracts/accounts.ts';
import type { Client } from '#libs/contracts/clients.ts';
import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { Position } from '#libs/contracts/message-fields.ts';
import type { MessageData, MessageName, MessageOn } from '#libs/contracts/messages.ts';
import type { Note } from '#libs/contracts/notes.ts';
import { countedText } from '#libs/contracts/signature.ts';
import { byTime, listTable, type TableList } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { repliesToUnknown, replyToUnknown } from '#libs/service/dead-lettered.ts';
import { foldCase } from '#libs/service/folding.ts';
import { keyNotFound } from '../api-keys/api-keys.ts';
import { findKey, type KeyRow, keyColumns, readCounts, toApiKey } from '../api-keys/key-store.ts';
import { listStaffNames } from '../audit/staff-names.ts';
import { type ClientRow, clientColumns, clientFilters, toClient } from '../clients/client-store.ts';
import { clientNotFound } from '../clients/clients.ts';
import { nameQuery } from '../clients/folded.ts';
import { missingSubject, noteColumns, notForBound } from '../notes/notes.ts';
import type { Asked, DeadLetterTopics } from '../outcome.ts';
import {
  type AccountRow,
  accountColumns,
  findAccounts,
  type TransitionRow,
  toAccountMaster,
  transitionColumns,
} from '../sagas/account-store.ts';
import { accountNotFound } from '../sagas/status.ts';
import { getDeadLetter, getOperations, listAudit, listAuditActors, listDeadLetters } from './administration-queries.ts';
import { getApproval, listApprovals } from './approval-queries.ts';
import { searchRecords } from './search.ts';

/** Reads. For a caller bound to a client, only that client's data exists. */
export interface Read {
  pool: Pool;
  context: MessageContext;
  /** ISO 8601 UTC */
  now: string;
  prefix: string;
  deadLetters: DeadLetterTopics;
  /** Signs what gateways must be able to trust about API keys. */
  signForGateways(text: string): string;
}

const found = (data: unknown): ReplyBody => ({ ok: true, data });

/** There is one handler per query. It returns "not found" as a value; every error that it throws is a fault. */
export const queryHandlers = {
  list_clients: listClients,
  search_client_by_ussd: searchClient,
  list_accounts: listAccounts,
  list_status_transitions: listTransitions,
  list_notes: listNotes,
  list_api_keys: listKeys,
  get_api_key: getKey,
  count_api_keys: countKeys,
  list_audit: listAudit,
  list_audit_actors: listAuditActors,
  list_staff_names: listStaffNames,
  search_records: searchRecords,
  get_accounts_operations: getOperations,
  list_dead_letters: listDeadLetters,
  get_dead_letter: getDeadLetter,
  list_approvals: listApprovals,
  get_approval: getApproval,
} satisfies {
  [N in Exclude<MessageOn<'accounts.queries'>, 'verify_audit' | keyof typeof batchedQueryHandlers>]: (
    read: Read,
    data: MessageData<N>,
  ) => Promise<ReplyBody>;
};

/** Queries whose waiting messages are all answered with one statement, in order. */
export const batchedQueryHandlers = {
  get_client: getClients,
  get_account: getAccounts,
} satisfies { [N in MessageName]?: (pool: Pool, queries: Asked<MessageData<N>>[]) => Promise<ReplyBody[]> };

export type QueryName = keyof typeof queryHandlers;
export type BatchedQueryName = keyof typeof batchedQueryHandlers;

async function listClients({ pool, context }: Read, data: MessageData<'list_clients'>): Promise<ReplyBody> {
  const { client_type, client_ids, ussd_phone, external_id, email, registration_number, q } = data;
  const filters = { client_id: context.bound_client_id, client_type, ussd_phone_number: ussd_phone, external_id };
  const more: TableList<ClientRow, Client>['more'] = [
    [clientFilters.email, email && foldCase(email)],
    [clientFilters.registration_number, registration_number && foldCase(registration_number)],
    [clientFilters.q, q && (nameQuery(q) ?? '')],
    ["client_id = any(string_to_array(?, ','))", client_ids],
  ];
  const source = {
    from: 'clients',
    columns: clientColumns,
    filters,
    more,
    ...byTime<ClientRow>('created_at', 'client_id'),
    item: toClient,
  };
  return listTable(pool, source, data);
}

async function getClients(pool: Pool, queries: Asked<MessageData<'get_client'>>[]): Promise<ReplyBody[]> {
  const ids = queries.map(({ data }) => data.client_id).filter((id) => isId('client', id));
  const result = await pool.query<ClientRow>(`select ${clientColumns} from clients where client_id = any($1)`, [ids]);
  const rows = new Map(result.rows.map((row) => [row.client_id, row]));
  const unknown = ids.filter((id) => !rows.has(id));
  const replies = await repliesToUnknown(pool, unknown, clientNotFound);
  return queries.map(({ context, data: { client_id: id } }) => {
    const row = rows.get(id);
    return row && visible(context, id) ? found(toClient(row)) : (replies.get(id) ?? refused(clientNotFound(id)));
  });
}

/** Returns the client with that phone active, otherwise the newest one with it inactive. */
async function searchClient(
  { pool, context }: Read,
  { ussd_phone }: MessageData<'search_client_by_ussd'>,
): Promise<ReplyBody> {
  const result = await pool.query<ClientRow>(
    `(select ${clientColumns} from clients where ussd_phone_number = $1 and ussd_status = 'active' and ($2::text is null or client_id = $2))
     union all
     (select ${clientColumns} from clients where ussd_phone_number = $1 and ussd_status = 'inactive' and ($2::text is null or client_id = $2)
      order by created_at desc, client_id desc limit 1)
     limit 1`,
    [ussd_phone, context.bound_client_id ?? null],
  );
  const row = result.rows[0];
  return row
    ? found(toClient(row))
    : { ok: false, refusal: refusal('client_not_found', `no client with the USSD phone number ${ussd_phone} found`) };
}

async function listAccounts({ pool, context }: Read, data: MessageData<'list_accounts'>): Promise<ReplyBody> {
  const { client_id, client_ids, account_ids, account_type, status, currency, external_id } = data;
  if (client_id !== undefined && !visible(context, client_id)) return found({ items: [] });
  const filters = { client_id: client_id ?? context.bound_client_id, account_type, status, currency, external_id };
  // The gateway adds `balance` and `available_balance` to each item: their names and up to 17 digits each.
  const source = {
    from: 'accounts',
    columns: accountColumns,
    fixed: "state = 'open'",
    filters,
    more: [
      ["account_id = any(string_to_array(?, ','))", account_ids],
      ["client_id = any(string_to_array(?, ','))", client_ids],
    ] satisfies TableList<AccountRow, AccountMaster>['more'],
    ...byTime<AccountRow>('created_at', 'account_id'),
    item: toAccountMaster,
    extraBytes: 64,
  };
  return listTable(pool, source, data);
}

async function getAccounts(pool: Pool, queries: Asked<MessageData<'get_account'>>[]): Promise<ReplyBody[]> {
  const ids = queries.map(({ data }) => data.account_id).filter((id) => isId('account', id));
  const accounts = await findAccounts(pool, ids);
  const unknown = ids.filter((id) => !accounts.has(id));
  const replies = await repliesToUnknown(pool, unknown, accountNotFound);
  return queries.map(({ context, data: { account_id: id } }) => {
    const account = accounts.get(id);
    return account && visible(context, account.client_id)
      ? found(account)
      : (replies.get(id) ?? refused(accountNotFound(id)));
  });
}

/**
 * The list is in the ledger's version order, because two changes may have the same time. Only the bank sees reason and
 * actor.
 */
async function listTransitions(
  { pool, context }: Read,
  data: MessageData<'list_status_transitions'>,
): Promise<ReplyBody> {
  const account = (await findAccounts(pool, [data.account_id])).get(data.account_id);
  if (!account || !visible(context, account.client_id)) return { ok: false, refusal: accountNotFound(data.account_id) };
  const source = {
    from: 'status_transitions',
    columns: transitionColumns,
    filters: { account_id: data.account_id },
    order: ['status_version'],
    values: ({ id }: Position) => (/^\d{1,9}$/.test(id) ? [Number(id)] : undefined),
    position: (row: TransitionRow): Position => ({ at: row.created_at, id: String(row.status_version) }),
    item: ({ status_version: _version, reason, note, actor, ...row }: TransitionRow): StatusTransition =>
      context.bound_client_id === undefined ? { ...row, reason, note, actor } : row,
  };
  return listTable(pool, source, data);
}

async function listNotes({ pool, context }: Read, data: MessageData<'list_notes'>): Promise<ReplyBody> {
  if (context.bound_client_id !== undefined) return { ok: false, refusal: notForBound };
  const missing = await missingSubject(pool, data);
  if (missing) return { ok: false, refusal: missing };
  const source = {
    from: 'notes',
    columns: noteColumns,
    ...(data.account_id === undefined && { fixed: 'account_id is null' }),
    filters: { client_id: data.client_id, account_id: data.account_id },
    ...byTime<Note>('created_at', 'note_id'),
    item: (row: Note) => row,
  };
  return listTable(pool, source, data);
}

async function listKeys({ pool, now }: Read, data: MessageData<'list_api_keys'>): Promise<ReplyBody> {
  const source = {
    from: 'api_keys',
    columns: keyColumns,
    filters: {},
    ...byTime<KeyRow>('created_at', 'key_id'),
    item: (row: KeyRow) => toApiKey(row, now),
  };
  return listTable(pool, source, data);
}

async function getKey({ pool, now }: Read, { key_id }: MessageData<'get_api_key'>): Promise<ReplyBody> {
  const row = await findKey(pool, key_id);
  return row ? found(toApiKey(row, now)) : replyToUnknown(pool, key_id, keyNotFound);
}

async function countKeys(
  { pool, signForGateways }: Read,
  { nonce }: MessageData<'count_api_keys'>,
): Promise<ReplyBody> {
  const counted = await readCounts(pool);
  return found({ ...counted, signature: signForGateways(countedText(nonce, counted)) });
}

function visible(context: MessageContext, clientId: string | null): boolean {
  return context.bound_client_id === undefined || context.bound_client_id === clientId;
}
