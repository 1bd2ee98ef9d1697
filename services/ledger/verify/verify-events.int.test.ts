import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { source } from '#libs/contracts/envelope.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { type TopicName, topicName, topics } from '#libs/contracts/topics.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import { type OutgoingMessage, Publisher } from '#libs/kafka/publish/publish.ts';
import { ensureTopics, topicRanges } from '#libs/kafka/topics.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import { cloudEventHeaders } from '#libs/postgres/outbox/outbox-messages.ts';
import { Relay } from '#libs/postgres/outbox/relay.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { runBatch } from '../batch/engine.ts';
import { batchCommand } from '../domain/batches.ts';
import type { Command } from '../domain/decision.ts';
import { ledgerSchema, migrations } from '../schema.ts';
import {
  capture,
  cash,
  opening,
  placing,
  release,
  reversal,
  testAccount,
  testBits,
  testContext,
  transfer,
} from '../test/test-kit.ts';
import { checkOperations, eventRules } from './event-checks.ts';
import { verifyEvents } from './verify-events.ts';

/**
 * The books are written once; each test publishes different events, with a separate topic prefix.
 */
const names = ['transactions', 'transfers', 'holds', 'batches', 'balances'] as const satisfies TopicName[];
/** Other messages that the ledger's relay publishes. */
const topicsOfBank = [...names, 'accounts.commands'] as const satisfies TopicName[];
const [a, b] = [testAccount(1, 'Savings'), testAccount(2, 'Checking')];
let database: TestDatabase;
let pool: Pool;
let writes: Pool;
let kafka: KafkaClient;
let publisher: Publisher;
let events: OutboxEvent[];
const prefixes: string[] = [];

/** A transfer and a refusal, by one request. */
function batch(): Command {
  const batch_id = formatId('batch', testBits(77));
  const items = ['1.5', '99999'].map((amount) => ({
    transfer: { from_account_id: a.account_id, to_account_id: b.account_id, amount, currency: null, description: null },
  }));
  return batchCommand(
    { batch_id, mode: 'independent', items },
    testContext(77, { message_id: batch_id, fingerprint: testBits(77) }),
  );
}

const book = (commands: Parameters<typeof runBatch>[1]) => runBatch(writes, commands, 0);
const markAll = () => pool.query('update outbox_batches set published_at = clock_timestamp()');

/** Long time limits, because a busy machine is not a finding. */
const patience = {
  connection_timeout_ms: 60_000,
  statement_timeout_ms: 60_000,
  lock_timeout_ms: 60_000,
  idle_in_transaction_session_timeout_ms: 0,
};

beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(
    { ...migrations, owner_url: database.url, role: `${database.name}_ledger`, role_password: 'test-password' },
    silent,
  );
  pool = createPool({ ...patience, url: database.url, application_name: 'test', schema: ledgerSchema, max: 6 }, silent);
  writes = createPool(
    { ...patience, url: database.url, application_name: 'test writes', schema: ledgerSchema, max: 2 },
    silent,
  );
  kafka = createKafka({ brokers: (process.env['KAFKA_BROKERS'] ?? '').split(','), client_id: 'test' }, silent);
  publisher = new Publisher(kafka, { logger: silent, name: 'test', topics: { get: () => topics.transactions } });
  await publisher.start();
  const moved = transfer(a, b, '25');
  Object.assign(moved.data, { external_id: 'order 1', metadata: { channel: 'app' } });
  await book([opening(1, 'Savings', '100'), opening(2, 'Checking', '10'), opening(3, 'Loan', '40')]);
  for (const commands of [
    [cash('Deposit', a, '10.50'), moved],
    [cash('Withdrawal', a, '5000'), cash('Withdrawal', b, '1')],
    [transfer(b, testAccount(3, 'Loan'), '5')],
    // Refused because of the destination: more than the Loan's outstanding amount.
    [transfer(a, testAccount(3, 'Loan'), '36')],
  ])
    await book(commands);
  const { rows } = await pool.query<{ transaction_id: string }>(
    "select transaction_id from v_transactions where transaction_type = 'Transfer'",
  );
  await book([reversal(rows[0]?.transaction_id ?? '')]);
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const context = { time: new Date().toISOString() };
  await book([
    placing(a, '20', { n: 70, expires_at, context }),
    capture(70, { amount: '4', final: false }),
    capture(70, { amount: '3', to: b, final: false }),
    placing(a, '1', { n: 71, expires_at, context }),
  ]);
  await book([release(70)]);
  await book([capture(71, { amount: '0.4', final: false })]);
  await book([batch()]);
  events = (await readOutbox(pool)).filter(({ topic }) => names.some((name) => name === topic));
  await markAll();
});

