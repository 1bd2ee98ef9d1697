import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import { type Child, startChild } from '../../tools/local/child.ts';
import { javaEnvironment } from '../../tools/local/kafka-jars.ts';
import { logTail } from '../../tools/local/log-file.ts';
import { freePort } from '../../tools/local/ports.ts';
import { have } from '../support/programs.ts';
import { eventually, together, useBank } from '../support/world.ts';

/** Runs examples/connect with Apache's Kafka Connect and Debezium's JDBC sink, as docs/connect.md describes it. */
const example = join(import.meta.dirname, '..', '..', 'examples', 'connect');

describe.runIf(have('Java', 'Maven'))('Kafka Connect', () => {
  const world = useBank();
  const { api } = world;
  const folder = mkdtempSync(join(tmpdir(), 'connect-'));
  const jars = join(folder, 'jars');
  const log = join(folder, 'connect.log');
  let database: TestDatabase;
  let sink: Pool;
  let connect: Child | undefined;

  async function start(): Promise<Child> {
    const { hostname, port, pathname, username, password } = new URL(database.url);
    const files = ['worker.properties', 'sink.properties'].map((name) => join(example, name));
    connect = startChild({
      name: 'connect',
      command: 'java',
      args: [
        '-Xmx512m',
        '-XX:TieredStopAtLevel=1',
        '-cp',
        join(jars, '*'),
        'org.apache.kafka.connect.cli.ConnectStandalone',
        ...files,
      ],
      log,
      marker: folder,
      env: {
        ...javaEnvironment(),
        KAFKA_BROKERS: world.bank.kafka_brokers,
        TOPIC_PREFIX: world.bank.topic_prefix,
        GROUP_ID: `${world.bank.topic_prefix}connect`,
        REST_PORT: String(await freePort()),
        SINK_URL: `jdbc:postgresql://${hostname}:${port || 5432}${pathname}`,
        SINK_USER: decodeURIComponent(username),
        SINK_PASSWORD: decodeURIComponent(password),
      },
    });
    return connect;
  }

  const count = async () =>
    (await sink.query<{ count: number }>('select count(*)::int from entries')).rows[0]?.count ?? 0;

  /** How many entries each account has, and what they add up to, in minor units. */
  const sums = (table: string, minor: string) =>
    `select account_id, currency, count(*)::int, sum(case direction when 'credit' then ${minor} else -${minor} end)::int
     from ${table} group by account_id, currency order by account_id`;

  /** Waits until the sink has as many entries as the ledger, and compares them. */
  async function expectEqual(): Promise<void> {
    const expected = await world.sql<{ count: number }>(sums('v_entries', 'amount_minor'));
    const total = expected.reduce((sum, { count: entries }) => sum + entries, 0);
    await eventually(async () => (await count()) >= total, 60_000).catch((error: Error) => {
      throw new Error(`${error.message}\n${logTail(log)}`);
    });
    const { rows } = await sink.query(sums('entries', "(amount * case currency when 'JPY' then 1 else 100 end)"));
    expect(rows).toEqual(expected);
  }

  beforeAll(async () => {
    const copy = ['-f', join(example, 'pom.xml'), 'dependency:copy-dependencies', `-DoutputDirectory=${jars}`];
    execFileSync('mvn', ['-B', '-q', '-ntp', ...copy], { timeout: 240_000 });
    database = await createTestDatabase();
    sink = createPool({ url: database.url, application_name: 'test', schema: 'public', max: 2 }, silent);
    await sink.query(readFileSync(join(example, 'entries.sql'), 'utf8'));
  }, 300_000);
  afterAll(async () => {
    await connect?.stop(5000);
    await sink?.end();
    await database?.drop();
    rmSync(folder, { recursive: true });
  });

  it('fills a table with each entry of the ledger once, also when its process is killed', async () => {
    const accounts = await together(4, (i) =>
      api.newAccount({ initial_deposit: 100, currency: i === 3 ? 'JPY' : 'USD' }),
    );
    const id = (i: number) => accounts[i % 3]?.account_id ?? '';
    const move = () => together(60, (i) => api.transfer(id(i), id(i + 1), 0.25), 5);
    const { transaction_id } = await api.transact(id(0), 'Deposit', 20);
    expect((await api.post(`/transactions/${transaction_id}/reversal`, { reason: 'a mistake' })).status).toBe(201);
    const first = await start();
    await move();
    await expectEqual();

    const busy = move();
    const before = await count();
    await eventually(async () => (await count()) > before);
    process.kill(first.pid, 'SIGKILL');
    await busy;
    await first.exited;
    expect(await count()).toBeLessThan((await world.sql('select 1 from v_entries')).length);
    await start();
    await expectEqual();
    // After a restore, the bank publishes the same entries again, with other times.
    const old = "entries where created_at < '2002-01-01'";
    await sink.query(
      `insert into events select __connect_topic, __connect_partition, -1,
       regexp_replace(event, '"created_at":"[^"]+"', '"created_at":"2001-02-03T04:05:06.000Z"', 'g') from events limit 1`,
    );
    expect((await sink.query(`select from ${old}`)).rowCount).toBeGreaterThan(1);
    await expectEqual();
  });
});
