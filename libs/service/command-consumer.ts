import type { Logger } from 'pino';
import { idsOf, type ReplyAddress } from '#libs/contracts/envelope.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { tookTooLong } from '#libs/postgres/errors.ts';
import type { CheckResult } from './health.ts';
import { inParallel } from './in-parallel.ts';
import { isDefect, isPoison } from './poison.ts';
import type { Answer, Replies, Unreadable } from './replies.ts';

/** A message and what it says. */
export interface Item<T> {
  message: ReceivedMessage;
  content: T;
}

export interface CommandConsumerOptions<T extends { kind: string; address?: ReplyAddress | undefined }> {
  decode(message: ReceivedMessage): T | Unreadable;
  /**
   * Takes groups that may be executed side by side off the lanes, each of which is one partition's
   * items in order; called until the lanes are empty. By default everything is one group, in order.
   */
  nextGroups?(lanes: Item<T>[][]): Item<T>[][];
  /** Groups under way at the same time. Default 1. */
  concurrency?: number;
  /**
   * Executes a group in one transaction; what the answers say is committed. Throws with nothing
   * done. `afterwards` is called once the answers are on their way: nothing waits until they have
   * been sent.
   */
  execute(group: Item<T>[]): Promise<{ answers: Answer[]; afterwards(): void }>;
  replies: Replies;
  logger: Logger;
}

export interface CommandConsumer {
  /** What libs/kafka's consume calls with the messages that wait. */
  handle(messages: ReceivedMessage[]): Promise<void>;
  /** Not ok while every attempt fails for a reason that no message is to blame for. */
  health(): CheckResult;
}

/** Partitions may have been taken away since the last attempt, and then nobody tries again here. */
const recentMs = 30_000;

/**
 * Executes commands, and decides what becomes of one that fails (decision 28):
 * - Poison: a group is halved down to the command which is to blame; that one is dead-lettered, its
 *   neighbours are executed.
 *   Where our own code fails, the command is to blame only if this process has executed another one: code does not change
 *   while it runs. Otherwise it is a fault.
 * - A group that took too long is halved too; a single command that did is a fault.
 * - A fault is thrown, and the same messages come again, until it is over. Of these, what is done is not done twice.
 */
export function createCommandConsumer<T extends { kind: string; address?: ReplyAddress | undefined }>(
  options: CommandConsumerOptions<T>,
): CommandConsumer {
  const { decode, nextGroups = (lanes) => allAtOnce(lanes), concurrency = 1, execute, replies, logger } = options;
  const done = new WeakSet<ReceivedMessage>();
  let hasExecuted = false;
  let fault: { at: number; reason: string } | undefined;

  async function executeOrHalve(group: Item<T>[], blamed: { item: Item<T>; error: unknown }[]): Promise<void> {
    const executed = await execute(group).catch(async (error: unknown) => {
      const [item] = group as [Item<T>];
      if (group.length === 1 && isPoison(error)) return void blamed.push({ item, error });
      if (group.length === 1 || !(isPoison(error) || tookTooLong(error))) throw error;
      logger.warn({ err: error, size: group.length }, 'a group of commands failed; its halves are tried');
      await executeOrHalve(group.slice(0, group.length >> 1), blamed);
      await executeOrHalve(group.slice(group.length >> 1), blamed);
    });
    if (executed === undefined) return;
    hasExecuted = true;
    for (const { message } of group) done.add(message);
    replies.send(executed.answers);
    executed.afterwards();
  }

  async function deadLetter({ message, content }: Item<T>, error: unknown): Promise<void> {
    if (isDefect(error) && !hasExecuted) throw error;
    logger.error({ err: error, ...idsOf(message.headers) }, 'a command cannot be executed');
    // Messages of errors may hold what the command says.
    const reason = isDefect(error) ? 'the service failed on it' : 'the database refused its data';
    await replies.deadLetter(message, {
      code: 'internal_error',
      reason: `${reason} (${kindOf(error)})`,
      address: content.address,
    });
    done.add(message);
  }

  async function handleAll(messages: ReceivedMessage[]): Promise<void> {
    const items: Item<T>[] = [];
    for (const message of messages) {
      if (done.has(message)) continue;
      const content = decode(message);
      if (isUnreadable(content)) await replies.deadLetter(message, content);
      else items.push({ message, content });
    }
    const blamed: { item: Item<T>; error: unknown }[] = [];
    const lanes = [...Map.groupBy(items, ({ message }) => message.partition).values()];
    for (let groups = nextGroups(lanes); groups.length > 0; groups = nextGroups(lanes)) {
      await inParallel(groups, concurrency, (group) => executeOrHalve(group, blamed));
    }
    for (const { item, error } of blamed) await deadLetter(item, error);
  }

  return {
    async handle(messages) {
      try {
        await handleAll(messages);
        fault = undefined;
      } catch (error) {
        fault = { at: performance.now(), reason: describe(error) };
        throw error;
      }
    },
    health: () =>
      fault !== undefined && performance.now() - fault.at < recentMs
        ? { ok: false, reason: fault.reason }
        : { ok: true },
  };
}

function isUnreadable<T extends { kind: string }>(content: T | Unreadable): content is Unreadable {
  return content.kind === 'bad';
}

function allAtOnce<T>(lanes: Item<T>[][]): Item<T>[][] {
  const all = lanes.splice(0).flat();
  return all.length > 0 ? [all] : [];
}

/** The SQLSTATE, or the kind of an error of ours. */
function kindOf(error: unknown): string {
  return error instanceof Error ? String(Reflect.get(error, 'code') ?? error.name) : 'unknown';
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}`.slice(0, 500) : 'unknown';
}
