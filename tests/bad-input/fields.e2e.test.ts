import { beforeAll, describe, expect, it } from 'vitest';
import { scopes } from '#libs/contracts/scopes.ts';
import {
  corporate,
  newPhone,
  type RestAccount,
  type RestClient,
  type RestKey,
  type RestTransaction,
  retail,
  unknownId,
} from '../support/client.ts';
import { expectNothingDone, expectRefused, expectViolations } from '../support/hostile.ts';
import { useBank } from '../support/world.ts';

/**
 * Hostile input: fields of the wrong type or outside their limits, and texts with a meaning in
 * other languages.
 */
const world = useBank();
const { api } = world;

let client: RestClient;
let account: RestAccount;
let other: RestAccount;
let deposit: RestTransaction;
let key: RestKey;
beforeAll(async () => {
  client = await api.client();
  [account, other] = [
    await api.account(client.client_id, { initial_deposit: 100 }),
    await api.account(client.client_id),
  ];
  deposit = await api.transact(account.account_id, 'Deposit', 1);
  key = await api.key({ scopes: ['clients:read'] });
});

interface Kind {
  /** The error code for a value of another JSON type. */
  mistyped: string;
  /** Texts that are refused with the error code `refused`. */
  texts: string[];
  refused: string;
  isOptional?: true;
}
const text = (max: number): Kind => ({
  mistyped: 'validation_failed',
  refused: 'validation_failed',
  texts: [
    'a\u0001b',
    'a\u007fb',
    'a\u0085b',
    'a\nb',
    'a\u2028b',
    'a\u2029b',
    'a\u202eb\u202c',
    'a\u200f',
    'a\u{e0041}',
    'a\ufffe',
    'a\u0378',
    'a\u200d',
    '\u{1F468}\u200d\u200d\u{1F469}',
    'x'.repeat(max + 1),
    '\u{1F600}'.repeat(max + 1),
  ],
});
/** Texts of several lines. */
const lines = (max: number, least = 0): Kind => ({
  ...text(max),
  texts: [...text(max).texts.filter((one) => !one.includes('\n')), 'a\rb', ...(least > 0 ? ['', '\n'] : [])],
});
const name = (max: number): Kind => ({
  ...text(max),
  texts: [...text(max).texts, '', ' ', '\u3000\u00a0', '\u200b', '\u3164'],
});
const badChoice = (...texts: string[]): Kind => ({
  mistyped: 'validation_failed',
  refused: 'validation_failed',
  texts: ['', 'nonsense', 'toString', '__proto__', "' or 1=1--", ...texts],
});
const email: Kind = {
  mistyped: 'validation_failed',
  refused: 'validation_failed',
  texts: [
    '',
    'a',
    '@',
    'a@',
    '@b.co',
    'a b@c.de',
    'a@b',
    'a@b..co',
    'a@@b.co',
    'a@b.co\nc',
    'a@b.co,c@d.ef',
    '<a@b.co>',
    `${'a'.repeat(250)}@b.co`,
  ],
};
const phone: Kind = {
  mistyped: 'validation_failed',
  refused: 'validation_failed',
  texts: [
    '',
    '+',
    '123456',
    '1234567890123456',
    '++254700000001',
    '+254 700 000 00x',
    '+2547000\n00001',
    '\u0661\u0662\u0663\u0664\u0665\u0666\u0667\u0668',
    '\uff12\uff15\uff14\uff17\uff10\uff10\uff10\uff10',
    'tel:+254700000001',
    '0700000001',
    '+0700000001',
    '+254/700/000001',
  ],
};
const id: Kind = {
  mistyped: 'validation_failed',
  refused: 'not_found',
  texts: ['', ' ', '%', "' or '1'='1", '../../etc/passwd', '\u{1F4B0}', '{{7*7}}', 'x'.repeat(10_240), '\u0001'],
};
const amount: Kind = {
  mistyped: 'invalid_amount',
  refused: 'invalid_amount',
  texts: ['', '10', '1e2', ' 1', 'NaN', '1,000', '\u0663', '0x10'],
};
const currency: Kind = {
  mistyped: 'validation_failed',
  refused: 'unsupported_currency',
  texts: ['', 'usd', 'US', 'USDD', 'USD ', ' USD', 'XXX', 'XTS', '\uff35\uff33\uff24', 'US\u0414', '840', "USD'"],
};
const optional = (kind: Kind): Kind => ({ ...kind, isOptional: true });

