import { currencyDigits, fromMinor, isCurrency, toMinor } from '#libs/contracts/money.ts';

/** Parses amounts that people type. */

// In V8 since Node 21, but not yet in the compiler's library.
const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };

/** The amount with all decimals of its currency, or an error message. */
export type TypedAmount = { amount: string } | { wrong: string };

const thousands = /^\d{1,3}([, '])\d{3}(?:\1\d{3})*$/;
/** Indian grouping: 12,34,567. */
const lakhs = /^\d{1,2}(?:,\d{2})+,\d{3}$/;
const pointedThousands = /^\d{1,3}(?:\.\d{3}){2,}$/;

/**
 * Parses an amount above 0 as people type it: `1500`, `1,500`, `1 500,50`, `1.500,50`, `KES 1,500`. An
 * ambiguous amount is refused with a message that asks which one is meant. Pure.
 */
export function typedAmount(typed: string, currency: string): TypedAmount {
  const text = typed
    .replace(/[\s\u00a0\u202f]+/g, ' ')
    .replace(/[’`]/g, "'")
    .trim();
  if (text === '') return { wrong: 'Enter an amount.' };
  const named = /^([a-z]{3}) ?(.+)$|^(.+?) ?([a-z]{3})$/i.exec(text);
  const code = (named?.[1] ?? named?.[4])?.toUpperCase();
  if (code !== undefined && isCurrency(code) && code !== currency)
    return { wrong: `The account is in ${currency}, not in ${code}.` };
  const digits = code === currency ? (named?.[2] ?? named?.[3] ?? '') : text;
  if (digits.startsWith('-') || digits.startsWith('−')) return { wrong: 'Enter an amount above 0.' };
  const decimal = plainDecimal(digits, currencyDigits(currency));
  return typeof decimal === 'string' ? exact(decimal, currency) : decimal;
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

const unreadable: TypedAmount = { wrong: 'This is not an amount. Write it as 1500, 1,500, or 1500.50.' };

/** Returns digits with a decimal point, or why the text is not an amount. */
function plainDecimal(text: string, places: number): string | TypedAmount {
  if (text.length > 40) return unreadable;
  if (/^\d+$/.test(text) || thousands.test(text) || lakhs.test(text) || pointedThousands.test(text)) {
    const isOneGroup = /^\d{1,3},\d{3}$/.test(text);
    // After a zero, or in a currency with three decimals, the separator may be a decimal comma.
    if (isOneGroup && (text.startsWith('0') || places >= 3)) return twoMeanings(text, places);
    return text.replace(/\D/g, '');
  }
  const parts = /^(.+)([.,])(\d+)$/.exec(text);
  const [, whole = '', mark = '', fraction = ''] = parts ?? [];
  const isGrouped =
    (thousands.test(whole) || lakhs.test(whole) || pointedThousands.test(whole) || /^\d{1,3}\.\d{3}$/.test(whole)) &&
    !whole.includes(mark);
  if (!/^\d+$/.test(whole) && !isGrouped) return unreadable;
  if (mark === '.' && fraction.length === 3 && places < 3 && /^[1-9]\d{0,2}$/.test(whole))
    return twoMeanings(text, places);
  return `${whole.replace(/\D/g, '')}.${fraction}`;
}

function twoMeanings(text: string, places: number): TypedAmount {
  const [whole = '', fraction = ''] = text.split(/[.,]/);
  const [more, less] = [`${whole}${fraction}`.replace(/^0+(?=\d)/, ''), `${whole}.${fraction.slice(0, places)}`];
  return {
    wrong:
      places === 0
        ? `Is this ${more}? Write it without a point.`
        : `Is this ${more}, or ${less}? Write one of the two.`,
  };
}

/** Adds two amounts from the API, the second with this sign. Pure. */
export function sumText(a: string, b: string, currency: string, sign: 1n | -1n): string {
  const [x, y] = [toMinor(a, currency), toMinor(b, currency)];
  if (typeof x !== 'bigint' || typeof y !== 'bigint')
    throw new RangeError('an amount from the API is invalid in its currency');
  return fromMinor(x + sign * y, currency);
}

/** Returns a JSON number with exactly these digits. Anything else is sent as a string, which the API rejects. */
export function jsonNumber(text: string): unknown {
  return /^(0|[1-9]\d*)(\.\d+)?$/.test(text) ? rawJSON(text) : text;
}
