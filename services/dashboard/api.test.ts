import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createApi } from './api.ts';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Starts a server, and returns the API of a person whose requests have come from an address. */
async function start(listener: RequestListener) {
  server = createServer(listener);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return createApi({ url: `http://127.0.0.1:${port}` })({ id: 'request-1', ip: '203.0.113.7' }, 'a.b.c');
}

test('the API learns the token, the request id, and the address of the browser; digits of amounts are kept', async () => {
  let seen = {};
  const api = await start(({ headers }, response) => {
    seen = headers;
    response.end('{"status":"success","data":{"balance":12345678901234567.89}}');
  });
  expect(await api.get('/accounts/1')).toMatchObject({ data: { balance: '12345678901234567.89' } });
  expect(seen).toMatchObject({
    authorization: 'Bearer a.b.c',
    'x-request-id': 'request-1',
    'x-forwarded-for': '203.0.113.7',
  });
});

test('a request whose connection was closed is repeated once, if that has no second effect', async () => {
  let requests = 0;
  const api = await start((request, response) => {
    requests++;
    if (requests % 2 === 1) return void request.socket.destroy();
    response.end('{"status":"success","data":1}');
  });
  const outcomes = [];
  for (const send of [
    () => api.get('/clients'),
    () => api.post('/transfers', {}, 'key'),
    () => api.post('/transfers', {}),
    () => api.patch('/clients/1', {}),
  ]) {
    requests = 0;
    const status = await send().then(
      () => 200,
      (error: { status: number }) => error.status,
    );
    outcomes.push([status, requests]);
  }
  expect(outcomes).toEqual([
    [200, 2],
    [200, 2],
    [504, 1],
    [504, 1],
  ]);
});

test('a file has no limit, and the headers that describe it; one that is not read is closed', async () => {
  const parts = 40;
  let closed: Promise<unknown> | undefined;
  const api = await start(async ({ url }, response) => {
    closed = once(response, 'close');
    response.writeHead(200, {
      'content-type': 'application/xml',
      'content-disposition': 'attachment; filename="a.xml"',
    });
    for (let part = 0; url === '/all' ? part < parts : !response.destroyed; part++)
      if (!response.write(Buffer.alloc(1024 * 1024, ' '))) await Promise.race([once(response, 'drain'), closed]);
    response.end();
  });
  const { content, headers } = await api.getFile('/all', 'application/xml');
  expect(headers).toEqual({
    'content-type': 'application/xml',
    'content-disposition': 'attachment; filename="a.xml"',
    'content-security-policy': "default-src 'none'",
  });
  let size = 0;
  for await (const part of content) size += part.byteLength;
  expect(size).toBe(parts * 1024 * 1024);
  const unread = await api.getFile('/endless', 'application/xml');
  await unread.content.return?.();
  await closed;
});

test('an API that is away has executed nothing; a response without an end is given up', async () => {
  const away = await start(() => undefined);
  await new Promise((resolve) => server?.close(resolve));
  await expect(away.post('/transfers', {})).rejects.toMatchObject({ status: 503 });
  const part = Buffer.alloc(1024 * 1024, ' ');
  const endless = await start((_request, response) => {
    const write = () => {
      while (!response.destroyed && response.write(part));
    };
    response.on('drain', write);
    write();
  });
  await expect(endless.get('/clients')).rejects.toMatchObject({ status: 503 });
});
