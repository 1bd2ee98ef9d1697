import { setTimeout as sleep } from 'node:timers/promises';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { decodeRequest, type Unreadable, type Unverifiable } from '#libs/contracts/exchange.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { commandPartitions } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { tookTooLong } from '#libs/postgres/errors.ts';
import { type CommandConsumer, createCommandConsumer, type Item } from '#libs/service/command-consumer.ts';
import { recording } from '#libs/service/dead-lettered.ts';
import { executeOrBlame, mayBePoison, type PoisonRule } from '#libs/service/poison.ts';
import { queriesLast, type Request } from '#libs/service/query-consumer.ts';
import { type BatchCommand, type Item as BatchItem, batchCommand } from '../domain/batches.ts';
import { type CommandDependencies, chooseSlot, isSound, unsound } from './commands.ts';
import { recordIn } from './dead-lettered.ts';
import { runBatch, uniqueIndexes } from './engine.ts';
import { probe } from './probe.ts';

/**
 * Executes callers' batches, which arrive on a separate topic. Another writer executes single commands, so that
 * they never wait behind a batch. The two writers compete for the machine and for the locks of accounts. While
 * single commands arrive, batches therefore use smaller transactions, and pause after each one for as long as
 * it took.
 */

type BatchRequest = Request & { data: MessageData<'create_batch'> };

/**
 * The number of items per transaction, while single commands arrive and otherwise. Atomic batches always use
 * one transaction.
 */
const steps = { beside: 50, alone: 500 };

type BatchDependencies = Omit<CommandDependencies, 'pace'> & {
  /** Reports whether this process is currently receiving single commands. */
  hasSingles: () => boolean;
};

/** Executes the waiting batches of callers, from all partitions. */
export function ledgerBatches(deps: BatchDependencies): CommandConsumer {
  const { pool, relay, observe, hasSingles, logger } = deps;
  const step = () => (hasSingles() ? steps.beside : steps.alone);
  // What a person's batch adds up to is decided about as a whole.
  const stepSize = ({ items, context }: BatchCommand) => (context.four_eyes === undefined ? step() : items.length);
  let restUntil = 0;
  // This writer has its own slots of Teller and Vault, so it and the writer of single commands do not wait for each other.
  const slot = (group: Item<unknown>[]) => commandPartitions + chooseSlot(group, deps);
  const rule: PoisonRule = { uniqueIndexes, probe: () => probe(pool, slot([])) };

  /** Decides and commits the items of some commands of a group in one transaction. */
  const run = async (commands: BatchCommand[], group: Item<BatchRequest>[]): Promise<ReplyBody[]> => {
    const waitMs = restUntil - performance.now();
    if (waitMs > 0 && hasSingles()) await sleep(waitMs);
    const { replies, times, written } = await runBatch(pool, commands, slot(group), [], relay);
    restUntil = 2 * times.committed - times.begun;
    relay.wake(written);
    observe?.({ commands, replies, times });
    return replies;
  };

  const logPoison = ({ index, command: { context } }: BatchItem, err: unknown) =>
    logger.error(
      { err, index, batch_id: context.batch_id, request_id: context.request_id },
      'an item of a batch cannot be decided',
    );

  const execute = async (group: Item<BatchRequest>[]) => {
    const commands = group.map(({ content }) => batchCommand(content.data, content.context));
    const [first] = commands as [BatchCommand];
    const replies =
      commands.length === 1 && first.data.mode === 'independent'
        ? [await runInParts(first, stepSize(first), (part) => run([part], group), rule, logPoison)]
        : await run(commands, group);
    const answers = group.map(({ content: { address, context } }, i) => ({
      address,
      body: replies[i] as ReplyBody,
      context,
    }));
    return { answers, afterwards: () => undefined };
  };

  const consumer = createCommandConsumer<BatchRequest>({
    decode: (message) => decode(message, deps),
    nextGroups: (lanes) => nextGroup(lanes, step()),
    execute,
    ...rule,
    replies: recording(deps.replies, recordIn(pool)),
    logger,
  });
  return { ...consumer, handle: queriesLast(consumer.handle, deps.answerQueries) };
}

function decode(message: ReceivedMessage, deps: BatchDependencies): BatchRequest | Unreadable | Unverifiable {
  const decoded = decodeRequest(message, (name) => name === 'create_batch', deps);
  if (decoded.kind !== 'request') return decoded;
  const request = decoded as BatchRequest;
  return isSound(request.context) && isId('batch', request.data.batch_id) ? request : unsound(request);
}

/** Takes one message, and further ones as long as they fit into the same transaction. */
function nextGroup(lanes: Item<BatchRequest>[][], most: number): Item<BatchRequest>[][] {
  const group: Item<BatchRequest>[] = [];
  let size = 0;
  for (const lane of lanes) {
    for (let next = lane[0]; next && (size === 0 || size + next.content.data.items.length <= most); next = lane[0]) {
      size += next.content.data.items.length;
      group.push(next);
      lane.shift();
    }
  }
  return group.length > 0 ? [group] : [];
}

/**
 * Executes an independent message in several transactions. Each item is a separate command. If one is poison, it is
 * found by halving and recorded as Failed. `onPoison` is then called. The decisions about the others stand.
 */
async function runInParts(
  command: BatchCommand,
  size: number,
  run: (part: BatchCommand) => Promise<ReplyBody[]>,
  rule: PoisonRule,
  onPoison: (item: BatchItem, error: unknown) => void,
): Promise<ReplyBody> {
  const replies: ReplyBody[] = [];
  const runOrHalve = async (part: BatchCommand): Promise<void> => {
    try {
      replies.push(...(await run(part)));
    } catch (error) {
      const [item, ...others] = part.items as [BatchItem, ...BatchItem[]];
      if (!mayBePoison(error, rule.uniqueIndexes) && !tookTooLong(error)) throw error;
      if (others.length > 0) {
        for (const half of splitBatch(part, Math.ceil(part.items.length / 2))) await runOrHalve(half);
        return;
      }
      const result = await executeOrBlame(error, () => run(part), rule);
      if ('outcome' in result) return void replies.push(...result.outcome);
      replies.push(...(await run({ ...part, items: [{ ...item, isPoison: true }] })));
      onPoison(item, result.poison);
    }
  };
  for (const part of splitBatch(command, size)) await runOrHalve(part);
  return together(replies);
}

function splitBatch(command: BatchCommand, size: number): BatchCommand[] {
  const count = Math.ceil(command.items.length / size);
  return Array.from({ length: count }, (_, i) => ({
    ...command,
    items: command.items.slice(i * size, (i + 1) * size),
  }));
}

/**
 * Combines the replies to the parts of a message. If one part is refused, so is the whole message: the key was
 * used for another request.
 */
function together(replies: ReplyBody[]): ReplyBody {
  const [only] = replies;
  if (only !== undefined && (replies.length === 1 || !only.ok)) return only;
  const results = replies.flatMap((reply) => (reply.ok ? (reply.data as MessageResult<'create_batch'>).results : []));
  const isReplayed = replies.every(({ replayed }) => replayed === true);
  return { ok: true, data: { results }, ...(isReplayed ? { replayed: true } : {}) };
}
