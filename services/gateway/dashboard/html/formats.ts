/** How times and amounts are written: those of the bank, which is one for the whole process. */

export interface BankFormats {
  /** By its IANA name. */
  timeZone: string;
  /** undefined: digits alone, 2026-01-31 and 1 500.00. */
  locale: string | undefined;
}

interface Formats extends BankFormats {
  time: Intl.DateTimeFormat;
  day: Intl.DateTimeFormat;
  parts: Intl.DateTimeFormat;
  zone: Intl.DateTimeFormat;
  whole: Intl.NumberFormat | undefined;
  /** Between whole and fraction. */
  mark: string;
}

function formatsOf({ timeZone, locale }: BankFormats): Formats {
  const of = (options: Intl.DateTimeFormatOptions, language = locale ?? 'sv-SE') =>
    new Intl.DateTimeFormat(language, { timeZone, ...options });
  const number = locale === undefined ? undefined : new Intl.NumberFormat(locale, { numberingSystem: 'latn' });
  return {
    timeZone,
    locale,
    // Sweden writes as ISO 8601 does, with a blank between day and time.
    time: of({ dateStyle: locale === undefined ? 'short' : 'medium', timeStyle: 'medium' }),
    day: of({ dateStyle: 'short' }, 'sv-SE'),
    parts: of({ dateStyle: 'short', timeStyle: 'medium' }, 'sv-SE'),
    zone: of({ timeZoneName: 'short' }, 'en'),
    whole: number,
    mark: number?.formatToParts(1.5).find(({ type }) => type === 'decimal')?.value ?? '.',
  };
}

let formats = formatsOf({ timeZone: 'UTC', locale: undefined });

/** Once, before the first page. */
export function setBankFormats(bank: BankFormats): void {
  formats = formatsOf(bank);
}

export const timeText = (iso: string): string => formats.time.format(Date.parse(iso));

/** The zone's short name at this moment. */
export const zoneAt = (iso: string): string =>
  formats.zone.formatToParts(Date.parse(iso)).find(({ type }) => type === 'timeZoneName')?.value ?? formats.timeZone;

/** What times on a page are: `UTC`, or `those of Africa/Nairobi`. */
export const zoneText = (): string => (formats.timeZone === 'UTC' ? 'UTC' : `those of ${formats.timeZone}`);

/** Digits grouped, and what stands before the decimals. */
export function wholeText(digits: string): string {
  return formats.whole ? formats.whole.format(BigInt(digits)) : digits.replace(/\B(?=(\d{3})+$)/g, '\u00a0');
}
export const decimalMark = (): string => formats.mark;

/** The bank's day of a moment: 2026-01-31. */
export const dayOf = (ms: number): string => formats.day.format(ms);

/**
 * The moment at which a day of the bank begins, some days later. What is no day goes to the API as
 * it is, which says so.
 */
export function momentOf(day: string, plusDays = 0): string {
  const midnight = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(day) + plusDays * 86_400_000 : Number.NaN;
  if (Number.isNaN(midnight)) return day;
  const offsetAt = (ms: number) => Date.parse(`${formats.parts.format(ms).replace(' ', 'T')}Z`) - ms;
  // The offset of the moment itself, which can be another than that of the same time in UTC.
  return new Date(midnight - offsetAt(midnight - offsetAt(midnight))).toISOString();
}

/** The moment at which it ends. */
export const endOf = (day: string): string => momentOf(day, 1);
