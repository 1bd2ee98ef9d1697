import { afterEach, expect, test } from 'vitest';
import { approvalActions, rulesIn } from '#libs/contracts/approvals.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import type { FourEyes } from '../access/four-eyes.ts';
import { type Answer, ids, ok, refused, samples, testApp } from '../test/test-app.ts';
import { testToken, testTokens } from '../test/test-token.ts';

/**
 * Tests approvals in the gateway, with services simulated by a function, and the message that is sent instead of the
 * command.
 */
const { issuer } = testTokens;
const token = (sub: string) => testToken({ sub, scope: scopes.join(' '), azp: 'front-end' });

const limits = new Map([['USD', '1000']]);
const all: FourEyes = { actions: new Set(approvalActions), keys: false, limits, timeZone: 'UTC' };
const approval_id = `apr_${'a'.repeat(32)}`;
const time = '2026-01-02T03:04:05.678Z';
const waiting = {
  approval_id,
  action: 'unfreeze',
  summary: 'x',
  request: { operation: 'change_account_status', method: 'POST', path: '/x', body: { amount: '5.00' } },
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

/** A bank that answers the commands so, and in which the others need an approval. */
async function bankWith(answers: Record<string, Answer> = {}, fourEyes = all) {
  const made = await testApp(
    ({ name, headers }) =>
      answers[name] ??
      (name === 'request_approval' ? ok(waiting) : undefined) ??
      (headers['four-eyes'] === undefined ? refused('internal_error', name) : refused('approval_required')),
    { tokens: testTokens, fourEyes },
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

const webhook_id = `whk_${'b'.repeat(32)}`;
const transitions = `/accounts/${ids.account}/status-transitions`;
const cash = { account_id: ids.account, transaction_type: 'Deposit', amount: 5000 };

test('a command that its service executes needs no approval, and nothing else is asked', async () => {
  const { post, requests } = await bankWith({ change_account_status: ok({ ...samples.master, balance: '0.00' }) });
  expect((await post(transitions, { status: 'Active' })).statusCode).toBe(200);
  expect(requests().map(({ name, headers }) => [name, rulesIn({ four_eyes: headers['four-eyes'] })?.actions])).toEqual([
    ['change_account_status', ['unfreeze']],
  ]);
});

test('if its service refuses it without an approval, that is requested with the complete command', async () => {
  const { post, requests } = await bankWith();
  const answer = await post(transitions, { status: 'Active', note: 'called' });
  expect([answer.statusCode, answer.headers.location]).toEqual([202, `/admin/approvals/${approval_id}`]);
  const [first, request] = requests();
  expect([first?.name, request?.name, request?.headers['four-eyes']]).toEqual([
    'change_account_status',
    'request_approval',
    undefined,
  ]);
  const { command, ...data } = request?.data as { command: { id: string; data: Record<string, unknown> } };
  expect(data).toMatchObject({
    action: 'unfreeze',
    summary: `Unfreeze account ${ids.account}`,
    scopes: ['accounts:status'],
    request: { operation: 'change_account_status', path: transitions, body: { status: 'Active', note: 'called' } },
  });
  expect(command.data).toEqual({
    transition_id: command.id,
    account_id: ids.account,
    status: 'Active',
    reason: null,
    note: 'called',
  });
  // accounts keeps its refusal under the first id.
  expect(command.id).not.toBe(first?.headers['ce_id']);
});

test('an approved command of the ledger has the id that was refused, so that only one of them can be executed', async () => {
  const { post, requests } = await bankWith();
  expect((await post('/transactions', cash)).statusCode).toBe(202);
  const [first, request] = requests();
  const { command, approval_id } = request?.data as { command: { id: string }; approval_id: string };
  expect(command.id).toBe(first?.headers['ce_id']);
  expect(command.id.slice(4, -2)).toBe(approval_id.slice(4, -2));
});

test('what received a 202 before its service knew that it waits is requested by its repeat', async () => {
  // contract: four-eyes-7, idempotency-17
  const answers: Record<string, Answer> = { create_transaction: 'no_reply' };
  const { post, requests, headers } = await bankWith(answers);
  const send = () => post('/transactions', cash, { ...headers, 'idempotency-key': 'k' });
  const pending = await send();
  expect([pending.statusCode, pending.json().status]).toEqual([202, 'Pending']);
  answers['create_transaction'] = { ...refused('approval_required'), replayed: true } as Answer;
  const repeat = await send();
  expect([repeat.statusCode, repeat.headers.location]).toEqual([202, `/admin/approvals/${approval_id}`]);
  const [first, again, request] = requests();
  expect([again?.headers['ce_id'], request?.name]).toEqual([first?.headers['ce_id'], 'request_approval']);
});

test('API keys and other operations are sent without rules', async () => {
  const { post, requests, keyHeader } = await bankWith({
    create_transaction: ok(samples.transaction),
    create_client: refused('validation_failed'),
  });
  await post('/transactions', cash, keyHeader());
  await post(`/holds/${ids.hold}/release`, {});
  expect(requests().map(({ headers }) => headers['four-eyes'])).toEqual([undefined, undefined]);
});

test.each<[string, object, string, string[], string]>([
  [transitions, { status: 'Inactive' }, 'unfreeze', ['accounts:status'], `Unfreeze account ${ids.account}`],
  [
    `/transactions/${ids.transaction}/reversal`,
    { reason: 'x' },
    'reverse',
    ['transactions:reverse'],
    `Reverse transaction ${ids.transaction}`,
  ],
  [
    '/admin/api-keys',
    { name: 'x', scopes: ['transfers:write'] },
    'create_key',
    ['keys:manage'],
    'Create the API key “x” with the scopes transfers:write',
  ],
  [
    '/transactions',
    { ...cash, currency: 'USD' },
    'post_above',
    ['transactions:write'],
    `Deposit of 5000 USD on account ${ids.account}`,
  ],
  [
    `/holds/${ids.hold}/capture`,
    {},
    'post_above',
    ['holds:write', 'transactions:write'],
    `Capture what is left of hold ${ids.hold}`,
  ],
  [
    `PATCH /clients/${ids.client}`,
    { email: 'a@example.com', ussd_status: 'active' },
    'client_contact',
    ['clients:write'],
    `Change email, ussd_status of client ${ids.client}`,
  ],
  [
    '/webhooks',
    { url: 'https://receiver.example/x?secret=y', event_types: ['account.*'] },
    'webhook',
    ['webhooks:manage'],
    'Send corebanking.account.*.v1 to receiver.example',
  ],
  [
    `PATCH /webhooks/${webhook_id}`,
    { url: 'https://receiver.example/x' },
    'webhook',
    ['webhooks:manage'],
    `Change url of webhook ${webhook_id}`,
  ],
  [
    `/webhooks/${webhook_id}/secret-rotation`,
    {},
    'webhook',
    ['webhooks:manage'],
    `Rotate the secret of webhook ${webhook_id}`,
  ],
  [`/admin/clients/${ids.client}/erasure`, {}, 'erase', ['clients:erase'], `Erase client ${ids.client}`],
])('%s %j is the action %s', async (url, payload, action, needed, summary) => {
  const { post, requests, app, headers } = await bankWith({ get_transaction: ok(samples.transaction) });
  const [, patched] = /^PATCH (.+)/.exec(url) ?? [];
  const answer = patched
    ? await app.inject({ method: 'PATCH', url: patched, payload, headers })
    : await post(url, payload);
  expect(answer.statusCode).toBe(202);
  // The secret of a webhook is known to nobody else, and shown in no other response.
  const isMade = url === '/webhooks' || url.endsWith('/secret-rotation');
  expect(answer.json().data.secret).toEqual(isMade ? expect.stringMatching(/^whsec_/) : undefined);
  expect(JSON.stringify(requests())).not.toContain('whsec_');
  expect(requests().at(-1)?.data).toMatchObject({ action, scopes: needed, summary });
  // So that services only lock the sum of a person for what counts, and need not know the other actions.
  const asked = requests().find(({ headers }) => headers['four-eyes'] !== undefined);
  expect(rulesIn({ four_eyes: asked?.headers['four-eyes'] })?.actions).toEqual([action]);
});

test.each<[string, object, string, string[], string[]]>([
  ['/transactions', cash, 'backdate', ['post_above', 'backdate'], ['transactions:write', 'transactions:backdate']],
  ['/transactions', cash, 'post_above', ['post_above', 'backdate'], ['transactions:write']],
  [
    `/transactions/${ids.transaction}/reversal`,
    { reason: 'x' },
    'backdate',
    ['reverse', 'backdate'],
    ['transactions:reverse', 'transactions:backdate'],
  ],
])(
  '%s %j with a value date can be two actions, and is %s if the ledger says so',
  async (url, body, action, actions, needed) => {
    // contract: four-eyes-12
    const answer = refused('approval_required', 'x', { action });
    const { post, requests } = await bankWith({
      create_transaction: answer,
      reverse_transaction: answer,
      get_transaction: ok(samples.transaction),
    });
    expect((await post(url, { ...body, effective_date: '2020-01-31' })).statusCode).toBe(202);
    const asked = requests().find(({ headers }) => headers['four-eyes'] !== undefined);
    expect(rulesIn({ four_eyes: asked?.headers['four-eyes'] })?.actions).toEqual(actions);
    const summary = expect.stringMatching(/, with the value date 2020-01-31$/);
    expect(requests().at(-1)?.data).toMatchObject({ action, scopes: needed, summary });
  },
);

test('the approval of a reversal names the amount and the accounts that the ledger told', async () => {
  const posting = { amount: '7.50', currency: 'USD', account_ids: [ids.account, ids.other] };
  const { post, requests } = await bankWith({
    reverse_transaction: refused('approval_required', 'x', { action: 'reverse', ...posting }),
    get_transaction: ok(samples.transaction),
  });
  await post(`/transactions/${ids.transaction}/reversal`, { reason: 'x' });
  const summary = `Reverse transaction ${ids.transaction} of 7.50 USD on account ${ids.account} and ${ids.other}`;
  expect(requests().at(-1)?.data).toMatchObject({ action: 'reverse', summary });
});

test('what is not sent, or has no reply, is not requested either', async () => {
  const { post, requests } = await bankWith({ create_transaction: 'not_sent', open_account: 'no_reply' });
  expect((await post('/transactions', cash)).statusCode).toBe(503);
  const opening = { client_id: ids.client, account_type: 'Savings', currency: 'USD', initial_deposit: 5000 };
  expect((await post('/accounts', opening)).statusCode).toBe(504);
  expect(requests().map(({ name }) => name)).toEqual(['create_transaction', 'open_account']);
});

test.each<[Answer, number, string]>([
  ['not_sent', 503, 'service_unavailable'],
  ['no_reply', 504, 'outcome_unknown'],
  ['unacknowledged', 504, 'outcome_unknown'],
  [refused('idempotency_key_reused'), 422, 'idempotency_key_reused'],
])('an approval that could not be requested: %j', async (answer, status, code) => {
  const unknown = refused('approval_not_found');
  const bank = await bankWith({ request_approval: answer, get_approval: unknown });
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
    {
      status: 'Approved',
      outcome: { status: 'success', data: { ...samples.master, balance: '1.50', status_version: 3 } },
    },
    200,
    { data: { ...samples.master, balance: 1.5 } },
  ],
  [
    { status: 'Approved', outcome: { status: 'error', code: 'account_not_found', message: 'gone' } },
    404,
    { code: 'account_not_found' },
  ],
])('a repeat returns the current state: %j', async (changes, status, body) => {
  const replayed: ReplyBody = { ok: true, replayed: true, data: waiting };
  const { post, headers } = await bankWith({
    request_approval: replayed,
    get_approval: ok({ approval: { ...waiting, ...changes }, has_unread_key: false }),
  });
  const answer = await post(transitions, { status: 'Active' }, { ...headers, 'idempotency-key': 'k' });
  expect([answer.statusCode, answer.headers['idempotent-replayed']]).toEqual([status, 'true']);
  expect(answer.json()).toMatchObject(body);
  expect(answer.headers['etag'] !== undefined).toBe(status === 200);
  expect(answer.body).not.toContain('status_version');
});

/** The closing of a day whose totals are known. */
const date = '2025-12-31';
const closed = { date, closed_at: time, closed_by: 'x' };
const [previous_hash, accounts_sha256] = ['0'.repeat(64), '1'.repeat(64)];
const closing = { ...closed, totals: [], accounts_sha256, previous_hash, hash: accounts_sha256 };

test('the repeat of an approved closing is the closing with its totals', async () => {
  // contract: days-16, days-18
  const approval = { ...waiting, status: 'Approved', outcome: { status: 'success', data: closed } };
  const { post, headers } = await bankWith({
    request_approval: { ok: true, replayed: true, data: waiting },
    get_approval: ok({ approval, has_unread_key: false }),
    get_day_closing: ok(closing),
  });
  const answer = await post('/admin/day-closings', { date }, { ...headers, 'idempotency-key': 'k' });
  expect([answer.statusCode, answer.json().data]).toEqual([201, closing]);
});

test('reading an approved closing asks for its totals once, and is without them until they are calculated', async () => {
  const approval = { ...waiting, status: 'Approved', outcome: { status: 'success', data: closed } };
  const about = { ...approval, request: { ...waiting.request, operation: 'close_day' } };
  for (const [answer, data] of [
    [refused('service_unavailable'), closed],
    [ok(closing), closing],
  ] as const) {
    const get_approval = ok({ approval: about, has_unread_key: false });
    const { app, requests, headers } = await bankWith({ get_approval, get_day_closing: answer });
    const { statusCode, ...shown } = await app.inject({ url: `/admin/approvals/${approval_id}`, headers });
    expect([statusCode, shown.json().data.outcome.data]).toEqual([200, data]);
    expect(requests().map(({ name }) => name)).toEqual(['get_approval', 'get_day_closing']);
    await close();
  }
});

test.each<[string, Record<string, Answer>, object, RegExp]>([
  ['whose totals are late', { close_day: ok(closed) }, {}, /is closed, .* not calculated yet: GET \S+\/2025-12-31$/],
  ['whose totals cannot be read', { close_day: ok(closed), get_day_closing: 'no_reply' }, {}, /is closed, .*: GET /],
  ['that may be executed', { close_day: 'no_reply' }, {}, /may still be executed. Read \/admin\/day-closings/],
  ['with a key', { close_day: 'no_reply' }, { 'idempotency-key': 'k' }, /with the same Idempotency-Key$/],
])(
  'a closing %s is a 504 that says what to do',
  async (_, answers, key, advice) => {
    const { post, headers } = await bankWith({ get_day_closing: refused('service_unavailable'), ...answers });
    const answer = await post('/admin/day-closings', { date }, { ...headers, ...key });
    expect([answer.statusCode, answer.json().details]).toEqual([504, { date }]);
    expect(answer.json().message).toMatch(advice);
  },
  30_000,
);

test('an approval whose outcome is late is returned without it', async () => {
  const decided = { ...waiting, status: 'Approved', decided_by: `jwt:${issuer}|alice`, decided_at: time };
  const { post } = await bankWith({
    approve_request: 'no_reply',
    get_approval: ok({ approval: decided, has_unread_key: false }),
  });
  const answer = await post(`/admin/approvals/${approval_id}/approval`, {});
  expect([answer.statusCode, answer.json().data]).toMatchObject([200, { status: 'Approved' }]);
  await close();
  const other = await bankWith({
    approve_request: 'no_reply',
    get_approval: ok({ approval: { ...decided, decided_by: `jwt:${issuer}|bob` }, has_unread_key: false }),
  });
  expect((await other.post(`/admin/approvals/${approval_id}/approval`, {})).statusCode).toBe(504);
});

test.each([
  ['a person', all, undefined, approvalActions, [{ currency: 'USD', limit: 1000, posted: 400.5, left: 599.5 }]],
  ['whose sum is of another day', all, '2026-01-01', approvalActions, [{ limit: 1000, posted: 0, left: 1000 }]],
  ['a limit below the sum', { ...all, limits: new Map([['USD', '400']]) }, undefined, approvalActions, [{ left: 0 }]],
  ['other actions only', { ...all, actions: new Set(['reverse'] as const) }, undefined, ['reverse'], []],
] as const)('the rules of a caller: %s', async (_name, fourEyes, day, actions, shown) => {
  // contract: four-eyes-22
  const today = new Date().toISOString().slice(0, 10);
  const posted = ok([
    { currency: 'USD', day: day ?? today, amount: '400.50' },
    { currency: 'EUR', day: today, amount: '7.00' },
  ]);
  const { app, headers, sent, keyHeader } = await bankWith({ list_posted: posted }, fourEyes);
  const rules = async (who: object) =>
    (await app.inject({ url: '/admin/approval-rules', headers: { ...who } })).json<{ data: object }>().data;
  expect(await rules(headers)).toMatchObject({ day: today, actions: [...actions], limits: shown });
  const asked = sent.length;
  expect(await rules(keyHeader())).toEqual({ day: today, actions: [], limits: [] });
  expect([asked, sent.length]).toEqual([shown.length, shown.length]);
});

test('a key whose actions need an approval has the rules of a person; without sums there are no rules', async () => {
  // contract: four-eyes-22
  const fourEyes = { ...all, keys: true };
  const { app, keyHeader } = await bankWith({ list_posted: ok([]) }, fourEyes);
  const shown = await app.inject({ url: '/admin/approval-rules', headers: keyHeader({ scopes: [] }) });
  expect(shown.json()).toMatchObject({ data: { actions: [...approvalActions], limits: [{ left: 1000 }] } });
  await app.close();
  const away = await bankWith({ list_posted: 'no_reply' }, fourEyes);
  expect((await away.app.inject({ url: '/admin/approval-rules', headers: away.headers })).statusCode).toBe(503);
});
