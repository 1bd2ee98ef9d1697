import { describe, expect, it } from 'vitest';
import { setBankFormats } from '#libs/service/formats.ts';
import { type Api, ApiRefused } from '../api.ts';
import { csvLine, exportCsv, maxRows, unguarded } from './csv.ts';

/** An API that returns a list of this many rows and refuses pages from `refusedAt` on. */
function fakeList(rows: number, refusedAt = Infinity): { api: Pick<Api, 'get'>; asked: string[] } {
  const asked: string[] = [];
  const get = async <T>(path: string) => {
    asked.push(path);
    const query = new URL(path, 'http://x').searchParams;
    const [at, limit] = [Number(query.get('cursor') ?? 0), Number(query.get('limit'))];
    if (at >= refusedAt) throw new ApiRefused(429, { code: 'rate_limited', message: 'too many' });
    const end = Math.min(rows, at + limit);
    return {
      data: Array.from({ length: end - at }, (_, n) => ({ id: String(at + n) })) as T,
      next: end < rows ? String(end) : undefined,
    };
  };
  return { api: { get }, asked };
}

async function make(api: Pick<Api, 'get'>): Promise<string> {
  let text = '';
  for await (const part of await exportCsv<{ id: string }>(api, {
    path: '/list',
    parameters: new URLSearchParams('x=1&cursor=old&limit=50'),
    columns: [{ title: 'id', value: ({ id }) => id }],
  }))
    text += part;
  return text;
}

describe('a list as CSV', () => {
  it('contains every page from the first on, with its filters', async () => {
    const { api, asked } = fakeList(1_001);
    const lines = (await make(api)).split('\r\n');
    expect([lines[0], lines[1], lines[1_001], lines[1_002], lines.length]).toEqual([
      '\ufeff"id"',
      '"0"',
      '"1000"',
      '',
      1_003,
    ]);
    expect(asked).toEqual(['/list?x=1&limit=500', '/list?x=1&limit=500&cursor=500', '/list?x=1&limit=500&cursor=1000']);
  });

  it('has times in the zone of the bank, what is added to each page, and the separator only if asked for', async () => {
    setBankFormats({ timeZone: 'Africa/Nairobi', locale: undefined });
    interface Row {
      created_at: string;
      name?: string;
    }
    const get = async <T>() => ({ data: [{ created_at: '2026-01-31T22:15:00.123Z' }] as T, next: undefined });
    const file = await exportCsv<Row>(
      { get },
      {
        path: '/list',
        parameters: new URLSearchParams(),
        columns: ['created_at', 'name'],
        complete: async (rows) => rows.map((row) => ({ ...row, name: 'Ann' })),
        hasSeparator: true,
      },
    );
    let text = '';
    for await (const part of file) text += part;
    setBankFormats({ timeZone: 'UTC', locale: undefined });
    expect(text).toBe('\ufeffsep=,\r\n"created_at (Africa/Nairobi)","name"\r\n"2026-02-01 01:15:00","Ann"\r\n');
  });

  it('ends at its limit, and says so', async () => {
    const lines = (await make(fakeList(maxRows + 1).api)).trimEnd().split('\r\n');
    expect(lines).toHaveLength(1 + maxRows + 1);
    expect(lines.at(-1)).toBe(`"Stopped after ${maxRows} rows, but there are more. Use narrower filters."`);
    expect((await make(fakeList(maxRows).api)).trimEnd().split('\r\n').at(-1)).toBe(`"${maxRows - 1}"`);
  });

  it('says if the API refused a later page; a refusal of the first page throws', async () => {
    expect((await make(fakeList(1_001, 500).api)).trimEnd().split('\r\n').slice(-2)).toEqual([
      '"499"',
      '"Stopped after 500 rows, because the bank did not respond. Download the file again."',
    ]);
    await expect(make(fakeList(1, 0).api)).rejects.toThrow('too many');
  });
});

it.each([
  ['=1+1', "'=1+1"],
  ['+254700000001', '+254700000001'],
  ['+254700000001+A1', "'+254700000001+A1"],
  ['-1.50', '-1.50'],
  ['-cmd', "'-cmd"],
  ['@SUM(A1)', "'@SUM(A1)"],
  ['\t=1', "'\t=1"],
  [' =1', "' =1"],
  ['\tx', "'\tx"],
  ['a,b', 'a,b'],
  ['say "x"', 'say ""x""'],
  ['=HYPERLINK("x")', `'=HYPERLINK(""x"")`],
  ['10.50', '10.50'],
  [null, ''],
  [undefined, ''],
  ['Høpper', 'Høpper'],
  // Full-width characters, which spreadsheets accept as well.
  ['＝1+1', "'＝1+1"],
  ['＋1', "'＋1"],
  ['－1', "'－1"],
  ['＠x', "'＠x"],
  ['\u3000=1', "'\u3000=1"],
  // The start of a cell or line for a spreadsheet that ignores sep=.
  ['paid;=1+1', "paid;'=1+1"],
  ['a; ＝1;@x', "a;' ＝1;'@x"],
  [';=1', ";'=1"],
  ['a\t=1', "a\t'=1"],
  ['line\n=1', "line\n'=1"],
  ['line\r\n;-x', "line\r\n;'-x"],
  ['a;b-c', 'a;b-c'],
])('%j becomes %j, in quotes', (value, written) => {
  // asvs: 1.2.10
  expect(csvLine([value, value])).toBe(`"${written}","${written}"\r\n`);
  expect(unguarded(written.replaceAll('""', '"'))).toBe(value ?? '');
});
