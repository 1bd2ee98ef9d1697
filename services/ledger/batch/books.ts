import { approvalKey, commandKey, idKey, openingTransactionId } from '#libs/contracts/ids.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { sentTogether } from '#libs/postgres/transaction.ts';
import { requireSameTime } from '#libs/service/clock.ts';
import { dayAt, dayLimit } from '../domain/calendar.ts';
import { type SystemKind, systemAccountNumber } from '../domain/chart.ts';
import type { Books, Command, SingleCommand } from '../domain/decision.ts';
import { expireHolds } from '../domain/holds.ts';
import { recordId } from '../domain/posting.ts';
import type { AccountState, TransactionRecord } from '../domain/records.ts';
import { readDeadLettered, readOutcomes, readReversals, readTransactions } from '../rows.ts';
import { expiredAtOnce, readDueHolds, readHoldAccounts, readHolds, readNextExpiries } from './hold-store.ts';
import { readOut } from './limit-store.ts';
import { lockPosted } from './posted-store.ts';
import {
  createSystemAccounts,
  lockAccounts,
  lockSystemAccounts,
  readClockAndKnownIds,
  readTakenNumbers,
} from './store.ts';
import { lockTills } from './till-store.ts';

/** The accounts, holds, and transactions that the commands of a batch name, collected before anything is locked. */
interface Named {
  singles: SingleCommand[];
  /** Maps each hold to its account. */
  holdAccounts: Map<string, string>;
  /** The transactions that reversals name. */
  originals: TransactionRecord[];
  /** The payouts of Loans that are paid with a value date, which is not before theirs. */
  payouts: TransactionRecord[];
}

/**
 * Locks the accounts that the commands may post to, and the accounts `ids`, and returns the state that the commands
 * are decided on, in which due holds have expired. Throws if the database's clock may be wrong. Every statement that
 * reads which commands are known starts after the locks are held.
 */
export async function openBooks(client: Queries, commands: Command[], slot: number, ids: string[]): Promise<Books> {
  const named = await readNamed(client, commands);
  const { singles, originals, payouts, holdAccounts } = named;
  const cash = cashAccounts(named);
  const currencies = cashCurrencies(named);
  // These statements are sent together and executed in order. Those after the locking statement start when the
  // locks are held, and therefore see what the previous holders of the locks committed.
  const [customers, slots, posted, tills, { now, known, closed }, reversals, deadLettered, outcomes, takenNumbers] =
    await sentTogether([
      lockAccounts(client, [...touchedAccounts(named), ...ids]),
      lockSystemAccounts(client, cash, currencies, slot),
      lockPosted(client, commands),
      lockTills(client, singles),
      readClockAndKnownIds(client, singles.filter(isPosting).map(recordId)),
      readReversals(client, reversedBy(singles)),
      readDeadLettered(client, unknownOriginals(named)),
      readOutcomes(client, commands.flatMap(outcomeKeys)),
      readTakenNumbers(
        client,
        singles.flatMap((c) => (c.name === 'open_ledger_account' ? [c.data.account_number] : [])),
      ),
    ]);
  requireSameTime(now);
  const repeated = await readTransactions(client, known);
  const accounts = new Map(customers.map((account) => [account.account_id, account]));
  const moved = new Set([...currencies, ...cash.flatMap((id) => accounts.get(id)?.currency ?? [])]);
  await addMissingSlots(client, slots, moved, slot);
  const books: Books = {
    accounts,
    moved: new Set(),
    takenNumbers,
    system: (kind, currency) => getSystemAccount(slots, kind, currency, slot),
    transactions: new Map(
      [...originals, ...payouts, ...repeated].map((record) => [idKey(record.transaction_id), record]),
    ),
    reversals,
    deadLettered,
    outcomes,
    posted,
    holds: new Map(),
    changedHolds: new Set(),
    heldAmountChanged: new Set(),
    limitsChanged: new Set(),
    tills,
    expired: [],
    closed,
    now,
  };
  await openHolds(client, books, [...holdAccounts.keys()]);
  await openCounts(client, books, singles);
  return books;
}

/**
 * Reads these holds, and expires those of locked accounts whose expires_at has passed, before any decision. If there
 * are none, nothing is read. If there are expiredAtOnce or more, so many of them expire, and their accounts remain due.
 */
async function openHolds(client: Queries, books: Books, ids: string[]): Promise<void> {
  const due = [...books.accounts.values()].filter(
    ({ hold_expires_at }) => hold_expires_at !== null && hold_expires_at <= books.now,
  );
  if (due.length + ids.length === 0) return;
  const dueIds = due.map(({ account_id }) => account_id);
  const [named, over, next] = await Promise.all([
    readHolds(client, ids),
    readDueHolds(client, dueIds, books.now),
    readNextExpiries(client, dueIds, books.now),
  ]);
  for (const hold of [...named, ...over]) books.holds.set(hold.hold_id, hold);
  books.expired.push(...expireHolds(due, over, over.length < expiredAtOnce ? next : new Map(), books));
}

/**
 * Begins to count what leaves the accounts that the commands give their first limit per day: from what has left them
 * today. Repeats need no count.
 */
