import cldr from 'cldr-core/supplemental/currencyData.json' with { type: 'json' };
import iso from 'currency-codes';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalDecimal,
  currencies,
  currencyDigits,
  fromMinor,
  isCurrency,
  maxDecimalLength,
  maxMinor,
  toMinor,
  withdrawnOn,
} from './money.ts';

describe('currencies', () => {
  it('have the decimal places of ISO 4217, even if Intl differs', () => {
    expect(currencyDigits('USD')).toBe(2);
    expect(['JPY', 'KRW', 'CLP', 'ISK', 'UGX', 'XOF'].map(currencyDigits)).toEqual([0, 0, 0, 0, 0, 0]);
    expect(['BHD', 'IQD', 'KWD', 'TND'].map(currencyDigits)).toEqual([3, 3, 3, 3]);
    expect(['CLF', 'UYW'].map(currencyDigits)).toEqual([4, 4]);
    expect(['AFN', 'IDR', 'HUF', 'TZS', 'MRU', 'MGA'].map(currencyDigits)).toEqual([2, 2, 2, 2, 2, 2]);
    expect(currencies.length).toBe(new Set(currencies).size);
    expect([...currencies].sort()).toEqual(currencies);
    for (const code of currencies) expect(code).toMatch(/^[A-Z]{3}$/);
  });

  const inUse = currencies.filter((code) => withdrawnOn(code) === undefined);
  /** Returns what only the first list has, and what only the second has. */
  const differences = (a: readonly string[], b: readonly string[]) => [
    a.filter((code) => !b.includes(code)).sort(),
    b.filter((code) => !a.includes(code)).sort(),
  ];
  const noMinorUnits = ['XAG', 'XAU', 'XBA', 'XBB', 'XBC', 'XBD', 'XDR', 'XPD', 'XPT', 'XSU', 'XTS', 'XUA', 'XXX'];

  it('are those of ISO 4217: of its list of 2024 all but later amendments, with the same decimal places', () => {
    const added = ['XAD', 'XCG'];
    const removed = ['ANG', 'BGN', 'CUC'];
    expect(iso.publishDate).toBe('2024-06-25');
    expect(differences(inUse, iso.codes())).toEqual([added, [...removed, ...noMinorUnits].sort()]);
    expect(
      currencies.filter((code) => !added.includes(code) && iso.code(code)?.digits !== currencyDigits(code)),
    ).toEqual([]);
  });

  it('are those that CLDR knows as in use, and were withdrawn when it says, or when ISO 4217 did', () => {
    // The last days as legal tender of each currency in each region.
    const ends = Map.groupBy(
      Object.values(cldr.supplemental.currencyData.region)
        .flat()
        .flatMap((each) => Object.entries(each)),
      ([code]) => code,
    );
    const endOf = (code: string) =>
      ends
        .get(code)
        ?.map(([, use]) => ('_to' in use ? use._to : '9999'))
        .sort()
        .at(-1) ?? '';
    const used = [...ends.keys()].filter((code) => endOf(code) > '2026-11-27');
    expect(differences(inUse, used)).toEqual([
      // ISO 4217 lists it, although El Salvador has paid in USD since 2001.
      ['SVC'],
      // Not in ISO 4217: the yuan outside of China. Without minor units: the others.
      ['CNH', ...noMinorUnits],
    ]);
    const days = ['CUC', 'HRK', 'SLL', 'ZWL', 'ANG', 'BGN'].map((code) => [code, withdrawnOn(code), endOf(code)]);
    expect(days).toEqual([
      ['CUC', '2021-06-01', '2021-06-01'],
      // Both were paid with for some days or weeks after the euro.
      ['HRK', '2023-01-01', '2023-01-14'],
      ['SLL', '2024-01-01', '2023-12-31'],
      ['ZWL', '2024-09-01', '2024-08-31'],
      // For three months beside XCG.
      ['ANG', '2025-03-31', '2025-06-30'],
      ['BGN', '2026-01-01', '2026-01-31'],
    ]);
  });

  it('differ from Intl only for reasons', () => {
    const funds = ['BOV', 'CHE', 'CHW', 'CLF', 'COU', 'MXV', 'USN', 'UYI', 'UYW'];
    const notCash = ['VED', 'XAD'];
    const withdrawn = ['ANG', 'BGN', 'CUC', 'HRK', 'SLL', 'ZWL'];
    const unitsOfAccount = ['XDR', 'XSU'];
    expect(differences(inUse, Intl.supportedValuesOf('currency'))).toEqual([
      [...funds, ...notCash].sort(),
      [...withdrawn, ...unitsOfAccount].sort(),
    ]);
    expect(withdrawn.filter((code) => withdrawnOn(code) === undefined)).toEqual([]);
  });

  it('throw if they are unknown', () => {
    expect(() => currencyDigits('ABC')).toThrow('ABC');
    expect(() => fromMinor(1n, 'usd')).toThrow('usd');
  });

  it('include those of the largest economies and of the region', () => {
    for (const code of 'USD EUR GBP CHF CNY INR BRL CAD AUD ZAR KES UGX TZS RWF ETB NGN GHS EGP MAD XOF XAF SGD SEK NOK MXN PLN TRY'.split(
      ' ',
    ))
      expect(isCurrency(code)).toBe(true);
  });

  it('are unknown in lower case, without minor units, or if they are other words', () => {
    for (const code of ['usd', 'XAU', 'XTS', 'XXX', 'ABC', '', 'constructor']) expect(isCurrency(code)).toBe(false);
  });
});

