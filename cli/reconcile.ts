import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { events } from '#libs/contracts/events.ts';
import { canonicalDecimal, fromMinor, toMinor } from '#libs/contracts/money.ts';
import { topicName } from '#libs/contracts/topics.ts';
import { readToEnd } from '#libs/kafka/consume/read-to-end.ts';
import type { ReceivedMessage } from '#libs/kafka/received-message.ts';
import { offsetsAt, topicRanges } from '#libs/kafka/topics.ts';
import { CsvError, csvRecords, decodeText } from '#libs/service/csv.ts';
// Not its index, which loads kafkajs as published: libs/kafka needs its own.
import { ReconciliationError } from '../clients/consumer/bank-reads.ts';
import {
  type AccountDifference,
  type ClosedDay,
  isSystemAccount,
  type ReconciledStore,
  type Reconciliation,
  reconcile,
  type StoredAccount,
  type StoredEntry,
} from '../clients/consumer/reconcile.ts';
import { bankAccess, day, Failure, jsonOption, openBank, openKafka, print, printJson, say } from './api.ts';

const completed = 'corebanking.transaction.completed.v1';
const closed = 'corebanking.day.closed.v1';
const idleMs = 20_000;
/** A day begins at most 14 hours before it does in UTC, and the clocks of brokers may differ. Nothing is posted for it earlier. */
const earliestMs = 15 * 3_600_000;
const beginOf = (date: string) => new Date(Date.parse(date) - earliestMs);

interface ReconcileOptions {
  date: string;
  file?: string;
  json?: true;
}

/** `bank reconcile`: a closed day against the topic `transactions`, or against a file of another system. */
export function addReconcile(command: Command): void {
  command
    .requiredOption('--date <date>', 'the closed day, such as 2026-01-31', day)
    .option(
      '--file <file>',
      'CSV of another system: account_id, sum (credits minus debits), count of entries, and if known first_sequence and last_sequence; other columns are ignored',
    )
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Without --file, the topic \`transactions\` is read as a consumer reads it, and compared with the closed day. Accounts, and entries
that are missing, doubled, or other than the bank's, are named. The exit code is 1 if anything differs.

Examples:
  bank reconcile --date 2026-01-31
  bank reconcile --date 2026-01-31 --file erp.csv`,
    )
    .action(async ({ date, file, json }: ReconcileOptions) => {
      const result = await run(date, file).catch((error: unknown) => {
        if (!(error instanceof ReconciliationError)) throw error;
        const codes = { refused: 1, not_as_closed: 1, no_answer: 3, invalid_store: 2 } as const;
        throw new Failure(codes[error.code], error.message);
      });
      if (json) printJson(result);
      else for (const line of result.differences.flatMap(differenceLines)) print(line);
      if (result.differing > 0)
        throw new Failure(1, `${date}: ${result.differing} of ${result.accounts} accounts differ`);
      if (!json) print(`${date}: in order, ${result.accounts} accounts`);
    });
}

/** Neither a file nor a topic that was read to its end is behind. */
type Compared = Exclude<Reconciliation, { state: 'behind' }>;

async function run(date: string, file: string | undefined): Promise<Compared> {
  if (file === undefined) return await reconcileTopic(date);
  const accounts = await readFile(file);
  return await compare(await openBank().getDayClosing({ date }), { accounts: () => accounts });
}

async function compare(day: ClosedDay, store: ReconciledStore): Promise<Compared> {
  const result = await reconcile(day, store, bankAccess());
  if (result.state === 'behind') throw new Error('no positions were given');
  return result;
}

type Entry = StoredEntry & { account_id: string; currency: string; sequence: number };

