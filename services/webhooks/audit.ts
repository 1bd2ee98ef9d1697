import type { AuditRecord } from '#libs/contracts/administration.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { auditId, bucketOf } from '#libs/contracts/ids.ts';
import { messageOfType, messageType } from '#libs/contracts/messages.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';

/** Returns the audit record of a decided command (docs/decisions/0014). `now`: ISO 8601 UTC. */
export function auditOf(
  context: MessageContext,
  body: ReplyBody,
  details: Record<string, unknown>,
  now: string,
): AuditRecord {
  return {
    audit_id: auditId(context.message_id),
    created_at: now,
    actor: context.actor || 'system',
    action: messageOfType(context.type) ?? context.type,
    resource_id: context.subject || null,
    outcome: body.ok ? 'success' : body.refusal.code,
    request_id: context.request_id,
    details,
    address: context.address ?? null,
  };
}

/**
 * Returns the record as a message to accounts, which owns the audit. It is sent through the outbox, so that no
 * change is without its record.
 */
export function auditMessage(record: AuditRecord): OutboxEvent {
  const { audit_id: id, actor, created_at: time, request_id } = record;
  const headers = { 'request-id': request_id, actor };
  return {
    id,
    topic: 'accounts.commands',
    key: actor,
    type: messageType('record_audit'),
    time,
    headers,
    payload: JSON.stringify(record),
    partition: commandPartition(bucketOf(actor)),
  };
}