afterAll(async () => {
  await publisher?.stop();
  const all = prefixes.flatMap((prefix) => topicsOfBank.map((name) => topicName(prefix, name)));
  if (all.length > 0) await kafka.withAdmin((admin) => admin.deleteTopics({ topics: all, timeout: 10_000 }));
  await Promise.all([pool, writes].map((each) => each?.end()));
  await database?.drop();
});

async function newTopics(partitions = 1): Promise<string> {
  const prefix = `${database.name}.${randomBytes(4).toString('hex')}.`;
  prefixes.push(prefix);
  await ensureTopics(
    kafka,
    topicsOfBank.map((name) => ({ name: topicName(prefix, name), ...topics[name], partitions, replication_factor: 1 })),
  );
  // The broker may refuse to tell the offsets of a topic until it has become the leader of all partitions.
  for (const name of topicsOfBank) await eventually(() => topicRanges(kafka, topicName(prefix, name)));
  return prefix;
}

/** Publishes everything in the outbox, as the relay would. */
const published = (prefix: string) =>
  events.map((event) => ({
    topic: topicName(prefix, event.topic as TopicName),
    key: event.key,
    value: event.payload,
    headers: cloudEventHeaders(event, source.ledger),
  }));
const publish = (messages: OutgoingMessage[]) => publisher.publishAll(messages, { timeoutMs: 60_000 });
const brokenRules = async (prefix: string) => (await verifyEvents(pool, kafka, prefix, silent)).map(({ rule }) => rule);

/** Returns the rules that are violated if the published events are changed in this way. */
async function broken(change: (messages: OutgoingMessage[], prefix: string) => OutgoingMessage[]): Promise<string[]> {
  const prefix = await newTopics();
  await publish(change(published(prefix), prefix));
  return brokenRules(prefix);
}

const hasTopic =
  (name: TopicName, type = '') =>
  (message: OutgoingMessage) =>
    message.topic.endsWith(name) && (message.headers['ce_type'] ?? '').includes(type);
const changed = (message: OutgoingMessage, change: (data: never) => unknown): OutgoingMessage => {
  const data = JSON.parse(String(message.value)) as never;
  change(data);
  return { ...message, value: JSON.stringify(data) };
};
/** Returns the same event with another ce_id. */
const another = (message: OutgoingMessage): OutgoingMessage => ({
  ...message,
  headers: { ...message.headers, ce_id: randomUUID() },
});
/** Changes the first message that matches the filter. */
const changeFirst =
  (filter: (message: OutgoingMessage) => boolean, change: (message: OutgoingMessage) => OutgoingMessage[]) =>
  (messages: OutgoingMessage[]) => {
    const index = messages.findIndex(filter);
    expect(index).toBeGreaterThanOrEqual(0);
    return messages.toSpliced(index, 1, ...change(messages[index] as OutgoingMessage));
  };

