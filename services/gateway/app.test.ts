import { afterAll, describe, expect, test, vi } from 'vitest';
import { endpoints } from '#libs/contracts/endpoints.ts';
import { errorBodySchema } from '#libs/contracts/errors.ts';
import { periodOfRequest } from '#libs/service/fresh-ids.ts';
import { createMetrics } from '#libs/service/metrics.ts';
import { createGatewayMetrics } from './observe/gateway-metrics.ts';
import { ids, ok, samples, testApp } from './test/test-app.ts';

const echo = await testApp(({ name }) => (name === 'create_client' ? ok(samples.client) : 'not_sent'));
const { app, sent, keyHeader } = echo;
const key = keyHeader();
const json = { ...key, 'content-type': 'application/json' };
afterAll(() => app.close());

describe('authentication precedes everything else', () => {
  test.each([
    ['GET', '/'],
    ['GET', '/nowhere'],
    ['GET', '/clients/ussd/search?foo=1&foo=2'],
    ['DELETE', '/clients'],
    ['PUT', '/'],
    ['OPTIONS', '/clients'],
    ['GET', '/accounts/%ZZ'],
    ['GET', `/accounts/${'x'.repeat(10_000)}`],
    ['POST', '/clients'],
    ['POST', '/nowhere'],
  ] as const)('%s %s without credentials is 401', async (method, url) => {
    const response = await app.inject({ method, url });
    expect(response.statusCode).toBe(401);
    expect(response.headers['www-authenticate']).toContain('Bearer');
    expect(errorBodySchema.parse(response.json())).toMatchObject({
      code: 'missing_credentials',
      request_id: response.headers['x-request-id'],
    });
  });

  test.each([
    ['a malformed body', { 'content-type': 'application/json' }, '{'],
    ['an oversize body', { 'content-type': 'application/json' }, 'x'.repeat(70_000)],
    ['a wrong content type', { 'content-type': 'text/plain' }, 'x'],
    ['a malformed content type', { 'content-type': ';;;' }, 'x'],
  ])('%s without credentials is 401', async (_what, headers, payload) => {
    const response = await app.inject({ method: 'POST', url: '/clients', headers, payload });
    expect(response.statusCode).toBe(401);
  });

  test('both credentials together are ambiguous, even if each is valid or empty', async () => {
    for (const authorization of ['Bearer x', '']) {
      const response = await app.inject({ method: 'GET', url: '/', headers: { ...key, authorization } });
      expect([response.statusCode, response.json().code]).toEqual([401, 'ambiguous_credentials']);
    }
  });

  test.each(['Basic abc', 'Bearer', 'Bearer ', 'Bearer a b', 'x', 'bearer ..', `Bearer ${'é'}`])(
    'Authorization "%s" is invalid_credentials',
    async (authorization) => {
      const response = await app.inject({ method: 'GET', url: '/', headers: { authorization } });
      expect([response.statusCode, response.json().code]).toEqual([401, 'invalid_credentials']);
    },
  );

  test('a CORS preflight needs no credentials, and reveals no data', async () => {
    // asvs: 3.4.2
    const response = await app.inject({
      method: 'OPTIONS',
      url: '/clients',
      headers: { origin: 'https://a.example', 'access-control-request-method': 'POST' },
    });
    expect([response.statusCode, response.body]).toEqual([204, '']);
    expect(response.headers['access-control-allow-origin']).toBe('*');
    const allowed = String(response.headers['access-control-allow-methods']).split(', ');
    expect(allowed).toEqual(expect.arrayContaining(Object.values(endpoints).map(({ method }) => method)));
    const refused = await app.inject({ method: 'GET', url: '/', headers: { origin: 'https://a.example' } });
    expect([refused.statusCode, refused.headers['access-control-allow-origin']]).toEqual([401, '*']);
  });
});

