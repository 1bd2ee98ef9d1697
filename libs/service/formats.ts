import { isLoanNumber } from '#libs/contracts/accounts.ts';
import { plainMoney } from '#libs/contracts/money.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import { dayIn, isRepeated, startOfDay as startOfDayIn, timeIn } from './days.ts';

/** The bank's name and address and its formats of times and amounts, set once per process. */

export interface BankFormats {
  name?: string;
  /** The lines of its address. */
  address?: readonly string[];
  /** An IANA name. */
  timeZone: string;
  /** If undefined, formats are language-neutral, such as 2026-01-31 and 1 500.00. */
  locale: string | undefined;
  /** Whether every page says that this is a trial. */
  trial?: boolean;
}

function createFormats({ name, address = [], timeZone, locale, trial = false }: BankFormats) {
  // In every locale, days are those of the filters and digits those of the amounts that people type.
  const of = (options: Intl.DateTimeFormatOptions, language = locale ?? 'sv-SE') =>
    new Intl.DateTimeFormat(language, { timeZone, calendar: 'gregory', numberingSystem: 'latn', ...options });
  const number = locale === undefined ? undefined : new Intl.NumberFormat(locale, { numberingSystem: 'latn' });
  return {
    name,
    trial,
    address,
    timeZone,
    // The Swedish format is that of ISO 8601, with a space between date and time.
    time: of({ dateStyle: locale === undefined ? 'short' : 'medium', timeStyle: 'medium' }),
    minute: of({ dateStyle: locale === undefined ? 'short' : 'medium', timeStyle: 'short' }),
    minuteOfYear:
      locale === undefined ? undefined : of({ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' }),
    // A day is the same in every zone.
    day: of({ dateStyle: locale === undefined ? 'short' : 'medium', timeZone: 'UTC' }),
    offset: of({ timeZoneName: 'shortOffset' }, 'en'),
    whole: number,
    marks: new Map(number?.formatToParts(1_234_567.5).map(({ type, value }) => [type, value])),
    locale,
  };
}

/** Returns the currency that a canonical locale names, such as KES of en-KE-u-cu-kes, or undefined. */
export const currencyIn = (locale: string): string | undefined =>
  /-u-(?:.+-)?cu-([a-z]{3})\b/.exec(locale)?.[1]?.toUpperCase();

let formats = createFormats({ timeZone: 'UTC', locale: undefined });

/** Called once, before the first page. */
export function setBankFormats(bank: BankFormats): void {
  formats = createFormats(bank);
}

export const bankName = (): string => formats.name ?? 'Core Banking';
/** Reports whether this is a trial, which pages say. */
export const isTrial = (): boolean => formats.trial;
/** Returns the currency of most accounts, or undefined if the locale names none. */
export const bankCurrency = (): string | undefined => currencyIn(formats.locale ?? '');
export const bankAddress = (): readonly string[] => formats.address;

const clockText = (iso: string): string => formats.time.format(Date.parse(iso));

/** Shows a day, such as 2026-01-31, in the bank's format. */
export const dayText = (day: string): string => formats.day.format(Date.parse(day));

/** Returns the offset of the zone from UTC at this time: `GMT+3`, or `UTC`. */
function offsetText(iso: string): string {
  const parts = formats.offset.formatToParts(Date.parse(iso));
  return parts.find(({ type }) => type === 'timeZoneName')?.value.replace(/^GMT(\+0)?$/, 'UTC') ?? '';
}

/** Shows a time to the second; with its offset from UTC if clocks show the same time twice, because they are set back. */
export const timeText = (iso: string): string =>
  isRepeated(formats.timeZone, Date.parse(iso)) ? fullTimeText(iso) : clockText(iso);

/** Shows a time to the minute, without the year if that is the current one; times that clocks show twice as timeText does. */
export function minuteText(iso: string): string {
  const ms = Date.parse(iso);
  if (isRepeated(formats.timeZone, ms)) return fullTimeText(iso);
  const isThisYear = bankDay(ms).slice(0, 4) === bankDay(Date.now()).slice(0, 4);
  return ((isThisYear && formats.minuteOfYear) || formats.minute).format(ms);
}

/** Shows a time with its offset from UTC. */
export const fullTimeText = (iso: string): string => `${clockText(iso)} ${offsetText(iso)}`;

/** Returns the zone of the times on a page: `UTC`, or `those of Africa/Nairobi`. */
export const zoneText = (): string => (formats.timeZone === 'UTC' ? 'UTC' : `those of ${formats.timeZone}`);

/** Returns the name of the bank's time zone, such as Africa/Nairobi. */
export const zoneName = (): string => formats.timeZone;

/** Groups the digits of a whole number. */
function wholeText(digits: string): string {
  return formats.whole ? formats.whole.format(BigInt(digits)) : digits.replace(/\B(?=(\d{3})+$)/g, '\u00a0');
}

/** Formats a count, with the bank's grouping. */
export const numberText = (count: number | string | bigint): string => wholeText(String(count));

export const decimalMark = (): string => formats.marks.get('decimal') ?? '.';
/** Returns the mark between groups of digits, as people type it. */
export const groupMark = (): string => formats.marks.get('group') ?? ',';
export const bankLocale = (): string | undefined => formats.locale;

/** Returns this time for programs, such as 2026-01-31T23:59:59.999+03:00: its day is that of the bank. */
export const bankTime = (ms: number): string => timeIn(formats.timeZone, ms);

/** Returns this time for spreadsheets, in the bank's time zone, such as 2026-01-31 23:59:59. */
export const sheetTime = (iso: string): string => bankTime(Date.parse(iso)).slice(0, 19).replace('T', ' ');

/** Returns the bank's day at this time, such as 2026-01-31. */
export const bankDay = (ms: number): string => dayIn(formats.timeZone, ms);

/**
 * Returns the time at which a day begins in the bank's time zone, `plusDays` days later. Text that is not a day
 * is returned unchanged, so that the API refuses it.
 */
export function startOfDay(day: string, plusDays = 0): string {
  try {
    return startOfDayIn(formats.timeZone, day, plusDays);
  } catch {
    return day;
  }
}

/** Returns the time at which a day ends. */
export const endOfDay = (day: string): string => startOfDay(day, 1);

/** Returns the day that ends at this time, or undefined if no day does. */
export function dayEndingAt(iso: string): string | undefined {
  const day = bankDay(Date.parse(iso) - 1);
  return Date.parse(endOfDay(day)) === Date.parse(iso) ? day : undefined;
}

/** Formats an amount with all digits of its currency and the bank's grouping, without rounding. */
export function moneyText(decimal: string, currency: string | null): string {
  const [whole = '', fraction] = plainMoney(decimal, currency).replace(/^-/, '').split('.');
  return `${decimal.startsWith('-') ? '−' : ''}${wholeText(whole)}${fraction === undefined ? '' : `${decimalMark()}${fraction}`}`;
}

/** Formats an amount with its currency, if it is known. */
export const amountText = (decimal: string, currency: string | null): string =>
  `${moneyText(decimal, currency)} ${currency ?? ''}`.trim();

export interface MovedWord {
  title: string;
  way?: 'in' | 'out';
}

/** How movements of an account are called. The balance of a loan is what is owed: neither way is a gain of the customer. */
export const movedWords = (accountNumber: string): { debit: MovedWord; credit: MovedWord } =>
  isLoanNumber(accountNumber)
    ? { debit: { title: 'Paid off' }, credit: { title: 'Lent' } }
    : { debit: { title: 'Out', way: 'out' }, credit: { title: 'In', way: 'in' } };

type Posting = Pick<Transaction, 'transaction_type' | 'reverses_transaction_id'>;

/** Returns what a transaction is called, and that it is a reversal if it is one. */
export const transactionTitle = ({ transaction_type, reverses_transaction_id }: Posting): string =>
  `${reverses_transaction_id === undefined ? '' : 'Reversal of '}${transaction_type === 'Loan Payment' ? 'Loan repayment' : transaction_type}`;

/** Returns what an entry of this account is called: `Transfer to`, if the other account and its owner follow. */
export function movementTitle(
  entry: Posting & Pick<Transaction, 'direction' | 'counterparty_account_id'>,
  accountNumber: string,
): string {
  const title = transactionTitle(entry);
  if (entry.counterparty_account_id === undefined) return title;
  // A loan is only repaid, which debits it. A reversal has the opposite direction of what it reverses.
  const isFrom =
    isLoanNumber(accountNumber) || (entry.direction === 'credit') !== (entry.reverses_transaction_id !== undefined);
  return `${title} ${isFrom ? 'from' : 'to'}`;
}
