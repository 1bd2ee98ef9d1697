import { type ChildProcessByStdio, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type TopicName, topicName } from '#libs/contracts/topics.ts';
import { ensureTopics } from '#libs/kafka/topics.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import type { BankEntry } from '../../clients/consumer/bank-reads.ts';
import {
  type ClosedDay,
  type ReconciledStore,
  type Reconciliation,
  reconcile,
} from '../../clients/consumer/reconcile.ts';
import { createWarehouse, insertEntry, warehouseStore } from '../../clients/consumer/test/warehouse.ts';
import { topicSpec, topicsConfig } from '../../deploy/create-topics.ts';
import { freePort } from '../../tools/local/ports.ts';
import { newKey, type RestAccount } from '../support/client.ts';
import { again, createTestKafka, publish, readTopics } from '../support/kafka.ts';
import { eventually, useBank } from '../support/world.ts';

/**
 * Reconciles stores of consumers in Postgres, and what is in topics, with days that a bank has closed, after faults were
 * planted in the stores and topics.
 */
const world = useBank();
const { api } = world;
const dayAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
const [date, dayBefore] = [dayAgo(3), dayAgo(4)];
const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'reconciliation-'));
let database: TestDatabase;
let pool: Pool;
let accounts: RestAccount[];
let warehouse: ChildProcessByStdio<null, Readable, null> | undefined;
/** What the warehouse has printed of each closed day, by date. */
const days = new Map<string, { day: ClosedDay; positions: [number, number][]; result: Reconciliation }>();
/** The outputs that docs/reconciliation.md shows, of a file and of the script. */
const documented = [
  ...readFileSync(join(root, 'docs/reconciliation.md'), 'utf8').matchAll(/```text\n([^]*?)\n```/g),
].map(([, text = '']) => text);
const access = () => ({ baseUrl: api.baseUrl, apiKey: world.bank.api_key });
const id = (i: number) => accounts[i]?.account_id ?? '';
const store = (changes?: Partial<ReconciledStore>) => warehouseStore(pool, changes);

const closedDay = (on = date): ClosedDay => days.get(on)?.day ?? expect.fail(`${on} was not received`);
const plant = (text: string, values: unknown[] = []) => pool.query(text, values);
/** Returns the differences of a result by account, each as its kinds and sequences. */
const found = (result: Reconciliation) =>
  result.state === 'behind'
    ? result
    : result.differences.map(({ account_id, entries }) => [
        account_id,
        ...entries.map(({ kind, sequence }) => `${kind} ${sequence}`),
      ]);

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.url, application_name: 'test', schema: 'public', max: 4 }, silent);
  await pool.query(createWarehouse);
  const { client_id } = await api.client();
  accounts = await Promise.all([
    ...[1, 2, 3].map(() => api.account(client_id)),
    api.account(client_id, { currency: 'JPY' }),
    api.account(client_id, { account_type: 'Loan', initial_deposit: 90 }),
    api.account(client_id, { currency: 'JPY' }),
  ]);
  const on = (effective_date: string) => ({ effective_date });
  await api.transact(id(0), 'Deposit', 100, on(dayBefore));
  // More than a page of entries.
  const transaction = { account_id: id(5), transaction_type: 'Deposit', amount: 1, ...on(dayBefore) };
  const batch = await api.once(newKey(), '/batches', { mode: 'independent', items: Array(501).fill({ transaction }) });
  expect(batch.status).toBe(200);
  for (const amount of [50.25, 7.5, 3]) await api.transact(id(0), 'Deposit', amount, on(date));
  await api.transfer(id(0), id(1), 12.34, on(date));
  await api.transact(id(1), 'Withdrawal', 2.34, on(date));
  await api.transact(id(2), 'Deposit', 9, on(date));
  await api.transact(id(3), 'Deposit', 700, on(date));
  // What is posted later for the day before, and today, is not of the day.
  await api.transact(id(0), 'Deposit', 1, on(dayBefore));
  await api.transact(id(0), 'Deposit', 2);
  const { transaction_id } = await api.transact(id(2), 'Deposit', 4, on(date));
  await api.post(`/transactions/${transaction_id}/reversal`, { reason: 'test', ...on(date) });
  await api.transfer(id(0), id(4), 5);
  for (const closed of [dayBefore, date]) {
    const answer = await api.post('/admin/day-closings', { date: closed });
    expect(answer.status, answer.text).toBe(201);
  }
  const { kafka_brokers, topic_prefix, api_key } = world.bank;
  const parameters = [database.url, kafka_brokers, topic_prefix, api.baseUrl, api_key];
  warehouse = spawn(
    process.execPath,
    ['--disable-warning=TimeoutNegativeWarning', 'clients/consumer/test/warehouse.fixture.ts', ...parameters],
    {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exited = once(warehouse, 'exit');
  createInterface({ input: warehouse.stdout }).on('line', (line) => {
    const received = JSON.parse(line) as { day: ClosedDay; positions: [number, number][]; result: Reconciliation };
    days.set(received.day.date, received);
  });
  await eventually(() => days.size === 2, 60_000);
  warehouse.kill('SIGTERM');
  expect((await exited)[0]).toBe(0);
  await pool.query('create table consumed as select * from warehouse');
}, 240_000);
afterAll(async () => {
  warehouse?.kill('SIGKILL');
  rmSync(folder, { recursive: true });
  await pool?.end();
  await database?.drop();
});

