import { createHash } from 'node:crypto';
import type { DayLine } from '../../libs/contracts/days.ts';
import { canonicalDecimal } from '../../libs/contracts/money.ts';
import {
  type BankAccess,
  type BankEntry,
  notAsClosed,
  ReconciliationError,
  readClosingHash,
  readEntries,
  readLines,
} from './bank-reads.ts';
import type { BankEvent } from './event.ts';

/** Compares what a consumer has stored with a closed day of the bank. */

type Closing = BankEvent<'corebanking.day.closed.v1'>['data'];

/** The data of `corebanking.day.closed.v1`, or of `GET /admin/day-closings/:date`, which has neither `last_sequences` nor `system_accounts`. */
export type ClosedDay = Pick<Closing, 'date' | 'accounts_sha256' | 'previous_hash' | 'hash'> &
  Partial<Pick<Closing, 'last_sequences' | 'system_accounts'>>;

/** What the store has of an account for a day. A number may be a text, as drivers return it. */
export interface StoredAccount {
  account_id: string;
  /** The credits minus the debits; a decimal. */
  sum: string;
  count: number | bigint | string;
  /** The lowest and the highest sequence; omitted: not compared. */
  first_sequence?: number | bigint | string;
  last_sequence?: number | bigint | string;
}

export interface StoredEntry {
  sequence: number | bigint | string;
  direction: string;
  amount: string;
  effective_date: string;
}

type Rows<T> = AsyncIterable<T> | Iterable<T>;

/** The consumer's own store. */
export interface ReconciledStore {
  /**
   * Returns, by partition of `transactions`, the offset after the last event that is stored: positions() of a consumer.
   * Omitted: the caller knows that everything of the day has been consumed.
   */
  positions?(): Promise<ReadonlyMap<number, bigint>>;
  /** Returns each account with entries of that value date, once, in the order of account_id. Read one at a time. */
  accounts(date: string): Rows<StoredAccount>;
  /**
   * Returns the entries of an account that have that value date, or any and a sequence from `from` to `to`, in the order
   * of their sequences. Called for accounts that differ. Omitted: no sequences are named where both have entries.
   */
  entries?(account: { account_id: string; date: string; from: number; to: number }): Rows<StoredEntry>;
  /** Stores an entry that is missing. Omitted: nothing is fetched. It may be called again with the same entry. */
  put?(entry: BankEntry): Promise<void>;
  /** Returns the hash of the closed day before that date, if it was kept. Otherwise it is read from the bank. */
  previousHash?(date: string): Promise<string | undefined>;
  /**
   * The store has the entries of Teller and Vault, too: one of these accounts without entries differs. No sequences of theirs
   * are named, because the bank lists their entries only in events.
   */
  withSystemAccounts?: boolean;
}

/** A difference in one entry. `extra`: the bank has no entry of that day with this sequence. */
export interface EntryDifference {
  sequence: number;
  kind: 'missing' | 'extra' | 'doubled' | 'wrong_amount' | 'wrong_day';
  /** The amount, negative for a debit, and the value date. */
  bank?: { amount: string; effective_date: string };
  store?: { amount: string; effective_date: string };
  /** The missing entry was passed to put(). */
  fetched?: true;
}

interface DaySide {
  sum: string;
  count: number;
  first_sequence?: number | undefined;
  last_sequence?: number | undefined;
}

export interface AccountDifference {
  account_id: string;
  /** Undefined: the bank has nothing of that account on the day. */
  account_number?: string;
  currency?: string;
  bank?: DaySide;
  /** Undefined: the store has nothing of that account on the day. */
  store?: DaySide;
  /** At most `limit`, in the order of their sequences. */
  entries: EntryDifference[];
}

/** `in_order` means that the sums, counts, and first and last sequences of all accounts are those of the closed day. */
export type Reconciliation =
  | {
      state: 'behind';
      date: string;
      /** Offsets of `transactions`: the next one to be stored, and the last one that can have entries of the day. */
      behind: { partition: number; position: number; last: number }[];
    }
  | {
      state: 'in_order' | 'different';
      date: string;
      /** The number of accounts with entries of the day, and of those that differ. */
      accounts: number;
      differing: number;
      /** At most `limit`. */
      differences: AccountDifference[];
      /** The number of entries that were passed to put(). Reconcile again to see that nothing else differs. */
      fetched: number;
    };

export type ReconcileOptions = BankAccess & {
  /** The most accounts, and entries of each, that are examined and returned. Default 1,000. */
  limit?: number;
};

/**
 * Compares a store with a closed day, account by account, names the entries that differ, and passes missing ones to
 * put(). Nothing is compared while the store is behind, and nothing is put before the lines of the day have the hash that
 * was published. One line, one page of entries, and the differences are in memory. Throws a ReconciliationError.
 */
