import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Approval, OwnRules } from '#libs/contracts/approvals.ts';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { type Asked, whyApproval } from '../../services/dashboard/pages/needs-approval.ts';
import {
  type Answer,
  type Api,
  expectError,
  newKey,
  type RestAccount,
  type RestKey,
  unknownId,
} from '../support/client.ts';
import { readTopic } from '../support/kafka.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests the contract of approvals over REST: each action with two people, and each error. */
const world = useBank({ webhooks: 1, env: { ...staffEnv, FOUR_EYES: 'all', FOUR_EYES_LIMITS: 'USD:1000 KES:50000' } });
const { api } = world;
let alice: Api;
let bob: Api;
let account: RestAccount;
beforeAll(async () => {
  alice = api.withToken(staffToken(world.bank, 'alice'));
  bob = api.withToken(staffToken(world.bank, 'bob'));
  account = await api.newAccount({ initial_deposit: 100 });
});
/** Somebody who has posted nothing yet. */
let people = 0;
const person = () => api.withToken(staffToken(world.bank, `person-${++people}`));
const actor = (name: string) => `jwt:${world.bank.issuer}|${name}`;
type Shown = Approval & { api_key?: string };

/** Returns the Waiting approval of a 202. */
function waiting(answer: Answer, action: string): Shown {
  expect([answer.status, answer.text]).toEqual([202, expect.stringContaining('"status":"Waiting"')]);
  const approval = answer.data<Shown>();
  expect(approval).toMatchObject({
    approval_id: expect.stringMatching(/^apr_[0-9a-f]{32}$/),
    action,
    requested_by: expect.stringContaining('jwt:'),
    status: 'Waiting',
  });
  expect(Date.parse(approval.expires_at) - Date.parse(approval.requested_at)).toBe(24 * 3_600_000);
  expect(answer.header('location')).toBe(`/admin/approvals/${approval.approval_id}`);
  return approval;
}
const approvalPath = ({ approval_id }: Pick<Approval, 'approval_id'>) => `/admin/approvals/${approval_id}`;
async function approve(approval: Approval, by = bob, body: object = {}): Promise<Approval> {
  const answer = await by.post(`${approvalPath(approval)}/approval`, body);
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"status":"Approved"')]);
  return answer.data<Approval>();
}
const reject = async (approval: Approval) =>
  expect((await bob.post(`${approvalPath(approval)}/rejection`, { reason: 'no' })).status).toBe(200);
const readAudit = (resource: string, action: string) =>
  eventually(
    async () => (await api.get(`/admin/audit?resource_id=${resource}&action=${action}`)).list<AuditRecord>()[0],
  );
const deposit = (amount: number, fields: object = {}) => ({
  account_id: account.account_id,
  transaction_type: 'Deposit',
  amount,
  ...fields,
});
const askReversal = async (of = alice): Promise<Approval> => {
  const { transaction_id } = await api.transact(account.account_id, 'Deposit', 7);
  return waiting(await of.post(`/transactions/${transaction_id}/reversal`, { reason: 'twice' }), 'reverse');
};

