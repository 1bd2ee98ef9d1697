import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createPool, type Pool } from '../../libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '../../libs/postgres/test/test-database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { haveJars, jarFolder, javaEnvironment } from '../../tools/local/kafka-jars.ts';
import { accountId, admin, brokers, event, range, send, topicPrefix, useTopics } from './test/topics.fixture.ts';

/** The examples survive a dead letter, a kill, a rebalance, and a redrive, on a real broker. */
useTopics();
const root = join(import.meta.dirname, '../..');
const children: ChildProcess[] = [];
let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.url, application_name: 'test', schema: 'statements', max: 1 }, silent);
});
afterAll(async () => {
  await Promise.all(children.map((child) => stop(child, 'SIGKILL')));
  await pool.end();
  await database.drop();
});

async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill(signal);
  await exit;
}

/** Starts an example as a member of one group. */
function start(name: string, output: string[], ...args: string[]): ChildProcess {
  const [command, first] =
    name === 'java'
      ? ['java', ['-cp', `${jarFolder()}/*`, 'examples/java/Consumer.java']]
      : [process.execPath, ['--disable-warning=TimeoutNegativeWarning', `examples/${name}.ts`]];
  const child = spawn(command, [...first, ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: {
      ...javaEnvironment(),
      // The optimizing compiler would take half of the CPU time of a process that lives for seconds.
      JAVA_TOOL_OPTIONS: '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC',
      KAFKA_BROKERS: brokers,
      TOPIC_PREFIX: topicPrefix,
      DATABASE_URL: database.url,
    },
  });
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => output.push(line));
  children.push(child);
  return child;
}

/** A large payment, which every example shows: the watcher as an alert. */
function payment(sequence: number, partition = 0, account = 'a') {
  const made = event(account, sequence, partition);
  const data = JSON.parse(made.value) as { transaction: { transaction_id: string } };
  Object.assign(data.transaction, { transaction_type: 'Transfer', direction: 'debit', amount: '20000.00' });
  return { ...made, value: JSON.stringify(data), transaction: data.transaction.transaction_id };
}
const broken = (sequence: number) =>
  event('a', sequence, 0, { value: `{"sequence": ${sequence}, "balance_after": 12.5}` });

const noJson = () => event('a', 99, 0, { id: 'no-json', value: '{' });

/** What each example has shown of an event: its ce_id, its transaction, or its line. */
const shows: Record<string, (output: string[], sent: ReturnType<typeof payment>) => Promise<boolean>> = {
  notifier: async (output, { headers }) => output.some((line) => line.endsWith(`[${String(headers['ce_id'])}]`)),
  'fraud-watcher': async (output, { transaction }) => output.some((line) => line.includes(transaction)),
  // Without the jars, the broker is a container.
  ...(haveJars() && {
    java: async (output, { headers }) => output.some((line) => line.endsWith(`[${String(headers['ce_id'])}]`)),
  }),
  'statement-builder': async (_, { transaction }) =>
    (await pool.query('select from statements.lines where transaction_id = $1', [transaction])).rowCount === 1,
};

it.each(Object.keys(shows))(
  '%s shows every event after a dead letter, a kill, a rebalance, and a redrive',
  async (name) => {
    await admin.createTopics({
      topics: [{ topic: `${topicPrefix}accounts`, numPartitions: 1 }],
      waitForLeaders: false,
    });
    const output: string[] = [];
    const shown = (...sent: ReturnType<typeof payment>[]) =>
      eventually(async () => (await Promise.all(sent.map((one) => shows[name]?.(output, one)))).every(Boolean), 60_000);
    const give = async (...sent: ReturnType<typeof payment>[]) => {
      await send(...sent);
      await shown(...sent);
    };
    const first = start(name, output);
    await give(payment(1));
    await send(broken(2), noJson());
    const after = async () =>
      (await admin.listTopics()).some((topic) => topic.startsWith(topicPrefix) && topic.endsWith('.DLT'));
    if (name !== 'java') await eventually(after, 30_000);
    await give(payment(3));
    await stop(first, 'SIGKILL');
    const second = start(name, output);
    await give(payment(4));
    // The partitions are divided among two members, and the first of them ends again.
    const third = start(name, output);
    await give(...range(4).map((n) => payment(1, n - 1, `b${n}`)), payment(5));
    await stop(second, 'SIGTERM');
    await give(payment(6), ...range(4).map((n) => payment(2, n - 1, `b${n}`)));
    if (name === 'java') return;
    // They still violate the contract, and become dead letters again.
    const redriven: string[] = [];
    const redrive = start(name, redriven, 'redrive');
    await once(redrive, 'exit');
    expect([redrive.exitCode, redriven.map((line): unknown => JSON.parse(line))]).toEqual([
      0,
      [{ handled: 0, failed: 2 }],
    ]);
    await give(payment(7));
    await stop(third, 'SIGTERM');
    expect(third.exitCode).toBe(0);
    if (name !== 'statement-builder') return;
    const { rows } = await pool.query<{ sequence: string }>(
      'select sequence::text from statements.lines where account_id = $1 order by statements.lines.sequence',
      [accountId('a')],
    );
    expect(rows.map(({ sequence }) => Number(sequence))).toEqual([1, 3, 4, 5, 6, 7]);
  },
  240_000,
);
