import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { endpoints } from './endpoints.ts';
import { NumberText } from './money.ts';

function problems(schema: z.ZodType, value: unknown): string[] {
  const parsed = schema.safeParse(value);
  if (parsed.success) return [];
  return parsed.error.issues.map((issue) => {
    const code =
      issue.code === 'custom'
        ? String(issue.params?.['code'])
        : issue.code === 'unrecognized_keys'
          ? `unknown ${issue.keys.join()}`
          : 'validation_failed';
    return `${issue.path.join('.')}: ${code}`;
  });
}

const retail = {
  client_type: 'Retail',
  first_name: ' Ada ',
  last_name: 'Lovelace',
  email: 'ada@example.org',
  contact_number: '0044 20-7946 0958',
};
const payment = { account_id: 'a', transaction_type: 'Deposit', amount: new NumberText('10.50') };

describe('bodies', () => {
  it('are normalized: trimmed names, E.164, defaults', () => {
    expect(endpoints.create_client.body.parse(retail)).toMatchObject({
      first_name: 'Ada',
      contact_number: '+442079460958',
      ussd_status: 'inactive',
    });
    expect(endpoints.create_transaction.body.parse(payment)).toEqual({
      account_id: 'a',
      transaction_type: 'Deposit',
      amount: '10.5',
    });
    expect(endpoints.open_account.body.parse({ client_id: 'c', account_type: 'Loan', currency: 'JPY' })).toMatchObject({
      initial_deposit: '0',
      status: 'Active',
    });
  });

  it('accept every character of an email address that RFC 5322 allows without quotes', () => {
    // contract: clients-8
    for (const email of ["o'neil+tag@ex-ample.co.uk", 'a!#$%&*/=?^_`{|}~b@x.io', 'sales&support@bank.co.ke'])
      expect(endpoints.create_client.body.parse({ ...retail, email })).toMatchObject({ email });
    for (const email of ['.a@b.co', 'a.@b.co', 'a..b@b.co', 'a(b)@c.de', 'a"b"@c.de', 'a,b@c.de', 'a@b_c.de'])
      expect(problems(endpoints.create_client.body, { ...retail, email })).toEqual(['email: validation_failed']);
  });

  it('report all violations together', () => {
    // contract: transactions-5
    expect(
      problems(endpoints.create_client.body, {
        ...retail,
        first_name: '',
        email: 'x',
        company_name: 'y',
        ussd_status: 'on',
      }),
    ).toEqual([
      'first_name: validation_failed',
      'email: validation_failed',
      'ussd_status: validation_failed',
      ': unknown company_name',
    ]);
    expect(
      problems(endpoints.create_transaction.body, { transaction_type: 'Loan Payment', amount: '10', extra: 1 }),
    ).toEqual([
      'account_id: validation_failed',
      'transaction_type: invalid_transaction_type',
      'amount: invalid_amount',
      ': unknown extra',
    ]);
  });

  it('accept an amount only as a number greater than 0 that the currency can represent', () => {
    const with_ = (amount: unknown, currency?: string) =>
      problems(endpoints.create_transaction.body, { ...payment, amount, ...(currency ? { currency } : {}) });
    for (const bad of [
      '10',
      10,
      true,
      new NumberText('0'),
      new NumberText('-0'),
      new NumberText('-1'),
      new NumberText('1e400'),
    ])
      expect(with_(bad)).toEqual(['amount: invalid_amount']);
    expect(with_(null)).toEqual(['amount: validation_failed']);
    expect(with_(new NumberText('10.005'), 'USD')).toEqual(['amount: invalid_amount_precision']);
    expect(with_(new NumberText('1e16'), 'USD')).toEqual(['amount: amount_too_large']);
    expect(with_(new NumberText('1'), 'usd')).toEqual(['currency: unsupported_currency']);
    expect(with_(new NumberText('1.005e1'), 'USD')).toEqual([]);
  });

  it('require at least one change, which is reported only if nothing else is wrong', () => {
    expect(problems(endpoints.update_client.body, {})).toEqual([': validation_failed']);
    expect(problems(endpoints.update_client.body, { client_type: 'Retail' })).toEqual([': unknown client_type']);
    expect(problems(endpoints.update_client.body, { address: null })).toEqual([]);
  });

  it('refuse control characters, and count characters instead of bytes', () => {
    expect(problems(endpoints.create_client.body, { ...retail, last_name: 'a\u0000b' })).toEqual([
      'last_name: validation_failed',
    ]);
    expect(problems(endpoints.create_client.body, { ...retail, last_name: 'a\nb' })).toEqual([
      'last_name: validation_failed',
    ]);
    expect(problems(endpoints.create_client.body, { ...retail, last_name: '李'.repeat(100) })).toEqual([]);
    expect(problems(endpoints.create_client.body, { ...retail, last_name: '😀'.repeat(101) })).toEqual([
      'last_name: validation_failed',
    ]);
  });

  it('require a reason to freeze and a phone number to activate USSD; only the ledger refuses a transfer to the same account', () => {
    expect(problems(endpoints.change_account_status.body, { status: 'Frozen' })).toEqual(['reason: validation_failed']);
    expect(problems(endpoints.change_account_status.body, { status: 'Inactive' })).toEqual([]);
    expect(problems(endpoints.create_client.body, { ...retail, ussd_status: 'active' })).toEqual([
      'ussd_phone_number: validation_failed',
    ]);
    expect(
      problems(endpoints.create_transfer.body, {
        from_account_id: 'a',
        to_account_id: 'a',
        amount: new NumberText('1'),
      }),
    ).toEqual([]);
  });
});

