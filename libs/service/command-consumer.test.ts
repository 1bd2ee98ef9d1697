import pino from 'pino';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Unreadable } from '#libs/contracts/exchange.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { type CommandConsumer, createCommandConsumer, newerTypeWaitMs } from './command-consumer.ts';
import { Defect } from './poison.ts';

interface Content {
  kind: 'command';
  id: string;
}

/** The executed commands in order, and the dead letters with their reasons. */
let executed: string[];
let dead: [id: string, reason: string][];
/** How a group behaves that contains this command. */
let failures: Map<string, (group: string[]) => unknown>;
let consumer: CommandConsumer;
/** Why the probe fails, and how often it was asked. */
let broken: Error | undefined;
let probes: number;

beforeEach(() => {
  [broken, probes] = [undefined, 0];
  executed = [];
  dead = [];
  failures = new Map();
  consumer = createCommandConsumer<Content>({
    decode({ key }) {
      if (key?.startsWith('?new')) return { ...unreadable, mayBeNewer: true };
      return key?.startsWith('?') ? unreadable : { kind: 'command', id: key ?? '' };
    },
    async execute(group) {
      const ids = group.map(({ content }) => content.id);
      for (const id of ids) {
        const error = failures.get(id)?.(ids);
        if (error !== undefined) throw error;
      }
      executed.push(...ids);
      return { answers: [], afterwards: () => undefined };
    },
    uniqueIndexes: ['own_key'],
    async probe() {
      probes++;
      if (broken) throw broken;
    },
    replies: { send: () => undefined, deadLetter: async ({ key }, { reason }) => void dead.push([key ?? '', reason]) },
    logger: pino({ level: 'silent' }),
  });
});

const unreadable: Unreadable = { kind: 'bad', code: 'x', reason: 'unreadable', address: undefined };
const message = (key: string): ReceivedMessage => ({
  topic: 't',
  partition: 0,
  offset: 0n,
  key,
  value: null,
  headers: {},
  timestamp_ms: 0,
});
const messages = (...keys: string[]) => keys.map(message);
const coded = (code: string) => Object.assign(new Error(`failed with ${code}`), { code });

test('a group that Postgres rejects is halved until the poison command is found; executed commands are not executed again', async () => {
  failures.set('c', () => coded('22021'));
  await consumer.handle(messages('a', 'b', 'c', 'd', 'e'));
  expect([executed.toSorted(), dead]).toEqual([
    ['a', 'b', 'd', 'e'],
    [['c', 'the database rejected its data (22021)']],
  ]);
});

describe('a message of a type that a later version may know', () => {
  const sent = (agoMs: number, key: string, partition = 0): ReceivedMessage => ({
    ...message(key),
    partition,
    timestamp_ms: Date.now() - agoMs,
  });

  test('waits with those after it in its partition, while the others are executed once; the process names it', async () => {
    const all = [sent(0, 'a'), sent(0, '?new'), sent(0, 'b'), sent(0, 'c', 1)];
    for (let i = 0; i < 2; i++)
      await expect(consumer.handle(all)).rejects.toThrow(/waiting for a version that knows a type: .* at t\/0\/0/);
    expect([executed.toSorted(), dead]).toEqual([['a', 'c'], []]);
    expect(consumer.health()).toMatchObject({ ok: false, reason: expect.stringContaining('t/0/0') });
  });

  test.each([
    ['5 s after the broker has appended it', newerTypeWaitMs],
    ['if the broker’s clock is far ahead', -newerTypeWaitMs],
  ])('is poison %s', async (_, agoMs) => {
    await consumer.handle([sent(agoMs, '?new'), sent(0, 'b')]);
    expect([executed, dead]).toEqual([['b'], [['?new', 'unreadable']]]);
  });
});

const violation = (constraint: string) => Object.assign(coded('23505'), { constraint });

