import type { Account } from '#libs/contracts/accounts.ts';
import type { OwnRules } from '#libs/contracts/approvals.ts';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { fromMinor, NumberText } from '#libs/contracts/money.ts';
import { listViolations } from '#libs/contracts/violations.ts';
import { amountText } from '#libs/service/formats.ts';
import { minorOf, sumText, typedAmount } from '../html/amounts.ts';
import type { FileLine } from './batch-file.ts';
import { availableBalance, explainRefusal, refusalText } from './counter-instructions.ts';
import { isMore } from './needs-approval.ts';

/** Determines which lines of a file can be sent, and why the others cannot. Pure. */

export type Mode = 'independent' | 'atomic';

export interface Payment {
  line: FileLine;
  from: Account | undefined;
  to: Account | undefined;
  /** With all digits of its currency. */
  amount: string;
  currency: string;
}

export interface RefusedLine {
  line: FileLine;
  reason: string;
  /** Its accounts, as far as they are known. */
  from?: Account | undefined;
  to?: Account | undefined;
}

/** What only a line of a file is refused for. The codes are kept with batches. */
const ofLines = {
  unreadable_line: 'The line could not be read.',
  account_missing: 'There is no account number in From or To.',
  unknown_from: 'There is no account with this number in From.',
  unknown_to: 'There is no account with this number in To.',
  not_permitted: 'The person who sent the file may not make this payment.',
  invalid_amount: 'This is not an amount in the currency of the account.',
  invalid_text: 'The reference or the description is not accepted.',
};

/** Why a line was refused, without amounts and names, also for people who may not see accounts. Pure. */
export const explainLine = (code: string): string =>
  Object.hasOwn(ofLines, code) ? ofLines[code as keyof typeof ofLines] : explainRefusal(code);

interface Refusal {
  /** One of `ofLines`, or of the API. */
  code: string;
  /** For the person who sends the file: it can contain a balance. */
  reason: string;
}

/** A line that is not sent with its file. */
export interface OmittedLine extends RefusedLine, Refusal {
  /** That of its account, if it is known. */
  currency: string | undefined;
}

export interface Checked {
  payments: Payment[];
  refused: OmittedLine[];
  /** The lines of payments that are equal to an earlier one. */
  repeated: number[];
  /** Why the payments need an approval, which a file cannot wait for. */
  unapproved: string[];
}

/** The balances after the lines checked so far. */
type Left = Map<string, string>;

export function checkLines(
  lines: readonly FileLine[],
  accounts: ReadonlyMap<string, Account>,
  /** Those of the person who sends the file. */
  scopes: ReadonlySet<string>,
  mode: Mode,
  /** Undefined: not known now. */
  rules: OwnRules | undefined,
): Checked {
  const left: Left = new Map();
  const seen = new Set<string>();
  const checked: Checked = { payments: [], refused: [], repeated: [], unapproved: [] };
  for (const line of lines) {
    const read = toPayment(line, accounts, scopes);
    const payment = 'code' in read ? read : (needsOwnApproval(read, rules) ?? findShortage(read, left, mode) ?? read);
    if ('code' in payment) {
      const [from, to] = [accounts.get(line.from), accounts.get(line.to)];
      checked.refused.push({ line, from, to, currency: (from ?? to)?.currency, ...payment });
    } else {
      checked.payments.push(payment);
      const { from, to, amount } = payment;
      const content = JSON.stringify([from?.account_id, to?.account_id, amount, line.reference, line.description]);
      if (seen.has(content)) checked.repeated.push(line.line);
      seen.add(content);
    }
  }
  return { ...checked, unapproved: needTogether(checked.payments, rules) };
}

/** Returns why the payment needs an approval by itself, whatever else was posted on this day. */
function needsOwnApproval({ amount, currency }: Payment, rules: OwnRules | undefined): Refusal | undefined {
  if (!rules?.actions.includes('post_above')) return undefined;
  const limit = rules.limits.find((one) => one.currency === currency)?.limit;
  const isAlone = limit !== undefined && !isMore(amount, limit, currency);
  return isAlone ? undefined : { code: 'approval_required', reason: explainRefusal('approval_required') };
}

/** Returns why the payments of a currency need an approval together. */
function needTogether(payments: readonly Payment[], rules: OwnRules | undefined): string[] {
  if (!rules?.actions.includes('post_above')) return [];
  return [...Map.groupBy(payments, ({ currency }) => currency)].flatMap(([currency, group]) => {
    const sum = fromMinor(
      group.reduce((total, { amount }) => total + minorOf(amount, currency), 0n),
      currency,
    );
    const left = rules.limits.find((one) => one.currency === currency)?.left ?? '0';
    if (!isMore(sum, left, currency)) return [];
    return [
      `The payments in ${currency} are ${amountText(sum, currency)} together, and you can post ${amountText(left, currency)} more today alone.`,
    ];
  });
}

