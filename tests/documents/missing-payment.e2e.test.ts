import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { SearchHit } from '#libs/contracts/search.ts';
import type { Timeline } from '#libs/contracts/timeline.ts';
import type { Delivery } from '#libs/contracts/webhooks.ts';
import { startReceiver } from '../../services/webhooks/test/receiver.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Tests that the commands of docs/runbooks/missing-payment.md find a payment, a refused payment, and a request that was
 * never received.
 */
const world = useBank({ webhooks: 1 });
const { api } = world;
const page = readFileSync(join(import.meta.dirname, '../../docs/runbooks/missing-payment.md'), 'utf8');
const commands = [...page.matchAll(/```sh\n([^`]*)```/g)].flatMap(([, block = '']) => block.trim().split('\n'));
const [search = '', latest = '', logLine = '', timeline = '', entries = '', webhooks = '', deliveries = ''] = commands;

const paid = { account: '', receiver: '', transaction: '', webhook: '' };
let stop: () => Promise<unknown> = async () => undefined;

function shell(command: string, variables: Record<string, string> = {}): string {
  const env = { PATH: process.env['PATH'], BANK_URL: api.baseUrl, BANK_API_KEY: world.bank.api_key, ...variables };
  return execFileSync('bash', ['-euc', command], { env, encoding: 'utf8', timeout: 30_000 });
}

const listed = <T>(command: string, variables: Record<string, string>): T[] =>
  (JSON.parse(shell(command, variables)) as { data: T[] }).data;

beforeAll(async () => {
  const receiver = await startReceiver();
  stop = receiver.stop;
  paid.webhook = (await api.post('/webhooks', { url: receiver.url, event_types: ['transaction.*'] })).data<{
    webhook_id: string;
  }>().webhook_id;
  const [from, to] = [await api.newAccount({ initial_deposit: 100 }), await api.newAccount()];
  Object.assign(paid, { account: from.account_id, receiver: to.account_id });
  const body = { from_account_id: from.account_id, to_account_id: to.account_id, amount: 40 };
  expect((await api.post('/transfers', body, { 'x-request-id': 'missing payment 1' })).status).toBe(201);
  expect(
    (await api.post('/transfers', { ...body, amount: 5_000 }, { 'x-request-id': 'missing payment 2' })).status,
  ).toBe(400);
});
afterAll(() => stop());

it('has five steps', () => {
  expect([...page.matchAll(/^## (\d)/gm)].map(([, number]) => number)).toEqual(['1', '2', '3', '4', '5']);
  expect(commands).toHaveLength(7);
});

it('1: finds the payment by request id and by account, and a refused one', async () => {
  const hits = listed<SearchHit>(search, { GIVEN: 'missing payment 1' });
  expect(hits.map(({ kind, matched }) => [kind, matched])).toContainEqual(['transaction', 'request_id']);
  const known = listed<{ transaction_id: string; status: string; failure_code?: string; amount: number }>(latest, {
    ACCOUNT_ID: paid.account,
  });
  expect(known.map(({ status, amount, failure_code }) => [status, amount, failure_code])).toEqual([
    ['Failed', 5_000, 'insufficient_funds'],
    ['Completed', 40, undefined],
    ['Completed', 100, undefined],
  ]);
  paid.transaction = known[1]?.transaction_id ?? '';
  expect(listed<SearchHit>(search, { GIVEN: paid.transaction })[0]).toMatchObject({ id: paid.transaction });
});

it('2: shows why a request was refused, and that there is no line for one that was not refused', async () => {
  const { log: GATEWAY_LOG = '' } = world.bank.processes.find(({ name }) => name === 'gateway') ?? {};
  const refused = await eventually(
    async () => JSON.parse(shell(logLine, { REQUEST_ID: 'missing payment 2', GATEWAY_LOG })) as object,
  );
  expect(refused).toMatchObject({
    msg: 'a request was refused',
    method: 'POST',
    route: '/transfers',
    status: 400,
    code: 'insufficient_funds',
    caller: expect.stringMatching(/^key:/),
    caller_address: '127.0.0.1',
  });
  expect(() => shell(logLine, { REQUEST_ID: 'missing payment 1', GATEWAY_LOG })).toThrow();
});

it('3 and 4: shows request, command, entries, and events, and the receiver’s entry', () => {
  const { data } = JSON.parse(shell(timeline, { TRANSACTION_ID: paid.transaction })) as { data: Timeline };
  expect(data).toMatchObject({
    transaction: { status: 'Completed' },
    request: { request_id: 'missing payment 1', actor: expect.stringMatching(/^key:/) },
    command: { topic: 'ledger.commands' },
    booked_at: expect.any(String),
  });
  expect(data.entries.map(({ account_id, direction }) => [account_id, direction]).toSorted()).toEqual(
    [
      [paid.account, 'debit'],
      [paid.receiver, 'credit'],
    ].toSorted(),
  );
  expect(listed<{ direction: string; balance_after: number }>(entries, { ACCOUNT_ID: paid.receiver })).toMatchObject([
    { direction: 'credit', balance_after: 40 },
  ]);
});

it('5: shows the webhook and the delivery of this event', async () => {
  expect(listed<{ webhook_id: string }>(webhooks, {}).map(({ webhook_id }) => webhook_id)).toContain(paid.webhook);
  const completed = await eventually(async () => {
    const { data } = JSON.parse(shell(timeline, { TRANSACTION_ID: paid.transaction })) as { data: Timeline };
    return data.events.find(
      ({ type, state }) => type === 'corebanking.transaction.completed.v1' && state === 'published',
    );
  });
  const EVENT_ID = completed.ce_id;
  const found = await eventually(async () => {
    const text = shell(deliveries, { WEBHOOK_ID: paid.webhook, EVENT_ID });
    return text.includes('"status":"Delivered"') ? text : undefined;
  });
  expect(found).toContain(`"event_id":"${EVENT_ID}"` satisfies `"event_id":"${Delivery['event_id']}"`);
});
