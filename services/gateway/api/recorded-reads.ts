import type { FastifyRequest } from 'fastify';
import type { Endpoint, EndpointName } from '#libs/contracts/endpoints.ts';
import { type AuditRecords, resourceOf } from '../access/audit-records.ts';
import type { Caller } from '../access/caller.ts';
import { Refused, unavailable } from '../http/errors.ts';

/**
 * Who of the staff, in person, saw what: recorded before it is shown. Reads by machines are not
 * recorded, but those of dead letters, which may hold anybody's data.
 */

const scopes = new Set<unknown>(['clients:read', 'accounts:read', 'transactions:read']);
const further = new Set<EndpointName>(['search', 'get_timeline', 'get_dead_letter']);

/** Whether the caller's reading it is recorded. */
export function isRecordedFor(name: EndpointName, { isStaff }: Caller): boolean {
  return isStaff === true || name === 'get_dead_letter';
}

/** Whether reading it shows something of customers. */
export function isRecorded(name: EndpointName, { method, scope }: Endpoint): boolean {
  return method === 'GET' && (scopes.has(scope) || further.has(name));
}

/**
 * Filters whose values stand in records: ids of the bank, words of enumerations, amounts and times.
 * All others may be personal.
 */
const shownFilters = new Set([
  'client_id',
  'account_id',
  'transfer_id',
  'client_type',
  'account_type',
  'transaction_type',
  'status',
  'currency',
  'from',
  'to',
  'at',
  'min_amount',
  'max_amount',
]);
const ofPage = new Set(['limit', 'order', 'cursor']);

/** PURE: what was asked for, without what may be personal. */
export function filtersOf(query: Record<string, unknown>): Record<string, unknown> {
  const given = Object.entries(query).filter(([name, value]) => value !== undefined && !ofPage.has(name));
  return Object.fromEntries(given.map(([name, value]) => [name, shownFilters.has(name) ? value : '(given)']));
}

const idFields = {
  Clients: 'client_id',
  Accounts: 'account_id',
  Transactions: 'transaction_id',
  Transfers: 'transfer_id',
  Holds: 'hold_id',
} as const;

/** PURE: the one thing that is shown, if it is one: that of the path, or the only row. */
function onlyId(data: unknown, tag: Endpoint['tag']): string | null {
  const only = Array.isArray(data) ? (data.length === 1 ? data[0] : undefined) : data;
  const field = tag === 'Administration' ? 'id' : idFields[tag as keyof typeof idFields];
  const id: unknown = (only as Record<string, unknown> | undefined)?.[field];
  return typeof id === 'string' ? id : null;
}

/** Records the read of `data`, which is not shown where that fails: one record per request. */
export async function recordRead(
  auditRecords: AuditRecords,
  request: FastifyRequest,
  read: { name: EndpointName; endpoint: Endpoint; caller: Caller; query: Record<string, unknown>; data: unknown },
): Promise<void> {
  const { name, endpoint, caller, query, data } = read;
  const rows = Array.isArray(data) ? { rows: data.length } : {};
  const filters = filtersOf(query);
  const details = { ...rows, ...(Object.keys(filters).length === 0 ? {} : { filters }) };
  const act = {
    actor: caller.actor,
    action: name,
    resource_id: resourceOf(request) ?? onlyId(data, endpoint.tag),
    outcome: 'success' as const,
    details,
  };
  await auditRecords.record(request, act).catch(() => {
    throw new Refused(unavailable);
  });
}
