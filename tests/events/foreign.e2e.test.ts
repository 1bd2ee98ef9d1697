import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EventData, type EventType, events } from '#libs/contracts/events.ts';
import { type TopicName, topicName } from '#libs/contracts/topics.ts';
import { topicRanges } from '#libs/kafka/topics.ts';
import { startReceiver } from '#services/webhooks/test/receiver.ts';
import { runToEnd } from '../../tools/local/child.ts';
import { ensureJars, javaEnvironment } from '../../tools/local/kafka-jars.ts';
import { newKey, type RestAccount, type RestTransaction } from '../support/client.ts';
import { caughtUp, createTestKafka } from '../support/kafka.ts';
import { have } from '../support/programs.ts';
import { eventually, together, useBank } from '../support/world.ts';

/**
 * What clients that are not the bank's own receive while both ledgers are killed: the topics through librdkafka and through
 * Kafka's Java client, and webhooks, which the reference libraries of Standard Webhooks verify in three languages.
 */
const folder = join(import.meta.dirname, 'foreign');
const topicNames: TopicName[] = ['transactions', 'transfers', 'holds', 'batches', 'balances', 'accounts', 'clients'];

interface Event {
  /** Topic, partition, and offset. */
  place: string;
  key: string;
  headers: Record<string, string>;
  value: string;
}

