import { expect, test } from 'vitest';
import { errorBodySchema } from '#libs/contracts/errors.ts';
import type { Admission } from './admission.ts';
import { ids, ok, samples, testApp } from './test-app.ts';

type Reason = ReturnType<Admission['refuses']>;

async function start(state: { reason?: Reason; isClockRight?: boolean }) {
  const held: number[] = [];
  const admission: Admission = {
    refuses: () => state.reason,
    enter: () => () => undefined,
    late: () => undefined,
    hold: (bytes, response) => {
      held.push(bytes);
      response.once('close', () => held.pop());
    },
    stop: () => undefined,
  };
  const clock = { now: Date.now, check: () => ({ ok: state.isClockRight !== false }) };
  const made = await testApp(({ name }) => ok(name === 'create_transaction' ? samples.transaction : name === 'get_client' ? samples.client : null), { admission, clock });
  return { ...made, held };
}

const deposit = JSON.stringify({ account_id: ids.account, transaction_type: 'Deposit', amount: 25 });

test.each(['line', 'loop', 'bytes'] as const)('overload (%s): 503 with Retry-After before anything is looked at, and nothing is sent', async (reason) => {
  const { app, sent, keyHeader } = await start({ reason });
  const requests = [
    { method: 'POST', url: '/transactions', headers: { ...keyHeader(), 'content-type': 'application/json' }, payload: deposit },
    { method: 'POST', url: '/transactions', headers: { 'content-type': 'text/plain' }, payload: 'x'.repeat(70_000) },
    { method: 'GET', url: `/clients/${ids.client}`, headers: { authorization: 'Bearer x.y.z' } },
    { method: 'GET', url: '/nowhere' },
  ] as const;
  for (const request of requests) {
    const response = await app.inject(request);
    expect([response.statusCode, response.headers['retry-after']]).toEqual([503, '1']);
    expect(errorBodySchema.parse(response.json())).toMatchObject({ code: 'service_unavailable', request_id: response.headers['x-request-id'] });
  }
  expect(sent).toEqual([]);
});

test('a preflight is answered all the same', async () => {
  const { app } = await start({ reason: 'loop' });
  const response = await app.inject({ method: 'OPTIONS', url: '/clients', headers: { origin: 'https://a.example', 'access-control-request-method': 'POST' } });
  expect(response.statusCode).toBe(204);
});

test('with a wrong clock writes are 503 and reads go on', async () => {
  const { app, sent, keyHeader } = await start({ isClockRight: false });
  const write = await app.inject({ method: 'POST', url: '/transactions', headers: { ...keyHeader(), 'content-type': 'application/json' }, payload: deposit });
  expect([write.statusCode, write.json().code, write.headers['retry-after'], sent.length]).toEqual([503, 'service_unavailable', '1', 0]);
  expect(write.json().message).toContain('clock');
  expect((await app.inject({ method: 'GET', url: `/clients/${ids.client}`, headers: keyHeader() })).statusCode).toBe(200);
});

test('the bytes of a body are held, those of chunks as the most that may come', async () => {
  const { app, held, keyHeader } = await start({});
  const seen: number[] = [];
  app.addHook('preHandler', async () => void seen.push(...held));
  const headers = { ...keyHeader(), 'content-type': 'application/json' };
  await app.inject({ method: 'POST', url: '/transactions', headers, payload: deposit });
  await app.inject({ method: 'POST', url: '/transactions', headers: { ...headers, 'content-length': '1000000' }, payload: deposit }).catch(() => undefined);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as { port: number };
  const body = new ReadableStream({ start: (controller) => (controller.enqueue(Buffer.from(deposit)), controller.close()) });
  const response = await fetch(`http://127.0.0.1:${port}/transactions`, { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
  await response.text();
  await app.close();
  expect([seen[0], seen.at(-1)]).toEqual([deposit.length, 65_536]);
});
