import { expect, test } from 'vitest';
import type { z } from 'zod';
import { type EndpointName, endpoints } from '#libs/contracts/endpoints.ts';
import { NumberText } from '#libs/contracts/money.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import { Refused } from '../http/errors.ts';
import { internationalPhones, parseFields, parseQuery } from './input.ts';

function refusal(parse: () => unknown) {
  try {
    parse();
  } catch (error) {
    if (error instanceof Refused) return error.refusal;
    throw error;
  }
  throw new Error('was not refused');
}

const body = (schema: z.ZodType, value: unknown) => refusal(() => parseFields(schema, value));
const query = (schema: z.ZodType, value: Record<string, unknown>) => refusal(() => parseQuery(schema, value));

test('every violation is reported with its field and rule', () => {
  // contract: errors-2
  const { code, errors, message } = body(endpoints.create_client.body, {
    client_type: 'Retail',
    company_name: 'x',
    first_name: new NumberText('5'),
    email: 'no',
    last_name: ' ',
    contact_number: null,
  });
  expect(code).toBe('validation_failed');
  expect(errors).toEqual([
    { field: 'first_name', code: 'validation_failed', message: 'first_name must be a string' },
    { field: 'last_name', code: 'validation_failed', message: 'last_name must have 1 to 100 characters' },
    { field: 'email', code: 'validation_failed', message: 'email must be an e-mail address' },
    { field: 'contact_number', code: 'validation_failed', message: 'contact_number must not be null' },
    { field: 'company_name', code: 'unknown_field', message: 'company_name is not a known field' },
  ]);
  expect(message).toContain('5 violations');
});

test('if all violations have the same code, it is the code of the error', () => {
  // contract: errors-3
  const fields = { account_id: 'a', transaction_type: 'Deposit', amount: new NumberText('1') };
  expect(body(endpoints.create_transaction.body, { ...fields, foo: 1, bar: 2 }).code).toBe('unknown_field');
  expect(body(endpoints.create_transaction.body, { ...fields, amount: '1' }).code).toBe('invalid_amount');
  expect(body(endpoints.create_transaction.body, { ...fields, amount: '1', foo: 1 }).code).toBe('validation_failed');
  expect(
    body(endpoints.create_transaction.body, { ...fields, amount: new NumberText('10.005'), currency: 'USD' }).code,
  ).toBe('invalid_amount_precision');
  expect(body(endpoints.create_transaction.body, { ...fields, transaction_type: 'Transfer' }).code).toBe(
    'invalid_transaction_type',
  );
});

test('rules over several fields are checked although others are violated too', () => {
  const codes = (schema: z.ZodType, value: unknown) =>
    body(schema, value).errors?.map(({ field, code }) => `${field} ${code}`);
  expect(codes(endpoints.create_transaction.body, { amount: new NumberText('10.005'), currency: 'USD', x: 1 })).toEqual(
    [
      'account_id validation_failed',
      'transaction_type validation_failed',
      'x unknown_field',
      'amount invalid_amount_precision',
    ],
  );
  expect(
    codes(endpoints.create_transfer.body, {
      from_account_id: 'a',
      to_account_id: 'a',
      amount: new NumberText('1e15'),
      currency: 'JPY',
      description: 5,
    }),
  ).toEqual(['description validation_failed', 'amount amount_too_large']);
  expect(codes(endpoints.create_transfer.body, {})).toEqual([
    'from_account_id validation_failed',
    'to_account_id validation_failed',
    'amount validation_failed',
  ]);
  expect(
    codes(endpoints.create_transfer.body, { from_account_id: 'a', to_account_id: 'b', amount: '1', currency: 'usd' }),
  ).toEqual(['amount invalid_amount', 'currency unsupported_currency']);
  expect(codes(endpoints.change_account_status.body, { status: 'Frozen', x: 1 })).toEqual([
    'x unknown_field',
    'reason validation_failed',
  ]);
  expect(
    codes(endpoints.create_client.body, {
      client_type: 'Retail',
      ussd_status: 'active',
      first_name: 'a',
      last_name: 'b',
      email: 'a@b.cc',
    }),
  ).toEqual(['contact_number validation_failed', 'ussd_phone_number validation_failed']);
  expect(
    codes(endpoints.create_client.body, {
      client_type: 'Retail',
      ussd_status: 'active',
      ussd_phone_number: 'x',
      first_name: 'a',
      last_name: 'b',
      email: 'a@b.cc',
      contact_number: '+254700000001',
    }),
  ).toEqual(['ussd_phone_number validation_failed']);
  expect(
    codes(endpoints.open_account.body, {
      client_id: 'c',
      account_type: 'Savings',
      currency: 'JPY',
      initial_deposit: new NumberText('1.5'),
    }),
  ).toEqual(['initial_deposit invalid_amount_precision']);
});

