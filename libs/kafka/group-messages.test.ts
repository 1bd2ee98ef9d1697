import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { groupMessagesPerPartition } from './group-messages.ts';

const theirs = createRequire(import.meta.url)('kafkajs/src/producer/groupMessagesPerPartition') as typeof groupMessagesPerPartition;

test('the same groups as kafkajs, in the same order', () => {
  fc.assert(fc.property(fc.array(fc.nat({ max: 11 })), fc.nat({ max: 12 }), (partitions, count) => {
    const options = { topic: 't', partitionMetadata: Array(count).fill({}), messages: partitions.map((partition, i) => ({ partition, i })), partitioner: ({ message }: { message: { partition: number } }) => message.partition };
    expect(Object.entries(groupMessagesPerPartition(options))).toEqual(Object.entries(theirs(options)));
  }));
});
