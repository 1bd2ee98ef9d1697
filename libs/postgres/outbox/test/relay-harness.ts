import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { eventually } from '../../../../tests/support/eventually.ts';
import type { Pool, PoolOptions } from '../../pool.ts';
import { createPool } from '../../pool.ts';
import { createTestDatabase, silent } from '../../test/test-database.ts';
import { transaction } from '../../transaction.ts';
import type { OutboxEvent } from '../outbox.ts';
import { writeOutbox } from '../outbox.ts';
import type { PublishedEvent } from '../outbox-messages.ts';
import type { RelayOptions } from '../relay.ts';
import { Relay } from '../relay.ts';

export function event(n: number, more: Partial<OutboxEvent> = {}): OutboxEvent {
  return {
    id: n.toString(16).padStart(32, '0'),
    topic: 't',
    key: 'k',
    type: 't.v1',
    time: '2026-01-02T03:04:05.678Z',
    payload: `{"n":${n}}`,
    ...more,
  };
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

export function parseNumber(value: string | null): number {
  return (JSON.parse(value ?? '{"n":-1}') as { n: number }).n;
}

/** A broker in memory. `before` runs before a publication counts. */
export function fakeBroker(before: (messages: readonly unknown[]) => Promise<void> | void = () => undefined) {
  const sent: PublishedEvent[] = [];
  return {
    sent,
    numbers: () => sent.map((message) => parseNumber(message.value)),
    async publishAll(messages: PublishedEvent[]) {
      await before(messages);
      sent.push(...messages);
    },
  };
}

export interface RelayHarness {
  url: string;
  pool: Pool;
  poolOptions: PoolOptions;
  write(...events: OutboxEvent[]): Promise<void>;
  /** A running relay in this process. */
  relayWith(publisher: RelayOptions['publisher'], more?: Partial<RelayOptions>): Relay;
  /** Starts a relay in a process of its own (relay.fixture.ts), which publishes into the table published. */
  processWith(name: string, behaviour?: string): { child: ChildProcess; active: Promise<void> };
  onStop(stop: () => unknown): void;
  /** Resolves when nothing is unpublished. */
  drained(): Promise<void>;
  published(): Promise<{ relay: string; ce_id: string; key: string; value: string }[]>;
  /** For afterEach: stops the started relays and empties the tables. */
  reset(): Promise<void>;
  close(): Promise<void>;
}

/** For tests: a database with an outbox, and functions that start relays and read the results. */
export async function createRelayHarness(): Promise<RelayHarness> {
  const database = await createTestDatabase();
  const poolOptions = { url: database.url, application_name: 'relay-test', schema: 'public', max: 8 };
  const pool = createPool(poolOptions, silent);
  await pool.query(readFileSync(new URL('../outbox.sql', import.meta.url), 'utf8'));
  await pool.query(`create table published (n bigint generated always as identity, relay text, ce_id text, key text, value text);
    create table keys (key text primary key, n int not null default 0)`);
  const stops: (() => unknown)[] = [];
  return {
    url: database.url,
    pool,
    poolOptions,
    write: async (...events) => void (await transaction(pool, (client) => writeOutbox(client, events))),
    relayWith(publisher, more = {}) {
      const relay = new Relay({
        pool,
        publisher,
        schema: 'public',
        topicName: (topic) => topic,
        source: 's',
        logger: silent,
        ...more,
      });
      relay.start();
      stops.push(() => relay.stop());
      return relay;
    },
    processWith(name, behaviour = '') {
      const child = fork(fileURLToPath(new URL('./relay.fixture.ts', import.meta.url)), [
        database.url,
        name,
        behaviour,
      ]);
      stops.push(() => child.kill('SIGKILL'));
      return { child, active: new Promise((resolve) => child.once('message', () => resolve())) };
    },
    onStop: (stop) => void stops.push(stop),
    async drained() {
      await eventually(
        async () => (await pool.query('select from outbox_batches where published_at is null')).rowCount === 0,
      );
    },
    published: async () => (await pool.query('select relay, ce_id, key, value from published order by n')).rows,
    async reset() {
      for (let stop = stops.pop(); stop !== undefined; stop = stops.pop()) await stop();
      await pool.query('truncate outbox, outbox_batches, outbox_lease, published, keys');
    },
    async close() {
      await pool.end();
      await database.drop();
    },
  };
}
