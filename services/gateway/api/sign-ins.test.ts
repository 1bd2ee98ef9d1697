import { afterEach, describe, expect, test } from 'vitest';
import { testApp } from '../test/test-app.ts';
import { testToken, testTokens } from '../test/test-token.ts';

const session_id = `ses_${'a'.repeat(32)}`;
let close: () => Promise<void> = async () => undefined;
afterEach(() => close());

async function start(options: Parameters<typeof testApp>[1] = {}) {
  const made = await testApp(undefined, { tokens: testTokens, ...options });
  close = () => made.app.close();
  const post = async (path: string, body: object, headers: Record<string, string>) => {
    const { statusCode, ...answer } = await made.app.inject({ method: 'POST', url: path, payload: body, headers });
    return { status: statusCode, body: answer.json() };
  };
  const records = async () => {
    await made.auditRecords.flush();
    const audited = made.recorded.splice(0).filter(({ topic }) => topic === 'test.accounts.commands');
    return audited.map(({ value }) => JSON.parse(String(value)));
  };
  return { ...made, post, records };
}

const now = () => Math.floor(Date.now() / 1000);
const ada = (claims: Record<string, unknown> = {}) => ({
  authorization: `Bearer ${testToken({ sub: 'ada', azp: 'dashboard', scope: 'clients:read openid', ...claims })}`,
});
const actor = 'jwt:https://issuer.example|ada';

describe('a sign-in', () => {
  test('returns the person of the token, when the audit has the sign-in with the address of the caller', async () => {
    // contract: audit-15
    const { post, records } = await start({ trustProxy: ['127.0.0.1'] });
    const answer = await post('/admin/sign-ins', { session_id }, { ...ada(), 'x-forwarded-for': '203.0.113.7' });
    expect(answer).toEqual({
      status: 200,
      body: { status: 'success', data: { session_id, actor, name: null, scopes: ['clients:read'] } },
    });
    expect(await records()).toMatchObject([
      { actor, action: 'sign_in', outcome: 'success', resource_id: session_id, address: '203.0.113.7' },
    ]);
  });

  test('ends earlier tokens of the person for the same client, which are refused from then on', async () => {
    // contract: permission-39
    const { app, post } = await start();
    const [old, other, next] = [ada({ iat: now() - 60 }), ada({ iat: now() - 60, azp: 'cli' }), ada()];
    const requestStatus = async (headers: Record<string, string>) =>
      (await app.inject({ url: '/', headers })).statusCode;
    expect(await requestStatus(old)).toBe(200);
    expect((await post('/admin/sign-ins', { session_id }, next)).status).toBe(200);
    expect([await requestStatus(old), await requestStatus(other), await requestStatus(next)]).toEqual([401, 200, 200]);
  });

  describe('with an ID token', () => {
    const idToken = (claims: Record<string, unknown> = {}) => testToken({ sub: 'ada', aud: 'dashboard', ...claims });
    test.each([
      ['its name', { name: 'Ada Lovelace', preferred_username: 'ada' }, 'Ada Lovelace'],
      ['its user name, if it has no name', { name: ' ', preferred_username: 'ada' }, 'ada'],
      [
        'its user name, if its name has an invisible character',
        { name: 'Ada\u200b L', preferred_username: 'ada' },
        'ada',
      ],
      ['a name with a joiner of its script', { name: ' علی\u200cرضا ' }, 'علی\u200cرضا'],
    ])('takes %s, and gives it to accounts beside the record', async (_what, claims, name) => {
      // contract: audit-16
      const { post, records } = await start();
      const { body } = await post('/admin/sign-ins', { session_id, id_token: idToken(claims) }, ada());
      expect(body.data.name).toBe(name);
      expect(await records()).toMatchObject([{ actor, action: 'sign_in', actor_name: name, details: {} }]);
    });

    test.each<[string, string]>([
      ['of another person', idToken({ sub: 'eve', name: 'Ada' })],
      ['of another OAuth client', idToken({ aud: 'cli', name: 'Ada' })],
      ['of another issuer', idToken({ iss: 'https://other.example', name: 'Ada' })],
      ['that has expired', idToken({ exp: now() - 60, name: 'Ada' })],
      ['with another signature', `${idToken({ name: 'Ada' }).slice(0, -4)}AAAA`],
      ['without a name', idToken()],
      ['with a name that cannot be stored', idToken({ name: 'Ada\ud800' })],
      ['with a name that nobody sees', idToken({ name: '\u200b' })],
      ['with names that could look like others', idToken({ name: 'Ada\u00ad', preferred_username: '\u202eada' })],
      ['with a name of more than 100 characters', idToken({ name: 'é'.repeat(101) })],
      ['that is none', 'nonsense'],
    ])('%s, takes no name, and is a sign-in', async (_what, id_token) => {
      // contract: audit-16
      const { post, records } = await start();
      const { status, body } = await post('/admin/sign-ins', { session_id, id_token }, ada());
      expect([status, body.data.name]).toEqual([200, null]);
      const [record, ...more] = await records();
      expect([record.action, 'actor_name' in record, more]).toEqual(['sign_in', false, []]);
    });
  });

  test('without a valid token counts as a failed sign-in of its address, and is limited', async () => {
    const { post, records } = await start({ authFailuresPerMinute: 1 });
    const failed = () => post('/admin/sign-ins', { session_id }, { authorization: 'Bearer none' });
    expect([(await failed()).status, (await failed()).status]).toEqual([401, 429]);
    expect(await records()).toMatchObject([
      { actor: 'unauthenticated', action: 'sign_in', outcome: 'invalid_credentials', address: '127.0.0.1' },
      { actor: 'unauthenticated', action: 'sign_in', outcome: 'rate_limited' },
    ]);
  });

  test('is for people: not for keys, machines, and customers; the session has a fixed form', async () => {
    const { post, keyHeader } = await start();
    for (const headers of [keyHeader(), ada({ azp: 'ada' }), ada({ bank_client_id: `cli_${'a'.repeat(32)}` })])
      expect((await post('/admin/sign-ins', { session_id }, headers)).body.code).toBe('insufficient_scope');
    expect((await post('/admin/sign-ins', { session_id: 'mine' }, ada())).body.code).toBe('validation_failed');
  });
});

