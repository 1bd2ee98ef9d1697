import { expect, it } from 'vitest';
import { type Booking, deliveredInOrder } from './check-deliveries.ts';

const of = (account_id: string, ...sequences: number[]): Booking[] =>
  sequences.map((sequence) => ({ account_id, sequence }));

it('repeats, interleaved accounts, and earlier postings are not findings', () => {
  expect(
    deliveredInOrder(of('a', 2, 3), [...of('a', 1, 2), ...of('b', 7), ...of('a', 2, 3, 2), ...of('b', 8)]),
  ).toEqual([]);
});

it('finds a posting that the receiver never accepted', () => {
  expect(deliveredInOrder([...of('a', 1, 2), ...of('b', 1)], [...of('a', 1), ...of('b', 1)])).toEqual([
    'I7: LOST on the way to the receiver: entry 2 of a',
  ]);
});

it('finds a posting that the receiver accepted after a later one of the same account', () => {
  expect(deliveredInOrder(of('a', 1, 2, 3), of('a', 1, 3, 2, 3))).toEqual([
    'I7: the receiver got entry 2 of a after a later one of its account',
  ]);
});
