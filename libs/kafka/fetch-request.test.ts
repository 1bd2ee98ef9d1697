import { createRequire } from 'node:module';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fetchRequest } from './fetch-request.ts';
import type { FetchArguments } from './fetch-request.ts';
import { createRequest } from './produce-request.ts';
import type { Request } from './produce-request.ts';

const require = createRequire(import.meta.url);
const theirFetch = require('kafkajs/src/protocol/requests/fetch/v11/request') as (options: FetchArguments) => Request;
const theirRequest = require('kafkajs/src/protocol/request') as typeof createRequest;

const int32 = fc.nat({ max: 2 ** 31 - 1 });
const partitions = fc.array(fc.record({ partition: int32, fetchOffset: fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map(String), maxBytes: int32 }), { maxLength: 5 });
const options = fc.record({
  replicaId: fc.constant(-1),
  maxWaitTime: int32,
  minBytes: int32,
  maxBytes: int32,
  isolationLevel: fc.constantFrom(0, 1, undefined),
  topics: fc.array(fc.record({ topic: fc.string({ unit: 'grapheme' }), partitions }), { maxLength: 3 }),
  rackId: fc.constantFrom('', 'rack', undefined),
});

test('every fetch request has the bytes that kafkajs makes', async () => {
  await fc.assert(fc.asyncProperty(options, int32, async (input, correlationId) => {
    const [ours, theirs] = await Promise.all([
      createRequest({ correlationId, clientId: 'client', request: fetchRequest(input) }),
      theirRequest({ correlationId, clientId: 'client', request: theirFetch(input) }),
    ]);
    expect(ours.buffer.equals(theirs.buffer)).toBe(true);
  }), { numRuns: 500 });
});