describe('routes', () => {
  test('GET / returns exactly status, message, and apiVersion', async () => {
    // contract: envelope-17
    const response = await app.inject({ method: 'GET', url: '/', headers: key });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ status: 'success', message: 'the service is running', apiVersion: '1.2.3' });
  });

  test('GET / says that a trial is one', async () => {
    const trial = await testApp(() => 'not_sent', { isTrial: true });
    const response = await trial.app.inject({ method: 'GET', url: '/', headers: trial.keyHeader() });
    await trial.app.close();
    expect(response.json().message).toBe('the service is running, as a trial: not for real money');
  });

  test('an unknown path is 404; a known one with another method is 405 with Allow', async () => {
    const unknown = await app.inject({ method: 'POST', url: '/nowhere', headers: { ...json }, payload: '{' });
    expect([unknown.statusCode, unknown.json().code]).toEqual([404, 'route_not_found']);
    const wrong = await app.inject({ method: 'DELETE', url: '/clients/x', headers: key });
    expect([wrong.statusCode, wrong.json().code, wrong.headers['allow']]).toEqual([
      405,
      'method_not_allowed',
      'GET, HEAD, PATCH, OPTIONS',
    ]);
  });

  test('a path with an empty id is unknown', async () => {
    // contract: errors-12
    const emptied = Object.values(endpoints).flatMap(({ method, path }) =>
      [...path.matchAll(/:\w+/g)].map(({ 0: parameter }) => ({
        method,
        url: path.replace(parameter, '').replaceAll(/:\w+/g, 'x'),
      })),
    );
    expect(emptied.length).toBeGreaterThan(30);
    for (const request of emptied) {
      const response = await app.inject({ ...request, headers: { ...key, ...json }, payload: '{}' });
      expect([response.statusCode, response.json().code], `${request.method} ${request.url}`).toEqual([
        404,
        'route_not_found',
      ]);
    }
  });

  test.each(['/livez', '/readyz', '/metrics'])('%s is not on the port of the API', async (url) => {
    // contract: permission-38
    expect((await app.inject({ method: 'GET', url })).statusCode).toBe(401);
    expect((await app.inject({ method: 'GET', url, headers: key })).json().code).toBe('route_not_found');
  });

  test.each([
    ['/clients/x', 'client_not_found'],
    [`/clients/${ids.account}`, 'client_not_found'],
    [`/accounts/${'x'.repeat(10_240)}`, 'account_not_found'],
    ['/accounts/%00', 'account_not_found'],
    ['/accounts/%ZZ', 'account_not_found'],
    ['/accounts/%E0%A4', 'account_not_found'],
    [`/accounts/${ids.account.toUpperCase()}`, 'account_not_found'],
    ['/accounts/x/entries', 'account_not_found'],
    ['/accounts/number/%00/balance', 'account_not_found'],
    [`/accounts/number/${'9'.repeat(300)}/balance`, 'account_not_found'],
    ['/transactions/1', 'transaction_not_found'],
    ['/transfers/..%2f..', 'transfer_not_found'],
    ['/admin/api-keys/x', 'api_key_not_found'],
  ])('the malformed id of %s is like an unknown one', async (url, code) => {
    const before = sent.length;
    const response = await app.inject({ method: 'GET', url, headers: key });
    expect([response.statusCode, response.json().code]).toEqual([404, code]);
    expect(response.json().message).toContain('not found');
    expect(response.json().message.length).toBeLessThan(200);
    expect(sent.length).toBe(before);
  });

  test('filters with a malformed id find nothing', async () => {
    for (const url of [
      '/accounts?client_id=x',
      '/transactions?account_id=x',
      '/transactions?transfer_id=%F0%9F%98%80',
      '/transfers?account_id=',
    ]) {
      const response = await app.inject({ method: 'GET', url, headers: key });
      expect([response.statusCode, response.json()]).toEqual([200, { status: 'success', data: [] }]);
    }
  });
});

