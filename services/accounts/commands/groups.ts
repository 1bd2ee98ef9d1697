import type { Item as ItemOf } from '#libs/service/command-consumer.ts';
import type { Decoded } from './decode.ts';
import { isBatched } from './handlers.ts';

export type Item = ItemOf<Decoded>;

/**
 * The maximum number of messages of one transaction. A command is executed in its own transaction, unless it is one of
 * those that arrive in large numbers: with a transaction for each message, accounts took 175 commands of an import a
 * second instead of 711, measured alternately on two busy cores (27 November 2026).
 */
const maxGroup = 100;

/** Returns the name under which messages are executed together, or undefined if this one is executed alone. */
function groupName({ content }: Item): string | undefined {
  if (content.kind !== 'request') return content.kind;
  return isBatched(content.name) || content.name === 'record_audit' ? content.name : undefined;
}

const isReply = ({ content }: Item): boolean => content.kind === 'ledger_reply';
const commandId = ({ content }: Item) => (content.kind === 'request' ? content.context.message_id : undefined);

/**
 * Removes the groups that may run next, concurrently, from the lanes, each of which contains the waiting messages of a
 * partition in order. Returns none when the lanes are empty.
 * - Replies of the ledger come first, also before commands that were sent earlier: the command that began their step has
 *   been executed, and the caller of a waiting command has no answer yet. Between replies, groups of commands would be
 *   small. A group of them at a time keeps their order: two may change the status of one account.
 * - Then the first message of each lane, with those after it that have the same name, if they are executed together. Such
 *   messages of all lanes form one group, in which no command occurs twice.
 */
export function nextGroups(lanes: Item[][]): Item[][] {
  const replies = new Set(lanes.flatMap((lane) => lane.filter(isReply)).slice(0, maxGroup));
  if (replies.size > 0) {
    for (const lane of lanes) lane.splice(0, lane.length, ...lane.filter((item) => !replies.has(item)));
    return [[...replies]];
  }
  const alone: Item[][] = [];
  const together = new Map<string, Item[]>();
  for (const lane of lanes) {
    const name = lane[0] && groupName(lane[0]);
    if (name === undefined) alone.push(lane.splice(0, 1));
    else {
      const group = together.get(name) ?? [];
      together.set(name, group);
      const ids = new Set(group.map(commandId));
      const fits = (item: Item) =>
        group.length < maxGroup &&
        groupName(item) === name &&
        (commandId(item) === undefined || !ids.has(commandId(item)));
      for (let next = lane[0]; next && fits(next); next = lane[0]) {
        ids.add(commandId(next));
        group.push(next);
        lane.shift();
      }
    }
  }
  return [...together.values(), ...alone].filter((group) => group.length > 0);
}
