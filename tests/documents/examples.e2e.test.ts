import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import type { RestAccount, RestEntry, RestTransaction } from '../support/client.ts';
import { caughtUp } from '../support/kafka.ts';
import { have } from '../support/programs.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Runs the examples as readers start them, against a busy bank. The statement builder is also killed. */
const run = promisify(execFile);
const world = useBank();
const { api } = world;
const root = join(import.meta.dirname, '..', '..');
const guide = readFileSync(join(root, 'docs/guides/downstream-team.md'), 'utf8');
const started: Example[] = [];
let database: TestDatabase;
let pool: Pool;
let accounts: RestAccount[];

class Example {
  readonly lines: string[] = [];
  readonly #child: ChildProcess;
  #errors = '';

  /** Starts the example in a separate process group, because npm and its shell do not forward signals. */
  constructor(command: string, args: string[], env: Record<string, string> = {}) {
    const { bank } = world;
    this.#child = spawn(command, args, {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...process.env,
        KAFKA_BROKERS: bank.kafka_brokers,
        TOPIC_PREFIX: bank.topic_prefix,
        DATABASE_URL: database.url,
        ...env,
      },
    });
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => this.lines.push(line));
    this.#child.stderr?.on('data', (data: Buffer) => {
      this.#errors += data.toString();
    });
    started.push(this);
  }

  /** Resolves with its exit code and its error output. */
  async end(signal: NodeJS.Signals): Promise<[code: number | NodeJS.Signals, errors: string]> {
    const { pid, exitCode, signalCode } = this.#child;
    const exit = exitCode === null && signalCode === null ? once(this.#child, 'exit') : undefined;
    if (exit && pid !== undefined) process.kill(-pid, signal);
    await exit;
    return [this.#child.signalCode ?? this.#child.exitCode ?? -1, this.#errors];
  }
}

const node = (name: string, env?: Record<string, string>) =>
  new Example(process.execPath, ['--disable-warning=TimeoutNegativeWarning', `examples/${name}`], env);
const id = (i: number) => accounts[i]?.account_id ?? '';
const lines = async () =>
  (await pool.query<{ count: number }>('select count(*)::int from statements.lines')).rows[0]?.count ?? 0;
const deposits = (count: number) => together(count, (i) => api.transact(id(i % 4), 'Deposit', 1.25));

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.url, application_name: 'test', schema: 'statements', max: 2 }, silent);
  const { client_id } = await api.client();
  accounts = await together(8, () => api.account(client_id, { initial_deposit: 20_000 }));
});
afterAll(async () => {
  await Promise.all(started.map((example) => example.end('SIGKILL')));
  await pool?.end();
  await database?.drop();
});

