import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { awaitReady } from '../../tools/local/ready.ts';
import { type Answer, newKey, retail } from '../support/client.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Tests the rotation of IDEMPOTENCY_SECRET (docs/operations.md, docs/decisions/0047) on a running bank whose
 * gateways restart one after the other. The 4 s around the change are tested in services/gateway/api.
 */
const [old, fresh] = [randomBytes(32).toString('hex'), randomBytes(32).toString('hex')];
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const hourMs = 3_600_000;
const world = useBank({
  gateways: 2,
  webhooks: 1,
  env: { ...staffEnv, IDEMPOTENCY_SECRET: old, FOUR_EYES: 'reverse' },
});

async function restartGateway(index: number, env: Record<string, string>): Promise<void> {
  const gateway = world.bank.process(index === 0 ? 'gateway' : 'gateway-2');
  await gateway.startWith(env);
  await awaitReady({ url: gateway.health_url }, 45_000);
}

async function restartGateways(env: Record<string, string>): Promise<void> {
  for (const index of [0, 1]) await restartGateway(index, env);
}

interface Write {
  key: string;
  path: string;
  body: object;
  answer: Answer;
}

/** Repeats a request with its key, as callers do, until it has an outcome: a slow machine may take longer than 5 s. */
function outcomeOf(send: () => Promise<Answer>): Promise<Answer> {
  return eventually(async () => {
    const answer = await send();
    return ![503, 504].includes(answer.status) && !answer.text.includes('"status":"Pending"') && answer;
  }, 30_000);
}

/** Sends one request of each kind with an Idempotency-Key. */
async function writes(index: number): Promise<Write[]> {
  const api = world.gateway(index);
  const [from, to] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
  const deposit = { account_id: from.account_id, transaction_type: 'Deposit', amount: 5 };
  const transfer = { from_account_id: from.account_id, to_account_id: to.account_id, amount: 1 };
  const { transaction_id } = await api.transact(from.account_id, 'Deposit', 1);
  const posts: [string, object][] = [
    ['/transactions', deposit],
    ['/transactions', { ...deposit, transaction_type: 'Withdrawal', amount: 1000 }],
    ['/transfers', transfer],
    ['/batches', { mode: 'atomic', items: [{ transaction: deposit }, { transfer }] }],
    ['/batches', { mode: 'independent', items: [{ transaction: deposit }, { transfer }] }],
    ['/clients', retail()],
    ['/accounts', { client_id: from.client_id, account_type: 'Savings', currency: 'USD', initial_deposit: 7 }],
    [`/accounts/${from.account_id}/holds`, { amount: 2 }],
    [`/accounts/${to.account_id}/status-transitions`, { status: 'Frozen', reason: 'fraud' }],
    [`/transactions/${transaction_id}/reversal`, { reason: 'a mistake' }],
    ['/admin/api-keys', { name: 'rotated', scopes: ['clients:read'] }],
    ['/webhooks', { url: 'http://127.0.0.1:9/', event_types: ['*'] }],
  ];
  const made: Write[] = [];
  for (const [path, body] of posts) {
    const key = newKey();
    made.push({ key, path, body, answer: await outcomeOf(() => api.once(key, path, body)) });
  }
  return made;
}

/** An officer requests a reversal, which needs an approval. Returns the response and how to repeat the request. */
async function askForReversal(): Promise<{ answer: Answer; repeat: (index: number) => Promise<Answer> }> {
  const { account_id } = await world.api.newAccount();
  const { transaction_id } = await world.api.transact(account_id, 'Deposit', 1);
  const key = newKey();
  const repeat = (index: number) =>
    world
      .gateway(index)
      .withToken(staffToken(world.bank, 'officer'))
      .once(key, `/transactions/${transaction_id}/reversal`, { reason: 'a mistake' });
  return { answer: await outcomeOf(() => repeat(0)), repeat };
}

/** Sends each request again to a gateway, which must answer as the first time. Secrets are shown only once. */
async function expectReplays(index: number, made: Write[]): Promise<void> {
  for (const { key, path, body, answer } of made) {
    const repeat = await outcomeOf(() => world.gateway(index).once(key, path, body));
    const withoutSecret = (text: string) => text.replace(/,"(?:api_key|secret)":"[^"]*"/, '');
    expect([path, repeat.status, repeat.header('idempotent-replayed')]).toEqual([path, answer.status, 'true']);
    expect(withoutSecret(repeat.text).replace(/"request_id":"[^"]*"/, '')).toBe(
      withoutSecret(answer.text).replace(/"request_id":"[^"]*"/, ''),
    );
  }
}

const countRows = async () =>
  (await world.sql<{ n: number }>('select count(*)::int as n from v_transactions'))[0]?.n ?? Number.NaN;

it('keys under the old idempotency secret are recognized until it is removed, on every gateway', {
  timeout: 180_000,
}, async () => {
  const early = await writes(0);
  const asked = await askForReversal();
  expect(asked.answer.status).toBe(202);
  expect(early.map(({ answer }) => answer.status)).toEqual([
    201, 400, 201, 200, 200, 201, 201, 201, 200, 201, 201, 201,
  ]);
  const list = await world.api.get('/transactions?limit=1');

  // Before the change: a restarted gateway and one that was not restarted give a request the same id.
  await restartGateway(0, { IDEMPOTENCY_SECRET: `${fresh},${old}`, IDEMPOTENCY_SECRET_SINCE: inMs(hourMs) });
  const before = await writes(0);
  await expectReplays(1, before);
  await expectReplays(0, early);

  // After it: repeats are still recognized, and new requests by both gateways.
  await restartGateways({ IDEMPOTENCY_SECRET: `${fresh},${old}`, IDEMPOTENCY_SECRET_SINCE: inMs(-60_000) });
  const posted = await countRows();
  for (const index of [0, 1]) await expectReplays(index, [...early, ...before]);
  const waiting = await outcomeOf(() => asked.repeat(1));
  expect([waiting.status, waiting.header('idempotent-replayed'), waiting.body]).toEqual([
    asked.answer.status,
    'true',
    asked.answer.body,
  ]);
  expect(await countRows()).toBe(posted);
  expect((await world.api.get(list.next ?? 'there is a next page')).status).toBe(200);
  const late = await writes(0);
  await expectReplays(1, late);

  // Without the old secret: keys under the new one are recognized, and a repeat of an older key is a new request.
  await restartGateways({ IDEMPOTENCY_SECRET: fresh });
  await expectReplays(1, late);
  const [remaining, [deposit]] = [await countRows(), early];
  if (!deposit) throw new Error('nothing was written');
  const again = await outcomeOf(() => world.api.once(deposit.key, deposit.path, deposit.body));
  expect(again.status).toBe(201);
  expect(again.body).not.toEqual(deposit.answer.body);
  expect(await countRows()).toBe(remaining + 1);
});