describe('a withdrawn currency', () => {
  const opening = (currency: string) =>
    endpoints.open_account.body.safeParse({ client_id: 'a', account_type: 'Savings', currency });

  it.each([
    ['BGN', '2026-01-01'],
    ['ANG', '2025-03-31'],
    ['ZWL', '2024-09-01'],
    ['SLL', '2024-01-01'],
    ['HRK', '2023-01-01'],
    ['CUC', '2021-06-01'],
  ])('opens no account, and the error names it and the day: %s', (currency, day) => {
    // contract: money-12
    expect(problems(endpoints.open_account.body, { client_id: 'a', account_type: 'Savings', currency })).toEqual([
      'currency: unsupported_currency',
    ]);
    expect(opening(currency).error?.issues[0]?.message).toBe(`${currency} was withdrawn on ${day}`);
  });

  it.each(['EUR', 'XCG', 'ZWG', 'SLE', 'CUP', 'XAD', 'CHE'])(
    'has a successor or a neighbour that opens accounts: %s',
    (currency) => {
      expect(opening(currency).success).toBe(true);
    },
  );

  it.each(['XAU', 'XTS', 'XXX', 'XDR', 'DEM', 'bgn'])(
    'is not what is not a currency with minor units: %s',
    (currency) => {
      expect(opening(currency).error?.issues[0]?.message).toBe('must be an ISO 4217 currency code in upper case');
    },
  );

  it('is posted in the accounts that there are, and found', () => {
    // contract: money-12
    const amount = new NumberText('10.50');
    for (const [schema, body] of [
      [endpoints.create_transaction.body, { ...payment, currency: 'BGN' }],
      [endpoints.create_transfer.body, { from_account_id: 'a', to_account_id: 'b', amount, currency: 'BGN' }],
      [endpoints.place_hold.body, { amount, currency: 'BGN' }],
      [endpoints.list_accounts.query, { currency: 'BGN' }],
      [endpoints.list_transactions.query, { currency: 'BGN' }],
      [endpoints.get_posting_statistics.query, { currency: 'BGN' }],
    ] as const)
      expect(problems(schema, body)).toEqual([]);
  });
});

