import { createRequire } from 'node:module';
import bidiFactory, { type Bidi } from 'bidi-js';
import type PDFDocument from 'pdfkit';

/**
 * Writes text of any script to a page. pdfkit supports only one font per text, and writes from left to right. Here each
 * part of a line gets a font that has its characters, and right-to-left parts are placed by the Unicode bidirectional
 * algorithm.
 */

// The package's types describe a module, but the loaded code is CommonJS.
const bidi = (bidiFactory as unknown as () => Bidi)();
const { resolve } = createRequire(import.meta.url);

/**
 * The fonts in the order in which they are tried: the first one has Latin, Greek, Cyrillic, and Devanagari, the second
 * one the Arabic script.
 */
const fontFiles = {
  regular: '@expo-google-fonts/noto-sans/400Regular/NotoSans_400Regular.ttf',
  arabic: '@expo-google-fonts/vazirmatn/400Regular/Vazirmatn_400Regular.ttf',
  bold: '@expo-google-fonts/noto-sans/700Bold/NotoSans_700Bold.ttf',
} as const;
type FontName = keyof typeof fontFiles;

/** Replaces a character that no font has. */
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
 * By default, the font decomposes letters such as ị into a letter and a mark, so text that is copied from the file
 * would contain other letters. The font also has the composed letters.
 */
const whole = { features: { ccmp: false } } as unknown as PDFKit.Mixins.TextOptions;

/** A line of a text, with the base direction of the whole text. */
interface Line {
  text: string;
  base: 'ltr' | 'rtl';
}

export interface Style {
  size: number;
  bold?: boolean;
  /** The side of the box to which lines are aligned. */
  align?: 'left' | 'right';
}

/** Most texts contain only these characters and need no search for fonts and directions. */
const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);

const isWord = /^[\p{L}\p{M}\p{Cf}]*$/u;

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

export class TextWriter {
  readonly #doc: PDFKit.PDFDocument;
  readonly #fonts = new Map<FontName, Font>();
  /** True if a character was written that no font has. */
  anyMissing = false;

  constructor(doc: InstanceType<typeof PDFDocument>) {
    this.#doc = doc;
    for (const [name, file] of Object.entries(fontFiles) as [FontName, string][]) {
      doc.registerFont(name, resolve(file));
      doc.font(name);
      // pdfkit keeps the opened font in this property, which its types lack.
      this.#fonts.set(name, (doc as unknown as { _font: { font: Font } })._font.font);
    }
  }

  /** Breaks the text into lines of at most that width: between words, and within a word that is too wide by itself. */
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
   * Returns the parts in visual order, from left to right. Arabic words stay whole, because pdfkit itself arranges the
   * letters of a word from right to left.
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
      // The letters of a right-to-left word are put back into reading order, which the font's shaping needs.
      runs[runs.length - 1] = kind === 'word' ? shown + runs.at(-1) : runs.at(-1) + shown;
      lastKind = kind;
    }
    return runs.flatMap((run) => this.#byFont(run, style));
  }

  /**
   * Returns parts of one font each. A mark or a joiner stays with the preceding letter. Other characters in the Arabic
   * font, such as digits, become separate parts, because fontkit would write a number from right to left.
   */
  #byFont(text: string, style: Style): Part[] {
    if (isPlain(text)) return [this.#part(style.bold === true ? 'bold' : 'regular', text, style)];
    const parts: { font: FontName; text: string }[] = [];
    for (const { segment } of graphemes.segment(text)) {
      const font = this.#fontOf(segment, style.bold === true);
      const shown = font === undefined ? missing : segment;
      if (font === undefined) this.anyMissing = true;
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
