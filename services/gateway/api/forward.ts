import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { idsForLog, replySchema } from '#libs/contracts/envelope.ts';
import type { Refusal } from '#libs/contracts/errors.ts';
import { type MessageData, type MessageName, type MessageResult, messages } from '#libs/contracts/messages.ts';
import { type TopicName, topicName } from '#libs/contracts/topics.ts';
import type { OutgoingMessage } from '#libs/kafka/publish/publish.ts';
import { type Reply, RequestError, type Requester } from '#libs/kafka/request-reply/request-reply.ts';
import { apartMs } from '#libs/service/clock.ts';
import { freshAt } from '#libs/service/fresh-ids.ts';
import { isSampled, type Tracing } from '#libs/service/tracing.ts';
import { type Command, deadlineMs, encode, type Origin, replyWaitMs } from '../messages/encode.ts';
import type { GatewayMetrics } from '../observe/gateway-metrics.ts';
import { type Breaker, createBreaker, isRefused } from '../overload/breaker.ts';
import type { LoadShedding } from '../overload/load-shedding.ts';

export type Outcome<T = unknown> =
  | { kind: 'done'; data: T; replayed: boolean }
  | { kind: 'refused'; refusal: Refusal; replayed: boolean; unseen?: boolean | undefined }
  /**
   * not_sent: nothing was or will be executed. no_reply: the broker has the message. unacknowledged, malformed:
   * unknown.
   */
  | { kind: 'failed'; stage: 'not_sent' | 'unacknowledged' | 'no_reply' | 'malformed' };

/** A bucket of a command topic. */
export interface QueuePosition {
  topic: 'ledger.commands' | 'ledger.batches' | 'accounts.commands' | 'webhooks.commands';
  bucket: number;
}

export type Forwarder = ReturnType<typeof createForwarder>;

export interface ForwarderOptions {
  request: Requester['request'];
  loadShedding: Pick<LoadShedding, 'enter'>;
  /** Returns the bank's time in ms since 1970. */
  now: () => number;
  prefix: string;
  logger: Logger;
  metrics: GatewayMetrics;
  tracing?: Tracing | undefined;
}

/** The services that reply to the gateway, by the first part of the names of their topics. */
const services = ['ledger', 'accounts', 'webhooks'] as const;

const notSent: Outcome<never> = { kind: 'failed', stage: 'not_sent' };
const isSilence = (error: unknown): boolean => error instanceof RequestError && error.stage === 'no_reply';

/** Converts requests to messages and their replies to outcomes. Its calls never reject. */
export function createForwarder({ request, loadShedding, now, prefix, logger, metrics, tracing }: ForwarderOptions) {
  const breakers = new Map(services.map((name) => [name as string, createBreaker<Reply>(name, logger, isSilence)]));
  const findBreaker = (topic: TopicName) => breakers.get(topic.split('.', 1)[0] ?? '') as Breaker<Reply>;

  const ask = async <N extends MessageName>(
    name: N,
    topic: TopicName,
    message: OutgoingMessage,
    { answerBy }: Origin,
  ): Promise<Outcome<MessageResult<N>>> => {
    const begun = performance.now();
    const waitMs = Math.min(replyWaitMs, answerBy - begun);
    if (waitMs <= 0) return notSent;
    const leave = loadShedding.enter(topic);
    let isAnswered = false;
    try {
      const answer = await findBreaker(topic).fire(() =>
        request(message, { ackTimeoutMs: waitMs, replyTimeoutMs: waitMs }),
      );
      isAnswered = true;
      return readReply(name, answer, message, logger);
    } catch (error) {
      if (isRefused(error)) return notSent;
      const stage = error instanceof RequestError ? error.stage : 'unacknowledged';
      if (stage !== 'not_sent')
        logger.warn({ err: error, message: name, ...idsForLog(message.headers), stage }, 'no reply');
      return { kind: 'failed', stage };
    } finally {
      leave(isAnswered);
      metrics.replied(name, (performance.now() - begun) / 1000);
    }
  };

  /** Records the time until the reply as a span, which becomes the parent of all spans that the message causes. */
  const traced = async <T>(
    name: MessageName,
    topic: TopicName,
    id: string,
    origin: Origin,
    send: (origin: Origin) => Promise<Outcome<T>>,
  ): Promise<Outcome<T>> => {
    if (!tracing || !isSampled(origin.traceparent)) return send(origin);
    const attributes = {
      'messaging.system': 'kafka',
      'messaging.destination.name': topic,
      'messaging.message.id': id,
      request_id: origin.requestId,
    };
    const span = tracing.begin(`request ${name}`, { kind: 'client', traceparent: origin.traceparent, attributes });
    const outcome = await send({ ...origin, traceparent: span.traceparent });
    span.end(
      outcome.kind === 'failed'
        ? { failed: outcome.stage }
        : { attributes: { outcome: outcome.kind === 'refused' ? outcome.refusal.code : 'done' } },
    );
    return outcome;
  };

  const send = <N extends MessageName>(topic: TopicName, message: Command<N>, origin: Origin) =>
    traced(message.name, topic, message.id, origin, (from) =>
      ask(message.name, topic, encode(message, from, topicName(prefix, topic)), from),
    );

  return {
    /**
     * Sends a query. `behind`: send it to this bucket of a command topic, so that it is answered after the preceding
     * commands.
     */
    query<N extends MessageName>(name: N, data: MessageData<N>, key: string, origin: Origin, behind?: QueuePosition) {
      const query = { name, id: `qry_${randomUUID()}`, key, bucket: behind?.bucket, data, acceptedAt: new Date(now()) };
      return send(behind?.topic ?? messages[name].topic, query, origin);
    },
    command<N extends MessageName>(command: Command<N>, origin: Origin) {
      return send(messages[command.name].topic, command, origin);
    },
    /**
     * Reports whether the command with this id may not have reached the broker yet and can still be executed. The
     * publication of a command may be delayed without limit, but after its deadline the command is refused. Known only
     * of a command without an Idempotency-Key, whose id contains its time.
     */
    mayArrive: (id: string) => Math.abs(now() - freshAt(id)) < deadlineMs + apartMs,
    breakers: () =>
      services.map((service) => {
        return { service, state: breakers.get(service)?.closed ? ('closed' as const) : ('open' as const) };
      }),
    stop(): void {
      for (const breaker of breakers.values()) breaker.shutdown();
    },
  };
}

function readReply<N extends MessageName>(
  name: N,
  { value, headers }: Reply,
  request: OutgoingMessage,
  logger: Logger,
): Outcome<MessageResult<N>> {
  try {
    const reply = replySchema.parse(JSON.parse(value === null ? '' : value.toString()));
    const replayed = reply.replayed === true;
    if (!reply.ok) return { kind: 'refused', refusal: reply.refusal, replayed, unseen: reply.unseen };
    return { kind: 'done', data: messages[name].result.parse(reply.data) as MessageResult<N>, replayed };
  } catch (error) {
    logger.error(
      { err: error, message: name, ...idsForLog(request.headers), correlation_id: headers['correlation-id'] },
      'a reply cannot be read',
    );
    return { kind: 'failed', stage: 'malformed' };
  }
}
