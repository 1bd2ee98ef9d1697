import { z } from 'zod';
import { refusalSchema } from './errors.ts';

/**
 * What travels in headers: CloudEvents 1.0 in binary mode (Kafka protocol binding) plus the context of a request.
 * The domain's data travel in the value.
 */
export const source = {
  gateway: '/core-banking/gateway',
  ledger: '/core-banking/ledger',
  accounts: '/core-banking/accounts',
  webhooks: '/core-banking/webhooks',
} as const;

export interface MessageContext {
  /** ce_id: the command's id (the id of what it creates, or a fresh one), the same on every repeat. */
  message_id: string;
  /** ce_type */
  type: string;
  /** ce_source */
  source: string;
  /** ce_time: the moment of acceptance, ISO 8601 UTC. Becomes created_at. */
  time: string;
  /** ce_subject: the message's key. */
  subject: string;
  request_id: string;
  /** Who asked: `key:<family>` or `jwt:<iss>|<sub>`; empty for the system itself. */
  actor: string;
  /** After this moment the first service that takes the command must not execute it. ISO 8601 UTC. */
  deadline?: string;
  /** Until this moment the gateway waits for the reply. ISO 8601 UTC. */
  reply_by?: string;
  idempotency_key?: string;
  /** SHA-256 (first 128 bits, hex) over path parameters and normalised body. */
  fingerprint?: string;
  /** 'true': answer what is kept under this id, and execute nothing where nothing is (docs/decisions/0047). */
  repeat_only?: string;
  /** 'true' where the actor is a member of staff, in person: the ledger then audits postings too. */
  staff?: string;
  /** The caller's network address, for the audit; of commands alone. */
  address?: string;
  /** The client that the caller is bound to. */
  bound_client_id?: string;
  /** Who approved the command, where a second person had to, and the approval: the reply goes to its saga. */
  approved_by?: string;
  approval_id?: string;
  /** The batch that this is an item of. In no header: who unfolds the batch's message says so. */
  batch_id?: string;
  traceparent?: string;
  correlation_id?: string;
  reply_topic?: string;
  reply_partition?: number;
}

/** The header of each field. */
export const headerNames = {
  message_id: 'ce_id',
  type: 'ce_type',
  source: 'ce_source',
  time: 'ce_time',
  subject: 'ce_subject',
  request_id: 'request-id',
  actor: 'actor',
  deadline: 'deadline',
  reply_by: 'reply-by',
  idempotency_key: 'idempotency-key',
  fingerprint: 'fingerprint',
  repeat_only: 'repeat-only',
  staff: 'staff',
  address: 'caller-address',
  bound_client_id: 'bound-client-id',
  approved_by: 'approved-by',
  approval_id: 'approval-id',
  traceparent: 'traceparent',
  correlation_id: 'correlation-id',
  reply_topic: 'reply-topic',
} as const;

const pairs = Object.entries(headerNames) as [keyof typeof headerNames, string][];

/** Headers of a message. Absent fields are left out. */
export function toHeaders(context: MessageContext): Record<string, string> {
  const headers: Record<string, string> = { ce_specversion: '1.0', 'content-type': 'application/json' };
  for (const [field, header] of pairs) {
    const value = context[field];
    if (value !== undefined) headers[header] = value;
  }
  if (context.reply_partition !== undefined) headers['reply-partition'] = String(context.reply_partition);
  return headers;
}

/** By what a line of a log is found again: the request, and the command (or query) that it led to. */
export function idsOf(headers: Record<string, string>): {
  request_id: string | undefined;
  command_id: string | undefined;
} {
  return { request_id: headers['request-id'], command_id: headers['ce_id'] };
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** The context that a message's headers carry, or undefined when a required one is missing or malformed. */
export function fromHeaders(headers: Record<string, string>): MessageContext | undefined {
  const context: Partial<Record<keyof typeof headerNames, string>> & { reply_partition?: number } = {};
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

/** The value of a reply: an outcome, or a refusal. `replayed`: the command had been decided before. */
export const replySchema = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), replayed: z.boolean().optional(), data: z.unknown() }),
  z.object({ ok: z.literal(false), replayed: z.boolean().optional(), refusal: refusalSchema }),
]);
export type ReplyBody = z.infer<typeof replySchema>;

export const replyType = 'corebanking.reply.v1';

/** Where a reply to this message goes; undefined when nobody waits. */
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
