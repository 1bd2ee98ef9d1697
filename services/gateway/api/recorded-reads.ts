import type { FastifyRequest } from 'fastify';
import type { Endpoint, EndpointName } from '#libs/contracts/endpoints.ts';
import type { Caller } from '../access/caller.ts';
import { type AuditRecords, resourceInPath } from '../audit/audit-records.ts';
import { Refused, unavailable } from '../http/errors.ts';

/**
 * Records which staff user read which data, before the response shows it. Reads by machines are not recorded, except
 * those of dead letters, which may contain any client's data.
 */

const scopes = new Set<unknown>(['clients:read', 'accounts:read', 'transactions:read']);
const further = new Set<EndpointName>(['search', 'get_timeline', 'get_dead_letter']);
/** What people of the bank have posted or requested, and the field that says who. Their own is not recorded for them. */
const ofStaff = new Map<EndpointName, string>([
  ['get_staff_day', 'actor'],
  ['list_tills', 'actor'],
  ['get_till', 'actor'],
  ['list_approvals', 'requested_by'],
  ['get_approval', 'requested_by'],
]);

/** Reports whether a read by this caller, which shows `data`, is recorded. */
export function isRecordedFor(name: EndpointName, { actor, isStaff }: Caller, data?: unknown): boolean {
  const who = ofStaff.get(name);
  if (who !== undefined && ([data].flat() as Record<string, unknown>[]).every((one) => one[who] === actor))
    return false;
  return isStaff === true || name === 'get_dead_letter';
}

/** Reports whether a read shows data of customers, or what a person of the bank has posted or requested. */
export function isRecorded(name: EndpointName, { method, scope }: Endpoint): boolean {
  return method === 'GET' && (scopes.has(scope) || further.has(name) || ofStaff.has(name));
}

/** The filters whose values are recorded: ids, enumerations, amounts, and times. Other values may be personal. */
const shownFilters = new Set([
  'client_id',
  'account_id',
  'counterparty_account_id',
  'transfer_id',
  'client_type',
  'account_type',
  'transaction_type',
  'status',
  'currency',
  'from',
  'to',
  'at',
  'on',
  'effective_from',
  'effective_to',
  'min_amount',
  'max_amount',
]);
/** A text of any other form is none of these, so it may be personal. */
const shownForm = /^[\w.:+-]{0,64}$/;
const ofPage = new Set(['limit', 'order', 'cursor']);

/** Returns the filters of a request without values that may be personal. Pure. */
export function givenFilters(query: Record<string, unknown>): Record<string, unknown> {
  const given = Object.entries(query).filter(([name, value]) => value !== undefined && !ofPage.has(name));
  const isShown = (name: string, value: unknown) =>
    shownFilters.has(name) && (typeof value !== 'string' || shownForm.test(value));
  return Object.fromEntries(given.map(([name, value]) => [name, isShown(name, value) ? value : '(given)']));
}

/** Returns the id of the resource that is shown, if it is a single one: that of the path, or of the only row. Pure. */
function onlyId(data: unknown, tag: Endpoint['tag']): string | null {
  const only = Array.isArray(data) ? (data.length === 1 ? data[0] : undefined) : data;
  const field = tag === 'Administration' ? 'id' : `${tag.slice(0, -1).toLowerCase()}_id`;
  const id: unknown = (only as Record<string, unknown> | undefined)?.[field];
  return typeof id === 'string' ? id : null;
}

/** Records the read of `data`, one record per request. */
export async function recordRead(
  auditRecords: AuditRecords,
  request: FastifyRequest,
  read: { name: EndpointName; endpoint: Endpoint; caller: Caller; query: Record<string, unknown>; data: unknown },
): Promise<void> {
  const { name, endpoint, caller, query, data } = read;
  const rows = Array.isArray(data) ? { rows: data.length } : {};
  const filters = givenFilters(query);
  const details = { ...rows, ...(Object.keys(filters).length === 0 ? {} : { filters }) };
  const act = {
    actor: caller.actor,
    action: name,
    resource_id: resourceInPath(request) ?? onlyId(data, endpoint.tag),
    outcome: 'success' as const,
    details,
  };
  await recordOrRefuse(auditRecords, request, act);
}

/** Records what a response is going to show. If that fails, the data is not shown. */
export async function recordOrRefuse(
  auditRecords: AuditRecords,
  request: FastifyRequest,
  act: Parameters<AuditRecords['record']>[1],
): Promise<void> {
  await auditRecords.record(request, act).catch(() => {
    throw new Refused(unavailable);
  });
}
