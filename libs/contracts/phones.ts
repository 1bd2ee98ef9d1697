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
export function homeCountry(country: string | undefined, callingCode: string | undefined): HomeCountry | undefined {
  return country !== undefined ? { country } : callingCode !== undefined ? { callingCode } : undefined;
}

/** Whether the code is that of a country with a numbering plan (ISO 3166, upper case). */
export const isCountry = (code: string): code is CountryCode => isSupportedCountry(code as CountryCode);

/** Spaces, dashes, dots, brackets, and the invisible marks with which contact cards surround a number. */
const separators = /[\p{Zs}\p{Pd}\p{Cf}\u2212.()]/gu;
const written = /^\+?\d{4,32}$/;
const longest = 100;

/** Returns a number without separators, with + for a leading 00, or undefined if it is none. Takes linear time. */
export function bareNumber(value: string): string | undefined {
  if (value.length > longest || looksCalculated(value)) return undefined;
  const digits = value.trim().replace(separators, '').replace(/^00/, '+');
  return written.test(digits) ? digits : undefined;
}

/** Spreadsheets show a number as 254700000001.0 or 254700000001,00; without its separator it would be another number. */
const looksCalculated = (value: string): boolean =>
  value.length <= longest && /^[^.,]*\d{5,}[.,]0{1,2}\s*$/.test(value);

/**
 * Returns the E.164 form of a number with country code, or undefined if its plan has no such number. A number that
 * the plan allows but does not know as assigned is accepted, unless it begins with the trunk prefix: then it would be
 * a second form of another number. A trunk prefix in brackets, as in +44 (0)20, is part of the number only where the
 * plan says so.
 */
function inPlan(value: string, digits: string): string | undefined {
  const parsed = parsePhoneNumberFromString(digits, { extract: false });
  if (parsed?.isValid() === true) return parsed.number;
  if (value.includes('(0)')) {
    const without = bareNumber(value.replace('(0)', ''));
    const other = without === undefined ? undefined : parsePhoneNumberFromString(without, { extract: false });
    if (other?.isValid() === true) return other.number;
  }
  if (parsed?.isPossible() !== true) return undefined;
  const { number, nationalNumber, countryCallingCode: defaultCallingCode } = parsed;
  const dialledAtHome = parsePhoneNumberFromString(nationalNumber, { defaultCallingCode, extract: false });
  return dialledAtHome?.number === number ? number : undefined;
}

/**
 * Returns a number without `+` or `00` as one of `home`, with country code: in KE or with 254, 0700 000 001 and
 * 700000001 are +254700000001. Returns other values unchanged. `phone` says whether the plan has the number. Pure.
 */
export function withHomeCountry(value: string, home: HomeCountry): string {
  const digits = bareNumber(value);
  if (digits === undefined || digits.startsWith('+')) return value;
  const place =
    'country' in home ? { defaultCountry: home.country as CountryCode } : { defaultCallingCode: home.callingCode };
  return parsePhoneNumberFromString(digits, { ...place, extract: false })?.number ?? value;
}

function toE164(value: string, ctx: z.RefinementCtx): string {
  const wrong = (rule: string) => violation(ctx, 'validation_failed', rule);
  if (looksCalculated(value)) return wrong('must be a phone number: this one ends in .0, as a spreadsheet writes it');
  const digits = bareNumber(value);
  if (digits === undefined) return wrong('must be a phone number of 7 to 15 digits, such as +254700000001');
  if (!digits.startsWith('+'))
    return wrong('must be an international number, such as +254700000001: this one is national, it has no + or 00');
  return (
    inPlan(value, digits) ??
    wrong('must be a number that exists: the numbering plan of its country has none of this length or beginning')
  );
}

const meta = {
  description:
    'A phone number with + or 00 and its country code; spaces, dashes, dots, and brackets are removed, and it is kept in the E.164 form of its numbering plan. A number without country code is accepted if the bank has a DEFAULT_COUNTRY',
  pattern: '^[^A-Za-z]*[0-9][^A-Za-z]*$',
  input_examples: ['+254700000001'],
};

/**
 * A phone number in E.164 form. Separators and invisible marks are removed; a leading 00 becomes a plus. A number
 * without country code, and one that its numbering plan does not have, is refused by name.
 */
export const phone = z.string().transform(toE164).meta(meta);

/** Whether a plus of a query parameter was decoded to a blank (contract: clients-19). */
export const hasLostPlus = (value: string): boolean => /^ [1-9]/.test(value);

/** A phone number in a query parameter, which may have lost its plus. */
export const phoneParameter = z
  .string()
  .transform((value, ctx) => toE164(hasLostPlus(value) ? `+${value.trimStart()}` : value, ctx))
  .meta(meta);
