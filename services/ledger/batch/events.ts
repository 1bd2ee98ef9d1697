import { hash } from 'node:crypto';
import { idBits, transferEventId } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import type { Decision } from '../domain/decision.ts';
import { type AccountState, type EntryRecord, isShownByIdAlone, isTransferLeg, toEntry, toTransaction, toTransfer, type TransactionRecord } from '../domain/records.ts';

/**
 * Events of decisions (contract: design of the topics): one per customer Transaction, keyed by account, complete; one per
 * Transfer; and the latest balance of each account that the batch opened, moved or gave another status. ce_id of a transaction's event is its id's bits.
 */
export function eventsOf(decision: Decision, now: string, traceparent?: string): OutboxEvent[] {
  const shown = decision.transactions.filter((record) => !isShownByIdAlone(record));
  // Both legs of a transfer tell all its entries: written out once.
  const entries = decision.entries.length === 0 ? '' : JSON.stringify(decision.entries.map(toEntry));
  const events = shown.map((record) => transactionEvent(record, decision.entries, entries, now, traceparent));
  const [first] = decision.transactions;
  if (first && first.status === 'Completed' && isTransferLeg(first)) events.push(transferEvent(first, now, traceparent));
  return events;
}

function transactionEvent(record: TransactionRecord, records: EntryRecord[], entries: string, now: string, traceparent: string | undefined): OutboxEvent {
  const own = records.find((entry) => entry.account_id === record.account_id);
  const transaction = JSON.stringify(toTransaction(record));
  const completed = record.status === 'Completed' && own !== undefined;
  const payload = completed
    ? `{"transaction":${transaction},"sequence":${own.sequence},"balance_after":"${fromMinor(own.balance_after_minor, own.currency)}","operation_id":"${record.operation_id}","entries":${entries}}`
    : `{"transaction":${transaction}}`;
  return {
    id: idBits(record.transaction_id),
    topic: 'transactions',
    key: record.account_id,
    type: record.status === 'Completed' ? 'corebanking.transaction.completed.v1' : 'corebanking.transaction.failed.v1',
    time: now,
    headers: context(record, traceparent),
    payload,
  };
}

function transferEvent(record: TransactionRecord, now: string, traceparent: string | undefined): OutboxEvent {
  const transfer = toTransfer(record);
  return {
    id: transferEventId(idBits(record.transaction_id)),
    topic: 'transfers',
    key: transfer.transfer_id,
    type: 'corebanking.transfer.completed.v1',
    time: now,
    headers: context(record, traceparent),
    payload: JSON.stringify({ transfer, operation_id: record.operation_id }),
  };
}

function context({ request_id }: TransactionRecord, traceparent: string | undefined): Record<string, string> {
  return traceparent === undefined ? { 'request-id': request_id } : { 'request-id': request_id, traceparent };
}

/**
 * The state of an account after the batch, for the compacted topic: the higher `sequence` is the newer one, and at equal ones the
 * higher `status_version`. `isAgain`: it was told before, and is written again as a new event (restate.ts).
 */
export function balanceEvent(account: AccountState, now: string, isAgain = false): OutboxEvent {
  const state = `balance ${account.account_id} ${account.last_sequence} ${account.status_version}`;
  return {
    id: hash('sha256', isAgain ? `${state} ${now}` : state).slice(0, 32),
    topic: 'balances',
    key: account.account_id,
    type: 'corebanking.balance.v1',
    time: now,
    payload: JSON.stringify({
      account_id: account.account_id,
      account_number: account.account_number,
      account_type: account.account_type,
      currency: account.currency,
      status: account.status,
      status_version: account.status_version,
      balance: fromMinor(account.balance_minor, account.currency),
      sequence: Number(account.last_sequence),
      updated_at: now,
    }),
  };
}