export async function reconcile(
  day: ClosedDay,
  store: ReconciledStore,
  { limit = 1_000, ...bank }: ReconcileOptions,
): Promise<Reconciliation> {
  const { date } = day;
  const behind = findBehind(day, await store.positions?.());
  if (behind.length > 0) return { state: 'behind', date, behind };
  await checkChain(day, store, bank);
  const { accounts, differing, found } = await compare(day, store, bank, limit);
  const differences: AccountDifference[] = [];
  let fetched = 0;
  for (const { line, stored } of found) {
    const isSystem = line !== undefined && isSystemAccount(line.account_number);
    const explained = isSystem
      ? { entries: [], fetched: 0 }
      : await explain(date, line, stored, { store, bank, limit });
    fetched += explained.fetched;
    differences.push({
      account_id: line?.account_id ?? stored?.account_id ?? '',
      ...(line ? { account_number: line.account_number, currency: line.currency, bank: pickSide(line) } : {}),
      ...(stored ? { store: pickSide(stored) } : {}),
      entries: explained.entries,
    });
  }
  return { state: differing === 0 ? 'in_order' : 'different', date, accounts, differing, differences, fetched };
}

function findBehind({ last_sequences = {} }: ClosedDay, positions: ReadonlyMap<number, bigint> | undefined) {
  if (positions === undefined) return [];
  return Object.entries(last_sequences).flatMap(([name, last]) => {
    const [partition, position] = [Number(name), Number(positions.get(Number(name)) ?? 0n)];
    return position <= last ? [{ partition, position, last }] : [];
  });
}

const noHash = '0'.repeat(64);

