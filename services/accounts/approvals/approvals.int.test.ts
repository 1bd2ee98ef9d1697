import { randomBytes } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { type Approval, type ApprovalRequest, approvalSchema } from '#libs/contracts/approvals.ts';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { bucketForKey } from '#libs/contracts/ids.ts';
import { type MessageData, messageType } from '#libs/contracts/messages.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import { signedForTest } from '#libs/service/test/keys.ts';
import { sweep } from '../commands/sweeper.ts';
import {
  ledgerReply,
  messageFor,
  newAccount,
  newClient,
  newId,
  readOutboxByKey,
  received,
  useAccounts,
} from '../test/harness.ts';
import { expireApprovals } from './expire.ts';

const bank = useAccounts();

const alice = 'jwt:https://issuer.example|alice';
const bob = 'jwt:https://issuer.example|bob';
const carol = 'jwt:https://issuer.example|carol';
const decider = ['approvals:write', 'transactions:reverse', 'keys:manage'];

function requestReversal(original = newId('transaction')): ApprovalRequest {
  const transaction_id = newId('transaction');
  const data = { transaction_id, reverses_transaction_id: original, reason: 'booked twice' };
  return {
    approval_id: newId('approval'),
    action: 'reverse',
    summary: 'Reverse a Deposit',
    scopes: ['transactions:reverse'],
    request: {
      operation: 'reverse_transaction',
      method: 'POST',
      path: `/transactions/${original}/reversal`,
      body: { reason: 'booked twice' },
    },
    command: { name: 'reverse_transaction', id: transaction_id, key: original, bucket: 7, data },
  };
}

async function ask(request: ApprovalRequest, overrides: Partial<MessageContext> = {}): Promise<ReplyBody | undefined> {
  return bank.send('request_approval', request, {
    message_id: request.approval_id,
    subject: request.approval_id,
    actor: alice,
    staff: 'true',
    ...overrides,
  });
}

async function asked(request = requestReversal(), overrides: Partial<MessageContext> = {}): Promise<ApprovalRequest> {
  const reply = await ask(request, overrides);
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
  return request;
}

const verdict = (approval_id: string, rest: Partial<MessageData<'approve_request'>> = {}) => ({
  approval_id,
  reason: null,
  scopes: decider,
  ...rest,
});
const approving = (approval_id: string, actor = bob, overrides: Partial<MessageContext> = {}) =>
  messageFor('approve_request', verdict(approval_id), { subject: approval_id, actor, ...overrides });

async function approve(approval_id: string, actor = bob, rest = {}): Promise<ReplyBody | undefined> {
  return bank.send('approve_request', verdict(approval_id, rest), { subject: approval_id, actor });
}

async function shown(
  approval_id: string,
  actor = alice,
  scopes: string[] = [],
  rest: Partial<MessageContext> = { staff: 'true' },
): Promise<Approval> {
  const reply = await bank.send('get_approval', { approval_id, scopes }, { actor, ...rest });
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
  return approvalSchema.parse((reply.data as { approval: Approval }).approval);
}

const replyCode = (reply: ReplyBody | undefined) => (reply?.ok === false ? reply.refusal.code : 'ok');
const reversed = (transaction_id: string): ReplyBody => ({
  ok: true,
  data: { transaction_id, amount: '25.00', status: 'Completed' },
});
/** Returns all messages that sent the command. */
const sent = async ({ command }: ApprovalRequest) =>
  (await readOutboxByKey(bank.pool, command.key)).filter(({ type }) => type === messageType(command.name));
const readAudits = async (resource_id: string) =>
  (
    await bank.owner.query<AuditRecord>('select * from audit where resource_id = $1 order by created_at, action', [
      resource_id,
    ])
  ).rows;
const readDecisions = async (approval_id: string) =>
  (await readOutboxByKey(bank.pool, approval_id)).filter(({ topic }) => topic === 'approvals');
async function letStepsAge(): Promise<void> {
  await bank.owner.query("update saga_steps set next_attempt_at = now() - interval '1 second'");
  await bank.owner.query('update outbox_batches set published_at = now()');
}