describe('reverse', () => {
  it('is Waiting and changes nothing; when it is approved, it is executed in the name of the requester', async () => {
    // contract: four-eyes-7, four-eyes-3, audit-17
    const original = await api.transact(account.account_id, 'Deposit', 40);
    const before = await api.balance(account.account_id);
    const approval = waiting(
      await alice.post(`/transactions/${original.transaction_id}/reversal`, { reason: 'booked twice' }),
      'reverse',
    );
    expect(approval).toMatchObject({
      request: {
        operation: 'reverse_transaction',
        method: 'POST',
        path: `/transactions/${original.transaction_id}/reversal`,
        body: { reason: 'booked twice' },
      },
      summary: `Reverse transaction ${original.transaction_id} of 40.00 USD on account ${account.account_id}`,
      decided_by: null,
      decided_at: null,
    });
    expect(await api.balance(account.account_id)).toBe(before);
    const done = await approve(approval, bob, { reason: 'seen the receipt' });
    expect(done).toMatchObject({
      decided_by: actor('bob'),
      reason: 'seen the receipt',
      outcome: {
        status: 'success',
        data: { amount: 40, direction: 'debit', reverses_transaction_id: original.transaction_id },
      },
    });
    expect(await api.balance(account.account_id)).toBe(before - 40);
    const reversal = done.outcome?.status === 'success' ? String(done.outcome.data['transaction_id']) : '';
    // The executed operation has the id of the approval except for the last byte, which is a routing hint.
    expect(reversal.slice(4, -2)).toBe(approval.approval_id.slice(4, -2));
    expect(await readAudit(reversal, 'reverse_transaction')).toMatchObject({
      actor: actor('alice'),
      details: { approved_by: actor('bob'), approval_id: approval.approval_id, amount: '40.00', currency: 'USD' },
    });
    // They are found by the account, which the request does not name.
    const about = { summary: approval.summary, about: [account.account_id] };
    expect(await readAudit(approval.approval_id, 'request_approval')).toMatchObject({
      actor: actor('alice'),
      outcome: 'success',
      details: about,
    });
    expect(await readAudit(approval.approval_id, 'approve_request')).toMatchObject({
      actor: actor('bob'),
      details: { requested_by: actor('alice'), outcome: 'success', ...about },
    });
    expect((await alice.get(approvalPath(approval))).data()).toEqual(done);
  });

  it('everything is checked at execution: a refusal is the outcome of the approval', async () => {
    // contract: four-eyes-8
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 5);
    const asked = [
      await alice.post(`/transactions/${transaction_id}/reversal`, { reason: 'a' }),
      await alice.post(`/transactions/${transaction_id}/reversal`, { reason: 'b' }),
    ];
    const [first, second] = asked.map((answer) => waiting(answer, 'reverse'));
    if (!first || !second) throw new Error('two approvals');
    await approve(first);
    expect((await approve(second)).outcome).toMatchObject({
      status: 'error',
      code: 'already_reversed',
      details: { reversal_transaction_id: expect.any(String) },
    });
  });

  it('validation, scope, and existence are checked when it is requested', async () => {
    // contract: four-eyes-8
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 5);
    expectError(await alice.post(`/transactions/${transaction_id}/reversal`, {}), 400, 'validation_failed');
    expectError(
      await alice.post(`/transactions/${unknownId('txn')}/reversal`, { reason: 'x' }),
      404,
      'transaction_not_found',
    );
    const teller = api.withToken(staffToken(world.bank, 'tom', { scope: 'transactions:write' }));
    expectError(
      await teller.post(`/transactions/${transaction_id}/reversal`, { reason: 'x' }),
      403,
      'insufficient_scope',
    );
  });
});

describe('an API key', () => {
  it('needs no approval and cannot approve', async () => {
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 5_000);
    expect((await api.post(`/transactions/${transaction_id}/reversal`, { reason: 'x' })).status).toBe(201);
    const approval = await askReversal();
    expectError(await api.post(`${approvalPath(approval)}/approval`), 403, 'insufficient_scope');
    expect((await api.get(approvalPath(approval))).status).toBe(200);
  });
});

describe('backdate', () => {
  it('covers every posting with an earlier value date, small ones and reversals too, and refuses such a batch', async () => {
    // contract: four-eyes-3, four-eyes-4, four-eyes-12
    const effective_date = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const held = await api.newAccount({ initial_deposit: 50 });
    const { hold_id } = (await api.post(`/accounts/${held.account_id}/holds`, { amount: 5 })).data<{
      hold_id: string;
    }>();
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 7, { effective_date });
    const transfer = { from_account_id: held.account_id, to_account_id: account.account_id, amount: 1 };
    const before = await api.balance(account.account_id);
    const clerk = person();
    const asked: Approval[] = [];
    for (const [path, body] of [
      ['/transactions', deposit(1)],
      ['/transfers', transfer],
      [`/holds/${hold_id}/capture`, {}],
      [`/transactions/${transaction_id}/reversal`, { reason: 'twice' }],
    ] as const)
      asked.push(waiting(await clerk.post(path, { ...body, effective_date }), 'backdate'));
    const items = [{ transaction: deposit(1) }, { transaction: deposit(1, { effective_date }) }];
    for (const mode of ['independent', 'atomic'])
      expectError(await clerk.once(newKey(), '/batches', { mode, items }), 400, 'approval_required');
    expect(await api.balance(account.account_id)).toBe(before);
    const scope = 'approvals:write transactions:write transfers:write holds:write transactions:reverse';
    const without = api.withToken(staffToken(world.bank, 'without', { scope }));
    for (const approval of asked) {
      expectError(await without.post(`${approvalPath(approval)}/approval`, {}), 403, 'insufficient_scope');
      expect((await approve(approval)).outcome).toMatchObject({ status: 'success' });
    }
    expect(await api.balance(account.account_id)).toBe(before + 1 + 1 - 7);
    const today = new Date().toISOString().slice(0, 10);
    expect((await clerk.post('/transactions', deposit(1, { effective_date: today }))).status).toBe(201);
  });
});

