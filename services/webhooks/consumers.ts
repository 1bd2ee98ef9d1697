import type { Logger } from 'pino';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { decodeRequest, type Reader } from '#libs/contracts/exchange.ts';
import { feedTopics } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import type { AllowedAddresses } from '#libs/service/addresses.ts';
import { type CommandConsumer, createCommandConsumer, type Item } from '#libs/service/command-consumer.ts';
import { outcomeOf } from '#libs/service/measures.ts';
import { createQueryConsumer, type Request } from '#libs/service/query-consumer.ts';
import type { Replies } from '#libs/service/replies.ts';
import { consumerGroups } from '#libs/service/service.ts';
import type { WebhooksConfig } from './config.ts';
import { createEventConsumer, type EventConsumerOptions } from './events/consume-events.ts';
import { type QueryName, queryHandlers, type Read } from './queries/queries.ts';
import { executeCommand } from './webhooks/execute.ts';
import { handlers } from './webhooks/handlers.ts';

export interface ConsumerDeps extends Reader {
  pool: Pool;
  logger: Logger;
  replies: Replies;
  addresses: Pick<AllowedAddresses, 'wrongWith'>;
  retentionDays: number;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  /** Called after the commit. The outcome is that of outcomeOf. */
  onExecuted(name: string, outcome: string): void;
}

/** Executes the commands waiting on webhooks.commands, each in its own transaction. */
export function webhooksCommands(deps: ConsumerDeps): CommandConsumer {
  const { pool, addresses, now, onExecuted } = deps;
  return createCommandConsumer<Request>({
    ...deps,
    decode: (message) => decodeRequest(message, (name) => Object.hasOwn(handlers, name), deps),
    nextGroups: (lanes) => lanes.map((lane) => lane.splice(0, 1)).filter((group) => group.length > 0),
    concurrency: 2,
    async execute(group) {
      const [{ content }] = group as [Item<Request>];
      const { address, context, name } = content;
      const body = await executeCommand(pool, content, { now: new Date(now()).toISOString(), addresses });
      return { answers: [{ address, body, context }], afterwards: () => onExecuted(name, outcomeOf(body)) };
    },
  });
}

/** Answers the queries in webhooks.queries. */
export function webhooksQueries(deps: ConsumerDeps): (messages: ReceivedMessage[]) => Promise<void> {
  const { pool, retentionDays, now } = deps;
  return createQueryConsumer({
    ...deps,
    takes: (name) => Object.hasOwn(queryHandlers, name),
    isBatched: () => false,
    async answer(requests) {
      const [{ content }] = requests as [Item<Request>];
      const handler = queryHandlers[content.name as QueryName] as (read: Read, data: unknown) => Promise<ReplyBody>;
      return [await handler({ pool, context: content.context, now: now(), retentionDays }, content.data)];
    },
    concurrency: 1,
  });
}

/** Creates the consumers of commands, queries, and events, each with its own group. Nothing is started yet. */
export function createConsumers(
  kafka: KafkaClient,
  config: WebhooksConfig,
  deps: ConsumerDeps & Pick<EventConsumerOptions, 'onStored' | 'onUnreadable'>,
) {
  const group = consumerGroups(kafka, config, deps.logger);
  const execution = webhooksCommands(deps);
  const consumers = {
    commands: group('webhooks', ['webhooks.commands'], { handle: execution.handle }),
    // Each call runs one statement at a time, so concurrent calls are the concurrency.
    queries: group('webhooks-queries', ['webhooks.queries'], {
      handle: webhooksQueries(deps),
      concurrency: 4,
      maxBatch: 20,
    }),
    events: group('webhooks-events', feedTopics, { handle: createEventConsumer(deps) }),
  };
  return { consumers, execution };
}
