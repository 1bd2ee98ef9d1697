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