interface Write {
  method: 'POST' | 'PATCH';
  path: () => string;
  body: () => Record<string, unknown>;
  fields: Record<string, Kind>;
}
const contact = { email, contact_number: phone, address: optional(lines(500)) };
const writes: Record<string, Write> = {
  'create a Retail client': {
    method: 'POST',
    path: () => '/clients',
    body: () => ({ ...retail(), address: 'x', ussd_phone_number: newPhone(), ussd_status: 'inactive' }),
    fields: {
      client_type: badChoice('retail', 'RETAIL', 'Retail '),
      first_name: name(100),
      last_name: name(100),
      ...contact,
      ussd_phone_number: optional(phone),
      ussd_status: badChoice('Active'),
    },
  },
  'create a Corporate client': {
    method: 'POST',
    path: () => '/clients',
    body: corporate,
    fields: { company_name: name(200), registration_number: name(64), ...contact },
  },
  'change a client': {
    method: 'PATCH',
    path: () => `/clients/${client.client_id}`,
    body: () => ({ address: 'x' }),
    fields: { ...contact, ussd_phone_number: optional(phone), ussd_status: badChoice('Active') },
  },
  'open an account': {
    method: 'POST',
    path: () => '/accounts',
    body: () => ({ client_id: client.client_id, account_type: 'Savings', currency: 'USD' }),
    fields: {
      client_id: id,
      account_type: badChoice('savings', 'Teller', 'Vault'),
      currency,
      initial_deposit: amount,
      status: badChoice('active', 'Closed'),
    },
  },
  'change a status': {
    method: 'POST',
    path: () => `/accounts/${account.account_id}/status-transitions`,
    body: () => ({ status: 'Frozen', reason: 'fraud' }),
    fields: { status: badChoice('frozen', 'Closed'), reason: badChoice('Fraud'), note: optional(lines(500)) },
  },
  deposit: {
    method: 'POST',
    path: () => '/transactions',
    body: () => ({ account_id: account.account_id, transaction_type: 'Deposit', amount: 1, currency: 'USD' }),
    fields: {
      account_id: id,
      transaction_type: {
        mistyped: 'invalid_transaction_type',
        refused: 'invalid_transaction_type',
        texts: ['', 'deposit', 'Transfer', 'Loan Payment', 'toString'],
      },
      amount,
      currency: optional(currency),
      description: optional(text(255)),
      reference: optional(text(100)),
    },
  },
  reverse: {
    method: 'POST',
    path: () => `/transactions/${deposit.transaction_id}/reversal`,
    body: () => ({ reason: 'x' }),
    fields: { reason: lines(255, 1) },
  },
  transfer: {
    method: 'POST',
    path: () => '/transfers',
    body: () => ({ from_account_id: account.account_id, to_account_id: other.account_id, amount: 1 }),
    fields: {
      from_account_id: id,
      to_account_id: id,
      amount,
      currency: optional(currency),
      description: optional(text(255)),
    },
  },
  'create a key': {
    method: 'POST',
    path: () => '/admin/api-keys',
    body: () => ({ name: 'x', scopes: ['clients:read'] }),
    fields: {
      name: name(100),
      environment: badChoice('Live'),
      client_id: optional(id),
      expires_at: optional(
        badChoice(
          '2999-01-01',
          '2999-02-30T00:00:00Z',
          '2999-01-01T00:00:00',
          '2999-01-01T25:00:00Z',
          '9999-12-31T23:59:59-14:00',
          '2000-01-01T00:00:00Z',
          '0000-01-01T00:00:00Z',
        ),
      ),
    },
  },
  'rotate a key': {
    method: 'POST',
    path: () => `/admin/api-keys/${key.key_id}/rotation`,
    body: () => ({}),
    fields: {
      overlap_seconds: { mistyped: 'validation_failed', refused: 'validation_failed', texts: ['', '60', '1e2'] },
    },
  },
};
const isNumber = (field: string) => field === 'amount' || field === 'initial_deposit' || field === 'overlap_seconds';

