import { expect, test } from 'vitest';
import { OffsetTracker } from './offset-tracker.ts';

test('no offset is due before the first chunk is done, or after the first gap', () => {
  const tracker = new OffsetTracker();
  const [a, b, c] = [10n, 20n, 30n].map((next) => tracker.begin('topic', 1, next));
  const other = tracker.begin('topic', 2, 5n);
  if (!a || !b || !c) throw new Error('unreachable');
  tracker.done(b);
  expect(tracker.takeDirty()).toEqual([]);
  tracker.done(a);
  expect(tracker.takeDirty()).toEqual([{ topic: 'topic', partition: 1, offset: 20n }]);
  expect(tracker.takeDirty()).toEqual([]);
  tracker.done(other);
  tracker.done(c);
  expect(tracker.takeDirty()).toEqual([
    { topic: 'topic', partition: 1, offset: 30n },
    { topic: 'topic', partition: 2, offset: 5n },
  ]);
});

test('offsets whose commit failed are due again, with their newest value', () => {
  const tracker = new OffsetTracker();
  tracker.done(tracker.begin('topic', 0, 1n));
  const taken = tracker.takeDirty();
  tracker.done(tracker.begin('topic', 0, 2n));
  tracker.takeDirty();
  tracker.markDirty(taken);
  expect(tracker.takeDirty()).toEqual([{ topic: 'topic', partition: 0, offset: 2n }]);
});
