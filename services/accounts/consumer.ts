import type { Logger } from 'pino';
import { ZodError } from 'zod';
import type { AuditRecord } from '#libs/contracts/administration.ts';
import { idsOf, source } from '#libs/contracts/envelope.ts';
import type { MessageContext, ReplyAddress, ReplyBody } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { replyMessage } from '#libs/contracts/exchange.ts';
import type { MessageData, MessageName } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { recordAudits } from './audit.ts';
import { clientReads } from './client-reads.ts';
import { insertDeadLetters } from './dead-letter-store.ts';
import { deadLetterRow, isDeadLetterTopic } from './dead-letters.ts';
import { decode } from './decode.ts';
import type { Decoded } from './decode.ts';
import { applyLedgerReplies, executeCommands } from './execute.ts';
import type { Answer, Executed } from './execute.ts';
import { recordUse } from './key-store.ts';
import { nextGroups } from './lanes.ts';
import type { Item } from './lanes.ts';
import type { DeadLetterTopics } from './outcome.ts';
import { batchedQueryHandlers, queryHandlers } from './queries.ts';
import type { BatchedQuery, BatchedQueryName, QueryName, Read } from './queries.ts';

export interface ConsumerDeps {
  pool: Pool;
  prefix: string;
  logger: Logger;
  /** How many partitions' commands, or queries, run at the same time: as many connections are in use. */
  concurrency: number;
  /** Rejects when it cannot say that the broker has the message. */
  publish(message: OutgoingMessage): Promise<void>;
  deadLetter(message: ReceivedMessage, why: { code: string; reason: string }): Promise<void>;
  /** Where they lie. */
  deadLetters: DeadLetterTopics;
  wakeRelay(): void;
  now(): Date;
  observe(handled: Handled): void;
}

/** Messages of one name that were handled together. */
export interface Handled {
  name: string;
  messages: ReceivedMessage[];
  /** Of performance.now. */
  startedAt: number;
  /** Of the commands among them that were decided, or of those whose sagas they ended. */
  outcomes: Executed['outcomes'];
}

type Handle = (messages: ReceivedMessage[]) => Promise<void>;
type Request = Extract<Decoded, { kind: 'request' }>;

/**
 * Handles what waits on accounts.commands: the messages of one partition in order, partitions side by side, and what comes in
 * bulk put together over all partitions (see nextGroups). Replies leave after each commit, and the batch is done when all are
 * sent. Dead letters, which come here too, are listed. A message that can never work goes to the dead letters; a fault of the database is thrown, so that the batch comes
 * again, of which what was done is skipped.
 */
export function commandConsumer(deps: ConsumerDeps): Handle {
  const handled = new WeakSet<ReceivedMessage>();
  return async (messages) => {
    const sent: Promise<void>[] = [];
    await listDeadLetters(deps, messages.filter((message) => isDeadLetterTopic(message.topic) && !handled.has(message)), handled);
    const items = messages.filter((message) => !handled.has(message)).map((message) => ({ message, decoded: decode(message, 'accounts.commands', deps.prefix) }));
    const lanes = [...Map.groupBy(items, ({ message }) => message.partition).values()];
    try {
      for (let groups = nextGroups(lanes); groups.length > 0; groups = nextGroups(lanes)) {
        await inParallel(groups, deps.concurrency, (group) => handleGroup(deps, group, (done, answers) => {
          sent.push(...answers.map((answer) => send(deps, answer)));
          for (const { message } of done) handled.add(message);
        }));
      }
    } finally {
      await Promise.all(sent);
    }
  };
}

/** Lists dead letters, each once. One that the database refuses is logged and left in its topic: it must never be put aside again. */
async function listDeadLetters(deps: ConsumerDeps, letters: ReceivedMessage[], handled: WeakSet<ReceivedMessage>): Promise<void> {
  if (letters.length === 0) return;
  try {
    await insertDeadLetters(deps.pool, letters.map((letter) => deadLetterRow(letter, deps.prefix)));
  } catch (error) {
    if (!isPoison(error)) throw error;
    if (letters.length > 1) {
      for (const letter of letters) await listDeadLetters(deps, [letter], handled);
      return;
    }
    const [{ topic, partition, offset }] = letters as [ReceivedMessage];
    deps.logger.error({ err: error, topic, partition, offset: String(offset) }, 'a dead letter cannot be listed');
  }
  for (const letter of letters) handled.add(letter);
}

