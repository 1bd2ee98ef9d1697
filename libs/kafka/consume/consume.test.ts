import { afterEach, expect, test, vi } from 'vitest';
import { silent } from '#libs/postgres/test/test-database.ts';
import { createKafka } from '../client.ts';
import { Consumer } from './consume.ts';

afterEach(() => void vi.useRealTimers());

test('a consumer that waits an hour to start stays alive', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const kafka = createKafka({ brokers: ['127.0.0.1:1'], client_id: 'test' }, silent);
  const consumer = new Consumer(kafka, { groupId: 'g', topics: ['t'], handle: async () => undefined, logger: silent });
  vi.advanceTimersByTime(3_600_000);
  expect(consumer.alive()).toEqual({ ok: true });
  expect(consumer.health()).toEqual({ ok: false, reason: 'the consumer is not running' });
});
