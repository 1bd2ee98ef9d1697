import type { AuditRecord } from '#libs/contracts/audit.ts';
import { events } from '#libs/contracts/events.ts';
import { type OutboxEvent, writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { insertRows } from '#libs/postgres/rows.ts';
import { withoutNul } from '#libs/service/audit-record.ts';

/**
 * The audit: one record per finally decided command, written in the transaction that decides it, so that no change
 * exists without its record. Decisions of other services arrive as record_audit.
 */

const type = 'corebanking.audit.recorded.v1';

/** Returns the event of a record. Its ce_id is the record's id. */
export function auditEvent(record: AuditRecord): OutboxEvent {
  const { audit_id, actor, created_at, request_id } = record;
  return {
    id: audit_id,
    topic: events[type].topic,
    key: actor,
    type,
    time: created_at,
    headers: { 'request-id': request_id },
    payload: JSON.stringify(record),
  };
}

export const auditColumns = 'audit_id, created_at, actor, action, resource_id, outcome, request_id, details, address';

/** Returns the statement that writes audit records, given as JSON in this parameter. */
export const auditInsert = (parameter: number): string => insertRows('audit', auditColumns, parameter);

/** Writes records and their events in the open transaction, skipping known ones. Returns whether any were new. */
export async function writeAudit(client: Queries, records: readonly AuditRecord[]): Promise<boolean> {
  const inserted = await client.query<{ audit_id: string }>(
    `${auditInsert(1)} on conflict (audit_id) do nothing returning audit_id`,
    [JSON.stringify(records)],
  );
  const fresh = new Set(inserted.rows.map((row) => row.audit_id));
  await writeOutbox(client, records.filter(({ audit_id }) => fresh.has(audit_id)).map(auditEvent));
  return fresh.size > 0;
}

/** Writes records created by the gateway and the ledger, each once. */
export function recordAudits(client: Queries, records: readonly AuditRecord[]): Promise<boolean> {
  return writeAudit(client, records.map(withoutNul));
}
