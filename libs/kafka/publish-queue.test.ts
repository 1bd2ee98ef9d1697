import { expect, test } from 'vitest';
import { PublishQueue, sizeOf } from './publish-queue.ts';
import type { Flight, OutgoingMessage, Unit } from './publish-queue.ts';

const limits = { messages: 1_000, bytes: 1_000_000, topicBytes: 100_000 };
const all = (): boolean => true;

function message(value: string, topic = 'topic'): OutgoingMessage {
  return { topic, key: 'key', value, headers: {} };
}

function unit(...messages: OutgoingMessage[]): Unit {
  return { messages, sizes: messages.map(sizeOf), next: 0, acknowledged: 0, deadline: 1_000, done: false, resolve: () => undefined, reject: () => undefined };
}

function filled(...units: Unit[]): PublishQueue {
  const queue = new PublishQueue();
  for (const each of units) queue.push(each);
  return queue;
}

function values(flight: Flight | undefined): string[] {
  return [...(flight?.topics.values() ?? [])].flat().map(({ value }) => String(value));
}

test('a flight takes what waits, in order, within its limits', () => {
  const queue = filled(unit(message('1'), message('2')), unit(message('3')));
  expect(values(queue.take({ ...limits, messages: 2 }, all))).toEqual(['1', '2']);
  expect(queue.messages).toBe(1);
  expect(values(queue.take(limits, all))).toEqual(['3']);
  expect(queue.take(limits, all)).toBeUndefined();
});

test('bytes are limited per topic, and one message always fits', () => {
  const large = 'x'.repeat(60_000);
  const queue = filled(unit(message(large)), unit(message(large)), unit(message(large, 'other')));
  expect(values(queue.take(limits, all))).toHaveLength(1);
  expect(values(queue.take(limits, all))).toHaveLength(2);
  expect(values(filled(unit(message('x'.repeat(200_000)))).take(limits, all))).toHaveLength(1);
});

test('a unit may take several flights, and goes back as it was', () => {
  const long = unit(message('1'), message('2'), message('3'));
  const queue = filled(long, unit(message('4')));
  const first = queue.take({ ...limits, messages: 2 }, all) as Flight;
  expect(values(first)).toEqual(['1', '2']);
  queue.putBack(first);
  expect(queue.messages).toBe(4);
  expect(values(queue.take({ ...limits, messages: 2 }, all))).toEqual(['1', '2']);
  const second = queue.take(limits, all) as Flight;
  expect(values(second)).toEqual(['3', '4']);
  queue.putBack(second);
  expect(values(queue.take(limits, all))).toEqual(['3', '4']);
  expect(queue.messages).toBe(0);
});

test('a topic that nobody has written to yet flies alone', () => {
  const isKnown = (topic: string): boolean => topic !== 'new';
  const queue = filled(unit(message('1')), unit(message('2', 'new')), unit(message('3', 'new')), unit(message('4')));
  expect(values(queue.take(limits, isKnown))).toEqual(['1']);
  expect(values(queue.take(limits, isKnown))).toEqual(['2', '3']);
  expect(values(queue.take(limits, isKnown))).toEqual(['4']);
});

test('what is done is not taken, put back or counted', () => {
  const [one, two] = [unit(message('1')), unit(message('2'))];
  const queue = filled(one, two);
  const expired: Unit[] = [];
  queue.sweep(999, (each) => expired.push(each));
  expect(expired).toEqual([]);
  queue.sweep(1_000, (each) => expired.push(each));
  expect(expired).toEqual([one, two]);
  one.done = true;
  queue.dropDone();
  expect(queue.messages).toBe(1);
  const flight = queue.take(limits, all) as Flight;
  two.done = true;
  queue.putBack(flight);
  expect(queue.messages).toBe(0);
  expect(queue.take(limits, all)).toBeUndefined();
});
