import { setTimeout as sleep } from 'node:timers/promises';
import { type IHeaders, type KafkaMessage, logLevel } from 'kafkajs';
import { describe, expect, it, vi } from 'vitest';
import { eventually } from '../../tests/support/eventually.ts';
import { DeadLetter, type Gap, type Letter, type Loss, prometheusText, type Redriven } from './index.ts';
import { Places } from './places.ts';
import {
  accountId,
  admin,
  completed,
  consumer,
  event,
  kafka,
  type Options,
  range,
  send,
  silent,
  topicPrefix,
  useTopics,
} from './test/topics.fixture.ts';

useTopics();

describe('a handler that fails', () => {
  it('is retried in order while the other partitions continue', async () => {
    await send(...range(3).flatMap((n) => [event('a', n, 0), event('b', n, 1)]));
    const done: string[] = [];
    let failures = 0;
    const handle = ({ id }: { id: string }) => {
      if (id === 'a-2' && (!done.includes('b-3') || failures < 2)) {
        failures += 1;
        throw new Error('not yet');
      }
      done.push(id);
    };
    await consumer({
      handlers: { [completed]: handle },
      retry: { firstPauseMs: 20, maxPauseMs: 50 },
    }).start();
    await eventually(async () => done.length >= 6);
    expect(done.filter((id) => id.startsWith('a'))).toEqual(['a-1', 'a-2', 'a-3']);
    expect(done.indexOf('b-3')).toBeLessThan(done.indexOf('a-2'));
    expect(failures).toBeGreaterThanOrEqual(2);
  });

  it('stops its partition, which health, lag, and metrics report, until it succeeds', async () => {
    await send(...range(3).map((n) => event('a', n, 0)));
    const done: string[] = [];
    let isAway = true;
    const made = consumer({
      handlers: {
        [completed]: ({ id }) => {
          if (isAway) throw new Error('the database is away');
          done.push(id);
        },
      },
      handlerLimitMs: 200,
      retry: { firstPauseMs: 20, maxPauseMs: 50 },
    });
    await made.start();
    await eventually(async () => !made.health().ok && made.metrics().failures > 8);
    expect(made.health()).toMatchObject({
      alive: true,
      reason: expect.stringMatching(
        /transactions\/0 has been at offset 0 since .*: its handler fails: the database is away$/,
      ),
      standing: [{ partition: 0, offset: 0n, isRunning: false, error: 'the database is away' }],
    });
    await send(event('a', 4, 0));
    await eventually(async () => made.metrics().partitions.find(({ partition }) => partition === 0)?.lag === 4);
    expect(made.metrics()).toMatchObject({ handled: 0, dead_letters: 0 });
    isAway = false;
    await eventually(async () => done.length >= 4 && made.health().ok);
    expect(done).toEqual(['a-1', 'a-2', 'a-3', 'a-4']);
    await eventually(async () =>
      made.metrics().partitions.every(({ lag, standing_seconds }) => lag + standing_seconds === 0),
    );
    expect(prometheusText(made.metrics())).toMatch(
      /^# TYPE bank_consumer_handled_total counter\nbank_consumer_handled_total 4\n(.*\n)*bank_consumer_lag\{topic=".*transactions",partition="0"\} 0\n/,
    );
  });

  it('that hangs makes alive false, because a restart would help', async () => {
    await send(event('a', 1, 0));
    const released = Promise.withResolvers<void>();
    const made = consumer({ handlers: { [completed]: () => released.promise }, handlerLimitMs: 100 });
    await made.start();
    await eventually(async () => !made.health().alive);
    expect(made.health()).toMatchObject({
      ok: false,
      reason: expect.stringContaining('its handler has not returned'),
      standing: [{ isRunning: true, failures: 0 }],
    });
    released.resolve();
    await eventually(async () => made.health().ok);
  });
});

