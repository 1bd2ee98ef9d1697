import anyAscii from 'any-ascii';

/**
 * The form in which names are compared, the same for a name that is stored and for a text that is searched for
 * (contract: clients-22). Pure: it does not depend on the database, nor on a locale.
 *
 * any-ascii gives the letters of every Latin alphabet (æ, ø, þ, ð, œ, ł, đ, ħ, Hausa's ɓ …) and the digits of every script.
 * No other script is romanised: one name has several romanisations, and different names share one.
 */

/** Raise it when what these functions return changes: accounts then folds the stored names again. */
export const foldingVersion = 2;

const ascii = /^\p{ASCII}*$/u;

/** Equal for texts that are equal except for case: full case folding, as ß and SS. */
export function foldCase(text: string): string {
  if (ascii.test(text)) return text.toLowerCase();
  // Each direction knows pairs that the other does not: ẞ only becomes ß, and ſ only becomes S. ς is a σ at the end.
  return text.normalize('NFC').toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFC');
}

/** What keyboards have for an apostrophe and Unicode calls a symbol or a letter, and the joiner inside a word (ZWNJ). */
const apostrophes = /[\p{Sk}\u02b9-\u02df\u02e5-\u02ff\u07f4\u07f5\u200c\u275b-\u2760]/gu;
/** Accents, points, and harakat. The marks of other scripts are vowels or change the letter, except Devanagari's nukta. */
const marks =
  /[[[\p{sc=Zinh}\p{sc=Latn}\p{sc=Grek}\p{sc=Cyrl}\p{sc=Hebr}\p{sc=Arab}\p{sc=Syrc}]&&\p{M}]--[\u3099\u309a]]|\u093c|\u0640|\p{Default_Ignorable_Code_Point}/gv;
const latinOrDigit = /(?!\p{ASCII})[\p{sc=Latn}\p{Nd}]/gu;
/** Letters that Unicode has in two ways: Malayalam's chillus and Bengali's khanda ta are consonants with a virama. */
const withVirama: Record<string, string> = {
  ൺ: 'ണ',
  ൻ: 'ന',
  ർ: 'ര',
  ൽ: 'ല',
  ൾ: 'ള',
  ൿ: 'ക',
  ൔ: 'മ',
  ൕ: 'യ',
  ൖ: 'ഴ',
  ൎ: 'ര',
};
/** A hamza before waw has three seats, by country: رءوف, رئوف, and رؤوف. */
const hamzaBeforeWaw = /(?:[\u0649\u064a\u06cc]\p{M}*\u0654|\u0621)\p{M}*(?=\u0648)/gu;
/**
 * Letters that keyboards write differently: Arabic, Persian, Urdu, and Kurdish ones as Lucene normalizes them; Russian
 * ones lack the Cyrillic letters of other languages.
 */
const keyboards: [RegExp, string][] = [
  [/[ґғҕӷ]/g, 'г'],
  [/[қҝҟҡӄ]/g, 'к'],
  [/[ңҥӈӊ]/g, 'н'],
  [/[үұ]/g, 'у'],
  [/[ҳһӽӿ]/g, 'х'],
  [/[ҷҹӌ]/g, 'ч'],
  [/[іј]/g, 'и'],
  [/ө/g, 'о'],
  [/ә/g, 'а'],
  [/є/g, 'е'],
  [/җ/g, 'ж'],
  [/ҙ/g, 'з'],
  [/ҫ/g, 'с'],
  [/ҭ/g, 'т'],
  [/\u0671/g, '\u0627'],
  [/[\u0620\u0649\u06cc\u06cd\u06ce\u06d0\u06d2]/g, '\u064a'],
  [/[\u06a9\u06aa]/g, '\u0643'],
  [/[\u0629\u06be\u06c1\u06c3\u06d5]/g, '\u0647'],
  [/\u06ba/g, '\u0646'],
];

function fold(text: string): string {
  if (ascii.test(text)) return text.toLowerCase();
  const plain = foldCase(text.replace(apostrophes, "'").normalize('NFKD'))
    .normalize('NFKD')
    .replace(apostrophes, "'")
    .replace(/([ൺൻർൽൾൿൔൕൖൎ])\u0d4d?/g, (_, letter: string) => `${withVirama[letter]}\u0d4d`)
    .replaceAll('ৎ', 'ত\u09cd')
    .replace(hamzaBeforeWaw, '\u0648')
    .replace(marks, '')
    // Katakana as hiragana: forms ask for names in either.
    .replace(/[\u30a1-\u30f6\u30fd\u30fe]/g, (kana) => String.fromCharCode(kana.charCodeAt(0) - 0x60))
    // Eng is n in CLDR's table of Latin letters, as Sami and Luganda are written without it.
    .replace(latinOrDigit, (letter) => (letter === 'ŋ' ? 'n' : anyAscii(letter)));
  return keyboards
    .reduce((name, [letters, letter]) => name.replace(letters, letter), plain)
    .toLowerCase()
    .normalize('NFC');
}

/** A word of a name: O'Brien has the parts o and brien. */
interface Word {
  whole: string;
  parts: string[];
}

const betweenWords = /[\s,;]+/u;
const insideWord = /[^\p{L}\p{M}\p{N}\p{So}]+/u;

/** The words of a name, folded. A name that has neither letters, digits, nor pictures is one word. */
export function foldWords(name: string): Word[] {
  const folded = fold(name);
  const words = folded.split(betweenWords).map((word) => word.split(insideWord).filter((part) => part !== ''));
  const known = words.filter((parts) => parts.length > 0).map((parts) => ({ whole: parts.join(''), parts }));
  const rest = folded.replace(/\s+/gu, '');
  return known.length > 0 || rest === '' ? known : [{ whole: rest, parts: [rest] }];
}

/** The second usual spelling of letters. */
const spelled: Record<string, string> = { ä: 'ae', ö: 'oe', ü: 'ue', å: 'aa', ø: 'oe', ŋ: 'ng', đ: 'dj' };

/** A name in its usual spellings: Müller and Mueller. */
export function spellings(name: string): string[] {
  if (ascii.test(name)) return [name];
  const lower = name.normalize('NFC').toLowerCase();
  return [...new Set([lower, lower.replace(/[äöüåøŋđ]/g, (letter) => spelled[letter] ?? letter)])];
}