describe('bodies', () => {
  const post = (payload: string | undefined, headers: Record<string, string> = json) =>
    app.inject({ method: 'POST', url: '/clients', headers, payload });
  const good = JSON.stringify({
    client_type: 'Corporate',
    company_name: ' x ',
    registration_number: 'y',
    email: 'a@b.cc',
    contact_number: '00254 700-000001',
  });

  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])(
    '%s is accepted',
    async (type) => {
      const response = await post(good, { ...key, 'content-type': type });
      expect(response.statusCode).toBe(201);
      expect(response.headers.location).toMatch(/^\/clients\/cli_[0-9a-f]{32}$/);
      expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    },
  );

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/problem+json',
    'application/jsonx',
    'multipart/form-data; boundary=x',
    ';;;',
  ])('%s is 415', async (type) => {
    const response = await post(good, { ...key, 'content-type': type });
    expect([response.statusCode, response.json().code]).toEqual([415, 'unsupported_media_type']);
  });

  test.each([
    ['no body', undefined, 400, 'validation_failed'],
    ['an empty body', '', 400, 'validation_failed'],
    ['a list', '[]', 400, 'validation_failed'],
    ['null', 'null', 400, 'validation_failed'],
    ['half an object', '{"a":', 400, 'malformed_json'],
    ['an equal duplicate', good.replace('{', '{"email":"a@b.cc",'), 400, 'malformed_json'],
    ['64 KiB and one', `"${'x'.repeat(65_535)}"`, 413, 'body_too_large'],
  ])('%s is %i', async (_what, payload, status, code) => {
    const response = await post(payload);
    expect([response.statusCode, response.json().code]).toEqual([status, code]);
  });

  test.each(['/transactions', '/batches'])('without a body, POST %s names every required field', async (url) => {
    const response = await app.inject({ method: 'POST', url, headers: { ...key, 'idempotency-key': 'k' } });
    const required = url === '/batches' ? ['mode', 'items'] : ['account_id', 'transaction_type', 'amount'];
    expect(response.json().errors.map(({ field }: { field: string }) => field)).toEqual(required);
  });

  test('a body of exactly 64 KiB is read', async () => {
    expect((await post(`"${'x'.repeat(65_534)}"`)).statusCode).toBe(400);
  });

  test('a GET can have a content type and a body', async () => {
    const response = await app.inject({ method: 'GET', url: '/', headers: json, payload: '{' });
    expect(response.statusCode).toBe(200);
  });

  test('query parameters of a write are refused', async () => {
    const response = await app.inject({ method: 'POST', url: '/clients?dry_run=1', headers: json, payload: good });
    expect([response.statusCode, response.json().code]).toEqual([400, 'unknown_parameter']);
  });

  test('parameters, Idempotency-Key, and body are checked together, and every violation is reported', async () => {
    const response = await app.inject({
      method: 'POST',
      url: '/clients?x=1',
      headers: { ...json, 'idempotency-key': 'ü' },
      payload: { client_type: 'Corporate', company_name: '' },
    });
    expect([response.statusCode, response.json().code]).toEqual([400, 'validation_failed']);
    expect(response.json().errors.map(({ field }: { field: string }) => field)).toEqual([
      'x',
      'Idempotency-Key',
      'company_name',
      'registration_number',
      'email',
      'contact_number',
    ]);
  });
});

