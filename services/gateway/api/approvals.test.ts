import { afterEach, expect, test } from 'vitest';
import { approvalActions } from '#libs/contracts/approvals.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { unknownRepeat } from '#libs/contracts/errors.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import type { FourEyes } from '../access/four-eyes.ts';
import { type Answer, ids, ok, refused, samples, testApp } from '../test/test-app.ts';
import { hs256Token, hs256Tokens } from '../test/test-token.ts';

/**
 * Tests approvals in the gateway, with services simulated by a function, and the message that is sent instead of the
 * command.
 */
const { issuer } = hs256Tokens;
const token = (sub: string) => hs256Token({ sub, scope: scopes.join(' '), azp: 'front-end' });

const limits = new Map([['USD', '1000']]);
const all: FourEyes = { actions: new Set(approvalActions), keys: false, limits };
const approval_id = `apr_${'a'.repeat(32)}`;
const time = '2026-01-02T03:04:05.678Z';
const waiting = {
  approval_id,
  action: 'unfreeze',
  summary: 'x',
  request: { operation: 'change_account_status', method: 'POST', path: '/x', body: { amount: '5.00' } },
  changes: [],
  requested_by: `jwt:${issuer}|alice`,
  requested_at: time,
  expires_at: time,
  status: 'Waiting',
  decided_by: null,
  decided_at: null,
  reason: null,
};

let close: () => Promise<void>;
afterEach(() => close());

/** A bank whose only account has this status, and which has executed nothing but what it answers as a repeat. */
async function bankWith(status: string, answers: Record<string, Answer> = {}, fourEyes = all) {
  const known: Record<string, Answer> = {
    get_account: ok({ ...samples.master, status: 'Active' }),
    get_ledger_accounts: ok([{ ...samples.ledger, status }]),
    request_approval: ok(waiting),
    change_account_status: ok({ ...samples.master, balance: '0.00' }),
    create_transaction: ok(samples.transaction),
    ...answers,
  };
  const made = await testApp(
    ({ name, headers }) => {
      const answer = known[name] ?? refused('internal_error', name);
      const isStored = typeof answer === 'object' && answer.replayed === true;
      return headers['repeat-only'] === 'true' && !isStored ? { ok: false, refusal: unknownRepeat } : answer;
    },
    { tokens: hs256Tokens, fourEyes },
  );
  close = () => made.app.close();
  const headers = { authorization: `Bearer ${token('alice')}` };
  const post = (url: string, payload: object, more: object = headers) =>
    made.app.inject({ method: 'POST', url, headers: { ...more }, payload });
  const requests = () =>
    made.sent.map(({ headers: { ce_type = '', ...rest }, value }) => ({
      name: ce_type.replace(/^corebanking\.\w+\.(\w+)\.v1$/, '$1'),
      headers: rest,
      data: JSON.parse(String(value)) as Record<string, unknown>,
    }));
  return { ...made, post, requests, headers };
}

const transitions = `/accounts/${ids.account}/status-transitions`;

test('a status change of an account that is not Frozen is executed immediately, with a command that cannot unfreeze', async () => {
  const { post, requests } = await bankWith('Inactive');
  expect((await post(transitions, { status: 'Active' })).statusCode).toBe(200);
  const [, , command] = requests();
  expect([command?.name, command?.data['keep_frozen']]).toEqual(['change_account_status', true]);
});

test('an unfreeze is requested with the complete command; reads for it are not audited as reads by staff', async () => {
  const { post, requests } = await bankWith('Frozen');
  const answer = await post(transitions, { status: 'Active', note: 'called' });
  expect([answer.statusCode, answer.headers.location]).toEqual([202, `/admin/approvals/${approval_id}`]);
  const [first, second, request] = requests();
  expect([first?.headers['staff'], second?.headers['staff'], request?.headers['staff']]).toEqual([
    undefined,
    undefined,
    'true',
  ]);
  const { command, ...data } = request?.data as { command: { id: string; data: Record<string, unknown> } };
  expect(request?.name).toBe('request_approval');
  expect(data).toMatchObject({
    action: 'unfreeze',
    scopes: ['accounts:status'],
    changes: [{ field: 'status', before: 'Frozen', after: 'Active' }],
    request: { operation: 'change_account_status', path: transitions, body: { status: 'Active', note: 'called' } },
  });
  expect(command.data).toEqual({
    transition_id: command.id,
    account_id: ids.account,
    status: 'Active',
    reason: null,
    note: 'called',
  });
  // The command has the id bits of its approval.
  expect(command.id.slice(4)).toBe(String((data as unknown as { approval_id: string }).approval_id).slice(4));
});

test('freezing, small amounts, inactive rules, and API keys need no approval', async () => {
  const { post, requests, keyHeader } = await bankWith('Frozen');
  await post(transitions, { status: 'Frozen', reason: 'fraud' });
  await post('/transactions', { account_id: ids.account, transaction_type: 'Deposit', amount: 1000 });
  await post(transitions, { status: 'Active' }, keyHeader());
  await post('/transactions', { account_id: ids.account, transaction_type: 'Deposit', amount: 5000 }, keyHeader());
  expect(requests().map(({ name }) => name)).toEqual([
    'change_account_status',
    'create_transaction',
    'change_account_status',
    'create_transaction',
  ]);
});

