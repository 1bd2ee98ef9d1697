import { currencies, currencyDigits, fromMinor, isCurrency, plainMoney, toMinor } from '#libs/contracts/money.ts';
import { bankLocale, decimalMark, groupMark } from '#libs/service/formats.ts';

/** Parses amounts that people type. */

// In V8 since Node 21, but not yet in the compiler's library.
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };

/** The amount with all decimals of its currency, or an error message. */
export type TypedAmount = { amount: string } | { wrong: string };

/**
 * Parses an amount above 0 as people type it: `1500`, `1,500`, `1 500,50`, `KES 1,500`, `Ksh 1,500/-`, `١٥٠٠`. Asks what
 * is meant if a mark has more digits behind it than the currency and does not group digits in the bank's language, or if
 * it may be either. Marks of other currencies are refused.
 */
export function typedAmount(typed: string, currency: string): TypedAmount {
  if (typed.trim() === '') return { wrong: 'Enter an amount.' };
  if (typed.length > 80) return unreadable;
  const [, before = '', number, dash = '', after = ''] =
    /^(\D*)(\d(?:.*\d)?) ?(\/[-=]|[.,:] ?--?)?(\D*)$/.exec(plainText(typed)) ?? [];
  if (number === undefined) return unreadable;
  // Thousands and millions, not kwacha and maloti.
  if (/^ ?[km]$/i.test(after)) return unreadable;
  const names = [before.replace('-', ''), after].map((part) => part.trim()).filter((part) => part !== '');
  const others = names.flatMap((name) => findOthers(name, currency));
  if (others.length > 0) return { wrong: `The account is in ${currency}, not in ${others.slice(0, 3).join(' or ')}.` };
  if (!names.every((name) => isNamed(name, currency)) || (dash.startsWith('/') && !isWritten(currency, dashed)))
    return unreadable;
  if (before.includes('-')) return { wrong: 'Enter an amount above 0.' };
  const places = currencyDigits(currency);
  // The point of Rs.500 ends an abbreviation, that of $.50 does not, and that of Rs.50 may be either.
  if (before.endsWith('.')) {
    if (!/\p{L}\.$/u.test(before) || toMark(before) === toMark(currency)) return unreadable;
    if (number.length <= places) return twoMeanings('0', number, places);
  }
  const decimal = plainDecimal(number, places, /^[.,]/.test(dash) ? dash.charAt(0) : undefined);
  if (typeof decimal !== 'string') return decimal;
  return /^[.,:]/.test(dash) && decimal.includes('.') ? unreadable : exact(decimal, currency);
}