describe.each(Object.entries(writes))('%s', (_, { method, path, body, fields }) => {
  expectNothingDone(world);
  const send = (changes: Record<string, unknown>) => api.send(method, path(), { body: { ...body(), ...changes } });

  it.each(Object.entries(fields))('%s refuses values of another type', async (field, kind) => {
    const values: unknown[] = [
      true,
      false,
      [],
      {},
      ['x'],
      { $ne: null },
      [[]],
      { toString: 'x' },
      ...(isNumber(field) ? [] : [0, 1, -1.5, 1e300]),
      ...(kind.isOptional || isNumber(field) ? [] : [null]),
    ];
    for (const value of values)
      expectViolations(await send({ [field]: value }), [[field, value === null ? 'validation_failed' : kind.mistyped]]);
  });

  it.each(Object.entries(fields))('%s refuses invalid texts', async (field, kind) => {
    for (const value of kind.texts) {
      const answer = await send({ [field]: value });
      if (kind.refused === 'not_found') expect(expectRefused(answer, 404).code).toMatch(/^(account|client)_not_found$/);
      else expectViolations(answer, [[field, kind.refused]]);
    }
  });

  it('reports every violation if every field is wrong', async () => {
    const wrong = Object.entries(fields).filter(([field]) => field !== 'client_type');
    const changes = Object.fromEntries(wrong.map(([field]) => [field, [field]]));
    expectViolations(await send({ ...changes, nonsense: 1 }), [
      ...wrong.map(([field, kind]): [string, string] => [field, kind.mistyped]),
      ['nonsense', 'unknown_field'],
    ]);
  });
});

describe('scopes of an API key', () => {
  expectNothingDone(world);

  it.each<[string, unknown, string[]]>([
    ['no list', 'clients:read', ['scopes']],
    ['an object', { 0: 'clients:read' }, ['scopes']],
    ['nothing', null, ['scopes']],
    ['empty', [], ['scopes']],
    ['more than there are', Array(scopes.length + 1).fill('clients:read'), ['scopes']],
    [
      'unknown ones',
      ['clients:read', 'all', '*', 'CLIENTS:READ', 'clients:read '],
      ['scopes.1', 'scopes.2', 'scopes.3', 'scopes.4'],
    ],
    ['no texts', [null, 1, ['clients:read'], {}], ['scopes.0', 'scopes.1', 'scopes.2', 'scopes.3']],
  ])('%s', async (_, scopes, named) => {
    expectViolations(
      await api.post('/admin/api-keys', { name: 'x', scopes }),
      named.map((field) => [field, 'validation_failed']),
    );
  });
});

describe('violations of rules over several fields are reported with the others', () => {
  expectNothingDone(world);

  it.each<[string, string, Record<string, unknown>, [string, string][]]>([
    [
      'precision',
      '/transactions',
      { account_id: 5, transaction_type: 'x', amount: 1.5, currency: 'JPY' },
      [
        ['account_id', 'validation_failed'],
        ['transaction_type', 'invalid_transaction_type'],
        ['amount', 'invalid_amount_precision'],
      ],
    ],
    [
      'USSD phone',
      '/clients',
      { ...retail(), email: 1, ussd_status: 'active' },
      [
        ['email', 'validation_failed'],
        ['ussd_phone_number', 'validation_failed'],
      ],
    ],
    [
      'fields of the other client type',
      '/clients',
      { ...corporate(), first_name: 'x', ussd_status: 'inactive' },
      [
        ['first_name', 'unknown_field'],
        ['ussd_status', 'unknown_field'],
      ],
    ],
  ])('%s', async (_, path, body, violations) => {
    expectViolations(await api.post(path, body), violations);
  });
});

describe('ids of another kind, in upper case, or with a small error are unknown', () => {
  it('404 names the kind, and nothing changes', async () => {
    const good = account.account_id;
    const wrong = [
      good.toUpperCase(),
      `ACC_${good.slice(4)}`,
      ` ${good}`,
      `${good} `,
      `${good}\n`,
      good.slice(0, -1),
      `${good}0`,
      `${good.slice(0, -1)}\uff11`,
      good.replace('_', '-'),
      client.client_id,
      deposit.transaction_id,
      `cli_${good.slice(4)}`,
      unknownId('acc'),
    ];
    for (const account_id of wrong) {
      expectRefused(
        await api.post('/transactions', { account_id, transaction_type: 'Deposit', amount: 1 }),
        404,
        'account_not_found',
      );
      expectRefused(
        await api.post('/transfers', { from_account_id: account_id, to_account_id: other.account_id, amount: 1 }),
        404,
        'account_not_found',
      );
      expectRefused(
        await api.post('/transfers', { from_account_id: other.account_id, to_account_id: account_id, amount: 1 }),
        404,
        'account_not_found',
      );
    }
    for (const client_id of [account.account_id, client.client_id.toUpperCase(), `${client.client_id}\u0001`]) {
      expectRefused(
        await api.post('/accounts', { client_id, account_type: 'Savings', currency: 'USD' }),
        404,
        'client_not_found',
      );
    }
    expect(await api.balance(other.account_id)).toBe(0);
  });
});