describe('the rules of a caller', () => {
  it('say of every request whether it needs an approval, with the sums of the day', async () => {
    // contract: four-eyes-22
    const teller = person();
    const [euros, shillings] = [await api.newAccount({ currency: 'EUR' }), await api.newAccount({ currency: 'KES' })];
    const post = (amount: number, fields: object = {}) => teller.post('/transactions', deposit(amount, fields));
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 7);
    const frozen = await api.newAccount();
    await api.setStatus(frozen.account_id, 'Frozen', 'fraud');
    const owner = `/clients/${frozen.client_id}`;
    const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const posted = (amount: string, currency = 'USD') => ({ action: 'post_above' as const, amount, currency });
    const cases: [name: string, asked: Asked, isNeeded: boolean, request: () => Promise<Answer>][] = [
      ['above', posted('1000.01'), true, () => post(1000.01)],
      ['below', posted('999.99'), false, () => post(999.99)],
      ['a sum at the limit', posted('0.01'), false, () => post(0.01)],
      ['a sum above it', posted('0.01'), true, () => post(0.01)],
      ['at the limit', posted('50000', 'KES'), false, () => post(50_000, { account_id: shillings.account_id })],
      ['a currency without limit', posted('0.01', 'EUR'), true, () => post(0.01, { account_id: euros.account_id })],
      [
        'an earlier value date',
        { ...posted('0.01', 'EUR'), effective_date: yesterday },
        true,
        () => post(0.01, { account_id: euros.account_id, effective_date: yesterday }),
      ],
      [
        'a reversal',
        { action: 'reverse' },
        true,
        () => teller.post(`/transactions/${transaction_id}/reversal`, { reason: 'x' }),
      ],
      [
        'unfreezing',
        { action: 'unfreeze' },
        true,
        () => teller.post(`/accounts/${frozen.account_id}/status-transitions`, { status: 'Active' }),
      ],
      ['a phone', { action: 'client_contact' }, true, () => teller.patch(owner, { contact_number: '+254711222333' })],
    ];
    for (const [name, asked, isNeeded, request] of cases) {
      const rules = (await teller.get('/admin/approval-rules')).data<OwnRules>();
      // The dashboard decides from the digits of the response.
      const digits = rules.limits.map((one) => ({
        ...one,
        limit: `${one.limit}`,
        posted: `${one.posted}`,
        left: `${one.left}`,
      }));
      const why = whyApproval({ ...rules, limits: digits }, asked);
      const { status, text } = await request();
      expect([name, why !== undefined, status], text).toEqual([name, isNeeded, isNeeded ? 202 : 201]);
    }
    expect((await api.get('/admin/approval-rules')).data()).toMatchObject({ actions: [], limits: [] });
    expect((await api.post('/transactions', deposit(5_000))).status).toBe(201);
  });
});

