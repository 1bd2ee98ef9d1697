import type { LookupAddress } from 'node:dns';
import { afterEach, expect, it } from 'vitest';
import { close, hang, ok, startReceiver, status } from '../test/receiver.ts';
import { allowedAddresses, unreachable } from './addresses.ts';
import { createSender } from './send.ts';

/** Requests to real servers, on addresses that are or are not allowed. */
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function receiver(answer = ok) {
  const made = await startReceiver(answer);
  stops.push(made.stop);
  return made;
}

function sender(networks = ['127.0.0.0/8'], resolve?: (name: string) => LookupAddress[], timeoutMs = 10_000) {
  const names =
    resolve &&
    ((name: string, _options: object, callback: (error: null, found: LookupAddress[]) => void) =>
      callback(null, resolve(name)));
  const made = createSender(allowedAddresses(networks, names as never), timeoutMs);
  stops.push(() => made.stop());
  return made;
}

it('a response is recorded by its status; a receiver that hangs, closes the connection, or does not exist has none', async () => {
  // contract: webhooks-17
  const { url } = await receiver();
  expect(await sender().post(url, {}, '{}')).toMatchObject({ response_status: 204, error: null });
  expect(await sender().post((await receiver(status(500))).url, {}, '{}')).toMatchObject({
    response_status: 500,
    error: null,
  });
  const slow = await sender(undefined, undefined, 500).post((await receiver(hang)).url, {}, '{}');
  expect(slow).toMatchObject({ response_status: null, error: 'no answer within 0.5 s' });
  expect(await sender().post((await receiver(close)).url, {}, '{}')).toMatchObject({
    response_status: null,
    error: 'the connection failed (ECONNRESET)',
  });
  expect(await sender().post('http://127.0.0.1:9/', {}, '{}')).toMatchObject({
    response_status: null,
    error: 'the connection failed (ECONNREFUSED)',
  });
});

it('redirects are not followed', async () => {
  // contract: webhooks-12
  const target = await receiver();
  const { url } = await receiver(status(307, { location: target.url }));
  expect(await sender().post(url, {}, '{}')).toMatchObject({ response_status: 307 });
  expect(target.received).toEqual([]);
});

it('an endless response is not read completely', async () => {
  const endless = await receiver((response) => {
    response.writeHead(200);
    const more = () => response.writable && response.write(Buffer.alloc(64 * 1024), more);
    more();
  });
  expect(await sender().post(endless.url, {}, '{}')).toMatchObject({ response_status: 200 });
});

it('no connection is opened to an address that is not allowed, even if its name resolved differently before', async () => {
  // contract: webhooks-22
  const { port, received } = await receiver();
  for (const host of ['127.0.0.1', '[::ffff:127.0.0.1]', '0x7f.0.0.1'])
    expect(await sender([]).post(`http://${host}:${port}/`, {}, '{}')).toMatchObject({
      response_status: null,
      error: unreachable,
    });
  expect(received).toEqual([]);
  // The same name resolves first to a public address without a listener, then to this machine.
  const answers = [[{ address: '192.0.2.1', family: 4 }], [{ address: '127.0.0.1', family: 4 }]];
  const rebinding = sender([], () => answers.shift() ?? []);
  for (let i = 0; i < 2; i++)
    expect(await rebinding.post(`http://receiver.example:${port}/`, {}, '{}')).toMatchObject({
      response_status: null,
      error: unreachable,
    });
  expect(received).toEqual([]);
  expect(
    await sender(['127.0.0.1'], () => [{ address: '127.0.0.1', family: 4 }]).post(
      `http://receiver.example:${port}/`,
      {},
      '{}',
    ),
  ).toMatchObject({ response_status: 204 });
});

it('a name that does not exist is reported like one of a private network', async () => {
  // contract: webhooks-22
  // asvs: 1.3.6
  const [unknown, inside] = [sender([]), sender([], () => [{ address: '10.0.0.1', family: 4 }])];
  for (const made of [unknown, inside])
    expect(await made.post('https://no-such-name.invalid/', {}, '{}')).toMatchObject({
      response_status: null,
      error: 'its name does not resolve to a public address',
    });
});

it('a kept-alive connection that the receiver has closed is not a failure', async () => {
  const { url, received } = await receiver((response, _one, request) => {
    response.writeHead(204, { connection: 'keep-alive' }).end();
    setTimeout(() => request.socket.destroy(), 5);
  });
  const own = sender();
  for (let i = 0; i < 10; i++) {
    expect(await own.post(url, {}, '{}')).toMatchObject({ response_status: 204 });
    await new Promise((resolve) => {
      setTimeout(resolve, i);
    });
  }
  expect(received.length).toBeGreaterThanOrEqual(10);
});
