import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { toHeaders } from '#libs/contracts/envelope.ts';
import type { MessageName } from '#libs/contracts/messages.ts';
import { messageType } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { createQueryConsumer } from './query-consumer.ts';
import type { Answer } from './replies.ts';
import { signedForTest, testKeys } from './test/keys.ts';

let ids = 0;
const clock = { now: Date.now() };
function query(name: MessageName, replyBy = clock.now + 5_000): ReceivedMessage {
  const id = `qry_${++ids}`;
  const headers = toHeaders({
    message_id: id,
    type: messageType(name),
    source: '',
    time: new Date().toISOString(),
    subject: '',
    request_id: id,
    actor: 'a',
    reply_by: new Date(replyBy).toISOString(),
    correlation_id: id,
    reply_topic: 'replies',
    reply_partition: 1,
  });
  return signedForTest({
    topic: 'ledger.queries',
    partition: 0,
    offset: BigInt(ids),
    key: null,
    value: Buffer.from('{}'),
    headers,
    timestamp_ms: 0,
  });
}

/**
 * Trial balances run separately, two at a time, when `free` is true; all other queries run
 * immediately.
 */
function start() {
  const sent: string[] = [];
  const begun: (() => void)[] = [];
  const handle = createQueryConsumer({
    takes: () => true,
    isBatched: () => false,
    concurrency: 1,
    prefix: '',
    keys: testKeys,
    logger: pino({ level: 'silent' }),
    now: () => clock.now,
    apart: { takes: ({ name }) => name === 'get_trial_balance', concurrency: 2 },
    answer: async ([item]) => {
      if (item?.content.name === 'get_trial_balance') await new Promise<void>((resolve) => void begun.push(resolve));
      return [{ ok: true, data: item?.content.name }];
    },
    replies: {
      send: (answers: Answer[]) =>
        void sent.push(...answers.map(({ body }) => (body.ok ? String(body.data) : body.refusal.code))),
      deadLetter: async () => undefined,
    } as never,
  });
  return { handle, sent, begun };
}

test('expensive queries run separately with limited concurrency, and delay no others', async () => {
  const { handle, sent, begun } = start();
  await handle([...Array.from({ length: 5 }, () => query('get_trial_balance')), query('get_time')]);
  await handle([query('get_time')]);
  expect([sent, begun.length]).toEqual([['get_time', 'get_time'], 2]);
  for (let i = 0; i < 5; i++) {
    begun[i]?.();
    await turn();
  }
  expect(sent).toHaveLength(7);
});

test('when a hundred queries are waiting, more are refused, and expired ones are dropped', async () => {
  const { handle, sent, begun } = start();
  await handle([
    query('get_trial_balance'),
    query('get_trial_balance'),
    query('get_trial_balance', clock.now + 50),
    ...Array.from({ length: 101 }, () => query('get_trial_balance')),
  ]);
  expect(sent).toEqual(['service_unavailable', 'service_unavailable']);
  clock.now += 100;
  for (let i = 0; i < begun.length; i++) {
    begun[i]?.();
    await turn();
  }
  expect(sent.filter((name) => name === 'get_trial_balance')).toHaveLength(101);
});
