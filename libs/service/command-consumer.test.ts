import pino from 'pino';
import { beforeEach, expect, test } from 'vitest';
import type { Unreadable } from '#libs/contracts/exchange.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { type CommandConsumer, createCommandConsumer } from './command-consumer.ts';
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

beforeEach(() => {
  executed = [];
  dead = [];
  failures = new Map();
  consumer = createCommandConsumer<Content>({
    decode: ({ key }) => (key?.startsWith('?') ? unreadable : { kind: 'command', id: key ?? '' }),
    async execute(group) {
      const ids = group.map(({ content }) => content.id);
      for (const id of ids) {
        const error = failures.get(id)?.(ids);
        if (error !== undefined) throw error;
      }
      executed.push(...ids);
      return { answers: [], afterwards: () => undefined };
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

test('a single command that Postgres rejects becomes a dead letter immediately', async () => {
  failures.set('a', () => coded('23514'));
  await consumer.handle(messages('a'));
  expect([executed, dead]).toEqual([[], [['a', 'the database rejected its data (23514)']]]);
});

test.each([new Defect('deciding'), new TypeError('x is undefined'), new RangeError('too much')])(
  '%s: the command is poison if another one was executed',
  async (defect) => {
    failures.set('b', () => defect);
    await consumer.handle(messages('a', 'b', 'c'));
    await consumer.handle(messages('b'));
    expect([executed.toSorted(), dead.map(([id]) => id)]).toEqual([
      ['a', 'c'],
      ['b', 'b'],
    ]);
    expect(consumer.health()).toEqual({ ok: true });
  },
);

test('a defect in our code that every command causes is a fault: nothing becomes a dead letter', async () => {
  for (const id of ['a', 'b', 'c']) failures.set(id, () => new TypeError('broken'));
  await expect(consumer.handle(messages('a', 'b', 'c'))).rejects.toThrow('broken');
  await expect(consumer.handle(messages('a'))).rejects.toThrow('broken');
  expect([executed, dead]).toEqual([[], []]);
  expect(consumer.health()).toEqual({ ok: false, reason: 'TypeError: broken' });
});

const faults = [
  '0A000',
  '25006',
  '42703',
  '42501',
  '42P01',
  'EMFILE',
  'CERT_HAS_EXPIRED',
  '55P03',
  'XX000',
  'anything',
];
test.each(faults)('%s is a fault: it is thrown and reported until the messages succeed', async (code) => {
  failures.set('b', () => coded(code));
  const group = messages('a', 'b');
  await expect(consumer.handle(group)).rejects.toThrow(code);
  expect([executed, dead, consumer.health().ok]).toEqual([[], [], false]);
  failures.clear();
  await consumer.handle(group);
  expect([executed, dead, consumer.health().ok]).toEqual([['a', 'b'], [], true]);
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
