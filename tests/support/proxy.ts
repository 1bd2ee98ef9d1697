import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A fault applies to existing and new connections until heal(). */
export type Fault =
  /** Closes connections and does not listen. */
  | { kind: 'refuse' }
  /** Closes connections, and new ones as soon as they are accepted. */
  | { kind: 'cut' }
  /**
   * A black hole: no connection is reset, and no bytes pass in either direction. After heal() the bytes arrive, as if
   * TCP had retransmitted them.
   */
  | { kind: 'black_hole' }
  /** What the server sends is lost, also after heal(). */
  | { kind: 'silent' }
  /** The last byte of the next request on each connection is lost, and what follows it, also after heal(). */
  | { kind: 'truncate' }
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

interface ProxyOptions {
  /** HOST:PORT or a URL. */
  target: string;
  name?: string;
  /** Where it listens; by default a free port of 127.0.0.1. */
  host?: string;
  port?: number;
  random?: () => number;
}

const produceApiKey = 0;
const commitDone = Buffer.from('COMMIT\0');

/** A TCP proxy for one link from one process to one server. */
export class Proxy {
  readonly name: string;
  port: number;
  /** The number of responses that were not returned since the start. */
  cuts = 0;
  /** The number of responses that are still to be cut. */
  cutsLeft = 0;
  /** Changes what the server sends, if set. */
  alter: ((data: Buffer) => Buffer) | undefined;
  readonly #target: URL;
  readonly #host: string;
  readonly #random: () => number;
  readonly #pairs = new Set<Pair>();
  readonly #stalled = new WeakSet<Socket>();
  readonly #truncated = new WeakSet<Socket>();
  #server: Server | undefined;
  #fault: Fault | undefined;
  /** Resolves when no bytes are being delayed. */
  #open = Promise.withResolvers<void>();

  constructor({ target, name = target, host = '127.0.0.1', port = 0, random = Math.random }: ProxyOptions) {
    this.name = name;
    this.port = port;
    this.#target = new URL(target.includes('://') ? target : `tcp://${target}`);
    this.#random = random;
    this.#host = host;
    this.#open.resolve();
  }

  /** The URL of the target, through the proxy. */
  get url(): string {
    const url = new URL(this.#target);
    url.host = `${this.#host}:${this.port}`;
    return url.href;
  }

  /** Resolves with the proxy when it listens. */
  async start(): Promise<this> {
    const server = createServer((client) => this.#join(client));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.port, this.#host, resolve);
    });
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
    return this;
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
    const before = this.#fault;
    this.#fault = fault;
    this.cutsLeft = fault.kind === 'cut_answers' ? fault.times : 0;
    if (fault.kind === 'cut') this.#cutAll();
    if (fault.kind === 'refuse') await this.stop();
    else if (!this.#server) await this.start();
    // What a black hole has held is lost if its connections were closed just now.
    if (before?.kind === 'black_hole') this.#open.resolve();
    if (fault.kind === 'black_hole') this.#open = Promise.withResolvers<void>();
  }

  async heal(): Promise<void> {
    this.#fault = undefined;
    this.cutsLeft = 0;
    this.#open.resolve();
    if (!this.#server) await this.start();
  }

  /** Freezes the existing connections, as when a host disappears; new ones pass. */
  stall(): void {
    for (const { client, server } of this.#pairs) {
      this.#stalled.add(client.pause()).add(server.pause());
    }
  }

  /** Delivers to the server what was sent on stalled connections, as a network does that is mended. */
  deliver(): void {
    for (const { client } of this.#pairs) if (this.#stalled.delete(client)) client.resume();
  }

  #cutAll(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  #join(client: Socket): void {
    if (this.#fault?.kind === 'cut') return void client.destroy();
    const server = connect(Number(this.#target.port), this.#target.hostname);
    const pair: Pair = { client, server, produced: false };
    this.#pairs.add(pair);
    const requests = frameReader();
    const toServer = this.#flow(client, server);
    const toClient = this.#flow(server, client);
    client.on('data', (data) => {
      if (requests(data).includes(produceApiKey) && this.#fault?.kind === 'cut_answers') pair.produced = true;
      if (this.#truncated.has(client)) return;
      const isLast = this.#fault?.kind === 'truncate';
      if (isLast) this.#truncated.add(client);
      toServer(isLast ? data.subarray(0, -1) : data);
    });
    server.on('data', (data) => {
      if (this.#fault?.kind === 'silent') return;
      if (!this.#cuts(pair, data)) return void toClient(this.alter?.(data) ?? data);
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
    if (this.#fault?.kind !== 'cut_answers' || this.cutsLeft === 0) return false;
    const { which } = this.#fault;
    const meant = which === 'any' || (which === 'produce' ? pair.produced : data.includes(commitDone));
    if (meant) this.cutsLeft -= 1;
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
          to.once('drain', () => this.#stalled.has(from) || from.resume());
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

/** A larger frame is none: the protocol is not Kafka's. */
const maxFrameBytes = 1 << 27;

/** Returns the API key of every Kafka request that begins in these bytes. */
function frameReader(): (data: Buffer) => number[] {
  let rest = Buffer.alloc(0);
  let skip = 0;
  let isKafka = true;
  return (data) => {
    const keys: number[] = [];
    if (!isKafka) return keys;
    rest = Buffer.concat([rest, data]);
    for (;;) {
      const skipped = Math.min(skip, rest.length);
      rest = rest.subarray(skipped);
      skip -= skipped;
      if (skip > 0 || rest.length < 6) return keys;
      const bytes = rest.readInt32BE(0);
      isKafka = bytes >= 2 && bytes < maxFrameBytes;
      if (!isKafka) return keys;
      skip = 4 + bytes;
      keys.push(rest.readInt16BE(4));
    }
  };
}
