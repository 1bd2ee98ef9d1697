import net from 'node:net';
import tls from 'node:tls';

export interface Address {
  host: string;
  port: number;
}

/** kafkajs' arguments for a socket factory. */
interface SocketArguments extends Address {
  ssl?: tls.ConnectionOptions;
  onConnect: () => void;
}

const fetchApiKey = 1;
const keepAliveDelayMs = 30_000;

/**
 * Contains all sockets of one kafkajs producer, consumer, or admin. It shows whether there is a connection,
 * which kafkajs does not report. It is also the only reliable way to end a kafkajs object: after close(),
 * nothing can be written and no retry can reconnect.
 */
export class SocketGate {
  /** Called when the last connection has closed. */
  onDisconnected: () => void = () => undefined;
  readonly #sockets = new Set<net.Socket>();
  /** The sockets used for fetching; kafkajs uses them for nothing else. */
  readonly #fetching = new Set<net.Socket>();
  readonly #route: (address: Address) => Address;
  #closed = false;

  /** `route` maps the address that kafkajs uses to the one to connect to. */
  constructor(route: (address: Address) => Address = (address) => address) {
    this.#route = route;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The `socketFactory` for kafkajs: plain or TLS, without Nagle's delay. */
  readonly createSocket = ({ host, port, ssl, onConnect }: SocketArguments): net.Socket => {
    if (this.#closed) throw new Error('the connection was closed by this process');
    const address = this.#route({ host, port });
    // The certificate is checked against the broker's advertised name, whatever the route.
    const socket = ssl
      ? tls.connect({ ...address, ...(net.isIP(host) ? {} : { servername: host }), ...ssl }, onConnect)
      : net.connect({ ...address }, onConnect);
    socket.setKeepAlive(true, keepAliveDelayMs);
    socket.setNoDelay(true);
    // While it connects, kafkajs calls unref() once for every waiting caller, and each call adds a listener.
    socket.setMaxListeners(0);
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#fetching.delete(socket);
      if (this.#sockets.size === 0) this.onDisconnected();
    });
    this.#watchWrites(socket);
    return socket;
  };

  get isConnected(): boolean {
    return [...this.#sockets].some((socket) => !socket.connecting && !socket.destroyed);
  }

  /** Closes every connection immediately and refuses new ones. */
  close(): void {
    this.#closed = true;
    for (const socket of this.#sockets) {
      // kafkajs handles 'error' and 'end' but not 'close': without an error its requests would hang.
      socket.destroy(new Error('the connection was closed by this process'));
    }
  }

  /** Ends only the fetches that wait at the brokers. */
  cutFetches(): void {
    for (const socket of this.#fetching) socket.destroy(new Error('the fetch was ended by this process'));
  }

  /** A Kafka request starts with its size (int32) and its API key (int16). */
  #watchWrites(socket: net.Socket): void {
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
    const watched = (chunk: unknown, ...rest: unknown[]): boolean => {
      const apiKey = Buffer.isBuffer(chunk) && chunk.length >= 6 ? chunk.readInt16BE(4) : undefined;
      if (apiKey === fetchApiKey) this.#fetching.add(socket);
      return write(chunk, ...rest);
    };
    socket.write = watched as typeof socket.write;
  }
}
