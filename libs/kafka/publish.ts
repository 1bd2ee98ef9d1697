import type { Message } from 'kafkajs';
import type { Logger } from 'pino';
import type { KafkaClient } from './client.ts';
import { ProducerLink } from './producer-link.ts';
import { PublishError, PublishQueue, sizeOf } from './publish-queue.ts';
import type { AnyMessage, Flight, OutgoingMessage, Unit } from './publish-queue.ts';
import { send } from './send.ts';
import { startTimeoutMs, withTimeout } from './wait.ts';

export { PublishError } from './publish-queue.ts';
export type { AnyMessage, OutgoingMessage } from './publish-queue.ts';

export interface PublisherOptions {
  logger: Logger;
  /** Says in logs and errors which publisher speaks. */
  name: string;
  /** Messages that may wait; what comes beyond is refused at once, unsent. Default 10,000. */
  maxQueued?: number;
  /** The largest message taken, headers included, in bytes. Default 1 MiB; larger ones are refused, unsent. */
  maxMessageBytes?: number;
  /** Bytes per topic in one send; below the topics' max.message.bytes, which limits a whole record batch. Default 224 KiB. */
  maxTopicBytes?: number;
}

export interface Publisher {
  /** Resolves when connected for the first time; rejects after `timeoutMs` (default 10 min). Reconnects by itself later. */
  start(options?: { timeoutMs?: number }): Promise<void>;
  /** Refuses new messages, sends what waits for at most `timeoutMs` (default 5 s), then disconnects. */
  stop(options?: { timeoutMs?: number }): Promise<void>;
  /** Resolves when all in-sync replicas have the message (acks=all). Rejects with a PublishError only. */
  publish(message: OutgoingMessage, options: { timeoutMs: number }): Promise<void>;
  /** The same for several, in order: resolves when all are written; an error says nothing about single ones. */
  publishAll(messages: readonly AnyMessage[], options: { timeoutMs: number }): Promise<void>;
  health(): { ok: boolean; reason?: string };
  queued(): number;
}

const flightMessages = 2_500;
const flightBytes = 2_621_440;
const sweepMs = 20;
const topicRefusedMs = 1_000;

/**
 * A producer that is exact: idempotent, acks=all, and one send in flight, because kafkajs loses acknowledged
 * messages when concurrent idempotent sends are retried (it rolls back sequence numbers that the broker has
 * already taken). What is published while a send is in the air goes out together as the next one.
 */
export function createPublisher(kafka: KafkaClient, options: PublisherOptions): Publisher {
  return new KafkaPublisher(kafka, options);
}

class KafkaPublisher implements Publisher {
  readonly #options: Required<PublisherOptions>;
  readonly #queue = new PublishQueue();
  readonly #proven = new Set<string>();
  readonly #link: ProducerLink;
  #flight: Flight | undefined;
  /** What the sockets had done, and when, as the flight started. */
  #before = { writes: 0, bytesRead: 0, at: 0 };
  #scheduled = false;
  #sweeper: NodeJS.Timeout | undefined;
  #state: 'new' | 'running' | 'draining' | 'stopped' = 'new';
  #onIdle: (() => void) | undefined;

  constructor(kafka: KafkaClient, options: PublisherOptions) {
    this.#options = { maxQueued: 10_000, maxMessageBytes: 1_048_576, maxTopicBytes: 229_376, ...options };
    this.#link = new ProducerLink(kafka, options.name, options.logger, () => this.#schedule());
  }

