import { beforeAll, describe, expect, it } from 'vitest';
import { newKey, type RestAccount, retail } from '../support/client.ts';
import { checkErrorBody, everyEndpoint, exchange, expectNothingDone, footprint } from '../support/hostile.ts';
import { useBank } from '../support/world.ts';

/**
 * Hostile input: HTTP itself, written to sockets byte by byte. Each response must belong to the
 * request that was sent.
 */
const world = useBank();
let account: RestAccount;
let base = '';
let authority = '';
beforeAll(async () => {
  account = await world.api.newAccount({ initial_deposit: 100 });
  base = world.api.baseUrl;
  authority = `Host: ${new URL(base).host}\r\nx-api-key: ${world.bank.api_key}\r\n`;
});
const deposit = () => JSON.stringify({ account_id: account.account_id, transaction_type: 'Deposit', amount: 1 });
/** A request that a second response would reveal. */
const hidden = () => `GET /accounts/${account.account_id} HTTP/1.1\r\n${authority}\r\n`;
/** The same as the last request of a connection: the server closes it after the response. */
const final = () => hidden().replace('\r\n', '\r\nConnection: close\r\n');
const post = (headers: string, rest: string, path = '/transactions') =>
  `POST ${path} HTTP/1.1\r\n${authority}Content-Type: application/json\r\n${headers}\r\n${rest}`;
