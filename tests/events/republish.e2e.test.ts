import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { source } from '#libs/contracts/envelope.ts';
import { eventTopics, type TopicName, topicName, topics } from '#libs/contracts/topics.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { createTestKafka, readTopics } from '../support/kafka.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests the loss of Kafka with its disks (docs/operations.md): the events are published again from the outboxes. */
const world = useBank({ webhooks: 1 });
const { api } = world;

const root = join(import.meta.dirname, '..', '..');
const connection = () => ({
  KAFKA_BROKERS: world.bank.kafka_brokers,
  TOPIC_PREFIX: world.bank.topic_prefix,
  DATABASE_URL: world.bank.database_url,
});
const run = promisify(execFile);
const script = (file: string, parameters: string[] = [], env: Record<string, string> = {}) =>
  run(process.execPath, [join(root, file), ...parameters], { env: { ...process.env, ...connection(), ...env } });

/** Returns the events without duplicates, in order per key. Partitions and offsets of a new topic differ. */
function byKey(messages: ReceivedMessage[] = []): Record<string, unknown[]> {
  const seen = new Map(
    messages.map(({ key, value, headers }) => [headers['ce_id'], { key, value: String(value), headers }]),
  );
  const groups = Object.groupBy(seen.values(), ({ key }) => String(key));
  return Object.fromEntries(
    Object.entries(groups)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, events = []]) => [key, events]),
  );
}

const isPublished = async () => {
  const [waiting] = await world.sql<{ count: number }>(`select count(*)::int as count from
    (${['ledger', 'accounts', 'webhooks'].map((schema) => `select from ${schema}.outbox_batches where published_at is null`).join(' union all ')}) as unpublished`);
  return waiting?.count === 0;
};

/**
 * Deletes all topics while no process is connected, because a broker that lost its disks has no
 * topics and no offsets.
 */
async function loseKafka(): Promise<void> {
  const kafka = createTestKafka(world.bank);
  const names = (Object.keys(topics) as TopicName[]).map((name) => topicName(world.bank.topic_prefix, name));
  await kafka.withAdmin(async (admin) => {
    await admin.deleteTopics({ topics: names, timeout: 10_000 });
    await eventually(async () => (await admin.listTopics()).every((name) => !names.includes(name)), 60_000);
  });
}

type Balance = {
  account_id: string;
  client_id: string;
  account_number: string;
  balance: string;
  sequence: number;
  status_version: number;
};

/** Returns the message with the highest (status_version, sequence) of each account, as docs/events.md describes. */
async function latestBalances(): Promise<Record<string, unknown>[]> {
  const latest = new Map<string, Balance>();
  for (const { value } of (await readTopics(world.bank, ['balances'])).get('balances') ?? []) {
    const told = JSON.parse(String(value)) as Balance;
    const known = latest.get(told.account_id);
    const isNewer =
      !known ||
      told.status_version > known.status_version ||
      (told.status_version === known.status_version && told.sequence >= known.sequence);
    if (isNewer) latest.set(told.account_id, told);
  }
  return [...latest.values()]
    .map(({ account_id, client_id, account_number, balance, sequence }) => ({
      account_id,
      client_id,
      account_number,
      balance,
      sequence,
    }))
    .sort((a, b) => (a.account_id < b.account_id ? -1 : 1));
}

const booked = () =>
  world.sql<
    Record<string, unknown>
  >(`select 'acc_' || replace(account_id::text, '-', '') as account_id, 'cli_' || replace(client_id::text, '-', '') as client_id,
    account_number, (balance_minor / 100.0)::numeric(20, 2)::text as balance, last_sequence::int as sequence
    from ledger.accounts where client_id is not null order by account_id`);

