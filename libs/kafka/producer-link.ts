import type { Producer } from 'kafkajs';
import type { Logger } from 'pino';
import type { KafkaClient, Link } from './client.ts';
import { createBackoff, pause, withTimeout } from './wait.ts';

const connectAttemptMs = 5_000;

/** The kafkajs producer of a publisher: one at a time, connected with back-off, replaced when it cannot be trusted any more. */
export class ProducerLink {
  readonly #kafka: KafkaClient;
  readonly #name: string;
  readonly #logger: Logger;
  readonly #onConnected: () => void;
  readonly #stopping = new AbortController();
  #current: Link<Producer> | undefined;
  #connecting: Promise<void> | undefined;
  #lastError: unknown;

  constructor(kafka: KafkaClient, name: string, logger: Logger, onConnected: () => void) {
    this.#kafka = kafka;
    this.#name = name;
    this.#logger = logger;
    this.#onConnected = onConnected;
  }

  /** The producer to send with; undefined while there is no connection. */
  get current(): Link<Producer> | undefined {
    return this.#current;
  }

  get lastError(): unknown {
    return this.#lastError;
  }

  /** Resolves when connected, or closed; tries until then, each attempt bounded. */
  connect(): Promise<void> {
    this.#connecting ??= this.#connectOn().finally(() => { this.#connecting = undefined; });
    return this.#connecting;
  }

  /** Cuts the present producer off and connects a new one. */
  replace(): void {
    void this.#current?.close(0);
    this.#current = undefined;
    if (!this.#stopping.signal.aborted) void this.connect();
  }

  async close(graceMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#current?.close(graceMs);
    this.#current = undefined;
  }

  async #connectOn(): Promise<void> {
    const { signal } = this.#stopping;
    const backoff = createBackoff(50, 500);
    for (let attempt = 1; !signal.aborted; attempt++) {
      const link = this.#kafka.newProducer();
      const abort = (): void => link.gate.close();
      signal.addEventListener('abort', abort);
      try {
        await withTimeout(link.client.connect(), connectAttemptMs, 'connecting');
        if (signal.aborted) return;
        this.#current = link;
        if (attempt > 1) this.#logger.info({ publisher: this.#name, attempt }, 'connected to Kafka again');
        this.#onConnected();
        return;
      } catch (error) {
        await link.close(0);
        this.#lastError = error;
        this.#logger[attempt === 1 ? 'warn' : 'debug']({ publisher: this.#name, attempt, err: error }, 'cannot connect to Kafka');
        await pause(backoff.next(), signal);
      } finally {
        signal.removeEventListener('abort', abort);
      }
    }
  }
}
