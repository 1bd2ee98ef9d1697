import type { Logger } from 'pino';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { Reader } from '#libs/contracts/exchange.ts';
import { type MessageData, type MessageName, messages as table } from '#libs/contracts/messages.ts';
import { deadLetterTopics } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { rehearse, transaction } from '#libs/postgres/transaction.ts';
import { type Clock, whileClocksAgree } from '#libs/service/clock.ts';
import { type CommandConsumer, createCommandConsumer, type Item as ItemOf } from '#libs/service/command-consumer.ts';
import { recordIn, recording } from '#libs/service/dead-lettered.ts';
import { firstFailure, type Watched } from '#libs/service/faults.ts';
import { createQueryConsumer, queriesLast, type Request } from '#libs/service/query-consumer.ts';
import type { Answer, Replies } from '#libs/service/replies.ts';
import { consumerGroups } from '#libs/service/service.ts';
import type { Verifier } from '#libs/service/verifications.ts';
import { type Decoded, decode } from './commands/decode.ts';
import { type Executed, execute, recordRepeat } from './commands/execute.ts';
import { type Item, nextGroups } from './commands/groups.ts';
import type { Surroundings } from './commands/handlers.ts';
import { readDecided } from './commands/inbox.ts';
import { probingMessages } from './commands/probe.ts';
import type { AccountsConfig } from './config.ts';
import type { Asked, DeadLetterTopics, Retention } from './outcome.ts';
import {
  type BatchedQueryName,
  batchedQueryHandlers,
  type QueryName,
  queryHandlers,
  type Read,
} from './queries/queries.ts';

export interface ConsumerDeps extends Reader {
  pool: Pool;
  logger: Logger;
  replies: Replies;
  /** The number of groups of commands, or of queries, that run concurrently; each uses one connection. */
  concurrency: number;
  signForGateways: Read['signForGateways'];
  /** Reads and republishes dead letters. */
  deadLetters: DeadLetterTopics;
  retention: Retention;
  auditVerifier: Pick<Verifier, 'verify'>;
  wakeRelay(): void;
  now(): Date;
  observe(handled: Handled): void;
}

/** Messages with the same name that were processed together. */
interface Handled {
  name: string;
  messages: ReceivedMessage[];
  /** The start, as a value of performance.now. */
  startedAt: number;
  /** The outcomes of commands that were decided or whose sagas ended. */
  outcomes: Executed['outcomes'];
}

/**
 * Executes what waits on accounts.commands: replies of the ledger first, then the commands of one partition in order, and
 * partitions concurrently (groups.ts). Dead letters are received here too and listed.
 */
export function accountsCommands(deps: ConsumerDeps): CommandConsumer {
  return createCommandConsumer<Decoded>({
    ...deps,
    replies: recording(deps.replies, recordIn(deps.pool)),
    decode: (message) => decode(message, deps),
    answerRepeats: (items) => answerRepeats(deps, items),
    nextGroups,
    execute: (group) => executeGroup(deps, group),
    uniqueIndexes,
    probe: () => probe(deps),
  });
}

/** For fewer messages, another statement is not worth it. */
const backlog = 50;

/**
 * Answers repeats of decided commands. After a loss of offsets, a backlog consists of them. They would be executed in many
 * small groups, because messages of a partition stay in order: 3,004 instead of 18,204 messages a second, measured
 * alternately on two busy cores (27 November 2026), and 79 s of 503 in a run of the fault tests.
 */
async function answerRepeats(deps: ConsumerDeps, items: Item[]): Promise<{ answers: Answer[]; fresh: Item[] }> {
  const answers: Answer[] = [];
  if (items.length < backlog) return { answers, fresh: items };
  const startedAt = performance.now();
  const decided = await readDecided(
    deps.pool,
    items.flatMap(({ content }) => (content.kind === 'request' ? content.context.message_id : [])),
  );
  const fresh = items.filter(({ content, message }) => {
    const known = content.kind === 'request' ? decided.get(content.context.message_id) : undefined;
    if (content.kind !== 'request' || !known) return true;
    const outcomes: Executed['outcomes'] = [];
    recordRepeat({ answers, outcomes }, content, known);
    deps.observe({ name: content.name, messages: [message], startedAt, outcomes });
    return false;
  });
  return { answers, fresh };
}

