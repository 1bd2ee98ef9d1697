import type { Direction } from '#libs/contracts/entries.ts';
import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { invalidField, type Refusal, refusal } from '#libs/contracts/errors.ts';
import { formatId, idBits, idKey } from '#libs/contracts/ids.ts';
import { limitNames } from '#libs/contracts/limits.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { maxMinor, toMinor } from '#libs/contracts/money.ts';
import type { GivenNames } from '#libs/contracts/names.ts';
import { plusDays } from '#libs/contracts/times.ts';
import type { TransactionType } from '#libs/contracts/transactions.ts';
import type { BatchCommand, BatchRecord } from './batches.ts';
import { dayAt } from './calendar.ts';
import { balanceSide, isSystem, type Leg, type SystemKind } from './chart.ts';
import type { ClosedDay } from './days.ts';
import type { Posted } from './four-eyes.ts';
import {
  type AccountState,
  availableMinor,
  type Failure,
  type HoldState,
  type PostedEntry,
  type TransactionRecord,
  toTransaction,
  toTransfer,
} from './records.ts';

import { type Tills, takeCash } from './tills.ts';

/** The input and output of decisions. Pure. */
type SingleName =
  | 'create_transaction'
  | 'create_transfer'
  | 'reverse_transaction'
  | 'place_hold'
  | 'capture_hold'
  | 'release_hold'
  | 'set_account_limits'
  | 'open_ledger_account'
  | 'change_ledger_account_status'
  | 'close_day'
  | 'open_till'
  | 'close_till';
export type CommandName = Command['name'];

export type SingleCommand = {
  [N in SingleName]: { name: N; data: MessageData<N>; context: MessageContext };
}[SingleName];
export type Command = SingleCommand | BatchCommand;
export type CommandOf<N extends CommandName> = Extract<Command, { name: N }>;

/**
 * The state on which a batch is decided. Decisions update it, so that later commands of the batch see their
 * effects.
 */
export interface Books {
  /** The locked customer accounts of the batch, by account_id. */
  accounts: Map<string, AccountState>;
  /** The accounts to which the batch has posted. */
  moved: Set<AccountState>;
  /** The numbers of accounts to open that are already taken. */
  takenNumbers: Set<string>;
  /** Returns this writer's slot of Teller or Vault. */
  system: (kind: SystemKind, currency: string) => AccountState;
  /** Existing transactions of repeated commands, and transactions to be reversed, by idKey. */
  transactions: Map<string, TransactionRecord>;
  /** Maps a reversed transaction to its reversal. */
  reversals: Map<string, string>;
  /** Unknown transactions to be reversed whose commands were dead-lettered, and are therefore Pending. */
  deadLettered: Set<string>;
  /**
   * Stored outcomes of repeated commands, by commandKey: of reversals, captures, and commands
   * without a transaction.
   */
  outcomes: Map<string, { fingerprint: string | null; outcome: ReplyBody }>;
  /** What people have posted without approval on their latest day, by postedKey. */
  posted: Map<string, Posted>;
  /** The holds that the commands name, read after locking, and holds placed by the batch, by hold_id. */
  holds: Map<string, HoldState>;
  /** The holds that the batch placed or changed, and the accounts whose held amount it changed. */
  changedHolds: Set<HoldState>;
  heldAmountChanged: Set<AccountState>;
  /** The accounts whose limits, or what has left them on this day, the batch changed. */
  limitsChanged: Set<AccountState>;
  tills: Tills;
  /** Holds that expired before the first decision. */
  expired: HoldChange[];
  /** The last closed day, or null. */
  closed: string | null;
  /** The posting time of the batch, by the database's clock. ISO 8601 UTC. */
  now: string;
}

/** A change of a hold, for its event. */
export interface HoldChange {
  kind: 'placed' | 'captured' | 'released' | 'expired';
  /** The hold after the change. */
  hold: HoldState;
  /** The account's hold_version after the change. */
  hold_version: bigint;
  /** The request that caused the change; undefined if the hold expired. */
  request_id?: string;
  /** The transaction on the hold's account that captured it. */
  captured?: TransactionRecord;
}

