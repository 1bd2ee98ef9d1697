import type { Producer } from 'kafkajs';
import type { Logger } from 'pino';
import type { KafkaClient, Link } from '../client.ts';
import { createBackoff, pause, withTimeout } from '../wait.ts';

const attemptMs = 5_000;

/**
 * The kafkajs producer of a publisher. There is one producer at a time. It is connected with back-off, and
 * replaced when its state is in doubt.
 */
export class ProducerLink {
  readonly #kafka: KafkaClient;
  readonly #name: string;
  readonly #logger: Logger;
  readonly #onChange: () => void;
  readonly #stopping = new AbortController();
  #link: Link<Producer> | undefined;
  #awaySince: number | undefined = -Infinity;
  #connecting: Promise<void> | undefined;
  #partitions = new Map<string, number>();

  /** `onChange` is called when a producer has connected and when its last connection has closed. */
  constructor(kafka: KafkaClient, name: string, logger: Logger, onChange: () => void) {
    this.#kafka = kafka;
    this.#name = name;
    this.#logger = logger;
    this.#onChange = onChange;
  }

  /** The connected producer; undefined while there is no connection. */
  get producer(): Producer | undefined {
    return this.#link?.gate.isConnected ? this.#link.client : undefined;
  }

  /** For how long there has been no connection, in ms since this was first called without: Infinity before the first. */
  awayMs(): number {
    this.#awaySince = this.producer ? undefined : (this.#awaySince ?? performance.now());
    return this.#awaySince === undefined ? 0 : performance.now() - this.#awaySince;
  }

  /** Returns the number of partitions of a topic, or undefined if the broker did not know the topic when last asked. */
  partitionCount(topic: string): number | undefined {
    return this.#partitions.get(topic);
  }

  /** Asks the broker again for the partitions. Never rejects. */
  async lookUp(): Promise<void> {
    await this.#readPartitions().catch(() => undefined);
  }

  /** Resolves when connected or closed. Until then it retries; each attempt has a time limit. */
  connect(): Promise<void> {
    this.#connecting ??= this.#connectOn().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  /** Disconnects the current producer and connects a new one. */
  replace(): void {
    void this.#link?.close(0);
    this.#link = undefined;
    if (!this.#stopping.signal.aborted) void this.connect();
  }

  async close(graceMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#link?.close(graceMs);
    this.#link = undefined;
  }

  async #connectOn(): Promise<void> {
    const { signal } = this.#stopping;
    const backoff = createBackoff(50, 500);
    for (let attempt = 1; !signal.aborted; attempt++) {
      const link = this.#kafka.newProducer();
      const abort = (): void => link.gate.close();
      signal.addEventListener('abort', abort);
      try {
        const known = this.#partitions.size > 0;
        await withTimeout(
          Promise.all([link.client.connect(), known ? undefined : this.#readPartitions()]),
          attemptMs,
          'connecting',
        );
        // Do not wait for the partitions: they are rarely added, and the broker that would be asked may be the
        // lost one.
        if (known) void this.lookUp();
        if (signal.aborted) return;
        this.#link = link;
        link.gate.onDisconnected = this.#onChange;
        if (attempt > 1) this.#logger.info({ publisher: this.#name, attempt }, 'reconnected to Kafka');
        this.#onChange();
        return;
      } catch (error) {
        await link.close(0);
        this.#logger[attempt === 1 ? 'warn' : 'debug'](
          { publisher: this.#name, attempt, err: error },
          'cannot connect to Kafka',
        );
        await pause(backoff.next(), signal);
      } finally {
        signal.removeEventListener('abort', abort);
      }
    }
  }

  async #readPartitions(): Promise<void> {
    const { topics } = await this.#kafka.withAdmin((admin) => admin.fetchTopicMetadata(), attemptMs);
    this.#partitions = new Map(topics.map(({ name, partitions }) => [name, partitions.length]));
  }
}
