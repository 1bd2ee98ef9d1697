import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { BriefMap } from './brief-map.ts';
import { groupMessagesPerPartition } from './group-messages.ts';
import './kafkajs.ts';
import { createRequest } from './produce-request.ts';

const require = createRequire(import.meta.url);

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
  expect(new RequestQueue({}).inflight).toBeInstanceOf(BriefMap);
});

test('patched kafkajs encodes and groups with our functions', () => {
  expect(require('kafkajs/src/protocol/request')).toBe(createRequest);
  expect(require('kafkajs/src/producer/groupMessagesPerPartition')).toBe(groupMessagesPerPartition);
  const { protocol } = require('kafkajs/src/protocol/requests/produce') as { protocol(version: { version: number }): (options: object) => { request: object } };
  expect(protocol({ version: 7 })({ topicData: [] }).request).toHaveProperty('write');
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

test('patched kafkajs looks the modules of a request up once', () => {
  const { protocol } = require('kafkajs/src/protocol/requests/heartbeat') as { protocol(version: { version: number }): (options: object) => { response: unknown } };
  const module = require.cache[require.resolve('kafkajs/src/protocol/requests/heartbeat/index')];
  const make = protocol({ version: 3 });
  const { response } = make({});
  delete require.cache[require.resolve('kafkajs/src/protocol/requests/heartbeat/v3/response')];
  expect(make({}).response).toBe(response);
  expect(module?.require('./v3/response')).toBe(response);
});
