import { type AddressInfo, connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type ErrorCode, errorCodes } from '#libs/contracts/errors.ts';
import { createLogger } from '#libs/service/logger.ts';
import { ids, ok, refused, type Service, testApp } from '../test/test-app.ts';

/**
 * Tests that every request that is refused or fails is logged in one line at the default level, with method, route,
 * status, code, caller, address, and request id (contract: envelope-16). Uses the production logger, which redacts fields.
 */
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => void (await Promise.all(closing.splice(0).map((close) => close()))));

function capture() {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger(
    { service: 'gateway', instance: 'test', level: 'info' },
    { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const of = (requestId: string) => lines.filter(({ request_id }) => request_id === requestId);
  return { logger, lines, of };
}

async function open(service: Service, options: Parameters<typeof testApp>[1] = {}) {
  const captured = capture();
  const made = await testApp(service, { logger: captured.logger, ...options });
  closing.push(() => made.app.close());
  return { ...made, ...captured };
}

const deposit = { account_id: ids.account, transaction_type: 'Deposit', amount: 1 };
const message = (status: number) => (status < 500 ? 'a request was refused' : 'a request failed');

test('every refusal of a service is logged in one line; a 404 for a resource is not', async () => {
  // contract: envelope-16
  let code: ErrorCode = 'validation_failed';
  const { app, keyHeader, of } = await open(() => refused(code));
  const key = keyHeader();
  for (code of Object.keys(errorCodes) as ErrorCode[]) {
    const { status } = errorCodes[code];
    const answer = await app.inject({
      method: 'POST',
      url: '/transactions',
      headers: { ...key, 'x-request-id': `of ${code}` },
      payload: deposit,
      remoteAddress: '203.0.113.7',
    });
    expect([code, answer.statusCode, answer.json().code]).toEqual([code, status, code]);
    const line = {
      level: 'info',
      msg: message(status),
      method: 'POST',
      route: '/transactions',
      status,
      code,
      caller: expect.stringMatching(/^key:/),
      caller_address: '203.0.113.7',
    };
    expect([code, of(`of ${code}`)]).toEqual([
      code,
      status === 404 && code !== 'route_not_found' ? [] : [expect.objectContaining(line)],
    ]);
  }
});

test('requests that are shed leave one line a second with their number, and none of their own', async () => {
  // contract: envelope-16
  const { app, lines } = await open(() => ok({}), { clock: { check: () => ({ ok: false }) } });
  const shed = async (count: number) => {
    const asked = Array.from({ length: count }, () => app.inject({ method: 'POST', url: '/transactions' }));
    for (const { statusCode } of await Promise.all(asked)) expect(statusCode).toBe(503);
    await expect.poll(() => lines.length, { timeout: 5_000 }).toBeGreaterThan(0);
    return lines.splice(0);
  };
  const line = { level: 'warn', msg: 'requests were shed within a second' };
  expect(await shed(50)).toEqual([expect.objectContaining({ ...line, requests: 50 })]);
  expect(await shed(1)).toEqual([expect.objectContaining({ ...line, requests: 1 })]);
});

describe('refusals of the gateway itself', () => {
  type Asked = {
    method?: 'GET' | 'POST' | 'DELETE';
    url?: string;
    headers?: Record<string, string>;
    payload?: string | object;
    isUnknown?: boolean;
  };
  const json = { 'content-type': 'application/json' };
  test.each<[string, number, string | null, Asked]>([
    ['missing_credentials', 401, '/accounts', { isUnknown: true }],
    ['invalid_credentials', 401, '/accounts', { isUnknown: true, headers: { 'x-api-key': 'cbk_live_guess' } }],
    [
      'ambiguous_credentials',
      401,
      '/accounts',
      { isUnknown: true, headers: { 'x-api-key': 'a', authorization: 'Bearer b' } },
    ],
    ['insufficient_scope', 403, '/admin/audit', { url: '/admin/audit' }],
    ['route_not_found', 404, null, { url: '/nowhere' }],
    ['route_not_found', 404, null, { url: '/%ZZ' }],
    ['method_not_allowed', 405, null, { method: 'DELETE', url: '/accounts' }],
    [
      'body_too_large',
      413,
      '/transactions',
      { method: 'POST', url: '/transactions', headers: json, payload: `"${'x'.repeat(70_000)}"` },
    ],
    [
      'unsupported_media_type',
      415,
      '/transactions',
      { method: 'POST', url: '/transactions', headers: { 'content-type': 'text/xml' }, payload: '<a/>' },
    ],
    ['malformed_json', 400, '/transactions', { method: 'POST', url: '/transactions', headers: json, payload: '{' }],
    [
      'invalid_amount',
      400,
      '/transactions',
      { method: 'POST', url: '/transactions', payload: { ...deposit, amount: -1 } },
    ],
    ['unknown_parameter', 400, '/accounts', { url: '/accounts?x=1' }],
    ['invalid_cursor', 400, '/accounts', { url: '/accounts?cursor=x' }],
    [
      'missing_idempotency_key',
      400,
      '/batches',
      { method: 'POST', url: '/batches', payload: { mode: 'atomic', items: [] } },
    ],
  ])('%s, %i, of %s', async (code, status, route, { isUnknown = false, ...asked }) => {
    const { app, keyHeader, of } = await open(() => 'no_reply');
    const headers = {
      ...(isUnknown ? {} : keyHeader({ scopes: ['accounts:read', 'transactions:write', 'transfers:write'] })),
      ...asked.headers,
      'x-request-id': 'asked',
    };
    const answer = await app.inject({
      method: 'GET',
      url: '/accounts',
      ...asked,
      headers,
      remoteAddress: '::ffff:203.0.113.7',
    });
    expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
    const line = {
      msg: message(status),
      method: asked.method ?? 'GET',
      route,
      status,
      code,
      caller: isUnknown ? null : expect.stringMatching(/^key:/),
      caller_address: '203.0.113.7',
    };
    expect(of('asked')).toEqual([expect.objectContaining(line)]);
  });

  test('rate_limited, for a caller and for an address', async () => {
    const { app, keyHeader, of } = await open(() => ok({ items: [] }), {
      rateLimitPerMinute: 1,
      authFailuresPerMinute: 1,
    });
    const key = keyHeader();
    for (const [who, headers] of [
      ['caller', key],
      ['address', { 'x-api-key': 'cbk_live_guess' }],
    ] as const) {
      for (const id of ['first', 'second'])
        await app.inject({ url: '/clients?limit=1', headers: { ...headers, 'x-request-id': `${who} ${id}` } });
      expect(of(`${who} second`)).toEqual([
        expect.objectContaining({
          status: 429,
          code: 'rate_limited',
          caller: who === 'caller' ? expect.any(String) : null,
        }),
      ]);
    }
  });
});

test.each<[string, number, ReturnType<Service>]>([
  ['service_unavailable', 503, 'not_sent'],
  ['outcome_unknown', 504, 'no_reply'],
])('a failure is logged in one line: %s, %i', async (code, status, answered) => {
  // contract: envelope-16
  const { app, keyHeader, of } = await open(() => answered);
  const payload = {
    client_type: 'Corporate',
    company_name: 'x',
    registration_number: 'y',
    email: 'a@b.cc',
    contact_number: '+254700000001',
  };
  const answer = await app.inject({
    method: 'POST',
    url: '/clients',
    headers: { ...keyHeader(), 'x-request-id': 'failed' },
    payload,
  });
  expect([answer.statusCode, answer.json().code]).toEqual([status, code]);
  expect(of('failed')).toEqual([
    expect.objectContaining({
      level: 'info',
      msg: 'a request failed',
      method: 'POST',
      route: '/clients',
      status,
      code,
      caller: expect.stringMatching(/^key:/),
      caller_address: '127.0.0.1',
    }),
  ]);
});

test('a failure of our code is logged in one line at level error with its cause', async () => {
  // contract: errors-16
  const { app, keyHeader, of } = await open(() => ok({ items: [] }), { cursors: undefined as never });
  expect(
    (await app.inject({ url: '/clients?cursor=abc', headers: { ...keyHeader(), 'x-request-id': 'ours' } })).json(),
  ).toMatchObject({ code: 'internal_error' });
  expect(of('ours')).toEqual([
    expect.objectContaining({
      level: 'error',
      method: 'GET',
      route: '/clients',
      status: 500,
      code: 'internal_error',
      caller: expect.any(String),
      err: expect.objectContaining({ type: 'TypeError', stack: expect.any(String) }),
    }),
  ]);
});

test.each([
  ['no HTTP at all', 'hello\r\n\r\n', 400, 'validation_failed'],
  [
    'headers beyond 80 KiB',
    `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(90_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
])('an invalid request is logged in one line too: %s', async (_what, bytes, status, code) => {
  const { app, of } = await open(() => 'no_reply');
  await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1', () => socket.write(bytes));
  const answer = String((await socket.toArray()).join(''));
  const { request_id } = JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as { request_id: string };
  expect(of(request_id)).toEqual([
    expect.objectContaining({
      level: 'info',
      method: null,
      route: null,
      status,
      code,
      caller: null,
      caller_address: '127.0.0.1',
    }),
  ]);
});

test('a successful request, and a 404 for a resource, are not logged', async () => {
  const { app, keyHeader, lines } = await open(({ name }) =>
    name === 'get_client' ? refused('client_not_found') : ok({ items: [] }),
  );
  const headers = keyHeader();
  expect((await app.inject({ url: `/clients/${ids.client}`, headers })).statusCode).toBe(404);
  expect((await app.inject({ url: '/clients/malformed', headers })).statusCode).toBe(404);
  expect((await app.inject({ url: '/clients', headers })).statusCode).toBe(200);
  expect(lines).toEqual([]);
});