test('a token that was signed out is refused from then on, and the audit has the sign-out', async () => {
  // contract: permission-39
  const { app, post, records } = await start();
  const [one, other] = [ada(), ada({ jti: 'other' })];
  expect((await post('/admin/sign-outs', { session_id }, one)).status).toBe(200);
  expect((await app.inject({ url: '/', headers: one })).statusCode).toBe(401);
  expect((await app.inject({ url: '/', headers: other })).statusCode).toBe(200);
  expect(await records()).toMatchObject([
    { actor, action: 'sign_out', outcome: 'success', resource_id: session_id },
    { outcome: 'invalid_credentials' },
  ]);
});

test('an export is recorded before the response, without values that may be personal; refusals are counted', async () => {
  const { post, records } = await start();
  const filters = { currency: 'KES', q: 'Lovelace' };
  const exported = { action: 'export', outcome: 'success', file: 'transactions.csv', filters };
  expect((await post('/admin/activities', exported, ada())).status).toBe(200);
  const refused = { action: 'page:api-keys/new', outcome: 'insufficient_scope' };
  await post('/admin/activities', refused, ada());
  await post('/admin/activities', refused, ada());
  expect(await records()).toMatchObject([
    {
      actor,
      action: 'export',
      outcome: 'success',
      details: { file: 'transactions.csv', filters: { currency: 'KES', q: '(given)' } },
    },
    { actor, action: 'page:api-keys/new', outcome: 'insufficient_scope', details: { count: 2 } },
  ]);
  expect((await post('/admin/activities', { ...refused, action: 'create_transfer' }, ada())).status).toBe(400);
});

test('a report can store nothing of its own: known filters, values and files of a fixed form, ids', async () => {
  const { post, records } = await start();
  const exported = { action: 'export', outcome: 'success' };
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`x_${'a'.repeat(i)}`, 'y']));
  for (const more of [
    { filters: { ada_lovelace: 'x' } },
    { filters: { 'Ada Lovelace': 'x' } },
    { filters: many },
    { file: 'Ada Lovelace.csv' },
    { file: 'a'.repeat(101) },
    { resource_id: 'Ada Lovelace' },
  ])
    expect((await post('/admin/activities', { ...exported, ...more }, ada())).body.code).toBe('validation_failed');
  expect(await records()).toEqual([]);
  const filters = { status: 'Ada Lovelace, 10 December', client_id: session_id };
  expect((await post('/admin/activities', { ...exported, filters }, ada())).status).toBe(200);
  expect(await records()).toMatchObject([{ details: { filters: { status: '(given)', client_id: session_id } } }]);
});

test('a person may sign in and report 60 times a minute, however many tokens they have; signing out is never refused', async () => {
  // contract: audit-15
  const { post } = await start();
  const exported = { action: 'export', outcome: 'success' };
  const report = (i: number) =>
    i % 2 === 0
      ? post('/admin/activities', exported, ada({ jti: `token-${i}` }))
      : post('/admin/sign-ins', { session_id }, ada({ jti: `token-${i}`, azp: `app-${i}` }));
  const statuses: number[] = [];
  for (let i = 0; i < 61; i++) statuses.push((await report(i)).status);
  expect(statuses).toEqual([...Array(60).fill(200), 429]);
  expect((await post('/admin/activities', exported, ada({ sub: 'bob' }))).status).toBe(200);
  expect((await post('/admin/sign-outs', { session_id }, ada())).status).toBe(200);
});