describe('a valid bank', () => {
  it('has no findings for events that were published once, twice, or not yet', async () => {
    expect(await broken((messages) => messages)).toEqual([]);
    expect(await broken((messages) => [...messages, ...messages])).toEqual([]);
    await pool.query('update outbox_batches set published_at = null');
    expect(await broken(() => [])).toEqual([]);
    expect(await broken((messages) => messages.slice(0, 9))).toEqual([]);
    await markAll();
  });

  it('has none for events from before 1.0.0, which lack initiator and client, or for missing older events', async () => {
    const newer = ['actor', 'request_channel', 'client_id', 'account_number'];
    const isNewer = (message: OutgoingMessage) =>
      /transfer\.(failed|reversed)|account_not_found/.test(message.headers['ce_type'] ?? '');
    const older = (message: OutgoingMessage) => ({
      ...changed(message, (data: Record<string, unknown>) => {
        for (const name of newer) if (name !== 'account_number' || !('account_type' in data)) delete data[name];
      }),
      headers: Object.fromEntries(Object.entries(message.headers).filter(([name]) => name !== 'ce_dataschema')),
    });
    expect(
      await broken((messages) =>
        messages.filter((message) => !isNewer(message)).map((one) => (hasTopic('batches')(one) ? one : older(one))),
      ),
    ).toEqual([]);
  });

  it('has none if retention has deleted the beginning', async () => {
    const prefix = await newTopics();
    await publish(published(prefix));
    const topic = topicName(prefix, 'transactions');
    await kafka.withAdmin(async (admin) => {
      await admin.fetchTopicOffsets(topic); // kafkajs finds the leader only among topics that it has loaded
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '4' }] });
    });
    expect((await topicRanges(kafka, topic))[0]?.low).toBe(4n);
    expect(await brokenRules(prefix)).toEqual([]);
  });
});

describe('the command', () => {
  /** Returns the output; rejects if the exit code is not 0. */
  const run = async (env: Record<string, string>) =>
    (
      await promisify(execFile)(process.execPath, [join(import.meta.dirname, '../../verify-books.ts')], {
        env: { DATABASE_URL: database.url, ...env },
        timeout: 110_000,
      })
    ).stdout;

  it('reports that events were not compared if no broker is set', async () => {
    const printed = await run({});
    expect(printed).toContain('events not compared: KAFKA_BROKERS is not set');
    expect(printed).toMatch(/the books balance\n$/);
  });

  it('prints the result of each rule, and exits with 1 if one is violated', async () => {
    const prefix = await newTopics();
    const env = { KAFKA_BROKERS: process.env['KAFKA_BROKERS'] ?? '', TOPIC_PREFIX: prefix };
    await publish(published(prefix));
    const printed = await run(env);
    for (const rule of Object.values(eventRules)) expect(printed).toContain(`ok     ${rule}`);
    expect(printed).toMatch(/the books balance\n$/);
    await publish([{ topic: topicName(prefix, 'transfers'), key: null, value: 'x', headers: {} }]);
    await expect(run(env)).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringContaining(`BROKEN ${eventRules.form}`),
    });
  });
});