describe('headers', () => {
  test('a printable X-Request-Id is used, another one is replaced', async () => {
    for (const given of ['a', 'x'.repeat(128), 'id with spaces & signs']) {
      const response = await app.inject({ method: 'GET', url: '/nowhere', headers: { ...key, 'x-request-id': given } });
      expect([response.headers['x-request-id'], response.json().request_id]).toEqual([given, given]);
    }
    for (const given of ['', 'x'.repeat(129), 'tab\there', 'é']) {
      const response = await app.inject({ method: 'GET', url: '/', headers: { ...key, 'x-request-id': given } });
      const { from, to } = periodOfRequest(String(response.headers['x-request-id'])) ?? {};
      expect([Date.parse(`${from}`) < Date.now(), Date.parse(`${to}`) > Date.now()]).toEqual([true, true]);
    }
  });

  test('every response forbids caching, sniffing, and framing', async () => {
    const { headers } = await app.inject({ method: 'GET', url: '/', headers: key });
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
  });

  test('callers are limited per minute, with RateLimit headers', async () => {
    const limited = await testApp(() => 'not_sent', { rateLimitPerMinute: 2 });
    const [mine, others] = [limited.keyHeader(), limited.keyHeader()];
    const call = (headers: Record<string, string>) => limited.app.inject({ method: 'GET', url: '/', headers });
    expect((await call(mine)).headers).toMatchObject({
      'ratelimit-policy': '"requests";q=2;w=60',
      ratelimit: expect.stringMatching(/^"requests";r=1;t=(60|[1-5]?\d)$/),
      'ratelimit-limit': '2',
      'ratelimit-remaining': '1',
    });
    expect((await call(mine)).headers['ratelimit-remaining']).toBe('0');
    const third = await call(mine);
    expect([third.statusCode, third.json().code]).toEqual([429, 'rate_limited']);
    expect(Number(third.headers['retry-after'])).toBeGreaterThan(0);
    expect((await call(others)).statusCode).toBe(200);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
    expect((await call(mine)).headers['ratelimit-remaining']).toBe('1');
    vi.useRealTimers();
    await limited.app.close();
  });

  test('failed authentications are limited per address; valid credentials are still accepted', async () => {
    const limited = await testApp(() => 'not_sent', { authFailuresPerMinute: 2, trustProxy: ['127.0.0.1'] });
    const fail = (address: string) =>
      limited.app.inject({ method: 'GET', url: '/', headers: { 'x-api-key': 'x', 'x-forwarded-for': address } });
    expect([(await fail('10.0.0.1')).statusCode, (await fail('10.0.0.1')).statusCode]).toEqual([401, 401]);
    const third = await fail('10.0.0.1');
    expect([third.statusCode, third.headers['retry-after'] !== undefined]).toEqual([429, true]);
    expect((await fail('10.0.0.2')).statusCode).toBe(401);
    const network: number[] = [];
    for (const address of ['2001:db8::1', '2001:db8::2', '2001:db8::3']) network.push((await fail(address)).statusCode);
    expect(network).toEqual([401, 401, 429]);
    expect(
      (
        await limited.app.inject({
          method: 'GET',
          url: '/',
          headers: { ...limited.keyHeader(), 'x-forwarded-for': '10.0.0.1' },
        })
      ).statusCode,
    ).toBe(200);
    await limited.app.close();
  });
});

test('what has no outcome yet is counted apart from what was asked for', async () => {
  const metrics = createGatewayMetrics(createMetrics('gateway'));
  const counted = vi.spyOn(metrics, 'answered');
  const item = { index: 0, status: 'Completed', transaction: samples.transaction };
  const pending = { index: 1, status: 'Pending' };
  const head = {
    batch_id: `bat_${'a'.repeat(32)}`,
    mode: 'independent',
    actor: 'x',
    created_at: '2026-01-02T03:04:05.678Z',
  };
  const counts = { completed: 0, failed: 0, pending: 2 };
  const undecided = { ...head, status: 'Pending', counts, totals: [], results: [{ ...pending, index: 0 }, pending] };
  const replies: Record<string, object> = { get_batch: undecided };
  const { app, keyHeader } = await testApp(({ name }) => (replies[name] ? ok(replies[name]) : 'no_reply'), { metrics });
  const transaction = { account_id: ids.account, transaction_type: 'Deposit', amount: 1 };
  const post = (url: string, payload: object) =>
    app.inject({ method: 'POST', url, headers: { ...keyHeader(), 'idempotency-key': 'k' }, payload });
  const batch = { mode: 'independent', items: [{ transaction }] };
  expect((await post('/transactions', transaction)).statusCode).toBe(202);
  expect((await post('/batches', batch)).json().data).toMatchObject({ status: 'Pending' });
  // The ledger replies once all items are decided. What it has decided of a large batch shows that it works.
  replies['get_batch'] = { ...undecided, results: [item, pending] };
  expect((await post('/batches', batch)).json().data).toMatchObject({ status: 'Pending', counts: { pending: 1 } });
  replies['create_batch'] = { results: [item] };
  expect((await post('/batches', batch)).json().data).toMatchObject({ status: 'Completed' });
  expect(counted.mock.calls.map(([endpoint, status, , isPending]) => [endpoint, status, isPending])).toEqual([
    ['create_transaction', 202, true],
    ['create_batch', 200, true],
    ['create_batch', 200, false],
    ['create_batch', 200, false],
  ]);
});
