import type { MessageName } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { compare, type Decided, decisionsOfItems, type Evidence, json, type Place, readDecision } from './evidence.ts';

/** Plans what is sent again, and in which order. Pure. */

/** The command topics, each with its consumer group. */
export const groups = {
  'accounts.commands': 'accounts',
  'ledger.commands': 'ledger',
  'ledger.batches': 'ledger-batches',
} as const;
export type Commands = keyof typeof groups;

export interface Command {
  topic: Commands;
  name: MessageName;
  message: ReceivedMessage;
}

/** A message to send, and its place among all. */
export interface Sending extends Place {
  topic: Commands;
  message: ReceivedMessage;
  /** It gets a new deadline. */
  isRenewed: boolean;
  /** See MessageContext. */
  decided?: string;
}

/** Returns the decisions about a command: one, or those about the items of a batch. */
export function findDecisions({ name, message }: Command, evidence: Evidence): Decided[] {
  const decisions =
    name === 'create_batch' ? decisionsOfItems(message, evidence) : [readDecision(message, name, evidence)];
  return decisions.filter((one) => one !== undefined);
}

/** Reports whether the decisions are those about this message, and not about another request with the same id. */
export function wasDecided(command: Command, evidence: Evidence): boolean {
  const request = command.message.headers['request-id'];
  return findDecisions(command, evidence).some(({ request_id }) => request_id === request);
}

/** Returns the messages: first what was decided, in that order, and then what is late, by topic. */
export function planSendings(commands: readonly Command[], evidence: Evidence): Sending[] {
  return commands
    .flatMap((command) =>
      command.name === 'create_batch' ? planParts(command, evidence) : [single(command, evidence)],
    )
    .toSorted((a, b) => compare(a, b) || a.message.timestamp_ms - b.message.timestamp_ms);
}

const isLate = ({ code }: Decided): boolean => code === 'deadline_exceeded';

/** What was not decided, or was late, keeps its deadline. After everything else, because it has no effect. */
function late({ topic, message }: Command): Sending {
  return { at: `later ${topic}`, batch: 0, position: 0, topic, message, isRenewed: false };
}

/** Whatever was decided is named, success as nothing, or a command that was approved would wait for an approval again. */
function renewed({ topic, message }: Command, { at, batch, position }: Place, decided: string): Sending {
  return { at, batch, position, topic, message, isRenewed: true, decided };
}

function single(command: Command, evidence: Evidence): Sending {
  const decided = readDecision(command.message, command.name, evidence);
  return decided === undefined || isLate(decided) ? late(command) : renewed(command, decided, decided.code ?? '');
}

/**
 * An independent batch is sent in the parts in which it was executed, because single commands may have been decided
 * between them. Items that are in no part are refused as late.
 */
function planParts(command: Command, evidence: Evidence): Sending[] {
  const items = decisionsOfItems(command.message, evidence);
  const decided = [...items.entries()].flatMap(([index, item]) => (item && !isLate(item) ? [{ index, ...item }] : []));
  const [first] = decided;
  if (first === undefined) return [late(command)];
  if (json(command.message)['mode'] === 'atomic')
    return [renewed(command, first, JSON.stringify(Object.fromEntries(items.map((_, index) => [index, '']))))];
  const parts = [...Map.groupBy(decided, ({ batch }) => batch).values()].map((part) => {
    const codes = part.map(({ index, code = '' }) => [index, code] as const);
    return renewed(command, part[0] ?? first, JSON.stringify(Object.fromEntries(codes)));
  });
  return decided.length === items.length ? parts : [...parts, late(command)];
}
