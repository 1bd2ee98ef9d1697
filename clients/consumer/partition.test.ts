import type { KafkaMessage } from 'kafkajs';
import { expect, it } from 'vitest';
import { noCounts } from './measures.ts';
import { Partition, type Shared } from './partition.ts';

const name = { topic: 'transactions', partition: 0 };
const headers = Object.fromEntries(['id', 'type', 'source', 'subject', 'time'].map((key) => [`ce_${key}`, 'any']));
const message = { headers, value: Buffer.from('{}') } as unknown as KafkaMessage;
const silent = { info: () => undefined, warn: () => undefined };

/** A partition of which one event is being handled while it is assigned anew. */
async function assignedAnew() {
  const begun = Promise.withResolvers<void>();
  const handling = Promise.withResolvers<void>();
  const shared: Shared = {
    options: {
      kafka: { brokers: [] },
      groupId: 'group',
      handlers: {},
      otherwise: () => {
        begun.resolve();
        return handling.promise;
      },
      retry: { firstPauseMs: 7 },
      logger: silent,
      sessionTimeoutMs: 6_000,
      handlerLimitMs: 60_000,
    },
    deadLetter: async () => undefined,
    reportedTypes: new Set(),
    counts: noCounts(),
    partitions: new Map(),
  };
  const partition = new Partition(shared, name);
  const taken = partition.take({ ...name, offset: 5n, message });
  await begun.promise;
  partition.forgetPlaces();
  return { partition, taken, handling };
}

it('an event whose handler fails after the partition was assigned anew is retried', async () => {
  const { taken, handling } = await assignedAnew();
  handling.reject(new Error('the database is away'));
  expect(await taken).toBe(7);
});

it('an event that is handled after the partition was assigned anew does not change the new position', async () => {
  const { partition, taken, handling } = await assignedAnew();
  partition.position = 100n;
  handling.resolve();
  expect(await taken).toBe('done');
  expect(partition.position).toBe(100n);
});
