import { afterEach, expect, it } from 'vitest';
import { unknownRepeat } from '#libs/contracts/errors.ts';
import { bucketOf, commandKey } from '#libs/contracts/ids.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { Answer, Service } from '../test/test-app.ts';
import { ids, ok, samples, testApp } from '../test/test-app.ts';
import { changeMs } from './idempotency.ts';

/**
 * Batches and holds while the idempotency secret is rotated (docs/decisions/0047);
 * repeat-only.int.test.ts tests the ledger's replies.
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
      results: (data['items'] as { index: number }[]).map(({ index }) => ({
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
 * A service that stores executed commands under their ids; it does not reply to messages for which
 * `isSilent` is true.
 */
function keeping() {
  const kept = new Map<string, Answer>();
  const quiet: { isSilent: (data: Record<string, unknown>) => boolean } = { isSilent: () => false };
  const service: Service = ({ name, headers, data }) => {
    const id = headers['ce_id'] ?? '';
    if (quiet.isSilent(data)) return 'no_reply';
    const known = kept.get(id);
    if (known) return { ...(known as object), replayed: true } as Answer;
    if (headers['repeat-only'] === 'true') return { ok: false, refusal: unknownRepeat };
    const answer = executed(name, data);
    kept.set(id, answer);
    return answer;
  };
  return { kept, service, quiet };
}

/** A gateway at that time, always with the same caller. */
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
  /**
   * The batch or command that each message of the last request names, and whether it is
   * repeat-only.
   */
  const asked = () => sent.map(({ headers: { ce_id = '', ...rest } }) => [commandKey(ce_id), rest['repeat-only']]);
  return { post, asked };
}

const [one, two] = [
  ...Map.groupBy(
    Array.from({ length: 50 }, (_, i) => `acc_${String(i).padStart(32, '0')}`),
    (id) => commandPartition(bucketOf(id)),
  ).values(),
].map(([first = '']) => first) as [string, string];
const deposit = (account_id: string) => ({ transaction: { account_id, transaction_type: 'Deposit', amount: 5 } });
const batch = { mode: 'independent', items: [deposit(one), deposit(two)] };
const toTwo = (data: Record<string, unknown>) => JSON.stringify(data).includes(two);

it('a batch from before the change is repeated with its old id; a new one uses the new secret', async () => {
  const { kept, service } = keeping();
  const [before, after] = [await gatewayAt(service, early), await gatewayAt(service, late)];
  const made = await before.post('/batches', batch, 'old');
  const [[name] = []] = before.asked();
  const again = await after.post('/batches', batch, 'old');
  expect([again.status, again.headers['idempotent-replayed'], again.body]).toEqual([200, 'true', made.body]);
  expect(after.asked()).toEqual([
    [name, 'true'],
    [name, 'true'],
  ]);
  expect(kept.size).toBe(2);
  expect((await after.post('/batches', batch, 'new')).status).toBe(200);
  const [byOld, , byNew] = after.asked();
  expect(after.asked()).toEqual([
    [byOld?.[0], 'true'],
    [byOld?.[0], 'true'],
    [byNew?.[0], undefined],
    [byNew?.[0], undefined],
  ]);
  expect(byNew?.[0]).not.toBe(byOld?.[0]);
});

it.each([
  ['after the change', late],
  ['at the moment itself', amid],
  ['at its end', changeMs],
])('if a part of a batch is known under its old id, the rest is executed under it too: %s', async (_, ms) => {
  const { kept, service, quiet } = keeping();
  const [before, then] = [await gatewayAt(service, early), await gatewayAt(service, ms)];
  quiet.isSilent = toTwo;
  const made = await before.post('/batches', batch, 'old');
  expect([made.body.data.status, made.body.data.counts, kept.size]).toEqual([
    'Pending',
    { completed: 1, failed: 0, pending: 1 },
    1,
  ]);
  const [[name] = []] = before.asked();
  // There is no reply about the other part, so nothing is executed under either id.
  const unheard = await then.post('/batches', batch, 'old');
  expect([unheard.status, unheard.body.code, kept.size]).toEqual([503, 'service_unavailable', 1]);
  quiet.isSilent = () => false;
  const again = await then.post('/batches', batch, 'old');
  expect([again.status, again.body.data.batch_id, again.body.data.counts]).toEqual([
    200,
    made.body.data.batch_id,
    { completed: 2, failed: 0, pending: 0 },
  ]);
  expect(then.asked()).toEqual([
    [name, 'true'],
    [name, 'true'],
    [name, undefined],
    [name, undefined],
  ]);
  expect(new Set([...kept.keys()].map(commandKey))).toEqual(new Set([name]));
  expect((await then.post('/batches', batch, 'old')).headers['idempotent-replayed']).toBe('true');
  expect(kept.size).toBe(2);
});

it('during the change an unknown batch is 503 with Retry-After, and nothing of it is executed', async () => {
  const { kept, service } = keeping();
  const { status, headers } = await (await gatewayAt(service, amid)).post('/batches', batch, 'new');
  expect([status, headers['retry-after'], kept.size]).toEqual([503, '1', 0]);
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
