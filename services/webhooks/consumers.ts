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
  now(): Date;
  /** Called after the commit. The outcome is that of outcomeOf. */
  onExecuted(name: string, outcome: string): void;
}

/** Executes the commands waiting on webhooks.commands, each in its own transaction. */
export function webhooksCommands(deps: ConsumerDeps): CommandConsumer {
  return createCommandConsumer<Request>({
    ...deps,
    decode: (message) => decodeRequest(message, (name) => Object.hasOwn(handlers, name), deps),
    nextGroups: (lanes) => lanes.flatMap((lane) => (lane.length > 0 ? [lane.splice(0, 1)] : [])),
    concurrency: 2,
    async execute(group) {
      const [{ content }] = group as [Item<Request>];
      const { pool, addresses } = deps;
      const body = await executeCommand(pool, content, { now: deps.now().toISOString(), addresses });
      return {
        answers: [{ address: content.address, body, context: content.context }],
        afterwards: () => deps.onExecuted(content.name, outcomeOf(body)),
      };
    },
  });
}

/** Processes the queries in webhooks.queries. */
export function webhooksQueries(deps: ConsumerDeps): (messages: ReceivedMessage[]) => Promise<void> {
  const { pool, retentionDays } = deps;
  const now = () => deps.now().getTime();
  const answer = ({ name, context, data }: Request): Promise<ReplyBody> => {
    const handler = queryHandlers[name as QueryName] as (read: Read, data: unknown) => Promise<ReplyBody>;
    return handler({ pool, context, now: now(), retentionDays }, data);
  };
  return createQueryConsumer({
    ...deps,
    takes: (name) => Object.hasOwn(queryHandlers, name),
    isBatched: () => false,
    answer: (requests) => Promise.all(requests.map(({ content }) => answer(content))),
    concurrency: 1,
    now,
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
    queries: group('webhooks-queries', ['webhooks.queries'], {
      // Each call runs one statement at a time, so concurrent calls are the concurrency.
      handle: webhooksQueries(deps),
      concurrency: 4,
      maxBatch: 20,
    }),
    events: group('webhooks-events', feedTopics, { handle: createEventConsumer(deps) }),
  };
  return { consumers, execution };
}
