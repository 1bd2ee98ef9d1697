import { hash } from 'node:crypto';
import type { MessageContext } from '#libs/contracts/envelope.ts';
import { askedBy } from '#libs/contracts/event-fields.ts';
import { formatId, holdEventId, idBits, transferEventId } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { pickNames } from '#libs/contracts/names.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import type { Decision, FinishedBatch, HoldChange } from '../domain/decision.ts';
import {
  type AccountState,
  availableMinor,
  isOfTransfer,
  isShownByIdAlone,
  isTransferLeg,
  type PostedEntry,
  type TransactionRecord,
  toEventEntry,
  toHold,
  toTransaction,
  toTransfer,
  transactionEventType,
} from '../domain/records.ts';
import type { BatchItems } from '../rows.ts';

/**
 * Returns the events of a decision: one per customer transaction, keyed by account; one per transfer; and one
 * per change of a hold. The ce_id of a transaction's event consists of the bits of its id.
 */
export function buildEvents(
  decision: Decision,
  by: MessageContext,
  accounts: ReadonlyMap<string, AccountState>,
  now: string,
): OutboxEvent[] {
  const { transactions, entries, available } = decision;
  if (transactions.length === 0 && !decision.hold) return [];
  const origin: Origin = {
    asked: JSON.stringify(askedBy(by)).slice(1, -1),
    traceparent: by.traceparent,
    accounts,
    now,
  };
  // Both legs of a transfer contain all its entries, so they are serialized once.
  const shownEntries = entries.length === 0 ? '' : JSON.stringify(entries.map(toEventEntry));
  const events = transactions.flatMap((record, i) =>
    transactionEvent(record, entries, shownEntries, available?.[i], origin),
  );
  const transfer = transferEvent(decision, origin);
  if (transfer) events.push(transfer);
  if (decision.hold) events.push(holdEvent(decision.hold, accounts, now, by));
  return events;
}

/** The data that the events of one command have in common. */
interface Origin {
  /** Serialized fields of the events' data. */
  asked: string;
  traceparent: string | undefined;
  accounts: ReadonlyMap<string, AccountState>;
  now: string;
}

/**
 * Returns the owner of the account as serialized fields of an event's data, from the locked row. The values
 * need no escaping.
 */
function ownershipFields(accountId: string, accounts: ReadonlyMap<string, AccountState>): string {
  const account = accounts.get(accountId);
  return account ? `"client_id":"${account.client_id}","account_number":"${account.account_number}",` : '';
}

/** Returns the counterparty account as a serialized field of an event's data, if it is the reason for the failure. */
function failureAccountField({ failure_account_id: other }: TransactionRecord): string {
  return other === null ? '' : `"failure_account_id":"${other}",`;
}

function transactionEvent(
  record: TransactionRecord,
  records: PostedEntry[],
  entries: string,
  available: bigint | undefined,
  { asked, accounts, now, traceparent }: Origin,
): OutboxEvent[] {
  const type = transactionEventType(record);
  if (type === undefined) return [];
  const own = records.find((entry) => entry.account_id === record.account_id);
  const isUnknown = record.failure_code === 'account_not_found';
  const currency = own?.currency ?? accounts.get(record.account_id)?.currency;
  const left =
    available === undefined || currency === undefined || isUnknown
      ? ''
      : `"available_balance":"${fromMinor(available, currency)}",`;
  const about = `${isUnknown ? '' : ownershipFields(record.account_id, accounts)}${asked}}`;
  const transaction = JSON.stringify(toTransaction(record));
  const completed = record.status === 'Completed' && own !== undefined;
  const payload = completed
    ? `{"transaction":${transaction},"sequence":${own.sequence},"balance_after":"${fromMinor(own.balance_after_minor, own.currency)}",${left}"operation_id":"${record.operation_id}","entries":${entries},${about}`
    : `{"transaction":${transaction},${failureAccountField(record)}${left}${about}`;
  const id = idBits(record.transaction_id);
  const headers = context(record.request_id, traceparent);
  return [{ id, topic: 'transactions', key: record.account_id, type, time: now, headers, payload }];
}