const chunked = (...parts: string[]) =>
  [...parts, ''].map((part) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`).join('');

/** Expects one response, an error with the common body, and nothing more for `quietMs`. Returns its status. */
async function refused(bytes: string, quietMs = 20): Promise<number> {
  const { answers, closed } = await exchange(base, bytes, { quietMs });
  expect(answers.map(({ status }) => status)).toHaveLength(1);
  const [answer] = answers as [(typeof answers)[0]];
  const body = checkErrorBody(answer.status, answer.body);
  expect(answer.head.toLowerCase()).toContain(`x-request-id: ${body.request_id}`);
  if (answer.status === 400 && /connection: close/i.test(answer.head)) expect(closed).toBe(true);
  return answer.status;
}

describe('framing: ambiguous ends of bodies are refused', () => {
  expectNothingDone(world);
  const n = () => deposit().length;
  const cases: Record<string, () => string> = {
    'Content-Length and Transfer-Encoding': () =>
      post(`Content-Length: ${n()}\r\nTransfer-Encoding: chunked\r\n`, chunked(deposit()) + hidden()),
    'Transfer-Encoding and Content-Length': () =>
      post('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `0\r\n\r\n${hidden()}`),
    'Content-Length 0 and Transfer-Encoding': () =>
      post('Content-Length: 0\r\nTransfer-Encoding: chunked\r\n', chunked(deposit())),
    'two Content-Lengths': () => post(`Content-Length: ${n()}\r\nContent-Length: 0\r\n`, deposit() + hidden()),
    'the same Content-Length twice': () => post(`Content-Length: ${n()}\r\nContent-Length: ${n()}\r\n`, deposit()),
    'a list of Content-Lengths': () => post(`Content-Length: ${n()}, ${n()}\r\n`, deposit()),
    ...Object.fromEntries(
      ['+2', '-1', '0x2', '2.0', '2e0', '2 2', '', 'two', '\u0662', '99999999999999999999', '18446744073709551618'].map(
        (length) => [
          `Content-Length ${JSON.stringify(length)}`,
          () => post(`Content-Length: ${length}\r\n`, deposit() + hidden()),
        ],
      ),
    ),
    ...Object.fromEntries(
      [
        'xchunked',
        'chunkedx',
        'chunked, identity',
        'identity',
        'gzip',
        '"chunked"',
        'chunked;q=1',
        '\u000bchunked',
        'chunked\u0000',
        'chunked\r\nTransfer-Encoding: identity',
        'chunked\r\nTransfer-Encoding: chunked',
        '\r\n chunked',
        '',
      ].map((coding) => [
        `Transfer-Encoding ${JSON.stringify(coding)}`,
        () => post(`Transfer-Encoding: ${coding}\r\n`, chunked(deposit()) + hidden()),
      ]),
    ),
    'a blank before the colon': () =>
      post(`Content-Length: ${n()}\r\nTransfer-Encoding : chunked\r\n`, deposit() + hidden()),
    'a bare LF between headers': () =>
      post(`Content-Length: ${n()}\nTransfer-Encoding: chunked\r\n`, deposit() + hidden()),
    'a bare CR between headers': () =>
      post(`X: a\rTransfer-Encoding: chunked\r\nContent-Length: ${n()}\r\n`, deposit()),
    'an invalid chunk size': () => post('Transfer-Encoding: chunked\r\n', `zz\r\n${deposit()}\r\n0\r\n\r\n`),
    'a negative chunk size': () => post('Transfer-Encoding: chunked\r\n', `-1\r\n${deposit()}\r\n0\r\n\r\n`),
    'a prefixed chunk size': () =>
      post('Transfer-Encoding: chunked\r\n', `0x${n().toString(16)}\r\n${deposit()}\r\n0\r\n\r\n`),
    'a chunk size beyond 64 bits': () =>
      post('Transfer-Encoding: chunked\r\n', `1${'0'.repeat(17)}\r\n${deposit()}\r\n0\r\n\r\n`),
    'a chunk longer than its size': () =>
      post('Transfer-Encoding: chunked\r\n', `5\r\n${deposit()}\r\n0\r\n\r\n${hidden()}`),
    'chunks that end with LF': () => post('Transfer-Encoding: chunked\r\n', `${n().toString(16)}\n${deposit()}\n0\n\n`),
    'a complete chunk, then none': () =>
      post('Transfer-Encoding: chunked\r\n', `${n().toString(16)}\r\n${deposit()}\r\nnonsense`),
    'a compressed transfer': () => post('Transfer-Encoding: gzip, chunked\r\n', chunked(deposit())),
  };

  it.each(Object.entries(cases))('%s', async (_, bytes) => {
    expect([400, 415]).toContain(await refused(bytes(), 300));
  });

  it.each([
    ['by its Content-Length', () => post(`Content-Length: ${n() + 1}\r\n`, deposit())],
    ['by its chunks', () => post('Transfer-Encoding: chunked\r\n', chunked(deposit()).slice(0, -4))],
  ] as const)('a body that ends too early, %s', async (_, bytes) => {
    const { answers } = await exchange(base, bytes(), { halfClose: true });
    expect(answers.map(({ status, body }) => [status, checkErrorBody(status, body).code])).toEqual([
      [400, 'validation_failed'],
    ]);
  });
});

describe('a request followed by other bytes', () => {
  it('bytes after a body do not change its response', async () => {
    const before = await footprint(world);
    const { answers, closed } = await exchange(
      base,
      post(`Content-Length: ${deposit().length}\r\n`, `${deposit()}garbage\r\n\r\n`),
      { quietMs: 3_000 },
    );
    expect([answers.map(({ status }) => status), closed]).toEqual([[201], true]);
    expect(Number((await footprint(world))['v_transactions'])).toBe(Number(before['v_transactions']) + 1);
  });

  it.each<[string, () => string, number[]]>([
    ['two good ones', () => hidden() + final(), [200, 200]],
    [
      'without credentials, with a body',
      () =>
        `POST /transactions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}${final()}`,
      [401, 200],
    ],
    ['an unknown path, with a body', () => post('Content-Length: 2\r\n', `{}${final()}`, '/nowhere'), [404, 200]],
    [
      'another media type',
      () => post('Content-Length: 2\r\n', `{}${final()}`).replace('application/json', 'text/plain'),
      [415, 200],
    ],
    ['malformed JSON', () => post('Content-Length: 2\r\n', `{x${final()}`), [400, 200]],
    ['a body that is too large', () => post('Content-Length: 70000\r\n', ' '.repeat(70_000) + final()), [413, 200]],
    [
      'chunks that are too large',
      () => post('Transfer-Encoding: chunked\r\n', chunked(' '.repeat(40_000), ' '.repeat(40_000)) + final()),
      [413, 200],
    ],
    [
      'a GET with a request as its body',
      () => hidden().replace('\r\n\r\n', `\r\nContent-Length: ${hidden().length}\r\n\r\n`) + hidden() + final(),
      [200, 200],
    ],
    [
      'a GET with chunks',
      () => hidden().replace('\r\n\r\n', '\r\nTransfer-Encoding: chunked\r\n\r\n') + chunked(hidden()) + final(),
      [200, 200],
    ],
    [
      'a compressed transfer',
      () => post('Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n', chunked(deposit()) + final()),
      [415, 200],
    ],
    ['a good one and garbage', () => `${hidden()}garbage\r\n\r\n`, [200]],
  ])('both requests are answered in order: %s', async (_, bytes, statuses) => {
    const { answers } = await exchange(base, bytes(), { quietMs: 3_000 });
    expect(answers.map(({ status }) => status)).toEqual(statuses);
  });
});

describe('request lines', () => {
  expectNothingDone(world);
  const line = (text: string, headers = authority) => `${text}\r\n${headers}\r\n`;

  it.each([
    'GARBAGE',
    'GET',
    'GET /',
    'GET / HTTP',
    'GET / HTTP/1',
    'GET / HTTP/1.2',
    'GET / HTTP/2.0',
    'GET / HTTP/3',
    'GET / http/1.1',
    'GET / HTTPS/1.1',
    'PRI * HTTP/2.0',
    'get / HTTP/1.1',
    'Get / HTTP/1.1',
    'FOO / HTTP/1.1',
    'GET\t/ HTTP/1.1',
    'GET / / HTTP/1.1',
    'GET /a b HTTP/1.1',
    'GET  HTTP/1.1',
    'GET clients HTTP/1.1',
    'GET \\clients HTTP/1.1',
    'GET foo:bar HTTP/1.1',
    'GET /\u0000 HTTP/1.1',
    'GET /\u00e9 HTTP/1.1',
    'GET /clients#x=1 HTTP/1.1',
    'GET /clients?limit=1#x HTTP/1.1',
    '\u0016\u0003\u0001\u0002',
  ])('%j', async (text) => {
    expect(await refused(line(text))).toBe(400);
  });

  it.each(['TRACE', 'PUT', 'DELETE', 'PROPFIND', 'QUERY', 'M-SEARCH', 'PURGE', 'LINK'])(
    '%s is 401, then 405',
    async (method) => {
      for (const path of ['/', '/clients', '/transactions/x', 'http://example.com/clients']) {
        expect(await refused(line(`${method} ${path} HTTP/1.1`, 'Host: x\r\n'))).toBe(401);
        expect(await refused(line(`${method} ${path} HTTP/1.1`))).toBe(405);
      }
    },
  );

  it('CONNECT does not open a tunnel', async () => {
    const { answers, closed } = await exchange(base, line('CONNECT example.com:443 HTTP/1.1'), { quietMs: 20 });
    expect([answers.map(({ status }) => status), closed]).toEqual([[400], true]);
  });

  it('the asterisk is the whole server, for OPTIONS only', async () => {
    // contract: envelope-33
    for (const target of ['*', '/clients', 'http://elsewhere.example', 'http://elsewhere.example/clients']) {
      const { answers } = await exchange(base, line(`OPTIONS ${target} HTTP/1.1`), { quietMs: 20 });
      expect(answers.map(({ status }) => status)).toEqual([204]);
      expect(answers[0]?.head).toMatch(/\r\nallow: GET, HEAD, .*OPTIONS/);
    }
    expect(await refused(line('OPTIONS * HTTP/1.1', 'Host: x\r\n'))).toBe(401);
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'TRACE'])
      expect(await refused(line(`${method} * HTTP/1.1`))).toBe(400);
    for (const target of ['*?x=1', '*/', '**', '*clients', 'ftp://elsewhere.example/', 'http:/clients'])
      for (const method of ['GET', 'OPTIONS']) expect(await refused(line(`${method} ${target} HTTP/1.1`))).toBe(400);
  });

  it('upgrades, and HTTP/1.0 without Host, are ordinary requests', async () => {
    for (const upgrade of ['websocket', 'h2c', 'TLS/1.0'])
      expect(
        await refused(line('GET /nowhere HTTP/1.1', `${authority}Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`)),
      ).toBe(404);
    const { answers, closed } = await exchange(base, line('GET / HTTP/1.0', `x-api-key: ${world.bank.api_key}\r\n`), {
      quietMs: 20,
    });
    expect([answers[0]?.status, closed]).toEqual([200, true]);
  });

  it.each(everyEndpoint.map(({ method, path }) => [method, path] as const))(
    'in absolute form: %s %s',
    async (method, path) => {
      const absolute = (headers: string) =>
        refused(
          line(`${method} http://elsewhere.example${path}?nonsense=1 HTTP/1.1`, `${headers}Content-Length: 0\r\n`),
        );
      expect(await absolute('Host: x\r\n')).toBe(401);
      expect([400, 404]).toContain(await absolute(authority));
    },
  );
});