describe('post_above', () => {
  it('covers amounts above the limit of the currency, whether stated or not, and no others', async () => {
    // contract: four-eyes-3
    for (const fields of [{}, { currency: 'USD' }])
      expect((await person().post('/transactions', deposit(1000, fields))).status).toBe(201);
    for (const fields of [{}, { currency: 'USD' }]) {
      const before = await api.balance(account.account_id);
      const asked = await alice.post('/transactions', deposit(1000.01, { ...fields, description: 'large' }));
      const approval = waiting(asked, 'post_above');
      expect(approval.request.body).toMatchObject({ amount: 1000.01, description: 'large' });
      expect(await api.balance(account.account_id)).toBe(before);
      const done = await approve(approval);
      expect(done.outcome).toMatchObject({
        status: 'success',
        data: { amount: 1000.01, status: 'Completed', created_at: done.decided_at },
      });
      expect(await api.balance(account.account_id)).toBeCloseTo(before + 1000.01, 2);
    }
    expectError(
      await alice.post('/transactions', { ...deposit(5_000), account_id: unknownId('acc') }),
      404,
      'account_not_found',
    );
    // A currency without a limit needs an approval, whatever the amount.
    const euros = await api.newAccount({ currency: 'EUR' });
    waiting(await alice.post('/transactions', { ...deposit(0.01), account_id: euros.account_id }), 'post_above');
  });

  it('counts what one person posts in a day, in batches too, and the captures of a hold', async () => {
    // contract: four-eyes-4, batches-5
    // asvs: 2.3.2
    const [teller, other] = [person(), person()];
    const answerCode = async (answer: Promise<Answer>) => {
      const { status, body } = await answer;
      return [status, (body as { code?: string }).code];
    };
    const batch = (by: Api, ...amounts: number[]) =>
      answerCode(
        by.once(newKey(), '/batches', {
          mode: 'independent',
          items: amounts.map((amount) => ({ transaction: deposit(amount) })),
        }),
      );
    expect(await batch(teller, 300, 300, 401)).toEqual([400, 'approval_required']);
    expect(await batch(teller, 300, 300)).toEqual([200, undefined]);
    const answers = await Promise.all(Array.from({ length: 6 }, () => teller.post('/transactions', deposit(100))));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 201, 202, 202]);
    expect((await teller.post('/transactions', deposit(0.01))).status).toBe(202);
    expect(await batch(teller, 0.01)).toEqual([400, 'approval_required']);
    const opening = { client_id: account.client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 0.01 };
    expect((await teller.post('/accounts', opening)).status).toBe(202);
    expect((await other.post('/transactions', deposit(1000))).status).toBe(201);

    const held = await api.newAccount({ initial_deposit: 5_000 });
    const hold = (await api.post(`/accounts/${held.account_id}/holds`, { amount: 2_000 })).data<{ hold_id: string }>();
    const take = (amount: number) => person().post(`/holds/${hold.hold_id}/capture`, { amount, final: false });
    expect([(await take(600)).status, (await take(500)).status, (await take(400)).status]).toEqual([201, 202, 201]);
  });

  it('covers withdrawals, transfers, and initial deposits', async () => {
    // contract: four-eyes-3
    const [from, to] = [await api.newAccount({ initial_deposit: 9_000 }), await api.newAccount()];
    const withdrawal = waiting(
      await alice.post('/transactions', { account_id: from.account_id, transaction_type: 'Withdrawal', amount: 2_000 }),
      'post_above',
    );
    const transfer = waiting(
      await alice.post('/transfers', { from_account_id: from.account_id, to_account_id: to.account_id, amount: 3_000 }),
      'post_above',
    );
    const opening = waiting(
      await alice.post('/accounts', {
        client_id: from.client_id,
        account_type: 'Savings',
        currency: 'KES',
        initial_deposit: 50_001,
      }),
      'post_above',
    );
    expect((await api.get(`/accounts?client_id=${from.client_id}`)).list()).toHaveLength(1);
    for (const approval of [withdrawal, transfer, opening])
      expect((await approve(approval)).outcome).toMatchObject({ status: 'success' });
    expect([await api.balance(from.account_id), await api.balance(to.account_id)]).toEqual([4_000, 3_000]);
    const opened = (await api.get(`/accounts?client_id=${from.client_id}&currency=KES`)).list<RestAccount>();
    expect(opened).toMatchObject([{ balance: 50_001, status: 'Active' }]);
    expect(await readAudit(opened[0]?.account_id ?? '', 'open_account')).toMatchObject({
      actor: actor('alice'),
      details: { approved_by: actor('bob') },
    });
    expectError(
      await alice.post('/transfers', {
        from_account_id: from.account_id,
        to_account_id: unknownId('acc'),
        amount: 3_000,
      }),
      404,
      'account_not_found',
    );
    expectError(
      await alice.post('/accounts', {
        client_id: unknownId('cli'),
        account_type: 'Savings',
        currency: 'USD',
        initial_deposit: 1_001,
      }),
      404,
      'client_not_found',
    );
    expect(
      (
        await person().post('/accounts', {
          client_id: from.client_id,
          account_type: 'Savings',
          currency: 'USD',
          initial_deposit: 1_000,
        })
      ).status,
    ).toBe(201);
  });

  it('covers customers, who see the result of their own request and no other approval', async () => {
    const [own, other] = [await api.newAccount({ initial_deposit: 9_000 }), await api.newAccount()];
    const customer = api.withToken(staffToken(world.bank, 'cora', { bank_client_id: own.client_id }));
    const asked = await customer.post('/transfers', {
      from_account_id: own.account_id,
      to_account_id: other.account_id,
      amount: 5_000,
    });
    const approval = asked.data<Approval>();
    expect([asked.status, approval.requested_by]).toEqual([202, actor('cora')]);
    expectError(
      await customer.post('/transfers', {
        from_account_id: other.account_id,
        to_account_id: own.account_id,
        amount: 5_000,
      }),
      404,
      'account_not_found',
    );
    expectError(await customer.get(approvalPath(await askReversal())), 404, 'approval_not_found');
    await approve(approval);
    expect((await customer.get(approvalPath(approval))).data()).toMatchObject({
      status: 'Approved',
      outcome: { data: { amount: 5_000 } },
    });
    expect((await customer.get('/admin/approvals')).list()).toHaveLength(1);
  });
});