describe('requesting', () => {
  test('stores the request, with its event and audit record, and executes nothing', async () => {
    // contract: four-eyes-20
    const request = requestReversal();
    const reply = await ask(request, { time: '2026-01-02T03:04:05.678Z' });
    const { approval_id, action, summary } = request;
    const approval = {
      approval_id,
      action,
      summary,
      request: request.request,
      requested_by: alice,
      requested_at: '2026-01-02T03:04:05.678Z',
      expires_at: '2026-01-03T03:04:05.678Z',
      decided_by: null,
      decided_at: null,
      reason: null,
    };
    expect(reply).toEqual({ ok: true, data: { ...approval, status: 'Expired' } });
    expect(await sent(request)).toEqual([]);
    const fresh = await asked();
    expect(await shown(fresh.approval_id)).toMatchObject({ status: 'Waiting', requested_by: alice });
    expect((await readDecisions(fresh.approval_id)).map(({ type, payload }) => [type, payload])).toEqual([
      [
        'corebanking.approval.requested.v1',
        expect.objectContaining({
          approval_id: fresh.approval_id,
          action: 'reverse',
          operation: 'reverse_transaction',
          requested_by: alice,
        }),
      ],
    ]);
    expect(await readAudits(fresh.approval_id)).toMatchObject([
      {
        action: 'request_approval',
        actor: alice,
        outcome: 'success',
        details: { action: 'reverse', operation: 'reverse_transaction' },
      },
    ]);
  });

  test('a repeat is recognized; another request with the same id is refused; an invalid one is not stored', async () => {
    // contract: four-eyes-11
    const request = await asked(requestReversal(), { fingerprint: 'a' });
    expect(await ask(request, { fingerprint: 'a' })).toMatchObject({ ok: true, replayed: true });
    expect(replyCode(await ask(request, { fingerprint: 'b' }))).toBe('idempotency_key_reused');
    const broken = { ...requestReversal(), command: { ...requestReversal().command, data: { reason: 1 } } };
    await ask(broken).catch(() => undefined);
    await expect(shown(broken.approval_id)).rejects.toThrow('dead-lettered');
  });
});