/** Reads the topics twice if something differs, so that only the entries of those accounts are in memory. */
async function reconcileTopic(date: string): Promise<Compared> {
  const topics = await openTopics();
  let day: ClosedDay | undefined;
  await topics.read('days', undefined, ({ headers, value }) => {
    if (headers['ce_type'] !== closed) return;
    const event = events[closed].data.parse(JSON.parse(String(value)));
    if (event.date === date) day = event;
  });
  if (day === undefined) throw new Failure(1, `the topic days has no closing of ${date}`);
  const sums = new Map<string, { minor: bigint; currency: string; count: number; first: number; last: number }>();
  await eachEntry(topics, date, (entry) => {
    if (entry.effective_date !== date) return;
    const { account_id, currency, sequence, direction } = entry;
    const of = sums.get(account_id) ?? { minor: 0n, currency, count: 0, first: sequence, last: sequence };
    sums.set(account_id, of);
    const minor = toMinor(canonicalDecimal(entry.amount) ?? '', currency) as bigint;
    of.minor += direction === 'credit' ? minor : -minor;
    of.count += 1;
    of.first = Math.min(of.first, sequence);
    of.last = Math.max(of.last, sequence);
  });
  const accounts = [...sums]
    .map(([account_id, { minor, currency, count, first, last }]) => {
      const sum = fromMinor(minor, currency);
      return { account_id, sum, count, first_sequence: first, last_sequence: last };
    })
    .sort(byAccount);
  const store = { accounts: () => accounts, withSystemAccounts: true };
  const result = await compare(day, store);
  if (result.state !== 'different') return result;
  const { last_sequences } = day;
  const late = (await topics.startingAfter('transactions', beginOf(date))).filter(
    (it) => Number(last_sequences?.[it]) >= 0,
  );
  if (late.length > 0)
    throw new Failure(
      1,
      `${date}: ${result.differing} of ${result.accounts} accounts differ, and the topic transactions may no longer have all of that day: it begins later in partitions ${late.join(', ')}, because older events are deleted (EVENTS_RETENTION_DAYS). Compare your own store, with --file`,
    );
  say('reading the entries of the accounts that differ …');
  // Nobody asks for the entries of Teller and Vault, which are most of them.
  const explained = result.differences.filter(({ account_number }) => !isSystemAccount(account_number ?? ''));
  const kept = new Map(
    explained.map(({ account_id, bank }) => [account_id, { ...orNone(bank), entries: [] as Entry[] }]),
  );
  await eachEntry(topics, date, (entry) => {
    const of = kept.get(entry.account_id);
    const { effective_date, sequence } = entry;
    if (of && (effective_date === date || (sequence >= of.from && sequence <= of.to))) of.entries.push(entry);
  });
  const entries = ({ account_id }: { account_id: string }) =>
    (kept.get(account_id)?.entries ?? []).sort((a, b) => a.sequence - b.sequence);
  return await compare(day, { ...store, entries });
}

/** The sequences that the bank has of the day. */
const orNone = (bank: AccountDifference['bank']) => ({ from: bank?.first_sequence ?? 1, to: bank?.last_sequence ?? 0 });

const byAccount = (a: StoredAccount, b: StoredAccount): number => (a.account_id < b.account_id ? -1 : 1);

interface Topics {
  read(topic: 'days' | 'transactions', from: Date | undefined, take: (message: ReceivedMessage) => void): Promise<void>;
  /** Returns the partitions of which messages were deleted, and none from before that time remains. */
  startingAfter(topic: 'transactions', time: Date): Promise<number[]>;
}

async function openTopics(): Promise<Topics> {
  const opened = await openKafka();
  if (opened === undefined)
    throw new Failure(
      2,
      'KAFKA_BROKERS is not set: with BANK_URL, events are read from the brokers that it names (and TOPIC_PREFIX)',
    );
  const { kafka, prefix, logger } = opened;
  return {
    async read(topic, from, take) {
      const topics = [topicName(prefix, topic)];
      const all = async (messages: ReceivedMessage[]) => messages.forEach(take);
      await readToEnd(kafka, { topics, take: all, idleMs, logger, ...(from ? { from } : {}) }).catch((error: Error) => {
        throw new Failure(3, `the topic ${topic} cannot be read: ${error.message}`);
      });
    },
    async startingAfter(topic, time) {
      const name = topicName(prefix, topic);
      const [ranges, starts] = await Promise.all([topicRanges(kafka, name), offsetsAt(kafka, name, time)]);
      const offsets = new Map(starts.map(({ partition, offset }) => [partition, offset]));
      return ranges
        .filter(({ partition, low }) => low > 0n && offsets.get(partition) === low)
        .map(({ partition }) => partition);
    },
  };
}