/** Executes a group in one transaction. */
async function executeGroup(deps: ConsumerDeps, group: Item[]) {
  const startedAt = performance.now();
  const contents = group.map(({ content }) => content);
  const { answers, wrote, outcomes } = await transaction(deps.pool, (client) =>
    execute(client, contents, surroundings(deps)),
  );
  const afterwards = () => {
    if (wrote) deps.wakeRelay();
    const [first] = contents as [Decoded];
    const name = first.kind === 'request' ? first.name : first.kind;
    deps.observe({ name, messages: group.map(({ message }) => message), startedAt, outcomes });
  };
  return { answers, afterwards };
}

/** Every attempt of a transaction has its own time. */
const surroundings = ({ now, ...deps }: ConsumerDeps): Surroundings => ({ ...deps, now: now().toISOString() });

/** The unique indexes that the ids in a message can violate, and the version in a reply of the ledger. */
const uniqueIndexes = [
  'clients_pkey',
  'accounts_pkey',
  'accounts_number',
  'commands_pkey',
  'saga_steps_pkey',
  'status_transitions_pkey',
  'status_transitions_version',
  'api_keys_pkey',
  'api_keys_secret_hash_key',
  'approvals_pkey',
  'notes_pkey',
];

/** Shows that this process can execute messages of every kind: executes some and rolls back. Throws if it cannot. */
function probe(deps: ConsumerDeps): Promise<void> {
  return rehearse(deps.pool, async (client) => {
    for (const content of probingMessages()) await execute(client, [content], surroundings(deps));
  });
}

const isBatched = (name: MessageName): name is BatchedQueryName => Object.hasOwn(batchedQueryHandlers, name);

/**
 * Answers the queries waiting on accounts.queries. All get_account queries are combined into one statement, and
 * so are all get_client queries.
 */
export function accountsQueries(deps: ConsumerDeps): Watched {
  return createQueryConsumer({
    ...deps,
    takes: (name) => table[name].topic === 'accounts.queries',
    isBatched,
    answer: (requests) => answerGroup(deps, requests),
    now: () => deps.now().getTime(),
  });
}

async function answerGroup(deps: ConsumerDeps, items: ItemOf<Request>[]): Promise<ReplyBody[]> {
  const startedAt = performance.now();
  const requests = items.map(({ content }) => content);
  const bodies = await read(deps, requests);
  deps.observe({
    name: requests[0]?.name ?? '',
    messages: items.map(({ message }) => message),
    startedAt,
    outcomes: [],
  });
  return bodies;
}

async function read(
  { pool, prefix, deadLetters, signForGateways, auditVerifier, now }: ConsumerDeps,
  requests: Request[],
): Promise<ReplyBody[]> {
  const [{ name, context, data }] = requests as [Request];
  if (name === 'verify_audit')
    return [await auditVerifier.verify({ data: data as MessageData<'verify_audit'>, context })];
  if (isBatched(name)) {
    const handler = batchedQueryHandlers[name] as (pool: Pool, queries: Asked<unknown>[]) => Promise<ReplyBody[]>;
    return handler(pool, requests);
  }
  if (!Object.hasOwn(queryHandlers, name)) throw new TypeError(`no handler for ${name}`);
  const handler = queryHandlers[name as QueryName] as (read: Read, data: unknown) => Promise<ReplyBody>;
  return [await handler({ pool, context, now: now().toISOString(), prefix, deadLetters, signForGateways }, data)];
}

/** The number of transactions of commands that run concurrently. */
export const commandConcurrency = 6;

/**
 * Creates the consumers: one group for commands, replies of the ledger, and dead letters, and one for queries. Does not
 * start them.
 */
export function createConsumers(
  kafka: KafkaClient,
  config: AccountsConfig,
  {
    commandPool,
    clock,
    ...deps
  }: Omit<ConsumerDeps, 'concurrency'> & { commandPool: Pool; clock: Pick<Clock, 'check'> },
) {
  const group = consumerGroups(kafka, config, deps.logger);
  const executing = accountsCommands({ ...deps, pool: commandPool, concurrency: commandConcurrency });
  // Each call runs one statement at a time, so the number of concurrent calls is the number of concurrent statements.
  const answering = accountsQueries({ ...deps, concurrency: 1 });
  const commands = group('accounts', ['accounts.commands', 'ledger.audit', ...deadLetterTopics], {
    handle: queriesLast(whileClocksAgree(clock, executing.handle), answering.handle),
  });
  const queries = group('accounts-queries', ['accounts.queries'], {
    handle: answering.handle,
    concurrency: 4,
    maxBatch: 50,
  });
  return { commands, queries, execution: { health: () => firstFailure(executing.health(), answering.health()) } };
}
