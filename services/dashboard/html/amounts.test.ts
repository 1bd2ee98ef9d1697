import { afterEach, describe, expect, it } from 'vitest';
import { setBankFormats } from '#libs/service/formats.ts';
import { jsonNumber, minorOf, typedAmount } from './amounts.ts';

const setLocale = (locale: string | undefined) => setBankFormats({ timeZone: 'UTC', locale });
afterEach(() => setLocale(undefined));

describe('an entered amount', () => {
  it.each([
    ['1500', 'USD', '1500.00'],
    ['1,500', 'USD', '1500.00'],
    ['1 500,50', 'USD', '1500.50'],
    ['1\u00a0500,50', 'USD', '1500.50'],
    ['1\u202f500.5', 'USD', '1500.50'],
    ['1500,5', 'USD', '1500.50'],
    ['1.500,50', 'EUR', '1500.50'],
    ['1,500.50', 'USD', '1500.50'],
    ['1’500.50', 'CHF', '1500.50'],
    ['12,34,567.80', 'INR', '1234567.80'],
    ['1,234,567', 'USD', '1234567.00'],
    ['1.234.567,8', 'EUR', '1234567.80'],
    ['1.234.567', 'EUR', '1234567.00'],
    ['1,500', 'JPY', '1500'],
    ['1500,250', 'KWD', '1500.250'],
    ['0.05', 'USD', '0.05'],
    ['0,05', 'USD', '0.05'],
    ['007', 'USD', '7.00'],
    ['1.50', 'KWD', '1.500'],
    [' KES 1,500 ', 'KES', '1500.00'],
    ['1500 kes', 'KES', '1500.00'],
    ['1500KES', 'KES', '1500.00'],
    ['9999999999999.99', 'USD', '9999999999999.99'],
    // Marks of the currency, before and behind.
    ['Ksh 1,500', 'KES', '1500.00'],
    ['KSh1,500.50', 'KES', '1500.50'],
    ['Ksh. 1,500', 'KES', '1500.00'],
    ['Ksh.1,500', 'KES', '1500.00'],
    ['KES 1,500.00', 'KES', '1500.00'],
    ['KES Ksh 1 500', 'KES', '1500.00'],
    ['$100', 'USD', '100.00'],
    ['US$ 100', 'USD', '100.00'],
    ['＄100', 'USD', '100.00'],
    ['$100', 'CAD', '100.00'],
    ['$1,500.50 AUD', 'AUD', '1500.50'],
    ['€1.500,50', 'EUR', '1500.50'],
    ['1.500,50 €', 'EUR', '1500.50'],
    ['£12.34', 'GBP', '12.34'],
    ['￥1,500', 'JPY', '1500'],
    ['¥1,500', 'CNY', '1500.00'],
    ['₹12,34,567.80', 'INR', '1234567.80'],
    ['Rs.500', 'INR', '500.00'],
    ['Rs 1,500', 'PKR', '1500.00'],
    ['₨1,500', 'LKR', '1500.00'],
    ['TSh 1,500/=', 'TZS', '1500.00'],
    ['USh 1,500', 'UGX', '1500'],
    ['1 500 F CFA', 'XOF', '1500'],
    ['R 1 500,50', 'ZAR', '1500.50'],
    ['₦1,500', 'NGN', '1500.00'],
    ['د.ك. ١٬٥٠٠٫٢٥٠', 'KWD', '1500.250'],
    ['د.إ.\u200f 1,500', 'AED', '1500.00'],
    // Marks that people write, and CLDR does not know.
    ['Kshs 1,500/-', 'KES', '1500.00'],
    ['Kshs. 1500', 'KES', '1500.00'],
    ['Kshs.1500', 'KES', '1500.00'],
    ['Sh 1500', 'KES', '1500.00'],
    ['sh1500/=', 'KES', '1500.00'],
    ['1500 Shs', 'KES', '1500.00'],
    ['Sh 1500', 'TZS', '1500.00'],
    ['Tshs 1,500/=', 'TZS', '1500.00'],
    ['Shs 1500', 'UGX', '1500'],
    ['Ushs 1,500', 'UGX', '1500'],
    ['Sh 1500', 'SOS', '1500.00'],
    ['Tk 100', 'BDT', '100.00'],
    ['Tk. 100/-', 'BDT', '100.00'],
    ['Br 100', 'ETB', '100.00'],
    ['Br 100', 'BYN', '100.00'],
    ['Frw 100', 'RWF', '100'],
    ['100 RF', 'RWF', '100'],
    ['CFA 100', 'XOF', '100'],
    ['100 CFA', 'XAF', '100'],
    ['1 500 FCFA', 'XOF', '1500'],
    ['₵100', 'GHS', '100.00'],
    ['GH¢100', 'GHS', '100.00'],
    ['GH₵ 100', 'GHS', '100.00'],
    ['N100', 'NGN', '100.00'],
    ['KD 1.500', 'KWD', '1.500'],
    ['BD 1.500', 'BHD', '1.500'],
    ['Dh 100', 'MAD', '100.00'],
    ['100 DH', 'MAD', '100.00'],
    ['Dhs. 100', 'AED', '100.00'],
    ['SR 100', 'SAR', '100.00'],
    ['SR 100', 'SCR', '100.00'],
    ['QR 100', 'QAR', '100.00'],
    ['S$100', 'SGD', '100.00'],
    ['C$100', 'CAD', '100.00'],
    ['C$100', 'NIO', '100.00'],
    ['A$100', 'AUD', '100.00'],
    ['NZ$100', 'NZD', '100.00'],
    ['Fr. 100.-', 'CHF', '100.00'],
    ['SFr. 100.–', 'CHF', '100.00'],
    ['100元', 'CNY', '100.00'],
    ['RMB 100', 'CNY', '100.00'],
    ['100円', 'JPY', '100'],
    ['JP¥100', 'JPY', '100'],
    ['1.500,50 TL', 'TRY', '1500.50'],
    ['P100', 'PHP', '100.00'],
    ['P100', 'BWP', '100.00'],
    ['M100', 'LSL', '100.00'],
    ['L100', 'LSL', '100.00'],
    ['E100', 'SZL', '100.00'],
    ['K100', 'ZMW', '100.00'],
    ['MK 100', 'MWK', '100.00'],
    ['D100', 'GMD', '100.00'],
    ['LE 100', 'EGP', '100.00'],
    // Whole amounts.
    ['1500/-', 'KES', '1500.00'],
    ['Ksh 1,500/=', 'KES', '1500.00'],
    ['1500/–', 'INR', '1500.00'],
    ["CHF 1'500.–", 'CHF', '1500.00'],
    ['1.500,-', 'EUR', '1500.00'],
    ['1.500,-', 'KWD', '1500.000'],
    ['€ 1.500,--', 'EUR', '1500.00'],
    ['1500:-', 'SEK', '1500.00'],
    // Digits of other scripts, and groups of four.
    ['٣٤', 'USD', '34.00'],
    ['١٬٥٠٠٫٥٠', 'EGP', '1500.50'],
    ['۱٬۵۰۰', 'IRR', '1500.00'],
    ['۱،۵۰۰', 'PKR', '1500.00'],
    ['१२,३४,५६७.८०', 'INR', '1234567.80'],
    ['১,৫০০৳', 'BDT', '1500.00'],
    ['๑,๕๐๐', 'THB', '1500.00'],
    ['１，５００．５０', 'CNY', '1500.50'],
    ['1,0000,0000', 'CNY', '100000000.00'],
    ['1,0000.50', 'CNY', '10000.50'],
    ['\u200e1,500\u200e', 'USD', '1500.00'],
  ])('%s in %s is %s', (typed, currency, amount) => {
    expect(typedAmount(typed, currency)).toEqual({ amount });
  });

  it.each<[string, string, string]>([
    ['', 'USD', 'Enter an amount.'],
    ['0', 'USD', 'above 0'],
    ['0,00', 'USD', 'above 0'],
    ['-5', 'USD', 'above 0'],
    ['−5', 'USD', 'above 0'],
    ['1.005', 'JPY', 'Is this 1005? Write it without a point.'],
    ['10.5', 'JPY', 'no decimals'],
    ['10.555', 'USD', 'Is this 10555, or 10.55?'],
    ['1500.555', 'USD', '2 decimals at most'],
    ['1.500', 'USD', 'Is this 1500, or 1.50?'],
    ['1,500', 'KWD', 'Is this 1500, or 1.500?'],
    ['0,500', 'USD', 'Is this 500, or 0.50?'],
    ['00.500', 'USD', 'Is this 500, or 0.50?'],
    ['007,500', 'EUR', 'Is this 7500, or 7.50?'],
    ['1500 EUR', 'KES', 'in KES, not in EUR'],
    // Only marks of grouping and decimals stand between digits.
    ...[
      '100-200',
      '100–200',
      '100 - 200',
      '2*500',
      '10+500',
      '1/500',
      '1/500/-',
      '1e500',
      '1E100',
      '1e3',
      '100;200',
      '27/112',
      '3@500',
      '1x500',
      '1×500',
      '1:500',
      '1=500',
      '1_500',
      '1·500',
      '1"500',
      '1|500',
      '1~500',
      '1%500',
      '1#500',
      '1(500)',
      '1k500',
      '100Ksh200',
      '100,200;300',
    ].flatMap((typed) =>
      ['KES', 'JPY', 'KWD'].map((currency) => [typed, currency, 'not an amount'] as [string, string, string]),
    ),
    ['12 34', 'USD', 'not an amount'],
    ['1,50,0', 'USD', 'not an amount'],
    ['1,500,50', 'USD', 'not an amount'],
    ['1..5', 'USD', 'not an amount'],
    ['abc', 'USD', 'not an amount'],
    ['.5', 'USD', 'not an amount'],
    ['5.', 'USD', 'not an amount'],
    ['99999999999999.99', 'USD', 'more than the bank accepts'],
    ['9'.repeat(41), 'USD', 'not an amount'],
    // A mark with more digits behind it than the currency has.
    ['1,0000', 'CNY', 'Is this 10000, or 1.00?'],
    ['1.0000', 'USD', 'Is this 10000, or 1.00?'],
    ['100,0000', 'JPY', 'Is this 1000000, or 100?'],
    ['1500.00', 'JPY', 'Is this 150000, or 1500?'],
    ['1500.000', 'USD', 'Is this 1500000, or 1500.00?'],
    ['1.500,000', 'EUR', 'Is this 1500000, or 1500.00?'],
    ['1,500.0000', 'KWD', 'Is this 15000000, or 1500.000?'],
    ['1.5000', 'KWD', 'Is this 15000, or 1.500?'],
    ['1,2345', 'USD', '2 decimals at most'],
    ['1.500 kr', 'NOK', 'Is this 1500, or 1.50?'],
    // Points that may end an abbreviation.
    ['Rs.50', 'INR', 'Is this 50, or 0.50?'],
    ['$.50', 'USD', 'not an amount'],
    ['KES.50', 'KES', 'not an amount'],
    ['Ksh .50', 'KES', 'not an amount'],
    // Marks of other currencies.
    ['$100', 'KES', 'in KES, not in USD'],
    ['100 €', 'KES', 'in KES, not in EUR'],
    ['Ksh 1,500', 'USD', 'in USD, not in KES'],
    ['CA$100', 'USD', 'in USD, not in CAD'],
    ['US$100', 'CAD', 'in CAD, not in USD'],
    ['¥100', 'USD', 'in USD, not in JPY'],
    ['100 kr', 'EUR', 'in EUR, not in DKK or ISK or NOK'],
    ['TSh 100', 'KES', 'in KES, not in TZS'],
    ['$100 EUR', 'USD', 'in USD, not in EUR'],
    ['Sh 100', 'USD', 'in USD, not in KES or SOS or TZS'],
    ['Dh 100', 'USD', 'in USD, not in AED or MAD'],
    ['S$100', 'USD', 'in USD, not in SGD'],
    ['C$100', 'USD', 'in USD, not in CAD or NIO'],
    ['SR 100', 'KES', 'in KES, not in SAR or SCR'],
    ['N100', 'KES', 'in KES, not in NGN'],
    ['Br 100', 'KES', 'in KES, not in BYN or ETB'],
    ['CFA 100', 'KES', 'in KES, not in XAF or XOF'],
    ['₵100', 'NGN', 'in NGN, not in GHS'],
    ['100元', 'JPY', 'in JPY, not in CNY or TWD'],
    ['100円', 'CNY', 'in CNY, not in JPY'],
    ['RMB 100', 'TWD', 'in TWD, not in CNY'],
    ['TL 100', 'EUR', 'in EUR, not in TRY'],
    ['Kshs 100', 'TZS', 'in TZS, not in KES'],
    ['Tshs 100', 'KES', 'in KES, not in TZS'],
    ['KD 1.500', 'BHD', 'in BHD, not in KWD'],
    ['5K', 'ZMW', 'not an amount'],
    ['5k', 'USD', 'not an amount'],
    ['5 M', 'LSL', 'not an amount'],
    ['USD 100 Ksh', 'USD', 'in USD, not in KES'],
    // What is not an amount.
    ['1500/-', 'USD', 'not an amount'],
    ['1,50,-', 'EUR', 'not an amount'],
    ['-$5', 'USD', 'above 0'],
    ['$-5', 'USD', 'above 0'],
    ['500-', 'USD', 'not an amount'],
    ['(500)', 'USD', 'not an amount'],
    ['+500', 'USD', 'not an amount'],
    ['1²', 'USD', 'not an amount'],
    ['½', 'USD', 'not an amount'],
    ['①', 'USD', 'not an amount'],
    ['0,500,000', 'USD', 'not an amount'],
    ['1 0000', 'CNY', 'not an amount'],
    ['12:30', 'USD', 'not an amount'],
    ['100 shillings', 'KES', 'not an amount'],
    ['=100', 'USD', 'not an amount'],
  ])('%s in %s is refused with an explanation', (typed, currency, words) => {
    expect(typedAmount(typed, currency)).toEqual({ wrong: expect.stringContaining(words) });
  });

  // Of each language: a currency with 2 decimals, one without, and one with 3, each written 1,500 and 1.500.
  it.each([
    [undefined, '1500.00', 'ask', '1500', 'ask', 'ask', '1.500'],
    ['en-KE', '1500.00', 'ask', '1500', 'ask', 'ask', '1.500'],
    ['en-IN', '1500.00', 'ask', '1500', 'ask', 'ask', '1.500'],
    ['zh-CN', '1500.00', 'ask', '1500', 'ask', 'ask', '1.500'],
    ['ar-EG', '1500.00', 'ask', '1500', 'ask', 'ask', '1.500'],
    ['fa-IR', '1500.00', 'ask', '1500', 'ask', 'ask', '1.500'],
    ['de-DE', 'ask', '1500.00', 'ask', '1500', '1.500', 'ask'],
    ['es-ES', 'ask', '1500.00', 'ask', '1500', '1.500', 'ask'],
    ['pt-BR', 'ask', '1500.00', 'ask', '1500', '1.500', 'ask'],
    ['fr-FR', 'ask', 'ask', 'ask', 'ask', '1.500', 'ask'],
    ['sv-SE', 'ask', 'ask', 'ask', 'ask', '1.500', 'ask'],
    ['de-CH', 'ask', 'ask', 'ask', 'ask', 'ask', '1.500'],
  ])('in %s is 1,500 or 1.500 as that language writes it, otherwise asked back', (locale, ...expected) => {
    setLocale(locale);
    const results = ['KES', 'JPY', 'KWD'].flatMap((currency) => [
      typedAmount('1,500', currency),
      typedAmount('1.500', currency),
    ]);
    expect(
      results.map((result) => ('amount' in result ? result.amount : result.wrong.replace(/^Is this 1500\b.*/, 'ask'))),
    ).toEqual(expected);
  });

  const languages = [
    'en-KE',
    'en-IN',
    'de-DE',
    'fr-FR',
    'sv-SE',
    'de-CH',
    'pt-PT',
    'pl-PL',
    'ar-EG',
    'fa-IR',
    'bn-BD',
    'hi-IN',
    'my-MM',
    'th-TH',
    'zh-CN',
    'ja-JP',
    'sw-TZ',
    'am-ET',
    'ru-RU',
  ];
  it.each(languages)('is read as Intl formats it in %s, with the digits of that language too', (locale) => {
    setLocale(locale);
    for (const [currency, text] of [
      ['KES', '1234567.80'],
      ['JPY', '1234567'],
      ['KWD', '1234567.891'],
      ['INR', '1234.56'],
      ['EUR', '0.05'],
    ] as const)
      for (const numberingSystem of [undefined, 'latn', 'arab', 'deva'])
        for (const currencyDisplay of ['code', 'symbol', 'narrowSymbol'] as const) {
          const format = { style: 'currency', currency, currencyDisplay, numberingSystem } as const;
          const typed = new Intl.NumberFormat(locale, format).format(text);
          expect([typed, typedAmount(typed, currency)]).toEqual([typed, { amount: text }]);
        }
  });

  it.each(languages)('with more decimals than its currency has is asked back in %s', (locale) => {
    setLocale(locale);
    for (const [currency, digits] of [
      ['USD', 3],
      ['USD', 4],
      ['KES', 6],
      ['JPY', 1],
      ['JPY', 2],
      ['JPY', 3],
      ['JPY', 4],
      ['KWD', 4],
      ['KWD', 5],
    ] as const)
      for (const value of ['12345', '12', '1']) {
        const format = { minimumFractionDigits: digits, numberingSystem: 'latn' } as const;
        for (const useGrouping of [true, false]) {
          const typed = new Intl.NumberFormat(locale, { ...format, useGrouping }).format(BigInt(value));
          expect([typed, currency, typedAmount(typed, currency)]).toEqual([
            typed,
            currency,
            { wrong: expect.stringMatching(/^Is this \d+, or [\d.,]+\? Write one of the two\.$/) },
          ]);
        }
      }
  });

  it('a question is answered by typing what it offers', () => {
    for (const locale of [undefined, ...languages]) {
      setLocale(locale);
      for (const [typed, currency] of [
        ['1.500', 'KWD'],
        ['1,500', 'KWD'],
        ['1.0000', 'USD'],
        ['1,500', 'USD'],
        ['1.500', 'USD'],
        ['1500.00', 'JPY'],
      ] as const) {
        const result = typedAmount(typed, currency);
        const [, more = '', less = ''] = /^Is this (\S+), or (\S+)\?/.exec('wrong' in result ? result.wrong : '') ?? [];
        if ('wrong' in result)
          expect([locale, typed, currency, typedAmount(more, currency), typedAmount(less, currency)]).toEqual([
            locale,
            typed,
            currency,
            { amount: expect.any(String) },
            { amount: expect.any(String) },
          ]);
      }
    }
  });

  it('is sent to the API as a JSON number with exactly these digits', () => {
    expect(JSON.stringify({ amount: jsonNumber('9999999999999.99') })).toBe('{"amount":9999999999999.99}');
    expect(JSON.stringify({ amount: jsonNumber('1,5') })).toBe('{"amount":"1,5"}');
  });
});

it.each([
  ['0', 'USD', 0n],
  ['0.5', 'USD', 50n],
  ['-0.50', 'USD', -50n],
  ['1500', 'JPY', 1500n],
  ['-1.250', 'KWD', -1250n],
  ['10000000000000.01', 'USD', 1000000000000001n],
])('the amount %s %s from the API is %s minor units, also if no operation can have it', (decimal, currency, minor) => {
  expect(minorOf(decimal, currency)).toBe(minor);
});