describe.concurrent('examples', () => {
  it('statement-builder: after a kill and a complete redelivery it has each entry of the bank once', async () => {
    const first = node('statement-builder.ts');
    await eventually(async () => (await lines()) >= 8, 30_000);
    const load = deposits(150);
    await eventually(async () => (await lines()) >= 40, 30_000);
    expect((await first.end('SIGKILL'))[0]).toBe('SIGKILL');
    // One builder continues at the first one's position, and one receives everything again, at the same time.
    const second = node('statement-builder.ts');
    const third = node('statement-builder.ts', { GROUP_ID: 'everything-again' });
    await load;
    await deposits(50);
    await Promise.all(
      ['statement-builder', 'everything-again'].map((group) => caughtUp(world.bank, group, 40_000, 'transactions')),
    );
    expect(await Promise.all([second.end('SIGTERM'), third.end('SIGTERM')])).toEqual([
      [0, 'reading …\n'],
      [0, 'reading …\n'],
    ]);
    const { rows } = await pool.query<Record<string, unknown>>(
      'select account_id, sequence::int, transaction_id, direction, amount::float, balance_after::float, booked_at from statements.lines where account_id = any($1) order by account_id, sequence',
      [accounts.slice(0, 4).map(({ account_id }) => account_id)],
    );
    const entries = (await Promise.all(accounts.slice(0, 4).map(({ account_id }) => api.entries(account_id)))).flat();
    const booked = ({
      account_id,
      sequence,
      transaction_id,
      direction,
      amount,
      balance_after,
      created_at,
    }: RestEntry) => ({
      account_id,
      sequence,
      transaction_id,
      direction,
      amount,
      balance_after,
      booked_at: created_at,
    });
    expect(rows).toEqual(
      entries
        .map(booked)
        .sort((a, b) =>
          a.account_id === b.account_id ? a.sequence - b.sequence : a.account_id < b.account_id ? -1 : 1,
        ),
    );
  });

  it('notifier, with the guide’s command: a line per transaction and frozen account; fraud-watcher: an alert per suspicion; both stop on SIGTERM', async () => {
    const [, command = ''] = /```sh\n(npm run --silent example notifier\.ts)\n```\n```text\n/.exec(guide) ?? [];
    const notifier = new Example('bash', ['-c', command]);
    const shown = /^(acc_[0-9a-f]{32}): (.+) \[(.+)\]$/;
    const told = () => notifier.lines.map((line) => shown.exec(line)?.[3]?.replaceAll('-', '') ?? '');
    const watcher = node('fraud-watcher.ts');
    await Promise.all([1, 2, 3].map(() => api.transact(id(4), 'Withdrawal', 5)));
    await api.transfer(id(5), id(6), 12_000);
    expect(
      (await api.post('/transactions', { account_id: id(7), transaction_type: 'Withdrawal', amount: 1_000_000 }))
        .status,
    ).toBe(400);
    await api.setStatus(id(7), 'Frozen', 'fraud');
    const transactions = (
      await Promise.all(
        accounts.slice(4).map(({ account_id }) => api.all<RestTransaction>(`/transactions?account_id=${account_id}`)),
      )
    ).flat();
    await eventually(
      async () =>
        transactions.every(({ transaction_id }) => told().includes(transaction_id.slice(4))) &&
        notifier.lines.some((line) => line.includes('frozen')) &&
        watcher.lines.length >= 2,
      40_000,
    );
    expect(await watcher.end('SIGTERM')).toEqual([0, 'reading …\n']);
    expect((await notifier.end('SIGTERM'))[1]).toBe('reading …\n');
    const example = /```text\n([\s\S]*?)\n```/.exec(guide)?.[1]?.split('\n') ?? [];
    for (const line of [...notifier.lines, ...example]) expect(line).toMatch(shown);
    for (const { transaction_id } of transactions)
      expect(told().filter((event) => event === transaction_id.slice(4))).toHaveLength(1);
    expect(notifier.lines.filter((line) => line.includes('frozen: fraud'))).toHaveLength(1);
    const alerts = watcher.lines.map((line) => JSON.parse(line) as { rule: string; account_id: string });
    expect(alerts.map(({ rule, account_id }) => [rule, account_id]).sort()).toEqual([
      ['large_amount', id(5)],
      ['many_withdrawals', id(4)],
    ]);
  });

  it.runIf(have('Java', 'Maven'))(
    'Java: receives every completed transaction, without gaps per account',
    async () => {
      const jars = mkdtempSync(join(tmpdir(), 'java-example-'));
      const copy = ['-f', 'examples/java/pom.xml', 'dependency:copy-dependencies', `-DoutputDirectory=${jars}`];
      // Not synchronously: the tests beside it wait for answers.
      await run('mvn', ['-B', '-q', '-ntp', ...copy], { cwd: root, timeout: 120_000 });
      const java = new Example('java', ['-cp', join(jars, '*'), 'examples/java/Consumer.java']);
      const completed = (
        await Promise.all(
          accounts.map(({ account_id }) =>
            api.all<RestTransaction>(`/transactions?account_id=${account_id}&status=Completed`),
          ),
        )
      ).flat();
      const printed = /^(acc_\w+) (\d+) ([A-Z]\w+) ([\d.]+) \[([0-9a-f-]+)\]$/;
      const read = () => java.lines.map((line) => printed.exec(line)).filter((match) => match !== null);
      await eventually(
        async () =>
          completed.every(({ transaction_id }) =>
            read().some((match) => match[5]?.replaceAll('-', '') === transaction_id.slice(4)),
          ),
        80_000,
      );
      expect((await java.end('SIGTERM'))[1]).toBe('reading ...\n');
      rmSync(jars, { recursive: true });
      for (const { account_id } of accounts) {
        const sequences = read()
          .filter((match) => match[1] === account_id)
          .map((match) => Number(match[2]));
        expect(sequences).toEqual(sequences.map((_, i) => i + 1));
      }
      expect(java.lines.filter((line) => line.includes('missing'))).toEqual([]);
    },
    240_000,
  );
});
