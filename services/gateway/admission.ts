import type { ServerResponse } from 'node:http';
import { endpoints } from '#libs/contracts/endpoints.ts';
import type { EndpointName } from '#libs/contracts/endpoints.ts';
import { messages } from '#libs/contracts/messages.ts';
import type { TopicName } from '#libs/contracts/topics.ts';

/**
 * Refuses work while more comes than can be done, so that what is taken is answered soon. Each topic of requests is a line.
 * While it stands, the rate at which its replies come is what its service can do; a line longer than that rate clears in
 * `maxWaitMs` takes nobody more. No number here says how fast a service is: that is measured. A service that does not reply
 * at all has stopped, which says nothing of its speed: that is the breaker's business.
 */
export interface Admission {
  /** Why a request for this endpoint is not to be taken now; undefined: take it. */
  refuses(endpoint: EndpointName | undefined): 'line' | 'loop' | 'bytes' | undefined;
  /** A message to this topic is on its way; call what it returns when the wait is over. */
  enter(topic: TopicName): (end: End) => void;
  /** A reply came to a request of this topic that was given up. */
  late(topic: TopicName): void;
  /** Counts the bytes of a request's body until its response is closed. */
  hold(bytes: number, response: ServerResponse): void;
  stop(): void;
}

/** How a wait ended. What was given up is still in the line: it is worked on all the same. */
export type End = 'answered' | 'given up' | 'unsent';

/** What a new request may be expected to wait: less than half of the time in which a reply must come. */
const maxWaitMs = 2_000;
const tickMs = 250;
/** A line that clears so fast is none. */
const standingMs = 250;
/** Silence after which replies begin a new flow, measured afresh: what was before says nothing of it. */
const silenceMs = 1_000;
/** A rate is measured over so long, at least (a batch answers many at once) and at most. */
const shortestMs = 200;
const longestMs = 500;
/** The best of so many rates counts: the others were taken while there was too little to do. */
const keptRates = 4;
/** Nobody answers later than this what was given up: its deadline is over. */
const forgottenMs = 35_000;
/** So few fill less than a batch. */
const alwaysTaken = 100;
/** The event loop is overloaded when two ticks running come so late; a single one is a pause of the machine. */
const maxLagMs = 500;
/** Bodies of requests under way: 512 of the largest. */
const maxHeldBytes = 32 * 1024 * 1024;

interface Mark {
  at: number;
  total: number;
}

/** Those who wait for the replies to one topic. Pure; all times are in ms of a monotonic clock. */
export class Line {
  readonly #since = new Set<{ at: number }>();
  /** When those were given up who are still in the line, the oldest first. */
  #givenUp: number[] = [];
  #total = 0;
  #lastAnswer = -Infinity;
  #flow: Mark = { at: 0, total: 0 };
  #marks: Mark[] = [];
  #rates: number[] = [];
  #limit = Infinity;

  enter(now: number): (end: End, at: number) => void {
    const ticket = { at: now };
    this.#since.add(ticket);
    return (end, at) => {
      this.#since.delete(ticket);
      if (end === 'answered') this.#answered(at);
      else if (end === 'given up') this.#givenUp.push(at);
    };
  }

  late(now: number): void {
    this.#givenUp.shift();
    this.#answered(now);
  }

  #answered(now: number): void {
    if (now - this.#lastAnswer > silenceMs) {
      this.#flow = { at: now, total: this.#total };
      this.#rates = [];
    }
    this.#lastAnswer = now;
    this.#total += 1;
  }

  /** Measures; to be called every tickMs. */
  tick(now: number): void {
    const { at, total } = this.#marks.find((mark) => mark.at > this.#flow.at) ?? this.#flow;
    const hasAnswered = this.#total > (this.#marks.at(-1)?.total ?? 0);
    this.#marks = [...this.#marks, { at: now, total: this.#total }].filter((mark) => now - mark.at < longestMs);
    if (now - this.#lastAnswer > silenceMs) this.#rates = [];
    // A tick without an answer tells nothing yet: a batch may be under way, or the service have stopped.
    else if (hasAnswered && now - at >= shortestMs) this.#rates = [...this.#rates, (this.#total - total) / (now - at)].slice(-keptRates);
    if (now - (this.#givenUp[0] ?? now) > forgottenMs) this.#givenUp = this.#givenUp.filter((at) => now - at <= forgottenMs);
    const [oldest] = this.#since;
    const isStanding = this.#givenUp.length > 0 || (oldest !== undefined && now - oldest.at >= standingMs);
    this.#limit = isStanding && this.#rates.length > 0 ? Math.max(alwaysTaken, Math.max(...this.#rates) * maxWaitMs) : Infinity;
  }

  /** Nobody waits, and nothing is known that a later tick would have to forget. */
  isIdle(now: number): boolean {
    return this.#since.size + this.#givenUp.length === 0 && now - this.#lastAnswer > silenceMs;
  }

  get isFull(): boolean {
    return this.#since.size + this.#givenUp.length >= this.#limit;
  }
}

/** The topics that an endpoint asks. Accounts are shown with the ledger's balances. */
function topicsOf(name: EndpointName): TopicName[] {
  const { message } = endpoints[name];
  const composed: TopicName[] = name === 'get_account' || name === 'list_accounts' ? ['ledger.queries'] : [];
  return message === null ? [] : [messages[message].topic, ...composed];
}

export function createAdmission(now: () => number = () => performance.now()): Admission {
  const lines = new Map<TopicName, Line>();
  const lineOf = (topic: TopicName): Line => {
    let line = lines.get(topic);
    if (line === undefined) lines.set(topic, (line = new Line()));
    return line;
  };
  const asked = new Map(Object.keys(endpoints).map((name) => [name, topicsOf(name as EndpointName).map(lineOf)]));
  let heldBytes = 0;
  let lateTicks = 0;
  let tickedAt = 0;
  let wasAsked = false;
  let ticking: NodeJS.Timeout | undefined;
  const tick = () => {
    const at = now();
    lateTicks = at - tickedAt > tickMs + maxLagMs ? lateTicks + 1 : 0;
    tickedAt = at;
    for (const line of lines.values()) line.tick(at);
    if (!wasAsked && [...lines.values()].every((line) => line.isIdle(at))) stop();
    wasAsked = false;
  };
  const stop = () => {
    clearInterval(ticking);
    ticking = undefined;
  };
  /** An idle gateway is not woken. */
  const start = () => {
    tickedAt = now();
    ticking = setInterval(tick, tickMs).unref();
  };
  return {
    refuses(endpoint) {
      wasAsked = true;
      if (ticking === undefined) start();
      if (lateTicks > 1) return 'loop';
      if (heldBytes >= maxHeldBytes) return 'bytes';
      return endpoint !== undefined && asked.get(endpoint)?.some((line) => line.isFull) === true ? 'line' : undefined;
    },
    enter(topic) {
      const leave = lineOf(topic).enter(now());
      return (end) => leave(end, now());
    },
    late: (topic) => lineOf(topic).late(now()),
    hold(bytes, response) {
      heldBytes += bytes;
      response.once('close', () => {
        heldBytes -= bytes;
      });
    },
    stop,
  };
}