/** Returns the payment of a line, or why the line is refused. */
function toPayment(
  line: FileLine,
  accounts: ReadonlyMap<string, Account>,
  scopes: ReadonlySet<string>,
): Payment | Refusal {
  const refuse = (code: string, reason: string): Refusal => ({ code, reason });
  if (line.fault !== undefined)
    return refuse(
      'unreadable_line',
      `The line ${line.fault}. A value with a separator in it must be in quotation marks.`,
    );
  if (line.from === '' && line.to === '')
    return refuse('account_missing', 'Enter an account number in from, to, or both.');
  const [from, to] = [accounts.get(line.from), accounts.get(line.to)];
  for (const [number, account, code] of [
    [line.from, from, 'unknown_from'],
    [line.to, to, 'unknown_to'],
  ] as const)
    if (number !== '' && account === undefined)
      return refuse(code, `There is no account ${number.slice(0, 40)}. Check the number.`);
  const account = (from ?? to) as Account;
  const isCash = from === undefined || to === undefined;
  const needed = isCash ? 'transactions:write' : 'transfers:write';
  if (!scopes.has(needed))
    return refuse('not_permitted', `Your permissions do not allow ${isCash ? 'cash' : 'transfers'}.`);
  const code = findRefusalCode(from, to);
  if (code !== undefined) return refuse(code, refusalText(code, { from, to }));
  if (line.currency !== '' && line.currency.toUpperCase() !== account.currency)
    return refuse('currency_mismatch', `The account is in ${account.currency}, not in ${line.currency.slice(0, 10)}.`);
  const amount = typedAmount(line.amount, account.currency);
  if ('wrong' in amount) return refuse('invalid_amount', amount.wrong);
  if (!isCash && line.reference !== '')
    return refuse('invalid_text', 'A transfer has no reference. Use the description instead.');
  const payment = { line, from, to, amount: amount.amount, currency: account.currency };
  const broken = brokenRule(payment);
  return broken === undefined ? payment : refuse('invalid_text', broken);
}

/** A payment as it is sealed and sent, without the accounts. */
export interface SentPayment {
  line: Omit<FileLine, 'fault'>;
  from_id?: string | undefined;
  to_id?: string | undefined;
  amount: string;
  currency: string;
}

export const toSentPayment = ({ line: { fault: _, ...line }, from, to, amount, currency }: Payment): SentPayment => ({
  line,
  amount,
  currency,
  ...(from && { from_id: from.account_id }),
  ...(to && { to_id: to.account_id }),
});

/**
 * The item of the batch for one payment. It contains the line number of the file, so that results can be matched to
 * lines for as long as the batch is kept.
 */
export function toBatchItem({ line, from_id, to_id, currency }: SentPayment, amount: unknown) {
  const { description, reference } = line;
  const common = {
    amount,
    currency,
    metadata: { line: String(line.line) },
    ...(description !== '' && { description }),
  };
  if (from_id !== undefined && to_id !== undefined)
    return { transfer: { from_account_id: from_id, to_account_id: to_id, ...common } };
  const transaction_type = from_id === undefined ? 'Deposit' : 'Withdrawal';
  const account_id = from_id ?? to_id;
  return { transaction: { account_id, transaction_type, ...common, ...(reference !== '' && { reference }) } };
}

/** Returns the rule of the API that the payment violates. */
function brokenRule(payment: Payment): string | undefined {
  const { transaction, transfer } = toBatchItem(toSentPayment(payment), new NumberText(payment.amount));
  const read = transfer
    ? endpoints.create_transfer.body.safeParse(transfer)
    : endpoints.create_transaction.body.safeParse(transaction);
  return read.error && `The ${listViolations(read.error, transfer ?? transaction, 'unknown_field')[0]?.message}.`;
}

function findRefusalCode(from: Account | undefined, to: Account | undefined): string | undefined {
  if (from && from === to) return 'same_account';
  const isCash = from === undefined || to === undefined;
  if (from?.account_type === 'Loan' || (isCash && to?.account_type === 'Loan')) return 'invalid_account_type';
  if ([from, to].some((account) => account && account.status !== 'Active')) return 'inactive_account';
  return from && to && from.currency !== to.currency ? 'currency_mismatch' : undefined;
}

/**
 * Returns the reason if the lines above leave too little money for this one, or too small a debt on the loan;
 * otherwise deducts it. In independent mode the lines are decided in any order, so money from earlier lines is
 * not counted.
 */
function findShortage({ from, to, amount, currency }: Payment, left: Left, mode: Mode): Refusal | undefined {
  const remaining = (account: Account) =>
    left.get(account.account_id) ?? (account.account_type === 'Loan' ? account.balance : availableBalance(account));
  const less = (account: Account) => sumText(remaining(account), amount, currency, -1n);
  const refuse = (account: Account, code: string, afterOthers: string): Refusal => ({
    code,
    reason: left.has(account.account_id) ? afterOthers : refusalText(code, { from, to }),
  });
  if (from && less(from).startsWith('-'))
    return refuse(from, 'insufficient_funds', 'The payments above leave too little money in the account.');
  if (to?.account_type === 'Loan' && less(to).startsWith('-'))
    return refuse(to, 'amount_exceeds_outstanding', 'After the payments above, less than this is owed on the loan.');
  if (from) left.set(from.account_id, less(from));
  if (to?.account_type === 'Loan') left.set(to.account_id, less(to));
  else if (to && mode === 'atomic') left.set(to.account_id, sumText(remaining(to), amount, currency, 1n));
  return undefined;
}

/** The names of the kinds of payments. */
export const paymentKind = ({ from, to }: Pick<Payment, 'from' | 'to'>): string => {
  if (from === undefined) return 'Deposit';
  if (to === undefined) return 'Withdrawal';
  return to.account_type === 'Loan' ? 'Loan repayment' : 'Transfer';
};
