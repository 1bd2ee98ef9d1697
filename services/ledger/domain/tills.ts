import { refused } from '#libs/contracts/envelope.ts';
import { invalidField, type Refusal, refusal } from '#libs/contracts/errors.ts';
import { idKey } from '#libs/contracts/ids.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import { isPerson } from '#libs/contracts/staff-days.ts';
import type { Till, TillBalance, TillSums } from '#libs/contracts/tills.ts';
import { isOpeningBalance } from '#libs/contracts/transactions.ts';
import type { Leg } from './chart.ts';
import { badAmount, deadlineExceeded, pastDeadline } from './checks.ts';
import { type Books, type CommandOf, type Decision, replyOnly, storeReply } from './decision.ts';
import type { AccountState, TransactionRecord } from './records.ts';

/** Decides tills (contract: tills), and which of them takes a posting: the one that its person has open when it is decided. Pure. */

/** What a till has taken and paid in one currency. */
interface CashSum {
  in: bigint;
  in_count: number;
  out: bigint;
  out_count: number;
}

export interface TillState {
  till: Till;
  /** By currency. Complete only for tills that a command of the batch closes. */
  cash: Map<string, CashSum>;
  /** Not in the database yet. */
  isNew: boolean;
}

/** A posting in cash, and the till that it is in. */
interface TillPosting {
  till_id: string;
  transaction_id: string;
  currency: string;
  direction: 'in' | 'out';
  amount_minor: bigint;
}

/** The tills of a batch: the open ones of its persons, and those that it closes. */
export interface Tills {
  /** By person. */
  open: Map<string, TillState>;
  /** By id. */
  named: Map<string, TillState>;
  /** The tills that the batch opened or closed, and what it posted in tills. */
  changed: Set<TillState>;
  postings: TillPosting[];
}

export const noTills = (): Tills => ({ open: new Map(), named: new Map(), changed: new Set(), postings: [] });

const noCash: Readonly<CashSum> = { in: 0n, in_count: 0, out: 0n, out_count: 0 };

/**
 * Reports whether a posting with an entry in the vault was cash over the counter: it is no item of a batch, no balance that a
 * migration brought, and no reversal of such a posting or of one that no person posted. queries/staff-days.ts has the same in SQL.
 */
function isOverCounter(record: TransactionRecord, { transactions }: Books): boolean {
  if (record.batch_id !== null || isOpeningBalance(record)) return false;
  if (record.reverses_transaction_id === null) return true;
  const original = transactions.get(idKey(record.reverses_transaction_id));
  return original?.batch_id === null && isPerson(original.actor) && !isOpeningBalance(original);
}

/** Adds a posting over the counter to the till of its person, if one is open. */
export function takeCash(
  record: TransactionRecord,
  legs: readonly Leg<AccountState>[],
  minor: bigint,
  books: Books,
): void {
  const { tills } = books;
  const vault = legs.find(({ account }) => account.account_type === 'Vault');
  const state = vault && isOverCounter(record, books) ? tills.open.get(record.actor) : undefined;
  const { transaction_id } = record;
  if (vault === undefined || state === undefined) return;
  const { currency } = vault.account;
  const direction = vault.direction === 'credit' ? 'in' : 'out';
  tills.postings.push({ till_id: state.till.till_id, transaction_id, currency, direction, amount_minor: minor });
  addCash(state, currency, direction, minor, 1);
}

export function addCash(
  { cash }: Pick<TillState, 'cash'>,
  currency: string,
  direction: 'in' | 'out',
  minor: bigint,
  count: number,
): void {
  const sum = cash.get(currency) ?? { ...noCash };
  sum[direction] += minor;
  sum[`${direction}_count`] += count;
  cash.set(currency, sum);
}

type Counted = CommandOf<'open_till' | 'close_till'>['data']['counted'];

/** Returns what was counted in minor units, or the refusal of an amount. The gateway has checked that each currency is named once. */
function toCounts(counted: Counted): Map<string, bigint> | Refusal {
  const counts = new Map<string, bigint>();
  for (const { currency, amount } of counted) {
    const minor = toMinor(amount, currency);
    if (typeof minor !== 'bigint') return badAmount(minor, currency, 'counted.amount');
    counts.set(currency, minor);
  }
  return counts;
}

