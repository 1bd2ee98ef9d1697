import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { hashApiKey, makeApiKey } from '#libs/contracts/api-key.ts';
import { scopes } from '#libs/contracts/scopes.ts';
import type { StateName } from '#libs/postgres/outbox/doubts.ts';
import type { PublishedEvent } from '#libs/postgres/outbox/outbox-messages.ts';
import { Relay, type RelayOptions } from '#libs/postgres/outbox/relay.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { createTestProxy } from '#libs/postgres/test/test-proxy.ts';
import { schema as accountsSchema } from '../../services/accounts/schema.ts';
import { newId, startHarness } from '../../services/accounts/test/harness.ts';
import { createApiKeys } from '../../services/gateway/access/api-keys.ts';
import { republishBalances } from '../../services/ledger/batch/republish.ts';
import { startLedger } from '../../services/ledger/test/harness.ts';
import { eventually } from '../support/eventually.ts';

/** Returns the messages of a compacted topic that readers receive after compaction. */
function createTopic(name: string) {
  const log: { key: string; value: string }[] = [];
  return {
    log,
    write(messages: readonly PublishedEvent[]) {
      for (const { topic, key, value } of messages)
        if (topic === name) log.push({ key: key ?? '', value: value ?? '' });
    },
    compacted: () => [...new Map(log.map((record) => [record.key, record])).values()],
  };
}

/**
 * Starts two relays of one outbox. The first freezes just before it publishes, and its database connections break; the
 * second takes over. `thaw` lets the first one publish its messages after those of the second.
 */
async function freezeOne(
  url: string,
  schema: string,
  topic: ReturnType<typeof createTopic>,
  republish: RelayOptions['republish'],
) {
  const proxy = await createTestProxy(url);
  const [frozen, thawed, written] = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
    Promise.withResolvers<void>(),
  ];
  const start = (target: string, publishAll: RelayOptions['publisher']['publishAll']): Relay => {
    const pool = createPool({ url: target, application_name: 'relay', schema, connection_timeout_ms: 500 }, silent);
    const relay = new Relay({
      pool,
      publisher: { publishAll },
      schema,
      topicName: (name) => name,
      source: 's',
      logger: silent,
      ...(republish && { republish }),
    });
    relay.start();
    onTestFinished(() => relay.stop().finally(() => pool.end()));
    return relay;
  };
  onTestFinished(() => proxy.close());
  start(proxy.url, async (messages) => {
    frozen.resolve();
    await thawed.promise;
    topic.write(messages);
    written.resolve();
  });
  await frozen.promise;
  proxy.cut();
  const second = start(url, async (messages) => topic.write(messages));
  await eventually(() => second.active(), 10_000);
  return {
    second,
    async thaw() {
      thawed.resolve();
      await written.promise;
      proxy.open();
    },
  };
}

test('a revoked API key stays revoked although a late copy is the last record of the key', async () => {
  const bank = await startHarness();
  onTestFinished(() => bank.stop());
  const topic = createTopic('api-keys');
  const key_id = newId('key');
  const apiKey = makeApiKey('live', key_id);
  const pepper = 'a pepper of sixteen';
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const data = {
    key_id,
    name: 'k',
    scopes: [...scopes],
    environment: 'live' as const,
    client_id: null,
    expires_at,
    secret_hash: hashApiKey(pepper, apiKey),
  };
  await bank.send('create_api_key', data, { message_id: key_id });
  const gateway = () => {
    const keys = createApiKeys({
      pepper,
      environments: ['live'],
      logger: pino({ level: 'silent' }),
      onUse: () => undefined,
      now: () => Date.now(),
    });
    for (const { key, value } of topic.compacted()) keys.take(key, Buffer.from(value));
    return keys;
  };
  const { second, thaw } = await freezeOne(bank.ownerUrl, accountsSchema, topic, undefined);
  await eventually(() => topic.log.length > 0);
  expect(gateway().find(apiKey)).toBeDefined();
  expect(await bank.send('revoke_api_key', { key_id })).toMatchObject({ ok: true });
  second.wake();
  await eventually(() => gateway().find(apiKey) === undefined);
  await thaw();
  expect(topic.log.at(-1)).toMatchObject({ key: key_id, value: expect.stringContaining('"revoked_at":null') });
  expect(gateway().find(apiKey)).toBeUndefined();
  expect(gateway().environment(key_id)).toBe('live');
});

test('the latest balance is published again after the late copy of an older one', async () => {
  const ledger = await startLedger();
  onTestFinished(() => ledger.stop());
  const topic = createTopic('balances');
  const account = await ledger.open('Savings', '100');
  const republish = (states: readonly StateName[]) => republishBalances(ledger.reads, states, 'balances');
  const { second, thaw } = await freezeOne(ledger.ownerUrl, 'ledger', topic, republish);
  const latest = () =>
    topic
      .compacted()
      .map(({ value }) => JSON.parse(value) as { account_id: string; sequence: number; balance: string });
  await eventually(() => topic.log.length > 0);
  await ledger.book([ledger.cash('Deposit', account, '10')]);
  second.wake();
  await eventually(() => latest()[0]?.balance === '110.00');
  await thaw();
  await eventually(() => latest()[0]?.balance === '100.00' || topic.log.length > 3);
  await eventually(() => latest()[0]?.balance === '110.00', 10_000);
  expect(latest()).toMatchObject([{ account_id: account, sequence: 2 }]);
});