describe('dead letters', () => {
  it('are events that violate the contract or that a handler rejects; bytes are unchanged, reasons are in headers, and processing continues', async () => {
    const poison = event('a', 2, 3);
    const noJson = event('a', 9, 3, { id: 'no-json', value: '{"transaction":' });
    await send(event('a', 1, 3), poison, noJson, event('a', 3, 3));
    const attempts: string[] = [];
    const letters: Letter[] = [];
    const gaps: Gap[] = [];
    const handle = ({ id }: { id: string }) => {
      attempts.push(id);
      if (id === 'a-2') throw new DeadLetter('never', { cause: new RangeError('deeper') });
    };
    await consumer({
      handlers: { [completed]: handle },
      retry: { firstPauseMs: 20 },
      onDeadLetter: (letter) => void letters.push(letter),
      onGap: (gap) => void gaps.push(gap),
    }).start();
    await eventually(async () => attempts.includes('a-3'));
    // If the dead letter cannot be written immediately, the event is handled again.
    expect(attempts.join(' ')).toMatch(/^a-1( a-2)+ a-3$/);
    expect(gaps).toEqual([]);
    expect(letters.map(({ error }) => error.name)).toEqual(['DeadLetter', 'InvalidEventError']);
    const [first, second] = await readAll(`${topicPrefix}group.DLT`, 2);
    expect(first).toMatchObject({ partition: 0, key: poison.key, value: poison.value });
    expect(second).toMatchObject({ partition: 0, key: noJson.key, value: noJson.value });
    expect(texts(first?.headers)).toMatchObject({
      ...poison.headers,
      'kafka_dlt-original-topic': `${topicPrefix}transactions`,
      'kafka_dlt-original-consumer-group': `${topicPrefix}group`,
      'kafka_dlt-exception-fqcn': 'DeadLetter',
      'kafka_dlt-exception-message': 'never',
      'kafka_dlt-exception-cause-fqcn': 'RangeError',
      'kafka_dlt-exception-stacktrace': expect.stringContaining('DeadLetter: never'),
    });
    const bytes = (name: string) => first?.headers?.[name] as Buffer;
    expect(bytes('kafka_dlt-original-partition').readInt32BE()).toBe(3);
    expect(bytes('kafka_dlt-original-offset').readBigInt64BE()).toBe(1n);
    expect(Number(bytes('kafka_dlt-original-timestamp').readBigInt64BE())).toBeGreaterThan(1.7e12);
  });

  it('are given to the handlers again when redriven, out of order and once; those that fail again are dead-lettered again', async () => {
    await send(event('a', 1, 0), event('a', 2, 0), event('a', 3, 0), event('b', 1, 1));
    const done: string[] = [];
    let isBroken = true;
    const gaps: Gap[] = [];
    const made = consumer({
      handlers: {
        [completed]: ({ id, redriven }) => {
          if (id === 'b-1' || (id === 'a-2' && isBroken)) throw new DeadLetter('no');
          done.push(redriven ? `${id} redriven` : id);
        },
      },
      onGap: (gap) => void gaps.push(gap),
    });
    await made.start();
    await eventually(async () => made.metrics().dead_letters === 2 && done.includes('a-3'));
    isBroken = false;
    expect(await made.redrive()).toEqual({ handled: 1, failed: 1 });
    await send(event('a', 4, 0));
    await eventually(async () => done.includes('a-4'));
    expect(done).toEqual(['a-1', 'a-3', 'a-2 redriven', 'a-4']);
    expect(gaps).toEqual([]);
    expect(await made.redrive()).toEqual({ handled: 0, failed: 1 });
    const [, , again] = await readAll(`${topicPrefix}group.DLT`, 3);
    expect(texts(again?.headers)).toMatchObject({
      ce_id: 'b-1',
      'kafka_dlt-original-topic': `${topicPrefix}transactions`,
    });
  });

  it('are redriven once each if members redrive at the same time, even if handlers take longer than a session timeout', async () => {
    await send(event('a', 1, 0), event('b', 1, 1));
    const begun = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const redriven: string[] = [];
    const handle = async ({ id, redriven: isRedriven }: { id: string; redriven: boolean }) => {
      if (!isRedriven) throw new DeadLetter('no');
      redriven.push(id);
      begun.resolve();
      await released.promise;
      if (id === 'b-1') throw new Error('again');
    };
    const member = () => consumer({ handlers: { [completed]: handle }, sessionTimeoutMs: 4_000 });
    const [first, second] = [member(), member()];
    await first.start();
    await eventually(async () => first.metrics().dead_letters === 2);
    const results = [first.redrive()];
    await begun.promise;
    results.push(second.redrive());
    const groupId = `${topicPrefix}group.redrive`;
    await eventually(async () => (await admin.describeGroups([groupId])).groups[0]?.members.length === 2);
    await sleep(6_000);
    released.resolve();
    const [one, other] = (await Promise.all(results)) as [Redriven, Redriven];
    expect({ handled: one.handled + other.handled, failed: one.failed + other.failed }).toEqual({
      handled: 1,
      failed: 1,
    });
    expect(redriven.toSorted()).toEqual(['a-1', 'b-1']);
  });

  it('are redriven without start(), more than once', async () => {
    await send(event('a', 1, 0));
    const handlers = {
      [completed]: () => {
        throw new DeadLetter('no');
      },
    };
    const first = consumer({ handlers });
    await first.start();
    await eventually(async () => first.metrics().dead_letters === 1);
    const second = consumer({ handlers });
    expect(await second.redrive()).toEqual({ handled: 0, failed: 1 });
    expect(await second.redrive()).toEqual({ handled: 0, failed: 1 });
  });

  it('are redriven once if redrive() is called twice at the same time', async () => {
    await send(event('a', 1, 0), event('b', 1, 1));
    const handlers = {
      [completed]: () => {
        throw new DeadLetter('no');
      },
    };
    const first = consumer({ handlers });
    await first.start();
    await eventually(async () => first.metrics().dead_letters === 2);
    const second = consumer({ handlers });
    const once = { handled: 0, failed: 2 };
    expect(await Promise.all([second.redrive(), second.redrive()])).toEqual([once, once]);
    expect(await second.redrive()).toEqual(once);
  });

  it('are not redriven if the group has none', async () => {
    expect(await consumer({ handlers: { [completed]: () => undefined } }).redrive()).toEqual({ handled: 0, failed: 0 });
  });
});

