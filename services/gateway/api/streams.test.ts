import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { type Answer, ids, ok, refused, type Service, samples, testApp } from '../test/test-app.ts';

/** Files, over connections of their own: how they begin, break off, and end. */
const balances = '/admin/balances';
const dayLines = '/admin/day-closings/2026-01-31/accounts';
const statement = {
  account_id: ids.account,
  account_number: 'SAV-1234567897',
  currency: 'USD',
  from: null,
  to: null,
  opening_balance: '0.00',
  closing_balance: '0.00',
  debit_total: '0.00',
  credit_total: '0.00',
  entry_count: 0,
  entries: [],
};

async function listening(service: Service) {
  const { app, keyHeader } = await testApp(service);
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const open = (url: string, { version = '1.1', ...fields }: Record<string, string>) => {
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = connect(port, '127.0.0.1');
    socket.write(`GET ${url} HTTP/${version}\r\nhost: x\r\nconnection: close\r\n${lines.join('')}\r\n`);
    return socket;
  };
  const get = async (url: string, fields: Record<string, string>) => {
    const answer = await text(open(url, fields));
    return { status: Number(answer.slice(9, 12)), answer };
  };
  return { app, keyHeader, open, get };
}

/** Returns a service whose first answers wait until `go`, and what tells that one is asked for. */
function waiting(answer: (name: string) => Answer) {
  const { promise: gate, resolve: go } = Promise.withResolvers<void>();
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const service: Service = async ({ name }) => {
    ask();
    await gate;
    return answer(name);
  };
  return { service, go, asked };
}

const answer = (name: string): Answer => {
  if (name === 'get_statement') return ok({ item: statement });
  if (name === 'get_account') return ok(samples.master);
  return name === 'get_client' ? ok(samples.client) : ok({ lines: ['{"account_id":"x"}'] });
};

test.each([
  [balances, 'application/x-ndjson'],
  [dayLines, 'text/csv'],
  [`/accounts/${ids.account}/statement?on=2026-01-31`, 'application/xml'],
])('a caller who leaves before the first byte of %s can repeat the request', async (url, accept) => {
  // contract: permission-37
  const { service, go, asked } = waiting(answer);
  const { app, keyHeader, open, get } = await listening(service);
  const fields = { ...keyHeader(), accept };
  const left = once(app.server, 'request').then(([, response]) => once(response, 'close'));
  const socket = open(url, fields);
  await asked;
  socket.destroy();
  await left;
  go();
  await expect.poll(async () => (await get(url, fields)).status, { timeout: 2000 }).toBe(200);
  await app.close();
});

test('a caller may request one file at a time; other callers are not concerned', async () => {
  // contract: permission-37
  const { service, go, asked } = waiting(answer);
  const { app, keyHeader, get } = await listening(service);
  const [greedy, other] = [keyHeader(), keyHeader()];
  const first = get(balances, greedy);
  await asked;
  for (const url of [balances, dayLines]) {
    const second = await get(url, greedy);
    expect(second.status).toBe(429);
    expect(second.answer).toContain('another file of this caller is being sent');
  }
  const others = get(dayLines, other);
  go();
  expect([(await first).status, (await others).status, (await get(dayLines, greedy)).status]).toEqual([200, 200, 200]);
  await app.close();
});

test.each([balances, dayLines])('%s that breaks off can be told from a complete one', async (url) => {
  // contract: days-30
  let asked = 0;
  const { app, keyHeader, get } = await listening(() =>
    ++asked % 2 === 0 ? refused('service_unavailable') : ok({ lines: ['{"n":1}'], next: ids.account }),
  );
  const { status, answer: body } = await get(url, keyHeader());
  expect(status).toBe(200);
  expect(body).toContain('\r\n{"n":1}\n');
  // A complete body has a last chunk of no bytes.
  expect(body).not.toMatch(/\r\n0\r\n\r\n$/);
  const old = await get(url, { ...keyHeader(), version: '1.0' });
  expect(old.status).toBe(400);
  expect(old.answer).toContain('requires HTTP/1.1');
  await app.close();
});
