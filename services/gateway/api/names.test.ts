import { expect, test } from 'vitest';
import { ids, ok, samples, useTestCaller } from '../test/test-app.ts';

/** Tests the contract of external_id and metadata, as the gateway validates and forwards them. */
const start = useTestCaller();

const metadata = { 'crm.id': 'A-17' };
const names = { external_id: 'core-4711', metadata };
const client = {
  client_type: 'Corporate',
  company_name: 'x',
  registration_number: 'y',
  email: 'a@b.cc',
  contact_number: '+254700000001',
};
const transfer = { from_account_id: ids.account, to_account_id: ids.other, amount: 5 };
const writes = [
  ['POST', '/clients', client],
  ['PATCH', `/clients/${ids.client}`, {}],
  ['POST', '/accounts', { client_id: ids.client, account_type: 'Savings', currency: 'USD' }],
  ['POST', '/transactions', { account_id: ids.account, transaction_type: 'Deposit', amount: 5 }],
  ['POST', '/transfers', transfer],
  ['POST', `/transactions/${ids.transaction}/reversal`, { reason: 'x' }],
] as const;

test.each(writes)('%s %s sends the given values, and sends nothing if none are given', async (method, url, body) => {
  const { call, sent } = await start(({ name }) => (name === 'get_transaction' ? ok(samples.transaction) : 'not_sent'));
  await call(method, url, { ...body, ...names });
  await call(method, url, { ...body, email: 'b@b.cc', external_id: null, metadata: {} });
  const parts = sent
    .filter(({ topic }) => !topic.endsWith('queries'))
    .map(({ value }) => JSON.parse(String(value)) as Record<string, object>)
    .map((data) => data['client'] ?? data['changes'] ?? data);
  expect(parts[0]).toMatchObject(names);
  for (const part of parts.slice(1))
    expect(Object.entries(part).filter(([name, value]) => name in names && value !== null)).toEqual([]);
});

test.each(writes)('%s %s reports field and rule of invalid values', async (method, url, body) => {
  const { call, sent } = await start(() => 'not_sent');
  const refused = await call(method, url, { ...body, external_id: 'é', metadata: { Upper: 'x', n: 5 } });
  expect([refused.status, refused.body.code]).toEqual([400, 'validation_failed']);
  expect(refused.body.errors).toEqual([
    {
      field: 'external_id',
      code: 'validation_failed',
      message: 'external_id must have 1 to 128 printable ASCII characters',
    },
    {
      field: 'metadata.Upper',
      code: 'validation_failed',
      message: 'metadata.Upper is not a key of 1 to 40 of the characters a-z 0-9 _ . -',
    },
    { field: 'metadata.n', code: 'validation_failed', message: 'metadata.n must be a string' },
  ]);
  const list = await call(method, url, { ...body, metadata: [] });
  expect([list.body.errors, sent]).toEqual([
    [{ field: 'metadata', code: 'validation_failed', message: 'metadata must be a JSON object' }],
    [],
  ]);
});

test('a bound caller can set metadata but no external_id', async () => {
  const { call, sent, keyHeader } = await start(() => 'not_sent');
  const headers = keyHeader({ client_id: ids.client });
  const own = writes.filter(([, url]) => ['/accounts', '/transfers', `/clients/${ids.client}`].includes(url));
  for (const [method, url, body] of own) {
    const refused = await call(method, url, { ...body, ...names }, headers);
    expect([refused.status, refused.body.code, refused.body.message]).toEqual([
      403,
      'insufficient_scope',
      expect.stringContaining('external_id'),
    ]);
  }
  expect((await call('PATCH', `/clients/${ids.client}`, { external_id: null }, headers)).status).toBe(403);
  expect(sent).toEqual([]);
  for (const [method, url, body] of own)
    expect((await call(method, url, { ...body, metadata }, headers)).status).toBe(503);
  expect(sent).toHaveLength(own.length);
});

test('the values are part of the fingerprint; the order of keys is not', async () => {
  const { call, sent } = await start(() => 'not_sent');
  const bodies = [
    {},
    { external_id: 'a' },
    { external_id: 'b' },
    { metadata: { a: '1', b: '2' } },
    { metadata: { b: '2', a: '1' } },
    { metadata: { a: '1' } },
  ];
  for (const body of bodies) await call('POST', '/transfers', { ...transfer, ...body }, { 'idempotency-key': 'k' });
  const prints = sent.map(({ headers }) => headers['fingerprint']);
  expect([new Set(prints).size, prints[3] === prints[4]]).toEqual([5, true]);
});

test('a Pending posting contains the values', async () => {
  const { call } = await start(() => 'no_reply');
  expect((await call('POST', '/transfers', { ...transfer, ...names })).body.data).toMatchObject({
    status: 'Pending',
    ...names,
  });
  expect(
    (await call('POST', '/transactions', { account_id: ids.account, transaction_type: 'Deposit', amount: 5, ...names }))
      .body,
  ).toMatchObject({ status: 'Pending', ...names });
});

test.each(['/clients', '/accounts', '/transactions', '/transfers'])(
  'GET %s filters by the exact external_id',
  async (path) => {
    // contract: names-5
    const { call, sent } = await start(() => ok({ items: [] }));
    expect((await call('GET', `${path}?external_id=%20Core%2F1%20`)).status).toBe(200);
    expect(JSON.parse(String(sent[0]?.value))).toMatchObject({ external_id: ' Core/1 ' });
    for (const wrong of ['', '%C3%A9', 'x'.repeat(129)]) {
      expect((await call('GET', `${path}?external_id=${wrong}`)).body).toMatchObject({
        code: 'validation_failed',
        errors: [{ field: 'external_id' }],
      });
    }
  },
);

test('responses contain the values', async () => {
  const { call } = await start(() => ok({ ...samples.transfer, ...names }));
  expect((await call('GET', `/transfers/${ids.transfer}`)).body.data).toMatchObject(names);
});
