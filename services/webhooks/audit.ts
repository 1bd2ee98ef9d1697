import { bucketForKey } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import { buildAuditRecord } from '#libs/service/audit-record.ts';

/** Sends a record through the outbox to accounts, which stores the audit, so that no write is without a record. */
export function auditMessage(...decided: Parameters<typeof buildAuditRecord>): OutboxEvent {
  const record = buildAuditRecord(...decided);
  const { audit_id: id, actor, created_at: time, request_id } = record;
  return {
    id,
    topic: 'accounts.commands',
    key: actor,
    type: messageType('record_audit'),
    time,
    headers: { 'request-id': request_id, actor },
    payload: JSON.stringify(record),
    partition: commandPartition(bucketForKey(actor)),
  };
}
