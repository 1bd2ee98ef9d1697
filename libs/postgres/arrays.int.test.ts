import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { type Columns, rowArray } from './arrays.ts';
import { createPool } from './pool.ts';
import { createTestDatabase, silent } from './test/test-database.ts';

const database = await createTestDatabase();
const pool = createPool({ url: database.url, application_name: 'arrays-test', schema: 'public' }, silent);
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const big = 2n ** 63n;

describe('parameters for rows of a composite type', () => {
  interface Row {
    id: string | null;
    name: string | null;
    amount: bigint | null;
    at: string | null;
  }
  const columns: Columns<Row> = [
    ['id', 'uuid'],
    ['name', 'text'],
    ['amount', 'int8'],
    ['at', 'timestamptz'],
  ];
  const given = (rows: Row[], given = columns) =>
    pool.query<Row>(
      'select id, name, amount, at from unnest($1::sample[]) with ordinality as s (id, name, amount, at, n) order by n',
      [rowArray(rows, given)],
    );

  test('json comes back unchanged except for the order of keys', async () => {
    await pool.query('create type noted as (note json)');
    const notes = [{ note: { z: '"\\ ü 愛', a: '' } }, { note: null }, { note: { b: 'x'.repeat(2_000) } }];
    const { rows } = await pool.query('select note from unnest($1::noted[])', [rowArray(notes, [['note', 'json']])]);
    expect(JSON.stringify(rows)).toBe(JSON.stringify(notes));
  });

  test('rows come back unchanged, with nulls, at any length', async () => {
    await pool.query('create type sample as (id uuid, name text, amount bigint, at timestamptz)');
    const time = fc
      .date({ min: new Date('1900-01-01'), max: new Date('2200-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString());
    const row = fc.record<Row>({
      id: fc.option(fc.uuid()),
      name: fc.option(fc.string({ unit: 'grapheme', maxLength: 300 }).filter((value) => !value.includes('\0'))),
      amount: fc.option(fc.bigInt({ min: -big, max: big - 1n })),
      at: fc.option(time),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 20 }), async (rows) => {
        expect((await given(rows)).rows).toEqual(rows);
      }),
      { numRuns: 100 },
    );
  });

  const none: Row = { id: null, name: null, amount: null, at: null };
  const stored = async <N extends keyof Row>(name: N, values: Row[N][]) =>
    (await given(values.map((value) => ({ ...none, [name]: value })))).rows.map((row) => row[name]);

  test('text comes back unchanged; a lone surrogate becomes the replacement character, and the server rejects NUL', async () => {
    const values = [
      '',
      'NULL',
      '{"a":"b,c"}',
      "it's",
      'back\\slash',
      '\r\n\t',
      '😀 𐍈',
      '\u0001\u007f',
      ' x ',
      'a'.repeat(100_000),
    ];
    expect(await stored('name', values)).toEqual(values);
    expect(await stored('name', ['\ud800x'])).toEqual(['\ufffdx']);
    await expect(stored('name', ['a\0b'])).rejects.toMatchObject({ code: '22021' });
  });

  test('uuids can be given as ids', async () => {
    const uuid = '0190a6c2-7d3e-7bcd-8f01-23456789abcd';
    const hex = uuid.replaceAll('-', '');
    const ids = [uuid, hex, `acc_${hex}`, `long-prefix_${hex}`, hex.toUpperCase()];
    expect(await stored('id', ids)).toEqual(ids.map(() => uuid));
    for (const bad of ['', 'acc_', hex.slice(1), `${hex.slice(0, 31)}g`, 'x'.repeat(36)])
      expect(() => rowArray([{ ...none, id: bad }], columns)).toThrow(RangeError);
  });

  test('times in other zones are converted', async () => {
    expect(await stored('at', ['2026-01-02T05:04:05.678+02:00'])).toEqual(['2026-01-02T03:04:05.678Z']);
  });

  test('missing or additional columns, and invalid values, are rejected', async () => {
    for (const others of [columns.slice(1), columns.toReversed()])
      await expect(given([none], others)).rejects.toMatchObject({ code: '42804' });
    expect(() => rowArray([{ ...none, id: 'acc_1' }], columns)).toThrow(RangeError);
    expect(() => rowArray([{ ...none, at: 'yesterday' }], columns)).toThrow(RangeError);
    expect(() => rowArray([{ ...none, amount: big }], columns)).toThrow(RangeError);
  });
});