describe('errors are found', () => {
  const bytes = '{"transaction":';
  const cases: [string, string, (messages: OutgoingMessage[], prefix: string) => OutgoingMessage[]][] = [
    [
      'a message that is not an event',
      eventRules.form,
      (messages, prefix) => [
        ...messages,
        { topic: topicName(prefix, 'transactions'), key: a.account_id, value: bytes, headers: {} },
      ],
    ],
    [
      'an unknown type',
      eventRules.form,
      changeFirst(hasTopic('transfers'), (message) => [
        message,
        { ...message, headers: { ...message.headers, ce_type: 'corebanking.balance.v1' } },
      ]),
    ],
    [
      'an event of a transaction that does not exist',
      eventRules.committed,
      changeFirst(hasTopic('transactions', 'failed'), (message) => [
        message,
        changed(another(message), ({ transaction }: { transaction: { transaction_id: string } }) => {
          transaction.transaction_id = `txn_${'e'.repeat(32)}`;
        }),
      ]),
    ],
    [
      'an event of a transfer that does not exist',
      eventRules.committed,
      changeFirst(hasTopic('transfers'), (message) => [
        message,
        changed(another(message), ({ transfer }: { transfer: { transfer_id: string } }) => {
          transfer.transfer_id = `trf_${'e'.repeat(32)}`;
        }),
      ]),
    ],
    [
      'a balance message that matches no entry',
      eventRules.committed,
      changeFirst(hasTopic('balances'), (message) => [
        changed(message, (data: { sequence: number }) => {
          data.sequence = 99;
        }),
        message,
      ]),
    ],
    [
      'another amount',
      eventRules.same,
      changeFirst(hasTopic('transactions', 'completed'), (message) => [
        changed(message, ({ transaction }: { transaction: { amount: string } }) => {
          transaction.amount = '100.01';
        }),
      ]),
    ],
    [
      'another reason',
      eventRules.same,
      changeFirst(hasTopic('transactions', 'failed'), (message) => [
        changed(message, ({ transaction }: { transaction: { failure_code: string } }) => {
          transaction.failure_code = 'inactive_account';
        }),
      ]),
    ],
    [
      'another destination',
      eventRules.same,
      changeFirst(hasTopic('transfers'), (message) => [
        changed(message, ({ transfer }: { transfer: { to_account_id: string } }) => {
          transfer.to_account_id = a.account_id;
        }),
      ]),
    ],
    [
      'a missing entry',
      eventRules.same,
      changeFirst(hasTopic('transactions', 'completed'), (message) => [
        changed(message, ({ entries }: { entries: unknown[] }) => entries.splice(1, 2)),
      ]),
    ],
    [
      'a wrong balance_after',
      eventRules.same,
      changeFirst(hasTopic('transactions', 'completed'), (message) => [
        changed(message, (data: { balance_after: string }) => Object.assign(data, { balance_after: '7.00' })),
      ]),
    ],
    ...(
      [
        ['another actor', { actor: 'key:another' }],
        ['another way', { request_channel: 'staff' }],
        ['another client', { client_id: `cli_${'0'.repeat(32)}` }],
        ['another account number', { account_number: 'SAV-9999' }],
      ] as const
    ).map(([what, change]): (typeof cases)[number] => [
      what,
      eventRules.same,
      changeFirst(hasTopic('transactions', 'completed'), (message) => [
        changed(message, (data: object) => Object.assign(data, change)),
      ]),
    ]),
    [
      'a reversal of another transfer',
      eventRules.same,
      changeFirst(hasTopic('transfers', 'reversed'), (message) => [
        changed(message, ({ transfer }: { transfer: { reverses_transfer_id: string } }) => {
          transfer.reverses_transfer_id = `trf_${'0'.repeat(32)}`;
        }),
      ]),
    ],
    [
      'a reversal in the direction of the transfer',
      eventRules.same,
      changeFirst(hasTopic('transfers', 'reversed'), (message) => [
        changed(message, ({ transfer }: { transfer: { from_account_id: string; to_account_id: string } }) => {
          [transfer.from_account_id, transfer.to_account_id] = [transfer.to_account_id, transfer.from_account_id];
        }),
      ]),
    ],
    [
      'a balance that is a cent too high',
      eventRules.same,
      changeFirst(hasTopic('transactions', 'completed'), (message) => [
        changed(message, (data: { balance_after: string }) => {
          data.balance_after = '100.01';
        }),
      ]),
    ],
    [
      'another key',
      eventRules.same,
      changeFirst(hasTopic('transactions', 'completed'), (message) => [{ ...message, key: b.account_id }]),
    ],
    ...(
      [
        ['a key that is no account', (message) => ({ ...message, key: 'x' })],
        ['no key', (message) => ({ ...message, key: null })],
        ...['yesterday', '0000-01-01T00:00:00.000Z', '2026-02-31T00:00:00.000Z'].map((ce_time) => [
          `the time ${ce_time}`,
          (message: OutgoingMessage) => ({ ...message, headers: { ...message.headers, ce_time } }),
        ]),
      ] as [string, (message: OutgoingMessage) => OutgoingMessage][]
    ).map(([what, change]): (typeof cases)[number] => [
      what,
      eventRules.same,
      changeFirst(hasTopic('transactions', 'completed'), (message) => [change(message)]),
    ]),
    [
      'another balance',
      eventRules.same,
      changeFirst(hasTopic('balances'), (message) => [
        changed(message, (data: { balance: string }) => {
          data.balance = '7.00';
        }),
      ]),
    ],
    [
      'different bytes with the same ce_id',
      eventRules.repeats,
      changeFirst(hasTopic('transactions', 'completed'), (message) => [
        message,
        { ...message, value: `${message.value} ` },
      ]),
    ],
    ['an event that was skipped', eventRules.sequence, changeFirst(hasTopic('transactions', 'completed'), () => [])],
    [
      'a Completed transaction without an event',
      eventRules.missing,
      (messages) => messages.toSpliced(messages.findLastIndex(hasTopic('transactions', 'completed')), 1),
    ],
    [
      'a Failed transaction that was not published',
      eventRules.missing,
      changeFirst(hasTopic('transactions', 'failed'), () => []),
    ],
    ['a transfer that was not published', eventRules.missing, changeFirst(hasTopic('transfers'), () => [])],
    [
      'an event of a hold that does not exist',
      eventRules.committed,
      changeFirst(hasTopic('holds'), (message) => [
        message,
        changed(another(message), ({ hold }: { hold: { hold_id: string } }) => {
          hold.hold_id = `hld_${'e'.repeat(32)}`;
        }),
      ]),
    ],
    [
      'a wrong amount of a hold',
      eventRules.same,
      changeFirst(hasTopic('holds'), (message) => [
        changed(message, ({ hold }: { hold: { amount: string } }) => {
          hold.amount = '20.01';
        }),
      ]),
    ],
    [
      'a wrong captured amount of a hold',
      eventRules.same,
      changeFirst(hasTopic('holds'), (message) => [
        changed(message, ({ hold }: { hold: { captured_amount: string } }) => {
          hold.captured_amount = '7.01';
        }),
      ]),
    ],
    [
      'a wrong end of a hold',
      eventRules.same,
      changeFirst(hasTopic('holds', 'released'), (message) => [
        changed(message, ({ hold }: { hold: { captured_amount: string } }) => {
          hold.captured_amount = '9.99';
        }),
      ]),
    ],
    ['a change of a hold that was skipped', eventRules.sequence, changeFirst(hasTopic('holds', 'captured'), () => [])],
    [
      'a missing last change of a hold',
      eventRules.missing,
      (messages) => messages.toSpliced(messages.findLastIndex(hasTopic('holds')), 1),
    ],
    ...(['completed', 'failed'] as const).map((type): (typeof cases)[number] => [
      `another available balance of a ${type} transaction`,
      eventRules.same,
      changeFirst(
        (message) => hasTopic('transactions', type)(message) && message.key === a.account_id,
        (message) => [
          changed(message, (data: { available_balance: string }) => {
            data.available_balance = `${data.available_balance.slice(0, -1)}9`;
          }),
        ],
      ),
    ]),
    [
      'a completed transaction whose available balance contains what is held',
      eventRules.same,
      (messages) => {
        const last = messages.findLastIndex(
          (message) => hasTopic('transactions', 'completed')(message) && message.key === a.account_id,
        );
        return messages.with(
          last,
          changed(messages[last] as OutgoingMessage, (data: { available_balance: string; balance_after: string }) => {
            expect(data.available_balance).not.toBe(data.balance_after);
            data.available_balance = data.balance_after;
          }),
        );
      },
    ],
    ...(
      [
        ['another count', (of) => void of.counts.failed++],
        ['another total', (of) => void (of.totals = [])],
        ['another time', (of) => void (of.created_at = '2020-01-02T03:04:05.678Z')],
      ] as [string, (of: { counts: { failed: number }; totals: object[]; created_at: string }) => void][]
    ).map(([what, change]): (typeof cases)[number] => [
      `${what} of a batch`,
      eventRules.same,
      changeFirst(hasTopic('batches'), (message) => [
        changed(message, ({ batch: of }: { batch: Parameters<typeof change>[0] }) => change(of)),
      ]),
    ]),
    [
      'an event of a batch that does not exist',
      eventRules.committed,
      changeFirst(hasTopic('batches'), (message) => [
        message,
        changed(another(message), ({ batch: of }: { batch: { batch_id: string } }) => {
          of.batch_id = `bat_${'e'.repeat(32)}`;
        }),
      ]),
    ],
    ['a batch that was not published', eventRules.missing, changeFirst(hasTopic('batches'), () => [])],
    [
      'a wrong available balance',
      eventRules.same,
      (messages) =>
        messages.toSpliced(
          messages.findLastIndex((message) => hasTopic('balances')(message) && message.key === a.account_id),
          1,
          changed(
            messages.findLast(
              (message) => hasTopic('balances')(message) && message.key === a.account_id,
            ) as OutgoingMessage,
            (data: { available_balance: string }) => {
              data.available_balance = '999.00';
            },
          ),
        ),
    ],
    [
      'the balance before the last change of a hold as the last message',
      eventRules.balances,
      (messages) =>
        messages.toSpliced(
          messages.findLastIndex((message) => hasTopic('balances')(message) && message.key === a.account_id),
          1,
        ),
    ],
    [
      'an old balance as the last message',
      eventRules.balances,
      (messages) => [...messages, messages.find(hasTopic('balances')) as OutgoingMessage],
    ],
    [
      'a missing balance',
      eventRules.balances,
      (messages) => messages.filter((message) => !(hasTopic('balances')(message) && message.key === a.account_id)),
    ],
  ];
  it.each(cases)('%s', async (_, rule, change) => {
    expect(await broken(change)).toEqual([rule]);
  });
});

