import { z } from 'zod';
import { violation } from './violation.ts';

/** Texts and phone numbers entered by people: what is accepted, and how it is normalized (contract: clients). */

// C0, DEL, and C1.
const controls = '\\u0000-\\u001f\\u007f-\\u009f';
/** Bidirectional controls: they change the visible order of characters. */
const bidi = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
const noncharacters = '\\ufdd0-\\ufdef\\ufffe\\uffff';
const shown = `[^${controls}${bidi}${noncharacters}]`;
const shownOrLineFeed = `(${shown}|\\n)`;

/** Any string that our JSON parser accepts, as a JSON Schema pattern. */
export const textWithoutNul = '^[^\\u0000]*$';

const rules: [RegExp, string][] = [
  [/\p{Cc}/u, 'must not contain control characters'],
  [new RegExp(`[${bidi}]`), 'must not contain characters that change the direction of writing'],
  [/[\u{e0000}-\u{e007f}]/u, 'must not contain tag characters'],
  // The range includes noncharacters.
  [/\p{Cn}/u, 'must not contain code points that are no characters'],
  [
    /(?<![\p{L}\p{M}])[\u200c\u200d]|[\u200c\u200d](?![\p{L}\p{M}])/u,
    'must have joiners (ZWJ, ZWNJ) between letters or marks only',
  ],
];
const visible = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{C}\u2800]/u;

interface Form {
  /** Allows line feeds. CRLF becomes LF. */
  lines?: boolean;
}

function ruleBrokenBy(value: string, { lines = false }: Form): string | undefined {
  const checked = lines ? value.replaceAll('\n', ' ') : value;
  return rules.find(([broken]) => broken.test(checked))?.[1];
}

/**
 * A text of `min`-`max` characters (code points) in any script, trimmed. If `min` is positive, it must have a
 * visible character.
 */
export function text(min: number, max: number, form: Form = {}) {
  const any = form.lines === true ? shownOrLineFeed : shown;
  return z
    .string()
    .transform((value, ctx) => {
      const given = form.lines === true ? value.replaceAll('\r\n', '\n') : value;
      const broken = ruleBrokenBy(given, form);
      if (broken !== undefined) return violation(ctx, 'validation_failed', broken);
      const trimmed = given.trim();
      const length = [...trimmed].length;
      if (length < min || length > max)
        return violation(ctx, 'validation_failed', `must have ${min} to ${max} characters`);
      if (min > 0 && !visible.test(trimmed))
        return violation(ctx, 'validation_failed', 'must have a visible character');
      return trimmed;
    })
    .meta({
      minLength: min,
      maxLength: max,
      pattern:
        min === 0
          ? `^${any}*$`
          : `^${any}*[^\\s${controls}${bidi}${noncharacters}\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200d\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufff8]${any}*$`,
    });
}

/** Separators that may appear anywhere in a phone number. */
const separators = '[ .()-]*';
const digits = (least: number, most: number) => `(${separators}[0-9]){${least},${most}}`;
/** The JSON Schema pattern of `phone`: 7 to 15 digits, the first not 0. */
const phonePattern = `^(?!.*\\(0\\))${separators}(\\+${separators}|0${separators}0${separators})?[1-9]${digits(6, 14)}${separators}$`;

/** The beginning of a number with a country code. A blank may have been a plus. */
const international = /^\s*(?:(?:\+|00).*[1-9]|(?<=\s)[1-9])/s;

/**
 * Removes separators, and a trunk prefix in brackets after a country code, as in +44 (0)20. Takes linear time,
 * because callers can send 80 KB.
 */
function bareNumber(value: string): string {
  const bracket = value.indexOf('(');
  const isTrunk = value.startsWith('(0)', bracket) && international.test(value.slice(0, bracket));
  return (isTrunk ? value.slice(0, bracket) + value.slice(bracket + 3) : value).replace(/[\s.()-]/g, '');
}

/**
 * Converts a national number (leading single 0) to international form: with calling code 254, 0700 000 001
 * becomes +254700000001. Returns other values unchanged. Pure.
 */
export function withCallingCode(value: string, callingCode: string): string {
  const bare = bareNumber(value);
  return /^0[1-9]\d*$/.test(bare) ? `+${callingCode}${bare.slice(1)}` : value;
}

/** The fields and parameters that contain phone numbers. */
export const phoneFields = ['contact_number', 'ussd_phone_number', 'ussd_phone'] as const;

/**
 * A phone number in E.164 form with its plus. Spaces, dashes, dots, and brackets are removed; a leading 00
 * becomes a plus. A number without country code is refused. A plus that was decoded to a space
 * (`?ussd_phone=+254…`) is accepted.
 */
export const phone = z
  .string()
  .transform((value, ctx) => {
    const bare = bareNumber(value).replace(/^00/, '+').replace(/^\+/, '');
    const wrong = (rule: string) => violation(ctx, 'validation_failed', rule);
    if (/\p{Cc}/u.test(value) || !/^\d{7,15}$/.test(bare))
      return wrong('must be a phone number of 7 to 15 digits, such as +254700000001');
    if (bare.startsWith('0'))
      return wrong('must be an international number, such as +254700000001: this one is national, it begins with 0');
    return `+${bare}`;
  })
  .meta({
    description:
      'A phone number of 7 to 15 digits after + or 00; spaces, dashes, dots, and brackets are removed. A national number (with a leading 0) is accepted if the bank has a DEFAULT_CALLING_CODE',
    pattern: phonePattern,
    input_examples: ['+254700000001'],
  });
