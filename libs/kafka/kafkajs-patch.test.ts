import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { patchKafkaJs } from './kafkajs-patch.ts';
import { encodeRecord } from './record-encoder.ts';

const require = createRequire(import.meta.url);

interface Queue {
  pending: unknown[];
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  scheduleCheckPendingRequests(): void;
}

test('patched kafkajs arms its timer only while a request waits, and encodes with our encoder', () => {
  patchKafkaJs();
  patchKafkaJs();
  const RequestQueue = require('kafkajs/src/network/requestQueue') as new (options: object) => Queue;
  const queue = new RequestQueue({ logger: { debug: () => undefined } });
  queue.scheduleCheckPendingRequests();
  expect(queue.throttleCheckTimeoutId).toBeNull();
  queue.pending.push({});
  queue.scheduleCheckPendingRequests();
  expect(queue.throttleCheckTimeoutId).not.toBeNull();
  clearTimeout(queue.throttleCheckTimeoutId ?? undefined);
  expect(require('kafkajs/src/protocol/recordBatch/record/v0')).toBe(encodeRecord);
});

test('patched kafkajs never forgets its last broker', () => {
  patchKafkaJs();
  const { prototype } = require('kafkajs/src/cluster/brokerPool') as { prototype: { removeBroker(address: object): void } };
  const broker = (nodeId: number) => ({ nodeId, connectionPool: { host: 'broker', port: nodeId } });
  const pool = { brokers: { 1: broker(1), 2: broker(2) }, metadataExpireAt: 5, seedBroker: broker(2) };
  prototype.removeBroker.call(pool, { host: 'broker', port: 1 });
  expect(Object.keys(pool.brokers)).toEqual(['2']);
  prototype.removeBroker.call(pool, { host: 'broker', port: 2 });
  expect([Object.keys(pool.brokers), pool.metadataExpireAt]).toEqual([['2'], null]);
});
