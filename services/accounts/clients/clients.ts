import type { MessageData } from '#libs/contracts/messages.ts';
import { refusal, violationsRefusal } from '#libs/contracts/errors.ts';
import type { ErrorCode, Refusal, Violation } from '#libs/contracts/errors.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { done, eventOf, refused } from '../outcome.ts';
import type { Asked, Outcome, Work } from '../outcome.ts';
import { clientOf, insertClients, lockClient, updateClientRow } from './client-store.ts';
import type { ClientRow } from './client-store.ts';

export function clientNotFound(clientId: string): Refusal {
  return refusal('client_not_found', `client ${clientId} not found`);
}

const phoneTaken = refusal('duplicate_ussd_phone', 'another client has this USSD phone number active');

export async function createClients(client: Queries, asked: Asked<MessageData<'create_client'>>[], now: string): Promise<Outcome[]> {
  const rows = asked.map(({ context, data }) => (context.bound_client_id === undefined ? newRow(data, context.time) : undefined));
  const inserted = await insertClients(client, rows.filter((row) => row !== undefined));
  return asked.map(({ context }, i) => {
    const row = rows[i];
    if (!row) return refused(refusal('insufficient_scope', 'credentials bound to one client cannot create clients'));
    const { client_id, client_type, created_at } = row;
    if (!inserted.has(client_id)) return refused(phoneTaken);
    return done(clientOf(row), [eventOf({ context, now }, 'corebanking.client.created.v1', client_id, { client_id, client_type, created_at })], { client_type });
  });
}

function newRow({ client_id, client: body }: MessageData<'create_client'>, time: string): ClientRow {
  const { client_type, email, contact_number, address = null } = body;
  const empty = { first_name: null, last_name: null, company_name: null, registration_number: null, ussd_phone_number: null, ussd_status: 'inactive' as const };
  const common = { ...empty, client_id, client_type, email, contact_number, address, created_at: time, updated_at: time };
  if (body.client_type === 'Corporate') {
    return { ...common, company_name: body.company_name, registration_number: body.registration_number };
  }
  const { first_name, last_name, ussd_phone_number = null, ussd_status } = body;
  return { ...common, first_name, last_name, ussd_phone_number, ussd_status };
}

type Changes = MessageData<'update_client'>['changes'];

/** PATCH: what is not named stays; a change of nothing writes nothing and tells nobody. */
export async function updateClient(work: Work, data: MessageData<'update_client'>): Promise<Outcome> {
  const { client, context } = work;
  const bound = context.bound_client_id;
  const row = bound === undefined || bound === data.client_id ? await lockClient(client, data.client_id) : undefined;
  if (!row) return refused(clientNotFound(data.client_id));
  const violations = violationsOf(row, data.changes);
  if (violations.length > 0) return refused(violationsRefusal(violations));
  const changed = Object.entries(data.changes).filter(([field, value]) => value !== undefined && value !== row[field as keyof Changes]);
  if (changed.length === 0) return done(clientOf(row), [], { changed_fields: [] });
  const updated_at = context.time > row.updated_at ? context.time : row.updated_at;
  const updated: ClientRow = { ...row, ...Object.fromEntries(changed), updated_at };
  if (!(await updateClientRow(client, updated))) return refused(phoneTaken);
  const { client_id, client_type } = updated;
  const changed_fields = changed.map(([field]) => field);
  return done(clientOf(updated), [eventOf(work, 'corebanking.client.updated.v1', client_id, { client_id, client_type, changed_fields, updated_at })], { changed_fields });
}

function violationsOf(row: ClientRow, changes: Changes): Violation[] {
  const violation = (field: string, code: ErrorCode, message: string): Violation => ({ field, code, message: `${field} ${message}` });
  if (row.client_type === 'Corporate') {
    const foreign = ['ussd_phone_number', 'ussd_status'] as const;
    return foreign.filter((field) => changes[field] !== undefined).map((field) => violation(field, 'unknown_field', 'is not a field of Corporate clients'));
  }
  const merged = { ...row, ...changes };
  const phoneMissing = merged.ussd_status === 'active' && merged.ussd_phone_number === null;
  return phoneMissing ? [violation('ussd_phone_number', 'validation_failed', 'is required when ussd_status is active')] : [];
}
