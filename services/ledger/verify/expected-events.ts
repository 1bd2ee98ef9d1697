import { idBits, transferEventId } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { type EntryRecord, isShownByIdAlone, type TransactionRecord } from '../domain/records.ts';

/** An event as the books alone give it. Not made by the code that makes events: a defect there would be in both. */
interface Expected {
  attributes: Record<string, string>;
  data: unknown;
}

/** A refusal that is shown by GET of its id alone has no event. */
export function expectedTransaction(record: TransactionRecord, entries: EntryRecord[]): Expected | undefined {
  if (isShownByIdAlone(record)) return undefined;
  const { transaction_id, account_id, transaction_type, currency, description, reference, status, created_at, direction } = record;
  const transaction = {
    transaction_id, account_id, transaction_type, amount: amountOf(record), currency, description, reference, status, created_at, direction,
    transfer_id: isTransfer(record) ? transferIdOf(record) : undefined,
    counterparty_account_id: record.counterparty_account_id ?? undefined,
    reverses_transaction_id: record.reverses_transaction_id ?? undefined,
    failure_code: record.failure_code ?? undefined,
  };
  const ce_type = `corebanking.transaction.${status.toLowerCase()}.v1`;
  const attributes = { key: account_id, ce_id: idBits(transaction_id), ce_type, 'request-id': record.request_id };
  if (status === 'Failed') return { attributes, data: { transaction } };
  const own = entries.find((entry) => entry.account_id === account_id);
  const balance_after = own && fromMinor(own.balance_after_minor, own.currency);
  return {
    attributes: { ...attributes, ce_time: own?.created_at ?? '' },
    data: {
      transaction, sequence: Number(own?.sequence), balance_after, operation_id: record.operation_id,
      entries: entries.map(expectedEntry),
    },
  };
}

function expectedEntry({ amount_minor, balance_after_minor, sequence, ...entry }: EntryRecord): object {
  return {
    ...entry,
    entry_id: `ent_${idBits(entry.account_id)}-${sequence}`,
    sequence: Number(sequence),
    amount: fromMinor(amount_minor, entry.currency),
    balance_after: fromMinor(balance_after_minor, entry.currency),
  };
}

/** Only a Completed transfer has an event; a reversal is none. */
export function expectedTransfer(record: TransactionRecord): Expected | undefined {
  const { currency, description, status, created_at, operation_id } = record;
  if (!isTransfer(record) || status !== 'Completed') return undefined;
  const [transfer_id, ce_type] = [transferIdOf(record), 'corebanking.transfer.completed.v1'];
  const between = { from_account_id: record.account_id, to_account_id: record.counterparty_account_id };
  const attributes = { key: transfer_id, ce_id: transferEventId(idBits(record.transaction_id)), ce_type, 'request-id': record.request_id };
  const transfer = { transfer_id, ...between, amount: amountOf(record), currency, description, status, created_at };
  return { attributes, data: { transfer, operation_id } };
}

function isTransfer({ transaction_type, reverses_transaction_id }: TransactionRecord): boolean {
  return ['Transfer', 'Loan Payment'].includes(transaction_type) && reverses_transaction_id === null;
}

function transferIdOf({ operation_id }: TransactionRecord): string {
  return `trf_${idBits(operation_id)}`;
}

function amountOf({ amount_minor, amount_text, currency }: TransactionRecord): string | null {
  return amount_minor === null || currency === null ? amount_text : fromMinor(amount_minor, currency);
}

/** Which fields of an event differ from what is expected. */
export function differences({ key, headers }: ReceivedMessage, data: object, expected: Expected): string[] {
  const told: Record<string, unknown> = { ...headers, key, ce_id: headers['ce_id']?.replaceAll('-', '') };
  const wrong = Object.entries(expected.attributes).flatMap(([name, booked]) => (told[name] === booked ? [] : [name]));
  return [...wrong, ...paths(data, expected.data, '')];
}

/** Where two JSON values differ. */
function paths(a: unknown, b: unknown, path: string): string[] {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b ? [] : [path];
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].flatMap((name) => paths((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name], path === '' ? name : `${path}.${name}`));
}
