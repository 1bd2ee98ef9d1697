import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { NumberText } from './money.ts';
import { givenNames, pickNames, showNamesTo } from './names.ts';

const schema = z.strictObject(givenNames);
const parse = (body: unknown) => schema.safeParse(body);
const broken = (body: unknown) => parse(body).error?.issues.map(({ path, message }) => [path.join('.'), message]);

describe('external_id', () => {
  const rule = [['external_id', 'must have 1 to 128 printable ASCII characters']];

  test.each(['a', ' a ', '~', 'Core/4711 #"\\', 'x'.repeat(128)])('%j is accepted unchanged', (external_id) => {
    // contract: names-1
    expect(parse({ external_id }).data).toEqual({ external_id });
  });

  test.each(['', 'x'.repeat(129), 'é', 'a\tb', 'a\n', 'a\u007f', '\u200b'])('%j is refused', (external_id) => {
    // contract: names-1
    expect(broken({ external_id })).toEqual(rule);
  });

  test('must be a text', () => {
    expect(broken({ external_id: new NumberText('5') })?.[0]?.[0]).toBe('external_id');
  });
});

describe('metadata', () => {
  test('contains texts of any script by name, unchanged', () => {
    const metadata = { 'a.b-c_9': ' Wanjikũ ', k: '', ['x'.repeat(40)]: '\u{1F600}'.repeat(500), constructor: 'x' };
    expect(parse({ metadata }).data).toEqual({ metadata });
  });

  test('an empty object and null mean none', () => {
    expect([parse({ metadata: {} }).data, parse({ metadata: null }).data]).toEqual([
      { metadata: null },
      { metadata: null },
    ]);
  });

  test('errors name each invalid key and value', () => {
    // contract: names-2
    const metadata = {
      Upper: 'x',
      '': 'x',
      ['x'.repeat(41)]: 'x',
      é: 'x',
      n: new NumberText('5'),
      nil: null,
      o: {},
      long: 'x'.repeat(501),
      tab: 'a\tb',
    };
    const form = 'is not a key of 1 to 40 of the characters a-z 0-9 _ . -';
    expect(broken({ metadata })).toEqual([
      ['metadata.Upper', form],
      ['metadata.', form],
      [`metadata.${'x'.repeat(41)}`, form],
      ['metadata.é', form],
      ['metadata.n', 'must be a string'],
      ['metadata.nil', 'must be a string'],
      ['metadata.o', 'must be a string'],
      ['metadata.long', 'must have at most 500 characters'],
      ['metadata.tab', 'must not contain control characters'],
    ]);
  });

  test('has at most 20 keys', () => {
    // contract: names-2
    const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));
    expect([parse({ metadata: keys(20) }).success, broken({ metadata: keys(21) })]).toEqual([
      true,
      [['metadata', 'must have at most 20 keys']],
    ]);
  });

  test.each([['x'], [[]], [new NumberText('5')], [true]])('must be an object: %j is refused', (metadata) => {
    expect(broken({ metadata })?.map(([field]) => field)).toEqual(['metadata']);
  });
});

test('missing ones are omitted', () => {
  expect([
    pickNames({}),
    pickNames({ external_id: null, metadata: null }),
    pickNames({ external_id: 'a', metadata: { k: 'v' } }),
  ]).toEqual([{}, {}, { external_id: 'a', metadata: { k: 'v' } }]);
});

test('credentials of a client see metadata only if they gave it; client_metadata is theirs, and the bank sees everything', () => {
  // contract: names-9
  const metadata = { risk: 'high' };
  const master = { client_id: 'cli_1', metadata, client_metadata: { theme: 'dark' } };
  const posting = { amount: '1', metadata, metadata_client_id: 'cli_1' };
  expect(showNamesTo(undefined, master)).toBe(master);
  expect(showNamesTo('cli_1', master)).toEqual({ client_id: 'cli_1', client_metadata: { theme: 'dark' } });
  expect(showNamesTo('cli_1', posting)).toBe(posting);
  expect(showNamesTo('cli_2', posting)).toEqual({ amount: '1' });
  expect(showNamesTo('cli_1', { amount: '1', metadata })).toEqual({ amount: '1' });
});
