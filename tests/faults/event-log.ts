import { randomUUID } from 'node:crypto';
import { type TopicName, topicName } from '#libs/contracts/topics.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { Consumer, type ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { topicRanges } from '#libs/kafka/topics.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { eventually } from '../support/eventually.ts';
import type { Cluster } from './cluster.ts';

const topics = ['transactions', 'transfers', 'accounts', 'balances'] as const satisfies TopicName[];

/**
 * Records which events a downstream system receives, from the beginning and without proxies. verify-events checks their
 * content.
 */
export class EventLog {
  /** Their ids. */
  readonly transactions = new Set<string>();
  readonly openedAccounts = new Set<string>();
  readonly kafka: KafkaClient;
  readonly #consumer: Consumer;
  readonly #topics: string[];
  readonly #reached = new Map<string, bigint>();
  readonly #ids = new Set<string>();

  constructor(cluster: Cluster) {
    this.kafka = createKafka({ brokers: cluster.brokers.split(','), client_id: 'checker' }, silent);
    this.#topics = topics.map((name) => topicName(cluster.topicPrefix, name));
    this.#consumer = new Consumer(this.kafka, {
      groupId: `checker-${randomUUID()}`,
      topics: this.#topics,
      logger: silent,
      sessionTimeoutMs: 3000,
      handle: async (messages) => messages.forEach((message) => this.#take(message)),
    });
  }

  start(): Promise<void> {
    return this.#consumer.start();
  }

  stop(): Promise<void> {
    return this.#consumer.stop();
  }

  /** Reports whether the event with this ce_id has been published. */
  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Resolves when all events that were published before the call have been read. */
  async caughtUp(timeoutMs = 30_000): Promise<void> {
    const ranges = await eventually(
      async () =>
        Promise.all(this.#topics.map(async (topic) => ({ topic, ranges: await topicRanges(this.kafka, topic) }))),
      timeoutMs,
    );
    const wanted = ranges.flatMap(({ topic, ranges: of }) =>
      of.filter(({ low, high }) => high > low).map(({ partition, high }) => [`${topic}/${partition}`, high] as const),
    );
    // Compaction may have removed the last messages of a partition, so it does not wait for them.
    const behind = () =>
      wanted.filter(([place, high]) => (this.#reached.get(place) ?? 0n) < high && !place.includes('balances/'));
    await eventually(async () => behind().length === 0, timeoutMs).catch(() => {
      throw new Error(
        `the events were not read to their end: ${JSON.stringify(behind().map(([place, high]) => [place, String(this.#reached.get(place)), String(high)]))}`,
      );
    });
  }

  #take(message: ReceivedMessage): void {
    const place = `${message.topic}/${message.partition}`;
    const { ce_id = '', ce_type = '' } = message.headers;
    if ((this.#reached.get(place) ?? 0n) <= message.offset) this.#reached.set(place, message.offset + 1n);
    this.#ids.add(ce_id);
    const value = JSON.parse(message.value?.toString() ?? 'null') as {
      transaction?: { transaction_id: string };
      account?: { account_id: string };
    } | null;
    if (value?.transaction) this.transactions.add(value.transaction.transaction_id);
    if (ce_type === 'corebanking.account.opened.v1') this.openedAccounts.add(value?.account?.account_id ?? '');
  }
}
