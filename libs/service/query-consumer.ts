import type { Logger } from 'pino';
import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { type DecodedRequest, decodeRequest, type Reader } from '#libs/contracts/exchange.ts';
import { type MessageName, messageOfType, messages as table } from '#libs/contracts/messages.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Item } from './command-consumer.ts';
import { createFault, unverifiable, type Watched } from './faults.ts';
import { inParallel } from './in-parallel.ts';
import { mayBePoison } from './poison.ts';
import { failure, type Replies } from './replies.ts';

export type Request = Extract<DecodedRequest, { kind: 'request' }>;

export interface QueryConsumerOptions extends Reader {
  takes(name: MessageName): boolean;
  /** True if all waiting queries with that name are answered together. */
  isBatched(name: MessageName): boolean;
  /** Returns a reply to each, in order. */
  answer(requests: Item<Request>[]): Promise<ReplyBody[]>;
  /** The number of concurrent answers. */
  concurrency: number;
  /**
   * Queries that must not delay others, in the same call or the next one. At most `concurrency` of them are
   * answered concurrently.
   */
  apart?: { takes(request: Request): boolean; concurrency: number };
  replies: Replies;
  logger: Logger;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
}

/** The maximum number of queries waiting for `apart`; more are refused immediately. */
const maxWaitingApart = 100;
const unavailable = refused(refusal('service_unavailable', 'the service cannot answer at the moment'));

/**
 * Answers queries. A failed query gets an error reply and is not retried, because its caller may no longer
 * wait. A query whose caller no longer waits is dropped, and so is one that is signed with a key that this process lacks:
 * waiting for the key would delay the others for longer than its caller waits. The process is then not ready.
 */
export function createQueryConsumer(options: QueryConsumerOptions): Watched {
  const { takes, isBatched, answer, concurrency, apart, replies, logger, now } = options;

  const isAbandoned = ({ name, context, address }: Request): boolean =>
    table[name].kind === 'query' &&
    (address === undefined || (context.reply_by !== undefined && Date.parse(context.reply_by) < now()));

  async function answerGroup(group: Item<Request>[]): Promise<ReplyBody[]> {
    try {
      return await answer(group);
    } catch (error) {
      const request_ids = group.slice(0, 10).map(({ content }) => content.context.request_id);
      logger.warn({ err: error, name: group[0]?.content.name, queries: group.length, request_ids }, 'a query failed');
      return group.map(() => (mayBePoison(error) ? failure : unavailable));
    }
  }

  const answerAndReply = async (group: Item<Request>[]): Promise<void> => {
    const bodies = await answerGroup(group);
    replies.send(
      group.map(({ content: { address, context } }, i) => ({ address, body: bodies[i] ?? failure, context })),
    );
  };

  const unknownKeys = createFault();
  const waitingApart: Item<Request>[] = [];
  let underWayApart = 0;
  /** Never rejects, because nothing awaits it. */
  const answerApart = async (): Promise<void> => {
    if (!apart || underWayApart >= apart.concurrency) return;
    underWayApart++;
    for (let item = waitingApart.shift(); item; item = waitingApart.shift())
      if (!isAbandoned(item.content)) await answerAndReply([item]);
    underWayApart--;
  };
  const takeApart = (item: Item<Request>): void => {
    const { address, context } = item.content;
    if (waitingApart.length >= maxWaitingApart) return replies.send([{ address, body: unavailable, context }]);
    waitingApart.push(item);
    void answerApart();
  };

  async function handle(messages: ReceivedMessage[]): Promise<void> {
    const items: Item<Request>[] = [];
    for (const message of messages) {
      const content = decodeRequest(message, takes, options);
      if (content.kind === 'unknown_key') {
        const err = unverifiable(message, content);
        logger.error({ err }, 'dropped a query');
        unknownKeys.note(err);
      } else if (content.kind === 'bad') await replies.deadLetter(message, content);
      else if (isAbandoned(content)) continue;
      else if (apart?.takes(content)) takeApart({ message, content });
      else items.push({ message, content });
    }
    const groups = [
      ...Map.groupBy(items, (item) => (isBatched(item.content.name) ? item.content.name : item)).values(),
    ];
    await inParallel(groups, concurrency, answerAndReply);
  }
  return { handle, health: unknownKeys.health };
}

type Handle = (messages: ReceivedMessage[]) => Promise<void>;

/**
 * Returns a handler for a command topic, on which queries may be sent, too: executes the commands first, and then
 * answers the queries that arrived with them.
 */
export function queriesLast(execute: Handle, answerQueries: Handle): Handle {
  return async (messages) => {
    await execute(messages.filter((message) => !isQuery(message)));
    await answerQueries(messages.filter(isQuery));
  };
}

/** A query that is a dead letter is not asked any more. */
function isQuery({ topic, headers }: ReceivedMessage): boolean {
  const name = messageOfType(headers['ce_type'] ?? '');
  return name !== undefined && table[name].kind === 'query' && !topic.endsWith('.dlq');
}
