import { z } from 'zod';

/**
 * Money without floating point: the source text of a JSON number in REST, a decimal string in messages, and
 * integer minor units (bigint) in the ledger. Currencies and their decimal places are those of ISO 4217, list one as
 * of amendment 180 (2026-01-01); `Intl` has other decimal places for 29 of them.
 */
const digitsByCurrency = new Map<string, number>();
const codesByDigits: Record<number, string> = {
  0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
  2:
    'AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY ' +
    'COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS ' +
    'INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR ' +
    'MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP ' +
    'STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG',
  3: 'BHD IQD JOD KWD LYD OMR TND',
  4: 'CLF UYW',
};
for (const [digits, codes] of Object.entries(codesByDigits)) {
  for (const code of codes.split(' ')) digitsByCurrency.set(code, Number(digits));
}

/**
 * The days on which currencies were withdrawn. No account is opened in them. Those that are listed above had accounts,
 * which go on.
 */
const withdrawals = new Map([
  ['CUC', '2021-06-01'],
  ['HRK', '2023-01-01'],
  ['SLL', '2024-01-01'],
  ['ZWL', '2024-09-01'],
  ['ANG', '2025-03-31'],
  ['BGN', '2026-01-01'],
]);

/** Returns the day on which a currency was withdrawn, or undefined if it was not. */
export const withdrawnOn = (code: string): string | undefined => withdrawals.get(code);

/** The largest amount and customer balance in minor units. 15 digits survive any IEEE double unchanged. */
export const maxMinor = 10n ** 15n - 1n;

export const currencies: readonly string[] = [...digitsByCurrency.keys()].sort();

export function isCurrency(code: string): boolean {
  return digitsByCurrency.has(code);
}

/**
 * Returns the number of decimal places of a currency (0, 2, 3, or 4). Throws for an unknown code; callers check
 * `isCurrency` first.
 */
export function currencyDigits(code: string): number {
  const digits = digitsByCurrency.get(code);
  if (digits === undefined) throw new Error(`unknown currency ${code}`);
  return digits;
}

/** The source text of a JSON number, kept so that no digit is lost while parsing. */
export class NumberText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** The maximum length of a result of `canonicalDecimal`: 40 characters shifted by an exponent of 30. */
export const maxDecimalLength = 72;

const jsonNumber = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * Returns the exact value of a JSON number as a plain decimal without exponent or redundant zeros; `-0` becomes
 * `0`. Returns undefined if the text is not a number, has more than 40 characters, or has an exponent beyond
 * 30, without expanding it.
 */
export function canonicalDecimal(text: string): string | undefined {
  if (text.length > 40) return undefined;
  const match = jsonNumber.exec(text);
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponentText = '0'] = match;
  const exponent = Number(exponentText);
  if (Math.abs(exponent) > 30) return undefined;
  const digits = whole + fraction;
  const point = whole.length + exponent;
  const padded = point <= 0 ? '0'.repeat(1 - point) + digits : digits.padEnd(point, '0');
  const at = Math.max(point, 1);
  const left = padded.slice(0, at).replace(/^0+(?=\d)/, '');
  const right = padded.slice(at).replace(/0+$/, '');
  const value = right === '' ? left : `${left}.${right}`;
  return sign === '-' && value !== '0' ? `-${value}` : value;
}

export type MoneyFault = 'invalid_amount_precision' | 'amount_too_large';

/**
 * Converts a canonical decimal to minor units. Returns the violated rule if it has too many decimal places for
 * the currency or exceeds 10^15 - 1 minor units.
 */
export function toMinor(decimal: string, currency: string): bigint | MoneyFault {
  const digits = currencyDigits(currency);
  const point = decimal.indexOf('.');
  const fraction = point < 0 ? '' : decimal.slice(point + 1);
  if (fraction.length > digits && /[1-9]/.test(fraction.slice(digits))) return 'invalid_amount_precision';
  const whole = point < 0 ? decimal : decimal.slice(0, point);
  const minor = BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0'));
  return minor > maxMinor || minor < -maxMinor ? 'amount_too_large' : minor;
}

/** Converts minor units to a decimal string with all decimal places of the currency: 1050n USD is "10.50". */
export function fromMinor(minor: bigint, currency: string): string {
  const digits = currencyDigits(currency);
  if (digits === 0) return minor.toString();
  const negative = minor < 0n;
  const text = (negative ? -minor : minor).toString().padStart(digits + 1, '0');
  const at = text.length - digits;
  return `${negative ? '-' : ''}${text.slice(0, at)}.${text.slice(at)}`;
}

/**
 * Marks a decimal string that REST shows as a JSON number: replies and events have money as decimal strings (the
 * gateway's presenter converts it), and times in ISO 8601 UTC with three decimals.
 */
export const money = z
  .string()
  .regex(/^-?\d+(\.\d+)?$/)
  .meta({ money: true });

/** Formats an amount for programs, with all digits of its currency and without grouping. */
export function plainMoney(decimal: string, currency: string | null): string {
  const [whole = '', fraction = ''] = decimal.split('.');
  const digits = currency !== null && isCurrency(currency) ? currencyDigits(currency) : fraction.length;
  return digits > 0 ? `${whole}.${fraction.padEnd(digits, '0')}` : whole;
}