describe('approving', () => {
  test('sends the command in the requester’s name, stores its outcome in the approval, and returns it to the approver', async () => {
    // contract: four-eyes-17
    const fingerprint = 'f'.repeat(32);
    const request = await asked(requestReversal(), { address: '192.0.2.7', idempotency_key: 'key-1', fingerprint });
    const { approval_id, command } = request;
    const message = approving(approval_id);
    await bank.handleCommands([message]);
    const correlation = message.headers['correlation-id'] ?? '';
    expect(bank.repliesTo(correlation)).toEqual([]);
    const [step] = await sent(request);
    const { decided_at } = await shown(approval_id);
    expect(step).toMatchObject({
      id: command.id,
      topic: 'ledger.commands',
      partition: commandPartition(7),
      payload: command.data,
      time: decided_at,
      headers: {
        actor: alice,
        'approved-by': bob,
        staff: 'true',
        'caller-address': '192.0.2.7',
        'idempotency-key': 'key-1',
        fingerprint,
        'correlation-id': approval_id,
        'approval-id': approval_id,
      },
    });
    expect(step?.headers).not.toHaveProperty('deadline');
    await bank.handleCommands([ledgerReply(approval_id, command.key, reversed(command.id))]);
    const [reply] = bank.repliesTo(correlation);
    const approval = await shown(approval_id);
    expect(reply).toEqual({ ok: true, data: approval });
    expect(approval).toMatchObject({
      status: 'Approved',
      decided_by: bob,
      outcome: { status: 'success', data: { transaction_id: command.id } },
    });
    expect((await readDecisions(approval_id)).map(({ payload }) => payload['status'])).toEqual([undefined, 'Approved']);
    expect(await readAudits(approval_id)).toMatchObject(
      [
        {
          action: 'approve_request',
          actor: bob,
          outcome: 'success',
          details: { requested_by: alice, outcome: 'success', command_id: command.id },
        },
        { action: 'request_approval', actor: alice },
      ].toReversed(),
    );
  });

  test('a refusal of the command is the outcome', async () => {
    const { approval_id, command } = await asked();
    await bank.handleCommands([approving(approval_id)]);
    const refusal = {
      code: 'already_reversed' as const,
      message: 'Already Reversed: x',
      details: { reversal_transaction_id: 'txn_1' },
    };
    await bank.handleCommands([ledgerReply(approval_id, command.key, { ok: false, refusal })]);
    expect((await shown(approval_id)).outcome).toEqual({ status: 'error', ...refusal });
  });

  test('requires another person with the scopes of the action, an existing request, and works once', async () => {
    // contract: four-eyes-13
    const { approval_id } = await asked();
    expect(replyCode(await approve(approval_id, alice))).toBe('own_approval');
    expect(replyCode(await approve(approval_id, bob, { scopes: ['approvals:write', 'accounts:status'] }))).toBe(
      'insufficient_scope',
    );
    expect(replyCode(await approve(newId('approval')))).toBe('approval_not_found');
    expect(replyCode(await approve('apr_x'))).toBe('approval_not_found');
    expect(await shown(approval_id)).toMatchObject({ status: 'Waiting', decided_by: null });
    await approve(approval_id);
    expect(replyCode(await approve(approval_id, carol))).toBe('approval_decided');
    expect(
      replyCode(await bank.send('reject_request', { ...verdict(approval_id), reason: 'late' }, { actor: carol })),
    ).toBe('approval_decided');
    expect(replyCode(await approve(approval_id, alice))).toBe('own_approval');
  });

  test('is refused if the approver could hold the requesting key, or created the approving one', async () => {
    // contract: four-eyes-13, four-eyes-14
    const keyBy = async (actor: string): Promise<string> => {
      const key_id = newId('key');
      const data = {
        key_id,
        name: 'of an officer',
        scopes: [...scopes],
        environment: 'live' as const,
        client_id: null,
        expires_at: null,
        secret_hash: randomBytes(32).toString('hex'),
      };
      const reply = await bank.send('create_api_key', data, { message_id: key_id, actor });
      if (!reply?.ok) throw new Error(JSON.stringify(reply));
      return `key:${key_id}`;
    };
    const ofAlice = await keyBy(alice);
    const [below, beside, ofBob] = [await keyBy(ofAlice), await keyBy(alice), await keyBy(bob)];
    const pairs: [string, string][] = [
      [alice, ofAlice],
      [alice, below],
      [ofAlice, alice],
      [below, ofAlice],
      [below, beside],
    ];
    for (const [asker, approver] of pairs) {
      const { approval_id } = await asked(requestReversal(), { actor: asker });
      expect(replyCode(await approve(approval_id, approver)), `${asker} ${approver}`).toBe('own_approval');
    }
    // The first API keys of two installations belong to different programs, and so do the keys that one of them creates.
    const [first, second] = [await keyBy('system:bootstrap'), await keyBy('system:bootstrap')];
    const [maker, other] = [await keyBy(first), await keyBy(first)];
    const { approval_id: ofOneMaker } = await asked(requestReversal(), { actor: await keyBy(maker) });
    expect(replyCode(await approve(ofOneMaker, await keyBy(maker)))).toBe('own_approval');
    for (const [asker, approver] of [
      [ofAlice, ofBob],
      [ofAlice, bob],
      [first, second],
      [maker, other],
      [await keyBy(maker), await keyBy(other)],
    ] as [string, string][]) {
      const { approval_id } = await asked(requestReversal(), { actor: asker });
      await bank.handleCommands([approving(approval_id, approver)]);
      expect((await shown(approval_id, asker)).status, `${asker} ${approver}`).toBe('Approved');
    }
  });

  test('by several people concurrently succeeds once, and one command is sent', async () => {
    // contract: four-eyes-15
    const requests = await Promise.all(Array.from({ length: 10 }, () => asked()));
    const processes = [bank, bank.process(), bank.process()];
    for (const request of requests) {
      const messages = Array.from({ length: 6 }, (_, i) => approving(request.approval_id, `${bob}${i}`));
      await Promise.all(messages.map((message, i) => processes[i % processes.length]?.handleCommands([message])));
      const codes = messages.map(
        ({ headers }) =>
          processes.flatMap((one) => one.repliesTo(headers['correlation-id'] ?? '')).map(replyCode)[0] ?? 'begun',
      );
      expect(codes.toSorted()).toEqual([...Array<string>(5).fill('approval_decided'), 'begun']);
      expect(await sent(request)).toHaveLength(1);
    }
  });

  test('with a concurrent rejection, one of both succeeds', async () => {
    // contract: four-eyes-15
    for (let round = 0; round < 5; round++) {
      const request = await asked();
      const rejecting = messageFor(
        'reject_request',
        { ...verdict(request.approval_id), reason: 'no' },
        { actor: carol, subject: request.approval_id },
      );
      await Promise.all([
        bank.handleCommands([approving(request.approval_id)]),
        bank.process().handleCommands([rejecting]),
      ]);
      const { status } = await shown(request.approval_id);
      expect((await sent(request)).length).toBe(status === 'Approved' ? 1 : 0);
      expect(await readDecisions(request.approval_id)).toHaveLength(2);
    }
  });

  test('survives a crash before the reply: the sweeper sends the same command until there is a reply, and the outcome is stored once', async () => {
    // contract: four-eyes-17
    const request = await asked();
    const { approval_id, command } = request;
    const message = approving(approval_id);
    await bank.handleCommands([message]);
    // Another process continues. The approver's message is delivered again, because its offset was not committed.
    const heir = bank.process();
    await heir.handleCommands([message]);
    for (let again = 0; again < 2; again++) {
      await letStepsAge();
      expect(await sweep({ pool: heir.deps.pool, prefix: 'p.' })).toBeGreaterThan(0);
    }
    const steps = await sent(request);
    expect(steps).toHaveLength(3);
    expect(
      new Set(steps.map(({ id, time, headers, payload }) => JSON.stringify([id, time, headers, payload]))),
    ).toHaveLength(1);
    // A fault decides nothing.
    await heir.handleCommands([
      ledgerReply(approval_id, command.key, { ok: false, refusal: { code: 'internal_error', message: 'x' } }),
    ]);
    expect((await shown(approval_id)).outcome).toBeUndefined();
    await Promise.all(
      [heir, bank].map((one) => one.handleCommands([ledgerReply(approval_id, command.key, reversed(command.id))])),
    );
    expect((await shown(approval_id)).outcome).toMatchObject({ status: 'success' });
    expect([bank, heir].flatMap((one) => one.repliesTo(message.headers['correlation-id'] ?? ''))).toHaveLength(1);
    await letStepsAge();
    await sweep({ pool: bank.pool, prefix: 'p.' });
    expect(await sent(request)).toHaveLength(3);
  });
});