/**
 * Passes each entry published since the day began, once: the account's own of each event, and those of Teller and Vault,
 * which have no events, of the event of the cash operation.
 */
async function eachEntry(topics: Topics, date: string, take: (entry: Entry) => void): Promise<void> {
  const last = new Map<string, number>();
  await topics.read('transactions', beginOf(date), ({ headers, value }) => {
    if (headers['ce_type'] !== completed) return;
    const { transaction, sequence, entries } = events[completed].data.parse(JSON.parse(String(value)));
    const { account_id, transfer_id } = transaction;
    if (sequence <= (last.get(account_id) ?? 0)) return;
    last.set(account_id, sequence);
    for (const entry of entries)
      if (transfer_id === undefined || entry.account_id === account_id)
        take({ ...entry, effective_date: entry.effective_date ?? '' });
  });
}

const needed = ['account_id', 'sum', 'count'] as const;

/** Reads the lines of another system into memory, in the order of account_id. Throws a Failure that names the line. */
async function readFile(path: string): Promise<StoredAccount[]> {
  const accounts: StoredAccount[] = [];
  let columns: string[] | undefined;
  try {
    for await (const { line, fields, fault } of csvRecords(decodeText(createReadStream(path)))) {
      if (fault !== undefined) throw new CsvError(line, fault);
      if (columns === undefined) {
        columns = fields;
        const missing = needed.filter((name) => !fields.includes(name));
        if (missing.length > 0) throw new CsvError(line, `column ${missing.join(', ')} is missing`);
      } else accounts.push(toAccount(line, columns, fields));
    }
  } catch (error) {
    if (error instanceof CsvError || (error instanceof Error && 'syscall' in error))
      throw new Failure(2, `${path}: ${error.message}`);
    throw error;
  }
  if (columns === undefined) throw new Failure(2, `${path}: is empty; its first line must name the columns`);
  accounts.sort(byAccount);
  const repeated = accounts.find(({ account_id }, at) => account_id === accounts[at + 1]?.account_id);
  if (repeated) throw new Failure(2, `${path}: ${repeated.account_id} is repeated: sum up its entries in one line`);
  return accounts;
}

function toAccount(line: number, columns: string[], fields: string[]): StoredAccount {
  const value = (name: string) => fields[columns.indexOf(name)] ?? '';
  const [account_id, sum] = [value('account_id'), value('sum')];
  if (!/^acc_[0-9a-f]{32}$/.test(account_id))
    throw new CsvError(line, 'account_id must be acc_ and 32 hexadecimal digits');
  if (canonicalDecimal(sum) === undefined) throw new CsvError(line, 'sum must be a decimal such as -12.50');
  const whole = (name: string) => {
    if (/^\d{1,15}$/.test(value(name))) return Number(value(name));
    throw new CsvError(line, `${name} must be a whole number`);
  };
  const optional = (name: 'first_sequence' | 'last_sequence') => (value(name) === '' ? {} : { [name]: whole(name) });
  return { account_id, sum, count: whole('count'), ...optional('first_sequence'), ...optional('last_sequence') };
}

function differenceLines({ account_id, account_number, bank, store, entries }: AccountDifference): string[] {
  const side = (of: AccountDifference['bank']) => (of ? `sum ${of.sum}, entries ${of.count}` : 'nothing');
  return [
    `${account_id}  ${account_number ?? ''}  bank: ${side(bank)}; here: ${side(store)}`,
    ...entries.map(({ sequence, kind, ...sides }) => {
      const shown = (['bank', 'store'] as const).flatMap((of) => {
        const entry = sides[of];
        return entry ? `${of === 'bank' ? 'bank' : 'here'} ${entry.amount} on ${entry.effective_date}` : [];
      });
      return `  ${sequence}  ${kind.replace('_', ' ')}: ${shown.join('; ')}`;
    }),
  ];
}
