import { describe, expect, it } from 'vitest';
import { linesIn } from './batch-file.ts';

const line = { from: '', to: '', amount: '', currency: '', reference: '', description: '', fault: undefined };

describe('a file of payments', () => {
  it.each([
    ['commas', 'from,to,amount\nsav-1,SAV-2,"1,500"\n'],
    ['semicolons', 'from;to;amount\r\nSAV-1;SAV-2;1,500\r\n'],
    ['tabs', 'From account\tTo account\tAmount\nSAV-1\tSAV-2\t1,500'],
    ['the separator that the first line tells', 'sep=|\nfrom|to|amount\nSAV-1|SAV-2|1,500'],
    ['blank lines, blanks, and empty columns', '\n from , to , amount ,,\n\n SAV-1 , SAV-2 , "1,500" ,,\n,,\n'],
  ])('is read with %s', async (_case, text) => {
    expect(await linesIn(text)).toEqual({
      lines: [{ ...line, from: 'SAV-1', to: 'SAV-2', amount: '1,500', line: expect.any(Number) }],
    });
  });

  it('of omitted lines has the texts as they were before it was guarded against formulas; another file is as it is', async () => {
    const texts = async (more: string) => {
      const read = await linesIn(
        `from,amount,reference,description${more}\nSAV-1,5,'+254 700,'-x;'=y${more && ',why'}\n`,
      );
      return 'lines' in read && read.lines.map(({ reference, description }) => [reference, description]);
    };
    expect(await texts(',why')).toEqual([['+254 700', '-x;=y']]);
    expect(await texts('')).toEqual([["'+254 700", "'-x;'=y"]]);
  });

  it('has a fault in a line whose values are not those of the names: 1,500.75 without quotes is not 1', async () => {
    const read = await linesIn('from,to,amount\nA,B,1,500.75\nA,B,5\nA,B\nA,B,1,\n');
    expect('lines' in read && read.lines.map(({ line: at, fault }) => [at, fault])).toEqual([
      [2, 'has 4 values, but the first line has 3 names'],
      [3, undefined],
      [4, 'has 2 values, but the first line has 3 names'],
      [5, 'has 4 values, but the first line has 3 names'],
    ]);
  });

  it.each([
    ['nothing', '', 'The file is empty.'],
    ['no amounts', 'from,to\nA,B', 'The first line must name the columns.'],
    ['no accounts', 'amount\n5', 'The first line must name the columns.'],
    ['another column', 'from,to,amount,note\nA,B,5,x', 'an unknown column: “note”'],
    ['a column twice', 'from,from,amount\nA,B,5', 'A column is named twice'],
    ['no payment', 'from,to,amount\n', 'There is no payment in the file.'],
    ['too many', `from,amount\n${'A,5\n'.repeat(1001)}`, 'line 1002: is more than the 1000 rows that a file may have'],
    ['an open quotation mark', 'from,amount\n"A,5', 'line 2: has a quotation mark that is not closed'],
    ['too much data', `from,amount\n${' '.repeat(600_000)}`, 'more than 524288 bytes'],
    ['another separator', 'sep=1\r\nfrom,to,amount\r\nSAV-1,SAV-2,5\r\n', 'line 1: names the separator “1”'],
  ])('is refused as a whole if it has %s', async (_case, text, words) => {
    // asvs: 1.2.9, 15.2.2
    const read = await linesIn(text);
    expect('wrong' in read && read.wrong).toContain(words);
  });
});
