import { type CountryCode, isSupportedCountry, parsePhoneNumberFromString } from 'libphonenumber-js/max';
import { z } from 'zod';
import { violation } from './violation.ts';

/**
 * Phone numbers as people write them, in the one form (E.164 with its plus) that the numbering plan of the country
 * gives them, by libphonenumber's metadata (contract: clients-13, clients-14, clients-15). Money is sent to these numbers.
 */

export const phoneFields = ['contact_number', 'ussd_phone_number', 'ussd_phone'] as const;

/** The country that a number without `+` or `00` belongs to: an ISO 3166 code, or a calling code. */
export type HomeCountry = { country: string } | { callingCode: string };

/** The home country of a bank by its settings: the country, if set, else the calling code. */
export function homeCountry(code: string | undefined): HomeCountry | undefined {
  if (code === undefined) return undefined;
  return isCountry(code) ? { country: code } : { callingCode: code };
}

/** Whether the code is that of a country with a numbering plan (ISO 3166, upper case). */
export const isCountry = (code: string): code is CountryCode => isSupportedCountry(code as CountryCode);

const digit = /\p{Nd}/u;
const otherDigits = /(?!\p{ASCII})\p{Nd}/gu;

/** The ASCII digit for one of another script: Unicode has them in runs of ten, from 0 to 9. */
function asciiDigit(character: string): string {
  let before = 0;
  while (digit.test(String.fromCodePoint((character.codePointAt(0) ?? 0) - before - 1))) before++;
  return String(before % 10);
}

/** Spaces but line breaks, and the invisible marks with which contact cards surround a number. */
const blanks = /[\t\p{Z}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;
/** Dashes, dots, and brackets. */
const punctuation = /[\p{Pd}\p{Ps}\p{Pe}\u2212.\u00b7\u2022\u2024\u2219\u22c5\u30fb\ufe52\uff0e\uff65]/gu;
const trunkPrefix = /\p{Ps}0\p{Pe}/u;
/** Spreadsheets show a number as 254700000001.0 or 254700000001,00; without its separator it would be another number. */
const calculated = /^[^.,]*\d{5,}[.,\u00b7\u066b\ufe52\uff0c\uff0e]0+$/;
const written = /^\+?\d{4,32}$/;
const longest = 100;

const withoutBlanks = (value: string): string =>
  value.length > longest
    ? ''
    : value
        .trim()
        .replace(blanks, '')
        .replace(/[\ufe62\uff0b]/g, '+')
        .replace(otherDigits, asciiDigit);

/** Returns a number without separators, with + for a leading 00, or undefined if it is none. Takes linear time. */
export function bareNumber(value: string): string | undefined {
  const given = withoutBlanks(value);
  const digits = given.replace(punctuation, '').replace(/^00/, '+');
  return written.test(digits) && !calculated.test(given) ? digits : undefined;
}

const parse = (digits: string) => parsePhoneNumberFromString(digits, { extract: false });

/**
 * Returns the E.164 form of a number with country code, or undefined if its plan has no such number. A trunk prefix in
 * brackets, as in +44 (0)20, is part of the number only where the plan says so, and in Italy a mobile number has none. A
 * number that the plan allows but does not know as assigned is accepted, unless it would be a second form of another
 * number: it begins with the trunk prefix, or lacks the 0 that belongs to it.
 */
function inPlan(value: string, digits: string): string | undefined {
  const parsed = parse(digits);
  const without = bareNumber(withoutBlanks(value).replace(trunkPrefix, ''));
  const other = without === undefined || without === digits ? undefined : parse(without);
  if (other?.isValid() === true && (parsed?.isValid() !== true || other.getType() === 'MOBILE')) return other.number;
  if (parsed?.isPossible() !== true || parsed.isValid()) return parsed?.isValid() === true ? parsed.number : undefined;
  const { number, nationalNumber, countryCallingCode: defaultCallingCode } = parsed;
  if (nationalNumber.startsWith('0')) {
    const shorter = parse(`+${defaultCallingCode}${nationalNumber.replace(/^0+/, '')}`);
    if (shorter?.isPossible() === true) return shorter.isValid() ? shorter.number : undefined;
  }
  const longer = parse(`+${defaultCallingCode}0${nationalNumber}`);
  if (longer?.isValid() === true) return undefined;
  const dialledAtHome = parsePhoneNumberFromString(nationalNumber, { defaultCallingCode, extract: false });
  return dialledAtHome?.number === number ? number : undefined;
}

/**
 * Returns a number without `+` or `00` as one of `home`, with country code: in KE or with 254, 0700 000 001 and
 * 700000001 are +254700000001. Returns other values unchanged, and so a number that begins with the country code and
 * may or may not mean it: 4915123456789 in DE. `phone` says whether the plan has the number. Pure.
 */
export function withHomeCountry(value: string, home: HomeCountry): string {
  const digits = bareNumber(value);
  if (digits === undefined || digits.startsWith('+')) return value;
  const place =
    'country' in home ? { defaultCountry: home.country as CountryCode } : { defaultCallingCode: home.callingCode };
  const own = parsePhoneNumberFromString(digits, { ...place, extract: false });
  const full = own !== undefined && digits.startsWith(own.countryCallingCode) ? parse(`+${digits}`) : undefined;
  if (own === undefined || full?.isPossible() !== true || full.number === own.number) return own?.number ?? value;
  if (own.isValid() !== full.isValid() && (full.isValid() || own.getType() === 'MOBILE'))
    return (full.isValid() ? full : own).number;
  return value;
}

function toE164(value: string, ctx: z.RefinementCtx): string {
  const wrong = (rule: string) => violation(ctx, 'validation_failed', rule);
  if (calculated.test(withoutBlanks(value)))
    return wrong('must be a phone number: this one ends in .0, as a spreadsheet writes it');
  const digits = bareNumber(value);
  if (digits === undefined) return wrong('must be a phone number of 7 to 15 digits, such as +254700000001');
  if (!digits.startsWith('+'))
    return wrong(
      'must be an international number, such as +254700000001: this one is national or can be read in two ways, it has no + or 00',
    );
  return (
    inPlan(value, digits) ??
    wrong('must be a number that exists: the numbering plan of its country has none of this length or beginning')
  );
}

const meta = {
  description:
    'A phone number with + or 00 and its country code; spaces, dashes, dots, and brackets are removed, and it is kept in the E.164 form of its numbering plan. A number without country code is accepted if the bank has a DEFAULT_COUNTRY',
  pattern: '^[^A-Za-z]+$',
  input_examples: ['+254700000001'],
};

/**
 * A phone number in E.164 form. Separators and invisible marks are removed; a leading 00 becomes a plus. A number
 * without country code, and one that its numbering plan does not have, is refused by name.
 */
export const phone = z.string().transform(toE164).meta(meta);

/** Whether a plus of a query parameter was decoded to a blank (contract: clients-19). */
export const hasLostPlus = (value: string): boolean => /^[\p{Ps}\p{Cf}]* [1-9]/u.test(value);

/** A phone number in a query parameter, which may have lost its plus. */
export const phoneParameter = z
  .string()
  .transform((value, ctx) => toE164(hasLostPlus(value) ? value.replace(' ', '+') : value, ctx))
  .meta(meta);
