import { expect, it } from 'vitest';
import { unknownRepeat } from '#libs/contracts/errors.ts';
import { idBits } from '#libs/contracts/ids.ts';
import type { RequestError } from '#libs/kafka/request-reply/request-reply.ts';
import { type Answer, ids, ok, type Service, samples, testApp } from '../test/test-app.ts';
import { attemptsOf, changeMs } from './idempotency.ts';
import { derivedBits } from './ids.ts';

const [first, before] = ['the new secret of tests', 'the old secret of tests'];
const sinceMs = Date.parse('2026-12-01T02:00:00.000Z');
const rotated = { secrets: [first, before], sinceMs };
const at = (ms: number) => attemptsOf(rotated, sinceMs + ms, 'jwt:a|b', 'POST /x', 'key');
const [byFirst, byBefore] = [first, before].map((secret) => derivedBits(secret, 'jwt:a|b', 'POST /x', 'key'));

it('until the change of secrets ids use the old one; afterwards, repeats with the old one are looked for first', () => {
  expect(at(-changeMs - 1)).toEqual([{ bits: byBefore, repeatOnly: false, notAfterMs: sinceMs }]);
  for (const ms of [-changeMs, 0, changeMs - 1]) expect(at(ms)).toEqual([{ bits: byBefore, repeatOnly: true }]);
  for (const ms of [changeMs, 1e12])
    expect(at(ms)).toEqual([
      { bits: byBefore, repeatOnly: true },
      { bits: byFirst, repeatOnly: false },
    ]);
  expect(attemptsOf({ secrets: [first] }, 0, 'jwt:a|b', 'POST /x', 'key')).toEqual([
    { bits: byFirst, repeatOnly: false },
  ]);
});

/** A service that stores executed commands under their ids, as ours do. */
function keeping() {
  const kept = new Map<string, Answer>();
  let silent = false;
  const service: Service = ({ headers, data }) => {
    const id = headers['ce_id'] ?? '';
    if (silent) return 'no_reply' satisfies RequestError['stage'];
    const known = kept.get(id);
    if (known) return { ...(known as object), replayed: true } as Answer;
    if (headers['repeat-only'] === 'true') return { ok: false, refusal: unknownRepeat };
    const answer = ok({ ...samples.transaction, transaction_id: data['transaction_id'], amount: '5.00' });
    kept.set(id, answer);
    return answer;
  };
  return { kept, service, beSilent: (value: boolean) => (silent = value) };
}

const deposit = { account_id: ids.account, transaction_type: 'Deposit', amount: 5 };

/** A gateway at a given time, with its own caller. */
async function gatewayAt(service: Service, ms: number) {
  const clock = { now: () => sinceMs + ms, check: () => ({ ok: true }) };
  const made = await testApp(service, { clock, idempotencySecrets: rotated });
  const headers = { ...made.keyHeader(), 'content-type': 'application/json' };
  const post = async (key: string) =>
    made.app.inject({
      method: 'POST',
      url: '/transactions',
      headers: { ...headers, 'idempotency-key': key },
      payload: JSON.stringify(deposit),
    });
  return { ...made, post };
}

it('a repeat of an old key gets the same id, new ones use the first secret, and nothing is executed twice', async () => {
  const { kept, service, beSilent } = keeping();
  const [early, late] = [await gatewayAt(service, -60_000), await gatewayAt(service, 60_000)];
  const made = await early.post('old');
  const again = await late.post('old');
  expect([made.statusCode, again.statusCode, again.headers['idempotent-replayed'], again.json()]).toEqual([
    201,
    201,
    'true',
    made.json(),
  ]);
  expect((await late.post('new')).statusCode).toBe(201);
  expect((await late.post('new')).headers['idempotent-replayed']).toBe('true');
  expect(kept.size).toBe(2);
  const named = [...kept.keys()].map((id) => idBits(id));
  expect(new Set(named).size).toBe(2);
  // Without a reply to the repeat-only command, the request is not executed under another id.
  beSilent(true);
  const unanswered = await late.post('third');
  expect([unanswered.statusCode, unanswered.json<{ code: string }>().code, kept.size]).toEqual([
    503,
    'service_unavailable',
    2,
  ]);
  await Promise.all([early, late].map(({ app }) => app.close()));
});

it('during the change repeats are answered, and new requests are 503 with Retry-After', async () => {
  const { kept, service } = keeping();
  const [early, change] = [await gatewayAt(service, -60_000), await gatewayAt(service, 0)];
  await early.post('old');
  const [repeat, fresh] = [await change.post('old'), await change.post('new')];
  expect([repeat.statusCode, fresh.statusCode, fresh.headers['retry-after'], kept.size]).toEqual([201, 503, '1', 1]);
  await Promise.all([early, change].map(({ app }) => app.close()));
});

it('a command with the old secret must begin before the change, so that none is in progress afterwards', async () => {
  const { service } = keeping();
  const early = await gatewayAt(service, -3_000);
  await early.post('old');
  expect(early.sent[0]?.headers['deadline']).toBe(new Date(sinceMs).toISOString());
  await early.app.close();
});