describe('reconcile()', () => {
  beforeEach(async () => {
    await pool.query('truncate warehouse');
    await pool.query('insert into warehouse select * from consumed');
  });

  it('says that a store is in order that has what its consumer has received, on each day', async () => {
    const { positions: consumed = [], result } = days.get(date) ?? {};
    expect(result).toEqual({ state: 'in_order', date, accounts: 4, differing: 0, differences: [], fetched: 0 });
    const positions = async () => new Map(consumed.map(([partition, offset]) => [partition, BigInt(offset)]));
    expect(await reconcile(closedDay(dayBefore), store({ positions }), access())).toMatchObject({
      state: 'in_order',
      accounts: 2,
    });
  });

  it('names what is lost, doubled, extra, of another amount or day, and no other account', async () => {
    const [lost] = (await plant('delete from warehouse where account_id = $1 and sequence = 3 returning *', [id(0)]))
      .rows;
    await plant('insert into warehouse select * from warehouse where account_id = $1 and sequence = 2', [id(0)]);
    await plant('update warehouse set amount = amount + 0.01 where account_id = $1 and sequence = 2', [id(1)]);
    await plant('update warehouse set effective_date = $1 where account_id = $2 and sequence = 1', [dayAgo(2), id(2)]);
    await plant(`insert into warehouse values ($1, 77, 'debit', 5, $2)`, [id(2), date]);
    await plant('delete from warehouse where account_id = $1', [id(3)]);
    await plant(`insert into warehouse values ('acc_ffffffffffffffffffffffffffffffff', 1, 'credit', 5, $1)`, [date]);
    const result = await reconcile(closedDay(), store(), access());
    expect(result).toMatchObject({ state: 'different', accounts: 5, differing: 5, fetched: 0 });
    expect(found(result)).toEqual(
      [
        [id(0), 'doubled 2', 'missing 3'],
        [id(1), 'wrong_amount 2'],
        [id(2), 'wrong_day 1', 'extra 77'],
        [id(3), 'missing 1'],
        [`acc_${'f'.repeat(32)}`, 'extra 1'],
      ].sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
    );
    if (result.state !== 'different') return;
    const of = (i: number) => result.differences.find(({ account_id }) => account_id === id(i));
    expect(lost?.['amount']).toBe('7.50');
    expect(of(0)).toMatchObject({
      account_number: accounts[0]?.account_number,
      currency: 'USD',
      bank: { sum: '48.41', count: 4, first_sequence: 2, last_sequence: 5 },
      store: { count: 4 },
      entries: [{}, { bank: { amount: '7.50', effective_date: date } }],
    });
    expect(of(1)?.entries).toMatchObject([{ bank: { amount: '-2.34' }, store: { amount: '-2.35' } }]);
    expect(of(3)).toEqual({
      account_id: id(3),
      account_number: accounts[3]?.account_number,
      currency: 'JPY',
      bank: { sum: '700', count: 1, first_sequence: 1, last_sequence: 1 },
      entries: [{ sequence: 1, kind: 'missing', bank: { amount: '700', effective_date: date } }],
    });
    // The limit bounds what is examined, and not what is counted.
    const one = await reconcile(closedDay(), store(), { ...access(), limit: 1 });
    expect(one).toMatchObject({ differing: 5, differences: [{ entries: [{}] }] });
  });

  it('fetches what is missing, after which the store is in order', async () => {
    await plant('delete from warehouse where account_id = any($1) and effective_date = $2', [[id(0), id(3)], date]);
    const put: BankEntry[] = [];
    const mending = store({ put: async (entry) => void (put.push(entry), await insertEntry(pool, entry)) });
    const result = await reconcile(closedDay(), mending, access());
    expect(result).toMatchObject({ state: 'different', differing: 2, fetched: 5 });
    expect(put.filter(({ account_id }) => account_id === id(0))).toMatchObject([
      { sequence: 2, amount: '50.25', balance_after: '150.25', transaction_type: 'Deposit', currency: 'USD' },
      { sequence: 3, amount: '7.50', account_number: accounts[0]?.account_number },
      { sequence: 4, amount: '3.00' },
      { sequence: 5, amount: '12.34', direction: 'debit', counterparty_account_id: id(1), balance_after: '148.41' },
    ]);
    expect(await reconcile(closedDay(), mending, access())).toMatchObject({ state: 'in_order', fetched: 0 });
    await plant('delete from warehouse where account_id = $1 and sequence > 1', [id(5)]);
    const paged = await reconcile(closedDay(dayBefore), mending, { ...access(), limit: 3 });
    expect(paged).toMatchObject({ differing: 1, fetched: 500 });
    expect(found(paged)).toEqual([[id(5), 'missing 2', 'missing 3', 'missing 4']]);
    expect(await reconcile(closedDay(dayBefore), mending, access())).toMatchObject({ state: 'in_order' });
  });

  it('names the partitions that are not consumed far enough, and compares nothing', async () => {
    await plant('truncate warehouse');
    const { last_sequences = {} } = closedDay();
    const used = Object.entries(last_sequences).filter(([, last]) => last >= 0);
    const [[name, last] = ['', 0]] = used;
    const consumed = new Map(used.map(([partition, offset]) => [Number(partition), BigInt(offset) + 1n]));
    consumed.set(Number(name), BigInt(last));
    const behind = await reconcile(closedDay(), store({ positions: async () => consumed }), access());
    expect(behind).toEqual({ state: 'behind', date, behind: [{ partition: Number(name), position: last, last }] });
    const nothing = await reconcile(closedDay(), store({ positions: async () => new Map() }), access());
    expect(nothing.state === 'behind' && nothing.behind.length).toBe(used.length);
  });

  it('refuses lines, hashes, and a day before that are not as closed, and puts nothing', async () => {
    await plant('delete from warehouse where account_id = $1', [id(0)]);
    const put = async () => expect.fail('nothing may be put');
    /** A front of the bank that changes the lines of the day. */
    const altered = async (change: (text: string) => string, use: (baseUrl: string) => Promise<void>) => {
      const server = createServer(async ({ url = '', headers }, response) => {
        const { status, text } = await api.get(url, { accept: String(headers.accept) });
        response.writeHead(status).end(url.endsWith('/accounts') ? change(text) : text);
      }).listen(0, '127.0.0.1');
      await once(server, 'listening');
      await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).finally(() => server.close());
    };
    const changes: ((text: string) => string)[] = [
      (text) => text.replace('"sum":"9.00"', '"sum":"9.01"'),
      (text) => text.split('\n').slice(1).join('\n'),
      (text) => text.trimEnd(),
      (text) => `${text}${text.split('\n')[0]}\n`,
      (text) => text.replace('"count":', '"count":"x'),
      () => '',
    ];
    for (const change of changes)
      await altered(change, async (baseUrl) => {
        const tampered = reconcile(closedDay(), store({ put }), { ...access(), baseUrl });
        await expect(tampered, String(change)).rejects.toMatchObject({
          name: 'ReconciliationError',
          code: 'not_as_closed',
        });
      });
    const other = 'f'.repeat(64);
    for (const [day, kept, message] of [
      [{ ...closedDay(), hash: other }, undefined, `the hash of ${date} is ${other}`],
      [{ ...closedDay(), accounts_sha256: other }, undefined, `the hash of ${date} is`],
      [closedDay(), other, `the hash of ${dayBefore} is ${other}`],
    ] as const) {
      const changed = store({ put, previousHash: async () => kept });
      await expect(reconcile(day, changed, access())).rejects.toThrow(message);
    }
    await expect(
      reconcile(closedDay(), store({ previousHash: async () => closedDay(dayBefore).hash }), access()),
    ).resolves.toMatchObject({ differing: 1 });
  });

  it('says what the bank refuses, that it does not answer, and which rule the store breaks', async () => {
    const without = await api.key({ scopes: ['transactions:read'] });
    const error = (reconciled: Promise<unknown>) => reconciled.catch((reason: unknown) => reason);
    expect(await error(reconcile(closedDay(), store(), { ...access(), apiKey: without.api_key }))).toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/^GET \/admin\/day-closings\/\S+: 403 insufficient_scope: .*books:read/),
    });
    expect(
      await error(reconcile(closedDay(), store(), { ...access(), baseUrl: `http://127.0.0.1:${await freePort()}` })),
    ).toMatchObject({
      code: 'no_answer',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    expect(
      await error(reconcile(closedDay(), store(), { ...access(), baseUrl: `${api.baseUrl}/elsewhere` })),
    ).toMatchObject({
      code: 'refused',
      message: expect.stringMatching(/: 404 route_not_found/),
    });
    const notClosed = { ...closedDay(), date: dayAgo(2) };
    expect(await error(reconcile(notClosed, store(), access()))).toMatchObject({ code: 'not_as_closed' });
    const good = { account_id: id(0), sum: '1.00', count: 1 };
    for (const [rows, message] of [
      [[good, good], /each account once, in the order of account_id/],
      [
        [
          { ...good, account_id: 'acc_f' },
          { ...good, account_id: 'acc_e' },
        ],
        /acc_e came after acc_f/,
      ],
      [[{ ...good, sum: 1 as unknown as string }], /the sum of acc_\w+ must be a decimal/],
      [[{ ...good, sum: '1,00' }], /the sum of acc_\w+ must be a decimal/],
      [[{ ...good, count: '1.5' }], /count of acc_\w+ must be a whole number, not 1.5/],
      [[{ ...good, last_sequence: null as never }], /last_sequence of acc_\w+ must be a whole number, not null/],
    ] as const)
      expect(await error(reconcile(closedDay(), { accounts: () => rows }, access()))).toMatchObject({
        code: 'invalid_store',
        message: expect.stringMatching(message),
      });
  });
});

