import { currencyDigits, isCurrency } from '#libs/contracts/money.ts';

/** The bank's name and address and its formats of times and amounts, set once per process. */

export interface BankFormats {
  name?: string;
  /** The lines of its address. */
  address?: readonly string[];
  /** An IANA name. */
  timeZone: string;
  /** If undefined, formats are language-neutral, such as 2026-01-31 and 1 500.00. */
  locale: string | undefined;
}

function createFormats({ name, address = [], timeZone, locale }: BankFormats) {
  const of = (options: Intl.DateTimeFormatOptions, language = locale ?? 'sv-SE') =>
    new Intl.DateTimeFormat(language, { timeZone, ...options });
  const number = locale === undefined ? undefined : new Intl.NumberFormat(locale, { numberingSystem: 'latn' });
  return {
    name,
    address,
    timeZone,
    // The Swedish format is that of ISO 8601, with a space between date and time.
    time: of({ dateStyle: locale === undefined ? 'short' : 'medium', timeStyle: 'medium' }),
    day: of({ dateStyle: 'short' }, 'sv-SE'),
    parts: of({ dateStyle: 'short', timeStyle: 'medium' }, 'sv-SE'),
    zone: of({ timeZoneName: 'short' }, 'en'),
    whole: number,
    /** The decimal mark. */
    mark: number?.formatToParts(1.5).find(({ type }) => type === 'decimal')?.value ?? '.',
  };
}

let formats = createFormats({ timeZone: 'UTC', locale: undefined });

/** Called once, before the first page. */
export function setBankFormats(bank: BankFormats): void {
  formats = createFormats(bank);
}

export const bankName = (): string => formats.name ?? 'Core Banking';
export const bankAddress = (): readonly string[] => formats.address;

export const timeText = (iso: string): string => formats.time.format(Date.parse(iso));

/** Returns the short name of the zone at this time. */
export const zoneAt = (iso: string): string =>
  formats.zone.formatToParts(Date.parse(iso)).find(({ type }) => type === 'timeZoneName')?.value ?? formats.timeZone;

/** Returns the zone of the times on a page: `UTC`, or `those of Africa/Nairobi`. */
export const zoneText = (): string => (formats.timeZone === 'UTC' ? 'UTC' : `those of ${formats.timeZone}`);

/** Groups the digits of a whole number. */
function wholeText(digits: string): string {
  return formats.whole ? formats.whole.format(BigInt(digits)) : digits.replace(/\B(?=(\d{3})+$)/g, '\u00a0');
}
export const decimalMark = (): string => formats.mark;

/** Returns the bank's day at this time, such as 2026-01-31. */
export const bankDay = (ms: number): string => formats.day.format(ms);

/**
 * Returns the time at which a day begins in the bank's time zone, `plusDays` days later. Text that is not a day
 * is returned unchanged, so that the API refuses it.
 */
export function startOfDay(day: string, plusDays = 0): string {
  const midnight = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(day) + plusDays * 86_400_000 : Number.NaN;
  if (Number.isNaN(midnight)) return day;
  const offsetAt = (ms: number) => Date.parse(`${formats.parts.format(ms).replace(' ', 'T')}Z`) - ms;
  // The offset at that time, which can differ from the offset at the same time in UTC.
  return new Date(midnight - offsetAt(midnight - offsetAt(midnight))).toISOString();
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

/** Formats an amount for programs, with all digits of its currency and without grouping. */
export function plainMoney(decimal: string, currency: string | null): string {
  const [whole = '', fraction = ''] = decimal.split('.');
  const digits = currency !== null && isCurrency(currency) ? currencyDigits(currency) : fraction.length;
  return digits > 0 ? `${whole}.${fraction.padEnd(digits, '0')}` : whole;
}
