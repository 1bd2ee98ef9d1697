import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { buildBatch } from '#libs/contracts/batches.ts';
import { type EndpointName, endpoints } from '#libs/contracts/endpoints.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { deadLettered } from '#libs/contracts/errors.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { type Answer, ids, ok, refused, type Service, samples, testApp } from '../test/test-app.ts';

/** What GET answers for an id that the gateway has given to the caller of a command whose outcome it does not know. */

const holdPath = `/holds/${ids.hold}`;
const amount = { amount: 5 };
const deposit = { account_id: ids.account, transaction_type: 'Deposit', ...amount };
const company = { company_name: 'x', registration_number: 'y', email: 'a@b.cc', contact_number: '+254700000001' };
const hold = {
  hold_id: ids.hold,
  account_id: ids.account,
  amount: '5.00',
  captured_amount: '0.00',
  currency: 'USD',
  status: 'Active',
  description: null,
  reference: null,
  expires_at: '2999-01-01T00:00:00.000Z',
  created_at: '2026-01-02T03:04:05.678Z',
  updated_at: '2026-01-02T03:04:05.678Z',
};
const webhook = {
  webhook_id: `whk_${'a'.repeat(32)}`,
  url: 'https://example.com',
  event_types: ['*'],
  description: null,
  status: 'Active',
  client_id: null,
  created_by: 'x',
  created_at: hold.created_at,
  updated_at: hold.created_at,
  failing_since: null,
  ordering: 'account',
  blocked_accounts: [],
  previous_secret_ends_at: null,
};
const key = { ...samples.key, key_id: `key_${'a'.repeat(32)}` };
const reversed = `/transactions/${ids.transaction}/reversal`;

/** The endpoints that create something with an id that can be read, with a request and what the read then returns. */
const creating: { [N in EndpointName]?: { url: string; body: object; data: object }[] } = {
  create_client: [{ url: '/clients', body: { client_type: 'Corporate', ...company }, data: samples.client }],
  open_account: [
    {
      url: '/accounts',
      body: { client_id: ids.client, account_type: 'Savings', currency: 'USD', initial_deposit: 500 },
      data: samples.master,
    },
  ],
  create_transaction: [{ url: '/transactions', body: deposit, data: samples.transaction }],
  reverse_transaction: [{ url: reversed, body: { reason: 'x' }, data: samples.transaction }],
  create_transfer: [
    {
      url: '/transfers',
      body: { from_account_id: ids.account, to_account_id: ids.other, ...amount },
      data: samples.transfer,
    },
  ],
  place_hold: [{ url: `/accounts/${ids.account}/holds`, body: amount, data: hold }],
  capture_hold: [
    { url: `${holdPath}/capture`, body: {}, data: samples.transaction },
    { url: `${holdPath}/capture`, body: { to_account_id: ids.other }, data: samples.transfer },
  ],
  create_batch: [
    {
      url: '/batches',
      body: { mode: 'atomic', items: [{ transaction: deposit }] },
      data: buildBatch(
        { batch_id: `bat_${'a'.repeat(32)}`, mode: 'atomic', actor: 'x', created_at: hold.created_at },
        [],
      ),
    },
  ],
  create_webhook: [{ url: '/webhooks', body: { url: webhook.url, event_types: ['*'] }, data: webhook }],
  create_api_key: [{ url: '/admin/api-keys', body: { name: 'x', scopes: ['accounts:read'] }, data: key }],
  rotate_api_key: [{ url: `/admin/api-keys/${key.key_id}/rotation`, body: {}, data: key }],
};

test('every endpoint that creates something is in the table, but notes, which have no address of their own', () => {
  const all = Object.entries(endpoints).filter(([, { method, success }]) => method === 'POST' && success === 201);
  const names = [...all.map(([name]) => name), 'create_batch'];
  // A closed day has no id but the day, and a till belongs to a person, not to a key.
  const others = (name: string) => name.endsWith('_note') || name === 'close_day' || name === 'open_till';
  expect(Object.keys(creating).sort()).toEqual(names.filter((name) => !others(name)).sort());
});

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => vi.useRealTimers());

/** Sends the request to services that do not reply, and returns a GET of the id that the response names. */
async function given(name: EndpointName, { url, body }: { url: string; body: object }) {
  let service: Service = ({ name: asked }) => (asked === 'get_transaction' ? ok(samples.transaction) : 'no_reply');
  const { app, sent, keyHeader } = await testApp((message) => service(message));
  const apiKey = keyHeader();
  const headers = name === 'create_batch' ? { ...apiKey, 'idempotency-key': 'k' } : apiKey;
  const posted = await app.inject({ method: 'POST', url, headers, payload: body });
  const command = sent.at(-1) as OutgoingMessage;
  const { data, message = '' } = posted.json();
  const [, advised = `/batches/${data?.batch_id}`] = /GET (\S+) before repeating/.exec(message) ?? [];
  return {
    status: posted.statusCode,
    command,
    /** `early` is the reply before the commands, and `behind` the one behind the command. */
    async get(early: Answer, behind: Answer) {
      const queries: { topic: string; partition: number }[] = [];
      service = ({ name: asked, topic, partition }) => {
        if (asked === 'get_ledger_accounts') return ok([samples.ledger]);
        if (topic.endsWith('.queries')) return early;
        queries.push({ topic, partition });
        return topic === command.topic ? behind : early;
      };
      const answer = await app.inject({ method: 'GET', url: posted.headers.location ?? advised, headers: apiKey });
      return { status: answer.statusCode, retryAfter: answer.headers['retry-after'], queries };
    },
    close: () => app.close(),
  };
}

const rows = Object.entries(creating).flatMap(([name, requests]) =>
  requests.map((request) => [name as EndpointName, JSON.stringify(request.body), request] as const),
);

describe.each(rows)('%s %s without an outcome', (name, _, request) => {
  let asked: Awaited<ReturnType<typeof given>>;
  beforeEach(async () => {
    asked = await given(name, request);
  });
  afterEach(() => asked.close());
  const decided = refused('transaction_not_found');
  const unknown: Answer = { ...(decided as ReplyBody & { ok: false }), unseen: true };

  test('no reply: GET is 503 with Retry-After, also if the id is unknown before its command', async () => {
    expect([200, 202, 504]).toContain(asked.status);
    for (const early of ['no_reply', unknown] as const) {
      const { status, retryAfter } = await asked.get(early, 'no_reply');
      expect([status, retryAfter]).toEqual([503, '1']);
    }
  });

  test('executed late: GET asks once more behind the command, in its partition', async () => {
    const { status, queries } = await asked.get(unknown, ok(request.data));
    expect(status).toBe(200);
    expect(queries).toContainEqual({ topic: asked.command.topic, partition: asked.command.partition });
  });

  test('refused late: GET is 404, but not before the deadline of a command that may not have arrived', async () => {
    if (name !== 'create_batch') expect((await asked.get(unknown, unknown)).status).toBe(503);
    vi.setSystemTime(Date.now() + 41_000);
    expect((await asked.get(unknown, unknown)).status).toBe(404);
  });

  test('decided: GET of what concerns others, was refused, or was deleted is 404 at once', async () => {
    expect((await asked.get(decided, decided)).status).toBe(404);
  });

  test('dead-lettered: GET is 503', async () => {
    vi.setSystemTime(Date.now() + 41_000);
    const dead = { ok: false as const, refusal: deadLettered('x') };
    expect((await asked.get(unknown, dead)).status).toBe(503);
  });
});
