import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { KafkaClient } from '../client.ts';
import { PartitionReader } from '../consume/partition-reader.ts';
import { murmur2 } from '../publish/partitioner.ts';
import { type OutgoingMessage, PublishError, type Publisher } from '../publish/publish.ts';
import type { FetchedMessage } from '../received-message.ts';
import { ShortLivedMap } from '../short-lived-map.ts';
import { withTimeout } from '../wait.ts';

export interface RequesterOptions {
  topic: string;
  /** The number of partitions of the topic. This process reads one of them. */
  partitions: number;
  /** The name of this process, which determines its partition. Two processes may share one. */
  instance: string;
  logger: Logger;
  /** The maximum number of pending requests; more are refused unsent. Default 10,000. */
  maxPending?: number;
  /**
   * Called for each reply that arrives after its request timed out, with the topic of the request if it is
   * still known.
   */
  onLate?(correlationId: string, topic: string | undefined): void;
}

export interface Reply {
  headers: Record<string, string>;
  value: Buffer | null;
}

/**
 * Why there is no reply. not_sent: the request was not sent and never will be. unacknowledged: it is unknown
 * whether the broker has it. no_reply: the broker has it, but the reply did not arrive in time.
 */
export class RequestError extends Error {
  override name = 'RequestError';
  readonly stage: 'not_sent' | 'unacknowledged' | 'no_reply';

  constructor(stage: RequestError['stage'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.stage = stage;
  }
}

interface Pending {
  topic: string;
  acknowledged: boolean;
  deadline: number;
  resolve(reply: Reply): void;
  reject(error: RequestError): void;
}

const sweepMs = 20;
/** The number of timed-out requests whose topics are remembered. The oldest are forgotten first. */
const maxGivenUp = 20_000;

/** Returns the partition of `partitions` in which the process with this name receives its replies. */
export const replyPartition = (instance: string, partitions: number): number =>
  (murmur2(instance) & 0x7fffffff) % partitions;

/**
 * Request-reply over Kafka that loses no replies during rollouts: every process reads one partition of the
 * shared reply topic without a consumer group, so other processes do not affect it. The replier sends to the
 * partition named by the request. The publisher is shared; start it before and stop it after the requester.
 */
export class Requester {
  readonly #publisher: Publisher;
  readonly #options: Required<RequesterOptions>;
  readonly #reader: PartitionReader;
  readonly #pending = new ShortLivedMap<string, Pending>();
  /** The topics of timed-out requests by correlation id. */
  readonly #givenUp = new Map<string, string>();
  /** The prefix of every correlation id of this process. Other messages belong to other processes. */
  readonly #origin = `${randomBytes(9).toString('base64url')}.`;
  readonly #partition: number;
  #sequence = 0;
  #stopping = false;
  #sweeper: NodeJS.Timeout | undefined;
  #idle: (() => void) | undefined;

  constructor(kafka: KafkaClient, publisher: Publisher, options: RequesterOptions) {
    this.#publisher = publisher;
    this.#options = { maxPending: 10_000, onLate: () => undefined, ...options };
    this.#partition = replyPartition(options.instance, options.partitions);
    const { topic, logger } = options;
    this.#reader = new PartitionReader(kafka, {
      topic,
      partition: this.#partition,
      from: 'end',
      take: (messages) => this.#take(messages),
      // A lost reply loses nothing, but without new replies the process would be useless.
      skipsCorrupt: true,
      logger,
    });
  }

  /** Resolves when replies can be received. */
  start(): Promise<void> {
    return this.#reader.start();
  }

  /** Refuses new requests and waits for pending replies for at most `timeoutMs` (default 5 s). */
  async stop({ timeoutMs = 5_000 } = {}): Promise<void> {
    this.#stopping = true;
    if (timeoutMs > 0 && this.#pending.size > 0) {
      const idle = new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
      await withTimeout(idle, timeoutMs, 'waiting for replies').catch(() => undefined);
    }
    this.#expire(Infinity, 'the process is stopping');
    clearInterval(this.#sweeper);
    await this.#reader.stop();
  }

  /**
   * Publishes a message and waits for the reply. Both timeouts start with the call. Rejects only with a
   * RequestError.
   */
  request(
    message: OutgoingMessage,
    { ackTimeoutMs, replyTimeoutMs }: { ackTimeoutMs: number; replyTimeoutMs: number },
  ): Promise<Reply> {
    const refusal = this.#refusal();
    if (refusal) return Promise.reject(new RequestError('not_sent', refusal));
    const id = this.#origin + (this.#sequence++).toString(36);
    return new Promise((resolve, reject) => {
      const pending: Pending = {
        topic: message.topic,
        acknowledged: false,
        deadline: performance.now() + replyTimeoutMs,
        resolve,
        reject,
      };
      this.#pending.set(id, pending);
      this.#sweeper ??= setInterval(() => this.#sweep(), sweepMs);
      this.#publisher
        .publish(
          {
            ...message,
            headers: {
              ...message.headers,
              'correlation-id': id,
              'reply-topic': this.#options.topic,
              'reply-partition': String(this.#partition),
            },
          },
          { timeoutMs: Math.min(ackTimeoutMs, replyTimeoutMs) },
        )
        .then(
          () => {
            pending.acknowledged = true;
          },
          (error: unknown) => {
            if (!this.#pending.delete(id)) return;
            const stage = error instanceof PublishError && !error.sent ? 'not_sent' : 'unacknowledged';
            reject(new RequestError(stage, error instanceof Error ? error.message : String(error), { cause: error }));
          },
        );
    });
  }

  pending(): number {
    return this.#pending.size;
  }

  /** Not ok while the partition of replies cannot be read. */
  health(): { ok: boolean; reason?: string } {
    return this.#reader.health();
  }

  #refusal(): string | undefined {
    if (this.#stopping) return 'the process is stopping';
    for (const { ok, reason } of [this.#publisher.health(), this.health()]) if (!ok) return reason;
    return this.#pending.size >= this.#options.maxPending
      ? `${this.#pending.size} requests are already waiting`
      : undefined;
  }

  #take(messages: readonly FetchedMessage[]): void {
    for (const message of messages) {
      const { headers, value } = message.received(this.#options.topic, this.#partition);
      const id = headers['correlation-id'] ?? '';
      if (id.startsWith(this.#origin)) this.#deliver(id, { headers, value });
    }
  }

  #deliver(id: string, reply: Reply): void {
    const pending = this.#pending.get(id);
    if (!pending) {
      this.#options.onLate(id, this.#givenUp.get(id));
      this.#givenUp.delete(id);
      return;
    }
    this.#pending.delete(id);
    pending.resolve(reply);
    this.#checkIdle();
  }

  #sweep(): void {
    this.#expire(performance.now(), 'no reply in time');
    if (this.#pending.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }

  #expire(now: number, reason: string): void {
    for (const [id, pending] of this.#pending.entries()) {
      if (pending.deadline > now) continue;
      this.#pending.delete(id);
      const [oldest] = this.#givenUp.size >= maxGivenUp ? this.#givenUp.keys() : [];
      if (oldest !== undefined) this.#givenUp.delete(oldest);
      this.#givenUp.set(id, pending.topic);
      pending.reject(new RequestError(pending.acknowledged ? 'no_reply' : 'unacknowledged', reason));
    }
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#pending.size === 0) this.#idle?.();
  }
}