describe('canonicalDecimal', () => {
  it('keeps the exact value', () => {
    const same = {
      '10.00': '10',
      '10.000': '10',
      '1e2': '100',
      '1.005e1': '10.05',
      '-0': '0',
      '0.00': '0',
      '-0.5e-1': '-0.05',
      '1E+3': '1000',
      '5e-1': '0.5',
      '007': '7',
      '100.00000000000000001': '100.00000000000000001',
    };
    for (const [text, value] of Object.entries(same)) expect(canonicalDecimal(text)).toBe(value);
  });

  it('never returns a longer text than messages allow', () => {
    for (const text of [
      `${'9'.repeat(36)}e30`,
      `1.${'2'.repeat(34)}e-30`,
      `-1.${'2'.repeat(33)}e-30`,
      `-${'9'.repeat(35)}e30`,
    ]) {
      expect(text.length).toBeLessThanOrEqual(40);
      expect(canonicalDecimal(text)?.length).toBeLessThanOrEqual(maxDecimalLength);
    }
  });

  it('refuses exponents without expanding them', () => {
    for (const text of [
      '1e400',
      '1e-400',
      '1e31',
      '1'.repeat(41),
      '',
      'NaN',
      'Infinity',
      '0x10',
      '1.',
      '.5',
      '1e',
      '+1',
      ' 1',
      '1_000',
      '10,5',
    ])
      expect(canonicalDecimal(text)).toBeUndefined();
  });
});

describe('minor units', () => {
  it('enforce the digits of the currency on the exact value', () => {
    expect(toMinor('10.05', 'USD')).toBe(1005n);
    expect(toMinor('10.005', 'USD')).toBe('invalid_amount_precision');
    expect(toMinor('1.5', 'JPY')).toBe('invalid_amount_precision');
    expect(toMinor('1.234', 'BHD')).toBe(1234n);
    expect(toMinor('100.00000000000000001', 'USD')).toBe('invalid_amount_precision');
  });

  it('are limited to 10^15 - 1', () => {
    expect(toMinor('9999999999999.99', 'USD')).toBe(maxMinor);
    expect(toMinor('10000000000000', 'USD')).toBe('amount_too_large');
    expect(toMinor('999999999999999', 'JPY')).toBe(maxMinor);
  });

  it('accept unnecessary zeros and negative numbers', () => {
    const counted = {
      '10.0500': 1005n,
      '0.01': 1n,
      '.5': 50n,
      '7': 700n,
      '-10.05': -1005n,
      '-0.01': -1n,
      '-9999999999999.99': -maxMinor,
    } as const;
    for (const [text, minor] of Object.entries(counted)) expect(toMinor(text, 'USD')).toBe(minor);
    expect(toMinor('-10000000000000', 'USD')).toBe('amount_too_large');
    expect(toMinor('1.0', 'JPY')).toBe(1n);
  });

  it('are formatted with all digits of the currency', () => {
    expect([
      fromMinor(0n, 'USD'),
      fromMinor(5n, 'USD'),
      fromMinor(-5n, 'USD'),
      fromMinor(-1050n, 'USD'),
      fromMinor(5n, 'BHD'),
      fromMinor(12n, 'CLF'),
    ]).toEqual(['0.00', '0.05', '-0.05', '-10.50', '0.005', '0.0012']);
    expect([fromMinor(0n, 'JPY'), fromMinor(-7n, 'JPY')]).toEqual(['0', '-7']);
  });

  it('survive formatting and parsing, also through a double', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -maxMinor, max: maxMinor }), fc.constantFrom(...currencies), (minor, currency) => {
        const text = fromMinor(minor, currency);
        expect(toMinor(canonicalDecimal(text) ?? '', currency)).toBe(minor);
        const throughDouble = canonicalDecimal(JSON.stringify(Number(text)));
        expect(toMinor(throughDouble ?? '', currency)).toBe(minor);
      }),
    );
  });
});