describe('unfreeze', () => {
  const move = (by: Api, id: string, status: string) => by.post(`/accounts/${id}/status-transitions`, { status });

  it('covers every transition out of Frozen, and no other', async () => {
    // contract: four-eyes-3
    const { account_id } = await api.newAccount();
    expect((await move(alice, account_id, 'Inactive')).status).toBe(200);
    expect((await move(alice, account_id, 'Active')).status).toBe(200);
    await api.setStatus(account_id, 'Frozen', 'fraud');
    for (const status of ['Active', 'Inactive']) {
      waiting(await move(alice, account_id, status), 'unfreeze');
    }
    expect((await api.get(`/accounts/${account_id}`)).data()).toMatchObject({ status: 'Frozen' });
    const approval = waiting(await move(alice, account_id, 'Active'), 'unfreeze');
    expect((await approve(approval)).outcome).toMatchObject({
      status: 'success',
      data: { account_id, status: 'Active', balance: 0 },
    });
    const [transition] = (await api.get(`/accounts/${account_id}/status-transitions`)).list<{
      actor: string;
      to_status: string;
      transition_id: string;
    }>();
    expect(transition).toMatchObject({ actor: actor('alice'), to_status: 'Active' });
    expect(await readAudit(account_id, 'change_account_status')).toMatchObject({
      details: { approved_by: actor('bob') },
    });
    expectError(await move(alice, unknownId('acc'), 'Active'), 404, 'account_not_found');
    expect(
      (await alice.post(`/accounts/${account_id}/status-transitions`, { status: 'Frozen', reason: 'other' })).status,
    ).toBe(200);
  });
});

describe('create_key', () => {
  const body = (scopes: string[]) => ({ name: 'partner', scopes, environment: 'test' });

  it('covers creating and rotating keys with writing scopes; the secret is shown once, to the requester', async () => {
    // contract: four-eyes-3
    expect((await alice.post('/admin/api-keys', body(['accounts:read', 'audit:read']))).status).toBe(201);
    const approval = waiting(
      await alice.post('/admin/api-keys', body(['accounts:read', 'transfers:write'])),
      'create_key',
    );
    const done = await approve(approval);
    const key = (done.outcome?.status === 'success' ? done.outcome.data : {}) as unknown as RestKey;
    expect(key).toMatchObject({ name: 'partner', created_by: actor('alice'), status: 'active' });
    expect(JSON.stringify(done)).not.toContain('cbk_');
    expect((await bob.get(approvalPath(approval))).data<Shown>().api_key).toBeUndefined();
    await alice.send('HEAD', approvalPath(approval));
    const { api_key: secret = '' } = (await alice.get(approvalPath(approval))).data<Shown>();
    expect(secret).toMatch(/^cbk_test_/);
    expect((await api.withKey(secret).get(`/accounts/${account.account_id}`)).status).toBe(200);
    expect((await alice.get(approvalPath(approval))).data<Shown>().api_key).toBeUndefined();
    expect(await readAudit(key.key_id, 'create_api_key')).toMatchObject({
      actor: actor('alice'),
      details: { approved_by: actor('bob') },
    });

    const rotation = waiting(
      await alice.post(`/admin/api-keys/${key.key_id}/rotation`, { overlap_seconds: 60 }),
      'create_key',
    );
    expect(
      (await api.get('/admin/api-keys')).list<RestKey>().filter(({ rotated_from }) => rotated_from === key.key_id),
    ).toEqual([]);
    expect((await approve(rotation)).outcome).toMatchObject({ status: 'success', data: { rotated_from: key.key_id } });
    const { api_key: rotated = '' } = (await alice.get(approvalPath(rotation))).data<Shown>();
    expect((await api.withKey(rotated).get(`/accounts/${account.account_id}`)).status).toBe(200);
    expectError(await alice.post(`/admin/api-keys/${unknownId('key')}/rotation`), 404, 'api_key_not_found');
  });

  it('does not cover rotating a reading key; scopes that the creator lacks are refused', async () => {
    const reader = await api.key({ scopes: ['accounts:read'] });
    expect((await alice.post(`/admin/api-keys/${reader.key_id}/rotation`)).status).toBe(201);
    const limited = api.withToken(staffToken(world.bank, 'lena', { scope: 'keys:manage' }));
    expectError(await limited.post('/admin/api-keys', body(['transfers:write'])), 403, 'insufficient_scope');
  });

  it('an expiry in the past is refused immediately, but a repeat still gets a key that has expired since', async () => {
    const ask = (expires_at: string, key = newKey()) =>
      alice.once(key, '/admin/api-keys', { ...body(['transfers:write']), expires_at });
    expectError(await ask('2020-01-01T00:00:00Z'), 400, 'validation_failed');
    const [key, expires_at] = [newKey(), new Date(Date.now() + 5_000).toISOString()];
    const { outcome } = await approve(waiting(await ask(expires_at, key), 'create_key'));
    await sleep(Date.parse(expires_at) - Date.now() + 1_000);
    const again = await ask(expires_at, key);
    expect([again.status, again.header('idempotent-replayed')]).toEqual([201, 'true']);
    expect(again.data()).toEqual(outcome?.status === 'success' && outcome.data);
  });
});

