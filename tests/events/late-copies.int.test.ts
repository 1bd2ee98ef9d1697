import { pino } from 'pino';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { hashApiKey, makeApiKey } from '#libs/contracts/api-key.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import type { KafkaClient } from '#libs/kafka/client.ts';
import { readMessage } from '#libs/kafka/consume/read-message.ts';
import { type OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';
import { anyTopic, FaultProxy, testKafka, testTopic } from '#libs/kafka/test/test-kit.ts';
import { topicRanges } from '#libs/kafka/topics.ts';
import { Relay, type RelayOptions } from '#libs/postgres/outbox/relay.ts';
import type { States } from '#libs/postgres/outbox/stale-states.ts';

import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { schema as accountsSchema } from '../../services/accounts/schema.ts';
import { newId, startHarness } from '../../services/accounts/test/harness.ts';
import { createApiKeys } from '../../services/gateway/access/api-keys.ts';
import { republishBalances } from '../../services/ledger/batch/republish.ts';
import { startLedger } from '../../services/ledger/test/harness.ts';
import { eventually } from '../support/eventually.ts';
import { Proxy } from '../support/proxy.ts';

/**
 * Messages that are written to a compacted topic after newer ones of their key: relays against a real Postgres and a real
 * Kafka, with one topic of one partition.
 */
const kafka = testKafka();
const proxy = new FaultProxy();
beforeAll(() => proxy.open());
afterAll(() => proxy.set({ kind: 'refuse' }));

const waitMs = 20_000;
const warmUp = 'warm-up';
/** How long these relays wait for late messages. */
const lateMs = 8_000;

interface Setting {
  /** The URL of the database. */
  url: string;
  schema: string;
  /** The topic's name in the outbox, and on the broker. */
  name: string;
  topic: string;
  states?: States;
}

/**
 * Starts a process with a relay. It publishes only what belongs to the topic. `around` replaces its sends. `kill` ends what
 * it does with the database and the brokers, as a kill of the process does.
 */
async function startRelay(
  { url, schema, name, topic, states }: Setting,
  options: Partial<RelayOptions> = {},
  client: KafkaClient = kafka,
  around: (send: () => Promise<void>) => Promise<void> = (send) => send(),
) {
  const database = await new Proxy({ target: url }).start();
  const pool = createPool({ url: database.url, application_name: 'relay', schema, connection_timeout_ms: 500 }, silent);
  const publisher = new Publisher(client, { logger: silent, topics: anyTopic(), name: 'relay' });
  await publisher.start();
  // So that no later send begins with a connection or a look-up.
  await publisher.publish({ topic, key: warmUp, value: '{}', headers: {} }, { timeoutMs: waitMs });
  let isKilled = false;
  const publishAll: RelayOptions['publisher']['publishAll'] = async (messages, timeout) => {
    if (isKilled) throw new Error('killed');
    const wanted: OutgoingMessage[] = messages.filter((message) => message.topic === topic);
    if (wanted.length > 0) await around(() => publisher.publishAll(wanted, timeout));
  };
  const relay = new Relay({
    pool,
    publisher: { publishAll },
    schema,
    topicName: (each) => (each === name ? topic : each),
    source: 's',
    logger: silent,
    lateMs,
    ...(states && { states }),
    ...options,
  });
  relay.start();
  const kill = (): void => {
    isKilled = true;
    void database.set({ kind: 'cut' });
  };
  onTestFinished(async () => {
    await relay.stop();
    await Promise.all([publisher.stop({ timeoutMs: 0 }), pool.end()]);
    await database.stop();
  });
  return { relay, cut: () => void database.set({ kind: 'cut' }), mend: () => void database.heal(), kill };
}

/** Returns all records of a topic but the first ones of relays, in order. */
async function readRecords(topic: string) {
  const [range] = await topicRanges(kafka, topic);
  const records: { key: string; value: string; id: string }[] = [];
  for (let offset = range?.low ?? 0n; offset < (range?.high ?? 0n); offset += 1n) {
    const read = await readMessage(kafka, { topic, partition: 0, offset }, waitMs);
    if (read && String(read.key) !== warmUp)
      records.push({ key: String(read.key), value: String(read.value), id: String(read.headers['ce_id']) });
  }
  return records;
}

/** A ledger with one account, whose balance was 100.00 when it was opened. */
async function startBalances() {
  const ledger = await startLedger();
  onTestFinished(() => ledger.stop());
  const topic = await testTopic(kafka, 'balances', 1, { 'cleanup.policy': 'compact' });
  const states: States = {
    topics: ['balances'],
    republish: (names) =>
      republishBalances(
        ledger.reads,
        names.map(({ key }) => key),
      ),
  };
  const setting = { url: ledger.ownerUrl, schema: 'ledger', name: 'balances', topic };
  const account = await ledger.open('Savings', '100');
  const read = async () =>
    (await readRecords(topic)).map(({ value }) => (JSON.parse(value) as { balance: string }).balance);
  return {
    setting,
    states,
    deposit: (amount: string) => ledger.book([ledger.cash('Deposit', account, amount)]),
    owner: createPool({ url: ledger.ownerUrl, application_name: 'owner', schema: 'ledger', max: 1 }, silent),
    read,
    /** Resolves when these are all balances in the topic; without repeats, because a relay may publish one twice. */
    untilBalances: (...balances: string[]) =>
      eventually(async () => {
        const all = await read();
        const changes = all.filter((balance, at) => balance !== all[at - 1]);
        return JSON.stringify(changes) === JSON.stringify(balances);
      }, waitMs),
  };
}

/** A send that waits, as in a process that is frozen just before it. */
function freeze() {
  const [begun, goesOn, ended] = [0, 0, 0].map(() => Promise.withResolvers<void>()) as [Gate, Gate, Gate];
  let isFirst = true;
  return {
    begun: begun.promise,
    async around(send: () => Promise<void>) {
      if (!isFirst) return send();
      isFirst = false;
      begun.resolve();
      await goesOn.promise;
      await send().finally(ended.resolve);
    },
    /** Resolves when the message has been written. */
    async thaw() {
      goesOn.resolve();
      await ended.promise;
    },
  };
}
type Gate = PromiseWithResolvers<void>;

test('a revoked API key stays revoked although a late copy is the last record of the key', async () => {
  const bank = await startHarness();
  onTestFinished(() => bank.stop());
  const topic = await testTopic(kafka, 'api-keys', 1, { 'cleanup.policy': 'compact' });
  const setting = { url: bank.ownerUrl, schema: accountsSchema, name: 'api-keys', topic };
  const key_id = newId('key');
  const apiKey = makeApiKey('live', key_id);
  const pepper = 'a pepper of sixteen';
  const data = {
    key_id,
    name: 'k',
    scopes: [...scopes],
    environment: 'live' as const,
    client_id: null,
    expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    secret_hash: hashApiKey(pepper, apiKey),
  };
  await bank.send('create_api_key', data, { message_id: key_id });
  /** A gateway that has read the topic after its compaction. */
  const gateway = async () => {
    const keys = createApiKeys({
      peppers: [pepper],
      environments: ['live'],
      logger: pino({ level: 'silent' }),
      onUse: () => undefined,
      now: () => Date.now(),
    });
    for (const { key, value } of new Map((await readRecords(topic)).map((record) => [record.key, record])).values())
      keys.take(key, Buffer.from(value));
    return keys;
  };
  const frozen = freeze();
  const first = await startRelay(setting, {}, kafka, frozen.around);
  await frozen.begun;
  first.cut();
  const second = await startRelay(setting);
  await eventually(async () => (await readRecords(topic)).length > 0, waitMs);
  expect((await gateway()).find(apiKey)).toBeDefined();
  expect(await bank.send('revoke_api_key', { key_id })).toMatchObject({ ok: true });
  second.relay.wake();
  await eventually(async () => (await gateway()).find(apiKey) === undefined, waitMs);
  await frozen.thaw();
  const records = await readRecords(topic);
  expect(records.at(-1)).toMatchObject({ key: key_id, value: expect.stringContaining('"revoked_at":null') });
  expect((await gateway()).find(apiKey)).toBeUndefined();
  expect((await gateway()).environment(key_id)).toBe('live');
});

test('an old relay whose late send is written after the newer ones of the new relay publishes the latest balance again', async () => {
  const { setting, states, deposit, untilBalances } = await startBalances();
  const frozen = freeze();
  const first = await startRelay({ ...setting, states }, {}, kafka, frozen.around);
  await frozen.begun;
  first.cut();
  // This relay republishes nothing.
  const second = await startRelay(setting);
  await untilBalances('100.00');
  await deposit('10');
  second.relay.wake();
  await untilBalances('100.00', '110.00');
  await frozen.thaw();
  await untilBalances('100.00', '110.00', '100.00');
  first.mend();
  await untilBalances('100.00', '110.00', '100.00', '110.00');
});

test('if the old relay is killed after its late send, the new relay publishes the latest balance again', async () => {
  const { setting, states, deposit, untilBalances } = await startBalances();
  const frozen = freeze();
  const first = await startRelay(setting, {}, kafka, frozen.around);
  await frozen.begun;
  first.cut();
  const second = await startRelay({ ...setting, states });
  await untilBalances('100.00');
  await deposit('10');
  second.relay.wake();
  await untilBalances('100.00', '110.00');
  await frozen.thaw();
  first.kill();
  await untilBalances('100.00', '110.00', '100.00', '110.00');
});

test('if that is later than the new relay waits, the latest balance is published again by the next sweep', async () => {
  const { setting, states, deposit, untilBalances, owner } = await startBalances();
  const frozen = freeze();
  const first = await startRelay(setting, {}, kafka, frozen.around);
  await frozen.begun;
  first.cut();
  const second = await startRelay({ ...setting, states }, { lateMs: 0 });
  await untilBalances('100.00');
  await deposit('10');
  second.relay.wake();
  await untilBalances('100.00', '110.00');
  // The new relay has republished the states that it found in doubt.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await frozen.thaw();
  first.kill();
  await untilBalances('100.00', '110.00', '100.00');
  await owner.query(`update outbox_lease set swept_at = swept_at - interval '1 day'`);
  await owner.end();
  await untilBalances('100.00', '110.00', '100.00', '110.00');
});

/** A relay whose first send is cut off, so that its bytes reach the broker only when the network is mended. */
async function cutOff(setting: Setting, options: Partial<RelayOptions>) {
  let isFirst = true;
  const cut = await startRelay(setting, { publishTimeoutMs: 1_000, ...options }, testKafka(proxy.route), (send) => {
    if (isFirst) proxy.stall();
    isFirst = false;
    return send();
  });
  return { ...cut, mendNetwork: () => proxy.deliver() };
}

test('after a failed send whose record is written after all, the latest balance is published again', async () => {
  const { setting, states, deposit, untilBalances } = await startBalances();
  const { relay, mendNetwork } = await cutOff({ ...setting, states }, {});
  await untilBalances('100.00');
  await deposit('10');
  relay.wake();
  await untilBalances('100.00', '110.00');
  mendNetwork();
  await untilBalances('100.00', '110.00', '100.00');
  await untilBalances('100.00', '110.00', '100.00', '110.00');
});

test('so it is if the relay is killed before it could do that', async () => {
  const { setting, states, deposit, untilBalances } = await startBalances();
  const { relay, kill, mendNetwork } = await cutOff(setting, {});
  await untilBalances('100.00');
  await deposit('10');
  relay.wake();
  await untilBalances('100.00', '110.00');
  // Everything is marked as published, so the next relay finds nothing unpublished.
  await eventually(async () => (await relay.stats()).rows === 0);
  kill();
  await startRelay({ ...setting, states });
  mendNetwork();
  await untilBalances('100.00', '110.00', '100.00', '110.00');
});

test('what a relay published that was killed before it marked it is published again, before what is newer', async () => {
  const { setting, states, deposit, untilBalances, read } = await startBalances();
  const first = await startRelay(setting, {}, kafka, async (send) => {
    await send();
    first.kill();
  });
  await untilBalances('100.00');
  await deposit('10');
  await startRelay({ ...setting, states });
  await untilBalances('100.00', '110.00');
  expect((await read()).filter((balance) => balance === '100.00')).toHaveLength(2);
  const [published, again] = await readRecords(setting.topic);
  expect(again).toEqual(published);
});
