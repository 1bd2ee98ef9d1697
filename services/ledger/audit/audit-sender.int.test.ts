import type { Logger } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { auditId } from '#libs/contracts/ids.ts';
import { messageType } from '#libs/contracts/messages.ts';
import { type TopicName, topicName, topics } from '#libs/contracts/topics.ts';
import { readToEnd } from '#libs/kafka/consume/read-to-end.ts';
import { Publisher } from '#libs/kafka/publish/publish.ts';
import type { ReceivedMessage } from '#libs/kafka/received-message.ts';
import { anyTopic, FaultProxy, logger, testKafka, unique } from '#libs/kafka/test/test-kit.ts';
import { ensureTopics } from '#libs/kafka/topics.ts';
import { Relay } from '#libs/postgres/outbox/relay.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { createAuditSender, insertAudits } from './audit-sender.ts';

const kafka = testKafka();
const prefix = `${unique('audits')}.`;
const stops: (() => Promise<unknown>)[] = [];
/** A proxy between the brokers and the publishers of audit records. The publisher of events is connected directly. */
let proxy: FaultProxy;
/** The number of times that a sender reported a failure. */
let failures = 0;
const ledger = useLedger();

beforeAll(async () => {
  proxy = await new FaultProxy().open();
  const names = ['ledger.audit', 'transactions', 'balances'] as const;
  const topicSpec = (name: TopicName) => ({
    name: topicName(prefix, name),
    partitions: topics[name].partitions,
    replication_factor: 1,
    config: {},
  });
  await ensureTopics(kafka, names.map(topicSpec));
  await Promise.all([startSender(), startSender(), startRelay()]);
}, 120_000);

afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
  await proxy.set({ kind: 'refuse' });
});

function openPool(name: string) {
  const pool = createPool({ url: ledger.serviceUrl, application_name: name, schema: 'ledger', max: 4 }, logger);
  stops.push(() => pool.end());
  return pool;
}

/** The parts of a ledger process. */
async function startSender(): Promise<void> {
  const pool = openPool('audits');
  const publisher = new Publisher(testKafka(proxy.route), { logger, name: 'audits', topics: anyTopic() });
  stops.push(() => publisher.stop({ timeoutMs: 100 }));
  await publisher.start();
  const counting: Logger = Object.assign(Object.create(logger) as Logger, { warn: () => void (failures += 1) });
  const sender = createAuditSender({ pool, publisher, prefix, logger: counting, pollMs: 20 });
  stops.push(() => sender.stop());
  sender.start();
}

async function startRelay(): Promise<void> {
  const pool = openPool('relay');
  const publisher = new Publisher(kafka, { logger, name: 'events', topics: anyTopic() });
  stops.push(() => publisher.stop());
  await publisher.start();
  const relay = new Relay({
    pool,
    publisher,
    schema: 'ledger',
    topicName: (name) => topicName(prefix, name as TopicName),
    source: 'ledger',
    logger,
  });
  stops.push(() => relay.stop());
  relay.start();
}

const record = (n: number): AuditRecord => ({
  audit_id: auditId(`txn_${freshBits()}`),
  created_at: '2026-01-02T03:04:05.678Z',
  actor: `jwt:test|${n % 3}`,
  action: 'reverse_transaction',
  resource_id: `txn_${n}`,
  outcome: 'success',
  request_id: `req-${n}`,
  details: { n },
  address: null,
});

async function keep(count: number): Promise<AuditRecord[]> {
  const records = Array.from({ length: count }, (_, n) => record(n));
  await transaction(ledger.owner, (client) => insertAudits(client, records));
  return records;
}

const kept = async () => (await ledger.owner.query('select from audit_outbox')).rowCount;
const unpublished = async () =>
  (await ledger.owner.query('select from outbox_batches where published_at is null')).rowCount;

async function sent(topic: TopicName): Promise<ReceivedMessage[]> {
  const read: ReceivedMessage[] = [];
  const take = async (messages: ReceivedMessage[]) => void read.push(...messages);
  await readToEnd(kafka, { topics: [topicName(prefix, topic)], idleMs: 30_000, logger, take });
  return read;
}

/** Expects accounts to receive the records at least once, each unchanged. */
async function expectSent(records: readonly AuditRecord[]): Promise<void> {
  const byId = new Map((await sent('ledger.audit')).map((message) => [message.headers['ce_id'] ?? '', message]));
  for (const { audit_id, actor, request_id, ...rest } of records) {
    const message = byId.get(audit_id);
    expect(JSON.parse(String(message?.value))).toEqual({ audit_id, actor, request_id, ...rest });
    expect(message?.key).toBe(actor);
    expect(message?.headers).toMatchObject({ ce_type: messageType('record_audit'), 'request-id': request_id });
  }
}

test('records of two ledgers are all sent and deleted', async () => {
  const records = (await Promise.all([keep(700), keep(500)])).flat();
  await eventually(async () => (await kept()) === 0);
  await expectSent(records);
});

test('records are kept while publishing fails, events are published meanwhile, and later the records are sent and deleted', async () => {
  await proxy.set({ kind: 'refuse' });
  const records = await keep(300);
  const account_id = await ledger.open('Savings', '10');
  await eventually(async () => (await unpublished()) === 0);
  const events = await sent('transactions');
  expect(events.filter(({ key }) => key === account_id)).toHaveLength(1);
  await eventually(() => failures > 0);
  expect(await kept()).toBe(records.length);
  await proxy.heal();
  await eventually(async () => (await kept()) === 0, 60_000);
  await expectSent(records);
}, 120_000);
