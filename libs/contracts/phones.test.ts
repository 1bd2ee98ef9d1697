import { describe, expect, test } from 'vitest';
import { type HomeCountry, phone, phoneParameter, withHomeCountry } from './phones.ts';

const read = (given: string, home?: HomeCountry) => {
  const { data, error } = phone.safeParse(home === undefined ? given : withHomeCountry(given, home));
  return data ?? error?.issues[0]?.message;
};
const inCountry = (country: string): HomeCountry => ({ country });

describe('a number with country code has the one form of its numbering plan', () => {
  test.each([
    ['+254 (700) 000.001', '+254700000001'],
    ['00254-700-000-001', '+254700000001'],
    ['(+254) 700 000 001', '+254700000001'],
    ...[
      '\u2010',
      '\u2011',
      '\u2012',
      '\u2013',
      '\u2014',
      '\u2212',
      '\ufe63',
      '\uff0d',
      '\u00a0',
      '\u2009',
      '\u3000',
    ].map((mark) => [`+254${mark}700${mark}000001`, '+254700000001']),
    ...[
      '\u202a+254700000001\u202c',
      '\u200e+254700000001',
      '\u200b+254 700000001\ufeff',
      '\u2068+254700000001\u2069',
    ].map((copied) => [copied, '+254700000001']),
    // The trunk prefix of the country, left in, is dropped; where it is part of the number it stays.
    ['+254 0700 000 001', '+254700000001'],
    ['+44 (0)20 7946 0958', '+442079460958'],
    ['0044 (0) 20.7946.0958', '+442079460958'],
    ['+44 020 7946 0958', '+442079460958'],
    ['+49 (0)30 123456', '+4930123456'],
    ['+81 090 1234 5678', '+819012345678'],
    ['+7 8 916 123 45 67', '+79161234567'],
    ['+36 06 20 123 4567', '+36201234567'],
    ['+370 8 612 34567', '+37061234567'],
    ['+375 8 029 1234567', '+375291234567'],
    ['+880 01712 345678', '+8801712345678'],
    ['+55 0 11 91234-5678', '+5511912345678'],
    ['+54 11 15-1234-5678', '+5491112345678'],
    ['+34 (0)91 123 45 67', '+34911234567'],
    ['+39 (0)6 1234 5678', '+390612345678'],
    ['+39 06 1234 5678', '+390612345678'],
    ['+225 07 01 02 03 04', '+2250701020304'],
    ['+242 06 612 3456', '+242066123456'],
    ['+241 06 03 12 34', '+24106031234'],
    ['+800 1234 5678', '+80012345678'],
    // Not assigned, as far as the metadata knows, but of a possible length: plans grow.
    ['+1 555 010 0000', '+15550100000'],
  ])('%j is %s', (given, kept) => {
    // contract: clients-13
    expect(read(given)).toBe(kept);
    expect(read(kept)).toBe(kept);
    expect(given).toMatch(new RegExp(String(phone.meta()?.['pattern']), 'u'));
  });
});

describe('a number that no plan has is refused by name', () => {
  test.each([
    ['+999999999999999', 'numbering plan'],
    ['+25470000000199', 'numbering plan'],
    ['+1234567', 'numbering plan'],
    ['+123456789012345', 'numbering plan'],
    ['+34 091 123 45 67', 'numbering plan'],
    ['+52 1 55 1234 5678', 'numbering plan'],
    ['+229 97 01 23 45', 'numbering plan'],
    ['000700000001', 'numbering plan'],
    ['+0700000001', 'numbering plan'],
    ['254700000001.0', 'spreadsheet'],
    ['700000001.00', 'spreadsheet'],
    ['254700000001,0', 'spreadsheet'],
    ['2.54700000001E+11', '7 to 15 digits'],
    ['+123', '7 to 15 digits'],
    ['+254/700/000001', '7 to 15 digits'],
    ['call me', '7 to 15 digits'],
    ['+25470000000x', '7 to 15 digits'],
    ['+1 201 555 0123 ext. 5', '7 to 15 digits'],
    ['+254700000001;+254700000002', '7 to 15 digits'],
    ['', '7 to 15 digits'],
    ['++254700000002', '7 to 15 digits'],
    ['+254\n700000001', '7 to 15 digits'],
    ['+254\t700000001', '7 to 15 digits'],
    ['+٢٥٤٧٠٠٠٠٠٠٠١', '7 to 15 digits'],
  ])('%j', (given, words) => {
    // contract: clients-15
    expect(phone.safeParse(given).error?.issues.map(({ message }) => message)).toEqual([
      expect.stringContaining(words),
    ]);
  });
});

describe('a number without country code', () => {
  test.each(['0700 000 001', '(0)700 000 002', '700000001', '254700000001', ' 254700000001', '2079460958'])(
    '%j is refused without a home country',
    (given) => {
      // contract: clients-14
      expect(read(given)).toContain('this one is national');
    },
  );

  test.each<[HomeCountry, string, string]>([
    [inCountry('KE'), '0700 000 001', '+254700000001'],
    [inCountry('KE'), '(0)700-000.001', '+254700000001'],
    [inCountry('KE'), '700000001', '+254700000001'],
    [inCountry('KE'), '254700000001', '+254700000001'],
    [{ callingCode: '254' }, '0700 000 001', '+254700000001'],
    [{ callingCode: '44' }, '020 7946 0958', '+442079460958'],
    [inCountry('IT'), '06 1234 5678', '+390612345678'],
    [inCountry('IT'), '331 234 5678', '+393312345678'],
    [inCountry('GA'), '06 03 12 34', '+24106031234'],
    [inCountry('RU'), '8 (916) 123-45-67', '+79161234567'],
    [inCountry('KZ'), '8 701 123 4567', '+77011234567'],
    [inCountry('LT'), '8 612 34567', '+37061234567'],
    [inCountry('HU'), '06 20 123 4567', '+36201234567'],
    [inCountry('US'), '(201) 555-0123', '+12015550123'],
    [inCountry('BR'), '(11) 91234-5678', '+5511912345678'],
  ])('%j: %j is %s', (home, given, kept) => {
    // contract: clients-14
    expect(read(given, home)).toBe(kept);
  });

  test.each(['+0700000001', '0700', '25470000000199', '254700000001.0', 'x0700', ''])(
    '%j is refused also with a home country',
    (given) => {
      expect(phone.safeParse(withHomeCountry(given, inCountry('KE'))).success).toBe(false);
    },
  );

  test.each(['+44 20 7946 0958', '0044 20 7946 0958', '\u200e+44 20 7946 0958'])(
    'a home country does not change %j',
    (given) => {
      expect(read(given, inCountry('KE'))).toBe('+442079460958');
    },
  );
});

test('a plus that was decoded to a blank is read as a plus in a parameter only', () => {
  // contract: clients-19
  expect(phoneParameter.parse(' 254700000001')).toBe('+254700000001');
  expect(phoneParameter.safeParse(' 0700000001').success).toBe(false);
});

test('the time for a text of 80 KB is linear', () => {
  for (const long of [
    `+${'1'.repeat(80_000)}`,
    `${' '.repeat(80_000)}x`,
    `+1${'(0)'.repeat(27_000)}`,
    `00${' 1'.repeat(40_000)}(`,
    `${'1'.repeat(80_000)}.0`,
  ])
    expect([phone.safeParse(long).success, withHomeCountry(long, inCountry('KE'))]).toEqual([false, long]);
});
