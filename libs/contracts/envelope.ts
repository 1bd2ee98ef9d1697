import { z } from 'zod';
import { type Refusal, refusalSchema } from './errors.ts';

/**
 * The headers of a message: CloudEvents 1.0 in binary mode (Kafka protocol binding) plus the context of the
 * request. The data is in the value.
 */
export const source = {
  gateway: '/core-banking/gateway',
  ledger: '/core-banking/ledger',
  accounts: '/core-banking/accounts',
  webhooks: '/core-banking/webhooks',
} as const;

/** The header of each field of a message's context. Absent fields have no header. */
const headerNames = {
  /** The id of the command, which is the id of what it creates or a generated one. It is the same on every repeat. */
  message_id: 'ce_id',
  type: 'ce_type',
  source: 'ce_source',
  /** The time of acceptance, ISO 8601 UTC. Becomes created_at. */
  time: 'ce_time',
  /** The message's key. */
  subject: 'ce_subject',
  request_id: 'request-id',
  /** The requester: `key:<family>` or `jwt:<iss>|<sub>`; empty for the system itself. */
  actor: 'actor',
  /** The first service that receives the command must not execute it after this time. ISO 8601 UTC. */
  deadline: 'deadline',
  /** The gateway waits for the reply until this time. ISO 8601 UTC. */
  reply_by: 'reply-by',
  idempotency_key: 'idempotency-key',
  /** The first 128 bits of a SHA-256 over path parameters and normalized body, in hex. */
  fingerprint: 'fingerprint',
  /** The rules under which the command is refused with approval_required (rulesIn in approvals.ts), as JSON. */
  four_eyes: 'four-eyes',
  /** 'true' if the actor is a staff user. The ledger then writes audit records for postings too. */
  staff: 'staff',
  /** The caller's network address, for the audit log. Only commands have it. */
  address: 'caller-address',
  /** The client to which the credential is bound. */
  bound_client_id: 'bound-client-id',
  /** 'true' if the caller may use the webhooks of other callers. Only messages about webhooks have it. */
  all_webhooks: 'all-webhooks',
  /** The approver and the approval of a command that required one. The reply goes to the approval's saga. */
  approved_by: 'approved-by',
  approval_id: 'approval-id',
  traceparent: 'traceparent',
  correlation_id: 'correlation-id',
  reply_topic: 'reply-topic',
} as const;

type Field = keyof typeof headerNames;
type RequiredField = 'message_id' | 'type' | 'source' | 'time' | 'subject' | 'request_id' | 'actor';

export interface MessageContext
  extends Record<RequiredField, string>,
    Partial<Record<Exclude<Field, RequiredField>, string>> {
  reply_partition?: number;
  /**
   * What had been decided about a command that is sent again after a restore (deploy/recovery): the code of its refusal,
   * or nothing. Of a batch: the items to execute, as JSON, by index. It is in a header that only `renewal` reads.
   */
  decided?: string;
  /** The batch that contains this item. It is not in a header, but set when the batch message is expanded. */
  batch_id?: string;
}

const pairs = Object.entries(headerNames) as [Field, string][];

/** Converts a context to message headers. Absent fields are omitted. */
export function toHeaders(context: MessageContext): Record<string, string> {
  const headers: Record<string, string> = { ce_specversion: '1.0', 'content-type': 'application/json' };
  for (const [field, header] of pairs) {
    const value = context[field];
    if (value !== undefined) headers[header] = value;
  }
  if (context.reply_partition !== undefined) headers['reply-partition'] = String(context.reply_partition);
  return headers;
}

/** Returns the ids that log lines contain: of the request, and of its command or query. */
export function idsForLog(headers: Record<string, string>): {
  request_id: string | undefined;
  command_id: string | undefined;
} {
  return { request_id: headers['request-id'], command_id: headers['ce_id'] };
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Parses the context from message headers. Returns undefined if a required header is missing or malformed. */
export function fromHeaders(headers: Record<string, string>): MessageContext | undefined {
  const context: Partial<Record<Field, string>> & { reply_partition?: number } = {};
  for (const [field, header] of pairs) {
    const value = headers[header];
    if (value !== undefined) context[field] = value;
  }
  if (!context.message_id || !context.type || !context.time || !isoTime.test(context.time)) return undefined;
  if (
    (context.deadline !== undefined && !isoTime.test(context.deadline)) ||
    (context.reply_by !== undefined && !isoTime.test(context.reply_by))
  )
    return undefined;
  const partition = headers['reply-partition'];
  if (partition !== undefined) {
    if (!/^\d{1,5}$/.test(partition)) return undefined;
    context.reply_partition = Number(partition);
  }
  context.source ??= '';
  context.subject ??= '';
  context.request_id ??= '';
  context.actor ??= '';
  return context as MessageContext;
}

/** The value of a reply: a result or a refusal. `replayed`: the command had already been decided. */
export const replySchema = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), replayed: z.boolean().optional(), data: z.unknown() }),
  z.object({
    ok: z.literal(false),
    replayed: z.boolean().optional(),
    refusal: refusalSchema,
    /** Of "not found": no command with this id was ever decided, so that one may still be on its way. */
    unseen: z.boolean().optional(),
  }),
]);
export type ReplyBody = z.infer<typeof replySchema>;

export function refused(refusal: Refusal): ReplyBody & { ok: false } {
  return { ok: false, refusal };
}

export const replyType = 'corebanking.reply.v1';

/** The address for the reply to a message; undefined if no reply is expected. */
export interface ReplyAddress {
  topic: string;
  partition: number;
  correlation_id: string;
}

export function replyAddress(context: MessageContext): ReplyAddress | undefined {
  const { reply_topic, reply_partition, correlation_id } = context;
  if (reply_topic === undefined || reply_partition === undefined || correlation_id === undefined) return undefined;
  return { topic: reply_topic, partition: reply_partition, correlation_id };
}
