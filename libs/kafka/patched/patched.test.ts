import { createRequire } from 'node:module';
import { expect, test, vi } from 'vitest';
import { ShortLivedMap } from '../short-lived-map.ts';
import { decodeFetchResponse } from './fetch-response.ts';
import { FetchedBatch } from './fetched-batch.ts';
import { groupByPartition } from './group-by-partition.ts';
import { loadKafkaJs } from './kafkajs.ts';
import { NewestLeaders } from './leader-epochs.ts';

const require = createRequire(import.meta.url);
loadKafkaJs();

interface Queue {
  inflight: unknown;
  pending: unknown[];
  throttleCheckTimeoutId: NodeJS.Timeout | null;
  scheduleCheckPendingRequests(): void;
}

test('patched kafkajs sets its timer only while a request waits', () => {
  const RequestQueue = require('kafkajs/src/network/requestQueue') as new (options: object) => Queue;
  const queue = new RequestQueue({ logger: { debug: () => undefined } });
  queue.scheduleCheckPendingRequests();
  expect(queue.throttleCheckTimeoutId).toBeNull();
  queue.pending.push({});
  queue.scheduleCheckPendingRequests();
  expect(queue.throttleCheckTimeoutId).not.toBeNull();
  clearTimeout(queue.throttleCheckTimeoutId ?? undefined);
});

test('patched kafkajs stores requests in flight in a map that does not retain deleted entries', () => {
  const RequestQueue = require('kafkajs/src/network/requestQueue') as new (options: object) => Queue;
  expect(new RequestQueue({}).inflight).toBeInstanceOf(ShortLivedMap);
});

test('patched kafkajs encodes, decodes, and groups with our functions', () => {
  const response = require('kafkajs/src/protocol/requests/fetch/v11/response') as { decode: unknown };
  expect(response.decode).toBe(decodeFetchResponse);
  expect(require('kafkajs/src/consumer/batch')).toBe(FetchedBatch);
  expect(require('kafkajs/src/producer/groupMessagesPerPartition')).toBe(groupByPartition);
});

test('messages of one topic are grouped by partition, in order', () => {
  const messages = [3, 1, 3, 2, 1].map((partition, i) => ({ partition, i }));
  const group = (partitionMetadata: unknown[]) =>
    groupByPartition({ topic: 't', partitionMetadata, messages, partitioner: ({ message }) => message.partition });
  expect(group([{}])).toEqual({ 1: [messages[1], messages[4]], 2: [messages[3]], 3: [messages[0], messages[2]] });
  expect(group([])).toEqual({});
});

test('patched kafkajs never removes its last broker', () => {
  const { prototype } = require('kafkajs/src/cluster/brokerPool') as {
    prototype: { removeBroker(address: object): void };
  };
  const broker = (nodeId: number) => ({ nodeId, connectionPool: { host: 'broker', port: nodeId } });
  const pool = { brokers: { 1: broker(1), 2: broker(2) }, metadataExpireAt: 5, seedBroker: broker(2) };
  prototype.removeBroker.call(pool, { host: 'broker', port: 1 });
  expect(Object.keys(pool.brokers)).toEqual(['2']);
  prototype.removeBroker.call(pool, { host: 'broker', port: 2 });
  expect([Object.keys(pool.brokers), pool.metadataExpireAt]).toEqual([['2'], null]);
});

test('patched kafkajs joins groups and sends heartbeats on a separate connection', async () => {
  const ConnectionPool = require('kafkajs/src/network/connectionPool') as new (
    options: object,
  ) => { pool: { connect(): Promise<void> }[]; getConnectionByRequest(sent: object): Promise<object> };
  const logger = { namespace: () => logger, debug: () => undefined };
  const pool = new ConnectionPool({ logger, host: 'broker', port: 9092, clientId: 'test' });
  for (const connection of pool.pool) connection.connect = () => Promise.resolve();
  const [produce, fetch, commit, question, join, heartbeat, sync] = await Promise.all(
    [0, 1, 8, 3, 11, 12, 14].map((apiKey) => pool.getConnectionByRequest({ request: { apiKey } })),
  );
  expect([new Set([produce, commit, question]).size, new Set([join, heartbeat, sync]).size]).toEqual([1, 1]);
  expect([new Set([produce, fetch, heartbeat]).size, pool.pool.length]).toEqual([3, 3]);
});