test.each([
  [endpoints.create_client.body, {}, 'client_type is required'],
  [endpoints.open_account.body, { status: null }, 'status must not be null'],
  [endpoints.open_account.body, { initial_deposit: null }, 'initial_deposit must not be null'],
  [endpoints.create_client.body, { client_type: 'Other' }, 'client_type must be one of Retail, Corporate'],
  [endpoints.create_transaction.body, [], 'the body must be a JSON object'],
  [endpoints.create_transaction.body, 'x', 'the body must be a JSON object'],
  [endpoints.update_client.body, {}, 'the body must change at least one field'],
  [endpoints.update_client.body, null, 'the body must be a JSON object'],
  [endpoints.update_client.body, new NumberText('1'), 'the body must be a JSON object'],
  [endpoints.update_client.body, { '': 'x' }, '"" is not a known field'],
  [endpoints.change_account_status.body, { status: 'Closed' }, 'status must be one of Active, Inactive, Frozen'],
  [endpoints.change_account_status.body, { status: 'Frozen' }, 'reason is required to freeze an account'],
  [
    endpoints.create_api_key.body,
    { name: 'x', scopes: ['clients:read', 'all'] },
    'scopes.1 must be one of clients:read',
  ],
  [
    endpoints.create_api_key.body,
    { name: 'x', scopes: Array(scopes.length + 1).fill('clients:read') },
    `scopes must have at most ${scopes.length} items`,
  ],
])('messages name the field and the rule (%#)', (schema, value, message) => {
  expect(body(schema, value).message).toContain(message);
});

test('a field is named once, with the first violated rule', () => {
  expect(body(endpoints.change_account_status.body, { status: 'Frozen', reason: 'boredom' }).errors).toHaveLength(1);
  expect(
    body(endpoints.create_api_key.body, { name: 'x', scopes: ['clients:read'], expires_at: 'soon' }).errors,
  ).toHaveLength(1);
  expect(body(endpoints.create_api_key.body, { name: 'x', scopes: '' }).errors).toEqual([
    { field: 'scopes', code: 'validation_failed', message: 'scopes must be an array' },
  ]);
});

test('query parameters: unknown, repeated, and unreadable ones are named', () => {
  expect(query(endpoints.list_clients.query, { cleint_type: 'Retail' })).toMatchObject({
    code: 'unknown_parameter',
    errors: [{ field: 'cleint_type' }],
  });
  expect(
    query(endpoints.list_clients.query, { limit: ['1', '2'], order: 'up' }).errors?.map(({ message }) => message),
  ).toEqual(['limit is given more than once', 'order must be one of asc, desc']);
  expect(query(endpoints.list_transactions.query, { reference: 'a\u0000b' }).message).toBe(
    'reference must not contain NUL',
  );
  expect(query(endpoints.health.query, JSON.parse('{"__proto__":"x"}')).code).toBe('unknown_parameter');
  expect(query(endpoints.search_client_by_ussd.query, {}).message).toBe('ussd_phone is required');
});

test('a plus that was decoded to a space is read as a plus', () => {
  expect(parseQuery(endpoints.search_client_by_ussd.query, { ussd_phone: ' 254700000001' })).toEqual({
    ussd_phone: '+254700000001',
  });
});

