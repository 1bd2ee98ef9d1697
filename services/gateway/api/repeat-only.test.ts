import { afterEach, expect, it } from 'vitest';
import { unknownRepeat } from '#libs/contracts/errors.ts';
import { commandKey } from '#libs/contracts/ids.ts';
import { type Answer, ids, ok, type Service, samples, testApp } from '../test/test-app.ts';
import { changeMs } from './idempotency.ts';

/**
 * Tests batches and holds during a rotation of the idempotency secret (docs/decisions/0047). repeat-only.int.test.ts
 * tests the ledger's replies.
 */
const sinceMs = Date.parse('2026-12-01T02:00:00.000Z');
const [early, amid, late] = [-60_000, 0, 60_000];
const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((app) => app.close()));
});

const hold = {
  hold_id: ids.hold,
  account_id: ids.account,
  amount: '5.00',
  captured_amount: '0.00',
  currency: 'USD',
  status: 'Active',
  description: null,
  reference: null,
  expires_at: '2026-12-08T02:00:00.000Z',
  created_at: '2026-12-01T02:00:00.000Z',
  updated_at: '2026-12-01T02:00:00.000Z',
};

/** The executed commands by name, with their ids. */
function executed(name: string, data: Record<string, unknown>): Answer {
  if (name === 'create_batch')
    return ok({
      results: (data['items'] as object[]).map((_, index) => ({
        index,
        status: 'Completed',
        transaction: samples.transaction,
      })),
    });
  if (name === 'capture_hold')
    return ok({ hold, transaction: { ...samples.transaction, transaction_id: data['transaction_id'] } });
  return ok({ ...hold, hold_id: data['hold_id'] });
}

/**
 * A service that stores executed commands under their ids; it does not reply while `isSilent` is true.
 */
function keeping() {
  const kept = new Map<string, Answer>();
  const quiet = { isSilent: false };
  const service: Service = ({ name, headers, data }) => {
    const id = headers['ce_id'] ?? '';
    if (quiet.isSilent) return 'no_reply';
    const known = kept.get(id);
    if (known) return { ...(known as object), replayed: true } as Answer;
    if (headers['repeat-only'] === 'true') return { ok: false, refusal: unknownRepeat };
    const answer = executed(name, data);
    kept.set(id, answer);
    return answer;
  };
  return { kept, service, quiet };
}

/** Returns a gateway at that time, always with the same caller. */
async function gatewayAt(service: Service, ms: number) {
  const clock = { now: () => sinceMs + ms, check: () => ({ ok: true }) };
  const { app, sent, keyHeader } = await testApp(service, {
    clock,
    idempotencySecrets: { secrets: ['the new secret of tests', 'the old secret of tests'], sinceMs },
  });
  open.push(app);
  const headers = { ...keyHeader(), 'content-type': 'application/json' };
  const post = async (url: string, body: object, key: string) => {
    sent.length = 0;
    const response = await app.inject({
      method: 'POST',
      url,
      headers: { ...headers, 'idempotency-key': key },
      payload: JSON.stringify(body),
    });
    return { status: response.statusCode, headers: response.headers, body: response.json() };
  };
  /** Returns the batch or command that each message of the last request names, and whether it is repeat-only. */
  const asked = () => sent.map(({ headers: { ce_id = '', ...rest } }) => [commandKey(ce_id), rest['repeat-only']]);
  return { post, asked };
}

const deposit = { transaction: { account_id: ids.account, transaction_type: 'Deposit', amount: 5 } };
const batch = { mode: 'independent', items: [deposit, deposit] };

it('a batch from before the change is repeated with its old id; a new one uses the new secret', async () => {
  const { kept, service } = keeping();
  const [before, after] = [await gatewayAt(service, early), await gatewayAt(service, late)];
  const made = await before.post('/batches', batch, 'old');
  const [[name] = []] = before.asked();
  const again = await after.post('/batches', batch, 'old');
  expect([again.status, again.headers['idempotent-replayed'], again.body]).toEqual([200, 'true', made.body]);
  expect(after.asked()).toEqual([[name, 'true']]);
  expect(kept.size).toBe(1);
  expect((await after.post('/batches', batch, 'new')).status).toBe(200);
  const [byOld, byNew] = after.asked();
  expect(after.asked().map(([, repeatOnly]) => repeatOnly)).toEqual(['true', undefined]);
  expect(byNew?.[0]).not.toBe(byOld?.[0]);
});

it.each([
  ['after the change', late],
  ['at the moment itself', amid],
  ['at its end', changeMs],
])('without a reply about its old id, a batch is executed under neither: %s', async (_, ms) => {
  const { kept, service, quiet } = keeping();
  const [before, then] = [await gatewayAt(service, early), await gatewayAt(service, ms)];
  const made = await before.post('/batches', batch, 'old');
  const [[name] = []] = before.asked();
  quiet.isSilent = true;
  const unheard = await then.post('/batches', batch, 'old');
  expect([unheard.status, unheard.body.code, kept.size]).toEqual([503, 'service_unavailable', 1]);
  expect(then.asked()).toEqual([[name, 'true']]);
  quiet.isSilent = false;
  expect((await then.post('/batches', batch, 'old')).body).toEqual(made.body);
});

it('during the change an unknown batch is 503 with Retry-After, and none of its items is executed', async () => {
  const { kept, service } = keeping();
  const { status, headers } = await (await gatewayAt(service, amid)).post('/batches', batch, 'new');
  expect([status, headers['retry-after'], kept.size]).toEqual([503, '1', 0]);
});

it('a reversal queries its original only before it may be executed', async () => {
  const { post, asked } = await gatewayAt(
    ({ headers }) =>
      headers['repeat-only'] === 'true' ? { ok: false, refusal: unknownRepeat } : ok(samples.transaction),
    late,
  );
  const { status } = await post(`/transactions/${ids.transaction}/reversal`, { reason: 'x' }, 'new');
  expect(status).toBe(201);
  expect(asked().map(([, repeatOnly]) => repeatOnly)).toEqual(['true', undefined, undefined]);
});

const steps = [
  ['placed', `/accounts/${ids.account}/holds`, { amount: 5 }, 201],
  ['captured', `/holds/${ids.hold}/capture`, { amount: 5 }, 201],
  ['released', `/holds/${ids.hold}/release`, {}, 200],
] as const;

it.each(steps)(
  'a hold that was %s before the change is answered as before, and a new request uses the new secret',
  async (_, url, body, status) => {
    const { kept, service } = keeping();
    const [before, change, after] = [
      await gatewayAt(service, early),
      await gatewayAt(service, amid),
      await gatewayAt(service, late),
    ];
    const made = await before.post(url, body, 'old');
    expect(made.status).toBe(status);
    for (const gateway of [change, after]) {
      const again = await gateway.post(url, body, 'old');
      expect([again.status, again.headers['idempotent-replayed'], again.body]).toEqual([status, 'true', made.body]);
      expect(gateway.asked()).toEqual([[before.asked()[0]?.[0], 'true']]);
    }
    expect([(await change.post(url, body, 'new')).status, kept.size]).toEqual([503, 1]);
    expect([(await after.post(url, body, 'new')).status, kept.size]).toEqual([status, 2]);
    expect(after.asked().map(([, repeatOnly]) => repeatOnly)).toEqual(['true', undefined]);
  },
);
