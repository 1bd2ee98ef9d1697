import type { AuditRecord } from '#libs/contracts/audit.ts';
import { limitNames } from '#libs/contracts/limits.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { buildAuditRecord } from '#libs/service/audit-record.ts';
import type { Command, CommandName, Decision } from '../domain/decision.ts';

/** The fields of audited commands that their records show. The reason of a reversal is free text. */
const shownFields: { [N in CommandName]?: string[] } = {
  create_transaction: ['account_id', 'transaction_type', 'amount', 'currency', 'effective_date'],
  create_transfer: ['from_account_id', 'to_account_id', 'amount', 'currency', 'effective_date'],
  create_batch: ['mode', 'items'],
  reverse_transaction: ['reverses_transaction_id', 'effective_date'],
  place_hold: ['account_id', 'amount', 'currency', 'expires_at'],
  capture_hold: ['hold_id', 'amount', 'to_account_id', 'final', 'effective_date'],
  release_hold: ['hold_id'],
  close_day: ['date'],
  set_account_limits: ['account_id', ...limitNames],
  open_till: ['counted'],
  close_till: ['till_id', 'counted'],
};

/** Audited whoever requests them. */
const alwaysAudited: ReadonlySet<CommandName> = new Set([
  'reverse_transaction',
  'close_day',
  'set_account_limits',
  'open_till',
  'close_till',
]);

/**
 * Returns the audit record of a command, to be stored by the transaction that posts it (audit-sender.ts). All
 * reversals, closings of days, changes of limits, and tills are audited. Deposits, withdrawals, transfers, batches, and changes of
 * holds are audited if a staff user requests them. Returns undefined for other commands, for repeats, and for refusals that are not stored.
 * Accounts audits openings and status changes.
 */
export function auditCommand(command: Command, decision: Decision, now: string): AuditRecord | undefined {
  const { name, context } = command;
  const fields = shownFields[name];
  const isAudited = alwaysAudited.has(name) || context.staff === 'true';
  const isFresh = decision.transactions.length > 0 || decision.keep !== undefined;
  if (fields === undefined || !isAudited || !isFresh) return undefined;
  const data: Record<string, unknown> =
    name === 'create_batch' ? { ...command.data, items: command.data.count } : command.data;
  const { replaced, audited } = decision;
  const details = {
    ...Object.fromEntries(fields.map((field) => [field, data[field]])),
    ...whatWasPosted(command, decision),
    ...(replaced && { before: replaced }),
    ...audited,
  };
  return {
    ...buildAuditRecord(context, decision.reply, details, now),
    action: name,
    resource_id: auditedResource(command),
  };
}

/** Commands about a transaction or a hold: their data does not say which accounts they post to, or how much. */
const withoutPosting: ReadonlySet<CommandName> = new Set(['reverse_transaction', 'capture_hold', 'release_hold']);

function whatWasPosted({ name }: Command, { transactions, hold }: Decision) {
  if (!withoutPosting.has(name)) return {};
  const ids = [hold?.hold.account_id, ...transactions.map(({ account_id }) => account_id)];
  const [first] = transactions;
  const { transaction_type, amount_minor: minor, currency } = first ?? {};
  return {
    account_ids: [...new Set(ids.filter((id) => id !== undefined))],
    ...(minor != null && currency != null && { transaction_type, amount: fromMinor(minor, currency), currency }),
  };
}

/** Returns the id of what the command is about: what it creates, unless it changes something else. */
function auditedResource({ name, data, context }: Command): string {
  switch (name) {
    case 'release_hold':
      return data.hold_id;
    case 'set_account_limits':
      return data.account_id;
    case 'create_batch':
      return data.batch_id;
    case 'close_till':
      return data.till_id;
    case 'close_day':
      return data.date;
    default:
      return context.message_id;
  }
}
