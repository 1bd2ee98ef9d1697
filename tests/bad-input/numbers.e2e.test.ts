import { beforeAll, describe, expect, it } from 'vitest';
import type { RestKey } from '../support/client.ts';
import { expectNothingDone, expectRefused, expectViolations, named, postRaw } from '../support/hostile.ts';
import { useBank } from '../support/world.ts';

/**
 * Hostile input: numbers as raw text, in every field that is a number. The exact decimal value of
 * the text counts.
 */
const world = useBank();
const { api } = world;

const currencies = { JPY: 0, USD: 2, KWD: 3, CLF: 4 } as const;
const accounts: Record<string, [from: string, to: string]> = {};
let clientId = '';
let key: RestKey;
beforeAll(async () => {
  ({ client_id: clientId } = await api.client());
  const open = async (currency: string) =>
    (await api.account(clientId, { currency, initial_deposit: 1000 })).account_id;
  for (const currency of Object.keys(currencies)) accounts[currency] = [await open(currency), await open(currency)];
  key = await api.key({ scopes: ['clients:read'] });
});

type Place = (number: string, currency?: string) => { path: string; field: string; raw: string };
const places: Record<string, Place> = {
  'a deposit': (n, currency = 'USD') => ({
    path: '/transactions',
    field: 'amount',
    raw: `{"account_id":"${accounts[currency]?.[0]}","transaction_type":"Deposit","amount":${n}}`,
  }),
  'a withdrawal in a named currency': (n, currency = 'USD') => ({
    path: '/transactions',
    field: 'amount',
    raw: `{"amount":${n},"account_id":"${accounts[currency]?.[0]}","transaction_type":"Withdrawal","currency":"${currency}"}`,
  }),
  'a transfer': (n, currency = 'USD') => ({
    path: '/transfers',
    field: 'amount',
    raw: `{"from_account_id":"${accounts[currency]?.[0]}","amount":${n},"to_account_id":"${accounts[currency]?.[1]}"}`,
  }),
  'an initial deposit': (n, currency = 'USD') => ({
    path: '/accounts',
    field: 'initial_deposit',
    raw: `{"client_id":"${clientId}","account_type":"Savings","currency":"${currency}","initial_deposit":${n}}`,
  }),
};
const send = ({ path, raw }: ReturnType<Place>) => postRaw(api, path, raw);
const digits = (n: number) => '9'.repeat(n);

describe.each(Object.entries(places))('%s: refused', (kind, place) => {
  expectNothingDone(world);

  it.each([
    '01',
    '-01',
    '00',
    '+1',
    '.5',
    '-.5',
    '1.',
    '1.e2',
    '1e',
    '1e+',
    '1E-',
    '1e2.5',
    '1.2.3',
    '--1',
    '-',
    '0x10',
    '0b1',
    '0o7',
    '1n',
    '1_000',
    '1,5',
    '1 000',
    "'1'",
    '1f',
    '1d',
    '$1',
    'NaN',
    'Infinity',
    '-Infinity',
    '\u0661',
    '\uff11',
    '\u00bd',
    '\u22121',
    '1\u00a0',
    '',
  ])('%j is not JSON', async (n) => {
    expectRefused(await send(place(n)), 400, 'malformed_json');
  });

  it.each([
    '"10"',
    '""',
    '"1e2"',
    'true',
    'false',
    '[]',
    '[10]',
    '{}',
    '{"text":"5"}',
    '{"value":"5"}',
    '{"isLosslessNumber":true,"value":"5"}',
  ])('%s is not a number', async (n) => {
    const { field, ...request } = place(n);
    expectViolations(await send({ field, ...request }), [[field, 'invalid_amount']]);
  });

  it.each(
    named([
      '-1',
      '-0.01',
      '-1e-2',
      '-1e400',
      '1e400',
      '1e31',
      '1e-31',
      '-1e31',
      '0e31',
      '1E+0031',
      '1e999999999999999999999',
      '1e-999999999999999999999',
      digits(41),
      `-${digits(40)}`,
      `0.${'0'.repeat(38)}1`,
      `1.${'0'.repeat(39)}`,
      digits(60_000),
      `1e${digits(60_000)}`,
    ]),
  )('%s is invalid_amount and is not expanded', async (_, n) => {
    const { field, ...request } = place(n);
    expectViolations(await send({ field, ...request }), [[field, 'invalid_amount']]);
  });

  it.each<[string, string]>([
    ['100.00000000000000001', 'USD'],
    ['1e-7', 'USD'],
    ['1e-30', 'USD'],
    ['0.001', 'USD'],
    ['9.999', 'USD'],
    ['0.30000000000000004', 'USD'],
    ['1.005', 'USD'],
    ['1005e-3', 'USD'],
    ['0.1', 'JPY'],
    ['1.5', 'JPY'],
    ['15e-1', 'JPY'],
    ['1.0005', 'KWD'],
    ['0.00001', 'CLF'],
    ['123456789012345.00001', 'CLF'],
    ['1.00000000000000000000000000000000000001', 'JPY'],
  ])('%s %s has too many decimal places', async (n, currency) => {
    const answer = await send(place(n, currency));
    expectRefused(answer, 400, 'invalid_amount_precision');
  });

  it.each(Object.entries(currencies))('in %s 10^15 minor units and more are too large', async (currency, places_) => {
    const over = `1${'0'.repeat(15 - places_)}`;
    for (const n of [
      over,
      `${over}.${'0'.repeat(places_ + 1)}`,
      `1e${15 - places_}`,
      `1E+${15 - places_}`,
      `0.1e${16 - places_}`,
      '1e30',
      digits(40),
      '9007199254740993',
      '9223372036854775808',
    ]) {
      expectRefused(await send(place(n, currency)), 400, 'amount_too_large');
    }
  });

  it('zero, in any notation', async () => {
    for (const n of ['0', '-0', '0.0', '-0.00', '0e0', '-0e30', '0.000e-30']) {
      if (kind !== 'an initial deposit') expectViolations(await send(place(n)), [['amount', 'invalid_amount']]);
    }
  });
});

