import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

export interface TestProxy {
  /** The same URL through the proxy. */
  url: string;
  /** Closes every connection and refuses new ones until open(). */
  cut(): void;
  /** Drops the server's responses from now on (connections stay open). After open(), new connections work again. */
  silence(): void;
  /** Delays the end of the next request on each connection. After open(), new connections work again. */
  truncate(): void;
  open(): void;
  close(): void;
}

/**
 * For tests: a TCP proxy in front of a server that can close connections, drop responses, or delay the end of a
 * request.
 */
export async function createTestProxy(target: string): Promise<TestProxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<Socket>();
  const truncated = new WeakSet<Socket>();
  let state: 'open' | 'cut' | 'silent' | 'truncating' = 'open';
  const server = createServer((client) => {
    if (state === 'cut') return void client.destroy();
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      pairs.add(from);
      from.on('data', (data) => {
        if ((state === 'silent' && from === upstream) || truncated.has(from)) return;
        if (state === 'truncating' && from === client) truncated.add(client);
        to.write(truncated.has(from) ? data.subarray(0, -1) : data);
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        pairs.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const dropAll = () => pairs.forEach((socket) => socket.destroy());
  return {
    url: url.href,
    cut() {
      state = 'cut';
      dropAll();
    },
    silence() {
      state = 'silent';
    },
    truncate() {
      state = 'truncating';
    },
    open() {
      state = 'open';
    },
    close() {
      dropAll();
      server.close();
    },
  };
}
