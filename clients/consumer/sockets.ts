import net from 'node:net';
import tls from 'node:tls';
import type { ISocketFactory } from 'kafkajs';

/** That of kafkajs. */
const keepAliveDelayMs = 60_000;

/** kafkajs's own factory, which it does not export. */
const connect: ISocketFactory = ({ host, port, ssl, onConnect }) => {
  const socket = ssl
    ? tls.connect({ host, port, ...(net.isIP(host) ? {} : { servername: host }), ...ssl }, onConnect)
    : net.connect({ host, port }, onConnect);
  return socket.setKeepAlive(true, keepAliveDelayMs);
};

/**
 * The connections of a consumer. kafkajs offers no way to cancel its attempts to reach the brokers,
 * which would keep the process alive after a stop.
 */
export class Sockets {
  readonly #connect: ISocketFactory;
  readonly #open = new Set<net.Socket>();
  #isClosed = false;

  constructor(factory = connect) {
    this.#connect = factory;
  }

  /** The `socketFactory` for kafkajs. */
  readonly create: ISocketFactory = (args) => {
    if (this.#isClosed) throw new Error('the consumer is stopped');
    const socket = this.#connect(args);
    this.#open.add(socket);
    return socket.once('close', () => this.#open.delete(socket));
  };

  /** The `retries` for kafkajs, which evaluates them before each retry: none after close(). */
  retries(limit: number): number {
    return { valueOf: () => (this.#isClosed ? 0 : limit) } as unknown as number;
  }

  /** Closes all connections and refuses new ones. */
  close(): void {
    this.#isClosed = true;
    // kafkajs does not handle 'close': without an error its requests would wait.
    for (const socket of this.#open) socket.destroy(new Error('the consumer is stopped'));
  }
}
