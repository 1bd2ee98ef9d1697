import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { toHeaders } from '#libs/contracts/envelope.ts';
import { MacKeys } from '#libs/contracts/mac.ts';
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
  const dead: string[] = [];
  const { handle, health } = createQueryConsumer({
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
      deadLetter: async ({ headers }: ReceivedMessage) => void dead.push(headers['ce_id'] ?? ''),
    } as never,
  });
  return { handle, health, sent, begun, dead };
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

test('a query under an unknown key is neither answered nor dead-lettered, delays no others, and makes the process not ready', async () => {
  const { handle, health, sent, dead } = start();
  const stranger = query('get_time');
  new MacKeys({ gateway: ['a key that this process does not know'] }).sign('gateway', stranger);
  const forged = query('get_time');
  forged.headers['mac'] = `${forged.headers['mac']}x`;
  await handle([forged, query('get_time')]);
  expect([sent, dead, health()]).toEqual([['get_time'], [forged.headers['ce_id']], { ok: true }]);
  await handle([stranger, query('get_time')]);
  expect([sent.length, dead.length]).toEqual([2, 1]);
  expect(health()).toEqual({
    ok: false,
    reason: expect.stringMatching(/gateway\/[\w-]{8}, which is not in GATEWAY_MAC_KEYS/),
  });
});