describe('client_contact', () => {
  const change = (by: Api, id: string, body: object) => by.patch(`/clients/${id}`, body);

  it('covers names, phone numbers, e-mail, and the USSD phone, and nothing else', async () => {
    // contract: four-eyes-3, four-eyes-5
    // Nobody has more than 20 requests waiting.
    const clerk = person();
    const { client_id } = await api.client();
    const before = (await api.get(`/clients/${client_id}`)).data<Record<string, unknown>>();
    for (const body of [
      { first_name: 'Mallory' },
      { last_name: 'Mallory' },
      { email: 'mallory@example.com' },
      { contact_number: '+254700000009' },
      { ussd_phone_number: '+254700000008' },
      { ussd_phone_number: '+254700000008', ussd_status: 'active' },
      { address: 'elsewhere', email: 'mallory@example.com' },
    ])
      waiting(await change(clerk, client_id, body), 'client_contact');
    expect((await api.get(`/clients/${client_id}`)).data()).toEqual(before);
    for (const body of [
      { address: 'elsewhere' },
      { metadata: { 'kyc.level': '3' } },
      { email: before['email'] },
      { ussd_status: 'inactive' },
    ])
      expect((await change(clerk, client_id, body)).status).toBe(200);
    expect((await change(api, client_id, { contact_number: '+254700000007' })).status).toBe(200);
    expectError(await change(clerk, unknownId('cli'), { email: 'a@example.com' }), 404, 'client_not_found');
  });

  it('is executed once it is approved, in the name of the requester', async () => {
    const { client_id } = await api.client();
    const body = { email: 'new@example.com', contact_number: '+254700000019' };
    const approval = waiting(await change(alice, client_id, body), 'client_contact');
    expect(approval.request.body).toEqual(body);
    expect((await approve(approval)).outcome).toMatchObject({ status: 'success', data: { client_id, ...body } });
    expect((await api.get(`/clients/${client_id}`)).data()).toMatchObject(body);
    expect(await readAudit(client_id, 'update_client')).toMatchObject({
      actor: actor('alice'),
      details: { approved_by: actor('bob') },
    });
  });
});

describe('webhook', () => {
  const target = { url: 'https://receiver.example/bank', event_types: ['corebanking.account.*.v1'] };

  it('covers creating one, and changing its URL, types, and secret; the secret is shown to the requester alone', async () => {
    // contract: four-eyes-3, four-eyes-5
    const asked = await alice.post('/webhooks', target);
    const approval = waiting(asked, 'webhook');
    expect((approval as Approval & { secret?: string }).secret).toMatch(/^whsec_/);
    expect((await api.get('/webhooks')).list()).toEqual([]);
    const { outcome } = await approve(approval);
    const { webhook_id, ...made } = (outcome as unknown as { data: { webhook_id: string } }).data;
    expect(made).toMatchObject({ ...target, status: 'Active', created_by: actor('alice') });
    expect(JSON.stringify((await bob.get(approvalPath(approval))).body)).not.toContain('whsec_');

    const path = `/webhooks/${webhook_id}`;
    for (const body of [{ url: 'https://other.example/' }, { event_types: ['*'] }])
      await reject(waiting(await alice.patch(path, body), 'webhook'));
    for (const body of [{ ...target, description: 'same' }, { status: 'Paused' }, { status: 'Active' }])
      expect((await alice.patch(path, body)).status).toBe(200);
    const rotation = waiting(await alice.post(`${path}/secret-rotation`), 'webhook');
    expect((await api.get(path)).data()).toMatchObject({ ...target, previous_secret_ends_at: null });
    expect((await approve(rotation)).outcome).toMatchObject({ status: 'success', data: { webhook_id } });
    const moved = waiting(await alice.patch(path, { url: 'https://other.example/' }), 'webhook');
    expect((await approve(moved)).outcome).toMatchObject({ data: { url: 'https://other.example/' } });
    expect(await readAudit(webhook_id, 'create_webhook')).toMatchObject({
      actor: actor('alice'),
      details: { approved_by: actor('bob') },
    });
    expect((await api.post('/webhooks', target)).status).toBe(201);
    expectError(await alice.post('/webhooks', { ...target, url: 'https://10.0.0.1/' }), 400, 'validation_failed');
  });
});

