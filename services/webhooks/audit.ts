import type { AuditRecord } from '#libs/contracts/administration.ts';
import { bucketOf } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';

/** Sends a record through the outbox to accounts, which stores the audit, so that no write is without a record. */
export function auditMessage(record: AuditRecord): OutboxEvent {
  const { audit_id: id, actor, created_at: time, request_id } = record;
  return {
    id,
    topic: 'accounts.commands',
    key: actor,
    type: messageType('record_audit'),
    time,
    headers: { 'request-id': request_id, actor },
    payload: JSON.stringify(record),
    partition: commandPartition(bucketOf(actor)),
  };
}