describe('not approving', () => {
  test('a rejection has a reason and sends nothing', async () => {
    const request = await asked();
    const reply = await bank.send(
      'reject_request',
      { ...verdict(request.approval_id), reason: 'no receipt' },
      { actor: bob, subject: request.approval_id },
    );
    expect(reply).toMatchObject({ ok: true, data: { status: 'Rejected', reason: 'no receipt', decided_by: bob } });
    expect(await sent(request)).toEqual([]);
    expect((await readAudits(request.approval_id)).map(({ action }) => action)).toEqual([
      'request_approval',
      'reject_request',
    ]);
    expect(
      replyCode(
        await bank.send('reject_request', { ...verdict(request.approval_id), reason: 'mine' }, { actor: alice }),
      ),
    ).toBe('own_approval');
  });

  test('an approval expires after 24 hours, by the time of the decision; a sweeper records it once', async () => {
    // contract: four-eyes-9
    const request = await asked(requestReversal(), { time: new Date(Date.now() - 24 * 3_600_000 - 1).toISOString() });
    const { approval_id } = request;
    expect((await shown(approval_id)).status).toBe('Expired');
    const late = await approve(approval_id);
    expect(late).toMatchObject({ ok: false, refusal: { code: 'approval_decided', details: { status: 'Expired' } } });
    expect(await sent(request)).toEqual([]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 7_200_000 });
    try {
      await expect(expireApprovals(bank.pool)).rejects.toThrow(/clock is more than 5 s behind/);
    } finally {
      vi.useRealTimers();
    }
    expect(
      (await Promise.all([expireApprovals(bank.pool), expireApprovals(bank.pool)])).reduce((sum, count) => sum + count),
    ).toBeGreaterThan(0);
    expect(await expireApprovals(bank.pool)).toBe(0);
    expect((await readDecisions(approval_id)).map(({ payload }) => payload['status'])).toEqual([undefined, 'Expired']);
    expect((await readAudits(approval_id)).filter(({ action }) => action === 'expire_approval')).toMatchObject([
      { actor: 'system', outcome: 'success' },
    ]);
  });

  test('an approval that is about to expire can still be approved', async () => {
    const { approval_id } = await asked(requestReversal(), {
      time: new Date(Date.now() - 24 * 3_600_000 + 60_000).toISOString(),
    });
    await approve(approval_id);
    expect((await shown(approval_id)).status).toBe('Approved');
  });
});

test('the database rejects decisions on one’s own request, and changes of the request', async () => {
  const { approval_id } = await asked();
  const decide = bank.pool.query(
    "update approvals set status = 'Approved', decided_by = requested_by, decided_at = now() where approval_id = $1",
    [approval_id],
  );
  await expect(decide).rejects.toThrow('approvals_four_eyes');
  await expect(
    bank.pool.query("update approvals set command = '{}' where approval_id = $1", [approval_id]),
  ).rejects.toThrow('permission denied');
  await expect(bank.pool.query('delete from approvals')).rejects.toThrow('permission denied');
});