/**
 * Handles a group as one; where one of it can never work, each on its own. `onDone` is told at once of what is committed: the
 * answers of a saga's end are given out only once.
 */
async function handleGroup(deps: ConsumerDeps, group: Item[], onDone: (done: Item[], answers: Answer[]) => void): Promise<void> {
  const [first] = group;
  if (!first) return;
  const { message, decoded } = first;
  if (decoded.kind === 'bad') return onDone(group, await setAside(deps, message, decoded));
  const startedAt = performance.now();
  try {
    const { answers, wrote, outcomes } = await execute(deps, group.map((item) => item.decoded));
    onDone(group, answers);
    if (wrote) deps.wakeRelay();
    deps.observe({ name: nameOf(decoded), messages: group.map((item) => item.message), startedAt, outcomes });
  } catch (error) {
    if (!isPoison(error)) throw error;
    if (group.length > 1) {
      for (const item of group) await handleGroup(deps, [item], onDone);
      return;
    }
    deps.logger.error({ err: error, message: nameOf(decoded), offset: String(message.offset), partition: message.partition, ...idsOf(message.headers) }, 'a message that cannot be processed');
    const address = decoded.kind === 'request' ? decoded.address : undefined;
    onDone(group, await setAside(deps, message, { code: 'internal_error', reason: describe(error), address }));
  }
}

/** All of one kind: see groupKey. */
async function execute(deps: ConsumerDeps, group: Decoded[]): Promise<Executed> {
  const options = { pool: deps.pool, prefix: deps.prefix, deadLetters: deps.deadLetters, now: deps.now().toISOString() };
  const requests = group.filter((decoded) => decoded.kind === 'request');
  const [request] = requests;
  if (!request) return applyLedgerReplies(group.filter((decoded) => decoded.kind === 'ledger_reply'), options);
  if (request.name === 'record_audit') return { answers: [], wrote: await recordAudits(deps.pool, requests.map(({ data }) => data as AuditRecord)), outcomes: [] };
  if (request.name !== 'record_api_key_use') return executeCommands(request.name, requests, options);
  const use = request.data as MessageData<'record_api_key_use'>;
  await recordUse(deps.pool, use.key_id, use.used_at);
  return { answers: [], wrote: false, outcomes: [] };
}

function nameOf(decoded: Exclude<Decoded, { kind: 'bad' }>): string {
  return decoded.kind === 'request' ? decoded.name : 'ledger_reply';
}

/** How long after the gateway's wait a query is still worth answering: clocks differ. */
const lateMs = 1000;

/** Handles what waits on accounts.queries: all get_account, and all get_client, by one statement each. */
export function queryConsumer(deps: ConsumerDeps): Handle {
  return async (messages) => {
    const startedAt = performance.now();
    const sent: Promise<void>[] = [];
    const waiting: { message: ReceivedMessage; request: Request }[] = [];
    for (const message of messages) {
      const decoded = decode(message, 'accounts.queries', deps.prefix);
      if (decoded.kind === 'ledger_reply') throw new TypeError('decode knows no replies among queries');
      if (decoded.kind === 'bad') sent.push(...(await setAside(deps, message, decoded)).map((answer) => send(deps, answer)));
      else if (isLate(decoded.context, deps.now())) deps.observe({ name: 'late_query', messages: [message], startedAt, outcomes: [] });
      else waiting.push({ message, request: decoded });
    }
    const groups = [...Map.groupBy(waiting, ({ request, message }) => (Object.hasOwn(batchedQueryHandlers, request.name) ? request.name : message)).values()];
    try {
      await inParallel(groups, deps.concurrency, async (group) => {
        const bodies = await readGroup(deps, group.map(({ request }) => request)).catch(async (error: unknown) => {
          if (!isPoison(error)) throw error;
          deps.logger.error({ err: error, message: group[0]?.request.name, ...idsOf(group[0]?.message.headers ?? {}) }, 'a query that cannot be answered');
          return group.map(() => internalError);
        });
        deps.observe({ name: group[0]?.request.name ?? '', messages: group.map(({ message }) => message), startedAt, outcomes: [] });
        for (const [i, { request }] of group.entries()) {
          const body = bodies[i] ?? internalError;
          if (request.address) sent.push(send(deps, { address: request.address, body, context: request.context }));
        }
      });
    } finally {
      await Promise.all(sent);
    }
  };
}

