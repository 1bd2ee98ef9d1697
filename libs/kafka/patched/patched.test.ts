import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { ShortLivedMap } from '../short-lived-map.ts';
import { decodeFetchResponse } from './fetch-response.ts';
import { FetchedBatch } from './fetched-batch.ts';
import { groupByPartition } from './group-by-partition.ts';
import { loadKafkaJs } from './kafkajs.ts';

const require = createRequire(import.meta.url);
loadKafkaJs(false);

interface Queue {
  inflight: unknown;
  pending: unknown[];
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  scheduleCheckPendingRequests(): void;
}

test('patched kafkajs arms its timer only while a request waits', () => {
  const RequestQueue = require('kafkajs/src/network/requestQueue') as new (options: object) => Queue;
  const queue = new RequestQueue({ logger: { debug: () => undefined } });
  queue.scheduleCheckPendingRequests();
  expect(queue.throttleCheckTimeoutId).toBeNull();
  queue.pending.push({});
  queue.scheduleCheckPendingRequests();
  expect(queue.throttleCheckTimeoutId).not.toBeNull();
  clearTimeout(queue.throttleCheckTimeoutId ?? undefined);
});

test('patched kafkajs keeps its requests in flight where nothing outlives them', () => {
  const RequestQueue = require('kafkajs/src/network/requestQueue') as new (options: object) => Queue;
  expect(new RequestQueue({}).inflight).toBeInstanceOf(ShortLivedMap);
});

test('patched kafkajs encodes, decodes and groups with our functions', () => {
  const response = require('kafkajs/src/protocol/requests/fetch/v11/response') as { decode: unknown };
  expect(response.decode).toBe(decodeFetchResponse);
  expect(require('kafkajs/src/consumer/batch')).toBe(FetchedBatch);
  expect(require('kafkajs/src/producer/groupMessagesPerPartition')).toBe(groupByPartition);
});

test('a process has kafkajs with its patches or without, not both', () => {
  expect(() => loadKafkaJs(true)).toThrow('a process has one of the two');
});

test('messages of one topic are grouped by partition, in order', () => {
  const messages = [3, 1, 3, 2, 1].map((partition, i) => ({ partition, i }));
  const group = (partitionMetadata: unknown[]) => groupByPartition({ topic: 't', partitionMetadata, messages, partitioner: ({ message }) => message.partition });
  expect(group([{}])).toEqual({ 1: [messages[1], messages[4]], 2: [messages[3]], 3: [messages[0], messages[2]] });
  expect(group([])).toEqual({});
});

test('patched kafkajs never forgets its last broker', () => {
  const { prototype } = require('kafkajs/src/cluster/brokerPool') as { prototype: { removeBroker(address: object): void } };
  const broker = (nodeId: number) => ({ nodeId, connectionPool: { host: 'broker', port: nodeId } });
  const pool = { brokers: { 1: broker(1), 2: broker(2) }, metadataExpireAt: 5, seedBroker: broker(2) };
  prototype.removeBroker.call(pool, { host: 'broker', port: 1 });
  expect(Object.keys(pool.brokers)).toEqual(['2']);
  prototype.removeBroker.call(pool, { host: 'broker', port: 2 });
  expect([Object.keys(pool.brokers), pool.metadataExpireAt]).toEqual([['2'], null]);
});

test('patched kafkajs takes no answer about leaders that is older than what it knows, but after a minute', () => {
  const { prototype } = require('kafkajs/src/cluster/brokerPool') as { prototype: { metadata: unknown } };
  const pool = Object.create(prototype) as { metadata: unknown; metadataMaxAge: number };
  pool.metadataMaxAge = 60_000;
  const view = (name: string, ...epochs: number[]) =>
    ({ name, topicMetadata: [{ topic: 't', partitionMetadata: epochs.map((leaderEpoch, partitionId) => ({ partitionId, leaderEpoch })) }] });
  expect(pool.metadata).toBeNull();
  const taken = [view('first', 1, 1), view('newer', 1, 2), view('older', 1, 1), view('newer again', 2, 2), view('older in one', 2, 1)].map((next) => {
    pool.metadata = next;
    return (pool.metadata as { name: string }).name;
  });
  expect(taken).toEqual(['first', 'newer', 'newer', 'newer again', 'newer again']);
  pool.metadataMaxAge = 0;
  pool.metadata = view('older', 0, 0);
  expect((pool.metadata as { name: string }).name).toBe('older');
});