/** The decision about one command. */
export interface Decision {
  reply: ReplyBody;
  transactions: TransactionRecord[];
  entries: PostedEntry[];
  /** What is available on the accounts of `transactions` after the decision, in minor units; undefined: there is no such account. */
  available?: (bigint | undefined)[];
  /** The account that this command opened. */
  opened?: AccountState;
  /** The account whose status this command changed. */
  statusChanged?: AccountState;
  hold?: HoldChange;
  closedDay?: ClosedDay;
  /** What a change replaced, for its audit record. */
  replaced?: Record<string, unknown>;
  /** What was found, for its audit record alone. */
  audited?: Record<string, unknown>;
  /** The operation that a reversal reverses. */
  reverses_operation_id?: string;
  /**
   * The outcome stored under the command's id: of a reversal, a capture, or a command without a
   * transaction.
   */
  keep?: ReplyBody;
  /** The command was not executed and waits for an approval (four-eyes.ts). */
  waits?: true;
  /** The batch that this message is the first part of. */
  batch?: BatchRecord;
  /** The batch of which everything is decided with this part, for its event. `isRefused`: nothing was posted. */
  finished?: FinishedBatch;
  /** The decisions about the items of a batch, in order. */
  parts?: Decision[];
}

export type FinishedBatch = BatchRecord & { isRefused: boolean };

/** A transaction whose outcome is not yet known. `effective_date`: as it was given; null: the bank's day at the decision. */
export type Draft = Omit<
  TransactionRecord,
  'amount_minor' | 'amount_text' | 'currency' | 'status' | 'failure_code' | 'failure_message'
>;
/** A requested amount. */
export interface Amount {
  decimal: string;
  currency: string | null;
}

/** A decision whose reply is stored as sent under the command's id, because no transaction is its record. */
export function storeReply(reply: ReplyBody): Decision {
  return { ...replyOnly(reply), keep: reply };
}

/** A decision that writes nothing: a repeat, or the starting point of a decision with a record. */
export function replyOnly(reply: ReplyBody): Decision {
  return { reply, transactions: [], entries: [] };
}

/** The decision about a command whose Idempotency-Key belongs to another request. */
export function reusedKey(): Decision {
  return replyOnly(refused(refusal('idempotency_key_reused', 'this Idempotency-Key was used for another request')));
}

/** Returns the reply to a command from its record, for the first reply and for repeats. */
export function replyFromRecord(name: CommandName, record: TransactionRecord): ReplyBody {
  if (record.status === 'Completed')
    return { ok: true, data: name === 'create_transfer' ? toTransfer(record) : toTransaction(record) };
  const { transaction_id } = record;
  const message = record.failure_message ?? '';
  const code = record.failure_code as Refusal['code'];
  const isAmount = code === 'invalid_amount_precision' || code === 'amount_too_large';
  const reason = isAmount ? invalidField('amount', message, code) : { code, message };
  return refused({ ...reason, details: { ...namedIn(code, message, record), transaction_id } });
}

/** Returns the details of a refusal of which only the message is stored. */
function namedIn(code: Refusal['code'], message: string, record: TransactionRecord): Record<string, unknown> {
  if (code === 'account_not_found') return unknownAccountDetails(record);
  if (code === 'limit_exceeded') return { limit: limitNames.find((name) => message.includes(`${name} of account`)) };
  return {};
}

/** Returns the details of accountNotFound. */
function unknownAccountDetails({ account_id, failure_account_id, transaction_type }: TransactionRecord) {
  if (failure_account_id !== null) return { field: 'to_account_id', account_id: failure_account_id };
  return { field: transaction_type === 'Transfer' ? 'from_account_id' : 'account_id', account_id };
}

type Given = GivenNames & { effective_date?: string | null | undefined };

/**
 * Returns the value date of a posting for which none was given: the bank's day, but not a closed one, which the clock may
 * show again after it was set back.
 */
export function currentDay({ now, closed }: Pick<Books, 'now' | 'closed'>): string {
  const today = dayAt(now);
  return closed !== null && today <= closed ? plusDays(closed, 1) : today;
}

/** Returns what is stored of a value date: nothing if it is the day of the time that is stored anyway. */
const toStoredDay = (day: string, time: string): string | null => (day === dayAt(time) ? null : day);

/** Returns the draft of this command's transaction. Its created_at is the time of acceptance. */
export function draftTransaction(
  context: MessageContext,
  transactionId: string,
  accountId: string,
  counterpartyId: string | null,
  type: TransactionType,
  direction: Direction,
  description: string | null,
  reference: string | null,
  { external_id = null, metadata = null, effective_date = null }: Given = {},
): Draft {
  return {
    transaction_id: transactionId,
    operation_id: formatId('operation', idBits(transactionId)),
    account_id: accountId,
    counterparty_account_id: counterpartyId,
    transaction_type: type,
    direction,
    description,
    reference,
    reverses_transaction_id: null,
    failure_account_id: null,
    hold_id: null,
    idempotency_key: context.idempotency_key ?? null,
    fingerprint: context.fingerprint ?? null,
    actor: context.actor,
    request_id: context.request_id,
    created_at: context.time,
    external_id,
    metadata,
    batch_id: context.batch_id ?? null,
    metadata_client_id: metadata === null ? null : (context.bound_client_id ?? null),
    // What had been posted before a restore keeps its day.
    effective_date: effective_date ?? (context.decided === '' ? dayAt(context.time) : null),
  };
}