/** Throws if the hash of the day does not follow from that of the day before. */
async function checkChain(day: ClosedDay, store: ReconciledStore, bank: BankAccess): Promise<void> {
  const { date, previous_hash, accounts_sha256 } = day;
  const expected = createHash('sha256')
    .update(previous_hash + accounts_sha256)
    .digest('hex');
  if (day.hash !== expected)
    throw notAsClosed(
      `the hash of ${date} is ${day.hash}, but that of its previous_hash and accounts_sha256 is ${expected}`,
    );
  const before = new Date(Date.parse(`${date}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
  const kept = (await store.previousHash?.(date)) ?? (await readClosingHash(bank, before)) ?? noHash;
  if (kept !== previous_hash)
    throw notAsClosed(`the previous_hash of ${date} is ${previous_hash}, but the hash of ${before} is ${kept}`);
}

type Stored = DaySide & { account_id: string };
interface Pair {
  line: DayLine | undefined;
  stored: Stored | undefined;
}

/** Reads lines and store side by side, in the order of account_id, and returns the first `limit` pairs that differ. */
async function compare(day: ClosedDay, store: ReconciledStore, bank: BankAccess, limit: number) {
  const found: Pair[] = [];
  let [accounts, differing] = [0, 0];
  const pairs = merge(readLines(bank, day), storedAccounts(store.accounts(day.date)), ({ account_id }) => account_id);
  for await (const [line, stored] of pairs) {
    if (line && isSystemAccount(line.account_number) && !stored && !store.withSystemAccounts) continue;
    accounts += 1;
    if (line && stored && isSame(line, stored)) continue;
    differing += 1;
    if (found.length < limit) found.push({ line, stored });
  }
  return { accounts, differing, found };
}

/** Reports whether this is the number of a Teller or Vault, of which the API shows no entries. */
export const isSystemAccount = (account_number: string): boolean => /^(TLR|VLT)-/.test(account_number);

function isSame(line: DayLine, stored: Stored): boolean {
  const { first_sequence = line.first_sequence, last_sequence = line.last_sequence } = stored;
  return (
    isSameAmount(line.sum, stored.sum) &&
    line.count === stored.count &&
    line.first_sequence === first_sequence &&
    line.last_sequence === last_sequence
  );
}

const isSameAmount = (left: string, right: string): boolean => canonicalDecimal(left) === canonicalDecimal(right);

const pickSide = ({ sum, count, first_sequence, last_sequence }: DaySide): DaySide => ({
  sum,
  count,
  first_sequence,
  last_sequence,
});

interface Reading {
  store: ReconciledStore;
  bank: BankAccess;
  limit: number;
}

/** Compares the entries of one account, and passes missing ones to put(). */
async function explain(date: string, line: DayLine | undefined, stored: Stored | undefined, reading: Reading) {
  const { store, bank, limit } = reading;
  const entries: EntryDifference[] = [];
  let [fetched, before, ofDay, bankCount] = [0, 0, 0, 0];
  const note = (difference: EntryDifference) => void (entries.length < limit && entries.push(difference));
  const account_id = line?.account_id ?? stored?.account_id ?? '';
  const [from, to] = [line?.first_sequence ?? 1, line?.last_sequence ?? 0];
  if (stored && !store.entries) return { entries, fetched };
  const own = storedEntries(store.entries?.({ account_id, date, from, to }) ?? [], account_id);
  const pairs = merge(line ? readEntries(bank, date, line) : [], own, ({ sequence }) => sequence);
  for await (const [entry, kept] of pairs) {
    const sequence = entry?.sequence ?? kept?.sequence ?? 0;
    const [ofBank, ofStore] = [entry && shown(entry), kept && shown(kept)];
    const sides = { ...(ofBank ? { bank: ofBank } : {}), ...(ofStore ? { store: ofStore } : {}) };
    if (entry) [ofDay, bankCount] = [sequence, bankCount + 1];
    if (entry && !kept) {
      await store.put?.(entry);
      fetched += store.put ? 1 : 0;
      note({ sequence, kind: 'missing', ...sides, ...(store.put ? { fetched: true } : {}) });
    } else if (ofBank && ofStore) {
      if (ofStore.effective_date !== date) note({ sequence, kind: 'wrong_day', ...sides });
      if (!isSameAmount(ofBank.amount, ofStore.amount)) note({ sequence, kind: 'wrong_amount', ...sides });
    } else if (sequence === ofDay || ofStore?.effective_date === date) {
      note({ sequence, kind: sequence === before ? 'doubled' : 'extra', ...sides });
    }
    before = kept ? sequence : before;
  }
  if (line && bankCount !== line.count)
    throw notAsClosed(
      `the bank returns ${bankCount} entries of ${account_id} on ${date}, and closed it with ${line.count}`,
    );
  return { entries, fetched };
}

const shown = ({ direction, amount, effective_date }: Omit<StoredEntry, 'sequence'>) => ({
  amount: direction === 'debit' ? `-${amount}` : amount,
  effective_date,
});

/** Yields what the store has, after checks of what the comparison relies on. */
async function* storedAccounts(rows: Rows<StoredAccount>): AsyncGenerator<Stored, void> {
  let before = '';
  for await (const { account_id, sum, count, first_sequence, last_sequence } of rows) {
    if (account_id <= before)
      throw invalidStore(
        `accounts() must return each account once, in the order of account_id: ${account_id} came after ${before}`,
      );
    before = account_id;
    if (typeof sum !== 'string' || canonicalDecimal(sum) === undefined)
      throw invalidStore(`the sum of ${account_id} must be a decimal such as "-12.50", not ${JSON.stringify(sum)}`);
    yield {
      account_id,
      sum,
      count: whole('count', account_id, count),
      first_sequence: first_sequence === undefined ? undefined : whole('first_sequence', account_id, first_sequence),
      last_sequence: last_sequence === undefined ? undefined : whole('last_sequence', account_id, last_sequence),
    };
  }
}

async function* storedEntries(rows: Rows<StoredEntry>, account_id: string) {
  let before = 0;
  for await (const { sequence: given, ...entry } of rows) {
    const sequence = whole('sequence', account_id, given);
    if (sequence < before)
      throw invalidStore(
        `entries() must be in the order of their sequences: ${sequence} of ${account_id} came after ${before}`,
      );
    before = sequence;
    if (!['debit', 'credit'].includes(entry.direction) || canonicalDecimal(entry.amount) === undefined)
      throw invalidStore(
        `entry ${sequence} of ${account_id} must have a direction, debit or credit, and a decimal amount`,
      );
    yield { sequence, ...entry };
  }
}

function whole(field: string, account_id: string, value: number | bigint | string): number {
  // Drivers return null for the minimum of nothing, which Number() makes 0.
  const number = /^\d+$/.test(String(value)) ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw invalidStore(`${field} of ${account_id} must be a whole number, not ${String(value)}`);
}

const invalidStore = (message: string) => new ReconciliationError('invalid_store', `the store: ${message}`);

/**
 * Yields the items of two sorted sources side by side: those with equal keys together, and all others alone, also those
 * that repeat a key.
 */
async function* merge<L, R>(
  left: Rows<L>,
  right: Rows<R>,
  key: (item: L | R) => string | number,
): AsyncGenerator<[L | undefined, R | undefined], void> {
  const [lefts, rights] = [iterate(left), iterate(right)];
  try {
    let [l, r] = [await lefts.next(), await rights.next()];
    while (!l.done || !r.done) {
      const [a, b] = [l.done ? undefined : key(l.value), r.done ? undefined : key(r.value)];
      const isLeft = a !== undefined && (b === undefined || a <= b);
      const isRight = b !== undefined && (a === undefined || b <= a);
      yield [isLeft ? (l.value as L) : undefined, isRight ? (r.value as R) : undefined];
      if (isLeft) l = await lefts.next();
      if (isRight) r = await rights.next();
    }
  } finally {
    // A source that is not read to its end may hold a connection.
    await Promise.allSettled([lefts.return?.(), rights.return?.()]);
  }
}

async function* iterate<T>(rows: Rows<T>): AsyncGenerator<T, void> {
  yield* rows;
}
