import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { errorBodySchema } from '#libs/contracts/errors.ts';
import { httpPatience, patience } from '#libs/service/connections.ts';
import { testApp } from '../test/test-app.ts';

const { app, keyHeader } = await testApp(async () => {
  await sleep(200);
  return 'not_sent' as const;
});
const key = keyHeader()['x-api-key'];
let port = 0;
beforeAll(async () => {
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
});
afterAll(() => app.close());

/** Returns the response to these bytes, until the connection is closed or ten seconds have passed without any. */
function talk(bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    let text = '';
    const done = () => {
      socket.destroy();
      resolve(text);
    };
    socket.on('data', (chunk) => (text += String(chunk)));
    socket.on('error', done);
    socket.on('close', done);
    socket.setTimeout(10_000, done);
  });
}

function parse(answer: string) {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head, body: errorBodySchema.parse(JSON.parse(body)) };
}

test.each([
  ['no HTTP at all', 'hello\r\n\r\n', 400, 'validation_failed'],
  ['an unknown method', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'validation_failed'],
  ['a request for a tunnel', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', 400, 'validation_failed'],
  ['a malformed header', 'GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n', 400, 'validation_failed'],
  ['a NUL in a header', 'GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\0b\r\n\r\n', 400, 'validation_failed'],
  [
    'two lengths',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    400,
    'validation_failed',
  ],
  [
    'length and chunks',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    400,
    'validation_failed',
  ],
  [
    'headers beyond 80 KiB',
    `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(90_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  ['a URL beyond 80 KiB', `GET /${'x'.repeat(90_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431, 'headers_too_large'],
])('%s gets the common error body', async (_what, bytes, status, code) => {
  // contract: errors-7
  const answer = parse(await talk(bytes));
  expect([answer.status, answer.body.code]).toEqual([status, code]);
  expect(answer.head).toContain('Connection: close');
  expect(answer.head).toContain(`X-Request-Id: ${answer.body.request_id}`);
});

test('a request without Host is 401 without credentials, and 400 with them', async () => {
  expect(parse(await talk('GET / HTTP/1.1\r\nConnection: close\r\n\r\n')).status).toBe(401);
  expect(parse(await talk(`GET / HTTP/1.1\r\nConnection: close\r\nx-api-key: ${key}\r\n\r\n`)).status).toBe(400);
});

test('a request that arrived in time is answered, however late this process reads it', async () => {
  const late = await testApp(async () => 'not_sent' as const);
  await late.app.listen({ host: '127.0.0.1', port: 0 });
  late.app.server.headersTimeout = 300;
  const socket = connect((late.app.server.address() as AddressInfo).port, '127.0.0.1');
  await once(late.app.server, 'connection');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  // Longer than the second between two checks of connections.
  for (const until = performance.now() + 1_500; performance.now() < until; );
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  expect(parse(String(bytes)).status).toBe(401);
  socket.destroy();
  await late.app.close();
});

test('a body shorter than its Content-Length, and invalid chunks, are 400', async () => {
  const head = `POST /clients HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\n`;
  const answer = await talk(`${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
});

test.each([
  ['by its Content-Length', `Content-Length: 3000000\r\n\r\n${' '.repeat(3_000_000)}`],
  ['in chunks', `Transfer-Encoding: chunked\r\n\r\n${`10000\r\n${' '.repeat(0x10000)}\r\n`.repeat(40)}0\r\n\r\n`],
])('a body too large %s is read to its end, so that the response and the next request succeed', async (_what, body) => {
  const next = `GET /nope HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${key}\r\n\r\n`;
  const answer = await talk(
    `POST /clients HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\n${body}${next}`,
  );
  expect(answer.match(/HTTP\/1\.1 \d{3}/g)).toEqual(['HTTP/1.1 413', 'HTTP/1.1 404']);
});

test.each<[string, string, string]>([
  ['invalid chunks after a 401', 'Host: x\r\n', 'Transfer-Encoding: chunked\r\n\r\nzz\r\n'],
  [
    'invalid chunks after a 404',
    `Host: x\r\nx-api-key: ${key}\r\n`,
    'Transfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n',
  ],
])('a request with a response gets no second one for its body: %s', async (_what, headers, rest) => {
  const answer = await talk(`POST /nope HTTP/1.1\r\n${headers}${rest}`);
  expect(answer.match(/HTTP\/1\.1 \d{3}/g)).toHaveLength(1);
});

test('more headers than Node reads are refused, not ignored', async () => {
  const answer = parse(
    await talk(
      `GET /nope HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${key}\r\n${'a: b\r\n'.repeat(3_000)}\r\n`,
    ),
  );
  expect([answer.status, answer.body.code]).toEqual([431, 'headers_too_large']);
});

test('ids of 10 KB are unknown ids, also over a real socket', async () => {
  const answer = parse(
    await talk(
      `GET /accounts/${'x'.repeat(10_240)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nx-api-key: ${key}\r\n\r\n`,
    ),
  );
  expect([answer.status, answer.body.code]).toEqual([404, 'account_not_found']);
});

const withKey = `Host: x\r\nConnection: close\r\nx-api-key: ${key}\r\n`;
const withBody = `${withKey}Content-Type: application/json\r\n`;

test.each([
  [
    'an unknown Expect without credentials',
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: wonders\r\n\r\n',
    401,
    'missing_credentials',
  ],
  [
    'an unknown Expect is passed over',
    `GET /nope HTTP/1.1\r\n${withKey}Expect: wonders\r\n\r\n`,
    404,
    'route_not_found',
  ],
  ['two Hosts', `GET / HTTP/1.1\r\n${withKey}Host: y\r\n\r\n`, 400, 'validation_failed'],
  [
    'two Authorizations',
    'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n',
    401,
    'invalid_credentials',
  ],
  [
    'two Content-Types',
    `POST /clients HTTP/1.1\r\n${withBody}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}`,
    415,
    'unsupported_media_type',
  ],
  [
    'two Idempotency-Keys',
    `POST /clients HTTP/1.1\r\n${withBody}Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\n\r\n{}`,
    400,
    'validation_failed',
  ],
  [
    'a Content-Encoding',
    `POST /clients HTTP/1.1\r\n${withBody}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`,
    415,
    'unsupported_media_type',
  ],
  [
    'a compressed transfer',
    `POST /clients HTTP/1.1\r\n${withBody}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    415,
    'unsupported_media_type',
  ],
  [
    'an absolute form with another method',
    `PUT http://example.com/clients?x=1 HTTP/1.1\r\n${withKey}\r\n`,
    405,
    'method_not_allowed',
  ],
  ['a fragment', `GET /clients#client_type=Retail HTTP/1.1\r\n${withKey}\r\n`, 400, 'validation_failed'],
])('%s', async (_what, bytes, status, code) => {
  const answer = parse(await talk(bytes));
  expect([answer.status, answer.body.code]).toEqual([status, code]);
});

test.each([
  ['a body longer than its Content-Length', `POST /clients HTTP/1.1\r\nContent-Length: 2\r\n`, '{}garbage'],
  ['something that is no request', 'GET /clients HTTP/1.1\r\n', 'garbage\r\n\r\n'],
])('bytes after a request in progress do not get its response: %s', async (_what, head, rest) => {
  const answer = parse(
    await talk(`${head}Host: x\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\n\r\n${rest}${rest}`),
  );
  expect(answer.body.message).not.toContain('HTTP');
  expect(answer.head.match(/HTTP\/1\.1/g)).toHaveLength(1);
});

test('the gateway’s server has these limits', () => {
  const { headersTimeout, requestTimeout, keepAliveTimeout, timeout } = app.server;
  expect({ headersTimeout, requestTimeout, keepAliveTimeout, timeout }).toEqual({
    headersTimeout: httpPatience.headersTimeout,
    requestTimeout: patience.requestTimeout,
    keepAliveTimeout: patience.keepAliveTimeout,
    timeout: patience.connectionTimeout,
  });
});
