import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import type { EndpointName, endpoints } from '#libs/contracts/endpoints.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { topicName } from '#libs/contracts/topics.ts';
import { type Answer, type Api, type RestAccount, type RestClient, retail } from '../support/client.ts';
import { everyEndpoint } from '../support/hostile.ts';
import { publish } from '../support/kafka.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Tests that every write by a member of staff, and every refused request to an endpoint for staff, is in the audit log.
 */
const world = useBank({ webhooks: 1, env: { ...staffEnv, FOUR_EYES: 'unfreeze' } });
const { api } = world;
let staff: Api;
let client: RestClient;
let account: RestAccount;
let letters: DeadLetter[];
beforeAll(async () => {
  staff = api.withToken(staffToken(world.bank, 'alice'));
  client = await api.client();
  account = await api.account(client.client_id, { initial_deposit: 100 });
  const dead = (id: string) => ({
    topic: topicName(world.bank.topic_prefix, 'ledger.commands'),
    partition: 0,
    key: id,
    value: 'no JSON',
    headers: { ce_id: id, ce_type: messageType('create_transaction'), ce_time: new Date().toISOString() },
  });
  await publish(world.bank, [dead(randomUUID()), dead(randomUUID()), dead(randomUUID())]);
  letters = await eventually(async () => {
    const listed = (await api.get('/admin/dead-letters')).list<DeadLetter>();
    return listed.length === 3 && listed;
  });
});

type Write = { [Name in EndpointName]: (typeof endpoints)[Name]['method'] extends 'GET' ? never : Name }[Exclude<
  EndpointName,
  // Recorded under the action that it names (services/gateway/api/sign-ins.test.ts).
  'record_activity'
>];
const newKeyId = async () => (await api.key({ scopes: ['clients:read'] })).key_id;
/** Returns the id of an approval that another person has requested. */
async function waitingApproval(): Promise<string> {
  const { account_id } = await api.account(client.client_id);
  await api.setStatus(account_id, 'Frozen', 'fraud');
  const asked = await api
    .withToken(staffToken(world.bank, 'bob'))
    .post(`/accounts/${account_id}/status-transitions`, { status: 'Active' });
  return asked.data<{ approval_id: string }>().approval_id;
}
const placeHold = (): Promise<Answer> => staff.post(`/accounts/${account.account_id}/holds`, { amount: 1 });
/** Refused if the person has one already. */
const openTill = (): Promise<Answer> => staff.post('/tills', { counted: [{ currency: 'USD', amount: 1 }] });
/** No server listens at this address. */
const receiver = 'http://127.0.0.1:9/';
const newWebhookId = async () =>
  (await api.post('/webhooks', { url: receiver, event_types: ['approval.decided'] })).data<{ webhook_id: string }>()
    .webhook_id;
