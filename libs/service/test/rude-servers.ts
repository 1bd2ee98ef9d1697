import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';

/**
 * For tests of HTTP clients: servers that answer a request in every way in which a connection can end. Each has written
 * what it has to say by hand, because an HTTP server would not say it.
 */
export const rudeServers = {
  'switches protocols': (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'),
  'responds with 101': (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  'closes before the headers': (socket) => socket.end(),
  'resets before the headers': (socket) => socket.resetAndDestroy(),
  'closes within the status line': (socket) => socket.end('HTTP/1.1 20'),
  'closes within the headers': (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'),
  'resets within the headers': (socket) =>
    socket.write('HTTP/1.1 200 OK\r\nContent-Le', () => socket.resetAndDestroy()),
  'closes within the body': (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'),
  'closes within a chunk': (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nabc'),
  'resets within the body': (socket) =>
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc', () => socket.resetAndDestroy()),
  'is silent': () => undefined,
  'is silent within the headers': (socket) => socket.write('HTTP/1.1 200 OK\r\nX: '),
  'is silent within the body': (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'),
  'sends a body in drops': (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n', 'x'),
  'sends headers in drops': (socket) => drip(socket, 'HTTP/1.1 200 OK\r\nX: ', 'x'),
  'sends headers without end': (socket) => drip(socket, 'HTTP/1.1 200 OK\r\n', `X: ${'x'.repeat(8_000)}\r\n`),
  'sends interim responses without end': (socket) => drip(socket, '', 'HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n'),
  'sends an interim response, and closes': (socket) => socket.end('HTTP/1.1 100 Continue\r\n\r\n'),
  'is no HTTP server': (socket) => socket.end('220 mail.example ESMTP\r\n'),
  'sends a status that does not exist': (socket) => socket.end('HTTP/1.1 042 X\r\nContent-Length: 0\r\n\r\n'),
  'sends two lengths': (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab'),
} satisfies Record<string, (socket: Socket) => unknown>;

export type RudeName = keyof typeof rudeServers;

function drip(socket: Socket, first: string, drop: string): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(drop), 1);
  socket.on('close', () => clearInterval(timer));
}

/** Starts a server of this kind; `stop` also ends its connections. */
export async function startRudeServer(name: RudeName) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.once('data', () => rudeServers[name](socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    stop(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => {
        server.close(() => resolve());
      });
    },
  };
}
