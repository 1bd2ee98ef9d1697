import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { decodeRequest, notAuthentic, type Reader } from '#libs/contracts/exchange.ts';
import { isId } from '#libs/contracts/ids.ts';
import { messageOfType, type MessageName } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type CommandConsumer, createCommandConsumer, type Item } from '#libs/service/command-consumer.ts';
import type { Request } from '#libs/service/query-consumer.ts';
import type { Replies, Unreadable } from '#libs/service/replies.ts';
import { recordDeadLettered } from './dead-lettered.ts';
import { type BatchTimes, runBatch } from './engine.ts';
import type { Command, CommandName } from '../domain/decision.ts';

export interface CommandDependencies extends Reader {
  pool: Pool;
  replies: Replies;
  logger: Logger;
  /** The outbox relay's wake. */
  wake: () => void;
  pace?: Pace;
  /** The command partitions held. */
  partitions: () => number[];
  observe?: (batch: DecidedBatch) => void;
  /** Answers queries that come behind commands, once these are executed. */
  answerQueries: (messages: ReceivedMessage[]) => Promise<void>;
}

/** Batches of several, but fewer than `full`, begin at least `ms` apart. */
export interface Pace {
  full: number;
  ms: number;
}

/** Commands with their replies, in the same order, and when what was done. */
export interface DecidedBatch {
  commands: Command[];
  replies: ReplyBody[];
  times: BatchTimes;
}

const commandNames: readonly MessageName[] = [
  'create_transaction',
  'create_transfer',
  'reverse_transaction',
  'open_ledger_account',
  'change_ledger_account_status',
] satisfies CommandName[];

/** Queries that may come behind commands, to be answered after them. */
const queriesBehind: readonly MessageName[] = ['get_transaction', 'get_transfer'];

/** Executes what waits of all partitions as one batch. */
export function ledgerCommands(deps: CommandDependencies): CommandConsumer {
  const { logger, answerQueries, pace } = deps;
  const consumer = createCommandConsumer({ decode: (message) => decode(message, deps), execute: (batch) => execute(batch, deps), replies: recording(deps), logger });
  return {
    ...consumer,
    async handle(messages) {
      const begun = performance.now();
      await consumer.handle(messages.filter((message) => !isQuery(message)));
      await answerQueries(messages.filter(isQuery));
      const waitMs = pauseMs(messages.length, performance.now() - begun, pace);
      if (waitMs > 0) await sleep(waitMs);
    },
  };
}

function isQuery({ headers }: ReceivedMessage): boolean {
  const name = messageOfType(headers['ce_type'] ?? '');
  return name !== undefined && queriesBehind.includes(name);
}

/** A posting is recorded before it is dead-lettered: to whoever asks for its id afterwards it must not be unknown. A forged one says nothing of its id. */
function recording({ pool, replies }: CommandDependencies): Replies {
  return {
    ...replies,
    async deadLetter(message, why) {
      if (why.code !== notAuthentic.code) await recordDeadLettered(pool, message.headers);
      await replies.deadLetter(message, why);
    },
  };
}

/**
 * How many ms to wait before more is asked for, behind a batch of `size` that began `sinceMs` ago: what comes meanwhile is
 * decided as one batch. Not behind a single command: who sends one after another would wait each time, for nobody.
 */
export function pauseMs(size: number, sinceMs: number, { full, ms }: Pace = { full: 0, ms: 0 }): number {
  return size > 1 && size < full ? Math.max(0, ms - sinceMs) : 0;
}

async function execute(batch: Item<Request>[], deps: CommandDependencies) {
  const commands = batch.map(({ content }) => content as Command & Request);
  const { replies, times } = await runBatch(deps.pool, commands, slotOf(batch, deps));
  return {
    answers: commands.map(({ address, context }, i) => ({ address, body: replies[i] as ReplyBody, context })),
    afterwards() {
      deps.wake();
      deps.observe?.({ commands, replies, times });
    },
  };
}

/** The slot of Teller and Vault is named by the lowest partition held; of the batch, where a rebalance has just taken them all. */
function slotOf(batch: Item<Request>[], { partitions }: CommandDependencies): number {
  const held = partitions();
  return Math.min(...(held.length > 0 ? held : batch.map(({ message }) => message.partition)));
}

function decode(message: ReceivedMessage, reader: Reader): Request | Unreadable {
  const decoded = decodeRequest(message, (name) => commandNames.includes(name), reader);
  if (decoded.kind === 'bad' || ownIdsAreSound(decoded as Command & Request)) return decoded;
  return { kind: 'bad', code: 'invalid_data', reason: 'an id that the sender makes is malformed', address: decoded.address };
}

/** The ids that the gateway makes; those that a caller gave may be anything, and are unknown then. */
function ownIdsAreSound({ name, data, context }: Command): boolean {
  const sound = /[0-9a-f]{32}$/.test(context.message_id) && (context.fingerprint === undefined || /^[0-9a-f]{32}$/.test(context.fingerprint));
  if (!sound) return false;
  if (name === 'create_transfer') return isId('transfer', data.transfer_id);
  if (name === 'open_ledger_account') return isId('account', data.account_id) && isId('client', data.client_id);
  if (name === 'change_ledger_account_status') return isId('transition', data.transition_id);
  return isId('transaction', data.transaction_id);
}
