import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CsvRecord, csvLine, csvRecords } from './csv.ts';

/** Returns the records of a text that is read in chunks of this many bytes. */
async function read(text: string | Uint8Array, chunk = 7): Promise<CsvRecord[]> {
  const bytes = typeof text === 'string' ? new TextEncoder().encode(text) : text;
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += chunk) yield bytes.subarray(at, at + chunk);
  }
  const records: CsvRecord[] = [];
  for await (const record of csvRecords(chunks())) records.push(record);
  return records;
}

const fields = async (text: string) => (await read(text)).map((record) => record.fields);

describe('CSV', () => {
  it('is read as RFC 4180 describes: quotes, doubled quotes, quoted commas and line feeds, CRLF or LF, with or without a final one', async () => {
    expect(await fields('a,b\r\n"x, y","say ""no"""\r\n')).toEqual([
      ['a', 'b'],
      ['x, y', 'say "no"'],
    ]);
    expect(await fields('a,b\n"one\ntwo",""\n,')).toEqual([
      ['a', 'b'],
      ['one\ntwo', ''],
      ['', ''],
    ]);
    expect(await fields('\ufeffa,b\n\n\r\n"c",')).toEqual([
      ['a', 'b'],
      ['c', ''],
    ]);
    expect(await fields('')).toEqual([]);
  });

  it('each record has the number of the line on which it begins', async () => {
    expect((await read('a\n"b\nc"\n\nd\n')).map(({ line }) => line)).toEqual([1, 2, 5]);
  });

  it('an error has the line number of the invalid record', async () => {
    await expect(read('a\nb"c\n')).rejects.toThrow('line 2: has a quote that is not closed');
    await expect(read('a\nb"c"\n')).rejects.toThrow(
      'line 2: has a quote within a field, or text behind a closing quote',
    );
    await expect(read('a\n"b"c\n')).rejects.toThrow('line 2: has a quote within a field');
    await expect(read(`a\n"b\n${'x\n'.repeat(70_000)}`, 1000)).rejects.toThrow(
      'line 2: is longer than 65536 characters: is a quote not closed?',
    );
    await expect(read(Buffer.from('a\nJos\u00e9\n', 'latin1'))).rejects.toThrow(/^line \d: is not UTF-8/);
  });

  it('written records are read back unchanged, however the file is split into chunks', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', 'é', '李', '😀') });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(text, { minLength: 2, maxLength: 4 }), { maxLength: 5 }),
        fc.integer({ min: 1, max: 9 }),
        async (records, chunk) => {
          expect((await read(records.map(csvLine).join(''), chunk)).map((record) => record.fields)).toEqual(records);
        },
      ),
    );
  });
});