it('a copy of a refusal is not compared with the balance after newer events of its time', async () => {
  const received = published('').map(
    ({ value, ...message }, i): ReceivedMessage =>
      ({ ...message, value: Buffer.from(String(value)), partition: 0, offset: BigInt(i) }) as ReceivedMessage,
  );
  const transactions = received.filter(({ topic }) => topic === 'transactions');
  const refusal = transactions.find(
    ({ key, headers }) => key === a.account_id && headers['ce_type']?.includes('failed'),
  );
  const find = vi.fn();
  const known = new Map();
  const audit = { pool, snapshot: pool, find, published: known, recent: new Map(), headIsGone: () => false };
  await checkOperations('transactions', transactions, audit);
  // As after a batch with the refusal and a posting.
  known.get(a.account_id).newest = { balance: '999.00', time: refusal?.headers['ce_time'] };
  await checkOperations('transactions', refusal ? [refusal] : [], audit);
  expect([find.mock.calls, refusal?.key]).toEqual([[], a.account_id]);
});

it('what was held is read without a limit of time, and only for events that say what was available', async () => {
  const hasty = createPool(
    { ...patience, statement_timeout_ms: 1_000, url: database.url, application_name: 'hasty', schema: ledgerSchema },
    silent,
  );
  const received = published('').map(
    ({ value, ...message }, i): ReceivedMessage =>
      ({ ...message, value: Buffer.from(String(value)), partition: 0, offset: BigInt(i) }) as ReceivedMessage,
  );
  const find = vi.fn();
  const audit = { pool: hasty, snapshot: hasty, find, published: new Map(), recent: new Map(), headIsGone: () => true };
  const of = (name: TopicName) => received.filter(({ topic }) => topic === name);
  const client = await pool.connect();
  try {
    await client.query('begin');
    await client.query('lock table holds');
    await checkOperations('transfers', of('transfers'), audit);
    const checked = checkOperations('transactions', of('transactions'), audit);
    checked.catch(() => undefined);
    await sleep(2_000);
    await client.query('rollback');
    await checked;
  } finally {
    client.release(true);
    await hasty.end();
  }
  expect(find.mock.calls).toEqual([]);
});