describe('reading', () => {
  async function list(
    actor: string,
    scopes: string[],
    filters: Partial<MessageData<'list_approvals'>> = {},
  ): Promise<string[]> {
    const reply = await bank.send('list_approvals', { scopes, limit: 500, order: 'desc', ...filters }, { actor });
    if (!reply?.ok) throw new Error(JSON.stringify(reply));
    return (reply.data as { items: Approval[] }).items.map(({ approval_id }) => approval_id);
  }

  test('an approval is visible to approvers and to the requester', async () => {
    const dora = `${alice}-dora`;
    const { approval_id } = await asked(requestReversal(), { actor: dora });
    expect(await list(dora, [])).toEqual([approval_id]);
    expect(await list(bob, decider)).toContain(approval_id);
    expect(await list(bob, ['approvals:write', 'accounts:status'])).not.toContain(approval_id);
    expect(await list(bob, ['transactions:reverse'])).toEqual([]);
    await expect(shown(approval_id, bob, ['approvals:write'])).rejects.toThrow('insufficient_scope');
    await expect(shown(approval_id, bob, ['transactions:reverse'])).rejects.toThrow('insufficient_scope');
    expect((await shown(approval_id, bob, decider)).approval_id).toBe(approval_id);
    const bound = await bank.send(
      'get_approval',
      { approval_id, scopes: decider },
      { actor: bob, bound_client_id: newId('client') },
    );
    expect(replyCode(bound)).toBe('approval_not_found');
  });

  test('all approvals are visible to auditors, who are people: a program sees what it may decide', async () => {
    // contract: four-eyes-18
    const { approval_id } = await asked();
    const auditor = ['audit:read', 'clients:read'];
    expect((await shown(approval_id, carol, auditor)).approval_id).toBe(approval_id);
    const program = `key:${newId('key')}`;
    expect(await list(program, auditor)).toEqual([]);
    await expect(shown(approval_id, program, auditor, {})).rejects.toThrow('insufficient_scope');
  });

  test('a bound requester does not learn who decided, and why', async () => {
    const bound = { actor: `${alice}-customer`, bound_client_id: newId('client') };
    const { approval_id } = await asked(requestReversal(), bound);
    const rejection = { ...verdict(approval_id), reason: 'looks like fraud' };
    expect(replyCode(await bank.send('reject_request', rejection, { actor: bob, subject: approval_id }))).toBe('ok');
    const one = await bank.send('get_approval', { approval_id, scopes: [] }, bound);
    const all = await bank.send('list_approvals', { scopes: [], limit: 500, order: 'desc' }, bound);
    const hidden = { approval_id, status: 'Rejected', decided_by: null, reason: null };
    expect(one).toMatchObject({ ok: true, data: { approval: hidden } });
    expect(all).toMatchObject({ ok: true, data: { items: [hidden] } });
    expect(await shown(approval_id, bob, decider)).toMatchObject({ decided_by: bob, reason: 'looks like fraud' });
  });

  test('by requester shows one’s own approvals, or those of others that one can decide', async () => {
    const gina = `${alice}-gina`;
    const own = (await asked(requestReversal(), { actor: gina })).approval_id;
    const other = (await asked(requestReversal(), { actor: alice })).approval_id;
    expect(await list(gina, decider, { requested_by: 'me' })).toEqual([own]);
    const others = await list(gina, decider, { requested_by: 'others' });
    expect([others.includes(own), others.includes(other)]).toEqual([false, true]);
    expect(await list(gina, [], { requested_by: 'others' })).toEqual([]);
  });

  test('by status shows expired ones as Expired, whether or not that was recorded', async () => {
    const erin = `${alice}-erin`;
    const old = await asked(requestReversal(), { actor: erin, time: '2026-01-02T03:04:05.678Z' });
    const waiting = await asked(requestReversal(), { actor: erin });
    const rejected = await asked(requestReversal(), { actor: erin });
    await bank.send('reject_request', { ...verdict(rejected.approval_id), reason: 'no' }, { actor: bob });
    const of = (status: Approval['status']) => list(erin, [], { status });
    const expected = [[waiting], [], [rejected], [old]].map((requests) =>
      requests.map(({ approval_id }) => approval_id),
    );
    expect(await Promise.all((['Waiting', 'Approved', 'Rejected', 'Expired'] as const).map(of))).toEqual(expected);
    await expireApprovals(bank.pool);
    expect(await Promise.all((['Waiting', 'Approved', 'Rejected', 'Expired'] as const).map(of))).toEqual(expected);
    expect(await list(erin, [], { action: 'unfreeze' })).toEqual([]);
  });
});