/** Errors of one command, with what happens to it if the probe succeeds, and if the probe fails with the same error. */
const verdicts: [string, unknown, 'poison' | 'fault', 'poison' | 'fault'][] = [
  ['numeric_value_out_of_range', coded('22003'), 'poison', 'fault'],
  ['character_not_in_repertoire', coded('22021'), 'poison', 'fault'],
  ['invalid_text_representation', coded('22P02'), 'poison', 'fault'],
  ['restrict_violation', coded('23001'), 'poison', 'fault'],
  ['not_null_violation: a column of a newer schema', coded('23502'), 'poison', 'fault'],
  ['foreign_key_violation', coded('23503'), 'poison', 'fault'],
  ['check_violation: a constraint of a newer schema', coded('23514'), 'poison', 'fault'],
  ['unique_violation of an index that a command can violate', violation('own_key'), 'poison', 'poison'],
  ['unique_violation of the outbox: its sequence is behind', violation('outbox_batches_pkey'), 'fault', 'fault'],
  ['unique_violation of an unnamed index', coded('23505'), 'fault', 'fault'],
  ['check_violation that ends the session', Object.assign(coded('23514'), { severity: 'FATAL' }), 'fault', 'fault'],
  ['an exception of the decision', new Defect('deciding'), 'poison', 'fault'],
  ['TypeError', new TypeError('x is undefined'), 'poison', 'fault'],
  ['RangeError', new RangeError('too much'), 'poison', 'fault'],
  ...[
    '0A000',
    '08006',
    '25006',
    '40001',
    '42501',
    '42703',
    '42804',
    '42P01',
    '53100',
    '53300',
    '54000',
    '55P03',
    '57014',
    '57P01',
    '57P03',
    '58030',
    'XX000',
    'EMFILE',
    'CERT_HAS_EXPIRED',
    'anything',
  ].map((code): (typeof verdicts)[number] => [code, coded(code), 'fault', 'fault']),
];

describe.each(verdicts)('%s', (_, error, ifProbed, ifNot) => {
  test.each([
    ['succeeds', ifProbed],
    ['fails', ifNot],
  ] as const)('while the probe %s, it is %s', async (probed, verdict) => {
    if (probed === 'fails') broken = error as Error;
    failures.set('b', () => error);
    const group = messages('a', 'b', 'c');
    const outcome = consumer.handle(group);
    if (verdict === 'poison') {
      await outcome;
      expect([executed, dead.map(([id]) => id), consumer.health()]).toEqual([['a', 'c'], ['b'], { ok: true }]);
    } else {
      await expect(outcome).rejects.toThrow((error as Error).message);
      expect([dead, consumer.health()]).toEqual([
        [],
        { ok: false, reason: expect.stringContaining((error as Error).message) },
      ]);
      [broken] = [undefined];
      failures.clear();
      await consumer.handle(group);
      expect([executed.toSorted(), dead, consumer.health()]).toEqual([['a', 'b', 'c'], [], { ok: true }]);
    }
  });
});

test('a dead letter names the error, but not its message', async () => {
  failures.set('a', () => coded('23514'));
  failures.set('b', () => new TypeError('personal data'));
  await consumer.handle(messages('a', 'b'));
  expect(dead).toEqual([
    ['a', 'the database rejected its data (23514)'],
    ['b', 'the service failed while executing it (TypeError)'],
  ]);
});

test('a command that succeeds after the probe is not blamed: what rejected it has ended', async () => {
  let refusals = 1;
  failures.set('a', () => (refusals-- > 0 ? coded('23514') : undefined));
  await consumer.handle(messages('a'));
  expect([executed, dead, probes]).toEqual([['a'], [], 1]);
});

test('a command that fails with a fault after the probe is not blamed', async () => {
  const errors = [coded('23514'), coded('57P03')];
  failures.set('a', () => errors.shift());
  await expect(consumer.handle(messages('a'))).rejects.toThrow('57P03');
  expect([executed, dead]).toEqual([[], []]);
});

test('while the probe fails, nothing after the first failing command is executed or blamed', async () => {
  broken = coded('23502');
  for (const id of ['a', 'b', 'c']) failures.set(id, () => coded('23502'));
  await expect(consumer.handle(messages('a', 'b', 'c'))).rejects.toThrow('23502');
  await expect(consumer.handle(messages('a'))).rejects.toThrow('23502');
  expect([executed, dead, probes]).toEqual([[], [], 2]);
});

test('a fault in one half: commands executed in the other are not executed again', async () => {
  const group = messages('a', 'b', 'c', 'd');
  failures.set('d', (ids) => (ids.length > 2 ? coded('23514') : coded('57P01')));
  await expect(consumer.handle(group)).rejects.toThrow('57P01');
  failures.clear();
  await consumer.handle(group);
  expect([executed, dead]).toEqual([['a', 'b', 'c', 'd'], []]);
});

test.each([coded('57014'), new Error('Query read timeout')])(
  'a group that timed out (%s) is halved; a single command that timed out is a fault',
  async (late) => {
    for (const id of ['a', 'b', 'c', 'd']) failures.set(id, (ids) => (ids.length > 1 ? late : undefined));
    await consumer.handle(messages('a', 'b', 'c', 'd'));
    expect([executed, dead]).toEqual([['a', 'b', 'c', 'd'], []]);
    failures.set('e', () => late);
    await expect(consumer.handle(messages('e'))).rejects.toThrow(late.message);
    expect(dead).toEqual([]);
  },
);

test('an unreadable message becomes a dead letter before anything is executed', async () => {
  await consumer.handle(messages('a', '?b', 'c'));
  expect([executed, dead]).toEqual([['a', 'c'], [['?b', 'unreadable']]]);
});
