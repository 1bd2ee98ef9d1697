import { hash, randomUUID } from 'node:crypto';
import { type IHeaders, Kafka, logLevel } from 'kafkajs';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { EventData } from '../../../libs/contracts/events.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { type BankConsumer, type ConsumerOptions, createConsumer } from '../index.ts';

/** Tests of the consumer with a real broker and unpatched kafkajs. */

export const completed = 'corebanking.transaction.completed.v1';
export const brokers = process.env['KAFKA_BROKERS'] ?? '';
export const kafka = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING });
const producer = kafka.producer();
export const admin = kafka.admin();
const testPrefix = `consumer-${randomUUID().slice(0, 8)}.`;
let tests = 0;
/** The prefix of the running test's topics. */
export let topicPrefix: string;
let consumers: BankConsumer[];
export const silent = { info: () => undefined, warn: () => undefined };

/** Gives each test of a file a topic of its own, and stops its consumers. */
export function useTopics(): void {
  beforeAll(() => Promise.all([producer.connect(), admin.connect()]));
  // Topics are deleted only at the end, because clients that know a topic do not recover from its deletion.
  afterAll(async () => {
    await admin.deleteTopics({ topics: (await admin.listTopics()).filter((name) => name.startsWith(testPrefix)) });
    await Promise.all([producer.disconnect(), admin.disconnect()]);
  });
  beforeEach(async () => {
    topicPrefix = `${testPrefix}${++tests}.`;
    consumers = [];
    const topic = `${topicPrefix}transactions`;
    await admin.createTopics({ topics: [{ topic, numPartitions: 4 }], waitForLeaders: false });
    // A broker may not know a topic that another connection has just created, and then kafkajs'
    // waitForLeaders fails.
    await eventually(
      async () =>
        (await admin.fetchTopicMetadata({ topics: [topic] }).catch(() => undefined))?.topics[0]?.partitions.length ===
        4,
    );
  });
  afterEach(() => Promise.all(consumers.map((consumer) => consumer.stop())));
}

export type Options = Omit<ConsumerOptions, 'kafka' | 'groupId'> & { kafka?: Partial<ConsumerOptions['kafka']> };

/** Creates a consumer of the running test's topics, which is stopped after the test. */
export function consumer({ kafka: config, ...options }: Options): BankConsumer {
  const made = createConsumer({
    kafka: { brokers: brokers.split(','), ...config },
    groupId: `${topicPrefix}group`,
    topicPrefix,
    logger: silent,
    ...options,
  });
  consumers.push(made);
  return made;
}

interface Sent {
  key: string;
  value: string;
  partition: number;
  headers: IHeaders;
}

const bits = (name: string) => hash('sha256', name).slice(0, 32);
export const accountId = (name: string) => `acc_${bits(name)}`;

/** Returns an event as the ledger publishes it, for the account with that name. */
export function event(
  name: string,
  sequence: number,
  partition: number,
  change: { id?: string; type?: string; value?: string } = {},
): Sent {
  const account_id = accountId(name);
  const posted = {
    transaction_id: `txn_${bits(`${name} ${sequence}`)}`,
    amount: '1.00',
    currency: 'USD',
    created_at: '2026-01-01T00:00:00.000Z',
  };
  const operation_id = `opr_${bits(`${name} ${sequence}`)}`;
  const entry = { ...posted, operation_id, direction: 'credit', side: 'CR' } as const;
  const data: EventData<typeof completed> = {
    transaction: {
      ...posted,
      account_id,
      transaction_type: 'Deposit',
      description: null,
      reference: null,
      status: 'Completed',
      direction: 'credit',
    },
    sequence,
    balance_after: `${sequence}.00`,
    operation_id,
    entries: [account_id, accountId('vault')].map((id) => ({
      ...entry,
      entry_id: `ent_${id.slice(4)}-${sequence}`,
      account_id: id,
      sequence,
    })),
  };
  return {
    key: account_id,
    partition,
    value: change.value ?? JSON.stringify({ ...data, added_later: 'unknown' }),
    headers: {
      ce_specversion: '1.0',
      ce_id: change.id ?? `${name}-${sequence}`,
      ce_type: change.type ?? completed,
      ce_source: '/core-banking/ledger',
      ce_subject: account_id,
      ce_time: '2026-01-01T00:00:00.000Z',
    },
  };
}

export const send = (...messages: Sent[]) => producer.send({ topic: `${topicPrefix}transactions`, messages });
export const range = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
