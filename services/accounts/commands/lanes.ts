import type { Item as ItemOf } from '#libs/service/command-consumer.ts';
import type { Decoded } from './decode.ts';
import { isBatched } from './handlers.ts';

export type Item = ItemOf<Decoded>;

/** The maximum number of messages decided in one transaction. */
const maxGroup = 100;

/**
 * Returns the key by which items are executed together: a batched command name, replies of the ledger, or dead letters.
 * undefined: the item is executed separately.
 */
function groupKey({ content }: Item): string | undefined {
  if (content.kind !== 'request') return content.kind;
  return isBatched(content.name) || content.name === 'record_audit' ? content.name : undefined;
}

/** Returns the id that must be unique within a group: that of the command, step, or dead letter. */
function identity({ content }: Item): string {
  if (content.kind === 'request') return content.context.message_id;
  return content.kind === 'ledger_reply' ? content.step_id : content.row.dead_letter_id;
}

const isReply = ({ content }: Item): boolean => content.kind === 'ledger_reply';

/**
 * Removes the groups that may run next, concurrently, from the lanes; otherwise pure, except that it moves replies of
 * the ledger to the front of their lane. A lane contains the waiting items of one partition in order. Only its first
 * items are used: one item, or consecutive items with the same key, which are combined with such items of other lanes.
 * While there are replies, only they run. Returns no groups when the lanes are empty.
 *
 * A reply may overtake commands: the command that began its step has been executed, and the caller of a waiting command
 * has no answer yet. A command overtakes neither a reply nor a command of its lane. With replies in between, groups of
 * commands would be small.
 */
export function nextGroups(lanes: Item[][]): Item[][] {
  const singles: Item[][] = [];
  const merged = new Map<string, { items: Item[]; identities: Set<string> }>();
  // The sort is stable, so replies stay in order, and so do commands.
  for (const lane of lanes) lane.sort((one, other) => Number(isReply(other)) - Number(isReply(one)));
  const withReplies = lanes.filter(([head]) => head !== undefined && isReply(head));
  for (const lane of withReplies.length > 0 ? withReplies : lanes) {
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
