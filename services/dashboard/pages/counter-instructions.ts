import { z } from 'zod';
import type { Account } from '#libs/contracts/accounts.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import type { Api } from '../api.ts';
import { jsonNumber } from '../html/amounts.ts';
import { accountByNumber } from '../html/owners.ts';
import { idLink } from '../html/show.ts';

/** Instructions of the counter: their content, their API requests, and texts for refusals. */

export const counterKinds = ['deposit', 'withdrawal', 'transfer', 'repayment'] as const;
export type CounterKind = (typeof counterKinds)[number];

/** `verb`: the text of buttons that lead there. */
export const kinds: Record<CounterKind, { title: string; verb: string; scope: Scope }> = {
  deposit: { title: 'Deposit', verb: 'Deposit', scope: 'transactions:write' },
  withdrawal: { title: 'Withdrawal', verb: 'Withdraw', scope: 'transactions:write' },
  transfer: { title: 'Transfer', verb: 'Transfer', scope: 'transfers:write' },
  repayment: { title: 'Loan repayment', verb: 'Repay a loan', scope: 'transfers:write' },
};

/** Returns what this person can do with this account. A loan accepts repayments but no cash. Pure. */
export function kindsFor(
  { account_type, status }: Pick<Account, 'account_type' | 'status'>,
  scopes: ReadonlySet<string>,
): CounterKind[] {
  if (status !== 'Active') return [];
  return counterKinds.filter(
    (kind) => scopes.has(kinds[kind].scope) && (account_type !== 'Loan' || kind === 'repayment'),
  );
}

export const hasOther = (kind: CounterKind): boolean => kind === 'transfer' || kind === 'repayment';

export const instructionSchema = z.object({
  actor: z.string(),
  kind: z.enum(counterKinds),
  account_id: z.string(),
  /** Account numbers, shown if the API does not respond. */
  account_number: z.string(),
  /** The other account of a transfer or repayment. */
  other_id: z.string().optional(),
  other_number: z.string().optional(),
  /** True if the money comes from the other account, because the counter was opened with the loan that is repaid. */
  from_other: z.boolean().optional(),
  amount: z.string(),
  currency: z.string(),
  reference: z.string(),
  description: z.string(),
  effective_date: z.string().optional(),
  idempotency_key: z.string(),
  /** When the form was accepted, in milliseconds. Links that were made before this was added do not have it. */
  entered_at: z.number().optional(),
});
export type Instruction = z.infer<typeof instructionSchema>;

/** Returns the API request. Pure. */
export function toRequest(instruction: Instruction): { path: string; body: object } {
  const { kind, account_id, other_id = '', from_other = false, currency } = instruction;
  const amount = jsonNumber(instruction.amount);
  const texts = (names: readonly ('reference' | 'description')[]) =>
    Object.fromEntries(
      [...names, 'effective_date' as const].flatMap((name) => (instruction[name] ? [[name, instruction[name]]] : [])),
    );
  if (!hasOther(kind)) {
    const transaction_type = kind === 'deposit' ? 'Deposit' : 'Withdrawal';
    return {
      path: '/transactions',
      body: { account_id, transaction_type, amount, currency, ...texts(['reference', 'description']) },
    };
  }
  const [from_account_id, to_account_id] = from_other ? [other_id, account_id] : [account_id, other_id];
  return { path: '/transfers', body: { from_account_id, to_account_id, amount, currency, ...texts(['description']) } };
}

export const idOfPosting = (posting: Transaction | Transfer): string =>
  'transfer_id' in posting && !('transaction_id' in posting)
    ? posting.transfer_id
    : (posting as Transaction).transaction_id;

/** Marks what was reversed, with a link to its reversal. */
export const showReversed = ({
  reversed_by_transaction_id: reversal,
}: Pick<Transaction, 'reversed_by_transaction_id'>): Html =>
  html`${reversal !== undefined && html`<br><span class="quiet">${idLink(reversal, 'reversed')}</span>`}`;

/** The current state of the accounts of an instruction. */
export interface Parties {
  account: Account;
  other?: Account | undefined;
}

/** Returns source and destination of the money; undefined: cash. Pure. */
export function moneyDirection(
  { kind, from_other = false }: Pick<Instruction, 'kind' | 'from_other'>,
  { account, other }: Parties,
): { from: Account | undefined; to: Account | undefined } {
  if (kind === 'deposit') return { from: undefined, to: account };
  if (kind === 'withdrawal') return { from: account, to: undefined };
  return from_other ? { from: other, to: account } : { from: account, to: other };
}

