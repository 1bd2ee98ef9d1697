import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { decodeRequest, type Reader, type Unreadable, type Unverifiable } from '#libs/contracts/exchange.ts';
import { isId } from '#libs/contracts/ids.ts';
import { messages as table } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Relay } from '#libs/postgres/outbox/relay.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type CommandConsumer, createCommandConsumer, type Item } from '#libs/service/command-consumer.ts';
import { recording } from '#libs/service/dead-lettered.ts';
import { queriesLast, type Request } from '#libs/service/query-consumer.ts';
import type { Replies } from '#libs/service/replies.ts';
import type { Command, SingleCommand } from '../domain/decision.ts';
import { recordIn } from './dead-lettered.ts';
import { type BatchTimes, runBatch, uniqueIndexes } from './engine.ts';
import { probe } from './probe.ts';

export interface CommandDependencies extends Reader {
  pool: Pool;
  replies: Replies;
  logger: Logger;
  relay: Pick<Relay, 'known' | 'wake'>;
  pace?: Pace;
  /** Returns the assigned command partitions. */
  partitions: () => number[];
  observe?: (batch: DecidedBatch) => void;
  /** Answers queries that were sent to the command topic, after the commands before them. */
  answerQueries: (messages: ReceivedMessage[]) => Promise<void>;
}

/**
 * The pace of batches, which makes them larger when the process is busy. After a batch of more than one and
 * fewer than `full` commands, the next one starts at least `ms` milliseconds after its start if the thread is
 * busy for half of the time or more, and proportionally sooner if it is less busy.
 */
export interface Pace {
  full: number;
  ms: number;
}

/** Commands with their replies, in the same order, and the times of the batch. */
export interface DecidedBatch {
  commands: Command[];
  replies: ReplyBody[];
  times: BatchTimes;
}

const busyWindowMs = 250;

/** Executes the waiting single commands of all partitions as one batch. */
export function ledgerCommands(deps: CommandDependencies): CommandConsumer {
  const { pool, replies, logger, pace } = deps;
  const busy = busyMeter();
  const consumer = createCommandConsumer({
    decode: (message) => decode(message, deps),
    execute: (batch) => execute(batch, deps),
    uniqueIndexes,
    probe: () => probe(pool, chooseSlot([], deps)),
    replies: recording(replies, recordIn(pool)),
    logger,
  });
  const handle = queriesLast(consumer.handle, deps.answerQueries);
  return {
    ...consumer,
    async handle(messages) {
      const begun = performance.now();
      await handle(messages);
      const waitMs = pauseMs(messages.length, performance.now() - begun, busy(), pace);
      if (waitMs > 0) await sleep(waitMs);
    },
  };
}

/**
 * Returns how long to wait, in ms, before the next batch after one of `size` commands that began `sinceMs` ago,
 * in a thread that is busy for the fraction `busy` of the time. Commands that arrive meanwhile form one batch.
 * There is no wait after a single command, because that would only delay a caller that sends one command after
 * another.
 */
export function pauseMs(size: number, sinceMs: number, busy: number, { full, ms }: Pace = { full: 0, ms: 0 }): number {
  return size > 1 && size < full ? Math.max(0, ms * Math.min(1, 2 * busy) - sinceMs) : 0;
}

/** Returns a function that reports how busy this thread was, from 0 to 1, in the latest quarter of a second or more. */
function busyMeter(): () => number {
  let start = performance.eventLoopUtilization();
  let startedAt = performance.now();
  let busy = 0;
  return () => {
    if (performance.now() - startedAt < busyWindowMs) return busy;
    const now = performance.eventLoopUtilization();
    busy = performance.eventLoopUtilization(now, start).utilization;
    start = now;
    startedAt = performance.now();
    return busy;
  };
}

async function execute(batch: Item<Request>[], deps: CommandDependencies) {
  const commands = batch.map(({ content }) => content as Command & Request);
  const { replies, times, written } = await runBatch(deps.pool, commands, chooseSlot(batch, deps), [], deps.relay);
  return {
    answers: commands.map(({ address, context }, i) => ({ address, body: replies[i] as ReplyBody, context })),
    afterwards() {
      deps.relay.wake(written);
      deps.observe?.({ commands, replies, times });
    },
  };
}

/**
 * Returns the slot of Teller and Vault: the lowest assigned partition or, if a rebalance has just revoked all
 * of them, the lowest partition of the batch, or 0.
 */
export function chooseSlot(batch: Item<unknown>[], { partitions }: Pick<CommandDependencies, 'partitions'>): number {
  const held = partitions();
  const [first = 0, ...others] = held.length > 0 ? held : batch.map(({ message }) => message.partition);
  return Math.min(first, ...others);
}

function decode(message: ReceivedMessage, reader: Reader): Request | Unreadable | Unverifiable {
  const decoded = decodeRequest(message, (name) => table[name].topic === 'ledger.commands', reader);
  return decoded.kind !== 'request' || ownIdsAreSound(decoded as SingleCommand & Request) ? decoded : unsound(decoded);
}

export function unsound({ address }: Request): Unreadable {
  return { kind: 'bad', code: 'invalid_data', reason: 'an id that the sender makes is malformed', address };
}

export function isSound({ message_id, fingerprint }: MessageContext): boolean {
  return /[0-9a-f]{32}$/.test(message_id) && (fingerprint === undefined || /^[0-9a-f]{32}$/.test(fingerprint));
}

/** Checks the ids generated by the gateway. Ids supplied by callers may be anything and are treated as unknown. */
function ownIdsAreSound({ name, data, context }: SingleCommand): boolean {
  if (!isSound(context)) return false;
  if (name === 'create_transfer') return isId('transfer', data.transfer_id);
  if (name === 'place_hold') return isId('hold', data.hold_id);
  if (name === 'release_hold' || name === 'set_account_limits' || name === 'close_day' || name === 'close_till')
    return true;
  if (name === 'open_till') return isId('till', data.till_id);
  if (name === 'open_ledger_account') return isId('account', data.account_id) && isId('client', data.client_id);
  if (name === 'change_ledger_account_status') return isId('transition', data.transition_id);
  return isId('transaction', data.transaction_id);
}
