import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import net from 'node:net';
import { expect, test } from 'vitest';
import { SocketGate } from './socket-gate.ts';

/** The beginning of a request: its size and its API key. */
function request(apiKey: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeInt32BE(2);
  bytes.writeInt16BE(apiKey, 4);
  return bytes;
}

test('cutFetches ends only the fetches, close ends every connection, and the gate reports whether there is a connection', async () => {
  const server = net.createServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const gate = new SocketGate();
  const open = async () => {
    const socket = gate.createSocket({ host: '127.0.0.1', port, onConnect: () => undefined });
    await once(socket, 'connect');
    return socket;
  };
  const [fetching, producing, other] = await Promise.all([open(), open(), open()]);
  fetching.write(request(1));
  producing.write(request(0));
  other.write(request(12));
  expect(gate.isConnected).toBe(true);
  const cut = once(fetching, 'error');
  gate.cutFetches();
  expect(await cut).toEqual([expect.objectContaining({ message: 'the fetch was ended by this process' })]);
  expect([fetching.destroyed, producing.destroyed, other.destroyed]).toEqual([true, false, false]);
  const ended = Promise.all([once(producing, 'error'), once(other, 'error')]);
  const disconnected = new Promise<void>((resolve) => {
    gate.onDisconnected = resolve;
  });
  gate.close();
  expect(gate.isConnected).toBe(false);
  await Promise.all([ended, disconnected]);
  expect(() => gate.createSocket({ host: '127.0.0.1', port, onConnect: () => undefined })).toThrow(
    'the connection was closed by this process',
  );
  server.close();
});
