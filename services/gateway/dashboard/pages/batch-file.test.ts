import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fileText } from '../html/upload.ts';
import { linesIn } from './batch-file.ts';

const line = { from: '', to: '', amount: '', currency: '', reference: '', description: '' };

describe('a file of payments', () => {
  it.each([
    ['commas', 'from,to,amount\nsav-1,SAV-2,"1,500"\n'],
    ['semicolons', 'from;to;amount\r\nSAV-1;SAV-2;1,500\r\n'],
    ['tabs', 'From account\tTo account\tAmount\nSAV-1\tSAV-2\t1,500'],
    ['the separator that the first line tells', 'sep=|\nfrom|to|amount\nSAV-1|SAV-2|1,500'],
    ['blank lines and blanks', '\n from , to , amount \n\n SAV-1 , SAV-2 , "1,500" \n,,\n'],
  ])('is read with %s', (_case, text) => {
    const read = linesIn(text);
    expect(read).toEqual({
      lines: [{ ...line, from: 'SAV-1', to: 'SAV-2', amount: '1,500', line: expect.any(Number) }],
    });
  });

  it('reports the line on which a payment begins, also after line feeds in quotation marks', () => {
    const read = linesIn('from,amount,description\nA,1,"two\nlines ""quoted"""\n\nB,2,\n');
    expect('lines' in read && read.lines.map(({ line: at, description }) => [at, description])).toEqual([
      [2, 'two\nlines "quoted"'],
      [5, ''],
    ]);
  });

  it.each([
    ['nothing', '', 'The first line must name the columns.'],
    ['no amounts', 'from,to\nA,B', 'The first line must name the columns.'],
    ['no accounts', 'amount\n5', 'The first line must name the columns.'],
    ['another column', 'from,to,amount,note\nA,B,5,x', 'an unknown column: “note”'],
    ['a column twice', 'from,from,amount\nA,B,5', 'A column is named twice'],
    ['no payment', 'from,to,amount\n', 'There is no payment in the file.'],
    [
      'too many',
      `from,amount\n${'A,5\n'.repeat(1001)}`,
      'The file has 1001 payments; at most 1000 are accepted at once.',
    ],
    ['an open quotation mark', 'from,amount\n"A,5', 'a quotation mark is not closed'],
    ['too much data', `from,amount\n${' '.repeat(300_000)}`, 'The file is too large'],
  ])('is refused as a whole if it has %s', (_case, text, words) => {
    const read = linesIn(text);
    expect('wrong' in read && read.wrong).toContain(words);
  });

  it('keeps texts unchanged, whatever they contain', () => {
    const field = fc
      .string({ unit: fc.constantFrom('a', '"', ',', ';', '\n', 'é', '😀', ' ') })
      .map((text) => text.trim());
    fc.assert(
      fc.property(fc.array(fc.tuple(field, field), { minLength: 1, maxLength: 5 }), (rows) => {
        const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
        const text = `from,amount,description\n${rows.map(([a, b]) => `X,${quoted(a)},${quoted(b)}\n`).join('')}`;
        const read = linesIn(text);
        expect('lines' in read && read.lines.map(({ amount, description }) => [amount, description])).toEqual(rows);
      }),
    );
  });

  it.each([
    ['UTF-8', Buffer.from('Löhne', 'utf8')],
    ['UTF-8 with its mark', Buffer.from('\ufeffLöhne', 'utf8')],
    ['UTF-16', Buffer.from('\ufeffLöhne', 'utf16le')],
    ['Windows', Buffer.from('Löhne', 'latin1')],
  ])('is a text in %s', (_case, bytes) => {
    expect(fileText(bytes)).toBe('Löhne');
  });
});