const { deadLetter } = samples;
const letter = (message: string, value: unknown) => ({
  get_dead_letter: ok({ ...deadLetter, message, value: JSON.stringify(value) }),
});
const redrive = `/admin/dead-letters/${deadLetter.dead_letter_id}/redrive`;
const renewed = { renew_deadline: true };
const large = { account_id: ids.account, amount: '5000', currency: 'USD' };
const limited = new Set(['post_above' as const]);

test.each<[string, object, string | undefined, Record<string, Answer>, FourEyes?]>([
  [transitions, { status: 'Inactive' }, 'unfreeze', {}],
  [`/transactions/${ids.transaction}/reversal`, { reason: 'x' }, 'reverse', {}],
  ['/admin/api-keys', { name: 'x', scopes: ['accounts:read', 'audit:read'] }, undefined, {}],
  ['/admin/api-keys', { name: 'x', scopes: ['accounts:read', 'transfers:write'] }, 'create_key', {}],
  ['/admin/api-keys', { name: 'x', scopes: ['keys:manage'] }, 'create_key', {}],
  [redrive, renewed, 'redrive', letter('create_client', {})],
  [redrive, {}, undefined, letter('create_client', {})],
  [redrive, renewed, 'redrive', letter('create_transaction', { ...large, amount: '5' })],
  [redrive, {}, undefined, letter('create_transaction', { ...large, amount: '5' })],
  [redrive, {}, 'post_above', letter('create_transaction', large)],
  [redrive, {}, 'post_above', letter('create_transaction', { amount: 5 })],
  // An action whose rule is off needs no approval, but another reason still applies.
  [redrive, renewed, 'post_above', letter('create_transaction', large), { ...all, actions: limited }],
  [redrive, renewed, undefined, letter('create_client', {}), { ...all, actions: limited }],
  [redrive, {}, undefined, letter('create_batch', {}), { ...all, limits: new Map() }],
])('%s %j needs approval: %s', async (url, payload, action, answers, fourEyes) => {
  const { post, requests } = await bankWith(
    'Frozen',
    { get_transaction: ok(samples.transaction), ...answers },
    fourEyes,
  );
  await post(url, payload);
  const last = requests().at(-1);
  expect(last?.name).toMatch(action === undefined ? /^(redrive_dead_letter|create_api_key)$/ : /^request_approval$/);
  expect(last?.data['action']).toBe(action);
});

test('a reversal that needs an approval queries its original once', async () => {
  const { post, requests, headers } = await bankWith('Active', { get_transaction: ok(samples.transaction) });
  const url = `/transactions/${ids.transaction}/reversal`;
  expect((await post(url, { reason: 'x' }, { ...headers, 'idempotency-key': 'k' })).statusCode).toBe(202);
  expect(requests().map(({ name }) => name)).toEqual(['get_transaction', 'reverse_transaction', 'request_approval']);
});

const newKey = { name: 'x', scopes: ['transfers:write'] };

const past = '2020-01-01T00:00:00Z';
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
const requested = (sent: { name: string; headers: Record<string, string | undefined> }[]) =>
  sent.some(({ name, headers }) => name === 'request_approval' && headers['repeat-only'] === undefined);

test.each<[object, Record<string, Answer>, number, string]>([
  [{ client_id: ids.client }, { get_client: refused('client_not_found') }, 404, 'client_not_found'],
  [{ expires_at: '2999-01-01T00:00:00Z' }, {}, 400, 'validation_failed'],
  [{ expires_at: past }, {}, 400, 'validation_failed'],
])('a key with %j is refused before an approval is requested', async (fields, answers, status, code) => {
  const { post, requests, headers } = await bankWith('Frozen', answers);
  for (const key of [{}, { 'idempotency-key': 'k' }]) {
    const response = await post('/admin/api-keys', { ...newKey, ...fields }, { ...headers, ...key });
    expect([response.statusCode, response.json().code]).toEqual([status, code]);
  }
  expect(requested(requests())).toBe(false);
});

test('so is a key that would outlive the key that creates it', async () => {
  const { post, requests, keyHeader } = await bankWith(
    'Frozen',
    { get_api_key: ok({ ...samples.key, key_id: `key_${'1'.padStart(32, '0')}`, expires_at: inHours(1) }) },
    { ...all, keys: true },
  );
  const creation = { ...newKey, expires_at: inHours(2) };
  expect((await post('/admin/api-keys', creation, keyHeader())).json().errors).toMatchObject([{ field: 'expires_at' }]);
  expect(requested(requests())).toBe(false);
});

