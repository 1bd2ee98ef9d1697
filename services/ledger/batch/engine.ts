import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { unknownRepeat } from '#libs/contracts/errors.ts';
import { commandKey, idKey } from '#libs/contracts/ids.ts';
import { uniqueViolation } from '#libs/postgres/errors.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { Defect } from '#libs/service/poison.ts';
import { auditOf } from '../audit/audit.ts';
import { insertAudits } from '../audit/audit-sender.ts';
import { type SystemKind, systemAccountNumber } from '../domain/chart.ts';
import type { Books, Command, Decision, SingleCommand } from '../domain/decision.ts';
import { decide, recordId } from '../domain/posting.ts';
import type { AccountState, TransactionRecord } from '../domain/records.ts';
import { readReversals, readTransactions } from '../rows.ts';
import { balanceEvent, eventsOf, holdEvent } from './events.ts';
import { accountsOfHolds, openHolds, writeHeld } from './hold-books.ts';
import {
  createSystemAccounts,
  insertAccounts,
  insertOutcomes,
  type KeptOutcome,
  lockAccounts,
  lockSystemAccounts,
  look,
  readOutcomes,
  readTakenNumbers,
  updateStatuses,
  writeBatch,
} from './store.ts';

/**
 * Decides and writes all waiting commands in one transaction, so that its cost is shared by the batch:
 * 1. Lock the affected accounts: customers by id, then this writer's slots by id, so that writers cannot
 *    deadlock.
 * 2. Read which commands are already recorded, in a statement that starts after the locks were acquired.
 * 3. Expire holds and decide the commands.
 * 4. Write the postings with one statement. While the database executes it, build the events, and write them
 *    with another.
 *
 * Exactly once: two writers of the same command either lock the same account, so that the later one sees the
 * record of the earlier one, or violate a unique index, in which case the batch is repeated and then sees it.
 */
const maxCollisions = 10;

/** The committed result of a batch. */
export interface Outcome {
  /** One reply per command, in order. */
  replies: ReplyBody[];
  times: BatchTimes;
}

/** The times (performance.now) at which the committed attempt reached each phase. */
export interface BatchTimes {
  begun: number;
  /** The accounts are locked and everything is read. Up to here the batch waited for other writers. */
  read: number;
  decided: number;
  committed: number;
}

/**
 * Decides and commits a batch. Its outcome is durable when this resolves. Throws, with nothing done, if the
 * transaction fails; after a lost COMMIT the commands may have been executed, and a repeat returns their
 * outcome.
 */
export async function runBatch(pool: Pool, commands: Command[], slot: number): Promise<Outcome> {
  for (let collisions = 0; ; collisions++) {
    try {
      const outcome = await transaction(pool, (client) => runOnce(client, commands, slot));
      outcome.times.committed = performance.now();
      return outcome;
    } catch (error) {
      if (uniqueViolation(error) === undefined || collisions >= maxCollisions) throw error;
    }
  }
}

async function runOnce(client: Queries, commands: Command[], slot: number): Promise<Outcome> {
  const times = { begun: performance.now(), read: 0, decided: 0, committed: 0 };
  const books = await openBooks(client, commands, slot);
  times.read = performance.now();
  const decisions = commands.map((command) => decideOne(command, books));
  times.decided = performance.now();
  await write(client, commands, decisions, books);
  return { replies: decisions.map((decision) => decision.reply), times };
}

/** Any error thrown by the pure decision is a bug of ours that this command triggers. */
function decideOne(command: Command, books: Books): Decision {
  try {
    return isUnknownRepeat(command, books)
      ? { reply: { ok: false, refusal: unknownRepeat }, transactions: [], entries: [] }
      : decide(command, books);
  } catch (cause) {
    throw new Defect(`${command.name} could not be decided`, { cause });
  }
}

/**
 * Reports whether a repeat-only command has nothing to repeat. Commands whose records are not read here are
 * executed, which is idempotent under their id.
 */
function isUnknownRepeat(command: Command, { transactions, outcomes }: Books): boolean {
  const { name, context } = command;
  if (context.repeat_only === undefined || outcomes.has(commandKey(context.message_id))) return false;
  if (name === 'create_batch' || name === 'place_hold' || name === 'capture_hold' || name === 'release_hold')
    return true;
  const isPosting = name === 'create_transaction' || name === 'create_transfer' || name === 'reverse_transaction';
  return isPosting && !transactions.has(idKey(recordId(command)));
}

