import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NumberText } from '#libs/contracts/money.ts';
import { parseBody } from './body.ts';
import { Refused } from './errors.ts';

const parse = (text: string) => parseBody(Buffer.from(text));

function refusedAs(bytes: Buffer): string | undefined {
  try {
    parseBody(bytes);
    return undefined;
  } catch (error) {
    return error instanceof Refused ? error.refusal.code : `thrown: ${String(error)}`;
  }
}

test('numbers are kept as they were written', () => {
  expect(parse('{"a":10.00,"b":[1e2,-0,100.00000000000000001]}')).toEqual({
    a: new NumberText('10.00'),
    b: [new NumberText('1e2'), new NumberText('-0'), new NumberText('100.00000000000000001')],
  });
});

test('an empty body is undefined; other values are unchanged', () => {
  expect(parse('')).toBeUndefined();
  expect(parse(' {"a" : "x:y\\"z:", "b":{}, "c":[[],{"d":null}], "e":true} ')).toEqual({
    a: 'x:y"z:',
    b: {},
    c: [[], { d: null }],
    e: true,
  });
  expect(parse('"\\ud83d\\ude00"')).toBe('😀');
  expect(parse('{"constructor":"x","prototype":1}')).toEqual({ constructor: 'x', prototype: new NumberText('1') });
});

test.each([
  ['text that is not JSON', '{a:1}'],
  ['blanks only', '  '],
  ['something after the value', '{} x'],
  ['a trailing comma', '{"a":1,}'],
  ['a leading zero', '{"a":01}'],
  ['a leading plus', '{"a":+1}'],
  ['a leading point', '{"a":.5}'],
  ['a single minus sign', '{"a":-}'],
  ['a point without digits', '{"a":1.}'],
  ['an exponent without digits', '{"a":1e}'],
  ['two numbers in one place', '{"a":1-2}'],
  ['a number for a key', '{1:2}'],
  ['a number for a key inside', '{"a":[{"b":1,-2.5e3:"c"}]}'],
  ['a number after a string', '{"a":"x"1}'],
  ['a string without end before a number', '{"a":"x,1}'],
  ['a backslash that takes the end of a string', '{"a":"x\\",1}'],
  ['NaN', '{"a":NaN}'],
  ['a comment', '{"a":1/**/}'],
  ['two byte order marks', '\ufeff\ufeff{}'],
  ['a raw control character', '{"a":"\n"}'],
  ['a duplicate key', '{"a":1,"a":2}'],
  ['a duplicate key with equal numbers', '{"a":1,"a":1}'],
  ['a duplicate key with equal texts', '{"a":"x","b":2,"a":"x"}'],
  ['a duplicate key with equal objects', '{"o":{"a":1},"o":{"a":1}}'],
  ['a duplicate key, written otherwise', '{"a":1,"\\u0061":1}'],
  ['a duplicate key inside', '{"o":[{"a":null,"a":null}]}'],
  ['__proto__', '{"__proto__":{"x":1}}'],
  ['__proto__ inside, written otherwise', '{"o":[{"\\u005f_proto__":1}]}'],
  ['constructor.prototype', '{"constructor":{"prototype":{}}}'],
  ['a lone surrogate', '{"a":"\\ud800"}'],
  ['a lone surrogate in a key', '{"\\udc00":1}'],
  ['NUL', '{"a":"\\u0000"}'],
  ['NUL that looks like a number', '{"a":"\\u00001"}'],
  ['NUL in a key', '{"\\u0000":1}'],
  ['a raw NUL', '{"a":"\u0000"}'],
  ['brackets without end', '['.repeat(60_000)],
  ['objects without end', '{"a":'.repeat(13_000)],
  ['nesting that is closed', '['.repeat(30_000) + ']'.repeat(30_000)],
  ['nesting that could be parsed, but not walked through', '['.repeat(6_500) + ']'.repeat(6_500)],
  ['31 levels', `${'{"a":['.repeat(15)}{}${']}'.repeat(15)}`],
])('%s is malformed_json', (_what, text) => {
  expect(refusedAs(Buffer.from(text))).toBe('malformed_json');
});

test('bytes that are not UTF-8 are malformed_json', () => {
  expect(refusedAs(Buffer.from([0x22, 0xff, 0x22]))).toBe('malformed_json');
  expect(refusedAs(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]))).toBe('malformed_json');
});

test('everything that JSON.stringify writes is read back, and only malformed_json is thrown', () => {
  const plain = (value: unknown): unknown => {
    if (value instanceof NumberText) return Number(value.text);
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
  };
  const hasPoison = (text: string): boolean => /__proto__|constructor|\\u0000/.test(text);
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
      const text = JSON.stringify(value);
      if (!hasPoison(text)) expect(plain(parse(text))).toEqual(JSON.parse(text));
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      expect([undefined, 'malformed_json']).toContain(refusedAs(Buffer.from(bytes)));
    }),
  );
});

test('text that JSON.parse rejects is rejected here, too, with any character next to a number', () => {
  const parts = [
    '1',
    '-',
    '0',
    '.5',
    'e3',
    '"',
    '\\',
    '\\u0000',
    ':',
    ',',
    '[',
    ']',
    '{',
    '}',
    ' ',
    '"a"',
    'null',
    '"a":1',
  ];
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 12 }), (chosen) => {
      const text = chosen.join('');
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      if (!isJson) expect(refusedAs(Buffer.from(text))).toBe('malformed_json');
    }),
    { numRuns: 5_000 },
  );
});

test('30 levels are accepted, and brackets in strings do not count', () => {
  // contract: errors-14
  expect(() => parse('{"a":['.repeat(15) + ']}'.repeat(15))).not.toThrow();
  expect(() => parse(`{"a":"${'[{\\"'.repeat(100)}"}`)).not.toThrow();
});

test.each([
  ['numbers', 1, (n: number) => `[${'1,'.repeat(n - 1)}1]`],
  ['texts', 1, (n: number) => `[${'"a:,[{1",'.repeat(n - 1)}"\\""]`],
  ['literals', 1, (n: number) => `[${Array.from({ length: n }, (_, i) => [true, false, null][i % 3]).map(String)}]`],
  ['empty lists and objects', 1, (n: number) => `[${'[],'.repeat(n - 1)}{}]`],
  ['names', 2, (n: number) => `{${Array.from({ length: n }, (_, i) => `"k${i}":0`).join(',')}}`],
])('40,000 tokens are accepted, and one more is body_too_large: %s', (_what, each, text) => {
  // The list or object around them is a token too.
  const most = Math.floor((40_000 - 1) / each);
  expect(refusedAs(Buffer.from(text(most)))).toBeUndefined();
  expect(refusedAs(Buffer.from(text(most + 1)))).toBe('body_too_large');
});

test('a body with too many tokens is not read to its end', () => {
  // contract: errors-14
  expect(refusedAs(Buffer.from(`[${'1,'.repeat(500_000)} this is not JSON`))).toBe('body_too_large');
  expect(refusedAs(Buffer.from('1 '.repeat(500_000)))).toBe('body_too_large');
});
