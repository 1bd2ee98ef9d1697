import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { approvalKey, commandKey } from '#libs/contracts/ids.ts';
import { uniqueViolation } from '#libs/postgres/errors.ts';
import { type WrittenBatch, writeOutbox } from '#libs/postgres/outbox/outbox.ts';
import type { Relay } from '#libs/postgres/outbox/relay.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import {
  rehearse,
  requireReplication,
  type Sent,
  sentTogether,
  transactionInTwoTrips,
} from '#libs/postgres/transaction.ts';
import { Defect } from '#libs/service/poison.ts';
import { auditCommand } from '../audit/audit.ts';
import { insertAudits } from '../audit/audit-sender.ts';
import type { Books, Command, Decision, FinishedBatch } from '../domain/decision.ts';
import { decide } from '../domain/posting.ts';
import { itemsOfBatch, uuids } from '../rows.ts';
import { openBooks } from './books.ts';
import { balanceEvent, batchEvent, buildEvents, type DoneBatch, holdEvent } from './events.ts';
import { expiredAtOnce, writeHeldAmounts, writeHolds } from './hold-store.ts';
import { writeLimits } from './limit-store.ts';
import { writePosted } from './posted-store.ts';
import {
  insertAccounts,
  insertBatches,
  insertClosedDays,
  insertDatedEntries,
  insertOutcomes,
  type KeptOutcome,
  lockClosing,
  updateStatuses,
  writeBatch,
} from './store.ts';
import { writeTills } from './till-store.ts';

/** How often a batch is repeated after a violation of one of these indexes. */
const maxCollisions = 10;
/**
 * The unique indexes that two writers of the same command, or two commands with the same id, can violate. A violation of
 * any other index is never the fault of a command.
 */
export const uniqueIndexes: readonly string[] = [
  'transactions_id_key',
  'transactions_reversed_once',
  'commands_pkey',
  'batches_pkey',
  'accounts_pkey',
  'accounts_account_number_key',
  'holds_pkey',
  'tills_pkey',
  'tills_open',
];

/** The committed result of a batch. */
export interface Outcome {
  /** One reply per command, in order. */
  replies: ReplyBody[];
  times: BatchTimes;
  /** The events, for the relay of this process. */
  written?: WrittenBatch | undefined;
}

/** The times (performance.now) at which the committed attempt reached each phase. */
export interface BatchTimes {
  begun: number;
  /** The accounts are locked and everything is read. Waiting for other writers happens before this time. */
  read: number;
  decided: number;
  committed: number;
}

/**
 * Decides and writes all waiting commands in one transaction, so that they share its cost:
 * 1. Lock the affected accounts: customers by id, then this writer's slots by id, so that writers
 *   cannot deadlock.
 * 2. Read which commands are already recorded, in a statement that starts after the locks were
 *   acquired.
 * 3. Record the expired holds of these accounts and of the accounts `ids`, and decide the commands. If very many
 *    holds have expired, some of them are recorded alone, and the batch is repeated.
 * 4. Write the postings with one statement. While the database executes it, build the events, and
 *   write them with another.
 *
 * Exactly once: two writers of the same command either lock the same account, and the later one
 * then sees the record of the earlier one, or violate a unique index. In that case the batch is
 * repeated and sees the record.
 *
 * The outcome is durable when this resolves. Throws if the transaction fails; nothing was then
 * committed. Only if the response to COMMIT was lost, the commands may have been executed, and a
 * repeat returns their outcome.
 */
export async function runBatch(
  pool: Pool,
  commands: Command[],
  slot: number,
  ids: string[] = [],
  relay?: Pick<Relay, 'known'>,
): Promise<Outcome> {
  for (let collisions = 0; ; ) {
    try {
      const outcome = await transactionInTwoTrips(pool, async (client) => {
        if (commands.some(({ name }) => name === 'close_day')) await lockClosing(client);
        return runOnce(client, commands, slot, ids, relay);
      });
      if (outcome === 'again') continue;
      outcome.times.committed = performance.now();
      return outcome;
    } catch (error) {
      if (!uniqueIndexes.includes(uniqueViolation(error) ?? '') || collisions >= maxCollisions) throw error;
      collisions++;
    }
  }
}

/**
 * Decides and writes batches as runBatch does, one after the other, and rolls back. Throws if they could not be committed.
 * It closes days without the lock, which no posting needs to wait for, because nothing is closed.
 */
export function rehearseBatches(pool: Pool, batches: Command[][], slot: number): Promise<void> {
  return rehearse(pool, async (client) => {
    for (const commands of batches) await sentTogether((await runOnce(client, commands, slot, [])).last);
  });
}

/** The result is 'again' if it has only recorded expired holds, because there are too many for one transaction. */
async function runOnce(
  client: Queries,
  commands: Command[],
  slot: number,
  ids: string[],
  relay?: Pick<Relay, 'known'>,
): Promise<Sent<Outcome | 'again'>> {
  const times = { begun: performance.now(), read: 0, decided: 0, committed: 0 };
  const books = await openBooks(client, commands, slot, ids);
  if (books.expired.length >= expiredAtOnce) {
    const { last } = await write(client, [], [], books);
    return { last, result: () => 'again' };
  }
  times.read = performance.now();
  const decisions = commands.map((command) => decideOne(command, books));
  times.decided = performance.now();
  const { last, result } = await write(client, commands, decisions, books, relay);
  const replies = decisions.map((decision) => decision.reply);
  return { last, result: async () => ({ replies, times, written: await result() }) };
}

