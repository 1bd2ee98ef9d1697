import type { FastifyRequest } from 'fastify';
import { type EndpointName, endpoints } from '#libs/contracts/endpoints.ts';
import { messages } from '#libs/contracts/messages.ts';
import type { TopicName } from '#libs/contracts/topics.ts';
import type { Clock } from '#libs/service/clock.ts';
import { Refused, unavailableBecause } from '../http/errors.ts';
import type { GatewayMetrics } from '../observe/gateway-metrics.ts';

export type LoadShedding = ReturnType<typeof createLoadShedding>;

/** Requests that have waited longer than this, in ms, form a queue rather than a batch. */
const maxWaitMs = 500;
/** The number of requests that must have waited that long. A slow query or a lost reply is not an overload. */
const enough = 100;
/**
 * If a service has not replied for this long, in ms, it has stopped, and its speed is unknown. The breaker handles that
 * case.
 */
const silenceMs = 1_000;

/** The requests waiting for replies to one topic. All times are in ms of a monotonic clock. */
export class Queue {
  /** When each request started to wait, oldest first. */
  readonly #waiting = new Set<{ since: number }>();
  #repliedAt = -Infinity;

  enter(now: number): (isAnswered: boolean, at: number) => void {
    const request = { since: now };
    this.#waiting.add(request);
    return (isAnswered, at) => {
      this.#waiting.delete(request);
      if (isAnswered) this.replied(at);
    };
  }

  replied(now: number): void {
    this.#repliedAt = now;
  }

  /** Reports whether 100 requests have waited too long although replies arrive. */
  isTooLong(now: number): boolean {
    if (now - this.#repliedAt > silenceMs) return false;
    let count = 0;
    for (const { since } of this.#waiting) {
      if (now - since <= maxWaitMs) return false;
      if (++count === enough) return true;
    }
    return false;
  }
}

/** Returns the topics that an endpoint queries. Reads of accounts also query the ledger for balances. */
function queriedTopics(name: EndpointName): TopicName[] {
  const { message } = endpoints[name];
  const composed: TopicName[] = name === 'get_account' || name === 'list_accounts' ? ['ledger.queries'] : [];
  return message === null ? [] : [messages[message].topic, ...composed];
}

export class Shed extends Refused {}

// The errors are created once, because under overload every microsecond of a refusal matters.
const overloaded = new Shed(unavailableBecause('too many requests at once'));
const unsafe = new Shed(
  unavailableBecause("this gateway's clock, its time zone, or what it knows of ended credentials is wrong"),
);

/**
 * Rejects requests while more arrive than can be answered, so that accepted ones are answered soon (decision 12), and while
 * credentials or value dates would be refused or accepted wrongly: `clock` checks the clock, the time zone, and whether this
 * process reads which credentials have ended. `now`: in ms of a monotonic clock.
 */
export function createLoadShedding(
  clock: Pick<Clock, 'check'>,
  metrics: Pick<GatewayMetrics, 'shed'>,
  now = () => performance.now(),
) {
  const queues = new Map<TopicName, Queue>();
  const getQueue = (topic: TopicName): Queue => {
    const queue = queues.get(topic) ?? new Queue();
    queues.set(topic, queue);
    return queue;
  };
  const asked = new Map(
    Object.keys(endpoints).map((name) => [name, queriedTopics(name as EndpointName).map(getQueue)]),
  );
  const reasonFor = (endpoint: EndpointName | undefined) => {
    if (!clock.check().ok) return 'clock';
    const at = now();
    return endpoint !== undefined && asked.get(endpoint)?.some((queue) => queue.isTooLong(at)) === true
      ? 'queue'
      : undefined;
  };

  return {
    /** Returns the refusal of a request, or undefined to accept it. It is called before the request is examined. */
    refuse(request: FastifyRequest): Refused | undefined {
      const reason = reasonFor(request.routeOptions.config.endpoint);
      if (reason === undefined) return undefined;
      metrics.shed(reason);
      return reason === 'clock' ? unsafe : overloaded;
    },
    /** Counts a message sent to this topic. Call the returned function when the wait for its reply has ended. */
    enter(topic: TopicName) {
      const leave = getQueue(topic).enter(now());
      return (isAnswered: boolean): void => leave(isAnswered, now());
    },
    /** Call when a reply to a request of this topic arrives whose wait has ended. */
    late: (topic: TopicName): void => getQueue(topic).replied(now()),
  };
}