describe('bank republish', () => {
  it('explains its options', async () => {
    await expect(script('cli/bank.ts', ['republish'])).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('name --since, --balances, --masters or --keys'),
    });
  });

  it('asks for confirmation and shows the number of messages', async () => {
    const { account_id } = await api.newAccount();
    await api.transact(account_id, 'Deposit', 5);
    await eventually(isPublished);
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const failure = await script('cli/bank.ts', ['republish', '--since', since, '--service', 'ledger']).catch(
      (error: Error & { code: number; stdout: string; stderr: string }) => error,
    );
    expect(failure).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/^ledger: \d+ messages in \d+ batches were published since/),
      stderr: expect.stringContaining('not confirmed (--yes)'),
    });
    expect(await isPublished()).toBe(true);
    const future = await script('cli/bank.ts', ['republish', '--since', '2999-01-01T00:00:00Z', '--yes']);
    expect(future.stdout.split('\n').map((line) => line.split(' were ')[0])).toEqual([
      'ledger: 0 messages in 0 batches',
      'accounts: 0 messages in 0 batches',
      'webhooks: 0 messages in 0 batches',
      '',
    ]);
  });

  it('after the loss of all topics every event is published again, once per ce_id and in order per key, and the bank works', async () => {
    // The events of this account are not published again, so only the books contain it.
    const quiet = await api.newAccount();
    await api.transact(quiet.account_id, 'Deposit', 7);
    await eventually(isPublished);
    // A time has whole milliseconds; the last batch can have been marked as published in this one.
    await sleep(5);
    const since = new Date().toISOString();
    const accounts = [await api.newAccount(), await api.newAccount()];
    const [from, to] = accounts.map(({ account_id }) => account_id);
    for (let n = 1; n <= 4; n++) {
      await api.transact(String(from), 'Deposit', n);
      await api.post('/transfers', { from_account_id: from, to_account_id: to, amount: 0.5 });
    }
    const { api_key } = await api.key({ scopes: ['accounts:read'] });
    // The audit record of this change is in the outbox of webhooks.
    expect((await api.post('/webhooks', { url: 'http://127.0.0.1:9/', event_types: ['*'] })).status).toBe(201);
    await eventually(isPublished);
    // A process that starts again publishes the latest heads of the audit.
    const until = new Date().toISOString();
    const before = await readTopics(world.bank, [...eventTopics]);
    // The heads of the audit are published by each process for itself, some seconds after their time, and the activity of
    // callers by the gateways, which have no outbox.
    const own = (name: TopicName, read: typeof before) =>
      byKey(
        read
          .get(name)
          ?.filter(
            ({ key, headers: { ce_time = '', ce_source } }) =>
              key !== 'audit-chain' && ce_source !== source.gateway && ce_time >= since && ce_time < until,
          ),
      );
    expect(Object.values(own('transactions', before)).flat()).toHaveLength(12);

    await Promise.all(world.bank.processes.map((process) => process.stop()));
    await loseKafka();
    await script('deploy/create-topics.ts', [], {
      LOG_LEVEL: 'warn',
    });
    await Promise.all(['ledger', 'accounts', 'webhooks'].map((name) => world.bank.process(name).restart()));
    const { stdout } = await script('cli/bank.ts', ['republish', '--since', since, '--yes']);
    for (const service of ['ledger', 'accounts', 'webhooks'])
      expect(stdout).toMatch(new RegExp(`^${service}: the relay publishes [1-9]\\d* batches again$`, 'm'));
    await eventually(isPublished, 60_000);
    const after = await readTopics(world.bank, [...eventTopics]);
    // A relay that takes over from a disconnected one publishes the latest balances again, under new ids.
    const ids = new Set(before.get('balances')?.map(({ headers }) => headers['ce_id']));
    after.set('balances', after.get('balances')?.filter(({ headers }) => ids.has(headers['ce_id'])) ?? []);
    for (const name of eventTopics) expect([name, own(name, after)]).toEqual([name, own(name, before)]);
    expect(after.get('balances')?.filter(({ key }) => key === quiet.account_id)).toEqual([]);

    const again = await script('cli/bank.ts', ['republish', '--balances', '--masters', '--keys']);
    expect(again.stdout).toMatch(
      /^ledger: the balances of \d+ accounts will be published\naccounts: the master data of \d+ accounts and \d+ clients will be published\naccounts: \d+ API keys will be published\n$/,
    );
    await eventually(isPublished, 60_000);
    await world.bank.process('gateway').restart();
    expect(await latestBalances()).toEqual(await booked());
    const masters = await readTopics(world.bank, ['account-masters', 'client-masters']);
    const keys = (name: TopicName) => [...new Set(masters.get(name)?.map(({ key }) => key))].sort();
    expect(keys('account-masters')).toEqual((await booked()).map(({ account_id }) => account_id));
    expect(keys('client-masters')).toEqual(
      (await api.all<{ client_id: string }>('/clients')).map(({ client_id }) => client_id).sort(),
    );
    expect((await api.withKey(api_key).get(`/accounts/${from}`)).status).toBe(200);
    expect((await api.transact(String(from), 'Deposit', 1)).status).toBe('Completed');
  }, 180_000);
});