/** Returns the record of a completed transaction. */
export function completed(draft: Draft, minor: bigint, currency: string): TransactionRecord {
  return {
    ...draft,
    amount_minor: minor,
    amount_text: null,
    currency,
    status: 'Completed',
    failure_code: null,
    failure_message: null,
  };
}

/**
 * Refuses a command. The record is one Failed transaction without entries. If the account is unknown, it is
 * stored as requested.
 */
export function fail(
  name: CommandName,
  draft: Draft,
  { decimal, currency }: Amount,
  reason: Failure,
  books: Books,
): Decision {
  const minor = currency === null ? null : toMinor(decimal, currency);
  const countable = typeof minor === 'bigint';
  const record: TransactionRecord = {
    ...draft,
    amount_minor: countable ? minor : null,
    amount_text: countable ? null : decimal,
    currency,
    status: 'Failed',
    failure_code: reason.code,
    failure_message: reason.message,
    effective_date: toStoredDay(draft.effective_date ?? currentDay(books), draft.created_at),
  };
  books.transactions.set(idKey(record.transaction_id), record);
  const available = availableOn([record], books);
  return { reply: replyFromRecord(name, record), transactions: [record], entries: [], available };
}

/** Returns what is available at present on the accounts of these transactions; undefined: there is no such account. */
export function availableOn(records: TransactionRecord[], { accounts }: Pick<Books, 'accounts'>) {
  return records.map(({ account_id }) => {
    const account = accounts.get(account_id);
    return account && availableMinor(account);
  });
}

/**
 * Applies an operation: its entries, leg by leg, and its transactions. The first transaction is the command's
 * record.
 */
export function complete(
  name: CommandName,
  records: TransactionRecord[],
  legs: Leg<AccountState>[],
  minor: bigint,
  books: Books,
): Decision {
  const [primary] = records;
  if (primary === undefined) throw new Error('an operation without a transaction');
  const idByAccount = new Map(records.map((record) => [record.account_id, record.transaction_id]));
  const postedAt = postingTime(legs, books);
  const given = primary.effective_date;
  // The day of the posting time is not before that of what is reversed or repaid, whatever the clock shows since.
  const today = currentDay({ now: postedAt, closed: books.closed });
  const day = given === null || given <= (books.closed ?? '') ? today : given;
  const entryDay = toStoredDay(day, postedAt);
  const entries = legs.map((leg) => {
    const transactionId = idByAccount.get(leg.account.account_id) ?? primary.transaction_id;
    return postEntry(leg, minor, primary, transactionId, postedAt, entryDay, books);
  });
  for (const record of records) {
    record.effective_date = toStoredDay(day, record.created_at);
    books.transactions.set(idKey(record.transaction_id), record);
    if (record.reverses_transaction_id !== null)
      books.reversals.set(record.reverses_transaction_id, record.transaction_id);
  }
  takeCash(primary, legs, minor, books);
  const available = availableOn(records, books);
  return { reply: replyFromRecord(name, primary), transactions: records, entries, available };
}

/**
 * Returns the posting time of an operation: now, but not before the last posting of any of its accounts. The clock may
 * have been set back since.
 */
function postingTime(legs: Leg<AccountState>[], { now }: Books): string {
  return legs.reduce(
    (latest, { account: { last_posted_at: last } }) => (last !== null && last > latest ? last : latest),
    now,
  );
}

/**
 * Applies one entry to the balance and sequence of its account. Throws if the balance is out of bounds, which
 * means that a check is missing.
 */
function postEntry(
  { account, direction }: Leg<AccountState>,
  minor: bigint,
  primary: TransactionRecord,
  transactionId: string,
  postedAt: string,
  effective_date: string | null,
  books: Books,
): PostedEntry {
  books.moved.add(account);
  account.balance_minor += direction === 'credit' ? minor : -minor;
  account.last_sequence += 1n;
  account.last_posted_at = postedAt;
  if (
    !isSystem(account.account_type) &&
    (account.balance_minor < account.held_minor || account.balance_minor > maxMinor)
  ) {
    throw new Error(`balance of ${account.account_id} out of bounds: a check is missing`);
  }
  return {
    account_id: account.account_id,
    account_type: account.account_type,
    sequence: account.last_sequence,
    operation_id: primary.operation_id,
    transaction_id: transactionId,
    direction,
    side: balanceSide(account.account_type, direction),
    amount_minor: minor,
    currency: account.currency,
    balance_after_minor: account.balance_minor,
    created_at: postedAt,
    effective_date,
  };
}