describe('accepted, with the value of the text', () => {
  it.each<[string, string, string]>([
    ['0.1e1', '1', 'USD'],
    ['1E2', '100', 'USD'],
    ['1e+2', '100', 'USD'],
    ['10.000', '10', 'USD'],
    ['1.10', '1.1', 'USD'],
    ['100e-2', '1', 'JPY'],
    ['1e-3', '0.001', 'KWD'],
    ['0.0001', '0.0001', 'CLF'],
    ['1e0000000000000000000000000000000000000', '1', 'USD'],
    [`1${'0'.repeat(35)}e-30`, '100000', 'USD'],
    ['0.000000000000000000000000000001e30', '1', 'USD'],
    [`0.01${'0'.repeat(36)}`, '0.01', 'USD'],
    ['9999999999999.99', '9999999999999.99', 'USD'],
    ['999999999999999', '999999999999999', 'JPY'],
    ['999999999999.999', '999999999999.999', 'KWD'],
    ['99999999999.9999', '99999999999.9999', 'CLF'],
    ['999999999999999e0', '999999999999999', 'JPY'],
    ['99999999999999.90e-1', '9999999999999.99', 'USD'],
  ])('an initial deposit of %s is %s %s', async (n, shown, currency) => {
    const answer = await send((places['an initial deposit'] as Place)(n, currency));
    expect(answer.status, answer.text).toBe(201);
    expect(answer.text).toContain(`"balance":${shown},`);
  });

  it.each(['0', '-0', '0.00', '-0e5', '0e-30'])('an initial deposit of %s posts nothing', async (n) => {
    const answer = await send((places['an initial deposit'] as Place)(n));
    expect(answer.text).toContain('"balance":0,');
    expect(
      await world.sql('select 1 from v_transactions where account_id = $1', [
        answer.data<{ account_id: string }>().account_id,
      ]),
    ).toEqual([]);
  });
});

describe('other numbers', () => {
  expectNothingDone(world);

  it.each(['-1', '0.5', '1e-1', '2592001', '1e30', '1e400', '"60"', 'true', '[60]', digits(41)])(
    'overlap_seconds %s',
    async (n) => {
      expectViolations(await postRaw(api, `/admin/api-keys/${key.key_id}/rotation`, `{"overlap_seconds":${n}}`), [
        ['overlap_seconds', 'validation_failed'],
      ]);
    },
  );

  it('a number instead of a text is reported by field name only', async () => {
    expectViolations(
      await postRaw(
        api,
        '/transactions',
        `{"account_id":1e400,"transaction_type":-0,"amount":1,"currency":${digits(50)},"description":1.0,"reference":0e0}`,
      ),
      [
        ['account_id', 'validation_failed'],
        ['transaction_type', 'invalid_transaction_type'],
        ['currency', 'validation_failed'],
        ['description', 'validation_failed'],
        ['reference', 'validation_failed'],
      ],
    );
  });
});