describe('an approved key', () => {
  const hash = () => randomBytes(32).toString('hex');

  async function approvedKey(): Promise<{ approval_id: string; key_id: string }> {
    const key_id = newId('key');
    const data = {
      key_id,
      name: 'partner',
      scopes: ['transfers:write'],
      environment: 'live',
      client_id: null,
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
      secret_hash: hash(),
    };
    const request: ApprovalRequest = {
      ...requestReversal(),
      action: 'create_key',
      scopes: ['keys:manage'],
      command: { name: 'create_api_key', id: key_id, key: key_id, data },
      request: { operation: 'create_api_key', method: 'POST', path: '/admin/api-keys', body: {} },
    };
    const { approval_id } = await asked(request);
    await bank.handleCommands([approving(approval_id)]);
    const [step] = await sent(request);
    if (!step) throw new Error('nothing was sent');
    // The step arrives at accounts like any other command, and its reply ends the saga.
    const command = signedForTest(
      received(
        'p.accounts.commands',
        key_id,
        { ...step.headers, ce_id: step.id, ce_type: step.type, ce_time: step.time, ce_subject: key_id },
        JSON.stringify(step.payload),
      ),
    );
    await bank.handleCommands([command]);
    const [reply] = bank.repliesTo(approval_id);
    if (!reply) throw new Error('no reply');
    await bank.handleCommands([ledgerReply(approval_id, approval_id, reply)]);
    return { approval_id, key_id };
  }
  const claim = (approval_id: string, key_id: string, secret_hash: string, actor = alice) =>
    bank.send('claim_approved_key', { approval_id, key_id, secret_hash }, { actor });
  const hasUnread = async (approval_id: string, actor: string) =>
    (
      (await bank.send('get_approval', { approval_id, scopes: decider }, { actor })) as {
        data: { has_unread_key: boolean };
      }
    ).data.has_unread_key;

  test('belongs to the requester, names the approver, and its secret is shown once', async () => {
    // contract: four-eyes-19
    const { approval_id, key_id } = await approvedKey();
    expect((await shown(approval_id)).outcome).toMatchObject({
      status: 'success',
      data: { key_id, created_by: alice, status: 'active' },
    });
    expect(
      (await readAudits(key_id)).map(({ action, actor, details }) => [action, actor, details['approved_by']]),
    ).toEqual([['create_api_key', alice, bob]]);
    expect([await hasUnread(approval_id, alice), await hasUnread(approval_id, bob)]).toEqual([true, false]);
    const secret = hash();
    expect(replyCode(await claim(approval_id, key_id, hash(), bob))).toBe('approval_not_found');
    expect(replyCode(await claim(approval_id, newId('key'), hash()))).toBe('approval_decided');
    expect(replyCode(await claim(approval_id, key_id, secret))).toBe('ok');
    expect(replyCode(await claim(approval_id, key_id, hash()))).toBe('approval_decided');
    expect(await hasUnread(approval_id, alice)).toBe(false);
    const states = (await readOutboxByKey(bank.pool, key_id))
      .filter(({ topic }) => topic === 'api-keys')
      .map(({ payload }) => [payload['version'], payload['secret_hash'] === secret]);
    expect(states).toEqual([
      [1, false],
      [2, true],
    ]);
  });

  test('is not shown if it was revoked before', async () => {
    const { approval_id, key_id } = await approvedKey();
    await bank.send('revoke_api_key', { key_id });
    expect(replyCode(await claim(approval_id, key_id, hash()))).toBe('invalid_status_transition');
  });
});

test('a change of status goes to the ledger with the rules under which it needs an approval', async () => {
  const account_id = await newAccount(bank, await newClient(bank));
  const transition_id = newId('transition');
  const data = { transition_id, account_id, status: 'Active' as const, reason: null, note: null };
  const four_eyes = JSON.stringify({ actions: ['unfreeze'], limits: {}, day: '2026-01-02' });
  await bank.send('change_account_status', data, { message_id: transition_id, four_eyes });
  const step = (await readOutboxByKey(bank.pool, account_id)).find(({ id }) => id === transition_id);
  expect([step?.headers['four-eyes'], step?.partition]).toEqual([
    four_eyes,
    commandPartition(bucketForKey(account_id)),
  ]);
});