test('a repeat of the request for a key that has expired since returns its approval, or the key', async () => {
  const creation = { ...newKey, expires_at: past };
  const key = { ...samples.key, key_id: `key_${'a'.repeat(32)}` };
  const repeat = async (answers: Record<string, Answer>) => {
    const { post, headers } = await bankWith('Frozen', answers);
    const { statusCode, headers: given } = await post('/admin/api-keys', creation, {
      ...headers,
      'idempotency-key': 'k',
    });
    await close();
    return [statusCode, given['idempotent-replayed']];
  };
  const stored = { ok: true as const, replayed: true };
  const get_approval = ok({ approval: waiting, has_unread_key: false });
  expect(await repeat({ request_approval: { ...stored, data: waiting }, get_approval })).toEqual([202, 'true']);
  expect(await repeat({ create_api_key: { ...stored, data: key } })).toEqual([201, 'true']);
});

test('a key that only reads is created without a look at its client', async () => {
  const { post, requests } = await bankWith('Frozen', { create_api_key: refused('client_not_found') });
  const creation = { name: 'x', scopes: ['accounts:read'], client_id: ids.client };
  expect((await post('/admin/api-keys', creation)).statusCode).toBe(404);
  expect(requests().map(({ name }) => name)).toEqual(['create_api_key']);
});

test('so is the rotation of a key with scopes that the caller lacks', async () => {
  const key_id = `key_${'a'.repeat(32)}`;
  const { post, requests } = await bankWith('Frozen', {
    get_api_key: ok({ ...samples.key, key_id, scopes: ['transfers:write'] }),
  });
  const limited = { authorization: `Bearer ${hs256Token({ sub: 'lena', scope: 'keys:manage', azp: 'front-end' })}` };
  const response = await post(`/admin/api-keys/${key_id}/rotation`, {}, limited);
  expect([response.statusCode, response.json().code]).toEqual([403, 'insufficient_scope']);
  expect(requests().map(({ name }) => name)).not.toContain('request_approval');
});

test.each<[Answer, number, string]>([
  ['not_sent', 503, 'service_unavailable'],
  ['no_reply', 504, 'outcome_unknown'],
  ['unacknowledged', 504, 'outcome_unknown'],
  [refused('idempotency_key_reused'), 422, 'idempotency_key_reused'],
])('an approval that could not be requested: %j', async (answer, status, code) => {
  const unknown = refused('approval_not_found');
  const bank = await bankWith('Frozen', { request_approval: answer, get_approval: unknown });
  const answered = await bank.post(transitions, { status: 'Active' });
  expect([answered.statusCode, answered.json().code]).toEqual([status, code]);
  if (status !== 504) return;
  // Its id is not reported as unknown before it is also unknown behind the request.
  const { topic, partition } = bank.sent.at(-1) as OutgoingMessage;
  const [, url] = /GET (\S+) before/.exec(answered.json().message) ?? [];
  await bank.app.inject({ method: 'GET', url, headers: bank.headers });
  expect(bank.sent.at(-1)).toMatchObject({ topic, partition });
});

test.each<[object, number, object]>([
  [{}, 202, { data: { status: 'Waiting', request: { body: { amount: 5 } } } }],
  [{ status: 'Rejected' }, 202, { data: { status: 'Rejected' } }],
  [
    { status: 'Approved', outcome: { status: 'success', data: { ...samples.master, balance: '1.50' } } },
    200,
    { data: { balance: 1.5 } },
  ],
  [
    { status: 'Approved', outcome: { status: 'error', code: 'account_not_found', message: 'gone' } },
    404,
    { code: 'account_not_found' },
  ],
])('a repeat returns the current state: %j', async (changes, status, body) => {
  const replayed: ReplyBody = { ok: true, replayed: true, data: waiting };
  const { post, headers } = await bankWith('Frozen', {
    request_approval: replayed,
    get_approval: ok({ approval: { ...waiting, ...changes }, has_unread_key: false }),
  });
  const answer = await post(transitions, { status: 'Active' }, { ...headers, 'idempotency-key': 'k' });
  expect([answer.statusCode, answer.headers['idempotent-replayed']]).toEqual([status, 'true']);
  expect(answer.json()).toMatchObject(body);
});

test('an approval whose outcome is late is returned without it', async () => {
  const decided = { ...waiting, status: 'Approved', decided_by: `jwt:${issuer}|alice`, decided_at: time };
  const { post } = await bankWith('Frozen', {
    approve_request: 'no_reply',
    get_approval: ok({ approval: decided, has_unread_key: false }),
  });
  const answer = await post(`/admin/approvals/${approval_id}/approval`, {});
  expect([answer.statusCode, answer.json().data]).toMatchObject([200, { status: 'Approved' }]);
  await close();
  const other = await bankWith('Frozen', {
    approve_request: 'no_reply',
    get_approval: ok({ approval: { ...decided, decided_by: `jwt:${issuer}|bob` }, has_unread_key: false }),
  });
  expect((await other.post(`/admin/approvals/${approval_id}/approval`, {})).statusCode).toBe(504);
});
