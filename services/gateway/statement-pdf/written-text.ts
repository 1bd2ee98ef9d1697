import { createRequire } from 'node:module';
import bidiFactory, { type Bidi } from 'bidi-js';
import type PDFDocument from 'pdfkit';

/**
 * Text of any script on a page: pdfkit takes what one font has and reads from left to right; here
 * each part of a line gets a font that has it, and right-to-left parts stand where the Unicode
 * bidirectional algorithm puts them.
 */

// Its types are those of a module, what is loaded is CommonJS.
const bidi = (bidiFactory as unknown as () => Bidi)();
const { resolve } = createRequire(import.meta.url);

/**
 * In the order in which they are tried: Latin, Greek, Cyrillic and Devanagari are in the first,
 * what is written in Arabic letters in the second.
 */
const fontFiles = {
  regular: '@expo-google-fonts/noto-sans/400Regular/NotoSans_400Regular.ttf',
  arabic: '@expo-google-fonts/vazirmatn/400Regular/Vazirmatn_400Regular.ttf',
  bold: '@expo-google-fonts/noto-sans/700Bold/NotoSans_700Bold.ttf',
} as const;
type FontName = keyof typeof fontFiles;

/** Stands for a character that no font here has. */
const missing = '\uFFFD';

interface Font {
  hasGlyphForCodePoint(codePoint: number): boolean;
}

interface Part {
  font: FontName;
  text: string;
  width: number;
  options: PDFKit.Mixins.TextOptions;
}

/**
 * The font takes letters such as ị apart into a letter and its mark: then who copies text from the
 * file would get another letter. Whole ones are in it too.
 */
const whole = { features: { ccmp: false } } as unknown as PDFKit.Mixins.TextOptions;

/** A line of a text, which is read from the side that the whole text is read from. */
export interface Line {
  text: string;
  base: 'ltr' | 'rtl';
}

export interface Style {
  size: number;
  bold?: boolean;
  /** The edge of the box that lines stand at. */
  align?: 'left' | 'right';
}

/** Most of what is written needs no search for fonts and directions. */
const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);

const isWord = /^[\p{L}\p{M}\p{Cf}]*$/u;

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

export class TextWriter {
  readonly #doc: PDFKit.PDFDocument;
  readonly #fonts = new Map<FontName, Font>();
  #anyMissing = false;

  constructor(doc: InstanceType<typeof PDFDocument>) {
    this.#doc = doc;
    for (const [name, file] of Object.entries(fontFiles) as [FontName, string][]) {
      doc.registerFont(name, resolve(file));
      doc.font(name);
      // pdfkit keeps the font that it has opened here; its types do not tell.
      this.#fonts.set(name, (doc as unknown as { _font: { font: Font } })._font.font);
    }
  }

  /** Whether a character was written that no font has. */
  get anyMissing(): boolean {
    return this.#anyMissing;
  }

  /** The text in lines of at most that width, broken between words, and within one that alone is too wide. */
  lines(text: string, width: number, style: Style): Line[] {
    return text
      .normalize('NFC')
      .split('\n')
      .flatMap((paragraph) => {
        const [{ level } = { level: 0 }] = bidi.getEmbeddingLevels(paragraph).paragraphs;
        const base = level === 1 ? ('rtl' as const) : ('ltr' as const);
        return this.#broken(paragraph, width, style).map((line) => ({ text: line, base }));
      });
  }