export const availableBalance = ({ available_balance, balance }: Account): string => available_balance ?? balance;

/** Why a value date is refused. */
export const valueDateRefusals: Readonly<Record<string, string>> = {
  day_closed: 'The books of this value date are closed. Choose a later day.',
  invalid_effective_date: 'The bank does not accept this value date: it is too early, or has not come yet.',
};

/** Returns the reason of a refusal, in words for a clerk. Pure. */
export function refusalText(
  code: string,
  { from, to }: { from?: Account | undefined; to?: Account | undefined },
): string {
  const notActive = [from, to].flatMap((account) =>
    account && account.status !== 'Active' ? [`Account ${account.account_number} is ${account.status}`] : [],
  );
  const blocked = notActive.join(', and ') || 'An account is not active';
  const texts: Record<string, string> = {
    insufficient_funds: from
      ? `There is not enough money in account ${from.account_number}: ${amountText(availableBalance(from), from.currency)} can be taken from it.`
      : 'There is not enough money in the account.',
    inactive_account: `${blocked}: no money can be moved until it is active again.`,
    invalid_account_type:
      'This cannot be done with an account of this type. A loan accepts repayments from another account but no cash.',
    currency_mismatch:
      from && to
        ? `The accounts have different currencies: ${from.currency} and ${to.currency}.`
        : 'The account has another currency.',
    same_account: 'The money would go to the account that it comes from. Choose another account.',
    amount_exceeds_outstanding: to
      ? `This is more than is still owed: ${amountText(to.balance, to.currency)}.`
      : 'This is more than is still owed.',
    balance_limit_exceeded: 'The balance would be larger than the bank allows.',
    amount_too_large: 'This is more than the bank accepts in one operation.',
    limit_exceeded: from
      ? `A limit of account ${from.account_number} does not allow this.`
      : 'A limit of the account does not allow this.',
    ...valueDateRefusals,
    account_not_found: 'The account does not exist.',
    destination_refused: 'The destination account cannot accept this payment.',
    insufficient_scope: 'Your permissions do not allow this. Ask an administrator if you need it.',
    deadline_exceeded: 'The bank could not do this in time and will not do it later. Enter it again.',
    idempotency_key_reused:
      'This form has already been used for something else. Check the latest transactions, then enter it again.',
  };
  return (
    (Object.hasOwn(texts, code) && texts[code]) ||
    'The bank did not accept this. Check what you entered. If the problem remains, tell operations.'
  );
}

/** Returns why an item was refused, in words for a clerk. */
export const explainRefusal = (code: string): string =>
  code === 'approval_required'
    ? 'A second person must approve this: enter it by itself, at the counter.'
    : refusalText(code, {});

/** Reports whether `other` can be meant where money of this kind is moved between `account` and another account. Pure. */
export function isPossible(kind: CounterKind, account: Account, other: Account): boolean {
  const isLoan = other.account_type === 'Loan';
  return (
    other.account_id !== account.account_id &&
    other.currency === account.currency &&
    other.status === 'Active' &&
    (kind === 'transfer' ? !isLoan : isLoan !== (account.account_type === 'Loan'))
  );
}

/** Returns the account with this number, or why no money can be moved between it and `account`. */
export async function findCounterpart(
  api: Api,
  typed: string,
  account: Account,
): Promise<{ account: Account } | { wrong: string }> {
  const number = typed.trim().toUpperCase();
  if (number === '') return { wrong: 'Enter the account, or a phone number or name.' };
  if (number === account.account_number) return { wrong: refusalText('same_account', {}) };
  const other = await accountByNumber(api, number);
  if (other === undefined) return { wrong: `There is no account ${number}. Check the number.` };
  return other.currency === account.currency
    ? { account: other }
    : { wrong: refusalText('currency_mismatch', { from: account, to: other }) };
}

/** A title of the API may end with an amount, which people read with groups. Pure. */
export const withGroups = (title: string): string =>
  title.replace(/(?<= )(\d+(?:\.\d+)?) ([A-Z]{3})$/, (_all, amount: string, currency: string) =>
    amountText(amount, currency),
  );