describe('offline for longer than the topic’s retention', () => {
  const forget = async (offset: number) => {
    const topic = `${topicPrefix}transactions`;
    await admin.fetchTopicOffsets(topic); // kafkajs finds the leader only among topics that it has loaded
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(offset) }] });
  };

  it.each([true, false])(
    'a group continues at the oldest retained event, and onLoss reports the lost events (fromBeginning: %s)',
    async (fromBeginning) => {
      const done: string[] = [];
      const losses: Loss[] = [];
      const gaps: Gap[] = [];
      const made = () =>
        consumer({
          fromBeginning,
          handlers: { [completed]: ({ id }) => void done.push(id) },
          onLoss: (loss) => void losses.push(loss),
          onGap: (gap) => void gaps.push(gap),
          store: { lastSequence: async () => Number(done.at(-1)?.slice('a-'.length) ?? 0) },
        });
      const first = made();
      await first.start();
      await send(event('a', 1, 0), event('a', 2, 0));
      await vi.waitFor(() => expect(done, JSON.stringify(first.metrics())).toEqual(['a-1', 'a-2']), 15_000);
      await first.stop();
      await send(...range(6).map((n) => event('a', n + 2, 0)));
      await forget(5);
      const second = made();
      await second.start();
      await eventually(async () => done.length >= 5);
      expect(done).toEqual(['a-1', 'a-2', 'a-6', 'a-7', 'a-8']);
      expect(losses).toEqual([{ topic: `${topicPrefix}transactions`, partition: 0, from: 2n, to: 4n }]);
      expect(gaps).toEqual([{ account_id: accountId('a'), from: 3, to: 5 }]);
      expect(second.metrics()).toMatchObject({ lost: 3, missing: 3 });
    },
  );

  it('a group that started at the end, and stopped before any event arrived, continues there and not at the new end', async () => {
    const done: string[] = [];
    const made = () => consumer({ fromBeginning: false, handlers: { [completed]: ({ id }) => void done.push(id) } });
    await send(event('a', 1, 0));
    const first = made();
    await first.start();
    await first.stop();
    await send(event('a', 2, 0));
    await made().start();
    await send(event('a', 3, 0));
    await eventually(async () => done.includes('a-3'));
    expect(done).toEqual(['a-2', 'a-3']);
  });

  it('a member whose group rebalances before its starting offsets are known starts only when they are known', async () => {
    const next = Places.prototype.next;
    const known = Promise.withResolvers<void>();
    const delayed = vi.spyOn(Places.prototype, 'next').mockImplementation(async function (this: Places, ...of) {
      await known.promise;
      return next.apply(this, of);
    });
    try {
      const done: string[] = [];
      const started: number[] = [];
      const start = (n: number) =>
        consumer({ fromBeginning: false, handlers: { [completed]: ({ id }) => void done.push(id) } })
          .start()
          .then(() => started.push(n));
      await send(event('a', 1, 0));
      const first = start(1);
      // A member may join once more when the leaders of the new topic become known, so there may be more calls.
      await eventually(async () => delayed.mock.calls.length >= 1);
      const second = start(2);
      await eventually(async () => delayed.mock.calls.length >= 3);
      expect(started).toEqual([]);
      known.resolve();
      await Promise.all([first, second]);
      await send(...range(4).map((n) => event(`b${n}`, 1, n - 1)));
      await eventually(async () => done.length === 4);
      expect(done.toSorted()).toEqual(['b1-1', 'b2-1', 'b3-1', 'b4-1']);
    } finally {
      known.resolve();
      delayed.mockRestore();
    }
  });

  it('a member that crashes before its starting offsets are committed has not started', async () => {
    const next = Places.prototype.next;
    const crashing = Promise.withResolvers<void>();
    vi.spyOn(Places.prototype, 'next').mockImplementation(async function (this: Places, ...of) {
      const places = await next.apply(this, of);
      await crashing.promise;
      return places;
    });
    const ranges = vi.spyOn(Places.prototype, 'ranges');
    // kafkajs does not recover from a TypeError.
    let isPlanted = true;
    const log = (message: string) => {
      if (!isPlanted && message.startsWith('Crash: ')) {
        ranges.mockResolvedValueOnce(new Map());
        crashing.resolve();
      }
      if (!isPlanted || !message.startsWith('Request Heartbeat')) return;
      isPlanted = false;
      throw new TypeError('planted');
    };
    try {
      const done: string[] = [];
      await consumer({
        kafka: { logLevel: logLevel.DEBUG, logCreator: () => (entry) => log(entry.log.message) },
        fromBeginning: false,
        handlers: { [completed]: ({ id }) => void done.push(id) },
      }).start();
      await send(event('a', 1, 0));
      await eventually(async () => done.length === 1);
    } finally {
      crashing.resolve();
      vi.restoreAllMocks();
    }
  });

  it('a partition that was stopped for so long is handled in the same way', async () => {
    await send(...range(5).map((n) => event('a', n, 0)));
    const done: string[] = [];
    const losses: Loss[] = [];
    let isAway = true;
    await consumer({
      handlers: {
        [completed]: async ({ id }) => {
          if (isAway && id !== 'a-1') throw new Error('away');
          done.push(id);
        },
      },
      onLoss: (loss) => void losses.push(loss),
      retry: { firstPauseMs: 20, maxPauseMs: 50 },
    }).start();
    await eventually(async () => done.length === 1);
    await forget(3);
    isAway = false;
    await eventually(async () => done.includes('a-5'));
    // Fetched events are handled. The loss of the others is reported.
    const lost = losses.reduce((sum, { from, to }) => sum + Number(to - from) + 1, 0);
    expect(done.length + lost).toBe(5);
  });
});

