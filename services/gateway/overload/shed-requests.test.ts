import { expect, test, vi } from 'vitest';
import { errorBodySchema } from '#libs/contracts/errors.ts';
import { ids, ok, samples, testApp } from '../test/test-app.ts';
import { createBodyMemoryLimit, maxHeldBytes } from './body-memory-limit.ts';
import { createLoadShedding } from './load-shedding.ts';

const metrics = { shed: () => undefined };
const rightClock = { now: Date.now, check: () => ({ ok: true }) };
const deposit = JSON.stringify({ account_id: ids.account, transaction_type: 'Deposit', amount: 25 });
const reply = ({ name }: { name: string }) => ok(name === 'get_client' ? samples.client : samples.transaction);

/** Tests load shedding after a hundred requests have waited too long for the ledger. */
function overloaded() {
  let at = 0;
  const shedding = createLoadShedding(rightClock, metrics, () => at);
  for (let i = 0; i < 100; i++) shedding.enter('ledger.commands');
  at = 501;
  shedding.late('ledger.commands');
  return shedding;
}

test('overload: 503 with Retry-After before any processing, nothing is sent, and other services are still used', async () => {
  // contract: errors-15
  const { app, sent, keyHeader } = await testApp(reply, { loadShedding: overloaded() });
  const requests = [
    {
      method: 'POST',
      url: '/transactions',
      headers: { ...keyHeader(), 'content-type': 'application/json' },
      payload: deposit,
    },
    { method: 'POST', url: '/transactions', headers: { 'content-type': 'text/plain' }, payload: 'x'.repeat(70_000) },
    { method: 'POST', url: '/transfers', headers: { authorization: 'Bearer x.y.z' } },
  ] as const;
  for (const request of requests) {
    const response = await app.inject(request);
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '1']);
    const requestId = response.headers['x-request-id'];
    expect(errorBodySchema.parse(response.json())).toMatchObject({
      code: 'service_unavailable',
      request_id: requestId,
    });
  }
  expect(sent).toEqual([]);
  const read = await app.inject({ method: 'GET', url: `/clients/${ids.client}`, headers: keyHeader() });
  expect(read.statusCode).toBe(200);
});

test('with a wrong clock every request is 503, also one with an invalid token, and a preflight succeeds', async () => {
  const clock = { check: () => ({ ok: false }) };
  const { app, sent, keyHeader } = await testApp(reply, { clock });
  const headers = { ...keyHeader(), 'content-type': 'application/json' };
  const write = await app.inject({ method: 'POST', url: '/transactions', headers, payload: deposit });
  expect([write.statusCode, write.json().code, write.headers['retry-after'], sent.length]).toEqual([
    503,
    'service_unavailable',
    '1',
    0,
  ]);
  expect(write.json().message).toContain('clock');
  for (const credentials of [keyHeader(), { authorization: 'Bearer expired' }]) {
    const read = await app.inject({ method: 'GET', url: `/clients/${ids.client}`, headers: credentials });
    expect([read.statusCode, sent.length]).toEqual([503, 0]);
  }
  const asks = { origin: 'https://a.example', 'access-control-request-method': 'POST' };
  expect((await app.inject({ method: 'OPTIONS', url: '/clients', headers: asks })).statusCode).toBe(204);
});

test('bodies are counted while they arrive: each caller may use a sixteenth of the limit, and all together the limit', () => {
  // contract: permission-33
  let shed = 0;
  const held = createBodyMemoryLimit(() => void shed++);
  const sixteenth = maxHeldBytes / 16;
  const refusalCode = (actor: string, bytes: number) => held.add(actor, bytes)?.refusal.code;
  expect([refusalCode('a', sixteenth), refusalCode('a', 1)]).toEqual([undefined, 'rate_limited']);
  held.remove('a', 1);
  for (let i = 1; i < 16; i++) expect(refusalCode(`caller ${i}`, sixteenth)).toBeUndefined();
  expect([refusalCode('b', 1), shed]).toEqual(['service_unavailable', 1]);
  held.remove('b', 1);
  held.remove('a', 10);
  expect([refusalCode('b', 10), refusalCode('c', 1), shed]).toEqual([undefined, 'service_unavailable', 2]);
});

test('the time that reading takes is counted: of each four seconds, a caller may use one', () => {
  let at = 0;
  const held = createBodyMemoryLimit(
    () => undefined,
    () => at,
    () => at,
  );
  const read = (actor: string, ms: number) => held.timed(actor, 10_000, () => (at += ms));
  const refused = (actor: string) => held.add(actor, 1);
  expect([refused('a'), read('a', 1_000), refused('a')]).toEqual([undefined, 1_000, undefined]);
  expect(() =>
    held.timed('a', 10_000, () => {
      at += 1;
      throw new Error('not JSON');
    }),
  ).toThrow('not JSON');
  expect(refused('a')).toMatchObject({ refusal: { code: 'rate_limited' }, headers: { 'retry-after': '3' } });
  expect(refused('b')).toBeUndefined();
  at = 3_999;
  expect(refused('a')).toMatchObject({ headers: { 'retry-after': '1' } });
  at = 4_000;
  expect(refused('a')).toBeUndefined();
});

test('a caller whose bodies take too long to parse and validate is refused, and nobody else', async () => {
  // contract: permission-34
  // asvs: 15.2.2
  // The window of four seconds does not end, however busy the machine is. The CPU time that is counted in it is real.
  using _ = vi.spyOn(performance, 'now').mockReturnValue(0);
  const { app, keyHeader } = await testApp(reply);
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const post = (key: { 'x-api-key': string }, path: string, body: string) =>
    fetch(address + path, { method: 'POST', headers: { ...key, 'content-type': 'application/json' }, body });
  const busy = keyHeader();
  const numbers = `[${'1,'.repeat(30_000)}1]`;
  const refused = async () => {
    await post(busy, '/transfers', numbers);
    const response = await post(busy, '/transactions', deposit);
    expect([response.status, await response.json()]).toEqual([429, expect.objectContaining({ code: 'rate_limited' })]);
  };
  await vi.waitFor(refused, { interval: 0, timeout: 60_000 });
  expect((await post(keyHeader(), '/transactions', deposit)).status).toBe(201);
  await app.close();
});
