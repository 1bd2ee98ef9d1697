import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RudeName, rudeServers, startRudeServer } from '#libs/service/test/rude-servers.ts';
import { fetch } from './fetch.ts';

const text = 'Zoë, 山田';
const server = createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray());
  if (request.url === '/elsewhere') return void response.writeHead(302, { location: '/' }).end();
  response.writeHead(201, { location: '/made', 'content-length': body.length });
  // A character is divided between two packets.
  response.write(body.subarray(0, 3));
  if (request.url === '/cut') setImmediate(() => response.destroy());
  else if (request.url !== '/hang') setImmediate(() => response.end(body.subarray(3)));
});
let at = '';
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  at = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const call = (url: string, signal = new AbortController().signal) =>
  fetch(url, { method: 'POST', headers: { 'x-one': '1' }, body: text, redirect: 'error', signal });

it('returns the whole response', async () => {
  const response = await call(`http://${at}/`);
  expect([response.ok, response.status, response.headers.get('location')]).toEqual([true, 201, '/made']);
  expect(await response.text()).toBe(text);
});

it('does not follow a redirection', async () => {
  expect(await call(`http://${at}/elsewhere`)).toMatchObject({ ok: false, status: 302 });
});

it('rejects as the global fetch does if there is no whole response', async () => {
  for (const [url, code] of [
    [`http://${at}/cut`, 'ECONNRESET'],
    [`https://${at}/`, 'EPROTO'],
    ['http://127.0.0.1:1/', 'ECONNREFUSED'],
  ] as const) {
    const error: unknown = await call(url).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ cause: { code } });
  }
});

it('rejects with the reason of its signal', async () => {
  const stop = new AbortController();
  const hanging = call(`http://${at}/hang`, stop.signal);
  await once(server, 'request');
  stop.abort('enough');
  await expect(hanging).rejects.toBe('enough');
  await expect(call(`http://${at}/`, AbortSignal.abort('never'))).rejects.toBe('never');
});

it.concurrent.each(Object.keys(rudeServers) as RudeName[])(
  'has no success if the server %s, and ends',
  async (name) => {
    const rude = await startRudeServer(name);
    const outcome: unknown = await call(rude.url, AbortSignal.timeout(1_000)).catch((thrown: unknown) => thrown);
    expect(outcome).not.toMatchObject({ ok: true });
    await rude.stop();
  },
);