/** What a reply shows a member of staff of a client is recorded before it is sent. */
async function readGroup(deps: ConsumerDeps, requests: Request[]): Promise<ReplyBody[]> {
  const bodies = await answerGroup(deps, requests);
  const now = deps.now().toISOString();
  const records = requests.flatMap(({ name, context }, i) => clientReads(name, context, bodies[i], now));
  if (records.length > 0 && (await recordAudits(deps.pool, records))) deps.wakeRelay();
  return bodies;
}

async function answerGroup(deps: ConsumerDeps, requests: Request[]): Promise<ReplyBody[]> {
  const name = requests[0]?.name ?? '';
  if (Object.hasOwn(batchedQueryHandlers, name)) {
    const handler = batchedQueryHandlers[name as BatchedQueryName] as (pool: Pool, queries: BatchedQuery<unknown>[]) => Promise<ReplyBody[]>;
    return handler(deps.pool, requests);
  }
  if (!Object.hasOwn(queryHandlers, name)) throw new TypeError(`no handler for ${name}`);
  const handler = queryHandlers[name as QueryName] as (read: Read, data: MessageData<MessageName>) => Promise<ReplyBody>;
  const now = deps.now().toISOString();
  return Promise.all(requests.map(({ context, data }) => handler({ pool: deps.pool, context, now, prefix: deps.prefix, deadLetters: deps.deadLetters }, data as MessageData<MessageName>)));
}

function isLate(context: MessageContext, now: Date): boolean {
  return context.reply_by !== undefined && Date.parse(context.reply_by) + lateMs < now.getTime();
}

const internalError: ReplyBody = { ok: false, refusal: refusal('internal_error', 'the request could not be processed') };

/** Resolves when the message lies among the dead letters. */
async function setAside(deps: ConsumerDeps, message: ReceivedMessage, why: { code: string; reason: string; address: ReplyAddress | undefined }): Promise<Answer[]> {
  await deps.deadLetter(message, why);
  deps.logger.error({ code: why.code, reason: why.reason, topic: message.topic, partition: message.partition, offset: String(message.offset), ...idsOf(message.headers) }, 'put among the dead letters');
  return why.address ? [{ address: why.address, body: internalError }] : [];
}

/** Never rejects: the decision is committed, and a caller who misses the reply repeats the request. */
async function send(deps: ConsumerDeps, { address, body, context }: Answer): Promise<void> {
  try {
    await deps.publish(replyMessage(address, body, source.accounts, deps.now().toISOString(), context));
  } catch (error) {
    deps.logger.warn({ err: error, correlation_id: address.correlation_id, request_id: context?.request_id, command_id: context?.message_id }, 'a reply was lost');
  }
}

/** Errors that would come again with every attempt: data that Postgres refuses (classes 22, 23), or a bug of ours. */
function isPoison(error: unknown): boolean {
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError || error instanceof ZodError) return true;
  const code: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' && /^2[23][0-9A-Z]{3}$/.test(code);
}

function describe(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}`.slice(0, 500) : 'unknown';
}

/** Runs at most `limit` at a time. After a failure none is begun any more; it rejects when those begun have ended. */
async function inParallel<T>(items: T[], limit: number, run: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const failures: unknown[] = [];
  const worker = async () => {
    for (const item of rest) {
      if (failures.length > 0) return;
      await run(item).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
}
