import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { NewDeadLetter } from '../dead-letters/dead-letter-store.ts';
import { type Item, nextGroups } from './groups.ts';

const names = ['open_account', 'change_account_status', 'update_client', 'ledger_reply', 'dead_letter'] as const;

function item(partition: number, name: (typeof names)[number], id: string): Item {
  const message = { topic: 't', partition, offset: 0n, key: null, value: null, headers: {}, timestamp_ms: 0 };
  if (name === 'dead_letter')
    return { message, content: { kind: 'dead_letter', row: { dead_letter_id: id } as NewDeadLetter } };
  if (name === 'ledger_reply')
    return { message, content: { kind: 'ledger_reply', step_id: id, body: { ok: true, data: null } } };
  const context = { message_id: id, type: 't', source: 's', time: '', subject: '', request_id: '', actor: '' };
  return { message, content: { kind: 'request', name, context, data: {}, address: undefined } };
}

const itemKind = ({ content }: Item) => (content.kind === 'request' ? content.name : content.kind);
const commandIds = ({ content }: Item) => (content.kind === 'request' ? [content.context.message_id] : []);

const isReply = (one: Item) => itemKind(one) === 'ledger_reply';

test('every item occurs once, replies before commands, otherwise in the order of its lane, in groups of one kind without duplicate commands', () => {
  // Runs of one name, because a group is larger than any lane of random names would need.
  const run = fc.tuple(fc.constantFrom(...names), fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 }));
  const lane = fc
    .array(run, { maxLength: 4 })
    .map((runs) => runs.flatMap(([name, ids]) => ids.map((id) => [name, id] as const)));
  fc.assert(
    fc.property(fc.array(lane, { maxLength: 5 }), (input) => {
      const lanes = input.map((items, partition) => items.map(([name, id]) => item(partition, name, id)));
      const expected = lanes.map((items) => [...items.filter(isReply), ...items.filter((one) => !isReply(one))]);
      const came: Item[][] = lanes.map(() => []);
      for (let groups = nextGroups(lanes); groups.length > 0; groups = nextGroups(lanes)) {
        const partitionsOfRound = new Set<number>();
        for (const group of groups) {
          expect(group.length).toBeGreaterThan(0);
          expect(new Set(group.map(itemKind)).size).toBe(1);
          const ids = group.flatMap(commandIds);
          expect(new Set(ids).size).toBe(ids.length);
          const partitions = new Set(group.map(({ message }) => message.partition));
          for (const partition of partitions) {
            expect(partitionsOfRound.has(partition)).toBe(false);
            partitionsOfRound.add(partition);
          }
          for (const each of group) came[each.message.partition]?.push(each);
        }
      }
      expect(came).toEqual(expected);
    }),
  );
});

test('more than a hundred replies are applied one hundred after the other, because an account may have several', () => {
  const lanes = Array.from({ length: 2 }, (_, partition) =>
    Array.from({ length: 120 }, (__, i) => item(partition, 'ledger_reply', `${partition}-${i}`)),
  );
  for (const size of [100, 100, 40]) expect(nextGroups(lanes).map((group) => group.length)).toEqual([size]);
  expect(nextGroups(lanes)).toEqual([]);
});

test('groups of all lanes are combined, up to a hundred items', () => {
  const lanes = Array.from({ length: 12 }, (_, partition) =>
    Array.from({ length: 10 }, (__, i) => item(partition, 'open_account', `${partition}-${i}`)),
  );
  expect(nextGroups(lanes).map((group) => group.length)).toEqual([100]);
  expect(nextGroups(lanes).map((group) => group.length)).toEqual([20]);
  expect(nextGroups(lanes)).toEqual([]);
});

test('replies of all lanes are one group, and so are the commands between which they arrived', () => {
  const lanes = Array.from({ length: 12 }, (_, partition) =>
    (['open_account', 'ledger_reply', 'open_account', 'ledger_reply', 'open_account'] as const).map((name, i) =>
      item(partition, name, `${partition}-${i}`),
    ),
  );
  expect(nextGroups(lanes).map((group) => group.map(itemKind))).toEqual([Array(24).fill('ledger_reply')]);
  expect(nextGroups(lanes).map((group) => group.map(itemKind))).toEqual([Array(36).fill('open_account')]);
  expect(nextGroups(lanes)).toEqual([]);
});