describe('parameters', () => {
  it.each([
    ['a statement', endpoints.get_statement.query],
    ['a replay', endpoints.replay_webhook.body],
  ])('%s does not end before it begins', (_name, schema) => {
    const [earlier, later] = ['2026-01-02T00:30:00+01:00', '2026-01-02'];
    expect(problems(schema, { from: later, to: earlier })).toEqual(['to: validation_failed']);
    expect(problems(schema, { from: later, to: 'x' })).toEqual(['to: validation_failed']);
    expect(problems(schema, { from: earlier, to: later })).toEqual([]);
    expect(problems(schema, { from: later, to: later })).toEqual([]);
    expect(problems(schema, { from: later })).toEqual([]);
  });

  const period = (query: z.ZodType, more: object = {}) => ['from', 'to'].map((name) => [name, query, more] as const);
  it.each([
    ['at', endpoints.get_account_balance.query, {}] as const,
    ['expires_at', endpoints.place_hold.body, { amount: new NumberText('1') }] as const,
    ['expires_at', endpoints.create_api_key.body, { name: 'a', scopes: ['accounts:read'] }] as const,
    ['from', endpoints.replay_webhook.body, {}] as const,
    ['to', endpoints.replay_webhook.body, { from: '2026-01-01' }] as const,
    ...period(endpoints.get_statement.query),
    ...period(endpoints.list_transactions.query),
    ...period(endpoints.list_transfers.query),
    ...period(endpoints.list_audit.query),
    ...period(endpoints.list_dead_letters.query),
    ...period(endpoints.get_posting_statistics.query, { currency: 'USD' }),
    ...period(endpoints.get_posting_totals.query),
  ])(
    '%s with more than three decimals is rounded up, so that it stands on the same side of every time of the bank',
    (name, schema, more) => {
      // contract: envelope-21
      const rounded = (text: string) => (schema.parse({ ...more, [name]: text }) as Record<string, unknown>)[name];
      for (const [given, expected] of [
        ['2026-01-02T03:04:05.9119Z', '2026-01-02T03:04:05.912Z'],
        ['2026-01-02T03:04:05.911000001Z', '2026-01-02T03:04:05.912Z'],
        ['2026-01-02T03:04:05.911000000Z', '2026-01-02T03:04:05.911Z'],
        ['2026-01-02T03:04:05.91Z', '2026-01-02T03:04:05.910Z'],
        ['2026-12-31T23:59:59.9999999Z', '2027-01-01T00:00:00.000Z'],
        ['2026-12-31T23:59:59.9990001+03:00', '2026-12-31T21:00:00.000Z'],
        ['9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.999Z'],
      ] as const)
        expect([given, rounded(given)]).toEqual([given, expected]);
    },
  );

  it('are refused if they are unknown or repeated', () => {
    expect(problems(endpoints.list_transactions.query, { acount_id: 'a' })).toEqual([': unknown acount_id']);
    expect(problems(endpoints.list_transactions.query, { account_id: ['a', 'b'] })).toEqual([
      'account_id: validation_failed',
    ]);
  });

  it('accept a phone number whose plus was decoded to a space, and times with an offset', () => {
    expect(endpoints.search_client_by_ussd.query.parse({ ussd_phone: ' 254700000001' })).toEqual({
      ussd_phone: '+254700000001',
    });
    expect(endpoints.list_transfers.query.parse({ from: '2026-01-02T03:04:05 02:00', to: '2026-01-03' })).toMatchObject(
      {
        from: '2026-01-02T01:04:05.000Z',
        to: '2026-01-03T00:00:00.000Z',
        limit: 100,
        order: 'desc',
      },
    );
    expect(problems(endpoints.list_transfers.query, { from: 'yesterday', limit: '501', order: 'up' })).toEqual([
      'from: validation_failed',
      'limit: validation_failed',
      'order: validation_failed',
    ]);
  });

  it.each([
    '2026-02-30',
    '2026-02-29T00:00:00Z',
    '2026-04-31',
    '0000-01-01',
    '0000-12-31T23:00-02:00:00',
    '0001-01-01T00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '2026-01-01T24:00:01Z',
    '2026-01-01T00:00:00',
  ])('refuse an impossible time: %s', (from) => {
    expect(problems(endpoints.list_transfers.query, { from })).toEqual(['from: validation_failed']);
  });

  it.each(['0001-01-01', '2024-02-29', '9999-12-31T23:59:59.999Z', '2026-01-01T24:00:00Z'])(
    'accept times at the limits: %s',
    (from) => {
      expect(problems(endpoints.list_transfers.query, { from })).toEqual([]);
    },
  );
});
