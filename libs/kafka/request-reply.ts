import { randomBytes } from 'node:crypto';
import type { EachBatchPayload } from 'kafkajs';
import type { Logger } from 'pino';
import type { KafkaClient } from './client.ts';
import { onePartitionAssigner } from './consumer-session.ts';
import { Supervisor } from './consumer-supervisor.ts';
import { toReceived } from './message-pool.ts';
import { murmur2 } from './partitioner.ts';
import { PublishError } from './publish-queue.ts';
import type { Publisher } from './publish.ts';
import type { OutgoingMessage } from './publish-queue.ts';
import { pause, withTimeout } from './wait.ts';

export interface RequesterOptions {
  /** The topic of all replies. */
  topic: string;
  /** Its number of partitions; this process reads one of them. */
  partitions: number;
  /** Names this process; decides which partition. Two processes may share one. */
  instance: string;
  logger: Logger;
  /** Requests that may wait for a reply; more are refused, unsent. Default 10,000. */
  maxPending?: number;
  /** Told of each reply that came when nobody waited for it any more. */
  onLate?(correlationId: string): void;
  /** Default 6 s. */
  sessionTimeoutMs?: number;
}

export interface Reply {
  headers: Record<string, string>;
  value: Buffer | null;
}

/**
 * Why there is no reply. not_sent: the request never left and never will. unacknowledged: whether the broker
 * has it is not known. no_reply: the broker has it, the reply did not come in time.
 */
export class RequestError extends Error {
  override name = 'RequestError';
  readonly stage: 'not_sent' | 'unacknowledged' | 'no_reply';

  constructor(stage: RequestError['stage'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.stage = stage;
  }
}

export interface Requester {
  /** Resolves when a message of its own has come back over the reply topic; rejects after `timeoutMs` (default 30 s), stopped. */
  start(options?: { timeoutMs?: number }): Promise<void>;
  /** Takes no new requests, waits for the replies of the old ones for at most `timeoutMs` (default 5 s). */
  stop(options?: { timeoutMs?: number }): Promise<void>;
  /** Publishes and waits for the reply; both times count from the call. Rejects with a RequestError only. */
  request(message: OutgoingMessage, options: { ackTimeoutMs: number; replyTimeoutMs: number }): Promise<Reply>;
  pending(): number;
  /** Ready means that replies arrive; proven every few seconds. */
  health(): { ok: boolean; reason?: string };
}

interface Pending {
  acknowledged: boolean;
  deadline: number;
  resolve(reply: Reply): void;
  reject(error: RequestError): void;
}

const sweepMs = 20;
const probe = { publishMs: 2_000, firstWaitMs: 250, waitMs: 2_000, everyMs: 3_000, givenUpAfterMs: 4_000 };

/**
 * Request and reply over Kafka, safe in rollouts: every process reads one partition of one shared topic in a
 * group of its own, so no reply is lost to somebody else's rebalance; the replier sends to the partition that
 * the request names. The publisher is shared; start it before and stop it after.
 */
export function createRequester(kafka: KafkaClient, publisher: Publisher, options: RequesterOptions): Requester {
  return new KafkaRequester(kafka, publisher, options);
}

class KafkaRequester implements Requester {
  readonly #publisher: Publisher;
  readonly #options: Required<RequesterOptions>;
  readonly #supervisor: Supervisor;
  readonly #pending = new Map<string, Pending>();
  /** Starts every correlation id of this process: what begins otherwise is somebody else's. */
  readonly #origin = `${randomBytes(9).toString('base64url')}.`;
  readonly #stopping = new AbortController();
  readonly #firstReady = Promise.withResolvers<void>();
  #sequence = 0;
  #partition: number;
  #position: bigint | undefined;
  #ready = false;
  #joinedAt = 0;
  #takenAt = 0;
  #losses = 0;
  #probeId = '';
  #probeBack: (() => void) | undefined;
  #probing: Promise<void> | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  #idle: (() => void) | undefined;

  constructor(kafka: KafkaClient, publisher: Publisher, options: RequesterOptions) {
    this.#publisher = publisher;
    this.#options = { maxPending: 10_000, onLate: () => undefined, sessionTimeoutMs: 6_000, ...options };
    this.#partition = (murmur2(options.instance) & 0x7fffffff) % options.partitions;
    this.#supervisor = new Supervisor(kafka, () => this.#reader(), options.logger);
  }

  async start({ timeoutMs = 30_000 } = {}): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    await this.#supervisor.start(timeoutMs);
    this.#probing ??= this.#probeOn();
    try {
      await withTimeout(this.#firstReady.promise, Math.max(1, deadline - Date.now()), `the first message back over ${this.#options.topic}`);
    } catch (error) {
      await this.stop({ timeoutMs: 0 });
      throw error;
    }
  }

