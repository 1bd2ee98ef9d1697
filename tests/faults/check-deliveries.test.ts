import { expect, it } from 'vitest';
import { type Booking, delaysDuring, deliveredInOrder, disabledByGone, polledOnce } from './check-deliveries.ts';

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

it('finds a posting that a poller missed, received twice, or received after a later one of the same account', () => {
  expect(polledOnce(of('a', 2, 3), [...of('a', 1, 2), ...of('b', 7), ...of('a', 3)])).toEqual([]);
  expect(polledOnce(of('a', 1, 2, 3), of('a', 1, 3, 3))).toEqual([
    'I7: LOST on the way to the poller: entry 2 of a',
    'I7: the poller got entry 3 of a 2 times',
  ]);
  expect(polledOnce(of('a', 1, 2), of('a', 2, 1))).toEqual([
    'I7: the poller got entry 1 of a after a later one of its account',
  ]);
});

it('finds a webhook that a 410 did not disable, or did not disable completely', () => {
  const gone = { status: 'Disabled', pending: 0, disablings: 1 };
  expect(disabledByGone(gone)).toEqual([]);
  expect(disabledByGone({ ...gone, status: 'Active' })).toEqual([
    'I7: the webhook whose receiver answers 410 is Active',
  ]);
  expect(disabledByGone({ ...gone, pending: 2, disablings: 0 })).toEqual([
    'I7: the webhook that was disabled by 410 has 2 Pending deliveries',
    'I7: the webhook that was disabled by 410 has 0 events about it',
  ]);
});

it('finds that a receiver that hangs delayed the deliveries to another one, but not in attempts that a kill ended', () => {
  const held = [
    { from: 0, to: 15_000 },
    { from: 15_000, to: 30_000 },
    { from: 20_000, to: 25_000 },
  ];
  const at = (...times: number[]) => times.map((time) => ({ at: time }));
  expect(delaysDuring(held, at(0, 14_000, 29_000))).toEqual([]);
  expect(delaysDuring(held, at(14_000))).toEqual([
    'I7: nothing was delivered during 1 of 2 attempts at a receiver that hangs',
  ]);
});
