import type { AuditRecord } from '#libs/contracts/administration.ts';
import { source, toHeaders } from '#libs/contracts/envelope.ts';
import { auditId, bucketOf } from '#libs/contracts/ids.ts';
import { messages, messageType } from '#libs/contracts/messages.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { OutboxEvent } from '#libs/postgres/outbox.ts';
import type { Command, Decision } from './decision.ts';

const type = messageType('record_audit');

/**
 * The audit record of a posting that auditors ask about, on its way to accounts through the outbox of the transaction that
 * books it: a reversal by anyone, a deposit, withdrawal or transfer by a member of staff in person. Undefined for all
 * others, for repeats, and for refusals that are not kept. Openings and changes of status are recorded by accounts.
 */
export function auditMessage(command: Command, decision: Decision, now: string): OutboxEvent | undefined {
  const { name, context } = command;
  const isAudited = name === 'reverse_transaction' || ((name === 'create_transaction' || name === 'create_transfer') && context.staff === 'true');
  const isFresh = decision.transactions.length > 0 || decision.keep !== undefined;
  if (!isAudited || !isFresh) return undefined;
  return messageOf({
    audit_id: auditId(context.message_id),
    created_at: now,
    actor: context.actor || 'system',
    action: name,
    resource_id: context.message_id,
    outcome: decision.reply.ok ? 'success' : decision.reply.refusal.code,
    request_id: context.request_id,
    details: factsOf(command),
    address: null,
  });
}

function factsOf({ name, data }: Command): Record<string, unknown> {
  if (name === 'reverse_transaction') return { reverses_transaction_id: data.reverses_transaction_id, reason: data.reason };
  if (name === 'create_transfer') return { from_account_id: data.from_account_id, to_account_id: data.to_account_id, amount: data.amount, currency: data.currency };
  if (name === 'create_transaction') return { account_id: data.account_id, transaction_type: data.transaction_type, amount: data.amount, currency: data.currency };
  return {};
}

/** The record on its way to accounts. */
export function messageOf(record: AuditRecord): OutboxEvent {
  const { audit_id, actor, created_at: time, request_id } = record;
  const headers = toHeaders({ message_id: audit_id, type, source: source.ledger, time, subject: actor, request_id, actor });
  return { id: audit_id, topic: messages.record_audit.topic, key: actor, type, time, headers, payload: JSON.stringify(record), partition: commandPartition(bucketOf(actor)) };
}
