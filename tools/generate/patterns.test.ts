import { readdirSync, readFileSync } from 'node:fs';
import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { positiveMoney } from '#libs/contracts/event-fields.ts';
import { portable } from './patterns.ts';

const docs = new URL('../../docs/', import.meta.url);
const files = [
  'openapi.json',
  'asyncapi.json',
  ...readdirSync(new URL('events/', docs)).map((name) => `events/${name}`),
];

/** Returns the patterns in a generated document, with the names of properties that they are for. */
function listPatterns(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) =>
    key === 'pattern' && typeof part === 'string' ? [part] : listPatterns(part),
  );
}

const published = files.map((file) => {
  const document: unknown = JSON.parse(readFileSync(new URL(file, docs), 'utf8'));
  return [file, [...new Set(listPatterns(document))]] as const;
});
const all = [...new Set(published.flatMap(([, patterns]) => patterns))];

/** Texts that patterns of the contract accept or refuse, and those on which engines differ. */
const texts = [
  ...[
    '',
    ' ',
    'a',
    'A',
    '0',
    '-1',
    '0.0',
    '0.00',
    '00',
    '0.1',
    '00.10',
    '10',
    '12.50',
    '1.',
    '.5',
    '-12.5',
    '1e3',
    '٣',
    '12\n',
  ],
  ...['USD', 'usd', '2026-01-31', '2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05Z', 'SAV-1234567897', 'SAV-１２３４'],
  ...[
    'a\u0000',
    'a\u0085b',
    '\u00a0',
    '\ufeffx',
    '\u2028x',
    '\u3000',
    'x\u3000',
    '\u000bx',
    'x\r',
    'a\nb',
    'a\u202eb',
    '中 文',
    '\ufffe',
    '\u200b',
  ],
  ...[
    'a@b.cc',
    'a b@c.dd',
    'a@\u2003b',
    '+254700000001',
    'k-1 x',
    ' k',
    'page:/clients',
    'page:é',
    'wages.csv',
    'wage%',
    'crm.id',
  ],
  ...[
    'transaction.completed',
    'transaction.*',
    '*',
    ' hold.placed , account.* ',
    'transactionXcompleted',
    'internal_error',
  ],
  ...['acc', 'cli', 'txn', 'ses', 'ent'].flatMap((kind) => [
    `${kind}_${'0a'.repeat(16)}`,
    `${kind}_${'0a'.repeat(16)}-1`,
  ]),
  `acc_${'0a'.repeat(16)},acc_${'0b'.repeat(16)}`,
  'ab'.repeat(32),
];

test('RE2 compiles every pattern of the generated documents, and matches as JavaScript does', () => {
  expect(published.filter(([, patterns]) => patterns.length > 0).length).toBeGreaterThan(20);
  const differ = all.flatMap((pattern) => {
    const [re2, javascript] = [RE2JS.compile(pattern), new RegExp(pattern, 'u')];
    return texts.filter((text) => re2.matcher(text).find() !== javascript.test(text)).map((text) => [pattern, text]);
  });
  expect(differ).toEqual([]);
  for (const pattern of all) {
    const matched = texts.filter((text) => RE2JS.compile(pattern).matcher(text).find());
    expect(matched.length, `${pattern} matches ${matched.length} texts`).toBeLessThan(texts.length);
  }
});

test('every engine reads the patterns alike: they have no class whose characters depend on it', () => {
  const own = all.filter(
    (pattern) => /\\[uUpPdDsSwWbBv]|\(\?(?!:)/.test(pattern) || /(^|[^\\])\.(?![^[]*\])/.test(pattern),
  );
  expect(own).toEqual([]);
});

test('a pattern that RE2 lacks is refused when the documents are made', () => {
  expect(() => portable('^(?!0)\\d$')).toThrow('RE2');
  expect(() => portable('(a)\\1')).toThrow('RE2');
});

test('portable patterns accept the same texts', () => {
  for (const pattern of [
    '^\\S.{0,39}$',
    '^[\\w.-]{1,100}$',
    '^\\s*[^\\s@]+@[^\\s@]+\\s*$',
    '^\\d+(\\.\\d+)?$',
    '^[^\\u0000]*$',
  ]) {
    const [from, to] = [new RegExp(pattern, 'u'), new RegExp(portable(pattern), 'u')];
    expect(
      texts.filter((text) => from.test(text) !== to.test(text)),
      pattern,
    ).toEqual([]);
  }
});

test('a positive amount is a decimal with a digit that is not 0', () => {
  const lookahead = /^(?!0+(\.0+)?$)\d+(\.\d+)?$/;
  const digits = ['', '0', '00', '1', '10', '01', '907'];
  const amounts = digits.flatMap((whole) => [whole, ...digits.map((fraction) => `${whole}.${fraction}`)]);
  expect(amounts.map((amount) => [amount, positiveMoney.safeParse(amount).success])).toEqual(
    amounts.map((amount) => [amount, lookahead.test(amount)]),
  );
});
