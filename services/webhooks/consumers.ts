import type { Logger } from 'pino';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { decodeRequest, type Reader } from '#libs/contracts/exchange.ts';
import { type MessageName, messages as table } from '#libs/contracts/messages.ts';
import { feedTopics, type TopicName, topicName } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { consume, type ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import type { AllowedAddresses } from '#libs/service/addresses.ts';
import { type CommandConsumer, createCommandConsumer } from '#libs/service/command-consumer.ts';
import { createQueryConsumer, type Request } from '#libs/service/query-consumer.ts';
import type { Answer, Replies } from '#libs/service/replies.ts';
import { type QueryName, queryHandlers, type Read } from './queries/queries.ts';
import { executeCommand } from './webhooks/execute.ts';
import { type CommandName, handlers } from './webhooks/handlers.ts';

export interface ConsumerDeps extends Reader {
  pool: Pool;
  logger: Logger;
  replies: Replies;
  addresses: Pick<AllowedAddresses, 'wrongWith'>;
  retentionDays: number;
  /** Called when something was written that must be published or sent. */
  onWritten(): void;
  now(): Date;
  observe(name: string, outcome: string): void;
}

/** Executes the commands waiting on webhooks.commands, each in its own transaction. */
export function webhooksCommands(deps: ConsumerDeps): CommandConsumer {
  return createCommandConsumer<Request>({
    ...deps,
    decode: (message) => decodeRequest(message, (name) => table[name].topic === 'webhooks.commands', deps),
    nextGroups: (lanes) => lanes.flatMap((lane) => (lane.length > 0 ? [lane.splice(0, 1)] : [])),
    concurrency: 2,
    async execute([item]) {
      const { name, context, data, address } = (item as NonNullable<typeof item>).content;
      if (!Object.hasOwn(handlers, name)) throw new TypeError(`no handler for ${name}`);
      const { body, outcome } = await executeCommand(
        deps.pool,
        { name: name as CommandName, context, data, address },
        { now: deps.now().toISOString(), addresses: deps.addresses },
      );
      const answers: Answer[] = [{ address, body, context }];
      return {
        answers,
        afterwards: () => {
          deps.observe(name, outcome);
          deps.onWritten();
        },
      };
    },
  });
}

/** Answers the queries waiting on webhooks.queries. */
export function webhooksQueries(deps: ConsumerDeps): (messages: ReceivedMessage[]) => Promise<void> {
  return createQueryConsumer({
    ...deps,
    takes: (name: MessageName) => table[name].topic === 'webhooks.queries',
    isBatched: () => false,
    answer: (requests) => Promise.all(requests.map(({ content }) => answer(deps, content))),
    concurrency: 1,
    now: () => deps.now().getTime(),
  });
}

async function answer(
  { pool, now, retentionDays }: ConsumerDeps,
  { name, context, data }: Request,
): Promise<ReplyBody> {
  if (!Object.hasOwn(queryHandlers, name)) throw new TypeError(`no handler for ${name}`);
  const handler = queryHandlers[name as QueryName] as (read: Read, data: unknown) => Promise<ReplyBody>;
  return handler({ pool, context, now: now().getTime(), retentionDays }, data);
}

interface Handlers {
  commands: (messages: ReceivedMessage[]) => Promise<void>;
  queries: (messages: ReceivedMessage[]) => Promise<void>;
  events: (messages: ReceivedMessage[]) => Promise<void>;
}

/** Creates the consumers of commands, queries, and events, each with its own group. Nothing is started yet. */
export function createConsumers(
  kafka: KafkaClient,
  prefix: string,
  sessionTimeoutMs: number,
  handle: Handlers,
  logger: Logger,
) {
  const group = (
    name: string,
    topicNames: readonly TopicName[],
    own: Pick<Parameters<typeof consume>[1], 'handle' | 'concurrency' | 'maxBatch'>,
  ) =>
    consume(kafka, {
      groupId: prefix + name,
      topics: topicNames.map((topic) => topicName(prefix, topic)),
      logger,
      sessionTimeoutMs,
      ...own,
    });
  return {
    commands: group('webhooks', ['webhooks.commands'], { handle: handle.commands }),
    // Each call runs one statement at a time, so concurrent calls are the concurrency.
    queries: group('webhooks-queries', ['webhooks.queries'], { handle: handle.queries, concurrency: 4, maxBatch: 20 }),
    events: group('webhooks-events', feedTopics, { handle: handle.events }),
  };
}