  async start({ timeoutMs = startTimeoutMs } = {}): Promise<void> {
    if (this.#state !== 'new') throw new Error(`publisher ${this.#options.name} was started before`);
    this.#state = 'running';
    try {
      await withTimeout(this.#link.connect(), timeoutMs, `connecting publisher ${this.#options.name}`);
    } catch (error) {
      await this.stop({ timeoutMs: 0 });
      throw new Error((error as Error).message, { cause: this.#link.lastError });
    }
  }

  async stop({ timeoutMs = 5_000 } = {}): Promise<void> {
    if (this.#state === 'stopped' || this.#state === 'draining') return;
    this.#state = 'draining';
    if (timeoutMs > 0 && (this.#flight || this.#queue.messages > 0)) {
      const idle = new Promise<void>((resolve) => { this.#onIdle = resolve; });
      await withTimeout(idle, timeoutMs, 'flushing').catch(() => undefined);
    }
    this.#state = 'stopped';
    this.#settleAll();
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    await this.#link.close(timeoutMs > 0 ? 1_000 : 0);
  }

  publish(message: OutgoingMessage, options: { timeoutMs: number }): Promise<void> {
    return this.publishAll([message], options);
  }

  publishAll(messages: readonly AnyMessage[], { timeoutMs }: { timeoutMs: number }): Promise<void> {
    if (messages.length === 0) return Promise.resolve();
    const sizes = messages.map(sizeOf);
    const refusal = this.#refusal(messages, sizes);
    if (refusal) return Promise.reject(new PublishError(refusal, false));
    return new Promise((resolve, reject) => {
      this.#queue.push({ messages, sizes, next: 0, acknowledged: 0, deadline: performance.now() + timeoutMs, done: false, resolve, reject });
      this.#sweeper ??= setInterval(() => this.#sweep(), sweepMs);
      this.#schedule();
    });
  }

  health(): { ok: boolean; reason?: string } {
    if (this.#state !== 'running') return { ok: false, reason: `publisher ${this.#options.name} is ${this.#state}` };
    return this.#link.current ? { ok: true } : { ok: false, reason: `publisher ${this.#options.name} is not connected` };
  }

  queued(): number {
    return this.#queue.messages + (this.#flight?.messages ?? 0);
  }

  #refusal(messages: readonly AnyMessage[], sizes: readonly number[]): string | undefined {
    const { name, maxQueued, maxMessageBytes } = this.#options;
    if (this.#state !== 'running') return `publisher ${name} is not running`;
    // One unit may be larger than the whole queue, but then it must come alone.
    if (this.#queue.messages > 0 && this.#queue.messages + messages.length > maxQueued) return `publisher ${name} has ${this.#queue.messages} messages waiting`;
    const tooLarge = sizes.findIndex((size) => size > maxMessageBytes);
    return tooLarge < 0 ? undefined : `a message for ${messages[tooLarge]?.topic} has ${sizes[tooLarge]} bytes, more than ${maxMessageBytes}`;
  }

  /** Waits one turn of the event loop when idle, so that what arrives with one read of the sockets flies together. */
  #schedule(): void {
    if (this.#scheduled || this.#flight || !this.#link.current) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#fly();
    });
  }

  #fly(): void {
    const link = this.#link.current;
    if (this.#flight || !link) return;
    const flight = this.#queue.take({ messages: flightMessages, bytes: flightBytes, topicBytes: this.#options.maxTopicBytes }, (topic) => this.#proven.has(topic));
    if (!flight) return this.#idle();
    this.#flight = flight;
    const { client, gate } = link;
    this.#before = { writes: gate.produceWrites, bytesRead: gate.bytesRead, at: performance.now() };
    send(client, flight).then(
      (unwritten) => this.#landed(flight, unwritten),
      (error: unknown) => this.#failed(flight, error),
    );
  }

  #landed(flight: Flight, unwritten: ReadonlySet<Message>): void {
    if (this.#flight !== flight) return;
    this.#flight = undefined;
    for (const topic of flight.topics.keys()) this.#proven.add(topic);
    for (const { unit, copies } of flight.parts) {
      if (unwritten.size > 0 && copies.some((copy) => unwritten.has(copy))) {
        this.#reject(unit, 'the partition does not exist', copies.some((copy) => !unwritten.has(copy)) || unit.acknowledged > 0);
      }
      unit.acknowledged += copies.length;
      if (unit.acknowledged === unit.messages.length && !unit.done) {
        unit.done = true;
        unit.resolve();
      }
    }
    this.#fly();
  }

  /** kafkajs gave the send up: after that its sequence numbers cannot be trusted, so the producer is replaced. */
  #failed(flight: Flight, error: unknown): void {
    if (this.#flight !== flight) return;
    const sent = this.#hasLeft();
    const cause = error instanceof Error ? error.message : String(error);
    this.#options.logger.warn({ publisher: this.#options.name, topics: [...flight.topics.keys()], messages: flight.messages, sent, err: error }, 'a send failed');
    for (const topic of flight.topics.keys()) this.#proven.delete(topic);
    for (const { unit } of flight.parts) this.#reject(unit, `not published: ${cause}`, sent || unit.acknowledged > 0, error);
    this.#flight = undefined;
    this.#link.replace();
  }

  #hasLeft(): boolean {
    const gate = this.#link.current?.gate;
    return gate !== undefined && gate.produceWrites > this.#before.writes;
  }

  #reject(unit: Unit, message: string, sent: boolean, cause?: unknown): void {
    if (unit.done) return;
    unit.done = true;
    unit.reject(new PublishError(message, sent, { cause }));
  }

  #sweep(): void {
    const now = performance.now();
    let expired = false;
    this.#queue.sweep(now, (unit) => {
      expired = true;
      const flying = this.#flight?.parts.some((part) => part.unit === unit) ?? false;
      this.#reject(unit, `publisher ${this.#options.name} could not send it in time`, unit.acknowledged > 0 || (flying && this.#hasLeft()));
    });
    if (expired) this.#queue.dropDone();
    this.#sweepFlight(now);
    if (this.#flight || this.#queue.messages > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    this.#idle();
  }

  /**
   * The flight's own time-outs. As long as nothing of it went out (the broker is unreachable), it is taken
   * back, which makes "not sent" true; afterwards it goes on for those who still wait.
   */
  #sweepFlight(now: number): void {
    const flight = this.#flight;
    if (!flight) return;
    const left = this.#hasLeft();
    const refused = !left && this.#isTopicRefused(flight, now);
    const late = flight.parts.filter(({ unit }) => !unit.done && (refused || unit.deadline <= now));
    const reason = left ? 'the broker has not acknowledged it in time' : refused ? 'the topic is unknown or may not be written' : 'the broker could not be reached in time';
    for (const { unit } of late) this.#reject(unit, `${reason} (${[...flight.topics.keys()].join()})`, left || unit.acknowledged > 0);
    const abandoned = flight.parts.every(({ unit }) => unit.done);
    if (!abandoned && (left || late.length === 0)) return;
    this.#flight = undefined;
    if (!left) this.#queue.putBack(flight);
    this.#options.logger.warn({ publisher: this.#options.name, topics: [...flight.topics.keys()], messages: flight.messages, sent: left }, 'a send was given up');
    this.#link.replace();
  }

  /** The broker answers, yet will not take this topic's first message: kafkajs would ask for ever. */
  #isTopicRefused(flight: Flight, now: number): boolean {
    const unproven = [...flight.topics.keys()].some((topic) => !this.#proven.has(topic));
    return unproven && now - this.#before.at > topicRefusedMs && (this.#link.current?.gate.bytesRead ?? 0) > this.#before.bytesRead;
  }

  #idle(): void {
    if (!this.#flight && this.#queue.messages === 0) this.#onIdle?.();
  }

  #settleAll(): void {
    const left = this.#hasLeft();
    for (const { unit } of this.#flight?.parts ?? []) this.#reject(unit, 'the publisher was stopped before the broker acknowledged it', left || unit.acknowledged > 0);
    this.#flight = undefined;
    this.#queue.sweep(Infinity, (unit) => this.#reject(unit, 'the publisher was stopped', unit.acknowledged > 0));
    this.#queue.dropDone();
  }
}
