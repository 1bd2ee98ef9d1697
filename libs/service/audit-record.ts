import type { AuditRecord } from '#libs/contracts/administration.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { auditId } from '#libs/contracts/ids.ts';
import { messageOfType } from '#libs/contracts/messages.ts';

/** Short facts about what was done; never secrets, nor personal data but the names that a client had and has. */
export type AuditDetails = Record<string, unknown>;

/** PURE: the record of a decided command (decision 14). Its resource is what its message was about. `now`: ISO 8601 UTC. */
export function auditOf(context: MessageContext, body: ReplyBody, details: AuditDetails, now: string): AuditRecord {
  return withoutNul({
    audit_id: auditId(context.message_id),
    created_at: now,
    actor: context.actor || 'system',
    action: messageOfType(context.type) ?? context.type,
    resource_id: context.subject || null,
    outcome: body.ok ? 'success' : body.refusal.code,
    request_id: context.request_id,
    details: context.approved_by === undefined ? details : { ...details, approved_by: context.approved_by },
    address: context.address ?? null,
  });
}

/** A kept refusal tells what was asked for, whatever it was, and no text of Postgres can hold NUL. */
export function withoutNul(record: AuditRecord): AuditRecord {
  const text = JSON.stringify(record);
  if (!text.includes(String.raw`\u0000`)) return record;
  return JSON.parse(text, (_name, value: unknown) =>
    typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value,
  ) as AuditRecord;
}
