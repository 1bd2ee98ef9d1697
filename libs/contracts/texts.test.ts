import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { text } from './texts.ts';

const broken = (schema: z.ZodType, value: unknown) =>
  schema.safeParse(value).error?.issues.map(({ message }) => message) ?? [];
const matches = (schema: z.ZodType, value: string) => new RegExp(String(schema.meta()?.['pattern']), 'u').test(value);

describe('texts', () => {
  const name = text(1, 100);
  const address = text(0, 500, { lines: true });

  test.each([
    ['a\u0007b', 'control characters'],
    ['a\nb', 'control characters'],
    ['a\tb', 'control characters'],
    ['a\u0085', 'control characters'],
    ['a\u202eb', 'direction'],
    ['a\u2066b', 'direction'],
    ['\u200fa', 'direction'],
    ['a\u061cb', 'direction'],
    ['a\u{e0041}', 'tag characters'],
    ['a\ufdd0', 'no characters'],
    ['a\uffff', 'no characters'],
    ['a\u{1fffe}', 'no characters'],
    ['a\u0378', 'no characters'],
    ['a\u200d', 'joiners'],
    ['\u200ca', 'joiners'],
    ['a\u200d b', 'joiners'],
    ['1\u200d2', 'joiners'],
    ['\u200b', 'visible'],
    ['\u3164', 'visible'],
    ['\u00ad\u2060', 'visible'],
    ['\u2800', 'visible'],
    ['   ', '1 to 100'],
    ['', '1 to 100'],
  ])('a name refuses %j: %s', (value, words) => {
    // contract: clients-10
    expect(broken(name, value)).toEqual([expect.stringContaining(words)]);
  });

  test.each(['Wanjikũ', '愛', 'محمد', 'नमस्ते', 'क्\u200dष', 'می\u200cخواهم', "O'Brien-Ståhl", '😀', 'e\u0301', '১২'])(
    'a name accepts %s',
    (value) => {
      // contract: clients-11
      expect([name.parse(value), matches(name, value)]).toEqual([value, true]);
    },
  );

  test('line feeds are allowed only in texts of several lines; CRLF becomes LF, a lone CR is refused', () => {
    // contract: clients-9
    expect(address.parse(' House 3\r\nNairobi\n ')).toBe('House 3\nNairobi');
    expect(matches(address, 'a\nb')).toBe(true);
    for (const value of ['a\rb', 'a\tb', 'a\u202eb']) expect(broken(address, value)).toHaveLength(1);
    expect(broken(text(0, 255), 'a\r\nb')).toEqual([expect.stringContaining('control')]);
  });

  test.each(['a\u0007b', 'a\u202eb', 'a\ufdd0', '\u200b', '\u3164'])(
    'the documented pattern also refuses %j',
    (value) => {
      expect(matches(name, value)).toBe(false);
    },
  );
});