const blanks = ['\n', '\t', ' ', '\r\n', '\u00a0', '\u2003', '\u3000', '\ufeff', '\u2028', ' \u00a0\n'];
const person = {
  client_type: 'Retail',
  first_name: 'Ann',
  last_name: 'Lee',
  email: 'a@example.org',
  contact_number: '+254700000001',
  address: 'House 3',
  ussd_phone_number: '+254700000002',
};
const posting = {
  account_id: 'a',
  transaction_type: 'Deposit',
  amount: new NumberText('1'),
  reference: 'INV 7',
  description: 'x',
};
const texts: [string, z.ZodType, Record<string, unknown>, string[]][] = [
  ['POST /clients', endpoints.create_client.body, person, Object.keys(person).slice(1)],
  ['PATCH /clients', endpoints.update_client.body, { email: 'a@example.org' }, ['email']],
  ['POST /transactions', endpoints.create_transaction.body, posting, ['reference', 'description']],
  ['a note', endpoints.add_client_note.body, { note: 'x' }, ['note']],
  ['a freeze', endpoints.change_account_status.body, { status: 'Inactive', note: 'x' }, ['note']],
  ['a reversal', endpoints.reverse_transaction.body, { reason: 'x' }, ['reason']],
  ['an API key', endpoints.create_api_key.body, { name: 'x', scopes: ['clients:read'] }, ['name']],
  [
    'GET /clients',
    endpoints.list_clients.query,
    { email: 'a@example.org', registration_number: 'R 7', q: 'ann lee', ussd_phone: '+254700000001' },
    ['email', 'registration_number', 'q', 'ussd_phone'],
  ],
  [
    'GET /transactions',
    endpoints.list_transactions.query,
    { reference: 'INV 7', idempotency_key: 'k 7', from: '2026-01-02T00:00:00.000Z' },
    ['reference', 'idempotency_key', 'from'],
  ],
  [
    'GET /admin/audit',
    endpoints.list_audit.query,
    { request_id: 'r 7', action: 'create_client' },
    ['request_id', 'action'],
  ],
];

test.each(
  texts.flatMap(([where, schema, fields, names]) => names.map((name) => [name, where, schema, fields] as const)),
)('%s of %s is trimmed, then checked', (name, _, schema, fields) => {
  // contract: clients-12, clients-21
  const plain = schema.parse(fields);
  for (const blank of blanks)
    expect(schema.parse({ ...fields, [name]: `${blank}${fields[name]}${blank}` }), JSON.stringify(blank)).toEqual(
      plain,
    );
});

test('an external_id, and a text that is searched for, are taken with their blanks', () => {
  // contract: names-1
  expect(parseQuery(endpoints.list_clients.query, { external_id: ' C 7 ' })).toMatchObject({ external_id: ' C 7 ' });
  expect(parseQuery(endpoints.search.query, { q: ' C 7\n' })).toEqual({ q: ' C 7\n' });
  for (const q of ['', ' ', '\n', 'x'.repeat(256), 'a\u0007b'])
    expect(query(endpoints.search.query, { q }).errors).toMatchObject([{ field: 'q', code: 'validation_failed' }]);
});

test.each([
  ['list_clients', 'email=a+b@example.org', { email: 'a+b@example.org' }],
  ['list_clients', 'email=a%2Bb@example.org', { email: 'a+b@example.org' }],
  ['list_clients', 'email=a%20b@example.org', { email: 'a+b@example.org' }],
  ['list_clients', 'email=a+b+c@m%C3%BCnchen.example', { email: 'a+b+c@xn--mnchen-3ya.example' }],
  ['list_clients', 'ussd_phone=+254700000001', { ussd_phone: '+254700000001' }],
  ['list_clients', 'ussd_phone=+254+700+000+001', { ussd_phone: '+254700000001' }],
  ['list_clients', 'q=love+ada', { q: 'love ada' }],
  ['search_client_by_ussd', 'ussd_phone=+254700000001', { ussd_phone: '+254700000001' }],
  ['list_transactions', 'from=2026-01-02T02:00:00+02:00', { from: '2026-01-02T00:00:00.000Z' }],
  ['list_transactions', 'to=2026-01-02T02:00:00.5+02:00', { to: '2026-01-02T00:00:00.500Z' }],
  ['list_transactions', 'reference=INV+7', { reference: 'INV 7' }],
  ['list_transfers', 'from=2026-01-02T02:00+02:00', { from: '2026-01-02T00:00:00.000Z' }],
  ['get_account_balance', 'at=2026-01-02T02:00:00+02:00', { at: '2026-01-02T00:00:00.000Z' }],
  ['get_statement', 'from=2026-01-02T02:00:00+02:00', { from: '2026-01-02T00:00:00.000Z' }],
  ['list_audit', 'from=2026-01-02T02:00:00+02:00', { from: '2026-01-02T00:00:00.000Z' }],
  ['get_posting_statistics', 'currency=USD&from=2026-01-02T02:00:00+02:00', { from: '2026-01-02T00:00:00.000Z' }],
] as const)('%s?%s: a plus that was not encoded is a plus where no blank can be meant', (name, text, parsed) => {
  // contract: clients-19
  const given = Object.fromEntries(new URLSearchParams(text));
  expect(parseQuery<z.ZodType>(endpoints[name].query, given)).toMatchObject(parsed);
});

