import { describe, expect, test } from 'vitest';
import { type HomeCountry, hasLostPlus, phone, phoneParameter, withHomeCountry } from './phones.ts';

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
    // A plan without trunk prefix: a 0 before the number is none of its digits.
    ['+30 0 691 234 5678', '+306912345678'],
    ['+48 0 512 345 678', '+48512345678'],
    ['+420 0 601 123 456', '+420601123456'],
    ['+57 0 321 123 4567', '+573211234567'],
    ['+56 0 2 2123 4567', '+56221234567'],
    ['+352 0 628 123 456', '+352628123456'],
    ['+852 0 5123 4567', '+85251234567'],
    ['+974 0 3312 3456', '+97433123456'],
    ['+268 0 7612 3456', '+26876123456'],
    ['+968 0 9212 3456', '+96892123456'],
    ['+39 (0) 312 345 6789', '+393123456789'],
    ['+39 (0) 31 234 567', '+39031234567'],
    ['+44\uff080\uff0920 7946 0958', '+442079460958'],
    ['+44 [0] 20 7946 0958', '+442079460958'],
    ['+44 ( 0 ) 20 7946 0958', '+442079460958'],
    ...['\t', '\u2028', '\u2029', '\u1680', '\ufe0f', '\u034f', '\u3164', '\u00b7', '\u2022', '\uff0e', '\u301c'].map(
      (mark) => [`+254${mark}700${mark}000001`, '+254700000001'],
    ),
    ['\uff0b\uff12\uff15\uff14 \uff17\uff10\uff10 000 001', '+254700000001'],
    ['+٢٥٤ ٧٠٠ ٠٠٠ ٠٠١', '+254700000001'],
    ['+२५४ ७०० ००० ००१', '+254700000001'],
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
    // The 0 of these plans is a digit of the number: a spreadsheet has taken it off.
    ['+39 6 12345678', 'numbering plan'],
    ['+242 6 612 3456', 'numbering plan'],
    // Without its 0 it is no assigned number either.
    ['+30 0 555 123 4567', 'numbering plan'],
    ...[
      '+4930123456.000',
      '+4930123456.0\u200e',
      '+4930123456 .0',
      '+4930123456. 0',
      '+49 30 1234.0',
      '+4930123456.0\u00a0',
      '+4930123456\uff0e\uff10',
      '+4930123456\u066b0',
      '٤٩٣٠١٢٣٤٥٦.٠',
      '+4930123456.\u200b0',
    ].map((given) => [given, 'spreadsheet']),
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
    [inCountry('GR'), '0 210 123 4567', '+302101234567'],
    [inCountry('PL'), '0601 234 567', '+48601234567'],
    [inCountry('CZ'), '0212 345 678', '+420212345678'],
    [inCountry('KE'), '٠٧٠٠ ٠٠٠ ٠٠١', '+254700000001'],
    [inCountry('KE'), '\uff10\uff17\uff10\uff10 000 001', '+254700000001'],
    [inCountry('IN'), '91987 65432', '+919198765432'],
    [inCountry('IT'), '391 234 5678', '+393912345678'],
    [inCountry('IT'), '39 312 345 6789', '+393123456789'],
    [inCountry('PL'), '48 512 345 678', '+48512345678'],
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

  test.each<[string, string, string]>([
    ['DE', '491512345678', 'two ways'],
    ['DE', '4915123456789', 'two ways'],
    ['ID', '6281234567', 'two ways'],
    ['IT', '6 12345678', 'numbering plan'],
  ])('in %s %j is refused: it may be two telephones, or none', (country, given, words) => {
    // contract: clients-14, clients-15
    expect(read(given, inCountry(country))).toContain(words);
  });

  test.each(['+44 20 7946 0958', '0044 20 7946 0958', '\u200e+44 20 7946 0958'])(
    'a home country does not change %j',
    (given) => {
      expect(read(given, inCountry('KE'))).toBe('+442079460958');
    },
  );
});

test('a plus that was decoded to a blank is read as a plus in a parameter only', () => {
  // contract: clients-19
  expect(phoneParameter.parse('( 254) 700 000 001')).toBe('+254700000001');
  expect(phoneParameter.parse('\u200e 254700000001')).toBe('+254700000001');
  expect(hasLostPlus('( 0700) 000001')).toBe(false);
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
