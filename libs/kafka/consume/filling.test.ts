import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { busyLimit, calmLimit, chooseWorkers, type Member, shareOut } from './filling.ts';

const partitions = Array.from({ length: 12 }, (_, i) => i);

const anyMember: fc.Arbitrary<Omit<Member, 'id'>> = fc.record({
  busy: fc.double({ min: 0, max: 1.5, noNaN: true }),
  keeps: fc.boolean(),
  first: fc.option(fc.nat({ max: 11 }), { nil: undefined }),
  step: fc.nat({ max: 20 }),
});
const anyGroup = fc
  .array(anyMember, { minLength: 1, maxLength: 15 })
  .map((members) => members.map((member, i): Member => ({ ...member, id: `member-${i}` })));

/** Returns the group after a rebalance: each member has what it was given, and the step is known to all. */
function rebalanced(members: readonly Member[], busy?: (member: Member) => number): Member[] {
  const { workers, step } = chooseWorkers(members);
  const shares = shareOut(workers, partitions);
  return members.map((member) => {
    const next = { ...member, step, first: shares.get(member.id)?.[0] };
    return { ...next, busy: busy ? busy(next) : member.busy };
  });
}

const working = (members: readonly Member[]): string[] =>
  members.filter(({ first }) => first !== undefined).map(({ id }) => id);

describe('every group', () => {
  test('each partition is assigned once', () => {
    fc.assert(
      fc.property(anyGroup, (members) => {
        const shares = shareOut(chooseWorkers(members).workers, partitions);
        expect([...shares.values()].flat().sort((a, b) => a - b)).toEqual(partitions);
      }),
    );
  });

  test('the choice does not depend on the order of the members', () => {
    fc.assert(
      fc.property(
        anyGroup.chain((group) =>
          fc.tuple(fc.constant(group), fc.shuffledSubarray(group, { minLength: group.length })),
        ),
        ([group, shuffled]) => {
          expect(chooseWorkers(shuffled)).toEqual(chooseWorkers(group));
        },
      ),
    );
  });

  test('nothing moves while nobody is busier than the limit, nor so calm that fewer would do', () => {
    fc.assert(
      fc.property(anyGroup, fc.double({ min: calmLimit, max: busyLimit, noNaN: true }), (group, busy) => {
        const before = rebalanced(group, () => busy);
        const after = rebalanced(before);
        expect(after.map(({ id, first }) => [id, first])).toEqual(before.map(({ id, first }) => [id, first]));
      }),
    );
  });

  test('without load, one works in the end; with more than all can do, all; and both are final', () => {
    fc.assert(
      fc.property(anyGroup, (group) => {
        const one = group.map((member, i) => ({ ...member, keeps: i === 0 }));
        const settle = (busy: number) => {
          let members: Member[] = one;
          for (let n = 0; n < 20; n++) members = rebalanced(members, ({ first }) => (first === undefined ? 0 : busy));
          expect(working(rebalanced(members))).toEqual(working(members));
          return members;
        };
        expect(working(settle(0))).toEqual(['member-0']);
        expect(working(settle(0.9))).toHaveLength(Math.min(group.length, partitions.length));
      }),
    );
  });
});

/** Three members, of which the first holds the lease of the relay. */
function bank(busy: number[], firsts: (number | undefined)[], step: number): Member[] {
  return busy.map((each, i) => ({ id: `m${i}`, busy: each, keeps: i === 0, first: firsts[i], step }));
}
const chosen = (members: Member[]): string[] => chooseWorkers(members).workers.map(({ id }) => id);

describe('the keeper', () => {
  test('does everything alone while it can, and gives its partitions up when it cannot', () => {
    expect(chosen(bank([0.6, 0, 0], [0, undefined, undefined], 0))).toEqual(['m0']);
    expect(chosen(bank([0.61, 0, 0], [0, undefined, undefined], 0))).toEqual(['m1']);
  });

  test('is used last, when all others are too busy', () => {
    expect(chosen(bank([0.3, 0.61, 0], [undefined, 0, undefined], 1))).toEqual(['m1', 'm2']);
    expect(chosen(bank([0.3, 0.61, 0.5], [undefined, 0, 1], 2))).toEqual(['m1', 'm2', 'm0']);
  });

  test('gets the partitions back when its own work and that of the other fit into one thread', () => {
    expect(chosen(bank([0.2, 0.21, 0], [undefined, 0, undefined], 1))).toEqual(['m1']);
    expect(chosen(bank([0.19, 0.2, 0], [undefined, 0, undefined], 1))).toEqual(['m0']);
  });
});

test('a spare takes the place of a worker that is lost, at once', () => {
  expect(chosen(bank([0.3, 0.5, 0, 0], [undefined, 0, undefined, undefined], 2))).toEqual(['m1', 'm2']);
  expect(chosen(bank([0.1, 0, 0], [undefined, undefined, undefined], 1))).toEqual(['m1']);
});