describe('deciding', () => {
  it('requires a second person with both scopes, and happens once', async () => {
    // contract: four-eyes-12, four-eyes-15
    // asvs: 2.3.5
    const approval = await askReversal();
    const path = approvalPath(approval);
    expectError(await alice.post(`${path}/approval`), 403, 'own_approval');
    expectError(await alice.post(`${path}/rejection`, { reason: 'x' }), 403, 'own_approval');
    const lacks = (scope: string) => api.withToken(staffToken(world.bank, 'dan', { scope }));
    expectError(await lacks('transactions:reverse').post(`${path}/approval`), 403, 'insufficient_scope');
    expectError(await lacks('approvals:write').post(`${path}/approval`), 403, 'insufficient_scope');
    expectError(
      await lacks('approvals:write accounts:status').post(`${path}/rejection`, { reason: 'x' }),
      403,
      'insufficient_scope',
    );
    // A machine with its own token is not a person.
    expectError(
      await api.withToken(staffToken(world.bank, 'front-end')).post(`${path}/approval`),
      403,
      'insufficient_scope',
    );
    expectError(await bob.post(`${path}/rejection`), 400, 'validation_failed');
    expectError(await bob.post(`/admin/approvals/${unknownId('apr')}/approval`), 404, 'approval_not_found');
    expectError(await bob.post('/admin/approvals/nonsense/approval'), 404, 'approval_not_found');
    expect((await alice.get(path)).data()).toMatchObject({ status: 'Waiting' });
    const rejected = await bob.post(`${path}/rejection`, { reason: 'no receipt' });
    expect([rejected.status, rejected.data<Approval>()]).toMatchObject([
      200,
      { status: 'Rejected', reason: 'no receipt', decided_by: actor('bob') },
    ]);
    for (const decision of ['approval', 'rejection'])
      expectError(await bob.post(`${path}/${decision}`, { reason: 'x' }), 409, 'approval_decided');
    expect((await alice.get(path)).data()).not.toHaveProperty('outcome');
  });

  it('is idempotent under its Idempotency-Key', async () => {
    const approval = await askReversal();
    const key = newKey();
    const first = await bob.once(key, `${approvalPath(approval)}/approval`);
    const again = await bob.once(key, `${approvalPath(approval)}/approval`);
    expect([first.status, again.status, again.header('idempotent-replayed'), again.body]).toEqual([
      200,
      200,
      'true',
      first.body,
    ]);
  });
});

describe('reading', () => {
  it('shows approvers what they can decide, and requesters their own', async () => {
    // contract: four-eyes-18
    const approval = await askReversal();
    const path = approvalPath(approval);
    const status = async (by: Api) => (await by.get(path)).status;
    const as = (name: string, scope: string) => api.withToken(staffToken(world.bank, name, { scope }));
    expect(await status(as('alice', 'transactions:read'))).toBe(200);
    expect([await status(as('eve', 'transactions:reverse')), await status(as('eve', 'approvals:write'))]).toEqual([
      403, 403,
    ]);
    const ids = async (by: Api) =>
      (await by.all<Approval>('/admin/approvals?status=Waiting')).map(({ approval_id }) => approval_id);
    expect(await ids(as('alice', 'transactions:read'))).toContain(approval.approval_id);
    expect(await ids(as('eve', 'approvals:write transactions:reverse'))).toContain(approval.approval_id);
    expect(await ids(as('eve', 'approvals:write accounts:status'))).not.toContain(approval.approval_id);
    expect(await ids(as('eve', 'transactions:reverse'))).toEqual([]);
    const auditor = as('eve', 'audit:read clients:read');
    expect([await status(auditor), await status(as('eve', 'audit:read'))]).toEqual([200, 403]);
    expect(await ids(auditor)).toContain(approval.approval_id);
    expect(await ids(as('eve', 'audit:read'))).toEqual([]);
    expect((await auditor.get('/admin/approvals?requested_by=others')).list()).toEqual([]);
    expectError(await auditor.post(`${path}/approval`), 403, 'insufficient_scope');
    expect(
      (await bob.get('/admin/approvals?status=Approved&action=unfreeze'))
        .list<Approval>()
        .every(({ action, status: is }) => action === 'unfreeze' && is === 'Approved'),
    ).toBe(true);
    expectError(await bob.get('/admin/approvals?status=Done'), 400, 'validation_failed');
  });
});

