import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freePort } from '../../tools/local/ports.ts';
import { eventually } from './eventually.ts';
import { type Fault, Proxy } from './proxy.ts';

let server: Server;
let proxy: Proxy;
let received: Buffer;
const clients: Socket[] = [];

/** A server that records the received bytes and echoes them. */
beforeEach(async () => {
  received = Buffer.alloc(0);
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      received = Buffer.concat([received, data]);
      socket.write(data);
    });
  });
  const port = await freePort();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  proxy = new Proxy({ target: `127.0.0.1:${port}`, random: () => 0.5 });
  await proxy.start();
});

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await proxy.stop();
  await new Promise((resolve) => {
    server.close(resolve);
  });
});

interface Client {
  socket: Socket;
  /** Returns the bytes received so far. */
  got(): string;
  closed(): boolean;
}

async function client(): Promise<Client> {
  const socket = connect(proxy.port, '127.0.0.1');
  clients.push(socket);
  let got = '';
  let closed = false;
  socket.on('data', (data) => {
    got += data.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
  });
  await once(socket, 'connect');
  return { socket, got: () => got, closed: () => closed };
}

it('passes bytes unchanged', async () => {
  const { socket, got } = await client();
  socket.write('a');
  socket.write('b');
  await eventually(() => got() === 'ab');
});

it('refuse closes connections and refuses new ones until heal()', async () => {
  const { closed } = await client();
  await proxy.set({ kind: 'refuse' });
  await eventually(closed);
  await expect(client()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await proxy.heal();
  const { socket, got } = await client();
  socket.write('x');
  await eventually(() => got() === 'x');
});

it('black hole passes no bytes and closes no connections, old or new, until heal()', async () => {
  const old = await client();
  await proxy.set({ kind: 'black_hole' });
  const young = await client();
  old.socket.write('1');
  young.socket.write('2');
  await sleep(200);
  expect([received.length, old.closed(), young.closed()]).toEqual([0, false, false]);
  await proxy.heal();
  await eventually(() => old.got() === '1' && young.got() === '2');
});

it('cut closes connections, and new ones too, until heal()', async () => {
  const { closed } = await client();
  await proxy.set({ kind: 'cut' });
  await eventually(closed);
  const young = await client();
  await eventually(young.closed);
  await proxy.heal();
  const { socket, got } = await client();
  socket.write('x');
  await eventually(() => got() === 'x');
});

it('silent loses what the server sends', async () => {
  const { socket, got } = await client();
  await proxy.set({ kind: 'silent' });
  socket.write('lost');
  await eventually(() => received.toString() === 'lost');
  await sleep(100);
  await proxy.heal();
  socket.write('kept');
  await eventually(() => got() === 'kept');
});

it('truncate loses the end of the next request, and what follows; stall everything, on existing connections', async () => {
  const [old, stalled] = [await client(), await client()];
  await proxy.set({ kind: 'truncate' });
  old.socket.write('whole');
  await eventually(() => old.got() === 'whol');
  await proxy.heal();
  proxy.stall();
  for (const { socket } of [old, stalled]) socket.write('more');
  const young = await client();
  young.socket.write('new');
  await eventually(() => young.got() === 'new');
  expect([received.toString(), stalled.closed()]).toEqual(['wholnew', false]);
});

it('alters what the server sends', async () => {
  const { socket, got } = await client();
  proxy.alter = (data) => Buffer.from(data.toString().toUpperCase());
  socket.write('x');
  await eventually(() => got() === 'X');
});

it('closes the connection instead of the given number of responses', async () => {
  const [first, second] = [await client(), await client()];
  await proxy.set({ kind: 'cut_answers', which: 'any', times: 1 });
  first.socket.write('request');
  await eventually(first.closed);
  expect([received.toString(), first.got(), proxy.cuts]).toEqual(['request', '', 1]);
  second.socket.write('next');
  await eventually(() => second.got() === 'next');
});

/** Returns a Kafka request: its size, its API key, and a body. */
function kafkaRequest(apiKey: number): Buffer {
  const request = Buffer.alloc(20);
  request.writeInt32BE(16, 0);
  request.writeInt16BE(apiKey, 4);
  return request;
}

it.each([
  ['produce', kafkaRequest(1), kafkaRequest(0)],
  ['commit', Buffer.from('SELECT 1\0'), Buffer.from('COMMIT\0')],
] as const)('cuts only responses to %s', async (which, other, meant) => {
  const { socket, got, closed } = await client();
  await proxy.set({ kind: 'cut_answers', which, times: 5 });
  socket.write(other);
  await eventually(() => got().length === other.length);
  socket.write(meant);
  await eventually(closed);
  expect(received.subarray(other.length)).toEqual(meant);
});

it.each<[Fault, number]>([
  [{ kind: 'latency', minMs: 50, maxMs: 150 }, 180],
  [{ kind: 'sliced', bytes: 10, everyMs: 20 }, 150],
])('%o: delays bytes, completely and in order', async (fault, atLeastMs) => {
  const text = 'abcdefghij'.repeat(10);
  const { socket, got } = await client();
  await proxy.set(fault);
  const begun = performance.now();
  for (const part of text.match(/.{25}/g) ?? []) socket.write(part);
  await eventually(() => got().length === text.length);
  expect(got()).toBe(text);
  expect(performance.now() - begun).toBeGreaterThan(atLeastMs);
});