test('national phone numbers become international of the bank’s country; without one they are refused', () => {
  // contract: clients-14
  const given = { contact_number: '0700 000 001', ussd_phone_number: '+254700000002', email: '0700' };
  expect(internationalPhones(given, { callingCode: '254' })).toEqual({ ...given, contact_number: '+254700000001' });
  expect(internationalPhones(given, undefined)).toBe(given);
  expect(
    parseQuery(
      endpoints.search_client_by_ussd.query,
      internationalPhones({ ussd_phone: '0700000001' }, { callingCode: '254' }),
    ),
  ).toMatchObject({
    ussd_phone: '+254700000001',
  });
  for (const other of [new NumberText('1'), 'x', null, { contact_number: 5 }])
    expect(internationalPhones(other, { callingCode: '254' })).toBe(other);
});

test('metadata.<key> of a query are filters of lists of postings, taken letter for letter and regardless of their order', () => {
  // contract: names-11
  const names = ['list_transactions', 'list_transfers'] as const;
  for (const { query: schema } of names.map((name) => endpoints[name])) {
    const given = { 'metadata.order': ' Ä"17 ', 'metadata.crm.id': '' };
    for (const confined of ['account_id', 'from', 'to', 'effective_from', 'effective_to']) {
      const value = confined === 'account_id' ? 'acc_1' : '2026-01-02';
      const parsed = parseQuery<z.ZodType>(schema, { ...given, [confined]: value });
      expect(parsed).toMatchObject({ metadata: { order: ' Ä"17 ', 'crm.id': '' } });
      expect(JSON.stringify(parsed)).toContain('{"crm.id":"","order":');
    }
  }
  expect(parseQuery<z.ZodType>(endpoints.list_transactions.query, { limit: '1' })).not.toHaveProperty('metadata');
});

const rules = {
  key: 'is not a key of 1 to 40 of the characters a-z 0-9 _ . -',
  unknown: 'is not a known parameter',
  confined: 'needs account_id or a period (from, to, effective_from, or effective_to)',
};
const account = { account_id: 'acc_1' };

test.each<[EndpointName, Record<string, unknown>, string, string, string?]>([
  ['list_transactions', { 'metadata.order': '17' }, 'metadata.order', rules.confined],
  ['list_transactions', { 'metadata.order': '17', currency: 'USD', foo: '1' }, 'metadata.order', rules.confined],
  ['list_transfers', { 'metadata.order': '17', external_id: 'a' }, 'metadata.order', rules.confined],
  ['list_transactions', { 'metadata.Order': '17', ...account }, 'metadata.Order', rules.key],
  ['list_transactions', { 'metadata.': '17', ...account }, 'metadata.', rules.key],
  ['list_transactions', { [`metadata.${'a'.repeat(41)}`]: '1', ...account }, `metadata.${'a'.repeat(41)}`, rules.key],
  ['list_transactions', { 'metadata.a[b]': '1', ...account }, 'metadata.a[b]', rules.key],
  ['list_transfers', { 'metadata.a': 'x'.repeat(501), ...account }, 'metadata.a', 'must have at most 500 characters'],
  ['list_transfers', { 'metadata.a': ['1', '2'], ...account }, 'metadata.a', 'is given more than once'],
  ['list_transfers', { 'metadata.a': '\u0000', ...account }, 'metadata.a', 'must not contain NUL'],
  ['list_transactions', { 'metadata.__proto__': '1', ...account }, 'metadata.__proto__', rules.unknown, 'parameter'],
  ['list_transactions', { metadata: 'order', ...account }, 'metadata', rules.unknown, 'parameter'],
  ['list_transactions', { metadata: 'order' }, 'metadata', rules.unknown, 'parameter'],
  ['list_transactions', { 'metadata[order]': '17', ...account }, 'metadata[order]', rules.unknown, 'parameter'],
  ['list_clients', { 'metadata.order': '17' }, 'metadata.order', rules.unknown, 'parameter'],
  ['list_entries', { 'metadata.order': '17' }, 'metadata.order', rules.unknown, 'parameter'],
])('a filter by metadata of %s that is not one is refused by name: %j', (name, given, field, rule, unknown) => {
  // contract: names-11
  const errors = query(endpoints[name].query, given).errors?.filter((error) => error.field !== 'foo');
  const code = unknown === undefined ? 'validation_failed' : 'unknown_parameter';
  expect(errors).toEqual([{ field, code, message: `${field} ${rule}` }]);
});
