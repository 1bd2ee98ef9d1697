import type { Item as ItemOf } from '#libs/service/command-consumer.ts';
import type { Decoded } from './decode.ts';
import { isBatched } from './handlers.ts';

export type Item = ItemOf<Decoded>;

/** Most messages that one transaction decides. */
const maxGroup = 100;

/**
 * What is executed together: commands of one batched name, the ledger's replies, or dead letters.
 * Undefined: each on its own.
 */
function groupKey({ content }: Item): string | undefined {
  if (content.kind !== 'request') return content.kind;
  return isBatched(content.name) || content.name === 'record_audit' ? content.name : undefined;
}

/** What must not be twice in a group: the command, the step or the dead letter. */
function identity({ content }: Item): string {
  if (content.kind === 'request') return content.context.message_id;
  return content.kind === 'ledger_reply' ? content.step_id : content.row.dead_letter_id;
}

/**
 * PURE but for taking items off the lanes: the groups that may run next, side by side. A lane is
 * what waits of one partition; its order is kept, since it takes part with its head only: with one
 * item, or with a run of one key, which is put together with the runs of the same key of other
 * lanes. Empty when the lanes are.
 */
export function nextGroups(lanes: Item[][]): Item[][] {
  const singles: Item[][] = [];
  const merged = new Map<string, { items: Item[]; identities: Set<string> }>();
  for (const lane of lanes) {
    const head = lane[0];
    if (!head) continue;
    const key = groupKey(head);
    if (key === undefined) {
      singles.push(lane.splice(0, 1));
      continue;
    }
    const group = merged.get(key) ?? { items: [], identities: new Set<string>() };
    merged.set(key, group);
    const fits = (item: Item) =>
      groupKey(item) === key && !group.identities.has(identity(item)) && group.items.length < maxGroup;
    for (let next = lane[0]; next && fits(next); next = lane[0]) {
      group.items.push(next);
      group.identities.add(identity(next));
      lane.shift();
    }
  }
  return [...[...merged.values()].map((group) => group.items), ...singles];
}