async function openBooks(client: Queries, commands: Command[], slot: number): Promise<Books> {
  const singles = commands.flatMap(singlesOf);
  const holdAccounts = await accountsOfHolds(client, singles);
  const reversed = singles.flatMap((c) => (c.name === 'reverse_transaction' ? [c.data.reverses_transaction_id] : []));
  const originals = reversed.length === 0 ? [] : await readTransactions(client, reversed);
  const records = singles.flatMap((c) =>
    c.name === 'create_transaction' || c.name === 'create_transfer' || c.name === 'reverse_transaction'
      ? [recordId(c)]
      : [],
  );
  const steps = commands.flatMap((c) =>
    c.name === 'create_transaction' || c.name === 'create_transfer' ? [] : [commandKey(c.context.message_id)],
  );
  const numbers = singles.flatMap((c) => (c.name === 'open_ledger_account' ? [c.data.account_number] : []));
  // These statements are sent together and executed one after the other. Each statement after the locks starts
  // when they are held and therefore sees what their previous holders committed.
  const [customers, slots, { now, known }, reversals, outcomes, takenNumbers] = await Promise.all([
    lockAccounts(client, touchedAccounts(singles, originals, holdAccounts)),
    lockSlots(
      client,
      cashAccounts(singles, holdAccounts),
      [...cashCurrencies(singles, originals, [], new Map())],
      slot,
    ),
    look(client, records),
    reversed.length === 0 ? new Map<string, string>() : readReversals(client, reversed),
    steps.length === 0
      ? new Map<string, { fingerprint: string | null; outcome: ReplyBody }>()
      : readOutcomes(client, steps),
    numbers.length === 0 ? new Set<string>() : readTakenNumbers(client, numbers),
  ]);
  const repeated = known.length === 0 ? [] : await readTransactions(client, known);
  const accounts = new Map(customers.map((account) => [account.account_id, account]));
  const missing = [...cashCurrencies(singles, originals, cashAccounts(singles, holdAccounts), accounts)].filter(
    (currency) => !slots.has(systemAccountNumber('Vault', currency, slot)),
  );
  if (missing.length > 0) {
    await createSystemAccounts(client, missing, slot);
    for (const [number, account] of await lockSystemAccounts(client, [], missing, slot)) slots.set(number, account);
  }
  const transactions = new Map<string, TransactionRecord>(
    [...originals, ...repeated].map((record) => [idKey(record.transaction_id), record]),
  );
  const system = (kind: SystemKind, currency: string): AccountState => {
    const account = slots.get(systemAccountNumber(kind, currency, slot));
    if (account === undefined) throw new Error(`the slot of ${kind} ${currency} is not locked`);
    return account;
  };
  const books: Books = {
    accounts,
    moved: new Set(),
    takenNumbers,
    system,
    transactions,
    reversals,
    outcomes,
    holds: new Map(),
    changedHolds: new Set(),
    reheld: new Set(),
    expired: [],
    now,
  };
  await openHolds(client, books, [...holdAccounts.keys()]);
  return books;
}

/** Returns the items of a caller's batch, or the command itself. */
function singlesOf(command: Command): SingleCommand | SingleCommand[] {
  return command.name === 'create_batch' ? command.items.map((item) => item.command) : command;
}

/**
 * Returns the ids of all accounts that the batch may post to. A reversal of a transaction that is decided in
 * the same batch needs no further accounts.
 */
function touchedAccounts(
  commands: SingleCommand[],
  originals: TransactionRecord[],
  holdAccounts: Map<string, string>,
): string[] {
  const ids = new Set<string>(holdAccounts.values());
  for (const { name, data } of commands) {
    if (name === 'create_transfer') ids.add(data.from_account_id).add(data.to_account_id);
    else if (name === 'capture_hold') data.to_account_id !== null && ids.add(data.to_account_id);
    else if (name !== 'reverse_transaction' && name !== 'release_hold') ids.add(data.account_id);
  }
  for (const original of originals) {
    ids.add(original.account_id);
    if (original.counterparty_account_id !== null) ids.add(original.counterparty_account_id);
  }
  return [...ids];
}