describe('without an approval', () => {
  const four_eyes = JSON.stringify({ actions: ['create_key', 'erase'], limits: {}, day: '2026-01-02' });
  const newKey = (granted: string[]): MessageData<'create_api_key'> => ({
    key_id: newId('key'),
    name: 'partner',
    scopes: granted as never,
    environment: 'test',
    client_id: null,
    expires_at: null,
    not_after: '2099-01-01T00:00:00.000Z',
    maker_key_id: null,
    secret_hash: randomBytes(32).toString('hex'),
  });
  const create = (data: MessageData<'create_api_key'>) =>
    bank.send('create_api_key', data, { message_id: data.key_id, actor: alice, four_eyes });

  test('no key that may write is created or rotated, and no client erased; that is kept', async () => {
    // contract: four-eyes-3
    const key = newKey(['clients:read', 'clients:write']);
    for (const _ of ['first', 'repeat']) expect(replyCode(await create(key))).toBe('approval_required');
    expect(replyCode(await create(newKey(['clients:read'])))).toBe('ok');
    const old = newKey(['clients:write']);
    await bank.send('create_api_key', old, { message_id: old.key_id, actor: alice });
    const rotation = {
      key_id: newId('key'),
      rotates_key_id: old.key_id,
      overlap_seconds: 0,
      maker_scopes: [...scopes],
      maker_key_id: null,
      secret_hash: randomBytes(32).toString('hex'),
    };
    expect(replyCode(await bank.send('rotate_api_key', rotation, { actor: alice, four_eyes }))).toBe(
      'approval_required',
    );
    const client_id = await newClient(bank);
    expect(replyCode(await bank.send('erase_client', { client_id }, { actor: alice, four_eyes }))).toBe(
      'approval_required',
    );
    const { rows } = await bank.pool.query('select from api_keys where key_id = any($1)', [
      [key.key_id, rotation.key_id],
    ]);
    expect(rows).toEqual([]);
  });

  test('at most 20 requests of a caller wait; concurrent ones cannot exceed that', async () => {
    // contract: four-eyes-10
    // asvs: 2.4.1
    const actor = `jwt:https://issuer.example|${newId('client')}`;
    const replies = await Promise.all(Array.from({ length: 24 }, () => ask(requestReversal(), { actor })));
    expect(replies.map(replyCode).toSorted()).toEqual([
      ...Array.from({ length: 20 }, () => 'ok'),
      ...Array.from({ length: 4 }, () => 'rate_limited'),
    ]);
    // It is not kept: once one is decided, the same request is accepted.
    const late = requestReversal();
    expect(replyCode(await ask(late, { actor }))).toBe('rate_limited');
    const [first] = replies.flatMap((reply) => (reply?.ok ? [(reply.data as Approval).approval_id] : []));
    await bank.send('reject_request', verdict(first ?? '', { reason: 'no' }), { subject: first ?? '', actor: bob });
    expect(replyCode(await ask(late, { actor }))).toBe('ok');
  });
});

describe('the key that asked', () => {
  async function askingKey(granted: string[], rest: Partial<MessageData<'create_api_key'>> = {}) {
    const data: MessageData<'create_api_key'> = {
      key_id: newId('key'),
      name: 'partner',
      scopes: granted as never,
      environment: 'test',
      client_id: null,
      expires_at: null,
      not_after: '2099-01-01T00:00:00.000Z',
      maker_key_id: null,
      secret_hash: randomBytes(32).toString('hex'),
      ...rest,
    };
    await bank.send('create_api_key', data, { message_id: data.key_id, actor: carol });
    return { key_id: data.key_id, actor: `key:${data.key_id}` };
  }

  test('must be valid and have the scopes when it is approved; otherwise the bank rejects, and nothing is sent', async () => {
    // contract: four-eyes-16
    const able = await askingKey(['transactions:reverse']);
    const unable = await askingKey(['transactions:read']);
    const expired = await askingKey(['transactions:reverse']);
    await bank.owner.query('update api_keys set expires_at = now() where key_id = $1', [expired.key_id]);
    for (const { actor } of [unable, expired]) {
      const request = await asked(requestReversal(), { actor });
      const reply = await approve(request.approval_id);
      expect(reply).toMatchObject({
        ok: true,
        data: { status: 'Rejected', decided_by: 'system', reason: 'asker_revoked' },
      });
      expect(await sent(request)).toEqual([]);
      expect(replyCode(await approve(request.approval_id))).toBe('approval_decided');
    }
    const request = await asked(requestReversal(), { actor: able.actor });
    await bank.handleCommands([approving(request.approval_id)]);
    expect(await sent(request)).toHaveLength(1);
  });

  test('takes with it what it has waiting, when it is revoked', async () => {
    // contract: four-eyes-16
    const [key, other] = [await askingKey(['transactions:reverse']), await askingKey(['transactions:reverse'])];
    const request = await asked(requestReversal(), { actor: key.actor });
    const kept = await asked(requestReversal(), { actor: other.actor });
    await bank.send('revoke_api_key', { key_id: key.key_id }, { actor: carol });
    expect(await shown(request.approval_id, key.actor)).toMatchObject({
      status: 'Rejected',
      decided_by: 'system',
      reason: 'asker_revoked',
    });
    expect((await shown(kept.approval_id, other.actor)).status).toBe('Waiting');
    expect((await readDecisions(request.approval_id)).map(({ type }) => type)).toEqual([
      'corebanking.approval.requested.v1',
      'corebanking.approval.decided.v1',
    ]);
    expect((await readAudits(request.approval_id)).map(({ action, actor }) => [action, actor])).toContainEqual([
      'reject_request',
      carol,
    ]);
  });
});

