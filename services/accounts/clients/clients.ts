import { isDeepStrictEqual } from 'node:util';
import { approvalRequired, isUnapproved } from '#libs/contracts/approvals.ts';
import { identityFields, isContact } from '#libs/contracts/clients.ts';
import { type ErrorCode, type Refusal, refusal, type Violation, violationsRefusal } from '#libs/contracts/errors.ts';
import { computeEtag } from '#libs/contracts/etag.ts';
import { askedBy } from '#libs/contracts/event-fields.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { pickNames, showNamesTo } from '#libs/contracts/names.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import type { AuditDetails } from '#libs/service/audit-record.ts';
import { type Asked, createEvent, done, type Outcome, refused, type Work } from '../outcome.ts';
import {
  type ClientRow,
  type ClientState,
  clientStates,
  emptyRow,
  foreignFields,
  insertClients,
  lockClient,
  takenExternalIds,
  toClient,
  updateClientRow,
} from './client-store.ts';

export function clientNotFound(clientId: string): Refusal {
  return refusal('client_not_found', `client ${clientId} not found`);
}

/**
 * Returns why nothing new may be started for a client, or undefined. The refusal during an erasure is not
 * stored, because the erasure may be refused.
 */
export function refusedFor(clientId: string, state: ClientState | undefined): Refusal | undefined {
  if (state === 'live') return undefined;
  if (state === undefined) return clientNotFound(clientId);
  return state === 'erased'
    ? refusal('client_erased', `client ${clientId} was erased and can no longer be changed`)
    : refusal(
        'service_unavailable',
        `client ${clientId} is being erased; nothing was done, the request can be repeated`,
      );
}

/** Locks the client, and returns why nothing new may be started for it, or undefined. */
export async function refusalFor(client: Queries, clientId: string): Promise<Refusal | undefined> {
  return refusedFor(clientId, (await clientStates(client, [clientId])).get(clientId));
}

const phoneTaken = refusal('duplicate_ussd_phone', 'another client has this USSD phone number active');
const nameTaken = refusal('duplicate_external_id', 'another client has this external_id');

export async function createClients(
  client: Queries,
  asked: Asked<MessageData<'create_client'>>[],
  now: string,
): Promise<Outcome[]> {
  const rows = asked.map(({ context, data }) =>
    context.bound_client_id === undefined ? newRow(data, context.time) : undefined,
  );
  const inserted = await insertClients(
    client,
    rows.filter((row) => row !== undefined),
  );
  const others = rows.filter((row) => row !== undefined && !inserted.has(row.client_id));
  const names = others.flatMap((row) => row?.external_id ?? []);
  const taken = names.length > 0 ? await takenExternalIds(client, names) : new Set();
  return asked.map(({ context }, i) => {
    const row = rows[i];
    if (!row) return refused(refusal('insufficient_scope', 'credentials bound to one client cannot create clients'));
    const { client_id, client_type, created_at } = row;
    const event = { client_id, client_type, created_at, ...pickNames(row), ...askedBy(context) };
    if (others.includes(row)) {
      // An import finds its earlier rows by their external_id, so that is named first.
      if (taken.has(row.external_id)) return refused(nameTaken);
      if (row.ussd_status !== 'active') throw new TypeError(`client ${client_id} exists`);
      return refused(phoneTaken);
    }
    const events = [createEvent({ context, now }, 'corebanking.client.created.v1', client_id, event)];
    return done(toClient(row), events, { client_type });
  });
}

function newRow({ client_id, client: body }: MessageData<'create_client'>, time: string): ClientRow {
  return { ...emptyRow, client_id, ussd_status: 'inactive', ...body, created_at: time, updated_at: time } as ClientRow;
}

type Changes = MessageData<'update_client'>['changes'];

