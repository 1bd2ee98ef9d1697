import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { replyAddress, type ReplyBody } from '#libs/contracts/envelope.ts';
import { decodeRequest } from '#libs/contracts/exchange.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageName } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Publisher } from '#libs/kafka/publish/publish.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { isUnavailable, tookTooLong } from '#libs/postgres/transaction.ts';
import { recordDeadLettered } from './dead-lettered.ts';
import { type BatchTimes, runBatch } from './engine.ts';
import type { Command, CommandName } from './decision.ts';
import type { Query } from './queries.ts';
import { type Poison, type ReplyDependencies, sendReplies, setAside } from './replies.ts';
import { answerQueries } from './serve-queries.ts';

/**
 * From messages to the engine and back: decode and validate, run the batch, then reply. What cannot be processed is
 * dead-lettered once and answered where its headers allow; one bad command never fails its batch.
 */
export interface CommandDependencies {
  pool: Pool;
  publisher: Publisher;
  /** The common prefix of topics. */
  prefix: string;
  logger: Logger;
  /** The bank's time, in ms since 1970. */
  now: () => number;
  /** The outbox relay's wake. */
  wake: () => void;
  pace?: Pace;
  /** The command partitions held. */
  partitions: () => number[];
  observe?: (batch: DecidedBatch) => void;
  onDeadLetter?: ReplyDependencies['onDeadLetter'];
  onReplies?: ReplyDependencies['onReplies'];
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

type Content = { command: Command } | { query: Query } | { poison: Poison };

const commandNames: readonly MessageName[] = [
  'create_transaction',
  'create_transfer',
  'reverse_transaction',
  'open_ledger_account',
  'change_ledger_account_status',
] satisfies CommandName[];

/** Queries that may come behind commands, to be answered after them. */
const queriesBehind: readonly MessageName[] = ['get_transaction', 'get_transfer'];

export function commandHandler(deps: CommandDependencies): (messages: ReceivedMessage[]) => Promise<void> {
  // Where the database is away the same messages come again: what is set aside already stays so.
  const aside = new WeakSet<ReceivedMessage>();
  return async (messages) => {
    const begun = performance.now();
    const commands: Received[] = [];
    const queries: Query[] = [];
    for (const message of messages) {
      const content = decode(message, deps.prefix);
      if ('command' in content) commands.push({ message, command: content.command });
      else if ('query' in content) queries.push(content.query);
      else if (!aside.has(message)) {
        await deadLetter(message, content.poison, deps);
        aside.add(message);
      }
    }
    if (commands.length > 0) await execute(commands, deps);
    await answerQueries(queries, deps);
    const waitMs = pauseMs(messages.length, performance.now() - begun, deps.pace);
    if (waitMs > 0) await sleep(waitMs);
  };
}

/**
 * How many ms to wait before more is asked for, behind a batch of `size` that began `sinceMs` ago: what comes meanwhile is
 * decided as one batch. Not behind a single command: who sends one after another would wait each time, for nobody.
 */
export function pauseMs(size: number, sinceMs: number, { full, ms }: Pace = { full: 0, ms: 0 }): number {
  return size > 1 && size < full ? Math.max(0, ms - sinceMs) : 0;
}

interface Received {
  message: ReceivedMessage;
  command: Command;
}

/**
 * Runs a batch; where it fails for a reason that no repeat can mend, the halves are run alone, down to the culprit. So are
 * those of a batch that took too long: as a whole it might take too long for ever.
 */
async function execute(batch: Received[], deps: CommandDependencies): Promise<void> {
  const commands = batch.map(({ command }) => command);
  try {
    const { replies, times } = await runBatch(deps.pool, commands, slotOf(batch, deps));
    sendReplies(commands.map(({ context }, i) => ({ context, reply: replies[i] as ReplyBody })), deps);
    deps.wake();
    deps.observe?.({ commands, replies, times });
  } catch (error) {
    const [only, second] = batch;
    if (isUnavailable(error) && (second === undefined || !tookTooLong(error))) throw error;
    if (only && second === undefined) {
      const { message_id, request_id } = only.command.context;
      deps.logger.error({ err: error, command_id: message_id, request_id }, 'a command cannot be processed');
      await deadLetter(only.message, { code: 'internal_error', reason: 'the database refused it', address: replyAddress(only.command.context) }, deps);
      return;
    }
    deps.logger.warn({ err: error, size: batch.length }, 'a batch failed, its halves are tried');
    await execute(batch.slice(0, batch.length >> 1), deps);
    await execute(batch.slice(batch.length >> 1), deps);
  }
}

/** Recorded first: whoever asks for its id behind it must not be told that nobody knows it. */
async function deadLetter(message: ReceivedMessage, poison: Poison, deps: CommandDependencies): Promise<void> {
  await recordDeadLettered(deps.pool, message.headers);
  await setAside(message, poison, deps);
}

/** The slot of Teller and Vault is named by the lowest partition held; of the batch, where a rebalance has just taken them all. */
function slotOf(batch: Received[], { partitions }: CommandDependencies): number {
  const held = partitions();
  return Math.min(...(held.length > 0 ? held : batch.map(({ message }) => message.partition)));
}

function decode(message: ReceivedMessage, prefix: string): Content {
  const decoded = decodeRequest(message, (name) => commandNames.includes(name) || queriesBehind.includes(name), prefix);
  if (decoded.kind === 'bad') return { poison: decoded };
  const { name, data, context, address } = decoded;
  if (queriesBehind.includes(name)) return { query: { name, data, context } as Query };
  const command = { name, data, context } as Command;
  return ownIdsAreSound(command) ? { command } : { poison: { code: 'invalid_data', reason: 'an id that the sender makes is malformed', address } };
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
