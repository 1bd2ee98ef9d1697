import { beforeAll, describe, expect, it } from 'vitest';
import { expectError, type RestAccount, type RestTransaction } from '../support/client.ts';
import { together, useSharedBank } from '../support/world.ts';

/** Tests the contract of money. Amounts are sent as raw JSON text, because the rules apply to that text. */
const world = useSharedBank();
const { api } = world;

const accounts = new Map<string, RestAccount>();
const accountIn = (currency: string) => accounts.get(currency)?.account_id ?? '';

beforeAll(async () => {
  const { client_id } = await api.client();
  for (const currency of ['USD', 'JPY', 'KWD', 'CLF'])
    accounts.set(currency, await api.account(client_id, { currency }));
});

/** Sends a deposit with this text as its amount, with or without a currency. */
function deposit(amountText: string, currency = 'USD', named = true) {
  const named_ = named ? `,"currency":"${currency}"` : '';
  return api.send('POST', '/transactions', {
    raw: `{"account_id":"${accountIn(currency)}","transaction_type":"Deposit","amount":${amountText}${named_}}`,
  });
}

describe('Money: only the decimal value matters, not its notation', () => {
  it.each([
    ['10', 'USD', 10],
    ['10.00', 'USD', 10],
    ['10.000', 'USD', 10],
    ['1e2', 'USD', 100],
    ['1.005e1', 'USD', 10.05],
    ['1005e-2', 'USD', 10.05],
    ['1E+2', 'USD', 100],
    ['0.01', 'USD', 0.01],
    ['0.1', 'USD', 0.1],
    ['1.0000000000000000000000000000', 'USD', 1],
    ['100', 'JPY', 100],
    ['100.0', 'JPY', 100],
    ['15e-1', 'KWD', 1.5],
    ['1.005', 'KWD', 1.005],
    ['0.0001', 'CLF', 0.0001],
    ['100000000000000000000e-20', 'USD', 1],
    ['0.000000000000000000000000000001e30', 'USD', 1],
  ])('%s %s is %d', async (text, currency, value) => {
    // contract: money-4
    for (const named of [true, false]) {
      const answer = await deposit(text, currency, named);
      expect(answer.status, answer.text).toBe(201);
      expect((answer.body as RestTransaction).amount).toBe(value);
    }
  });
});

describe('Money: ISO 4217 digits are enforced on the JSON text', () => {
  it.each([
    ['10.005', 'USD'],
    ['1.5', 'JPY'],
    ['100.00000000000000001', 'USD'],
    ['0.1', 'JPY'],
    ['1.0005', 'KWD'],
    ['0.00001', 'CLF'],
    ['1e-3', 'USD'],
    ['0.30000000000000004', 'USD'],
    ['9.999999999999999999', 'USD'],
    ['10.0000000000000000000000000000000001', 'USD'],
  ])('%s %s is invalid_amount_precision', async (text, currency) => {
    // contract: money-6
    for (const named of [true, false])
      expectError(await deposit(text, currency, named), 400, 'invalid_amount_precision');
  });

  it.each(['0', '-0', '0.00', '-0.0', '0e5', '-1', '-0.01', '-1e2'])('%s is invalid_amount', async (text) => {
    // contract: money-5
    expectError(await deposit(text), 400, 'invalid_amount');
  });

  it.each(['"10"', '"10.00"', 'true', '[10]', '{"value":10}', '""'])(
    'not a number: %s is invalid_amount',
    async (text) => {
      // contract: money-5
      expectError(await deposit(text), 400, 'invalid_amount');
    },
  );

  it.each(['null', ''])('%s is missing or malformed', async (text) => {
    const answer = await deposit(text === '' ? 'null' : text);
    expectError(answer, 400, 'validation_failed');
  });

  it.each(['01', '+1', '.5', '1.', '0x10', 'NaN', 'Infinity', '1e', '1_000', '1,000', "'1'"])(
    'not JSON: %s is malformed_json',
    async (text) => {
      expectError(await deposit(text), 400, 'malformed_json');
    },
  );

  it.each([
    '1e31',
    '1e-31',
    '1e999999999',
    '1e-999999999',
    `1${'0'.repeat(40)}`,
    `0.${'0'.repeat(38)}1`,
    `1.${'0'.repeat(39)}`,
    `${'9'.repeat(5000)}`,
  ])('%s is refused without being expanded', async (text) => {
    // contract: money-7
    const answer = await deposit(text);
    expect(answer.status).toBe(400);
    expect(['invalid_amount', 'invalid_amount_precision', 'amount_too_large']).toContain(answer.error.code);
  });
});