describe('under load', () => {
  it('there are no findings while postings continue and the relay publishes', async () => {
    const prefix = await newTopics(4);
    await publish(published(prefix));
    const relay = new Relay({
      pool,
      publisher,
      schema: ledgerSchema,
      topicName: (name) => topicName(prefix, name as TopicName),
      source: source.ledger,
      logger: silent,
    });
    relay.start();
    const later = new Date(Date.now() + 3_600_000).toISOString();
    let isOver = false;
    const load = (async () => {
      let n = 0;
      for (; !isOver || n < 20; n++)
        await book([
          cash('Deposit', a, '2'),
          transfer(a, b, '1'),
          cash('Withdrawal', b, '90000'),
          placing(a, '0.5', { n: 5_000_000 + n, expires_at: later, context: { time: new Date().toISOString() } }),
          release(5_000_000 + n - 1),
        ]).then(() => relay.wake());
      return n;
    })();
    load.catch(() => undefined);
    try {
      for (let i = 0; i < 3; i++) expect(await verifyEvents(pool, kafka, prefix, silent)).toEqual([]);
    } finally {
      isOver = true;
      await load;
      await relay.stop();
    }
    expect(await load).toBeGreaterThanOrEqual(20);
    expect(await verifyEvents(pool, kafka, prefix, silent)).toEqual([]);
  });
});
