import { refused } from '#libs/contracts/envelope.ts';
import { type Refusal, refusal } from '#libs/contracts/errors.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import type { Till, TillBalance } from '#libs/contracts/tills.ts';
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

/** Adds a posting in cash to the till of its person, if one is open. Items of batches are not cash over the counter. */
export function takeCash(
  { actor, batch_id, transaction_id }: TransactionRecord,
  legs: readonly Leg<AccountState>[],
  minor: bigint,
  { tills }: Books,
): void {
  const vault = legs.find(({ account }) => account.account_type === 'Vault');
  const state = vault && batch_id === null ? tills.open.get(actor) : undefined;
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
  };
  const state: TillState = { till, cash: new Map(), isNew: true };
  tills.open.set(till.actor, state);
  tills.named.set(till.till_id, state);
  tills.changed.add(state);
  return storeReply({ ok: true, data: till });
}

/** Refusals after which the person counts again are not stored, so that a repeat is decided again. */
export function closeTill({ data, context }: CommandOf<'close_till'>, books: Books): Decision {
  const { tills, now } = books;
  const { till_id, reason } = data;
  const state = tills.named.get(till_id);
  if (state === undefined) return replyOnly(refused(refusal('till_not_found', `till ${till_id} not found`)));
  const { till } = state;
  if (till.actor !== context.actor)
    return replyOnly(
      refused(refusal('insufficient_scope', `till ${till_id} belongs to another person, who closes it`)),
    );
  if (pastDeadline(context, books)) return storeReply(refused(deadlineExceeded()));
  if (till.closed_at !== null)
    return storeReply(refused(refusal('till_closed', `till ${till_id} is closed`, { details: { till_id } })));
  const counts = toCounts(data.counted);
  if (!(counts instanceof Map)) return replyOnly(refused(counts));
  const opening = new Map(till.opening.map(({ currency, amount }) => [currency, toMinor(amount, currency) as bigint]));
  const lacking = [...new Set([...opening.keys(), ...state.cash.keys()])].filter((code) => !counts.has(code)).sort();
  if (lacking.length > 0) {
    const details = { currencies: lacking };
    return replyOnly(refused(refusal('till_not_counted', `counted lacks ${lacking.join(', ')}`, { details })));
  }
  const balances = [...counts]
    .sort(byCurrency)
    .map(([currency, minor]) =>
      balance(currency, opening.get(currency) ?? 0n, state.cash.get(currency) ?? noCash, minor),
    );
  const different = balances.filter(({ difference }) => /[1-9]/.test(difference));
  if (different.length > 0 && reason === null) {
    const list = different.map(({ currency, difference }) => `${currency} by ${difference}`).join(', ');
    const message = `counted differs from what is expected in ${list}: a reason is required`;
    const shown = different.map(({ currency, expected, counted, difference }) => ({
      currency,
      expected,
      counted,
      difference,
    }));
    return replyOnly(refused(refusal('till_difference', message, { details: { balances: shown } })));
  }
  state.till = { ...till, status: 'Closed', closed_at: now, balances, reason };
  tills.open.delete(till.actor);
  tills.changed.add(state);
  return storeReply({ ok: true, data: state.till });
}

const byCurrency = ([one]: [string, unknown], [other]: [string, unknown]): number => (one < other ? -1 : 1);

function balance(currency: string, opening: bigint, cash: CashSum, counted: bigint): TillBalance {
  const decimal = (minor: bigint) => fromMinor(minor, currency);
  const expected = opening + cash.in - cash.out;
  return {
    currency,
    opening: decimal(opening),
    cash_in: decimal(cash.in),
    cash_in_count: cash.in_count,
    cash_out: decimal(cash.out),
    cash_out_count: cash.out_count,
    expected: decimal(expected),
    counted: decimal(counted),
    difference: decimal(counted - expected),
  };
}