describe('Money: largest amount and balance', () => {
  it.each([
    ['9999999999999.99', 'USD'],
    ['999999999999999', 'JPY'],
    ['999999999999.999', 'KWD'],
  ])('the maximum is 10^15 - 1 minor units: %s %s', async (text, currency) => {
    // contract: money-8
    const account = await api.newAccount({ currency });
    const body = (amount: string) => ({
      raw: `{"account_id":"${account.account_id}","transaction_type":"Deposit","amount":${amount}}`,
    });
    const answer = await api.send('POST', '/transactions', body(text));
    expect(answer.text).toContain(`"amount":${text}`);
    expect((await api.get(`/accounts/${account.account_id}`)).text).toContain(`"balance":${text}`);
    expect((await api.get(`/accounts/number/${account.account_number}/balance`)).text).toContain(`"balance":${text}`);
    expect((await api.get(`/accounts/${account.account_id}/entries`)).text).toContain(`"balance_after":${text}`);
    const step = { USD: '0.01', JPY: '1', KWD: '0.001' }[currency] ?? '';
    expectError(await api.send('POST', '/transactions', body(step)), 400, 'balance_limit_exceeded');
    expectError(
      await api.send('POST', '/transactions', body(text.replace(/\d/g, '0').replace(/^0/, '10'))),
      400,
      'amount_too_large',
    );
  });

  it('Vault and Teller may exceed the maximum and are returned with every digit', async () => {
    // contract: money-9
    await Promise.all([1, 2, 3].map(() => api.newAccount({ currency: 'GBP', initial_deposit: 9_999_999_999_999.99 })));
    const text = (await api.get('/admin/system-accounts')).text;
    expect(text).toContain('29999999999999.97');
    expect((await api.get('/admin/trial-balance')).text).toContain('29999999999999.97');
  });
});

describe('Money: JSON', () => {
  const body = (rest: string) => ({ raw: `{"account_id":"${accountIn('USD')}","transaction_type":"Deposit",${rest}}` });

  it.each([
    ['duplicate keys', '"amount":1,"amount":2'],
    ['duplicate keys with the same value', '"amount":1,"amount":1'],
    ['duplicate keys, one escaped', '"amount":1,"amoun\\u0074":1'],
    ['__proto__', '"amount":1,"__proto__":{"x":1}'],
    ['an escaped __proto__', '"amount":1,"\\u005f_proto__":1'],
    ['a lone surrogate', '"amount":1,"description":"\\ud800"'],
    ['a lone low surrogate', '"amount":1,"description":"a\\udc00b"'],
    ['NUL', '"amount":1,"description":"a\\u0000b"'],
    ['NUL in a key', '"amount":1,"a\\u0000b":1'],
  ])('%s: malformed_json', async (_, rest) => {
    // contract: money-11
    expectError(await api.send('POST', '/transactions', body(rest)), 400, 'malformed_json');
  });

  it('a pair of surrogates is accepted', async () => {
    const answer = await api.send('POST', '/transactions', body('"amount":1,"description":"\\ud83d\\ude00"'));
    expect(answer.body).toMatchObject({ description: '\u{1F600}' });
  });

  it('bytes that are not UTF-8 are malformed_json', async () => {
    // contract: money-11
    const raw = Buffer.concat([
      Buffer.from(body('"amount":1,"description":"').raw.slice(0, -1)),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}'),
    ]);
    expectError(await api.send('POST', '/transactions', { raw }), 400, 'malformed_json');
  });

  it('no floating-point arithmetic: a hundred times 0.1 is 10, and 0.1 + 0.2 is exactly 0.3', async () => {
    // contract: money-3
    const account = await api.newAccount();
    await together(100, () => api.transact(account.account_id, 'Deposit', 0.1));
    expect((await api.get(`/accounts/${account.account_id}`)).text).toMatch(/"balance":10[,}]/);
    const thirds = await api.newAccount({ initial_deposit: 0.1 });
    await api.transact(thirds.account_id, 'Deposit', 0.2);
    expect(await api.balance(thirds.account_id)).toBe(0.3);
    await api.transact(thirds.account_id, 'Withdrawal', 0.3);
  });
});