describe('compressed topics', () => {
  it.each(['gzip', 'zstd'])('events compressed with %s are read', async (compression) => {
    const topic = `${topicPrefix}transactions`;
    const configEntries = [{ name: 'compression.type', value: compression }];
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries }] });
    const events = range(300).map((n) => event('a', n, 0, { value: event('a', n, 0).value }));
    await send(...events);
    const done: string[] = [];
    await consumer({ handlers: { [completed]: ({ id }) => void done.push(id) } }).start();
    await eventually(async () => done.length >= 300);
    expect(done).toEqual(events.map(({ headers }) => headers['ce_id']));
  });
});

describe('on start', () => {
  it('warns if brokers expire offsets sooner than the topic expires events', async () => {
    const topic = `${topicPrefix}transactions`;
    const configEntries = [{ name: 'retention.ms', value: '-1' }];
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries }] });
    // A broker applies the setting after a short delay.
    await eventually(async () => {
      const { resources } = await admin.describeConfigs({
        includeSynonyms: false,
        resources: [{ type: 2, name: topic, configNames: ['retention.ms'] }],
      });
      return resources[0]?.configEntries[0]?.configValue === '-1';
    });
    const warnings: object[] = [];
    const logger = {
      ...silent,
      warn: (fields: object, message: string) => {
        if ('offsets_days' in fields) warnings.push({ ...fields, message });
      },
    };
    await consumer({ handlers: { [completed]: () => undefined }, logger }).start();
    await eventually(async () => warnings.length > 0);
    expect(warnings).toEqual([
      { topics: [topic], offsets_days: expect.any(Number), message: expect.stringContaining('starts over') },
    ]);
  });
});