/** Returns the currencies in which the batch may move cash. */
function cashCurrencies(
  commands: SingleCommand[],
  originals: TransactionRecord[],
  cashAccounts: string[],
  accounts: Map<string, AccountState>,
): Set<string> {
  const currencies = new Set<string>(cashAccounts.flatMap((id) => accounts.get(id)?.currency ?? []));
  for (const { name, data } of commands) if (name === 'open_ledger_account') currencies.add(data.currency);
  for (const { currency } of originals) if (currency !== null) currencies.add(currency);
  return currencies;
}

/** Returns the accounts on which the batch may move cash. */
function cashAccounts(commands: SingleCommand[], holdAccounts: Map<string, string>): string[] {
  return commands.flatMap(({ name, data }) => {
    if (name === 'create_transaction') return [data.account_id];
    return name === 'capture_hold' && data.to_account_id === null ? (holdAccounts.get(data.hold_id) ?? []) : [];
  });
}

/**
 * Locks this writer's existing slots for these currencies and for those of the cash accounts, which the
 * statement looks up.
 */
async function lockSlots(
  client: Queries,
  cashAccounts: string[],
  currencies: string[],
  slot: number,
): Promise<Map<string, AccountState>> {
  return cashAccounts.length + currencies.length === 0
    ? new Map()
    : lockSystemAccounts(client, cashAccounts, currencies, slot);
}

interface Decided {
  command: Command;
  decision: Decision;
}

/** Pairs every command with its decision. A caller's batch is followed by its items. */
function decidedOf(commands: readonly Command[], decisions: readonly Decision[]): Decided[] {
  return commands.flatMap((command, i) => {
    const own = { command, decision: decisions[i] as Decision };
    const { parts } = own.decision;
    return command.name === 'create_batch' && parts
      ? [
          own,
          ...decidedOf(
            command.items.map((item) => item.command),
            parts,
          ),
        ]
      : own;
  });
}

async function write(client: Queries, commands: Command[], decisions: Decision[], books: Books): Promise<void> {
  const decided = decidedOf(commands, decisions);
  const all = decided.map(({ decision }) => decision);
  const opened = all.flatMap((d) => d.opened ?? []);
  const restated = [...new Set(all.flatMap((d) => d.restated ?? []))];
  const kept = decided.flatMap(({ command, decision: { keep } }) => (keep ? [keptOutcome(command, keep)] : []));
  const transactions = all.flatMap((d) => d.transactions);
  const entries = all.flatMap((d) => d.entries);
  const moved = [...books.moved.union(books.reheld)];
  const ofHolds = [...books.expired, ...all.flatMap((d) => d.hold ?? [])];
  const audits = decided.flatMap(({ command, decision }) => auditOf(command, decision, books.now) ?? []);
  // The database executes these statements while the events are built.
  const written = Promise.all([
    opened.length > 0 && insertAccounts(client, opened, books.now),
    restated.length > 0 && updateStatuses(client, restated),
    kept.length > 0 && insertOutcomes(client, kept),
    (transactions.length > 0 || books.reheld.size > 0) &&
      writeBatch(client, transactions, entries, moved, books.reheld.size > 0),
    writeHeld(client, books),
    audits.length > 0 && insertAudits(client, audits),
  ]);
  const published = Promise.try(() => {
    const shown = new Set([
      ...opened,
      ...restated,
      ...books.moved,
      ...ofHolds.flatMap(({ hold }) => books.accounts.get(hold.account_id) ?? []),
    ]);
    const events = [
      ...books.expired.map((change) => holdEvent(change, books.accounts, books.now)),
      ...decided.flatMap(({ command, decision }) => eventsOf(decision, command.context, books.accounts, books.now)),
      ...[...shown].filter((account) => account.client_id !== null).map((account) => balanceEvent(account, books.now)),
    ];
    return writeOutbox(client, events);
  });
  await Promise.all([written, published]);
}

function keptOutcome({ name, context }: Command, outcome: ReplyBody): KeptOutcome {
  return { command_id: commandKey(context.message_id), name, fingerprint: context.fingerprint ?? null, outcome };
}
