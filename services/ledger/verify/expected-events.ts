import { askedBy } from '#libs/contracts/event-fields.ts';
import { idBits, transferEventId } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import {
  isOfTransfer,
  isShownByIdAlone,
  type PostedEntry,
  type TransactionRecord,
  toEventEntry,
  toTransaction,
  toTransfer,
} from '../domain/records.ts';

/**
 * An event as derived from the books. Resources are those of REST (domain/records.ts). The rest does not use the code
 * that creates events, because a bug there would then be in both.
 */
interface Expected {
  attributes: Record<string, string>;
  data: unknown;
}

/** The owners of accounts, by account_id. */
export type Owners = ReadonlyMap<string, { client_id: string; account_number: string }>;

/**
 * Returns the expected event of a transaction. A refusal that is visible only by GET of its id has no event,
 * unless it is because of an unknown account.
 */
export function expectedTransaction(
  record: TransactionRecord,
  entries: PostedEntry[],
  owners: Owners,
): Expected | undefined {
  const isUnknown = record.failure_code === 'account_not_found';
  if (isShownByIdAlone(record) && !isUnknown) return undefined;
  const { transaction_id, account_id, status } = record;
  const ce_type = `corebanking.transaction.${isUnknown ? 'account_not_found' : status.toLowerCase()}.v1`;
  const by = { ...(isUnknown ? {} : owners.get(account_id)), ...askedBy(record) };
  const attributes = { key: account_id, ce_id: idBits(transaction_id), ce_type, 'request-id': record.request_id };
  const transaction = toTransaction(record);
  const failure_account_id = record.failure_account_id ?? undefined;
  if (status === 'Failed') return { attributes, data: { transaction, failure_account_id, ...by } };
  const own = entries.find((entry) => entry.account_id === account_id);
  const balance_after = own && fromMinor(own.balance_after_minor, own.currency);
  return {
    attributes: { ...attributes, ce_time: own?.created_at ?? '' },
    data: {
      transaction,
      sequence: Number(own?.sequence),
      balance_after,
      operation_id: record.operation_id,
      entries: entries.map(toEventEntry),
      ...by,
    },
  };
}

/**
 * Returns the expected event of a transfer or a refused transfer from its record. For a reversal, the record on
 * its source is the one that does not reverse the original's source. A refused reversal has no event.
 */
export function expectedTransfer(record: TransactionRecord, reversed?: Reversed): Expected | undefined {
  const { status, account_id, counterparty_account_id, operation_id } = record;
  const isReversal = record.reverses_transaction_id !== null;
  if (!isOfTransfer(record) || isShownByIdAlone(record)) return undefined;
  if (isReversal && (status === 'Failed' || !reversed)) return undefined;
  const onSource =
    reversed?.isFromCounterparty && counterparty_account_id !== null
      ? { ...record, account_id: counterparty_account_id, counterparty_account_id: account_id }
      : record;
  const transfer = toTransfer(onSource, { reverses: reversed?.transfer_id });
  const attributes = {
    key: reversed?.transfer_id ?? transfer.transfer_id,
    ce_id: transferEventId(idBits(record.transaction_id)),
    ce_type: `corebanking.transfer.${isReversal ? 'reversed' : status.toLowerCase()}.v1`,
    'request-id': record.request_id,
  };
  return {
    attributes,
    data: {
      transfer,
      failure_account_id: record.failure_account_id ?? undefined,
      operation_id: status === 'Failed' ? undefined : operation_id,
      ...askedBy(record),
    },
  };
}

/** The transfer that a reversal reverses, and whether the reversal's own record is on its destination. */
export interface Reversed {
  transfer_id: string;
  isFromCounterparty: boolean;
}

/**
 * Returns the fields in which an event differs from the expected one. `isResent`: its command may have been sent again
 * after a restore, which gives everything a new posting time.
 */
export function differences(
  { key, headers }: ReceivedMessage,
  data: object,
  expected: Expected,
  isResent = false,
): string[] {
  const published: Record<string, unknown> = { ...headers, key, ce_id: headers['ce_id']?.replaceAll('-', '') };
  const wrong = Object.entries(expected.attributes).flatMap(([name, posted]) =>
    published[name] === posted ? [] : [name],
  );
  const { transaction } = data as { transaction?: Record<string, unknown> };
  const identity = { event_id: headers['ce_id'], event_type: headers['ce_type'] };
  const isOlder = transaction?.['reverses_transaction_id'] !== undefined && transaction['transfer_id'] === undefined;
  return [...wrong, ...paths(data, { ...(expected.data as object), ...identity }, '')].filter(
    (path) => !(isOlder && path === 'transaction.transfer_id') && !(isResent && postingTime.test(path)),
  );
}

const postingTime = /^(ce_time|entries\.\d+\.created_at)$/;

/** Known only when the event is published; what was available is checked apart (available-checks.ts). */
const notInBooks = ['batch_id', 'batch_position', 'available_balance'];

/** Events from before 1.0.0 lack these fields, and reversals of transfers lack transfer_id. */
const sinceNow = ['actor', 'request_channel', 'client_id', 'account_number', 'event_id', 'event_type'];
/** So do these, at any depth. */
const sinceNowBelow = /\.(effective_date|account_type|account_class)$/;

/** Returns the paths at which two JSON values differ. */
function paths(a: unknown, b: unknown, path: string): string[] {
  if (notInBooks.includes(path) || (a === undefined && (sinceNow.includes(path) || sinceNowBelow.test(path))))
    return [];
  if (path === 'request_channel' && a === 'staff' && b === 'token') return [];
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b ? [] : [path];
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...names].flatMap((name) =>
    paths(
      (a as Record<string, unknown>)[name],
      (b as Record<string, unknown>)[name],
      path === '' ? name : `${path}.${name}`,
    ),
  );
}
