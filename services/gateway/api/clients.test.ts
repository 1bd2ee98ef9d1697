import { expect, test } from 'vitest';
import { computeEtag } from '#libs/contracts/etag.ts';
import { ids, ok, refused, samples, testApp, useTestCaller } from '../test/test-app.ts';

/** Tests the contract of versions of clients, and of the fields that a bound caller cannot change. */
const start = useTestCaller();
const path = `/clients/${ids.client}`;
const tag = computeEtag(samples.client);

test('responses with a client have the ETag of their content', async () => {
  const { call } = await start(() => ok(samples.client));
  const creation = {
    client_type: 'Corporate',
    company_name: 'x',
    registration_number: 'y',
    email: 'a@b.cc',
    contact_number: '+254700000001',
  };
  const answers = [
    await call('GET', path),
    await call('GET', '/clients/ussd/search?ussd_phone=%2B254700000001'),
    await call('PATCH', path, { address: 'x' }),
    await call('POST', '/clients', creation),
  ];
  expect(answers.map(({ headers }) => headers.etag)).toEqual([tag, tag, tag, tag]);
  expect((await call('GET', `/accounts/${ids.account}/status-transitions`)).headers.etag).toBeUndefined();
});

test('If-Match is sent with the change; a tag of another form matches nothing', async () => {
  const { call, sent } = await start(() => refused('version_mismatch'));
  for (const ifMatch of [undefined, '*', tag, `"other", ${tag}`, `W/${tag}`]) {
    expect(
      (await call('PATCH', path, { address: 'x' }, ifMatch === undefined ? {} : { 'if-match': ifMatch })).status,
    ).toBe(412);
  }
  expect(sent.map(({ value }) => (JSON.parse(String(value)) as { if_match?: string[] }).if_match)).toEqual([
    undefined,
    undefined,
    [tag],
    [tag],
    [],
  ]);
});

test('a bound caller cannot change its own name', async () => {
  // contract: clients-25
  const { call, sent, keyHeader } = await start(() => ok(samples.client));
  const headers = keyHeader({ client_id: ids.client });
  for (const field of ['first_name', 'last_name', 'company_name', 'registration_number']) {
    expect((await call('PATCH', path, { [field]: 'x' }, headers)).body).toMatchObject({
      code: 'insufficient_scope',
      message: expect.stringContaining(field),
    });
  }
  expect(sent).toEqual([]);
  expect((await call('PATCH', path, { address: 'x' }, headers)).status).toBe(200);
});

test.each(['email=x', 'registration_number=', 'q=', 'q=--', 'q=%F0%9F%98%80'])(
  'GET /clients?%s is refused by name',
  async (query) => {
    const { call, sent } = await start(() => ok({ items: [] }));
    expect((await call('GET', `/clients?${query}`)).body).toMatchObject({
      code: 'validation_failed',
      errors: [{ field: query.split('=')[0] }],
    });
    expect(sent).toEqual([]);
    expect((await call('GET', '/clients?q=d%C3%A9+2&email=A%40b.cc&registration_number=C%2F1')).status).toBe(200);
    expect(JSON.parse(String(sent[0]?.value))).toMatchObject({
      q: 'dé 2',
      email: 'A@b.cc',
      registration_number: 'C/1',
    });
  },
);

test('an account number requires accounts:import and must match the type', async () => {
  // contract: accounts-3
  const { call, sent, keyHeader } = await start(() => 'not_sent');
  const opening = { client_id: ids.client, account_type: 'Savings', currency: 'USD', account_number: 'SAV-0042' };
  const plain = keyHeader({ scopes: ['accounts:write'] });
  expect((await call('POST', '/accounts', opening, plain)).body).toMatchObject({
    code: 'insufficient_scope',
    message: expect.stringContaining('accounts:import'),
  });
  expect((await call('POST', '/accounts', { ...opening, account_number: null }, plain)).status).toBe(503);
  for (const account_number of [
    'SAV-123',
    `SAV-${'1'.repeat(21)}`,
    'sav-1234',
    'SAV1234',
    'SAV-12x4',
    'CHK-1234',
    'VLT-1234',
    1234,
    '',
    'SAV-1234\n',
  ]) {
    expect((await call('POST', '/accounts', { ...opening, account_number })).body).toMatchObject({
      code: 'validation_failed',
      errors: [{ field: 'account_number' }],
    });
  }
  for (const [account_type, account_number] of [
    ['Checking', 'CHK-0000'],
    ['Current', `CUR-${'9'.repeat(20)}`],
    ['Loan', 'LOA-12345'],
  ]) {
    expect((await call('POST', '/accounts', { ...opening, account_type, account_number })).status).toBe(503);
    expect(JSON.parse(String(sent.at(-1)?.value))).toMatchObject({ account_number });
  }
});

test('DEFAULT_COUNTRY makes national numbers international in POST, PATCH, filter, and search', async () => {
  // contract: clients-14
  const { app, sent, keyHeader } = await testApp(() => ok(samples.client), { homeCountry: { country: 'KE' } });
  const creation = {
    client_type: 'Retail',
    first_name: 'x',
    last_name: 'y',
    email: 'a@b.cc',
    contact_number: '0700 000 001',
    ussd_phone_number: '0700 000 001',
  };
  const headers = keyHeader();
  await app.inject({ method: 'POST', url: '/clients', headers, payload: creation });
  await app.inject({ method: 'PATCH', url: path, headers, payload: { ussd_phone_number: '0700000001' } });
  await app.inject({ method: 'GET', url: '/clients?ussd_phone=0700000001', headers });
  await app.inject({ method: 'GET', url: '/clients/ussd/search?ussd_phone=0700-000-001', headers });
  await app.inject({ method: 'GET', url: '/admin/search?q=0700-000-001', headers });
  await app.close();
  const international = '+254700000001';
  expect(sent.map(({ value }) => JSON.parse(String(value)) as unknown)).toMatchObject([
    { client: { contact_number: international, ussd_phone_number: international } },
    { changes: { ussd_phone_number: international } },
    { ussd_phone: international },
    { ussd_phone: international },
    { q: '0700-000-001', phone: international },
    { q: '0700-000-001' },
  ]);
});
