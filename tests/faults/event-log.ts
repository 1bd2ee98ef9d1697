import { createHash, randomUUID } from 'node:crypto';
import { type TopicName, topicName } from '#libs/contracts/topics.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { consume, type Consumer, type ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { topicRanges } from '#libs/kafka/topics.ts';
import { silent } from '#libs/postgres/test-database.ts';
import { eventually } from '../support/eventually.ts';
import type { Cluster } from './cluster.ts';

const topics = ['transactions', 'transfers', 'accounts', 'balances'] as const satisfies TopicName[];

/** A transaction's event as a downstream system keeps it. */
export interface TransactionEvent {
  transaction: string;
  account: string;
  status: 'Completed' | 'Failed';
  amount: string;
  /** Of a Completed one. */
  sequence?: number;
  balanceAfter?: string;
}

/** What a downstream system sees: every event topic from its beginning, past all proxies. */
export class EventLog {
  /** By transaction_id: the first copy. */
  readonly transactions = new Map<string, TransactionEvent>();
  readonly transfers = new Set<string>();
  readonly openedAccounts = new Set<string>();
  /** Copies beyond the first. */
  doubles = 0;
  /** What contradicts the promise of I7 in itself. */
  readonly findings: string[] = [];
  readonly #kafka: KafkaClient;
  readonly #consumer: Consumer;
  readonly #topics: string[];
  readonly #reached = new Map<string, bigint>();
  /** ce_id of each event, and what it carried. */
  readonly #digests = new Map<string, string>();
  readonly #sequences = new Map<string, number>();

  constructor(cluster: Cluster) {
    this.#kafka = createKafka({ brokers: cluster.brokers.split(','), client_id: 'checker' }, silent);
    this.#topics = topics.map((name) => topicName(cluster.topicPrefix, name));
    this.#consumer = consume(this.#kafka, {
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

  /** Whether the event with this ce_id has been published. */
  has(id: string): boolean {
    return this.#digests.has(id);
  }

  /** Resolves when everything that was there at the call has been read. */
  async caughtUp(timeoutMs = 30_000): Promise<void> {
    const ranges = await eventually(async () => Promise.all(this.#topics.map(async (topic) => ({ topic, ranges: await topicRanges(this.#kafka, topic) }))), timeoutMs);
    const wanted = ranges.flatMap(({ topic, ranges: of }) => of.filter(({ low, high }) => high > low).map(({ partition, high }) => [`${topic}/${partition}`, high] as const));
    // Compaction may have taken the last messages of a partition: what is missing then is not waited for.
    const behind = () => wanted.filter(([place, high]) => (this.#reached.get(place) ?? 0n) < high && !place.includes('balances/'));
    await eventually(async () => behind().length === 0, timeoutMs).catch(() => {
      throw new Error(`the events were not read to their end: ${JSON.stringify(behind().map(([place, high]) => [place, String(this.#reached.get(place)), String(high)]))}`);
    });
  }

  #take(message: ReceivedMessage): void {
    const place = `${message.topic}/${message.partition}`;
    // Read a second time after a rebalance: not a second copy.
    if ((this.#reached.get(place) ?? 0n) > message.offset) return;
    this.#reached.set(place, message.offset + 1n);
    const id = message.headers['ce_id'] ?? '';
    const digest = createHash('sha1').update(message.value ?? '').update(message.key ?? '').update(message.headers['ce_type'] ?? '').digest('base64');
    const before = this.#digests.get(id);
    if (before !== undefined) {
      this.doubles += 1;
      if (before !== digest) this.findings.push(`I7: event ${id} on ${place} came again with other bytes`);
      return;
    }
    this.#digests.set(id, digest);
    const value = JSON.parse(message.value?.toString() ?? 'null') as Record<string, unknown>;
    if (message.headers['ce_type']?.startsWith('corebanking.transaction.')) this.#transaction(value, message);
    else if (message.headers['ce_type'] === 'corebanking.transfer.completed.v1') this.transfers.add((value['transfer'] as { transfer_id: string }).transfer_id);
    else if (message.headers['ce_type'] === 'corebanking.account.opened.v1') this.openedAccounts.add((value['account'] as { account_id: string }).account_id);
    else if (message.headers['ce_type'] === 'corebanking.balance.v1') this.#balance(value as { account_id: string; balance: string });
  }

  #transaction(value: Record<string, unknown>, message: ReceivedMessage): void {
    const { transaction_id, account_id, status, amount } = value['transaction'] as Record<'transaction_id' | 'account_id' | 'amount', string> & { status: 'Completed' | 'Failed' };
    const event: TransactionEvent = { transaction: transaction_id, account: account_id, status, amount };
    if (this.transactions.has(transaction_id)) this.findings.push(`I7: ${transaction_id} has two events with different ce_id`);
    this.transactions.set(transaction_id, event);
    if (status !== 'Completed') return;
    event.sequence = Number(value['sequence']);
    event.balanceAfter = String(value['balance_after']);
    const expected = (this.#sequences.get(account_id) ?? 0) + 1;
    if (event.sequence !== expected) this.findings.push(`I7: ${account_id}: event of sequence ${event.sequence} (${transaction_id}, offset ${message.offset}) where ${expected} was due`);
    this.#sequences.set(account_id, event.sequence);
    if (event.balanceAfter.startsWith('-')) this.findings.push(`I6: event of ${transaction_id} shows ${account_id} at ${event.balanceAfter}`);
  }

  #balance({ account_id, balance }: { account_id: string; balance: string }): void {
    if (balance.startsWith('-')) this.findings.push(`I6: a balance event shows ${account_id} at ${balance}`);
  }
}
