import { createRequire } from 'node:module';
import type { Message, Producer, RecordMetadata } from 'kafkajs';
import { expect, test } from 'vitest';
import type { Entry, PublishCall } from './publish-queue.ts';
import { send } from './send.ts';

const require = createRequire(import.meta.url);
type Sender = (batch: {
  acks: number;
  topicMessages: { topic: string; messages: Message[] }[];
}) => Promise<RecordMetadata[]>;
const kafkajsSender = require('kafkajs/src/producer/sendMessages') as (options: object) => Sender;
const createRetry = require('kafkajs/src/retry') as (options: object) => unknown;

interface Written {
  broker: number;
  partitions: number[];
}

/**
 * kafkajs' own way of sending, over two brokers: partition 0 is on broker 1, and partition 1 moves
 * to it from broker 2.
 */
function movingCluster(written: Written[]): Sender {
  const leaders = [1, 2];
  const fails = Object.assign(new Error('not the leader'), { name: 'KafkaJSProtocolError', retriable: true });
  const testBroker = (nodeId: number) => ({
    nodeId,
    produce: async ({ topicData }: { topicData: { topic: string; partitions: { partition: number }[] }[] }) => {
      const partitions = topicData.flatMap((topic) => topic.partitions.map(({ partition }) => partition));
      // It responds after the other has responded.
      if (nodeId === 2) await new Promise(setImmediate);
      if (partitions.some((partition) => leaders[partition] !== nodeId) || nodeId === 2) throw fails;
      written.push({ broker: nodeId, partitions });
      return {
        topics: [
          { topicName: 'topic', partitions: partitions.map((partition) => ({ partition, errorCode: 0, offset: '0' })) },
        ],
      };
    },
  });
  const brokers = [testBroker(1), testBroker(2)];
  const cluster = {
    isConnected: () => true,
    addMultipleTargetTopics: async () => undefined,
    refreshMetadataIfNecessary: async () => undefined,
    refreshMetadata: async () => {
      leaders[1] = 1;
    },
    findTopicPartitionMetadata: () => [{ partitionId: 0 }, { partitionId: 1 }],
    findLeaderForPartitions: (_topic: string, partitions: string[]) => {
      const found: Record<number, number[]> = {};
      for (const partition of partitions.map(Number)) (found[leaders[partition] as number] ??= []).push(partition);
      return found;
    },
    findBroker: async ({ nodeId }: { nodeId: string }) => brokers[Number(nodeId) - 1],
  };
  const eosManager = {
    acquireBrokerLock: async () => undefined,
    releaseBrokerLock: async () => undefined,
    isTransactional: () => false,
    getSequence: () => 0,
    updateSequence: () => undefined,
    getProducerId: () => 1,
    getProducerEpoch: () => 0,
  };
  const logger = { error: () => undefined, debug: () => undefined };
  const partitioner = ({ message }: { message: Message }) => message.partition ?? 0;
  return kafkajsSender({
    logger,
    cluster,
    partitioner,
    eosManager,
    retrier: createRetry({ initialRetryTime: 1, retries: 3 }),
  });
}

function entry(partition: number, value = 'v'): { entry: Entry; outcome: Promise<string> } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const call: PublishCall = { unacknowledged: 1, deadline: Infinity, isBegun: true, isSettled: false, resolve, reject };
  const message = { topic: 'topic', key: null, value, headers: {}, partition };
  return {
    entry: { call, message, copy: { value, partition } },
    outcome: promise.then(
      () => 'written',
      (error: Error) => error.message,
    ),
  };
}

test('kafkajs omits a partition that moves to a broker that has responded; it is sent again', async () => {
  const entries = () => [entry(0), entry(1)];
  const messages = entries().map(({ entry: { copy } }) => copy as Message);
  const published: Written[] = [];
  const answer = await movingCluster(published)({ acks: -1, topicMessages: [{ topic: 'topic', messages }] });
  expect(answer.map(({ partition }) => partition)).toEqual([0]);
  expect(published).toEqual([{ broker: 1, partitions: [0] }]);

  const written: Written[] = [];
  const sent = entries();
  await send(
    { sendBatch: movingCluster(written) } as unknown as Producer,
    sent.map((one) => one.entry),
  );
  expect(await Promise.all(sent.map(({ outcome }) => outcome))).toEqual(['written', 'written']);
  expect(written).toEqual([
    { broker: 1, partitions: [0] },
    { broker: 1, partitions: [1] },
  ]);
});

test('a response without partitions is an error, not an endless retry', async () => {
  await expect(send({ sendBatch: async () => [] } as unknown as Producer, [entry(0).entry])).rejects.toThrow(
    'none of the partitions',
  );
});
