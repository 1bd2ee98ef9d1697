import { z } from 'zod';
import { violation } from './violation.ts';

/** Texts entered by people: what is accepted, and how it is normalized (contract: clients). */

// C0, DEL, and C1.
const controls = '\\u0000-\\u001f\\u007f-\\u009f';
/** Bidirectional controls: they change the visible order of characters. */
const bidi = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
const noncharacters = '\\ufdd0-\\ufdef\\ufffe\\uffff';
const shown = `[^${controls}${bidi}${noncharacters}\\u2028\\u2029]`;
const shownOrLineFeed = `(${shown}|\\n)`;

/** Any string that our JSON parser accepts, as a JSON Schema pattern. */
export const textWithoutNul = '^[^\\u0000]*$';

/** Letters and marks of scripts in which joiners change the letters beside them. */
const joining = `\\p{scx=${'Arab Syrc Mand Mong Nkoo Adlm Rohg Beng Deva Gujr Guru Knda Khmr Mlym Mymr Orya Sinh Taml Telu Tibt Bali Java Sund Cakm Newa Limb Mtei Sylo Saur Kthi Gran Tirh Sidd Modi Takr'
  .split(' ')
  .join('}\\p{scx=')}}`;
const betweenLetters = new RegExp(
  `(?<=[\\p{L}\\p{M}])(?<=[${joining}])[\\u200c\\u200d](?=[${joining}])(?=[\\p{L}\\p{M}])`,
  'gu',
);
/** Marks but the two that marks are compared with. */
const afterMark = /([\p{M}--[\u05b0\u3099]])[\u200c\u200d]/gv;
/**
 * Reports whether a mark is a virama (Canonical_Combining_Class 9), after which a word may end in a joiner (RFC 5892, A.1 and
 * A.2): normalization sorts marks by class, so it comes after one of class 8 and before one of class 10.
 */
const isVirama = (mark: string): boolean =>
  `${mark}\u3099`.normalize('NFD').endsWith(mark) && `\u05b0${mark}`.normalize('NFD').startsWith(mark);
const withoutNeeded = (value: string): string =>
  value.replace(betweenLetters, '').replace(afterMark, (all, mark: string) => (isVirama(mark) ? mark : all));

/** One emoji with its skin tone, or the flag of a region (UTS 51, ED-14a), without regard to whether it is recommended. */
const emojiElement =
  '[\\p{Emoji}&&\\p{ExtPict}](?:(?<=🏴)[\\u{e0030}-\\u{e0039}\\u{e0061}-\\u{e007a}]{3,6}\\u{e007f}|\\p{EMod}?\\ufe0f?)';
/** Emoji that joiners join (UTS 51, ED-16): families, professions. Keyboards leave variation selectors out. */
const emoji = new RegExp(`${emojiElement}(?:\\u200d${emojiElement})*`, 'gv');
/** What only an emoji sequence, or a script that needs it, may contain: joiners and tags. */
const marks = /\u200c|\u200d|[\u{e0000}-\u{e007f}]/u;

/** A rule is broken by a text in which it finds something, after line feeds, emoji, and joiners in their places are taken out. */
const rules: [RegExp, string][] = [
  [/\p{Cc}/u, 'must not contain control characters'],
  [new RegExp(`[${bidi}]`), 'must not contain characters that change the direction of writing'],
  [/[\u2028\u2029]/, 'must not contain line or paragraph separators'],
  [/[\u{e0000}-\u{e007f}]/u, 'must not contain tag characters'],
  // The range includes noncharacters.
  [/\p{Cn}/u, 'must not contain code points that are no characters'],
  [/[\u200c\u200d]/, 'must have joiners (ZWJ, ZWNJ) only where the script of its letters needs them'],
];
/** Those that Unicode ignores, the empty Braille pattern, and the marks of annotations. */
const invisible = /[\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u;
/** Variation selectors after the letters that have variants, and the vowel separator of Mongolian words. */
const variants =
  /(?<=\p{sc=Han})[\ufe00-\ufe02\u{e0100}-\u{e01ef}]|(?<=[\p{sc=Mymr}\p{sc=Phag}\p{sc=Mani}])\ufe00|(?<=[\p{sc=Mong}&&\p{L}])[\u180b-\u180d\u180f]|(?<=[\p{sc=Mong}&&\p{L}][\u180b-\u180d\u180f]?)\u180e(?=[\p{sc=Mong}&&\p{L}])/gv;
const visible = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{C}\u2800]/u;

interface Form {
  /** Allows line feeds. CRLF becomes LF. */
  lines?: boolean;
  /** Two names that look alike are the same: no emoji sequences, and no invisible character out of its place. */
  isName?: boolean;
}

function ruleBrokenBy(value: string, { lines = false, isName = false }: Form): string | undefined {
  const given = lines ? value.replaceAll('\n', ' ') : value;
  // Few texts have joiners or tags, and looking for emoji in 1 MiB of text takes a second.
  const checked = marks.test(given) ? withoutNeeded(isName ? given : given.replace(emoji, '')) : given;
  const broken = rules.find(([pattern]) => pattern.test(checked))?.[1];
  return (
    broken ??
    (isName && invisible.test(checked.replace(variants, '')) ? 'must not contain invisible characters' : undefined)
  );
}

/** Returns the rule of names that a text breaks, if it breaks one. */
export const faultInName = (value: string): string | undefined => ruleBrokenBy(value, { isName: true });

/**
 * A text of `min`-`max` characters (code points) in any script. It is trimmed, then checked. If `min` is positive, it
 * must have a visible character.
 */
export function text(min: number, max: number, form: Form = {}) {
  const any = form.lines === true ? shownOrLineFeed : shown;
  return z
    .string()
    .transform((value, ctx) => {
      const trimmed = (form.lines === true ? value.replaceAll('\r\n', '\n') : value).trim();
      const length = [...trimmed].length;
      if (length < min || length > max)
        return violation(ctx, 'validation_failed', `must have ${min} to ${max} characters`);
      const broken = ruleBrokenBy(trimmed, form);
      if (broken !== undefined) return violation(ctx, 'validation_failed', broken);
      if (min > 0 && !visible.test(trimmed))
        return violation(ctx, 'validation_failed', 'must have a visible character');
      return trimmed;
    })
    .meta({
      minLength: min,
      maxLength: max,
      pattern:
        min === 0
          ? `^\\s*${any}*\\s*$`
          : `^\\s*${any}*[^\\s${controls}${bidi}${noncharacters}\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200d\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufff8]${any}*\\s*$`,
    });
}

/** The name of a person or a company: a text without emoji sequences and invisible characters, but joiners in their places. */
export const nameText = (min: number, max: number) => text(min, max, { isName: true });