/** An error thrown by the pure decision is a bug in our code that this command triggers. */
function decideOne(command: Command, books: Books): Decision {
  try {
    return decide(command, books);
  } catch (cause) {
    throw new Defect(`${command.name} could not be decided`, { cause });
  }
}

interface Decided {
  command: Command;
  decision: Decision;
}

/** Pairs every command with its decision. A caller's batch is followed by its items. */
function pairDecisions(commands: readonly Command[], decisions: readonly Decision[]): Decided[] {
  return commands.flatMap((command, i) => {
    const decision = decisions[i] as Decision;
    const own: Decided = { command, decision };
    if (command.name !== 'create_batch' || decision.parts === undefined) return own;
    const items = command.items.map((item) => item.command);
    return [own, ...pairDecisions(items, decision.parts)];
  });
}

/** Resolves when all statements have been sent. The result is the batch of the outbox. */
async function write(
  client: Queries,
  commands: Command[],
  decisions: Decision[],
  books: Books,
  relay?: Pick<Relay, 'known'>,
): Promise<Sent<WrittenBatch | undefined>> {
  const decided = pairDecisions(commands, decisions);
  const all = decided.map(({ decision }) => decision);
  const opened = all.flatMap((d) => d.opened ?? []);
  const statusChanged = [...new Set(all.flatMap((d) => d.statusChanged ?? []))];
  const kept = decided.flatMap(({ command, decision }) => keptOutcome(command, decision) ?? []);
  const batches = all.flatMap((d) => d.batch ?? []);
  const closedDays = all.flatMap((d) => d.closedDay ?? []);
  const transactions = all.flatMap((d) => d.transactions);
  const entries = all.flatMap((d) => d.entries);
  const heldAmountChanged = [...books.heldAmountChanged];
  const ofHolds = [...books.expired, ...all.flatMap((d) => d.hold ?? [])];
  const audits = decided.flatMap(({ command, decision }) => auditCommand(command, decision, books.now) ?? []);
  // The database executes these statements while the events are built.
  const written = Promise.all([
    opened.length > 0 && insertAccounts(client, opened, books.now),
    statusChanged.length > 0 && updateStatuses(client, statusChanged),
    kept.length > 0 && insertOutcomes(client, kept),
    batches.length > 0 && insertBatches(client, batches),
    writeHeldAmounts(client, heldAmountChanged, 'less'),
    transactions.length > 0 && writeBatch(client, transactions, entries),
    insertDatedEntries(client, entries),
    // After what was posted for the day before it was closed.
    closedDays.length > 0 && insertClosedDays(client, closedDays),
    writeHeldAmounts(client, heldAmountChanged, 'more'),
    books.changedHolds.size > 0 && writeHolds(client, [...books.changedHolds]),
    writeLimits(client, [...books.limitsChanged]),
    audits.length > 0 && insertAudits(client, audits),
    writePosted(client, books.posted),
    writeTills(client, books.tills),
    // Only repeats: their records may have been committed without the standby.
    transactions.length + kept.length === 0 && requireReplication(client),
  ]);
  // If the events cannot be built, nobody waits for it.
  written.catch(() => undefined);
  const finished = decided.filter(({ decision }) => decision.finished);
  // Read with what was just written.
  const batchesDone =
    finished.length === 0 ? new Map() : (await sentTogether([written, readBatches(client, finished)]))[1];
  const shown = new Set([
    ...opened,
    ...statusChanged,
    ...books.moved,
    ...ofHolds.flatMap(({ hold }) => books.accounts.get(hold.account_id) ?? []),
  ]);
  const events = [
    ...books.expired.map((change) => holdEvent(change, books.accounts, books.now)),
    ...decided.flatMap(({ command, decision }) => buildEvents(decision, command.context, books.accounts, books.now)),
    ...finished.map(({ command, decision }) =>
      batchEvent(decision.finished as FinishedBatch, batchesDone, command.context, books.now),
    ),
    ...[...shown].filter((account) => account.client_id !== null).map((account) => balanceEvent(account, books.now)),
  ];
  const outbox = writeOutbox(client, events, relay?.known());
  return { last: [written, outbox], result: () => outbox };
}

/** Returns when finished batches were accepted, and what their items came to, by command_id: by one statement for all of them. */
async function readBatches(client: Queries, finished: Decided[]): Promise<Map<string, DoneBatch>> {
  const { rows } = await client.query<DoneBatch & { command_id: string }>(
    `select command_id, created_at, items.items from batches b cross join lateral (${itemsOfBatch}) items where command_id = any($1::uuid[])`,
    [uuids(finished.flatMap(({ decision }) => decision.finished?.command_id ?? []))],
  );
  return new Map(rows.map((row) => [row.command_id.replaceAll('-', ''), row]));
}

/** Returns what is stored in `commands`: the reply to the command, or beside it that it waits for an approval. */
function keptOutcome({ name, context }: Command, { reply, keep, waits }: Decision): KeptOutcome | undefined {
  const { message_id, fingerprint = null } = context;
  if (waits) return { command_id: approvalKey(message_id), name: 'approval_required', fingerprint, outcome: reply };
  return keep && { command_id: commandKey(message_id), name, fingerprint, outcome: keep };
}
