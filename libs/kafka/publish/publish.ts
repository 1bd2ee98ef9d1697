import type { Producer } from 'kafkajs';
import type { Logger } from 'pino';
import { maxBatchBytes, type TopicSettings } from '#libs/contracts/topics.ts';
import type { KafkaClient } from '../client.ts';
import { withTimeout } from '../wait.ts';
import { type OutgoingMessage, PublishError } from './outgoing-message.ts';
import { ProducerLink } from './producer-link.ts';
import { type Entry, fail, PublishQueue, type TopicLimits } from './publish-queue.ts';
import { send } from './send.ts';

export type { OutgoingMessage } from './outgoing-message.ts';
export { PublishError } from './outgoing-message.ts';

export interface PublisherOptions {
  logger: Logger;
  /** The name of the publisher in logs and errors. */
  name: string;
  /** The topics that may be written, by name on the broker, with their limits. */
  topics: Pick<ReadonlyMap<string, TopicSettings>, 'get'>;
  /** The maximum number of waiting messages; more are refused immediately, unsent. Default 10,000. */
  maxQueued?: number;
  /** Adds headers that identify the sender. */
  sign?: (message: OutgoingMessage) => void;
}

/** Each sweep wakes the process, also when few messages are published. */
const sweepMs = 100;
/** A lost connection is usually replaced sooner. */
const patienceMs = 1_000;

/**
 * A publisher without duplicates or losses: idempotent, acks=all, and with one send in flight, because kafkajs
 * loses acknowledged messages when it retries concurrent idempotent sends (it rolls back sequence numbers that
 * the broker has already accepted). Messages published during a send are sent together as the next one.
 *
 * A message can fail in two ways. Until it is passed to a connected producer, it was not sent and never will
 * be. After that, its outcome is unknown until the broker acknowledges it.
 */
export class Publisher {
  readonly #options: Required<PublisherOptions>;
  readonly #queue: PublishQueue;
  readonly #link: ProducerLink;
  /** The entries passed to the producer and not yet acknowledged. */
  #inFlight: { entries: Entry[]; abandon(): void } | undefined;
  #isSending = false;
  #isTopicMissing = false;
  #sweeper: NodeJS.Timeout | undefined;
  #state: 'new' | 'running' | 'draining' | 'stopped' = 'new';
  #onIdle: (() => void) | undefined;

  constructor(kafka: KafkaClient, options: PublisherOptions) {
    this.#options = { maxQueued: 10_000, sign: () => undefined, ...options };
    this.#queue = new PublishQueue();
    this.#link = new ProducerLink(kafka, options.name, options.logger, () => this.#sendSoon());
  }