/** Returns the event of a completed or refused transfer, or of a reversal. Its key is the original transfer. */
function transferEvent(
  { transactions: [first, second], reverses_operation_id: reverses }: Decision,
  { asked, now, traceparent }: Origin,
): OutboxEvent | undefined {
  if (first === undefined || !isOfTransfer(first) || isShownByIdAlone(first)) return undefined;
  const isReversal = first.reverses_transaction_id !== null;
  // A refused reversal does not change the transfer; only the event of its transaction is published.
  if (isReversal && (second === undefined || reverses === undefined)) return undefined;
  const reversesSource =
    reverses !== undefined && first.reverses_transaction_id === formatId('transaction', idBits(reverses));
  const source = reversesSource && second ? second : first;
  const transfer = toTransfer(source, isReversal ? { reverses } : {});
  const outcome = isReversal ? 'reversed' : first.status === 'Completed' ? 'completed' : 'failed';
  return {
    id: transferEventId(idBits(first.transaction_id)),
    topic: 'transfers',
    key: transfer.reverses_transfer_id ?? transfer.transfer_id,
    type: `corebanking.transfer.${outcome}.v1`,
    time: now,
    headers: context(first.request_id, traceparent),
    payload: `{"transfer":${JSON.stringify(transfer)},${outcome === 'failed' ? failureAccountField(first) : `"operation_id":"${first.operation_id}",`}${asked}}`,
  };
}

/** Returns the events of changed holds. They are in order per account: each has the next hold_version. */
export function holdEvent(
  { kind, hold, hold_version, request_id, captured }: HoldChange,
  accounts: ReadonlyMap<string, AccountState>,
  now: string,
  by?: MessageContext,
): OutboxEvent {
  const { hold_id, account_id } = hold;
  const capture = captured && {
    amount: toTransaction(captured).amount,
    transaction_id: captured.transaction_id,
    ...(isTransferLeg(captured) ? { transfer_id: formatId('transfer', idBits(captured.operation_id)) } : {}),
  };
  const change = { hold: toHold(hold), hold_version: Number(hold_version), ...capture };
  const asked = JSON.stringify(askedBy(by ?? { actor: '' })).slice(1, -1);
  return {
    id: holdEventId(hold_id, captured ? `captured ${captured.transaction_id}` : kind),
    topic: 'holds',
    key: account_id,
    type: `corebanking.hold.${kind}.v1`,
    time: now,
    ...(request_id === undefined ? {} : { headers: context(request_id, by?.traceparent) }),
    payload: `${JSON.stringify(change).slice(0, -1)},${ownershipFields(account_id, accounts)}${asked}}`,
  };
}

function context(request_id: string, traceparent: string | undefined): Record<string, string> {
  return traceparent === undefined ? { 'request-id': request_id } : { 'request-id': request_id, traceparent };
}

/** When a batch was accepted first, and what its items came to. */
export interface DoneBatch {
  created_at: string;
  items: BatchItems;
}

/** Returns the event of a batch of which everything is decided. `done` is by command_id. */
export function batchEvent(
  { command_id, batch_id, mode, item_count, external_id, metadata, bound_client_id, isRefused }: FinishedBatch,
  done: ReadonlyMap<string, DoneBatch>,
  by: MessageContext,
  now: string,
): OutboxEvent {
  const { created_at = by.time, items = [] } = done.get(command_id) ?? {};
  const completed = items.reduce((total, one) => total + one.completed, 0);
  const totals = items.flatMap(({ currency, completed: count, minor }) =>
    currency === null || count === 0 ? [] : [{ currency, amount: fromMinor(BigInt(minor), currency) }],
  );
  const names = pickNames({ external_id, metadata, metadata_client_id: metadata && bound_client_id });
  const status = isRefused ? 'Refused' : 'Completed';
  const batch = { batch_id, mode, status, counts: { completed, failed: item_count - completed }, totals, created_at };
  return {
    id: idBits(batch_id),
    topic: 'batches',
    key: batch_id,
    type: 'corebanking.batch.completed.v1',
    time: now,
    headers: context(by.request_id, by.traceparent),
    payload: JSON.stringify({ batch: { ...batch, ...names }, client_id: bound_client_id, ...askedBy(by) }),
  };
}

/**
 * Returns the state of an account after the batch, for the compacted topic. The state with the higher
 * `sequence` is newer; if equal, the one with the higher `status_version` or `hold_version`. `isAgain`: the
 * state was already published and is now published again as a new event (republish.ts).
 */
export function balanceEvent(account: AccountState, now: string, isAgain = false): OutboxEvent {
  const holds = account.hold_version === 0n ? '' : ` ${account.hold_version}`;
  const state = `balance ${account.account_id} ${account.last_sequence} ${account.status_version}${holds}`;
  return {
    id: hash('sha256', isAgain ? `${state} ${now}` : state).slice(0, 32),
    topic: 'balances',
    key: account.account_id,
    type: 'corebanking.balance.v1',
    time: now,
    payload: JSON.stringify({
      account_id: account.account_id,
      client_id: account.client_id,
      account_number: account.account_number,
      account_type: account.account_type,
      currency: account.currency,
      status: account.status,
      status_version: account.status_version,
      balance: fromMinor(account.balance_minor, account.currency),
      available_balance: fromMinor(availableMinor(account), account.currency),
      sequence: Number(account.last_sequence),
      hold_version: Number(account.hold_version),
      updated_at: now,
    }),
  };
}
