import type { Logger } from 'pino';
import { idsForLog, type ReplyAddress } from '#libs/contracts/envelope.ts';
import type { Unreadable, Unverifiable } from '#libs/contracts/exchange.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { tookTooLong } from '#libs/postgres/errors.ts';
import { unverifiable, type Watched, watchFaults } from './faults.ts';
import { inParallel } from './in-parallel.ts';
import { executeOrBlame, isDefect, mayBePoison, type PoisonRule } from './poison.ts';
import type { Answer, Replies } from './replies.ts';

/** A message and its decoded content. */
export interface Item<T> {
  message: ReceivedMessage;
  content: T;
}

export type CommandConsumer = Watched;

export interface CommandConsumerOptions<T extends { kind: string; address?: ReplyAddress | undefined }>
  extends PoisonRule {
  decode(message: ReceivedMessage): T | Unreadable | Unverifiable;
  /** Replies to repeats without executing them, in any order, and returns the other items. */
  answerRepeats?(items: Item<T>[]): Promise<{ answers: Answer[]; fresh: Item<T>[] }>;
  /**
   * Removes groups that may be executed concurrently from the lanes (each lane contains one partition's items
   * in order). It is called until the lanes are empty. By default all items form one group, in order.
   */
  nextGroups?(lanes: Item<T>[][]): Item<T>[][];
  /** The number of concurrently executed groups. Default 1. */
  concurrency?: number;
  /**
   * Executes a group in one transaction. The returned replies are committed. If it throws, nothing was
   * committed. `afterwards` is called while the replies are being sent.
   */
  execute(group: Item<T>[]): Promise<{ answers: Answer[]; afterwards(): void }>;
  replies: Replies;
  logger: Logger;
}

/**
 * How long a command of an unknown type waits for a process of a version that knows it, after the broker has appended it.
 * Everything that this process would execute later waits with it, and a deadline of a caller's command is 30 s.
 */
export const newerTypeWaitMs = 5_000;

/**
 * Executes commands and decides what happens to one that fails (decision 28):
 * - Poison: a group is halved until the failing command is found. If it fails alone although the probe succeeds, it is
 *   dead-lettered (executeOrBlame), and the others are executed. If the probe fails too, that is a fault.
 * - A group that timed out is halved too; a single command that timed out is a fault.
 * - A message that is signed with a key that this process lacks is a fault: it waits for the key.
 * - A signed message of a type that no message of this version has is a fault for 5 s, because a process of a later
 *   version may be about to replace this one; then it is poison. What was delivered with it in other partitions is executed.
 * - A fault is thrown, and the same messages are delivered again until they succeed. Messages that were
 *   executed are not executed again.
 */
export function createCommandConsumer<T extends { kind: string; address?: ReplyAddress | undefined }>(
  options: CommandConsumerOptions<T>,
): CommandConsumer {
  const { decode, nextGroups = (lanes) => allAtOnce(lanes), concurrency = 1, execute, replies, logger } = options;
  const { answerRepeats } = options;
  const done = new WeakSet<ReceivedMessage>();

  async function executeOrHalve(group: Item<T>[], blamed: { item: Item<T>; error: unknown }[]): Promise<void> {
    const executed = await execute(group).catch(async (error: unknown) => {
      const [item] = group as [Item<T>];
      const isSuspect = mayBePoison(error, options.uniqueIndexes);
      if (!isSuspect && !(tookTooLong(error) && group.length > 1)) throw error;
      logger.warn({ err: error, size: group.length }, 'a group of commands failed; looking for the cause');
      if (group.length === 1) {
        const result = await executeOrBlame(error, () => execute(group), options);
        return 'outcome' in result ? result.outcome : void blamed.push({ item, error: result.poison });
      }
      await executeOrHalve(group.slice(0, group.length >> 1), blamed);
      await executeOrHalve(group.slice(group.length >> 1), blamed);
    });
    if (executed === undefined) return;
    for (const { message } of group) done.add(message);
    replies.send(executed.answers);
    executed.afterwards();
  }

  async function deadLetter({ message, content }: Item<T>, error: unknown): Promise<void> {
    logger.error({ err: error, ...idsForLog(message.headers) }, 'a command cannot be executed');
    // Error messages may contain data of the command.
    const reason = isDefect(error) ? 'the service failed while executing it' : 'the database rejected its data';
    await replies.deadLetter(message, {
      code: 'internal_error',
      reason: `${reason} (${errorKind(error)})`,
      address: content.address,
    });
    done.add(message);
  }

  async function handleAll(messages: ReceivedMessage[]): Promise<void> {
    const items: Item<T>[] = [];
    const newer = new Map<string, string>();
    for (const message of messages) {
      const place = `${message.topic}/${message.partition}`;
      if (done.has(message) || newer.has(place)) continue;
      const content = decode(message);
      if (isUnverifiable(content)) throw unverifiable(message, content);
      if (isUnreadable(content) && content.mayBeNewer && isFresh(message))
        newer.set(place, `${content.reason}, at ${place}/${message.offset}`);
      else if (isUnreadable(content)) await replies.deadLetter(message, content);
      else items.push({ message, content });
    }
    // A poison command is detected when it is executed.
    const repeats = await answerRepeats?.(items).catch((error: unknown) => {
      if (!mayBePoison(error)) throw error;
    });
    if (repeats) replies.send(repeats.answers);
    const blamed: { item: Item<T>; error: unknown }[] = [];
    const lanes = [...Map.groupBy(repeats?.fresh ?? items, ({ message }) => message.partition).values()];
    for (let groups = nextGroups(lanes); groups.length > 0; groups = nextGroups(lanes)) {
      await inParallel(groups, concurrency, (group) => executeOrHalve(group, blamed));
    }
    for (const { item, error } of blamed) await deadLetter(item, error);
    if (newer.size > 0) throw new Error(`waiting for a version that knows a type: ${[...newer.values()].join('; ')}`);
  }

  return watchFaults(handleAll);
}

/** Brokers set the time of a message. One whose clock is far off must not make a partition wait longer. */
const isFresh = ({ timestamp_ms }: ReceivedMessage): boolean => Math.abs(Date.now() - timestamp_ms) < newerTypeWaitMs;

function isUnverifiable<T extends { kind: string }>(content: T | Unverifiable): content is Unverifiable {
  return content.kind === 'unknown_key';
}

function isUnreadable<T extends { kind: string }>(content: T | Unreadable): content is Unreadable {
  return content.kind === 'bad';
}

function allAtOnce<T>(lanes: Item<T>[][]): Item<T>[][] {
  const all = lanes.splice(0).flat();
  return all.length > 0 ? [all] : [];
}

/** Returns the SQLSTATE or the name of our error. */
function errorKind(error: unknown): string {
  return error instanceof Error ? String(Reflect.get(error, 'code') ?? error.name) : 'unknown';
}
