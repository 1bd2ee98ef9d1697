import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CsvRecord, csvLine, csvRecords, decodeText, fileText } from './csv.ts';

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** Returns the records of a text that is read in chunks of this many bytes. */
async function read(text: string | Uint8Array, chunk = 7, limits = {}): Promise<CsvRecord[]> {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk);
  }
  return all(csvRecords(decodeText(chunks()), limits));
}

const fields = async (text: string | Uint8Array) => (await read(text)).map((record) => record.fields);
const names = ['from', 'to', 'amount'];
const utf16be = (text: string) => Buffer.from(text, 'utf16le').swap16();

describe('a file that a spreadsheet, a program, or a person wrote is read', () => {
  it.each<[string, string | Uint8Array, string[][]]>([
    ['commas', 'from,to,amount\nA,B,5\n', [names, ['A', 'B', '5']]],
    ['semicolons', 'from;to;amount\r\nA;B;1.500,75\r\n', [names, ['A', 'B', '1.500,75']]],
    ['tabs', 'from\tto\tamount\nA\tB\t1,500', [names, ['A', 'B', '1,500']]],
    ['bars', 'from|to|amount\nA|B|1,500', [names, ['A', 'B', '1,500']]],
    ['tabs and empty values', 'from\tto\tamount\n\tB\t5\nA\t\t5', [names, ['', 'B', '5'], ['A', '', '5']]],
    ['a line that names the separator', 'sep=;\r\nfrom;to;amount\r\nA;B;5', [names, ['A', 'B', '5']]],
    ['that line for a tab, in capitals', 'SEP=\t\nfrom\tto\tamount\nA\tB\t5', [names, ['A', 'B', '5']]],
    ['that line in quotation marks', '"sep=|"\nfrom|to|amount\nA|B|5', [names, ['A', 'B', '5']]],
    [
      'that line, against the first line',
      'sep=,\nfrom,to;amount;x\nA,B',
      [
        ['from', 'to;amount;x'],
        ['A', 'B'],
      ],
    ],
    [
      'separators in quoted names',
      '"a;b;c",to,amount\nA,B,5',
      [
        ['a;b;c', 'to', 'amount'],
        ['A', 'B', '5'],
      ],
    ],
    [
      'quotation marks',
      'a,b\r\n"x, y","say ""no"""\r\n',
      [
        ['a', 'b'],
        ['x, y', 'say "no"'],
      ],
    ],
    [
      'line feeds in values',
      'a,b\n"one\ntwo",""\n,x',
      [
        ['a', 'b'],
        ['one\ntwo', ''],
        ['', 'x'],
      ],
    ],
    [
      'a carriage return alone, as line end',
      'a,b\rc,d\r',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'mixed line ends',
      'a,b\r\nc,d\ne,f\r\n',
      [
        ['a', 'b'],
        ['c', 'd'],
        ['e', 'f'],
      ],
    ],
    [
      'blank lines and lines of separators',
      '\n\r\na,b\n\n , \n,\nc,d\n\n',
      [
        ['a', 'b'],
        ['c', 'd'],
      ],
    ],
    ['blanks around values', ' from , to , amount \n A , B , "1,500" \n', [names, ['A', 'B', '1,500']]],
    [
      'rows of a spreadsheet without any value',
      'a,b,c\n,,\nd,e,f\n" ","\u00a0",\n,,,,,\n',
      [
        ['a', 'b', 'c'],
        ['d', 'e', 'f'],
      ],
    ],
    [
      'blanks in quotation marks',
      'a,b\n" x ",y',
      [
        ['a', 'b'],
        [' x ', 'y'],
      ],
    ],
    ['empty columns', 'from,to,,amount,,\nA,B,,5,,\nC,D,,6,,', [names, ['A', 'B', '5'], ['C', 'D', '6']]],
    ['a byte order mark', '\ufefffrom,to,amount\nA,B,5', [names, ['A', 'B', '5']]],
    ['a byte order mark and quotation marks', '\ufeff"from","to","amount"\n"A","B","5"', [names, ['A', 'B', '5']]],
    ['UTF-16', Buffer.from('\ufefffrom\tto\tamount\r\nJosé\t李\t5', 'utf16le'), [names, ['José', '李', '5']]],
    ['UTF-16, the other way round', utf16be('\ufefffrom\tto\tamount\r\nJosé\t李\t5'), [names, ['José', '李', '5']]],
    ['nothing', '', []],
    ['only a byte order mark', '\ufeff', []],
    ['only the line that names the separator', 'sep=;', []],
    ['one column', 'amount\n5\n', [['amount'], ['5']]],
  ])('with %s', async (_case, text, records) => {
    expect(await fields(text)).toEqual(records);
  });

  it.each([
    ['UTF-8', Buffer.from('Löhne', 'utf8')],
    ['UTF-8 with its mark', Buffer.from('\ufeffLöhne', 'utf8')],
    ['UTF-16', Buffer.from('\ufeffLöhne', 'utf16le')],
    ['UTF-16, the other way round', utf16be('\ufeffLöhne')],
    ['Windows', Buffer.from('Löhne', 'latin1')],
  ])('as a whole in %s', (_case, bytes) => {
    expect(fileText(bytes)).toBe('Löhne');
  });

  it('each record has the number of the line on which it begins', async () => {
    const lines = async (text: string) => (await read(text)).map(({ line }) => line);
    expect(await lines('a,z\n"b\nc"\n\nd\n')).toEqual([1, 2, 5]);
    expect(await lines('sep=,\r\na,z\r\n"b\r\n\r\nc",\r\n\r\n,\r\nd\r\n')).toEqual([2, 3, 8]);
    expect(await lines('\n\na,z\nb')).toEqual([3, 4]);
  });
});