describe.runIf(have('Java', 'Maven', 'Python', 'Go'))('a foreign client', () => {
  const world = useBank({ ledgers: 2, webhooks: 1 });
  const { api } = world;
  const packages = mkdtempSync(join(tmpdir(), 'foreign-'));
  const python = { ...process.env, PYTHONPATH: packages };
  const readers: ReturnType<typeof startReader>[] = [];
  let receiver: Awaited<ReturnType<typeof startReceiver>>;
  let webhook: { webhook_id: string; secret: string };
  let accounts: RestAccount[];
  const id = (i: number) => accounts[i % accounts.length]?.account_id ?? '';

  /** Starts a program that prints what it reads, each record as a line. */
  function startReader(name: string, command: string, args: string[], env: NodeJS.ProcessEnv) {
    const { kafka_brokers, topic_prefix } = world.bank;
    const child = spawn(command, args, {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...env,
        KAFKA_BROKERS: kafka_brokers,
        TOPICS: topicNames.map((topic) => topicName(topic_prefix, topic)).join(),
        GROUP_ID: `${topic_prefix}${name}`,
      },
    });
    const read = new Map<string, Event>();
    let errors = '';
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk.toString();
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      const event = JSON.parse(line) as Event;
      read.set(event.place, event);
    });
    return {
      /** Waits until it has read as many records as the topics have. */
      async all(count: bigint): Promise<Event[]> {
        await eventually(() => BigInt(read.size) >= count || child.exitCode !== null, 60_000);
        expect([BigInt(read.size), errors]).toEqual([count, expect.anything()]);
        return [...read.values()];
      },
      async stop() {
        if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
      },
    };
  }

  async function install(): Promise<void> {
    const args = ['-m', 'pip', 'install', '--quiet', '--target', packages, '-r', 'requirements.txt'];
    const { code, stderr } = await runToEnd('python3', args, { cwd: folder, timeoutMs: 240_000 });
    if (code !== 0) throw new Error(stderr);
  }

  /** Every kind of movement, some of them refused. */
  async function move(i: number): Promise<void> {
    if (i % 3 === 0)
      await api.once(newKey(), '/transfers', { from_account_id: id(i), to_account_id: id(i + 1), amount: 0.25 });
    else if (i % 3 === 1)
      await api.once(newKey(), '/transactions', {
        account_id: id(i),
        transaction_type: i % 2 === 0 ? 'Deposit' : 'Withdrawal',
        amount: i % 5 === 0 ? 100_000 : 1.1,
        description: 'Zażółć 手数料',
      });
    else await api.once(newKey(), `/accounts/${id(i)}/holds`, { amount: 0.5 });
  }

  const rotate = async (overlap_seconds: number) =>
    (await api.post(`/webhooks/${webhook.webhook_id}/secret-rotation`, { overlap_seconds })).data<typeof webhook>()
      .secret;

  beforeAll(async () => {
    const [jars] = await Promise.all([ensureJars(), install()]);
    receiver = await startReceiver();
    webhook = (await api.post('/webhooks', { url: receiver.url, event_types: ['*'] })).data();
    const { client_id } = await api.client();
    accounts = await together(5, () => api.account(client_id, { initial_deposit: 50 }));
    readers.push(
      startReader('librdkafka', 'python3', ['read.py'], python),
      startReader('java', 'java', ['-cp', join(jars, '*'), 'Read.java'], javaEnvironment()),
    );
    const load = together(400, move, 10);
    for (const name of ['ledger', 'ledger-2']) {
      const ledger = world.bank.process(name);
      ledger.kill('SIGKILL');
      await ledger.restart();
    }
    await load;
    // What is answered with a 202 just after a ledger was killed is asked for again.
    const done = (path: string, body: object, status: number, key = newKey()) =>
      eventually(async () => {
        const answer = await api.once(key, path, body);
        return answer.status === status && answer;
      });
    const items = [0, 1].map((i) => ({ transfer: { from_account_id: id(i), to_account_id: id(i + 1), amount: 1 } }));
    await done('/batches', { mode: 'independent', items }, 200);
    const deposit = await done('/transactions', { account_id: id(0), transaction_type: 'Deposit', amount: 3 }, 201);
    const { transaction_id } = deposit.body as RestTransaction;
    await done(`/transactions/${transaction_id}/reversal`, { reason: 'x' }, 201);
    await Promise.all([caughtUp(world.bank, 'ledger'), caughtUp(world.bank, 'accounts')]);
    await eventually(world.isPublished);
  }, 300_000);
  afterAll(async () => {
    await Promise.all([...readers.map(({ stop }) => stop()), receiver?.stop()]);
    rmSync(packages, { recursive: true });
  });

  /** Returns each event once, by key and then in the order of arrival. What comes again has the same bytes. */
  async function readBy(reader: number): Promise<Event[]> {
    const kafka = createTestKafka(world.bank);
    const topics = topicNames.map((name) => topicRanges(kafka, topicName(world.bank.topic_prefix, name)));
    const count = (await Promise.all(topics)).flat().reduce((sum, { low, high }) => sum + high - low, 0n);
    const byId = new Map<string, Event>();
    for (const event of (await readers[reader]?.all(count)) ?? []) {
      const ceId = event.headers['ce_id'] ?? '';
      const before = byId.get(ceId) ?? event;
      expect({ ...event, place: before.place }).toEqual(before);
      byId.set(ceId, before);
    }
    return [...byId.values()].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  }

  /** Returns the lines of a query of the books. */
  const posted = async (line: string, from: string) =>
    (await world.sql<{ line: string }>(`select concat_ws(' ', ${line}) as line from ${from}`)).map((row) => row.line);
  const ofCustomers = 'join v_accounts a using (account_id) where a.client_id is not null';

  it.each([
    [0, 'librdkafka'],
    [1, 'kafka-clients'],
  ])('%s: %s reads what the books have: nothing lost, doubled, or out of order', async (reader) => {
    const read = await readBy(reader);
    const told = <T extends EventType>(type: T, line: (data: EventData<T>) => unknown[]) =>
      read
        .filter(({ headers }) => headers['ce_type'] === type)
        .map(({ value }) => line(JSON.parse(value) as EventData<T>).join(' '));
    const minor = (amount: string | undefined) => BigInt(amount?.replace('.', '') ?? 'none');

    expect(
      told('corebanking.transaction.completed.v1', ({ transaction, sequence, balance_after }) => [
        transaction.account_id,
        sequence,
        transaction.transaction_id,
        minor(balance_after),
      ]),
    ).toEqual(
      await posted(
        'account_id, sequence, transaction_id, balance_after_minor',
        `v_entries ${ofCustomers} order by account_id, sequence`,
      ),
    );
    // Both sides of a transfer tell all its entries.
    const entries = read
      .filter(({ headers }) => headers['ce_type'] === 'corebanking.transaction.completed.v1')
      .flatMap(({ value }) => (JSON.parse(value) as EventData<'corebanking.transaction.completed.v1'>).entries);
    const amounts = new Map(entries.map((entry) => [`${entry.operation_id} ${entry.entry_id}`, entry]));
    expect([...amounts.keys()].sort()).toEqual(
      await posted('operation_id, entry_id', 'v_entries order by operation_id, entry_id collate "C"'),
    );
    const sums = new Map<string, bigint>();
    for (const { account_id, direction, amount } of amounts.values())
      sums.set(account_id, (sums.get(account_id) ?? 0n) + (direction === 'credit' ? minor(amount) : -minor(amount)));
    expect([...sums].map((sum) => sum.join(' ')).sort()).toEqual(
      await posted('account_id, balance_minor', 'v_accounts order by account_id'),
    );
    expect(
      told('corebanking.transaction.failed.v1', ({ transaction }) => [
        transaction.account_id,
        transaction.transaction_id,
        transaction.failure_code,
      ]).sort(),
    ).toEqual(
      await posted(
        'account_id, transaction_id, failure_code',
        "v_transactions where status = 'Failed' order by account_id, transaction_id",
      ),
    );
    expect(
      told('corebanking.transfer.completed.v1', ({ transfer }) => [transfer.transfer_id, minor(transfer.amount)]),
    ).toEqual(
      await posted(
        'transfer_id, amount_minor',
        "(select distinct transfer_id, amount_minor from v_transactions where transfer_id is not null and status = 'Completed') t order by transfer_id",
      ),
    );
    expect(told('corebanking.hold.placed.v1', ({ hold, hold_version }) => [hold.account_id, hold_version])).toEqual(
      await posted(
        'account_id, version',
        '(select account_id, row_number() over (partition by account_id) as version from v_holds) h order by account_id, version',
      ),
    );
    expect(told('corebanking.hold.placed.v1', ({ hold }) => [hold.hold_id, minor(hold.amount)]).sort()).toEqual(
      await posted('hold_id, amount_minor', 'v_holds order by hold_id'),
    );
    expect(told('corebanking.batch.completed.v1', ({ batch }) => [batch.batch_id])).toEqual(
      await posted('batch_id', '(select distinct batch_id from v_transactions where batch_id is not null) b'),
    );
    expect(told('corebanking.account.opened.v1', ({ account }) => [account.account_id])).toEqual(
      await posted('account_id', 'v_accounts where client_id is not null order by account_id'),
    );
    const states = new Map(
      told('corebanking.balance.v1', ({ account_id, balance, available_balance, sequence }) => [
        account_id,
        minor(balance),
        minor(available_balance),
        sequence,
      ]).map((line) => [line.split(' ')[0], line]),
    );
    expect([...states.values()]).toEqual(
      await posted(
        'account_id, balance_minor, balance_minor - held_minor, last_sequence',
        'v_accounts where client_id is not null order by account_id',
      ),
    );
  });

  it('a receiver of webhooks gets each event that is on the topics once by its id, in the same order per account', async () => {
    const read = (await readBy(0)).filter(({ headers }) => headers['ce_type'] !== 'corebanking.balance.v1');
    const received = () => new Map(receiver.received.map(({ event }) => [event.id, event]));
    await eventually(() => received().size >= read.length, 60_000);
    const lines = (all: { id: unknown; type: unknown; subject: unknown }[]) =>
      Map.groupBy(all, ({ type, subject }) => `${events[type as EventType].topic} ${String(subject)}`);
    const ids = (all: Parameters<typeof lines>[0]) =>
      [...lines(all)].map(([line, of]) => `${line}: ${of.map(({ id: ceId }) => ceId).join(' ')}`).sort();
    expect(ids([...received().values()])).toEqual(
      ids(read.map(({ headers: h }) => ({ id: h['ce_id'], type: h['ce_type'], subject: h['ce_subject'] }))),
    );
  });

  it('the libraries of Standard Webhooks for JavaScript, Python, and Go accept its deliveries through a rotation, and nothing changed', async () => {
    const delivery = async () => {
      const { transaction_id } = await api.transact(id(0), 'Deposit', 1, { description: 'Zażółć 手数料' });
      const { body, headers } = await eventually(() =>
        receiver.received.find((one) => one.body.includes(transaction_id)),
      );
      return { body, headers: headers as Record<string, string> };
    };
    const secrets = [webhook.secret];
    const before = await delivery();
    secrets.push(await rotate(3600));
    const during = await delivery();
    secrets.push(await rotate(0));
    const after = await delivery();
    const [first = '', second = '', third = ''] = secrets;
    const changed = (name: string, change: (value: string) => string) => ({
      ...during,
      headers: { ...during.headers, [name]: change(during.headers[name] ?? '') },
    });
    const cases: [what: string, accepted: boolean, secret: string, of: typeof before][] = [
      ['before', true, first, before],
      ['before, by a later secret', false, second, before],
      ['during, by the old secret', true, first, during],
      ['during, by the new secret', true, second, during],
      ['after', true, third, after],
      ['after, by an ended secret', false, second, after],
      ['another body', false, second, { ...during, body: during.body.replace('"1.00"', '"9.00"') }],
      [
        'another id',
        false,
        second,
        changed('webhook-id', (value) => value.replace(/.$/, (last) => (last === '0' ? '1' : '0'))),
      ],
      ['another time', false, second, changed('webhook-timestamp', (value) => String(Number(value) + 1))],
      ['no signature', false, second, changed('webhook-signature', () => '')],
    ];
    const expected = cases.map(([what, accepted]) => `${what}: ${accepted}`);
    const verdicts = (accepted: boolean[]) => cases.map(([what], i) => `${what}: ${accepted[i]}`);
    const given = cases.map(([, , secret, of]) => ({ secret, ...of }));
    const accepts = ({ secret, body, headers }: (typeof given)[0]) => {
      try {
        return Boolean(new Webhook(secret).verify(body, headers));
      } catch {
        return false;
      }
    };
    expect(verdicts(given.map(accepts))).toEqual(expected);
    const goModule = join(folder, '../../../examples/webhooks/go');
    for (const [command, args, options] of [
      ['python3', [join(folder, 'verify.py')], { env: python }],
      ['go', ['run', join(folder, 'verify.go')], { cwd: goModule }],
    ] as const) {
      const input = JSON.stringify(given);
      const { stdout, stderr } = await runToEnd(command, [...args], { ...options, input, timeoutMs: 120_000 });
      expect(verdicts(JSON.parse(stdout || '[]') as boolean[]), `${command}: ${stderr}`).toEqual(expected);
    }
  });
});