  /** Resolves at the first connection. Later it reconnects by itself. */
  async start(): Promise<void> {
    if (this.#state !== 'new') throw new Error(`publisher ${this.#options.name} was started before`);
    this.#state = 'running';
    await this.#link.connect();
  }

  /** Refuses new messages, sends queued ones for at most `timeoutMs` (default 5 s), then disconnects. */
  async stop({ timeoutMs = 5_000 } = {}): Promise<void> {
    if (this.#state === 'stopped' || this.#state === 'draining') return;
    this.#state = 'draining';
    if (timeoutMs > 0 && this.queued() > 0) {
      const idle = new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
      await withTimeout(idle, timeoutMs, 'sending queued messages').catch(() => undefined);
    }
    this.#state = 'stopped';
    clearInterval(this.#sweeper);
    this.#queue.expire(Infinity, 'the publisher was stopped');
    for (const { call } of this.#inFlight?.entries ?? [])
      fail(call, 'the publisher was stopped before the broker acknowledged it');
    await this.#link.close(timeoutMs > 0 ? 1_000 : 0);
    this.#inFlight?.abandon();
  }

  /** Resolves when all in-sync replicas have the message (acks=all). Rejects only with a PublishError. */
  publish(message: OutgoingMessage, options: { timeoutMs: number }): Promise<void> {
    return this.publishAll([message], options);
  }

  /**
   * Publishes several messages in order. Resolves when all are written. An error does not show which messages
   * were written.
   */
  publishAll(messages: readonly OutgoingMessage[], { timeoutMs }: { timeoutMs: number }): Promise<void> {
    if (messages.length === 0) return Promise.resolve();
    const refusal = this.#refusal(messages.length);
    if (refusal) return Promise.reject(new PublishError(refusal, false));
    for (const message of messages) this.#options.sign(message);
    return new Promise((resolve, reject) => {
      this.#isTopicMissing ||= messages.some(({ topic }) => this.#link.partitionCount(topic) === undefined);
      const deadline = performance.now() + timeoutMs;
      this.#queue.push(messages, {
        unacknowledged: messages.length,
        deadline,
        isBegun: false,
        isSettled: false,
        resolve,
        reject,
      });
      this.#sweeper ??= setInterval(() => this.#sweep(), sweepMs);
      this.#sendSoon();
    });
  }

  /** Not ok before the start, while it stops, and when there has been no connection for a second. */
  health(): { ok: boolean; reason?: string } {
    if (this.#state !== 'running') return { ok: false, reason: `publisher ${this.#options.name} is ${this.#state}` };
    return this.#link.awayMs() < patienceMs
      ? { ok: true }
      : { ok: false, reason: `publisher ${this.#options.name} is not connected` };
  }

  /** The number of messages that are queued or in flight. */
  queued(): number {
    return this.#queue.length + (this.#inFlight?.entries.length ?? 0);
  }

  #refusal(count: number): string | undefined {
    const { name, maxQueued } = this.#options;
    if (this.#state !== 'running') return `publisher ${name} is not running`;
    // One call may exceed the size of the whole queue, but only if the queue is empty.
    return this.#queue.length > 0 && this.#queue.length + count > maxQueued
      ? `publisher ${name} has ${this.#queue.length} messages waiting`
      : undefined;
  }

  /**
   * When idle, waits for one turn of the event loop, so that messages arriving in one read of the sockets are
   * sent together.
   */
  #sendSoon(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    setImmediate(() => {
      void this.#sendAll().finally(() => {
        this.#isSending = false;
        if (this.queued() === 0) this.#onIdle?.();
        else if (this.#link.producer) this.#sendSoon();
      });
    });
  }

  /** Sends until the queue is empty or the connection is lost. */
  async #sendAll(): Promise<void> {
    while (this.#state !== 'stopped') {
      if (this.#isTopicMissing && this.#link.producer) {
        this.#isTopicMissing = false;
        await this.#link.lookUp();
      }
      const { producer } = this.#link;
      // kafkajs would reconnect for the next send, but queued messages must not get an unknown outcome because
      // the broker is unreachable.
      if (!producer) return this.#link.replace();
      if (this.#queue.length === 0) return;
      const entries = this.#queue.take((topic) => this.#getLimits(topic));
      if (entries.length > 0) await this.#send(producer, entries);
    }
  }

  /** After a failure, kafkajs' sequence numbers are in doubt, so the producer is replaced. */
  async #send(producer: Producer, entries: Entry[]): Promise<void> {
    const abandoned = Promise.withResolvers<void>();
    this.#inFlight = { entries, abandon: abandoned.resolve };
    for (const { call } of entries) call.isBegun = true;
    try {
      await Promise.race([send(producer, entries), abandoned.promise]);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#warn(entries, 'a send failed', error);
      for (const { call } of entries) fail(call, `not acknowledged: ${reason}`, error);
      this.#link.replace();
    }
    this.#inFlight = undefined;
  }

  #getLimits(topic: string): TopicLimits | undefined {
    const [definition, partitions] = [this.#options.topics.get(topic), this.#link.partitionCount(topic)];
    return definition && partitions !== undefined
      ? { partitions, maxBatchBytes: maxBatchBytes(definition) }
      : undefined;
  }

  /**
   * Fails messages whose deadline has passed. A send whose callers have all given up is abandoned together with
   * its producer.
   */
  #sweep(): void {
    const now = performance.now();
    this.#queue.expire(now, `publisher ${this.#options.name} could not send it in time`);
    const { entries = [], abandon } = this.#inFlight ?? {};
    for (const { call } of entries) if (call.deadline <= now) fail(call, 'the broker has not acknowledged it in time');
    if (abandon && entries.every(({ call }) => call.isSettled)) {
      this.#warn(entries, 'a send was abandoned');
      this.#link.replace();
      abandon();
    }
    if (this.queued() > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #warn(entries: readonly Entry[], text: string, err?: unknown): void {
    const topics = [...new Set(entries.map(({ message }) => message.topic))];
    this.#options.logger.warn({ publisher: this.#options.name, topics, messages: entries.length, err }, text);
  }
}
