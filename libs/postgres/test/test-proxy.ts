import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

export interface TestProxy {
  /** The same URL through the proxy. */
  url: string;
  /** Cuts every connection; new ones are refused until open(). */
  cut(): void;
  /** Swallows what the server answers from now on (connections stay open); open() ends it for new connections. */
  silence(): void;
  open(): void;
  close(): void;
}

/** For tests: a TCP proxy before a server, that can cut connections or swallow the answers. */
export async function createTestProxy(target: string): Promise<TestProxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<Socket>();
  let state: 'open' | 'cut' | 'silent' = 'open';
  const server = createServer((client) => {
    if (state === 'cut') return void client.destroy();
    const upstream = connect(Number(port), hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      pairs.add(from);
      from.on('data', (data) => void (state === 'silent' && from === upstream ? undefined : to.write(data)));
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
    open() {
      state = 'open';
    },
    close() {
      dropAll();
      server.close();
    },
  };
}