function run(script: string, parameters: string[], env: Record<string, string> = {}) {
  const { bank } = world;
  return new Promise<{ code: number; out: string; err: string }>((resolve) => {
    execFile(
      process.execPath,
      ['--disable-warning=TimeoutNegativeWarning', join(root, script), ...parameters],
      {
        env: {
          ...process.env,
          BANK_URL: api.baseUrl,
          BANK_API_KEY: bank.api_key,
          KAFKA_BROKERS: bank.kafka_brokers,
          TOPIC_PREFIX: bank.topic_prefix,
          ...env,
        },
        timeout: 60_000,
      },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
    );
  });
}

/** Copies the topics, but for the events that `keep` refuses, and changes the values of others. Returns their prefix. */
async function copyTopics(
  name: string,
  change: (topic: string, value: string) => string | undefined = (_, value) => value,
  settings: Record<string, string> = {},
): Promise<string> {
  const topic_prefix = `${world.bank.topic_prefix}${name}.`;
  const names: TopicName[] = ['days', 'transactions'];
  await ensureTopics(
    createTestKafka(world.bank),
    names.map((one) => {
      const config = topicsConfig.parse({ KAFKA_BROKERS: world.bank.kafka_brokers, TOPIC_PREFIX: topic_prefix });
      const spec = topicSpec(one, config, 1);
      return { ...spec, config: { ...spec.config, ...settings } };
    }),
  );
  for (const [topic, messages] of await readTopics(world.bank, names)) {
    const copies = messages.flatMap((message) => {
      const value = change(topic, String(message.value));
      return value === undefined
        ? []
        : [{ ...again(message), topic: topicName(topic_prefix, topic), value: Buffer.from(value) }];
    });
    await publish({ ...world.bank, topic_prefix }, copies as Parameters<typeof publish>[1], { asTheyAre: true });
  }
  return topic_prefix;
}
const isEvent = (value: string, account_id: string, sequence: number) =>
  value.includes(`"sequence":${sequence},"balance_after"`) &&
  value.startsWith(`{"transaction":{`) &&
  value.split('"operation_id"')[0]?.includes(account_id) === true;