describe('order', () => {
  it('repeats are handled once, gaps are reported, unknown types are skipped or caught, newer versions are reported once', async () => {
    const newer = completed.replace('.v1', '.v2');
    await send(
      event('a', 1, 0),
      event('a', 2, 0),
      event('a', 1, 0),
      event('a', 2, 0, { id: 'another id' }),
      event('a', 5, 0),
      event('a', 1, 0, { id: 'n1', type: newer }),
      event('a', 2, 0, { id: 'n2', type: newer }),
      event('a', 1, 0, { id: 'o', type: 'corebanking.other.v1', value: '{"x":1}' }),
      event('b', 3, 0),
      event('c', 2, 0),
      event('a', 6, 0),
    );
    const done: string[] = [];
    const gaps: Gap[] = [];
    const told: string[] = [];
    const others: [string, unknown][] = [];
    const lastSequence = async (account: string) => ({ [accountId('b')]: 3, [accountId('c')]: 0 })[account];
    const made = consumer({
      handlers: { [completed]: ({ id, data }) => void done.push(`${id} ${data.transaction.amount}`) },
      otherwise: ({ type, data }) => void others.push([type, data]),
      onGap: (gap) => void gaps.push(gap),
      onNewerVersion: (type, handled) => void told.push(type, handled),
      store: { lastSequence },
    });
    await made.start();
    await eventually(async () => done.includes('a-6 1.00'));
    expect(made.metrics()).toMatchObject({ handled: 8, repeats: 3, missing: 3 });
    expect(done).toEqual(['a-1 1.00', 'a-2 1.00', 'a-5 1.00', 'c-2 1.00', 'a-6 1.00']);
    expect(gaps).toEqual([
      { account_id: accountId('a'), from: 3, to: 4 },
      { account_id: accountId('c'), from: 1, to: 1 },
    ]);
    expect(told).toEqual([newer, completed]);
    expect(others.map(([type]) => type)).toEqual([newer, newer, 'corebanking.other.v1']);
    expect(others.at(-1)?.[1]).toEqual({ x: 1 });
  });

  it('a gap is reported once although the handler after it fails, and an id that the store refuses is recorded by a retry', async () => {
    await send(event('a', 1, 0), event('a', 4, 0), event('a', 5, 0));
    const refused = new Set<string>();
    const recorded: string[] = [];
    const gaps: Gap[] = [];
    let failures = 0;
    const made = consumer({
      handlers: {
        [completed]: ({ id }) => {
          if (id === 'a-4' && failures++ < 2) throw new Error('not yet');
        },
      },
      onGap: (gap) => void gaps.push(gap),
      retry: { firstPauseMs: 20 },
      store: {
        markHandled: async (id) => {
          if (!refused.has(id)) {
            refused.add(id);
            throw new Error('the database is away');
          }
          recorded.push(id);
        },
      },
    });
    await made.start();
    await eventually(async () => made.metrics().handled === 3);
    expect(recorded).toEqual(['a-1', 'a-4', 'a-5']);
    expect(gaps).toEqual([{ account_id: accountId('a'), from: 2, to: 3 }]);
    expect(made.metrics()).toMatchObject({ repeats: 0, missing: 2 });
  });
});

