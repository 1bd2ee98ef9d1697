import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { frameReader } from '#libs/kafka/test/test-kit.ts';

/**
 * A TCP proxy for one link from one process to one server. A fault applies to existing and new
 * connections until heal().
 */
export type Fault =
  /** Closes connections and does not listen. */
  | { kind: 'refuse' }
  /**
   * A black hole: no connection is reset, and no bytes pass in either direction. After heal() the bytes arrive, as if
   * TCP had retransmitted them.
   */
  | { kind: 'black_hole' }
  /**
   * The request reaches the server, but the connection is closed instead of returning its response,
   * `times` times.
   */
  | { kind: 'cut_answers'; which: Answers; times: number }
  /** Delays each chunk by a time between both limits, in order. */
  | { kind: 'latency'; minMs: number; maxMs: number }
  /** Passes chunks of this many bytes, one per `everyMs`. */
  | { kind: 'sliced'; bytes: number; everyMs: number };

/**
 * any: the next bytes of the server. produce: the response to a Kafka produce request. commit: the
 * response of Postgres to a COMMIT.
 */
type Answers = 'any' | 'produce' | 'commit';

interface Pair {
  client: Socket;
  server: Socket;
  /** A produce request is waiting for its response. */
  produced: boolean;
}

const produceApiKey = 0;
const commitDone = Buffer.from('COMMIT\0');

export class Proxy {
  readonly name: string;
  readonly port: number;
  /** The number of responses that were not returned since the start. */
  cuts = 0;
  readonly #targetPort: number;
  readonly #host: string;
  readonly #random: () => number;
  readonly #pairs = new Set<Pair>();
  #server: Server | undefined;
  #fault: Fault | undefined;
  #cutsLeft = 0;
  /** Resolves when no bytes are being delayed. */
  #open = Promise.withResolvers<void>();

  /** Listens on `host` and connects to 127.0.0.1. */
  constructor(name: string, port: number, targetPort: number, random: () => number, host = '127.0.0.1') {
    this.name = name;
    this.port = port;
    this.#targetPort = targetPort;
    this.#random = random;
    this.#host = host;
    this.#open.resolve();
  }

  async start(): Promise<void> {
    const server = createServer((client) => this.#join(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, this.#host, resolve);
    });
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#cutAll();
    if (server)
      await new Promise((resolve) => {
        server.close(resolve);
      });
  }

  /** Replaces the current fault. */
  async set(fault: Fault): Promise<void> {
    await this.heal();
    this.#fault = fault;
    if (fault.kind === 'cut_answers') this.#cutsLeft = fault.times;
    if (fault.kind === 'black_hole') this.#open = Promise.withResolvers<void>();
    if (fault.kind === 'refuse') await this.stop();
  }

  async heal(): Promise<void> {
    this.#fault = undefined;
    this.#open.resolve();
    if (!this.#server) await this.start();
  }

  #cutAll(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  #join(client: Socket): void {
    const server = connect(this.#targetPort, '127.0.0.1');
    const pair: Pair = { client, server, produced: false };
    this.#pairs.add(pair);
    const requests = frameReader();
    const toServer = this.#flow(client, server);
    const toClient = this.#flow(server, client);
    client.on('data', (data) => {
      if (
        this.#fault?.kind === 'cut_answers' &&
        this.#fault.which === 'produce' &&
        requests(data).includes(produceApiKey)
      )
        pair.produced = true;
      toServer(data);
    });
    server.on('data', (data) => {
      if (!this.#cuts(pair, data)) return void toClient(data);
      this.cuts += 1;
      client.resetAndDestroy();
      server.resetAndDestroy();
    });
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      const other = socket === client ? server : client;
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#pairs.delete(pair);
        // Bytes sent before the end of the connection still arrive. In a black hole, the end does not arrive.
        void this.#open.promise.then(() => (other.destroyed ? undefined : other.destroySoon()));
      });
    }
  }

  /** Reports whether the connection is closed instead of returning this response. */
  #cuts(pair: Pair, data: Buffer): boolean {
    if (this.#fault?.kind !== 'cut_answers' || this.#cutsLeft === 0) return false;
    const { which } = this.#fault;
    const meant = which === 'any' || (which === 'produce' ? pair.produced : data.includes(commitDone));
    if (meant) this.#cutsLeft -= 1;
    return meant;
  }

  /** Passes the bytes of one direction, in order. */
  #flow(from: Socket, to: Socket): (data: Buffer) => void {
    let tail: Promise<void> | undefined;
    return (data) => {
      const fault = this.#fault;
      if (!tail && (fault === undefined || fault.kind === 'cut_answers')) {
        if (!to.write(data)) {
          from.pause();
          to.once('drain', () => from.resume());
        }
        return;
      }
      const dueAt =
        performance.now() +
        (fault?.kind === 'latency' ? fault.minMs + this.#random() * (fault.maxMs - fault.minMs) : 0);
      const mine: Promise<void> = (tail ?? Promise.resolve())
        .then(() => this.#deliver(data, dueAt, to))
        .then(() => {
          if (tail === mine) tail = undefined;
        });
      tail = mine;
    };
  }

  async #deliver(data: Buffer, dueAt: number, to: Socket): Promise<void> {
    const wait = dueAt - performance.now();
    if (wait > 0) await sleep(wait);
    await this.#open.promise;
    for (let from = 0; from < data.length && !to.destroyed; ) {
      const fault = this.#fault;
      const bytes = fault?.kind === 'sliced' ? fault.bytes : data.length;
      to.write(data.subarray(from, from + bytes));
      from += bytes;
      if (fault?.kind === 'sliced') await sleep(fault.everyMs);
    }
  }
}