describe('a repeat under the same Idempotency-Key', () => {
  it('returns the approval while it is Waiting, then the outcome: a success with its Location', async () => {
    // contract: four-eyes-11
    const key = newKey();
    const ask = () => alice.once(key, '/transactions', deposit(2_000));
    const approval = waiting(await ask(), 'post_above');
    const again = await ask();
    expect([again.status, again.header('idempotent-replayed'), again.data()]).toEqual([202, 'true', approval]);
    expectError(await alice.once(key, '/transactions', deposit(2_001)), 422, 'idempotency_key_reused');
    await approve(approval);
    const outcome = await ask();
    const { transaction_id } = outcome.body as { transaction_id: string };
    expect([outcome.status, outcome.header('idempotent-replayed'), outcome.header('location')]).toEqual([
      201,
      'true',
      `/transactions/${transaction_id}`,
    ]);
    expect(outcome.body).toMatchObject({ amount: 2_000, status: 'Completed', created_at: expect.stringMatching(/Z$/) });
    expect((await api.get(`/transactions?idempotency_key=${key}`)).list()).toMatchObject([{ transaction_id }]);
  });

  it('returns a refusal as the outcome, and a rejection as the approval', async () => {
    // contract: four-eyes-11
    const [refusedKey, rejectedKey] = [newKey(), newKey()];
    const withdraw = (key: string) =>
      alice.once(key, '/transactions', {
        account_id: account.account_id,
        transaction_type: 'Withdrawal',
        amount: 900_000,
      });
    await approve(waiting(await withdraw(refusedKey), 'post_above'));
    const refused = await withdraw(refusedKey);
    expect(refused.header('idempotent-replayed')).toBe('true');
    expectError(refused, 400, 'insufficient_funds');
    const { approval_id } = waiting(await withdraw(rejectedKey), 'post_above');
    await bob.post(`/admin/approvals/${approval_id}/rejection`, { reason: 'no' });
    const rejected = await withdraw(rejectedKey);
    expect([rejected.status, rejected.data()]).toMatchObject([202, { approval_id, status: 'Rejected' }]);
  });

  it('returns the outcome of an unfreeze although the account is no longer Frozen', async () => {
    const { account_id } = await api.newAccount();
    await api.setStatus(account_id, 'Frozen', 'other');
    const key = newKey();
    const ask = () => alice.once(key, `/accounts/${account_id}/status-transitions`, { status: 'Active' });
    await approve(waiting(await ask(), 'unfreeze'));
    const outcome = await ask();
    expect([outcome.status, outcome.header('idempotent-replayed'), outcome.data()]).toMatchObject([
      200,
      'true',
      { account_id, status: 'Active' },
    ]);
    expect((await api.get(`/accounts/${account_id}/status-transitions`)).list()).toHaveLength(2);
  });

  it('returns the stored outcome of a request that needed no approval when it was executed', async () => {
    const { account_id } = await api.newAccount({ status: 'Inactive' });
    const key = newKey();
    const activate = (by = alice) => by.once(key, `/accounts/${account_id}/status-transitions`, { status: 'Active' });
    const first = await activate();
    expect(first.status).toBe(200);
    await api.setStatus(account_id, 'Frozen', 'legal');
    const again = await activate();
    expect([again.status, again.header('idempotent-replayed'), again.text]).toEqual([200, 'true', first.text]);
    expectError(
      await alice.once(key, `/accounts/${account_id}/status-transitions`, { status: 'Inactive' }),
      422,
      'idempotency_key_reused',
    );
    expect((await alice.get(`/admin/approvals?status=Waiting`)).text).not.toContain(account_id);
    expect((await api.get(`/accounts/${account_id}`)).data()).toMatchObject({ status: 'Frozen' });
  });
});

it('requests and decisions are published to the topic approvals, without their content', async () => {
  const approval = await askReversal();
  await approve(approval);
  const told = await eventually(async () => {
    const own = (await readTopic(world.bank, 'approvals')).filter(({ key }) => key === approval.approval_id);
    return own.length === 2 && own;
  });
  const { approval_id, requested_at, expires_at } = approval;
  const common = { approval_id, action: 'reverse', operation: 'reverse_transaction', requested_by: actor('alice') };
  const [requested, decided] = told.map(({ headers }) => ({
    event_id: headers['ce_id'],
    event_type: headers['ce_type'],
  }));
  expect(told.map(({ value }) => JSON.parse(String(value)) as unknown)).toEqual([
    { ...common, ...requested, requested_at, expires_at },
    { ...common, ...decided, status: 'Approved', decided_by: actor('bob'), decided_at: expect.any(String) },
  ]);
  expect([requested?.event_type, decided?.event_type]).toEqual([
    'corebanking.approval.requested.v1',
    'corebanking.approval.decided.v1',
  ]);
});

describe('close_day', () => {
  it('shows the closing to the approver, and in the approval', async () => {
    // contract: four-eyes-3, four-eyes-12
    const date = new Date(Date.now() - 80 * 86_400_000).toISOString().slice(0, 10);
    const approval = waiting(await alice.once(newKey(), '/admin/day-closings', { date }), 'close_day');
    expectError(await api.get(`/admin/day-closings/${date}`), 404, 'day_not_found');
    const approved = await approve(approval);
    const closing = (await api.get(`/admin/day-closings/${date}`)).data();
    expect(closing).toMatchObject({ date, hash: expect.any(String) });
    expect(approved.outcome).toMatchObject({ status: 'success', data: closing });
    expect((await alice.get(approvalPath(approval))).data<Approval>().outcome).toMatchObject({ data: closing });
  });
});