/** Updates a client. Omitted fields keep their values. Nothing is written or published if nothing changes. */
export async function updateClient(work: Work, data: MessageData<'update_client'>): Promise<Outcome> {
  const { client, context } = work;
  const bound = context.bound_client_id;
  const row = bound === undefined || bound === data.client_id ? await lockClient(client, data.client_id) : undefined;
  if (!row) return refused(clientNotFound(data.client_id));
  const gone = row.erased_at === null ? undefined : refusedFor(row.client_id, 'erased');
  if (gone) return refused(gone);
  const changes = bound === undefined ? data.changes : ownChanges(row, data.changes);
  const changed = Object.entries(changes ?? data.changes).filter(
    ([field, value]) => value !== undefined && !isDeepStrictEqual(value, row[field as keyof Changes]),
  );
  // Otherwise a repeat of a change whose answer was lost would be refused (RFC 9110, 13.1.1).
  if (changed.length > 0 && data.if_match?.includes(computeEtag(showNamesTo(bound, toClient(row)))) === false)
    return refused(
      refusal('version_mismatch', `client ${data.client_id} has changed: If-Match does not name its current version`),
    );
  if (changes === undefined) return refused(onlyTheBankActivates);
  const violations = findViolations(row, changes);
  if (violations.length > 0) return refused(violationsRefusal(violations));
  if (changed.length === 0) return done(toClient(row), [], { changed_fields: [] });
  if (isUnapproved(context, 'client_contact') && changed.some(isContact)) return refused(approvalRequired());
  const updated_at = context.time > row.updated_at ? context.time : row.updated_at;
  const updated: ClientRow = { ...row, ...Object.fromEntries(changed), updated_at };
  const taken = await updateClientRow(client, updated);
  if (taken) return refused(taken === 'clients_active_ussd_phone' ? phoneTaken : nameTaken);
  const { client_id, client_type } = updated;
  const changed_fields = changed.map(([field]) => field);
  const event = { client_id, client_type, changed_fields, updated_at, ...pickNames(updated), ...askedBy(context) };
  const events = [createEvent(work, 'corebanking.client.updated.v1', client_id, event)];
  return done(toClient(updated), events, { changed_fields, ...identities(row, updated) });
}

const onlyTheBankActivates = refusal(
  'insufficient_scope',
  'credentials bound to one client cannot make a USSD phone active: only the bank can, once it knows whose it is',
);

/**
 * Returns the changes that a client's own credentials make: another USSD phone is inactive, so that it does not matter, nor
 * show, whether another client has it active. Returns undefined if they would activate one.
 */
function ownChanges(row: ClientRow, changes: Changes): Changes | undefined {
  const isOtherPhone = changes.ussd_phone_number !== undefined && changes.ussd_phone_number !== row.ussd_phone_number;
  if (changes.ussd_status === 'active' && (isOtherPhone || row.ussd_status === 'inactive')) return undefined;
  return isOtherPhone && row.client_type === 'Retail' ? { ...changes, ussd_status: 'inactive' } : changes;
}

function findViolations(row: ClientRow, changes: Changes): Violation[] {
  const violation = (field: string, code: ErrorCode, message: string): Violation => ({
    field,
    code,
    message: `${field} ${message}`,
  });
  const foreign = foreignFields[row.client_type].filter((field) => changes[field] !== undefined);
  const violations = foreign.map((field) =>
    violation(field, 'unknown_field', `is not a field of ${row.client_type} clients`),
  );
  const merged = { ...row, ...changes };
  const phoneMissing =
    row.client_type === 'Retail' && merged.ussd_status === 'active' && merged.ussd_phone_number === null;
  return phoneMissing
    ? [...violations, violation('ussd_phone_number', 'validation_failed', 'is required when ussd_status is active')]
    : violations;
}

/** Returns the previous and new identity of the client for the audit, if it changed. */
function identities(row: ClientRow, updated: ClientRow): AuditDetails {
  const changed = identityFields.filter((field) => row[field] !== updated[field]);
  const of = (client: ClientRow) => Object.fromEntries(changed.map((field) => [field, client[field]]));
  return changed.length === 0 ? {} : { before: of(row), after: of(updated) };
}