describe('from a time', () => {
  /**
   * Returns a time just after the newest of these events by the broker's clock, which sets the time of each
   * partition separately. Nothing depends on this process's clock.
   */
  const timeAfter = (messages: Pick<KafkaMessage, 'timestamp'>[]) =>
    new Date(Math.max(...messages.map(({ timestamp }) => Number(timestamp))) + 1);

  it('a new group skips earlier events in every partition, and continues at its offset after a restart', async () => {
    await admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: 2,
          name: `${topicPrefix}transactions`,
          configEntries: [{ name: 'message.timestamp.type', value: 'LogAppendTime' }],
        },
      ],
    });
    await send(event('a', 1, 0), event('a', 2, 0), event('b', 1, 1));
    const from = timeAfter(await readAll(`${topicPrefix}transactions`, 3));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await send(event('a', 3, 0), event('a', 4, 0), event('c', 1, 2));
    const done: string[] = [];
    const gaps: Gap[] = [];
    const options: Options = {
      from,
      handlers: { [completed]: ({ id }) => void done.push(id) },
      onGap: (gap) => void gaps.push(gap),
    };
    const first = consumer(options);
    await first.start();
    await eventually(async () => done.length >= 3);
    await send(event('b', 2, 1));
    await eventually(async () => done.length >= 4);
    await first.stop();
    expect(done.toSorted()).toEqual(['a-3', 'a-4', 'b-2', 'c-1']);
    expect(gaps).toEqual([]);
    await send(event('a', 5, 0));
    await consumer(options).start();
    await eventually(async () => done.length >= 5);
    expect(done.slice(4)).toEqual(['a-5']);
  });
});

const texts = (headers: IHeaders = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

/** Returns the first `count` messages of a topic, in the order of their offsets. */
async function readAll(
  topic: string,
  count: number,
): Promise<(Omit<KafkaMessage, 'key' | 'value'> & { partition: number; key: string; value: string })[]> {
  const reader = kafka.consumer({ groupId: `${topicPrefix}reader`, maxWaitTimeInMs: 100 });
  const read: Awaited<ReturnType<typeof readAll>> = [];
  await reader.connect();
  await reader.subscribe({ topics: [topic], fromBeginning: true });
  await reader.run({
    eachMessage: async ({ partition, message }) =>
      void read.push({ ...message, partition, key: String(message.key), value: String(message.value) }),
  });
  try {
    await eventually(async () => read.length >= count);
  } finally {
    await reader.disconnect();
  }
  return read.sort((a, b) => Number(a.offset) - Number(b.offset));
}