describe('a record with more or fewer values than names', () => {
  it.each([
    ['from,to,amount\nA,B,1,500.75', 'has 4 values, but the first line has 3 names'],
    ['from,to,amount,\nA,B,1,500.75', 'has a value in a column without a name'],
    ['to,amount,reference\nB,1,500.75,', 'has 4 values, but the first line has 3 names'],
    ['to,amount,reference,\nB,1,500.75,,', 'has 5 values, but the first line has 4 names'],
    ['from,to,amount\nA,B,5,', 'has 4 values, but the first line has 3 names'],
    ['from;to;amount\nA;B;1;500.75', 'has 4 values, but the first line has 3 names'],
    ['from\tto\tamount\nA\tB\t1\t500.75', 'has 4 values, but the first line has 3 names'],
    ['sep=|\nfrom|to|amount\nA|B|1|500.75', 'has 4 values, but the first line has 3 names'],
    ['from,to,amount,description\nA,B,5,wages, November', 'has 5 values, but the first line has 4 names'],
    ['from,to,amount\nA,B,5,,,x', 'has 6 values, but the first line has 3 names'],
    ['from,to,amount\nA,B', 'has 2 values, but the first line has 3 names'],
    ['from,to,amount\nA;B;5', 'has 1 values, but the first line has 3 names'],
    ['from,to,amount\n"A,B,5"', 'has 1 values, but the first line has 3 names'],
  ])('%j says so, and no other does', async (text, fault) => {
    const records = await read(`${text}\n${text.split('\n').at(-2)}\n`);
    expect(records.map((record) => record.fault)).toEqual([undefined, fault, undefined]);
  });
});

it('a record with a formula in quotation marks says so', async () => {
  const records = await read('a,b\n"=""SAV-1""",5\n"=1+1",5\n');
  expect(records.map(({ fault }) => fault?.slice(0, 30))).toEqual([
    undefined,
    'has a formula such as ="SAV-1"',
    undefined,
  ]);
});

describe('a file that is not CSV, or is made to harm, is refused with the line', () => {
  it.each<[string, string | Uint8Array, string]>([
    ['a quotation mark within a value', 'a,b\nb"c,d\n', 'line 2: has a quotation mark within a value'],
    ['text behind a quotation mark', 'a,b\n"b"c,d\n', 'line 2: has a quotation mark within a value'],
    ['text behind a quotation mark and a blank', 'a,b\n"b" c,d\n', 'line 2: has a quotation mark within a value'],
    [
      'a formula in place of a value',
      'a,b\n="SAV-1",c\n',
      'line 2: has a formula such as ="SAV-1" in place of a value',
    ],
    ['a formula behind a separator and a blank', 'a;b\nc; ="1;2"\n', 'line 2: has a formula such as'],
    ['an open quotation mark', 'a,b\n"c\r\nd\n', 'line 2: has a quotation mark that is not closed'],
    ['one behind quoted line feeds', 'a,b\r\n"c\r\nd",e\r\n"f', 'line 4: has a quotation mark that is not closed'],
    ['an open quotation mark in a long file', `a,b\n"c\n${'x\n'.repeat(70_000)}`, 'line 2: is longer than 65536 bytes'],
    ['a very long value', `a,b\n${'x'.repeat(70_000)},c`, 'line 2: is longer than 65536 bytes'],
    ['a very long first line', 'x'.repeat(200_000), 'line 1: is longer than 65536 bytes'],
    ['another encoding', Buffer.from('a,b\nJosé,x\n', 'latin1'), 'is not UTF-8'],
    ['half a character', Buffer.from('a,b\nc,é').subarray(0, -1), 'line 2: is not UTF-8'],
    ['too many rows', 'a,b\n'.repeat(6), 'line 6: is more than the 4 rows'],
    ['too many bytes', `a,b\n${'c,d\n'.repeat(75_000)}`, 'line 1: begins a file of more than 262144 bytes'],
  ])('%s', async (_case, text, says) => {
    await expect(read(text, 1000, { rows: text.length < 100 ? 4 : 100_000, bytes: 262_144 })).rejects.toThrow(says);
  });

  it('every character that is no separator, where one is named', async () => {
    for (let code = 0x20; code < 0x17f; code++) {
      const mark = String.fromCharCode(code);
      const records = read(`sep=${mark}\r\nfrom,to,amount\r\nSAV-1,SAV-2,5\r\n`);
      if (',;|'.includes(mark)) await records;
      else await expect(records, mark).rejects.toThrow(/^line 1: names the separator “.?”/);
    }
    await expect(read('sep=\na,b')).rejects.toThrow('line 1: names the separator “”');
    await expect(read('sep=;;\na,b')).rejects.toThrow('line 1: names the separator “;;”');
  });

  it('an error in the source of the text is thrown as it is', async () => {
    async function* broken(): AsyncGenerator<string, void> {
      yield 'a,b\n';
      throw new RangeError('no such disk');
    }
    await expect(all(csvRecords(broken()))).rejects.toThrow(RangeError);
  });
});

describe('written records', () => {
  it('are read back unchanged, however the file is split into chunks', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', ',', ';', '\n', '\r', ' ', '\t', 'é', '李', '😀') });
    const record = fc.tuple(fc.constant('x'), text, text, fc.constant('y'));
    await fc.assert(
      fc.asyncProperty(fc.array(record, { maxLength: 5 }), fc.integer({ min: 1, max: 9 }), async (records, chunk) => {
        const written = [['a', 'b', 'c', 'd'], ...records];
        expect((await read(written.map(csvLine).join(''), chunk)).map((each) => each.fields)).toEqual(written);
      }),
    );
  });
});
