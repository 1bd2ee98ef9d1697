import { commandKey, idKey } from '#libs/contracts/ids.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { uniqueViolation } from '#libs/postgres/errors.ts';
import { writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { Defect } from '#libs/service/poison.ts';
import { auditOf } from '../audit/audit.ts';
import { insertAudits } from '../audit/audit-sender.ts';
import { type SystemKind, systemAccountNumber } from '../domain/chart.ts';
import type { Books, Command, Decision } from '../domain/decision.ts';
import { decide, recordId } from '../domain/posting.ts';
import type { AccountState, TransactionRecord } from '../domain/records.ts';
import { readReversals, readTransactions } from '../rows.ts';
import { balanceEvent, eventsOf } from './events.ts';
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
 * The batch: what waits is decided and written in one transaction, so that a posting costs per batch. In order:
 * lock the touched accounts (customers by id, then this writer's slots by id: no two writers can wait for each other);
 * read, in a statement that begins after the locks were got, which commands are known; decide; write the postings by one
 * statement and, while the database executes it, make the events, which another one writes.
 *
 * Exactly once: two writers of the same command either lock the same account, and the later one then sees the record of
 * the earlier, or collide on a unique index, and the batch is repeated, and then sees it.
 */
const maxCollisions = 10;

/** What a batch has led to, durably. */
export interface Outcome {
  /** One per command, in their order. */
  replies: ReplyBody[];
  times: BatchTimes;
}

/** When a batch had come how far (performance.now), of the attempt that was committed. */
export interface BatchTimes {
  begun: number;
  /** Its accounts are locked, and what there is to know is read: until here it waited for other writers. */
  read: number;
  decided: number;
  committed: number;
}

/** Decides and commits a batch: its outcome is durable when this resolves. */
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

/** What the pure decision throws, whatever it is, is a defect of ours that this command met. */
function decideOne(command: Command, books: Books): Decision {
  try {
    return decide(command, books);
  } catch (cause) {
    throw new Defect(`${command.name} could not be decided`, { cause });
  }
}

async function openBooks(client: Queries, commands: Command[], slot: number): Promise<Books> {
  const reversed = commands.flatMap((c) => (c.name === 'reverse_transaction' ? [c.data.reverses_transaction_id] : []));
  const originals = reversed.length === 0 ? [] : await readTransactions(client, reversed);
  const records = commands.flatMap((c) => (c.name === 'open_ledger_account' || c.name === 'change_ledger_account_status' ? [] : [recordId(c)]));
  const steps = commands.flatMap((c) => (c.name === 'create_transaction' || c.name === 'create_transfer' ? [] : [commandKey(c.context.message_id)]));
  const numbers = commands.flatMap((c) => (c.name === 'open_ledger_account' ? [c.data.account_number] : []));
  // Sent together, executed one after the other: each of those behind the locks begins after they were got, and so sees
  // what their former holders committed.
  const [customers, slots, { now, known }, reversals, outcomes, takenNumbers] = await Promise.all([
    lockAccounts(client, touchedAccounts(commands, originals)),
    lockSlots(client, commands, originals, slot),
    look(client, records),
    reversed.length === 0 ? new Map<string, string>() : readReversals(client, reversed),
    steps.length === 0 ? new Map<string, { fingerprint: string | null; outcome: ReplyBody }>() : readOutcomes(client, steps),
    numbers.length === 0 ? new Set<string>() : readTakenNumbers(client, numbers),
  ]);
  const repeated = known.length === 0 ? [] : await readTransactions(client, known);
  const accounts = new Map(customers.map((account) => [account.account_id, account]));
  const missing = [...cashCurrencies(commands, originals, accounts)].filter((currency) => !slots.has(systemAccountNumber('Vault', currency, slot)));
  if (missing.length > 0) {
    await createSystemAccounts(client, missing, slot);
    for (const [number, account] of await lockSystemAccounts(client, [], missing, slot)) slots.set(number, account);
  }
  const transactions = new Map<string, TransactionRecord>([...originals, ...repeated].map((record) => [idKey(record.transaction_id), record]));
  const system = (kind: SystemKind, currency: string): AccountState => {
    const account = slots.get(systemAccountNumber(kind, currency, slot));
    if (account === undefined) throw new Error(`the slot of ${kind} ${currency} is not locked`);
    return account;
  };
  return { accounts, moved: new Set(), takenNumbers, system, transactions, reversals, outcomes, now };
}

/** A transaction that is decided and reversed in one batch brings its accounts itself. */
function touchedAccounts(commands: Command[], originals: TransactionRecord[]): string[] {
  const ids = new Set<string>();
  for (const { name, data } of commands) {
    if (name === 'create_transfer') ids.add(data.from_account_id).add(data.to_account_id);
    else if (name !== 'reverse_transaction') ids.add(data.account_id);
  }
  for (const original of originals) {
    ids.add(original.account_id);
    if (original.counterparty_account_id !== null) ids.add(original.counterparty_account_id);
  }
  return [...ids];
}

/** The currencies in which cash may move in this batch. */
function cashCurrencies(commands: Command[], originals: TransactionRecord[], accounts: Map<string, AccountState>): Set<string> {
  const currencies = new Set<string>();
  for (const { name, data } of commands) {
    if (name === 'create_transaction') {
      const account = accounts.get(data.account_id);
      if (account) currencies.add(account.currency);
    } else if (name === 'open_ledger_account') currencies.add(data.currency);
  }
  for (const { currency } of originals) if (currency !== null) currencies.add(currency);
  return currencies;
}

/** This writer's slots for those currencies, as far as they exist; the accounts' own currencies are looked up behind their locks. */
async function lockSlots(client: Queries, commands: Command[], originals: TransactionRecord[], slot: number): Promise<Map<string, AccountState>> {
  const depositors = commands.flatMap(({ name, data }) => (name === 'create_transaction' ? [data.account_id] : []));
  const currencies = [...cashCurrencies(commands, originals, new Map())];
  return depositors.length + currencies.length === 0 ? new Map() : lockSystemAccounts(client, depositors, currencies, slot);
}

async function write(client: Queries, commands: Command[], decisions: Decision[], books: Books): Promise<void> {
  const opened = decisions.flatMap((d) => d.opened ?? []);
  const restated = [...new Set(decisions.flatMap((d) => d.restated ?? []))];
  const kept = decisions.flatMap((d, i) => (d.keep && commands[i] ? [keptOutcome(commands[i], d.keep)] : []));
  const transactions = decisions.flatMap((d) => d.transactions);
  const entries = decisions.flatMap((d) => d.entries);
  const moved = [...books.moved];
  const audits = decisions.flatMap((d, i) => (commands[i] && auditOf(commands[i], d, books.now)) ?? []);
  // The database works at these while the events are made.
  const written = Promise.all([
    opened.length > 0 && insertAccounts(client, opened, books.now),
    restated.length > 0 && updateStatuses(client, restated),
    kept.length > 0 && insertOutcomes(client, kept),
    transactions.length > 0 && writeBatch(client, transactions, entries, moved),
    audits.length > 0 && insertAudits(client, audits),
  ]);
  const published = Promise.try(() => {
    const shown = new Set([...opened, ...restated, ...moved.filter((account) => account.client_id !== null)]);
    const events = [...decisions.flatMap((d, i) => eventsOf(d, books.now, commands[i]?.context.traceparent)), ...[...shown].map((account) => balanceEvent(account, books.now))];
    return writeOutbox(client, events);
  });
  await Promise.all([written, published]);
}

function keptOutcome({ name, context }: Command, outcome: ReplyBody): KeptOutcome {
  return { command_id: commandKey(context.message_id), name, fingerprint: context.fingerprint ?? null, outcome };
}