  #broken(paragraph: string, width: number, style: Style): string[] {
    const lines: string[] = [];
    let line = '';
    let used = 0;
    for (const word of paragraph.match(/\s+|\S+/gu) ?? []) {
      for (const piece of this.#widthOf(word, style) > width ? this.#pieces(word, width, style) : [word]) {
        const own = this.#widthOf(piece, style);
        if (used + own > width && line !== '') {
          lines.push(line.trimEnd());
          [line, used] = ['', 0];
        }
        if (line === '' && piece.trim() === '') continue;
        line += piece;
        used += own;
      }
    }
    lines.push(line.trimEnd());
    return lines;
  }

  #pieces(word: string, width: number, style: Style): string[] {
    const pieces = [''];
    for (const { segment } of graphemes.segment(word)) {
      const longer = pieces.at(-1) + segment;
      if (this.#widthOf(longer, style) > width && pieces.at(-1) !== '') pieces.push(segment);
      else pieces[pieces.length - 1] = longer;
    }
    return pieces;
  }

  /** Writes one line into a box of that width. */
  write(line: Line, x: number, y: number, width: number, style: Style): void {
    const parts = this.#visual(line, style);
    const used = parts.reduce((sum, part) => sum + part.width, 0);
    let at = style.align === 'right' ? x + width - used : x;
    for (const part of parts) {
      this.#doc
        .font(part.font)
        .fontSize(style.size)
        .text(part.text, at, y, { ...part.options, lineBreak: false, baseline: 'alphabetic' });
      at += part.width;
    }
  }

  #widthOf(text: string, style: Style): number {
    return this.#byFont(text, style).reduce((sum, part) => sum + part.width, 0);
  }

  #part(font: FontName, text: string, { size }: Style): Part {
    const options = /\p{Script=Latin}/u.test(text) && !isPlain(text) ? whole : {};
    return { font, text, options, width: this.#doc.font(font).fontSize(size).widthOfString(text, options) };
  }

  /**
   * From left to right as they are seen. A word at a time: within one of Arabic, pdfkit sets the
   * letters from the right itself.
   */
  #visual({ text, base }: Line, style: Style): Part[] {
    if (isPlain(text)) return this.#byFont(text, style);
    const embedding = bidi.getEmbeddingLevels(text, base);
    const { levels } = embedding;
    if (levels.every((level) => level === 0)) return this.#byFont(text, style);
    const runs: string[] = [];
    let lastKind = '';
    for (const index of bidi.getReorderedIndices(text, embedding)) {
      const char = text[index] ?? '';
      const isRightToLeft = ((levels[index] ?? 0) & 1) === 1;
      const isLetter = /[\p{L}\p{M}\p{Cf}\p{Cs}]/u.test(char);
      const kind = isRightToLeft ? (isLetter ? 'word' : `single ${index}`) : `left ${levels[index]}`;
      if (kind !== lastKind) runs.push('');
      const shown = isRightToLeft && !isLetter ? (bidi.getMirroredCharacter(char) ?? char) : char;
      // The order of a word from the right is turned back: the font's shaping needs it as it is spelled.
      runs[runs.length - 1] = kind === 'word' ? shown + runs.at(-1) : runs.at(-1) + shown;
      lastKind = kind;
    }
    return runs.flatMap((run) => this.#byFont(run, style));
  }

  /**
   * Parts of one font each. A mark, or a joiner, stays with the letter before it. What is written in
   * the Arabic font and is no letter, such as a digit, is a part of its own: fontkit would set a
   * number from right to left.
   */
  #byFont(text: string, style: Style): Part[] {
    if (isPlain(text)) return [this.#part(style.bold === true ? 'bold' : 'regular', text, style)];
    const parts: { font: FontName; text: string }[] = [];
    for (const { segment } of graphemes.segment(text)) {
      const font = this.#fontOf(segment, style.bold === true);
      const shown = font === undefined ? missing : segment;
      if (font === undefined) this.#anyMissing = true;
      const last = parts.at(-1);
      if (last?.font === (font ?? 'regular') && (font !== 'arabic' || isWord.test(last.text + shown)))
        last.text += shown;
      else parts.push({ font: font ?? 'regular', text: shown });
    }
    return parts.map((part) => this.#part(part.font, part.text, style));
  }

  #fontOf(grapheme: string, bold: boolean): FontName | undefined {
    const needed = [...grapheme].filter((char) => !/\p{Cf}/u.test(char)).map((char) => char.codePointAt(0) ?? 0);
    const tried: FontName[] = bold ? ['bold', 'arabic', 'regular'] : ['regular', 'arabic'];
    return tried.find((name) => needed.every((codePoint) => this.#fonts.get(name)?.hasGlyphForCodePoint(codePoint)));
  }
}