/** Copies the topics, and deletes all of `transactions`, as its retention does. Returns their prefix. */
async function agedTopics(name: string): Promise<string> {
  const prefix = await copyTopics(name);
  const topic = topicName(prefix, 'transactions');
  await createTestKafka(world.bank).withAdmin(async (admin) => {
    const partitions = (await admin.fetchTopicOffsets(topic))
      .filter(({ high }) => high !== '0')
      .map(({ partition, high }) => ({ partition, offset: high }));
    expect(partitions.length).toBeGreaterThan(0);
    await admin.deleteTopicRecords({ topic, partitions });
  });
  return prefix;
}

describe('bank reconcile', () => {
  const bank = (parameters: string, env?: Record<string, string>) =>
    run('cli/bank.ts', ['reconcile', ...parameters.split(' ')], env);

  it('compares a closed day with the topic transactions, with Teller and Vault', async () => {
    expect(await bank(`--date ${date}`)).toEqual({ code: 0, out: `${date}: in order, 8 accounts\n`, err: '' });
    const { out } = await bank(`--date ${dayBefore} --json`);
    expect(JSON.parse(out)).toEqual({
      state: 'in_order',
      date: dayBefore,
      accounts: 6,
      differing: 0,
      differences: [],
      fetched: 0,
    });
  });

  it('names what a topic has lost', async () => {
    const prefix = await copyTopics('lost', (_, value) => (isEvent(value, id(0), 3) ? undefined : value));
    const { code, out, err } = await bank(`--date ${date}`, { TOPIC_PREFIX: prefix });
    // With the event of a cash operation, the entries of Teller and Vault are lost.
    expect([code, err.trim().split('\n').at(-1)]).toEqual([1, `${date}: 3 of 8 accounts differ`]);
    expect(out).toContain(
      `${id(0)}  ${accounts[0]?.account_number}  bank: sum 48.41, entries 4; here: sum 40.91, entries 3\n  3  missing: bank 7.50 on ${date}\n`,
    );
    expect(out).toMatch(/^acc_\w+ {2}TLR-USD\/\d+ {2}bank: sum 0\.00, entries \d+; here: sum 0\.00, entries \d+$/m);
  });

  it('says that a topic may no longer have a day', async () => {
    const { code, out, err } = await bank(`--date ${date}`, { TOPIC_PREFIX: await agedTopics('aged') });
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(
      /8 of 8 accounts differ, and the topic transactions may no longer have all of that day: .* partitions \d/,
    );
  });

  it('compares a closed day with a file of another system', async () => {
    const file = join(folder, 'erp.csv');
    const lines = [
      'branch,account_id,sum,count',
      ...['48.41,4', '10.00,2', '9,3', '700,1'].map((line, i) => `Nairobi,${id(i)},${line}`),
    ];
    const written = (change: (text: string) => string) => {
      writeFileSync(file, change(`${lines.join('\n')}\n`));
      return bank(`--date ${date} --file ${file}`, { KAFKA_BROKERS: '' });
    };
    expect(await written((text) => text)).toEqual({ code: 0, out: `${date}: in order, 4 accounts\n`, err: '' });
    const differing = await written((text) => text.replace('10.00,2', '10.01,2').replace(/^.*700,1\n/m, ''));
    expect(differing).toMatchObject({ code: 1, err: `${date}: 2 of 4 accounts differ\n` });
    expect(differing.out).toContain(
      `${id(1)}  ${accounts[1]?.account_number}  bank: sum 10.00, entries 2; here: sum 10.01, entries 2\n`,
    );
    expect(differing.out).toContain(
      `${id(3)}  ${accounts[3]?.account_number}  bank: sum 700, entries 1; here: nothing\n  1  missing: bank 700 on ${date}\n`,
    );
    const asShown = (text: string) =>
      text
        .replace(/acc_[0-9a-f]{32} {2}[A-Z]{3}-\d+/g, 'an account')
        .replaceAll(date, '2026-01-31')
        .trim()
        .split('\n')
        .sort();
    expect(asShown(differing.out + differing.err)).toEqual(asShown(documented[0] ?? ''));
    for (const [change, message] of [
      [(text: string) => text.replace('sum', 'total'), /erp.csv: line 1: column sum is missing/],
      [(text: string) => text.replace('700,1', '700,one'), /erp.csv: line 5: count must be a whole number/],
      [(text: string) => text.replace('48.41', '"48,41"'), /erp.csv: line 2: sum must be a decimal such as -12.50/],
      [(text: string) => text + text.split('\n')[1], /acc_\w+ is repeated/],
      [() => '', /is empty/],
    ] as const)
      expect(await written(change)).toMatchObject({ code: 2, out: '', err: expect.stringMatching(message) });
  });

  it('says what is wrong with the day, the settings, and the rights', async () => {
    const without = await api.key({ scopes: ['transactions:read'] });
    for (const [parameters, env, code, message] of [
      [`--date ${dayAgo(2)}`, {}, 1, /the topic days has no closing of/],
      [`--date ${dayAgo(2)} --file x.csv`, {}, 2, /x.csv: ENOENT/],
      ['--date 2026-02-30', {}, 2, /must be a day such as 2026-01-31/],
      ['--json', {}, 2, /required option '--date <date>' not specified/],
      [`--date ${date}`, { KAFKA_BROKERS: '' }, 2, /KAFKA_BROKERS is not set/],
      [`--date ${date}`, { BANK_API_KEY: without.api_key }, 1, /403 insufficient_scope/],
    ] as const)
      expect(await bank(parameters, env), parameters).toMatchObject({ code, err: expect.stringMatching(message) });
  });
});

