import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { bigintArray, type Columns, intArray, rowArray, textArray, timestampArray, uuidArray } from './arrays.ts';
import { createPool } from './pool.ts';
import { createTestDatabase, silent } from './test/test-database.ts';

const database = await createTestDatabase();
const pool = createPool({ url: database.url, application_name: 'arrays-test', schema: 'public' }, silent);
afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** The elements of a parameter as the server reads them. */
async function received(type: string, parameter: Buffer): Promise<unknown[]> {
  const result = await pool.query<{ item: unknown }>(
    `select item from unnest($1::${type}[]) with ordinality as u (item, n) order by n`,
    [parameter],
  );
  return result.rows.map((row) => row.item);
}

const big = 2n ** 63n;

describe('values are stored unchanged:', () => {
  test('text', async () => {
    const values = [
      '',
      'plain',
      'NULL',
      'null',
      '{}',
      '{"a":"b,c"}',
      "it's",
      'back\\slash',
      '\r\n\t',
      'Ünïcode ✓ 😀 𐍈',
      '\u0001\u007f',
      null,
      ' x ',
      'a'.repeat(100_000),
    ];
    expect(await received('text', textArray(values))).toEqual(values);
  });

  test('a lone surrogate becomes the replacement character, NUL is refused', async () => {
    expect(await received('text', textArray(['\ud800x']))).toEqual(['\ufffdx']);
    await expect(received('text', textArray(['a\0b']))).rejects.toMatchObject({ code: '22021' });
  });

  test('bigint', async () => {
    const values = [0n, -1n, null, big - 1n, -big, 10n ** 15n - 1n];
    expect(await received('int8', bigintArray(values))).toEqual(values);
    expect(() => bigintArray([big])).toThrow(RangeError);
  });

  test('int', async () => {
    const values = [0, -1, null, 2 ** 31 - 1, -(2 ** 31)];
    expect(await received('int4', intArray(values))).toEqual(values);
    expect(() => intArray([2 ** 31])).toThrow(RangeError);
  });

  test('uuid, from uuids and ids', async () => {
    const uuid = '0190a6c2-7d3e-7bcd-8f01-23456789abcd';
    const hex = uuid.replaceAll('-', '');
    expect(
      await received('uuid', uuidArray([uuid, hex, `acc_${hex}`, `long-prefix_${hex}`, hex.toUpperCase(), null])),
    ).toEqual([uuid, uuid, uuid, uuid, uuid, null]);
    for (const bad of ['', 'acc_', hex.slice(1), `${hex.slice(0, 31)}g`, 'x'.repeat(36)])
      expect(() => uuidArray([bad])).toThrow(RangeError);
  });

  test('timestamptz, to the millisecond', async () => {
    const values = [
      '2026-01-02T03:04:05.678Z',
      '1969-12-31T23:59:59.999Z',
      '1999-12-31T23:59:59.999Z',
      '2000-01-01T00:00:00.000Z',
      '9999-12-31T23:59:59.999Z',
      null,
    ];
    expect(await received('timestamptz', timestampArray(values))).toEqual(values);
    expect(await received('timestamptz', timestampArray([0, 1_767_323_045_678]))).toEqual([
      '1970-01-01T00:00:00.000Z',
      '2026-01-02T03:04:05.678Z',
    ]);
    expect(await received('timestamptz', timestampArray(['2026-01-02T05:04:05.678+02:00']))).toEqual([
      '2026-01-02T03:04:05.678Z',
    ]);
    for (const bad of ['', 'yesterday', Number.NaN, Infinity]) expect(() => timestampArray([bad])).toThrow(RangeError);
  });
});

test.each([
  ['text', textArray([])],
  ['int8', bigintArray([])],
  ['int4', intArray([])],
  ['uuid', uuidArray([])],
  ['timestamptz', timestampArray([])],
])('an empty array of %s', async (type, parameter) => {
  expect(await received(type, parameter)).toEqual([]);
});

test.each([
  ['text', textArray([null, null])],
  ['int8', bigintArray([null])],
  ['uuid', uuidArray([null])],
  ['timestamptz', timestampArray([null])],
])('nothing but nulls of %s', async (type, parameter) => {
  expect(new Set(await received(type, parameter))).toEqual(new Set([null]));
});

test('any text and any bigint comes back unchanged', async () => {
  const text = fc.option(fc.string({ unit: 'grapheme', maxLength: 50 }).filter((value) => !value.includes('\0')));
  const number = fc.option(fc.bigInt({ min: -big, max: big - 1n }));
  await fc.assert(
    fc.asyncProperty(fc.array(text, { maxLength: 30 }), fc.array(number, { maxLength: 30 }), async (texts, numbers) => {
      expect(await received('text', textArray(texts))).toEqual(texts);
      expect(await received('int8', bigintArray(numbers))).toEqual(numbers);
    }),
    { numRuns: 100 },
  );
});

describe('rows of a composite type', () => {
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

  test('come back unchanged, with nulls, at any length', async () => {
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

  test('missing or additional columns, and invalid values, are refused', async () => {
    const row: Row = { id: null, name: null, amount: null, at: null };
    for (const others of [columns.slice(1), columns.toReversed()])
      await expect(given([row], others)).rejects.toMatchObject({ code: '42804' });
    expect(() => rowArray([{ ...row, id: 'acc_1' }], columns)).toThrow(RangeError);
    expect(() => rowArray([{ ...row, at: 'yesterday' }], columns)).toThrow(RangeError);
    expect(() => rowArray([{ ...row, amount: big }], columns)).toThrow(RangeError);
  });
});