/** Returns the text with digits of ASCII, one kind of blanks, apostrophes, and dashes, and without invisible marks. */
function plainText(typed: string): string {
  // Their compatible forms would be digits: 1² is not 12.
  if (/\p{No}/u.test(typed)) return '';
  const text = typed
    .replace(/[’‘ʼ`´′]/g, "'")
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '');
  return text
    .replace(/\s+/g, ' ')
    .replace(/\p{Pd}|−/gu, '-')
    .replace(/\P{ASCII}/gu, toAscii)
    .trim();
}

let ascii: ReadonlyMap<string, string> | undefined;

/** Returns the ASCII form of a digit of any script, and of a mark between Arabic digits. */
function toAscii(sign: string): string {
  const digits = (system: string) =>
    [...new Intl.NumberFormat(`en-u-nu-${system}`, { useGrouping: false }).format(9876543210n)].reverse();
  ascii ??= new Map([
    ...Intl.supportedValuesOf('numberingSystem').flatMap((system) =>
      digits(system).map((digit, value) => [digit, String(value)] as const),
    ),
    ['٫', '.'],
    ['٬', ','],
    ['،', ','],
  ]);
  return ascii.get(sign) ?? sign;
}

/** In these currencies people write 1500/- or 1500/= for a whole amount, and Rs for rupees. */
const [dashed, rupees] = [/Shilling|Rupee|Taka/, /Rupee/];
const isWritten = (currency: string, names: RegExp): boolean =>
  names.test(new Intl.DisplayNames('en', { type: 'currency' }).of(currency) ?? '');

/** What people write besides the marks of CLDR, which lists one or two per currency. */
const written: Readonly<Record<string, string>> = {
  AED: 'Dh Dhs',
  AUD: 'AU$',
  BDT: 'Tk Taka',
  BYN: 'Br',
  BHD: 'BD',
  CAD: 'C$',
  CHF: 'Fr Frs SFr',
  CNY: '元 圆 圓 RMB',
  DZD: 'DA',
  EGP: 'LE E£',
  ERN: 'Nfk',
  ETB: 'Br Birr',
  GHS: '₵ GH¢ GHC',
  GMD: 'D',
  JOD: 'JD',
  JPY: '円 JP¥',
  KES: 'Sh Shs Kshs',
  KRW: '원',
  KWD: 'KD',
  LSL: 'M L',
  MAD: 'Dh Dhs',
  MVR: 'Rf',
  MWK: 'MK',
  NGN: 'N',
  OMR: 'RO',
  PGK: 'K',
  PHP: 'P',
  QAR: 'QR',
  RWF: 'Frw',
  SAR: 'SR',
  SCR: 'SR',
  SGD: 'S$',
  SLE: 'Le',
  SOS: 'Sh Shs SoSh',
  SZL: 'E',
  TND: 'DT',
  TRY: 'TL',
  TWD: '元',
  TZS: 'Sh Shs Tshs',
  UGX: 'Sh Shs USh Ushs',
  USD: 'US$',
  XAF: 'CFA',
  XOF: 'CFA',
  ZMW: 'K ZK',
};

/** Returns a mark without blanks, points, and capitals. */
const toMark = (text: string): string => plainText(text).replace(/[ .]/g, '').toLowerCase();

const marksByCurrency = new Map<string, ReadonlySet<string>>();

/** Lists the marks of a currency, such as kes and ksh: its code, those in English and where it is used, and the written ones. */
function listMarks(currency: string): ReadonlySet<string> {
  const known = marksByCurrency.get(currency);
  if (known) return known;
  // A code begins with that of the country.
  const region = currency.startsWith('X') ? '001' : currency.slice(0, 2);
  const marks = new Set(
    [
      currency,
      symbolIn('en', currency, 'symbol'),
      symbolIn('en', currency, 'narrowSymbol'),
      symbolIn(new Intl.Locale(`und-${region}`).maximize().toString(), currency, 'symbol'),
      ...(written[currency]?.split(' ') ?? []),
      ...(isWritten(currency, rupees) ? ['Rs'] : []),
    ].map(toMark),
  );
  marksByCurrency.set(currency, marks);
  return marks;
}

const ownMarks = new Map<string, ReadonlySet<string>>();

/** Lists the marks of an account's currency, which may also be written as its country does in English, or as the bank does. */
function listOwnMarks(currency: string): ReadonlySet<string> {
  const key = `${currency} ${bankLocale()}`;
  const known = ownMarks.get(key);
  if (known) return known;
  const symbols = ['en-001', `en-${currency.slice(0, 2)}`, bankLocale()].flatMap((locale) => [
    symbolIn(locale, currency, 'symbol'),
    symbolIn(locale, currency, 'narrowSymbol'),
  ]);
  const marks = new Set([...listMarks(currency), ...symbols.map(toMark)]);
  ownMarks.set(key, marks);
  return marks;
}

function symbolIn(locale: string | undefined, currency: string, currencyDisplay: 'symbol' | 'narrowSymbol'): string {
  const parts = new Intl.NumberFormat(locale ?? 'en', { style: 'currency', currency, currencyDisplay }).formatToParts(
    1,
  );
  return parts.find(({ type }) => type === 'currency')?.value ?? currency;
}

/** Reports whether the text is a mark of the currency, or several with blanks between them. */
function isNamed(text: string, currency: string): boolean {
  const marks = listOwnMarks(currency);
  return marks.has(toMark(text)) || text.split(' ').every((part) => marks.has(toMark(part)));
}

/** Returns the other currencies whose mark the text is, if it is none of this one: $ is USD, and kr any of several. */
function findOthers(text: string, currency: string): string[] {
  const mark = toMark(text);
  if (isNamed(text, currency)) return [];
  if (isCurrency(mark.toUpperCase())) return [mark.toUpperCase()];
  const found = currencies.filter((other) => listMarks(other).has(mark));
  if (found.length < 2) return found;
  const main = found.filter((other) => toMark(symbolIn('en', other, 'symbol')) === mark);
  return main.length > 0 ? main : found;
}

function exact(decimal: string, currency: string): TypedAmount {
  const minor = toMinor(decimal, currency);
  const places = currencyDigits(currency);
  if (minor === 'invalid_amount_precision')
    return {
      wrong:
        places === 0
          ? `${currency} has no decimals: enter a whole amount.`
          : `${currency} has ${places} decimals at most.`,
    };
  if (minor === 'amount_too_large') return { wrong: 'This is more than the bank accepts in one operation.' };
  return minor === 0n ? { wrong: 'Enter an amount above 0.' } : { amount: fromMinor(minor, currency) };
}

const unreadable: TypedAmount = { wrong: 'This is not an amount. Write it as 1500 or 1500.50.' };

/** 1 234 567, Indian 12 34 567, and 1 0000 0000 by four. */
const groupings = [/^[1-9]\d{0,2}(?: \d{3})+$/, /^[1-9]\d?(?: \d{2})+ \d{3}$/, /^[1-9]\d{0,3}(?: \d{4})+$/];
const isGrouped = (parts: string[]): boolean => groupings.some((grouping) => grouping.test(parts.join(' ')));

/** Returns digits with a decimal point, or why the text is not an amount. `decimal`: the decimal mark, if it is known. */
function plainDecimal(text: string, places: number, decimal: string | undefined): string | TypedAmount {
  // Any other sign, as in 100-200 or 1e500, makes it a range, a sum, or a power.
  if (text.length > 40 || /[^\d.,' ]/.test(text)) return unreadable;
  const [parts, marks] = [text.split(/\D/), text.replace(/\d+/g, '')];
  const [last = '', mark = ''] = [parts.at(-1), marks.at(-1)];
  const [whole, isUniform] = [parts.slice(0, -1), new Set(marks).size === 1];
  if (marks === '' || (marks.length > 1 && isUniform && isGrouped(parts))) return parts.join('');
  const isPoint = mark === '.' || mark === ',';
  if (isUniform && isGrouped(parts) && last.length === 3) {
    const isGroup = decimal === undefined ? mark === groupMark() && places < 3 : mark !== decimal;
    if (!isPoint || isGroup) return parts.join('');
    if (mark !== (decimal ?? decimalMark()) || places < 3) return twoMeanings(whole.join(''), last, places);
  }
  const others = marks.slice(0, -1);
  if (!isPoint || others.includes(mark) || new Set(others).size > 1 || (others !== '' && !isGrouped(whole)))
    return unreadable;
  return last.length > places && /^0*$/.test(last.slice(places))
    ? twoMeanings(whole.join(''), last, places)
    : `${whole.join('')}.${last}`;
}

/** Asks whether the mark groups digits or separates decimals. */
function twoMeanings(whole: string, fraction: string, places: number): TypedAmount {
  const more = `${whole}${fraction}`.replace(/^0+(?=\d)/, '');
  if (places === 0 && /[1-9]/.test(fraction)) return { wrong: `Is this ${more}? Write it without a point.` };
  const less = `${whole.replace(/^0+(?=\d)/, '')}${places === 0 ? '' : decimalMark()}${fraction.slice(0, places)}`;
  return { wrong: `Is this ${more}, or ${less}? Write one of the two.` };
}

/** Adds two amounts from the API, the second with this sign. Pure. */
export function sumText(a: string, b: string, currency: string, sign: 1n | -1n): string {
  const [x, y] = [toMinor(a, currency), toMinor(b, currency)];
  if (typeof x !== 'bigint' || typeof y !== 'bigint')
    throw new RangeError('an amount from the API is invalid in its currency');
  return fromMinor(x + sign * y, currency);
}

/** Returns an amount from the API in minor units. It may be negative, and a sum that is more than one operation can have. Pure. */
export const minorOf = (decimal: string, currency: string): bigint =>
  BigInt(plainMoney(decimal, currency).replace('.', ''));

/** Returns the second amount less the first. Pure. */
export const amountBetween = (from: string, to: string, currency: string): string =>
  fromMinor(minorOf(to, currency) - minorOf(from, currency), currency);

/**
 * Parses the amount of a limit, which may be 0. Returns undefined for an empty text, which means no limit.
 */
export function typedLimit(typed: string, currency: string): TypedAmount | undefined {
  const text = typed.trim();
  if (text === '') return undefined;
  return /^0+([.,]0*)?$/.test(text) ? { amount: '0' } : typedAmount(text, currency);
}

/** Returns the amount as it is shown in a field, so that it is read again as the same amount; nothing for nothing. */
export const fieldAmount = (decimal: string | undefined, currency: string): string =>
  decimal === undefined ? '' : plainMoney(decimal, currency).replace('.', decimalMark());

/** Returns a JSON number with exactly these digits. Anything else is sent as a string, which the API rejects. */
export function jsonNumber(text: string): unknown {
  return /^(0|[1-9]\d*)(\.\d+)?$/.test(text) ? rawJSON(text) : text;
}
