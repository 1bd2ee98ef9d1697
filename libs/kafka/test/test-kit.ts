import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { pino } from 'pino';
import type { KafkaClient } from '../client.ts';
import { createKafka } from '../client.ts';
import type { Address } from '../socket-gate.ts';
import { ensureTopics } from '../topics.ts';

/** Helpers that the integration tests of this folder share. */
export const logger = pino({ level: process.env.TEST_LOG_LEVEL ?? 'silent' });

/** The brokers that the tests run against. */
function brokers(): string[] {
  const value = process.env.KAFKA_BROKERS;
  if (!value) throw new Error('KAFKA_BROKERS is not set');
  return value.split(',');
}

export function testKafka(route?: (address: Address) => Address): KafkaClient {
  return createKafka({ brokers: brokers(), client_id: 'test', ...(route ? { route } : {}) }, logger);
}

export function unique(name: string): string {
  return `${name}-${randomUUID().slice(0, 8)}`;
}

/** A table for publishers that contains every topic that a test creates. */
export function anyTopic(maxBytes = 1_000_000) {
  return { get: () => ({ partitions: 1, config: { 'max.message.bytes': String(maxBytes) } }) };
}

/** Creates a topic with a unique name. */
export async function testTopic(
  kafka: KafkaClient,
  name: string,
  partitions: number,
  config: Record<string, string> = {},
): Promise<string> {
  const topic = unique(name);
  await ensureTopics(kafka, [{ name: topic, partitions, replication_factor: 1, config }]);
  return topic;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

const produceApiKey = 0;

/** A TCP proxy in front of the brokers that can simulate network failures. */
export class FaultProxy {
  /**
   * pass: forwards everything. refuse: closes all connections and does not listen. cut: accepts connections and
   * closes them. freeze: keeps connections open but forwards nothing.
   */
  mode: 'pass' | 'refuse' | 'cut' | 'freeze' = 'pass';
  /** While above 0, each response to a produce request is dropped and its connection closed. */
  cutAnswers = 0;
  /** Changes the responses of the brokers, if set. */
  alter: ((data: Buffer) => Buffer) | undefined;
  /** The number of responses dropped so far. */
  cuts = 0;
  readonly #servers = new Map<string, net.Server>();
  readonly #ports = new Map<string, number>();
  readonly #stalled = new WeakSet<net.Socket>();
  readonly #pairs = new Set<{ client: net.Socket; server: net.Socket }>();

  /** Opens a proxy port for each broker; use `route` as the client's. */
  async open(): Promise<this> {
    for (const address of brokers()) {
      const server = net.createServer((client) => this.#join(client, address));
      this.#servers.set(address, server);
      await listen(server, 0);
      this.#ports.set(address, (server.address() as net.AddressInfo).port);
    }
    return this;
  }

  readonly route = ({ host, port }: Address): Address => {
    const proxied =
      this.#ports.get(`${host}:${port}`) ?? this.#ports.get(`${host.replace('localhost', '127.0.0.1')}:${port}`);
    if (!proxied) throw new Error(`no proxy for ${host}:${port}`);
    return { host: '127.0.0.1', port: proxied };
  };

  /** Changes the mode, also for existing connections. */
  async set(mode: FaultProxy['mode']): Promise<void> {
    const before = this.mode;
    this.mode = mode;
    for (const { client, server } of this.#pairs) {
      for (const socket of [client, server]) {
        if (mode === 'refuse' || mode === 'cut') socket.destroy();
        else if (mode === 'freeze') socket.pause();
        else if (!this.#stalled.has(socket)) socket.resume();
      }
    }
    for (const [address, server] of this.#servers) {
      if (mode === 'refuse' && before !== 'refuse')
        await new Promise((resolve) => {
          server.close(resolve);
        });
      if (mode !== 'refuse' && before === 'refuse') await listen(server, this.#ports.get(address) ?? 0);
    }
  }

  /** Freezes the existing connections forever, as when a host disappears; new ones pass. */
  stall(): void {
    for (const { client, server } of this.#pairs) {
      client.pause();
      server.pause();
      this.#stalled.add(client).add(server);
    }
  }

  /** Delivers to the brokers what was sent on stalled connections, as a network does that is mended. */
  deliver(): void {
    for (const { client } of this.#pairs) if (this.#stalled.has(client)) client.resume();
  }

  #join(client: net.Socket, address: string): void {
    if (this.mode === 'cut') return void client.destroy();
    const [host = '', port] = address.split(':');
    const server = net.connect(Number(port), host);
    const pair = { client, server };
    this.#pairs.add(pair);
    if (this.mode === 'freeze') {
      client.pause();
      server.pause();
    }
    const frames = frameReader();
    let cutNext = false;
    client.on('data', (data) => {
      if (frames(data).includes(produceApiKey) && this.cutAnswers > 0) {
        this.cutAnswers -= 1;
        cutNext = true;
      }
      server.write(data);
    });
    server.on('data', (data) => {
      if (!cutNext) return void client.write(this.alter?.(data) ?? data);
      this.cuts += 1;
      client.destroy();
      server.destroy();
    });
    const end = (): void => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('close', end).on('error', end);
  }
}

function listen(server: net.Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

/** Returns the API key of every request that begins in these bytes. */
export function frameReader(): (data: Buffer) => number[] {
  let rest = Buffer.alloc(0);
  let skip = 0;
  return (data) => {
    const keys: number[] = [];
    rest = Buffer.concat([rest, data]);
    for (;;) {
      const skipped = Math.min(skip, rest.length);
      rest = rest.subarray(skipped);
      skip -= skipped;
      if (skip > 0 || rest.length < 6) return keys;
      skip = 4 + rest.readInt32BE(0);
      keys.push(rest.readInt16BE(4));
    }
  };
}
