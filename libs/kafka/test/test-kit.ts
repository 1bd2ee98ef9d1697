import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { type Fault, Proxy } from '../../../tests/support/proxy.ts';
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

/** Proxies in front of the brokers. */
export class FaultProxy {
  readonly #links = new Map<string, Proxy>();

  /** Opens a proxy for each broker; use `route` as the client's. */
  async open(): Promise<this> {
    for (const address of brokers())
      this.#links.set(address.replace('localhost', '127.0.0.1'), await new Proxy({ target: address }).start());
    return this;
  }

  readonly route = ({ host, port }: Address): Address => {
    const link = this.#links.get(`${host.replace('localhost', '127.0.0.1')}:${port}`);
    if (!link) throw new Error(`no proxy for ${host}:${port}`);
    return { host: '127.0.0.1', port: link.port };
  };

  async set(fault: Fault): Promise<void> {
    await Promise.all(this.#each((link) => link.set(fault)));
  }

  async heal(): Promise<void> {
    await Promise.all(this.#each((link) => link.heal()));
  }

  stall(): void {
    this.#each((link) => link.stall());
  }

  /** Delivers to the brokers what was sent on stalled connections, as a network does that is mended. */
  deliver(): void {
    this.#each((link) => link.deliver());
  }

  alter(change: Proxy['alter']): void {
    this.#each((link) => (link.alter = change));
  }

  /** The number of responses cut so far, and of those that are still to be cut. */
  cuts(): { done: number; left: number } {
    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
    return { done: sum(this.#each(({ cuts }) => cuts)), left: sum(this.#each(({ cutsLeft }) => cutsLeft)) };
  }

  #each<T>(use: (link: Proxy) => T): T[] {
    return [...this.#links.values()].map(use);
  }
}