test("patched kafkajs sends a heartbeat once per interval, also after the host's clock has stepped back", async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
  const ConsumerGroup = require('kafkajs/src/consumer/consumerGroup') as new (
    options: object,
  ) => { memberId: string; coordinator: object; heartbeat(args: { interval: number }): Promise<void> };
  const group = new ConsumerGroup({
    logger: { namespace: () => undefined },
    instrumentationEmitter: { emit: () => undefined },
  });
  let beats = 0;
  group.memberId = 'member';
  group.coordinator = { heartbeat: async () => void (beats += 1) };
  const beatAfter = async (ms: number): Promise<number> => {
    vi.advanceTimersByTime(ms);
    await group.heartbeat({ interval: 1_000 });
    return beats;
  };
  try {
    expect([await beatAfter(1_000), await beatAfter(999), await beatAfter(1)]).toEqual([1, 1, 2]);
    vi.setSystemTime(Date.now() - 3_600_000);
    expect([await beatAfter(999), await beatAfter(1)]).toEqual([2, 3]);
  } finally {
    vi.useRealTimers();
  }
});

test('of two responses about a partition, the one with the higher leader epoch wins, for a minute, in each cluster', () => {
  const newest = new NewestLeaders();
  const leaders = (clusterId: string, now: number, ...told: [leader: number, leaderEpoch: number][]) => {
    const partitionMetadata = told.map(([leader, leaderEpoch], partitionId) => ({ partitionId, leader, leaderEpoch }));
    newest.merge({ clusterId, topicMetadata: [{ topic: 't', partitionMetadata }] }, now);
    return partitionMetadata.map(({ leader }) => leader);
  };
  expect(leaders('a', 0, [1, 1], [1, 1])).toEqual([1, 1]);
  expect(leaders('a', 0, [1, 1], [2, 2])).toEqual([1, 2]);
  expect(leaders('a', 59_999, [3, 2], [1, 1])).toEqual([3, 2]);
  expect(leaders('b', 59_999, [5, 0], [5, 0])).toEqual([5, 5]);
  expect(leaders('a', 60_000, [1, 1], [1, 1])).toEqual([3, 1]);
});

test('patched kafkajs asks all brokers in turn for the leaders while it is in use, and adds those that are back', async () => {
  vi.useFakeTimers();
  const { prototype } = require('kafkajs/src/cluster/index') as {
    prototype: { findBroker(this: object, args: object): Promise<unknown> };
  };
  const asked: string[] = [];
  let leader = 1;
  const broker = {
    metadata: () =>
      Promise.resolve({ topicMetadata: [{ topic: 't', partitionMetadata: [{ partitionId: 0, leader }] }] }),
  };
  const brokerPool: { metadata: object; brokers: Record<string, object> } & Record<string, unknown> = {
    metadata: {},
    brokers: { 1: broker, 2: broker, 3: broker },
    findBroker: ({ nodeId }: { nodeId: string }) => {
      asked.push(nodeId);
      return Promise.resolve(broker);
    },
    refreshMetadata: (topics: string[]) => {
      asked.push(`refresh ${topics.join()}`);
      brokerPool.brokers['3'] = broker;
      return Promise.resolve();
    },
  };
  try {
    await prototype.findBroker.call({ brokerPool, targetTopics: new Set(['t']) }, { nodeId: 'the work' });
    await vi.advanceTimersByTimeAsync(2_000);
    expect(asked.splice(0)).toEqual(['the work', '2', '3', '1', '2']);
    expect(brokerPool.metadata).toMatchObject({ topicMetadata: [{ topic: 't' }] });
    brokerPool.brokers = { 1: broker };
    await vi.advanceTimersByTimeAsync(1_000);
    leader = 3;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked.splice(0)).toEqual(['1', '1', '1', 'refresh t', '3']);
    expect(Object.keys(brokerPool.brokers)).toEqual(['1', '3']);
    await vi.advanceTimersByTimeAsync(60_000);
    expect([asked.length, vi.getTimerCount()]).toEqual([21, 0]);
  } finally {
    vi.useRealTimers();
  }
});
