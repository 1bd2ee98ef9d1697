import { createServer } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { boundConnections, httpPatience, patience } from './connections.ts';
import { testApp } from '../test/test-app.ts';

test('idle connections make room for a caller when there are too many', async () => {
  const server = createServer((_request, response) => response.end('x'));
  boundConnections(server, 3);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  const answered = async (socket: Socket): Promise<boolean> => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
  };
  const idle = [await open(), await open(), await open()];
  for (const socket of idle) expect(await answered(socket)).toBe(true);
  const closed = Promise.all(idle.map((socket) => once(socket, 'close')));
  expect(await answered(await open())).toBe(false);
  await closed;
  const next = await open();
  expect(await answered(next)).toBe(true);
  next.destroy();
  server.close();
});

test('the gateway’s server has these bounds', async () => {
  const { app } = await testApp();
  const { headersTimeout, requestTimeout, keepAliveTimeout, timeout, maxConnections } = app.server;
  expect({ headersTimeout, requestTimeout, keepAliveTimeout, timeout, maxConnections }).toEqual({
    headersTimeout: httpPatience.headersTimeout, requestTimeout: patience.requestTimeout, keepAliveTimeout: patience.keepAliveTimeout, timeout: patience.connectionTimeout, maxConnections: 10_000,
  });
  await app.close();
});
