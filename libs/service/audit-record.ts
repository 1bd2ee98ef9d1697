import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { auditId } from '#libs/contracts/ids.ts';
import { messageOfType } from '#libs/contracts/messages.ts';

/** Short facts about an action. They contain no secrets, and no personal data except a client's old and new names. */
export type AuditDetails = Record<string, unknown>;

/** Returns the audit record of a decided command (decision 14). Pure. `now` is ISO 8601 UTC. */
export function buildAuditRecord(
  context: MessageContext,
  body: ReplyBody,
  details: AuditDetails,
  now: string,
): AuditRecord {
  const { approved_by, approval_id } = context;
  return withoutNul({
    audit_id: auditId(context.message_id),
    created_at: now,
    actor: context.actor || 'system',
    action: messageOfType(context.type) ?? context.type,
    resource_id: context.subject || null,
    outcome: body.ok ? 'success' : body.refusal.code,
    request_id: context.request_id,
    details: approved_by === undefined ? details : { ...details, approved_by, ...(approval_id && { approval_id }) },
    address: context.address ?? null,
  });
}

/** Replaces NUL, which a refused request may contain and Postgres cannot store, by U+FFFD. */
export function withoutNul(record: AuditRecord): AuditRecord {
  const text = JSON.stringify(record);
  if (!text.includes(String.raw`\u0000`)) return record;
  return JSON.parse(text, (_name, value: unknown) =>
    typeof value === 'string' ? value.replaceAll('\0', '\uFFFD') : value,
  ) as AuditRecord;
}
