import { z } from 'zod';
import { violation } from './violation.ts';

/** Texts entered by people: what is accepted, and how it is normalized (contract: clients). */

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
