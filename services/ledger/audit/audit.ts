import type { AuditRecord } from '#libs/contracts/administration.ts';
import { auditId } from '#libs/contracts/ids.ts';
import type { Command, CommandName, Decision } from '../domain/decision.ts';

const ofStaff = new Set<CommandName>([
  'create_transaction',
  'create_transfer',
  'create_batch',
  'place_hold',
  'capture_hold',
  'release_hold',
]);

/**
 * Returns the audit record of a command, to be stored by the transaction that posts it (audit-sender.ts). All
 * reversals are audited. Deposits, withdrawals, transfers, batches, and changes of holds are audited if a staff
 * user requests them. Returns undefined for other commands, for repeats, and for refusals that are not stored.
 * Accounts audits openings and status changes.
 */
export function auditOf(command: Command, decision: Decision, now: string): AuditRecord | undefined {
  const { name, context } = command;
  const isAudited = name === 'reverse_transaction' || (ofStaff.has(name) && context.staff === 'true');
  const isFresh = decision.transactions.length > 0 || decision.keep !== undefined;
  if (!isAudited || !isFresh) return undefined;
  return {
    audit_id: auditId(context.message_id),
    created_at: now,
    actor: context.actor || 'system',
    action: name,
    resource_id:
      name === 'release_hold'
        ? command.data.hold_id
        : name === 'create_batch'
          ? command.data.batch_id
          : context.message_id,
    outcome: decision.reply.ok ? 'success' : decision.reply.refusal.code,
    request_id: context.request_id,
    details: {
      ...factsOf(command),
      ...(context.approved_by === undefined ? {} : { approved_by: context.approved_by }),
    },
    address: context.address ?? null,
  };
}

function factsOf({ name, data }: Command): Record<string, unknown> {
  // The reason is free text, which is stored as the reversal's description.
  if (name === 'reverse_transaction') return { reverses_transaction_id: data.reverses_transaction_id };
  if (name === 'create_transfer')
    return {
      from_account_id: data.from_account_id,
      to_account_id: data.to_account_id,
      amount: data.amount,
      currency: data.currency,
    };
  if (name === 'create_batch') return { mode: data.mode, items: data.count };
  if (name === 'create_transaction')
    return {
      account_id: data.account_id,
      transaction_type: data.transaction_type,
      amount: data.amount,
      currency: data.currency,
    };
  if (name === 'place_hold')
    return { account_id: data.account_id, amount: data.amount, currency: data.currency, expires_at: data.expires_at };
  if (name === 'capture_hold')
    return { hold_id: data.hold_id, amount: data.amount, to_account_id: data.to_account_id, final: data.final };
  if (name === 'release_hold') return { hold_id: data.hold_id };
  return {};
}