describe('examples/verify-day.ts', () => {
  const verify = (env?: Record<string, string>) =>
    run('examples/verify-day.ts', [date], {
      GROUP_PREFIX: world.bank.topic_prefix,
      BANK_API_KEY: '',
      BANK_URL: '',
      ...env,
    });

  it('rebuilds totals, lines, and hashes of a closed day from topics alone', async () => {
    const { code, out, err } = await verify();
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const lines = out.trim().split('\n');
    const yen = lines.filter((line) => line.includes(' JPY '));
    expect(yen).toEqual([
      `${date} JPY liability: debits 0, credits 700, entries 1, from 501 to 1201: as closed`,
      `${date} JPY asset: debits 1400, credits 700, entries 3, from 501 to 1201: as closed`,
    ]);
    expect(out).toContain(`SHA-256 ${closedDay().accounts_sha256}: as closed`);
    const asShown = (line: string) =>
      line
        .replaceAll(date, '2026-01-31')
        .replaceAll(dayBefore, '2026-01-30')
        .replace(/[0-9a-f]{64}/, 'hash');
    expect(lines.filter((line) => !yen.includes(line)).map(asShown)).toEqual(documented[1]?.split('\n').map(asShown));
    const cash = closedDay().system_accounts?.filter(({ currency }) => currency === 'USD') ?? [];
    expect(cash.reduce((sum, line) => sum + Number(line.sum), 0)).toBeCloseTo(67.41);
  });

  it.each<[string, string[], (topic: string, value: string) => string | undefined]>([
    [
      'an event is lost',
      ['USD liability', 'USD asset', 'SHA-256'],
      (_, value) => (isEvent(value, id(0), 3) ? undefined : value),
    ],
    [
      'an amount is another',
      ['USD liability', 'USD asset', 'SHA-256'],
      (_, value) => (isEvent(value, id(2), 1) ? value.replaceAll('"9.00"', '"8.00"') : value),
    ],
    ['a total is another', ['USD liability'], (_, value) => value.replaceAll('"credits":"86.09"', '"credits":"86.08"')],
    [
      'the lines have another hash',
      ['SHA-256', 'chain'],
      (topic, value) => (topic === 'days' ? value.replace(closedDay().accounts_sha256, '0'.repeat(64)) : value),
    ],
    [
      'the day before has another hash',
      ['chain'],
      (topic, value) =>
        topic === 'days' && value.includes(`"date":"${dayBefore}"`)
          ? value.replace(closedDay(dayBefore).hash, '1'.repeat(64))
          : value,
    ],
  ])('finds that %s', async (name, wrong, change) => {
    const prefix = await copyTopics(name.replaceAll(' ', '-'), change);
    const { code, out } = await verify({ TOPIC_PREFIX: prefix });
    expect(code).toBe(1);
    const not = out.split('\n').filter((line) => line.endsWith('NOT as closed'));
    expect(not, out).toEqual(wrong.map((part) => expect.stringContaining(part)));
  });

  it('takes events that come again for one', async () => {
    await copyTopics('again');
    const { code, out } = await verify({ TOPIC_PREFIX: await copyTopics('again') });
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining('2 days in a chain') });
  });

  it('does not call a day other than closed that a topic may no longer have', async () => {
    const { code, out, err } = await verify({ TOPIC_PREFIX: await agedTopics('aged-for-all') });
    expect(code).toBe(1);
    expect(out).not.toContain('NOT');
    expect(out).toMatch(/SHA-256 \w+: unknown\n.* in a chain, .*: as closed\n$/);
    expect(err).toMatch(/^the topic transactions may no longer have all of \S+: .* partitions \d/);
  });

  it('ends when it cannot read a topic', async () => {
    const prefix = await copyTopics('compressed', undefined, { 'compression.type': 'zstd' });
    expect(await verify({ TOPIC_PREFIX: prefix })).toEqual({
      code: 3,
      out: '',
      err: expect.stringMatching(/^the topic \S+ cannot be read: .*ZSTD/i),
    });
  });
});