async function openCounts(
  client: Queries,
  { accounts, outcomes, now }: Books,
  commands: SingleCommand[],
): Promise<void> {
  const ids = commands.flatMap(({ name, data, context }) =>
    name === 'set_account_limits' &&
    data.per_day_out !== undefined &&
    accounts.get(data.account_id)?.out_day === null &&
    !outcomes.has(commandKey(context.message_id))
      ? [data.account_id]
      : [],
  );
  if (ids.length === 0) return;
  const today = dayAt(now);
  for (const [id, minor] of await readOut(client, ids, dayLimit(today))) {
    const account = accounts.get(id);
    if (account) Object.assign(account, { out_day: today, out_minor: minor });
  }
}

/** Returns the account of each hold that the commands name, if the hold exists or is placed by one of the commands. */
async function accountsOfHolds(client: Queries, commands: SingleCommand[]): Promise<Map<string, string>> {
  const placed = commands.flatMap(({ name, data }) =>
    name === 'place_hold' ? [[data.hold_id, data.account_id] as const] : [],
  );
  const named = commands.flatMap(({ name, data }) =>
    name === 'capture_hold' || name === 'release_hold' ? [data.hold_id] : [],
  );
  return new Map([...placed, ...(await readHoldAccounts(client, named))]);
}

async function readNamed(client: Queries, commands: Command[]): Promise<Named> {
  const singles = commands.flatMap((command) =>
    command.name === 'create_batch' ? command.items.map((item) => item.command) : command,
  );
  const holdAccounts = await accountsOfHolds(client, singles);
  const originals = await readTransactions(client, reversedBy(singles));
  const payouts = await readTransactions(client, singles.flatMap(datedDestination).map(openingTransactionId));
  return { singles, holdAccounts, originals, payouts };
}

/** Returns the account that a posting with a value date is paid to. */
function datedDestination({ name, data }: SingleCommand): string[] {
  const mayPayLoan = (name === 'create_transfer' || name === 'capture_hold') && data.effective_date != null;
  return mayPayLoan && data.to_account_id !== null ? [data.to_account_id] : [];
}

/** The ids under which outcomes of a command may be stored besides a transaction. */
function outcomeKeys({ name, context: { message_id, four_eyes } }: Command): string[] {
  const isRecorded = name === 'create_transaction' || name === 'create_transfer';
  return [
    ...(isRecorded ? [] : [commandKey(message_id)]),
    ...(four_eyes === undefined ? [] : [approvalKey(message_id)]),
  ];
}

type Posting = Extract<SingleCommand, { name: 'create_transaction' | 'create_transfer' | 'reverse_transaction' }>;

function isPosting(command: Command): command is Posting {
  const { name } = command;
  return name === 'create_transaction' || name === 'create_transfer' || name === 'reverse_transaction';
}

/** Returns the transactions that reversals name and that were not known before the accounts were locked. */
function unknownOriginals({ singles, originals }: Named): string[] {
  const known = new Set(originals.map(({ transaction_id }) => transaction_id));
  return reversedBy(singles).filter((id) => !known.has(id));
}

function reversedBy(commands: SingleCommand[]): string[] {
  return commands.flatMap((c) => (c.name === 'reverse_transaction' ? [c.data.reverses_transaction_id] : []));
}

/**
 * Returns the ids of all accounts that the batch may post to. A reversal of a transaction that is decided in
 * the same batch needs no other accounts.
 */
function touchedAccounts({ singles, originals, holdAccounts }: Named): string[] {
  const ids = new Set<string>(holdAccounts.values());
  for (const { name, data } of singles) {
    if (name === 'create_transfer') ids.add(data.from_account_id).add(data.to_account_id);
    else if (name === 'capture_hold') data.to_account_id !== null && ids.add(data.to_account_id);
    else if ('account_id' in data) ids.add(data.account_id);
  }
  for (const original of originals) {
    ids.add(original.account_id);
    if (original.counterparty_account_id !== null) ids.add(original.counterparty_account_id);
  }
  return [...ids];
}

/** Returns the accounts on which the batch may move cash. Their currencies are known once they are locked. */
function cashAccounts({ singles, holdAccounts }: Named): string[] {
  return singles.flatMap(({ name, data }) => {
    if (name === 'create_transaction') return [data.account_id];
    return name === 'capture_hold' && data.to_account_id === null ? (holdAccounts.get(data.hold_id) ?? []) : [];
  });
}

/** Returns the currencies of openings and reversals, which may move cash. */
function cashCurrencies({ singles, originals }: Named): string[] {
  const opened = singles.flatMap(({ name, data }) => (name === 'open_ledger_account' ? data.currency : []));
  return [...new Set([...opened, ...originals.flatMap(({ currency }) => currency ?? [])])];
}

/** Creates and locks this writer's slots of Teller and Vault in the currencies that it uses for the first time. */
async function addMissingSlots(
  client: Queries,
  slots: Map<string, AccountState>,
  currencies: Set<string>,
  slot: number,
): Promise<void> {
  const missing = [...currencies].filter((currency) => !slots.has(systemAccountNumber('Vault', currency, slot)));
  if (missing.length === 0) return;
  await createSystemAccounts(client, missing, slot);
  for (const [number, account] of await lockSystemAccounts(client, [], missing, slot)) slots.set(number, account);
}

function getSystemAccount(
  slots: Map<string, AccountState>,
  kind: SystemKind,
  currency: string,
  slot: number,
): AccountState {
  const account = slots.get(systemAccountNumber(kind, currency, slot));
  if (account === undefined) throw new Error(`the slot of ${kind} ${currency} is not locked`);
  return account;
}
