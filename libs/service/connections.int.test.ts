import { EventEmitter, once } from 'node:events';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { eventually } from '../../tests/support/eventually.ts';
import { boundConnections, markAnswered } from './connections.ts';

let close: () => void = () => undefined;
afterEach(() => close());

/** Starts a server that responds immediately, except to /slow, and accepts `max` connections. */
async function start(max: number, proxies: string[] = []) {
  let cuts = 0;
  const server = createServer((request, response) => {
    response.on('finish', () => markAnswered(request));
    if (request.url !== '/slow') response.end('x');
  });
  const accepted = new Map<string, Socket>();
  server.on('connection', (socket) => accepted.set(`${socket.remoteAddress} ${socket.remotePort}`, socket));
  boundConnections(server, { max, proxies, onCut: () => void cuts++ });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  close = () => {
    server.closeAllConnections();
    server.close();
  };
  const open = async (localAddress: string, text = ''): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    const from = `${socket.localAddress} ${socket.localPort}`;
    if (text !== '') socket.write(text);
    // Resolves when the server has read the bytes, or has closed the connection.
    await eventually(async () => {
      const atServer = accepted.get(from);
      return atServer && (atServer.destroyed || atServer.bytesRead >= text.length);
    });
    return socket;
  };
  const answered = async (socket: Socket): Promise<boolean> => {
    if (socket.closed) return false;
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
  };
  return { open, answered, cuts: () => cuts };
}

const [own, other] = ['127.0.0.1', '127.0.0.2'];
const half = 'GET / HTTP/1.1\r\nHost: x\r\n';

test('an address has a tenth of all connections: incomplete requests are closed first, then idle connections, never active ones', async () => {
  // contract: permission-35
  const { open, answered, cuts } = await start(30);
  const working = await open(other, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  const idle = await open(other);
  expect(await answered(idle)).toBe(true);
  const unfinished = await open(other, half);
  const elsewhere = await open(own, half);
  const [first, second] = [await open(other), await open(other)];
  await eventually(async () => unfinished.closed && idle.closed);
  await sleep(50);
  expect([unfinished, idle, working, elsewhere, first, second].map(({ closed }) => closed)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
  expect([await answered(first), await answered(second), cuts()]).toEqual([true, true, 2]);
});

test('a new connection is closed if all others of its address are active', async () => {
  const { open, answered } = await start(20);
  await Promise.all([1, 2].map(() => open(other, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n')));
  expect(await answered(await open(other))).toBe(false);
  expect(await answered(await open(own))).toBe(true);
});

test('beyond the total limit, a connection of the address with the most is closed; a proxy may have all of them', async () => {
  const { open, answered } = await start(10, [other]);
  const ofProxy = await Promise.all(Array.from({ length: 10 }, () => open(other, half)));
  const caller = await open(own);
  expect(await answered(caller)).toBe(true);
  await eventually(async () => ofProxy.some(({ closed }) => closed));
  expect(ofProxy.filter(({ closed }) => closed)).toHaveLength(1);
});

test('an IPv6 /64 counts as one address', () => {
  const server = new EventEmitter() as Server;
  boundConnections(server, { max: 10, proxies: [], onCut: () => undefined });
  const sockets = ['2001:db8:0:1::1', '2001:db8:0:1:2:3:4:5', '2001:db8:0:2::1'].map((remoteAddress) => {
    const socket = Object.assign(new PassThrough(), { remoteAddress, bytesRead: 0 });
    server.emit('connection', socket);
    return socket;
  });
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
});