describe('headers', () => {
  expectNothingDone(world);
  const get = (headers: string, path = '/nowhere') => `GET ${path} HTTP/1.1\r\n${headers}\r\n`;

  it.each<[string, (own: string) => string, number]>([
    ['no Host', (own) => own.replace(/^Host.*\r\n/, ''), 400],
    ['two Hosts', (own) => `${own}Host: y\r\n`, 400],
    ['a folded line', (own) => `${own}X: a\r\n b\r\n`, 400],
    ['a folded key', (own) => own.replace('x-api-key: ', 'x-api-key:\r\n '), 400],
    ['a line without a colon', (own) => `${own}nonsense\r\n`, 400],
    ['no name', (own) => `${own}: x\r\n`, 400],
    ['a blank in a name', (own) => `${own}a b: x\r\n`, 400],
    ['a leading blank', (own) => ` X: y\r\n${own}`, 400],
    ['a NUL', (own) => `${own}X: a\u0000b\r\n`, 400],
    ['a control character', (own) => `${own}X: a\u0001b\r\n`, 400],
    ['80 KiB and more', (own) => `${own}X: ${'y'.repeat(81_920)}\r\n`, 431],
    ['thousands', (own) => own + 'a: b\r\n'.repeat(6000), 431],
    ['17 KiB', (own) => `${own}X: ${'y'.repeat(17_000)}\r\n`, 404],
    ['an unknown Expect', (own) => `${own}Expect: wonders\r\n`, 404],
    ['a method override', (own) => `${own}X-HTTP-Method-Override: POST\r\n`, 404],
    ['another path', (own) => `${own}X-Original-URL: /clients\r\nX-Rewrite-URL: /clients\r\n`, 404],
    ['a key named as a hop', (own) => `${own}Connection: x-api-key\r\n`, 404],
  ])('%s', async (_, change, status) => {
    expect(await refused(get(change(authority)))).toBe(status);
  });

  it.each<[string, string, string]>([
    ['none', '', 'missing_credentials'],
    ['an empty key', 'x-api-key:\r\n', 'invalid_credentials'],
    ['an empty Authorization', 'Authorization:\r\n', 'invalid_credentials'],
    ['another name', 'x_api_key: @\r\n', 'missing_credentials'],
    ['a cookie', 'Cookie: x-api-key=@\r\n', 'missing_credentials'],
    ['Basic', 'Authorization: Basic eDp5\r\n', 'invalid_credentials'],
    ['the key as a token', 'Authorization: Bearer @\r\n', 'invalid_credentials'],
    ['the key by another scheme', 'Authorization: ApiKey @\r\n', 'invalid_credentials'],
    ['both', 'x-api-key: @\r\nAuthorization: Bearer x\r\n', 'ambiguous_credentials'],
    ['both, one empty', 'x-api-key: @\r\nAuthorization:\r\n', 'ambiguous_credentials'],
    ['the key twice', 'x-api-key: @\r\nx-api-key: @\r\n', 'invalid_credentials'],
    ['a second, wrong key', 'x-api-key: @\r\nX-API-KEY: x\r\n', 'invalid_credentials'],
    ['a blank in the key', 'x-api-key: @ @\r\n', 'invalid_credentials'],
    ['bytes beyond ASCII', 'x-api-key: @\u00e9\r\n', 'invalid_credentials'],
    ['two tokens', 'Authorization: Bearer a.b.c\r\nAuthorization: Bearer a.b.c\r\n', 'invalid_credentials'],
    ['10 KB', `x-api-key: ${'@'.repeat(120)}\r\n`, 'invalid_credentials'],
  ])('credentials: %s', async (_, headers, code) => {
    const { answers } = await exchange(base, get(`Host: x\r\n${headers.replaceAll('@', world.bank.api_key)}`, '/'), {
      quietMs: 20,
    });
    expect(checkErrorBody(401, answers[0]?.body ?? '').code).toBe(code);
    expect(answers[0]?.head).toMatch(/\r\nwww-authenticate: Bearer /i);
  });

  it.each([
    ['128 characters', 'x'.repeat(128), true],
    ['129', 'x'.repeat(129), false],
    ['beyond ASCII', 'a\u00e9', false],
    ['a tab', 'a\tb', false],
    ['empty', '', false],
    ['marks', `<>"'{}%0d%0aSet-Cookie: x`, true],
  ] as const)('X-Request-Id: %s', async (_, id, isTaken) => {
    const { answers } = await exchange(base, get(`${authority}X-Request-Id: ${id}\r\n`), { quietMs: 20 });
    expect(checkErrorBody(404, answers[0]?.body ?? '').request_id === id).toBe(isTaken);
    expect(answers[0]?.head).not.toMatch(/\r\nset-cookie/i);
  });

  it.each([
    ['empty', ''],
    ['blank', '  '],
    ['256 characters', 'x'.repeat(256)],
    ['beyond ASCII', '\u00e9'],
    ['a tab', 'a\tb'],
    ['given twice', `a\r\nIdempotency-Key: ${newKey()}`],
    ['the same twice', 'a\r\nIdempotency-Key: a'],
  ])('Idempotency-Key: %s', async (_, key) => {
    const body = JSON.stringify(retail());
    for (const path of ['/clients', '/transactions', '/transfers', '/accounts', '/admin/api-keys']) {
      const { answers } = await exchange(
        base,
        post(`Idempotency-Key: ${key}\r\nContent-Length: ${body.length}\r\n`, body, path),
        { quietMs: 20 },
      );
      // The body is valid for only one of the paths. For the others, its violations are reported together with the key.
      const ofKey = checkErrorBody(400, answers[0]?.body ?? '').errors?.filter(
        ({ field }) => field === 'Idempotency-Key',
      );
      expect(ofKey).toEqual([
        { field: 'Idempotency-Key', code: 'validation_failed', message: expect.stringContaining('Idempotency-Key') },
      ]);
    }
  });
});