test('reads name the persons who have signed in with a name, for people of the bank, not for programs and customers', async () => {
  // contract: four-eyes-18
  const own = { actor: alice, bound_client_id: await newClient(bank) };
  const { approval_id } = await asked();
  await approve(approval_id);
  const person = { signed_in_at: '2026-01-02T03:04:05.678Z' };
  const keep = (actor: string, name: string) =>
    bank.owner.query('insert into staff_names (actor, name, folded, signed_in_at) values ($1, $2, $2, $3)', [
      actor,
      name,
      person.signed_in_at,
    ]);
  expect(Object.keys(await shown(approval_id))).not.toContain('requested_by_name');
  await keep(alice, 'Alice Asker');
  await keep(bob, 'Bob Boss');
  const names = { requested_by_name: 'Alice Asker', decided_by_name: 'Bob Boss' };
  expect(await shown(approval_id)).toMatchObject(names);
  const page = { limit: 500, order: 'desc' as const, scopes: decider };
  const list = await bank.send('list_approvals', page, { actor: carol, staff: 'true' });
  const items = (list as { data: { items: Approval[] } }).data.items;
  expect(items.find((item) => item.approval_id === approval_id)).toMatchObject(names);
  const bound = await bank.send('get_approval', { approval_id, scopes: [] }, own);
  const program = await shown(approval_id, `key:${newId('key')}`, decider, {});
  expect(program.approval_id).toBe(approval_id);
  expect(JSON.stringify([bound, program])).not.toMatch(/Asker|Boss/);
  await bank.owner.query('delete from staff_names');
});

test('a request that sets values is asked once while it waits, also by two forms at once; one that posts, each time', async () => {
  // contract: four-eyes-23
  const account_id = newId('account');
  const actor = `jwt:https://issuer.example|${newId('key')}`;
  const setting = (method: string, limit = 500): ApprovalRequest => {
    const request = requestReversal();
    const body = { per_transaction: `${limit}` };
    return {
      ...request,
      action: 'raise_limit',
      request: { operation: 'set_account_limits', method, path: `/accounts/${account_id}/limits`, body },
      command: { name: 'set_account_limits', id: request.command.id, key: account_id, data: { account_id, ...body } },
    };
  };
  const ids = async (requests: ApprovalRequest[], by = actor) =>
    (await Promise.all(requests.map((request) => ask(request, { actor: by, time: new Date().toISOString() })))).map(
      (reply) => (reply as { data: Approval }).data.approval_id,
    );
  const [first, second] = await ids([setting('PUT'), setting('PUT')]);
  expect(second).toBe(first);
  const others: (string | undefined)[] = [];
  for (const request of [setting('PATCH'), setting('POST'), setting('POST'), setting('PUT', 501)])
    others.push(...(await ids([request])));
  others.push(...(await ids([setting('PUT')], bob)));
  expect(new Set([first, ...others]).size).toBe(6);
  // Approved in the order of the list, they end with what was asked last, and not with the 501 between them.
  const [again] = await ids([setting('PUT')]);
  expect([first, ...others]).not.toContain(again);
  const repeated = setting('PUT');
  expect(await ids([repeated])).toEqual([again]);
  expect(await readAudits(repeated.approval_id)).toMatchObject([{ details: { equal_to: again, about: [account_id] } }]);
  // Whoever got no response asks for the id of their own request.
  expect((await shown(repeated.approval_id, actor)).approval_id).toBe(again);
  await bank.send('reject_request', verdict(again ?? '', { reason: 'no' }), { subject: again ?? '', actor: carol });
  expect(await ids([repeated])).toEqual([again]);
  expect(await ids([setting('PUT')])).not.toEqual([again]);
});

test('a request with another If-Match is another request', async () => {
  // contract: four-eyes-23
  const client_id = await newClient(bank);
  const actor = `jwt:https://issuer.example|${newId('key')}`;
  const changing = (if_match?: string[]): ApprovalRequest => {
    const request = requestReversal();
    const changes = { email: 'new@example.com' };
    return {
      ...request,
      action: 'client_contact',
      request: { operation: 'update_client', method: 'PATCH', path: `/clients/${client_id}`, body: changes },
      command: {
        name: 'update_client',
        id: request.command.id,
        key: client_id,
        data: { client_id, changes, if_match },
      },
    };
  };
  const ids: string[] = [];
  for (const if_match of [undefined, ['"1"'], ['"2"'], ['"2"']])
    ids.push(((await ask(changing(if_match), { actor })) as { data: Approval }).data.approval_id);
  expect(new Set(ids).size).toBe(3);
  expect(ids[3]).toBe(ids[2]);
});