  async stop({ timeoutMs = 5_000 } = {}): Promise<void> {
    this.#stopping.abort();
    if (timeoutMs > 0 && this.#pending.size > 0) {
      const idle = new Promise<void>((resolve) => { this.#idle = resolve; });
      await withTimeout(idle, timeoutMs, 'waiting for replies').catch(() => undefined);
    }
    this.#expire(Infinity, 'the process stops');
    clearInterval(this.#sweeper);
    await this.#supervisor.stop(timeoutMs);
    await this.#probing;
  }

  request(message: OutgoingMessage, { ackTimeoutMs, replyTimeoutMs }: { ackTimeoutMs: number; replyTimeoutMs: number }): Promise<Reply> {
    const refusal = this.#refusal();
    if (refusal) return Promise.reject(new RequestError('not_sent', refusal));
    const id = this.#origin + (this.#sequence++).toString(36);
    return new Promise((resolve, reject) => {
      const pending: Pending = { acknowledged: false, deadline: Date.now() + replyTimeoutMs, resolve, reject };
      this.#pending.set(id, pending);
      this.#sweeper ??= setInterval(() => this.#expire(Date.now(), 'no reply in time'), sweepMs);
      this.#publisher.publish({ ...message, headers: this.#headers(message.headers, id) }, { timeoutMs: Math.min(ackTimeoutMs, replyTimeoutMs) }).then(
        () => { pending.acknowledged = true; },
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

  health(): { ok: boolean; reason?: string } {
    const consumer = this.#supervisor.health();
    if (!consumer.ok || this.#ready) return consumer;
    return { ok: false, reason: `no message comes back over ${this.#options.topic}` };
  }

  #refusal(): string | undefined {
    if (this.#stopping.signal.aborted) return 'the process stops';
    const { ok, reason } = this.health();
    if (!ok) return reason;
    return this.#pending.size >= this.#options.maxPending ? `${this.#pending.size} requests wait already` : undefined;
  }

  #headers(headers: Record<string, string>, id: string): Record<string, string> {
    return { ...headers, 'correlation-id': id, 'reply-topic': this.#options.topic, 'reply-partition': String(this.#partition) };
  }

  /** One life of the consumer. Its group is new each time, for a member that died unnoticed would keep the partition. */
  #reader() {
    const { topic, sessionTimeoutMs, instance } = this.#options;
    const partition = this.#partition;
    return {
      groupId: `${topic}-${instance}-${this.#origin}${randomBytes(4).toString('hex')}`,
      topics: [topic],
      fromBeginning: false,
      sessionTimeoutMs,
      assigner: onePartitionAssigner(topic, partition),
      eachBatch: async (payload: EachBatchPayload) => this.#take(payload),
      onJoin: (_assignment: unknown, seek: (topic: string, partition: number, offset: bigint) => void) => {
        this.#joinedAt = Date.now();
        // After a reconnect, go on where it stopped: the replies of the meantime are still awaited.
        if (this.#position !== undefined) seek(topic, partition, this.#position);
      },
      onLost: () => undefined,
      beforeStop: async () => undefined,
    };
  }

  #take({ batch, resolveOffset }: EachBatchPayload): void {
    for (const message of batch.messages) {
      const id = String(message.headers?.['correlation-id'] ?? '');
      if (id.startsWith(this.#origin)) this.#deliver(id, () => toReceived(batch.topic, batch.partition, message));
    }
    this.#takenAt = Date.now();
    this.#position = BigInt(batch.lastOffset()) + 1n;
    resolveOffset(batch.lastOffset());
  }

  #deliver(id: string, decode: () => Reply): void {
    if (id === this.#probeId) return this.#probeBack?.();
    const pending = this.#pending.get(id);
    if (!pending) {
      if (!id.startsWith(`${this.#origin}probe.`)) this.#options.onLate(id);
      return;
    }
    this.#pending.delete(id);
    const { headers, value } = decode();
    pending.resolve({ headers, value });
    this.#checkIdle();
  }

  #expire(now: number, reason: string): void {
    for (const [id, pending] of this.#pending) {
      if (pending.deadline > now) continue;
      this.#pending.delete(id);
      pending.reject(new RequestError(pending.acknowledged ? 'no_reply' : 'unacknowledged', reason));
    }
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#pending.size === 0) this.#idle?.();
  }

  /** Sends itself messages: often until the first one is back, then every few seconds. */
  async #probeOn(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const isBack = await this.#probeOnce();
      if (signal.aborted) return;
      if (isBack === undefined) await pause(100, signal);
      else if (isBack) await pause(probe.everyMs, signal);
      else if (this.#ready || Date.now() - this.#joinedAt > probe.givenUpAfterMs) this.#moveOn();
    }
  }

  /**
   * True: it came back, or, once ready, anything did. False: the broker has it, and nothing came. Undefined: it
   * could not be sent.
   */
  async #probeOnce(): Promise<boolean | undefined> {
    const { topic } = this.#options;
    const id = `${this.#origin}probe.${this.#sequence++}`;
    const back = new Promise<true>((resolve) => { this.#probeBack = () => resolve(true); });
    this.#probeId = id;
    const sentAt = Date.now();
    const message: OutgoingMessage = { topic, key: null, value: null, headers: { 'correlation-id': id }, partition: this.#partition };
    try {
      await this.#publisher.publish(message, { timeoutMs: probe.publishMs });
    } catch {
      // Without a broker, this says nothing about the consumer: its time begins when there is one again.
      this.#ready = false;
      this.#joinedAt = Date.now();
      return undefined;
    }
    const isBack = await withTimeout(back, this.#ready ? probe.waitMs : probe.firstWaitMs, 'the probe').catch(() => this.#ready && this.#takenAt > sentAt);
    if (isBack) {
      this.#ready = true;
      this.#losses = 0;
      this.#firstReady.resolve();
    }
    return isBack;
  }

  /** The broker takes messages for this partition, but they do not come. The second time, another partition is read. */
  #moveOn(): void {
    const { logger, topic, partitions } = this.#options;
    logger.warn({ topic, partition: this.#partition }, 'a message to itself was lost: the reply consumer is built again');
    this.#ready = false;
    this.#joinedAt = Date.now();
    this.#losses += 1;
    if (this.#losses > 1) {
      this.#position = undefined;
      this.#partition = (this.#partition + 1) % partitions;
    }
    this.#supervisor.rebuild('no message came back');
  }
}