export function openTill({ data, context }: CommandOf<'open_till'>, books: Books): Decision {
  const { tills, now } = books;
  if (pastDeadline(context, books)) return storeReply(refused(deadlineExceeded()));
  const open = tills.open.get(context.actor);
  if (open) {
    const { till_id } = open.till;
    return storeReply(
      refused(refusal('till_open', `till ${till_id} is open: close it first`, { details: { till_id } })),
    );
  }
  const counts = toCounts(data.counted);
  if (!(counts instanceof Map)) return storeReply(refused(counts));
  const till: Till = {
    till_id: data.till_id,
    actor: context.actor,
    status: 'Open',
    opened_at: now,
    opening: [...counts]
      .sort(byCurrency)
      .map(([currency, minor]) => ({ currency, amount: fromMinor(minor, currency) })),
    closed_at: null,
    balances: [],
    reason: null,
    closed_by: null,
  };
  const state: TillState = { till, cash: new Map(), isNew: true };
  tills.open.set(till.actor, state);
  tills.named.set(till.till_id, state);
  tills.changed.add(state);
  return storeReply({ ok: true, data: till });
}

/**
 * A count that was refused is stored and audited as one that closed the till, so that the first count is never lost. The refusal
 * does not say what is expected: whoever counts again must not know it.
 */
export function closeTill({ data, context }: CommandOf<'close_till'>, books: Books): Decision {
  const { tills, now } = books;
  const { till_id, reason } = data;
  const state = tills.named.get(till_id);
  const isOwn = state?.till.actor === context.actor;
  if (state === undefined || (!isOwn && data.of_others !== true))
    return replyOnly(refused(refusal('till_not_found', `till ${till_id} not found`)));
  const { till } = state;
  if (pastDeadline(context, books)) return storeReply(refused(deadlineExceeded()));
  if (till.closed_at !== null)
    return storeReply(refused(refusal('till_closed', `till ${till_id} is closed`, { details: { till_id } })));
  if (!isOwn && reason === null)
    return storeReply(refused(invalidField('reason', 'reason is required to close the till of another person')));
  const counts = toCounts(data.counted);
  if (!(counts instanceof Map)) return storeReply(refused(counts));
  const opening = openingOf(till);
  const lacking = [...new Set([...opening.keys(), ...state.cash.keys()])].filter((code) => !counts.has(code)).sort();
  if (lacking.length > 0) {
    const details = { currencies: lacking };
    return storeReply(refused(refusal('till_not_counted', `counted lacks ${lacking.join(', ')}`, { details })));
  }
  const balances = [...counts]
    .sort(byCurrency)
    .map(([currency, minor]) =>
      balance(currency, opening.get(currency) ?? 0n, state.cash.get(currency) ?? noCash, minor),
    );
  const differences = balances
    .filter(({ difference }) => /[1-9]/.test(difference))
    .map(({ currency, difference }) => ({ currency, difference }));
  if (differences.length > 0 && reason === null) {
    const currencies = differences.map(({ currency }) => currency);
    const message = `counted is not what is expected in ${currencies.join(', ')}: count again, or give a reason`;
    const why = refusal('till_difference', message, { details: { currencies } });
    return { ...storeReply(refused(why)), audited: { differences } };
  }
  // The clock may have been set back since.
  const closed_at = now < till.opened_at ? till.opened_at : now;
  state.till = { ...till, status: 'Closed', closed_at, balances, reason, closed_by: context.actor };
  tills.open.delete(till.actor);
  tills.changed.add(state);
  return { ...storeReply({ ok: true, data: state.till }), audited: { differences } };
}

const byCurrency = ([one]: [string, unknown], [other]: [string, unknown]): number => (one < other ? -1 : 1);

const expectedOf = (opening: bigint, cash: CashSum): bigint => opening + cash.in - cash.out;

function balance(currency: string, opening: bigint, cash: CashSum, counted: bigint): TillBalance {
  const decimal = (minor: bigint) => fromMinor(minor, currency);
  const difference = decimal(counted - expectedOf(opening, cash));
  return { ...sums(currency, opening, cash), counted: decimal(counted), difference };
}

function sums(currency: string, opening: bigint, cash: CashSum): TillSums {
  const decimal = (minor: bigint) => fromMinor(minor, currency);
  return {
    currency,
    opening: decimal(opening),
    cash_in: decimal(cash.in),
    cash_in_count: cash.in_count,
    cash_out: decimal(cash.out),
    cash_out_count: cash.out_count,
    expected: decimal(expectedOf(opening, cash)),
  };
}

/** Returns what an open till was opened with, and what it has taken, by currency. Pure. */
export function sumsSoFar({ till, cash }: Pick<TillState, 'till' | 'cash'>): TillSums[] {
  const opening = openingOf(till);
  const currencies = [...new Set([...opening.keys(), ...cash.keys()])].sort();
  return currencies.map((code) => sums(code, opening.get(code) ?? 0n, cash.get(code) ?? noCash));
}

const openingOf = ({ opening }: Till): Map<string, bigint> =>
  new Map(opening.map(({ currency, amount }) => [currency, toMinor(amount, currency) as bigint]));