/** One valid request for each endpoint that writes; a new endpoint does not compile without one. */
const writes: Record<Write, () => Promise<Answer>> = {
  create_client: () => staff.post('/clients', retail()),
  update_client: () => staff.patch(`/clients/${client.client_id}`, { address: 'elsewhere' }),
  add_client_note: () => staff.post(`/clients/${client.client_id}/notes`, { note: 'x' }),
  add_account_note: () => staff.post(`/accounts/${account.account_id}/notes`, { note: 'x' }),
  erase_client: async () => staff.post(`/admin/clients/${(await api.client()).client_id}/erasure`),
  open_account: () =>
    staff.post('/accounts', { client_id: client.client_id, account_type: 'Savings', currency: 'USD' }),
  change_account_status: async () =>
    staff.post(`/accounts/${(await api.account(client.client_id)).account_id}/status-transitions`, {
      status: 'Inactive',
    }),
  create_transaction: () =>
    staff.post('/transactions', { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 }),
  create_transfer: async () =>
    staff.post('/transfers', {
      from_account_id: account.account_id,
      to_account_id: (await api.account(client.client_id)).account_id,
      amount: 1,
    }),
  place_hold: () => placeHold(),
  capture_hold: async () => staff.post(`/holds/${(await placeHold()).data<{ hold_id: string }>().hold_id}/capture`),
  release_hold: async () => staff.post(`/holds/${(await placeHold()).data<{ hold_id: string }>().hold_id}/release`),
  create_batch: () =>
    staff.post(
      '/batches',
      {
        mode: 'atomic',
        items: [{ transaction: { account_id: account.account_id, transaction_type: 'Deposit', amount: 1 } }],
      },
      { 'idempotency-key': randomUUID() },
    ),
  reverse_transaction: async () =>
    staff.post(`/transactions/${(await api.transact(account.account_id, 'Deposit', 1)).transaction_id}/reversal`, {
      reason: 'x',
    }),
  create_api_key: () => staff.post('/admin/api-keys', { name: 'x', scopes: ['clients:read'] }),
  rotate_api_key: async () => staff.post(`/admin/api-keys/${await newKeyId()}/rotation`),
  revoke_api_key: async () => staff.post(`/admin/api-keys/${await newKeyId()}/revocation`),
  redrive_dead_letter: () => staff.post(`/admin/dead-letters/${letters[0]?.dead_letter_id}/redrive`),
  sign_in: () => staff.post('/admin/sign-ins', { session_id: `ses_${'a'.repeat(32)}` }),
  // Another token of the same person, because it ends.
  sign_out: () =>
    api
      .withToken(staffToken(world.bank, 'alice', { jti: 'ends' }))
      .post('/admin/sign-outs', { session_id: `ses_${'a'.repeat(32)}` }),
  set_account_limits: () => staff.send('PUT', `/accounts/${account.account_id}/limits`, { body: {} }),
  close_day: () => staff.post('/admin/day-closings', { date: '2026-01-01' }),
  open_till: () => openTill(),
  close_till: async () => {
    await openTill();
    const [till] = (await staff.get('/tills?status=Open')).list<{ till_id: string }>();
    return staff.post(`/tills/${till?.till_id}/closing`, { counted: [{ currency: 'USD', amount: 2 }], reason: 'x' });
  },
  verify_books: () => staff.post('/admin/verifications'),
  drop_dead_letter: () => staff.post(`/admin/dead-letters/${letters[1]?.dead_letter_id}/drop`, { reason: 'poison' }),
  reject_request: async () => staff.post(`/admin/approvals/${await waitingApproval()}/rejection`, { reason: 'x' }),
  approve_request: async () => staff.post(`/admin/approvals/${await waitingApproval()}/approval`),
  create_webhook: () => staff.post('/webhooks', { url: receiver, event_types: ['client.created'] }),
  update_webhook: async () => staff.patch(`/webhooks/${await newWebhookId()}`, { description: 'x' }),
  delete_webhook: async () => staff.send('DELETE', `/webhooks/${await newWebhookId()}`),
  rotate_webhook_secret: async () => staff.post(`/webhooks/${await newWebhookId()}/secret-rotation`),
  test_webhook: async () => staff.post(`/webhooks/${await newWebhookId()}/test`),
  replay_webhook: async () => staff.post(`/webhooks/${await newWebhookId()}/replay`, { from: '2026-01-01' }),
  redeliver: async () => {
    const webhookId = await newWebhookId();
    const { delivery_id } = (await staff.post(`/webhooks/${webhookId}/test`)).data<{ delivery_id: string }>();
    return staff.post(`/webhooks/${webhookId}/deliveries/${delivery_id}/redelivery`);
  },
  skip_delivery: async () => {
    const webhookId = await newWebhookId();
    const { delivery_id } = (await staff.post(`/webhooks/${webhookId}/test`)).data<{ delivery_id: string }>();
    return staff.post(`/webhooks/${webhookId}/deliveries/${delivery_id}/skip`);
  },
};

/** A batch also has the records of its items. */
function readRecord(answer: Answer, action: string): Promise<AuditRecord> {
  return eventually(async () =>
    (await api.get(`/admin/audit?request_id=${answer.header('x-request-id')}`))
      .list<AuditRecord>()
      .find((record) => record.action === action),
  );
}

describe('the audit log records', () => {
  it.each(Object.entries(writes))('%s by a person', async (action, write) => {
    // contract: audit-6
    // asvs: 16.3.3
    const answer = await write();
    expect([200, 201], answer.text).toContain(answer.status);
    expect(await readRecord(answer, action)).toMatchObject({
      action,
      outcome: 'success',
      actor: `jwt:${world.bank.issuer}|alice`,
      address: '127.0.0.1',
    });
  });

  const ofStaff = everyEndpoint.filter(
    ({ path, scope }) =>
      (path.startsWith('/admin/') && scope !== null) || scope === 'accounts:status' || scope === 'transactions:reverse',
  );
  it.each(ofStaff.map(({ name, method, path }) => [name, method, path] as const))(
    '%s refused',
    async (action, method, path) => {
      const reader = api.withToken(staffToken(world.bank, 'mallory', { scope: 'clients:read' }));
      const answer = await reader.send(method, path, method === 'GET' ? {} : { body: {} });
      expect(answer.status).toBe(403);
      expect(await readRecord(answer, action)).toMatchObject({
        action,
        outcome: 'insufficient_scope',
        actor: `jwt:${world.bank.issuer}|mallory`,
      });
    },
  );
});
