import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { topicName } from '#libs/contracts/topics.ts';
import { metricPrefix } from '#libs/service/metrics.ts';
import { describeMetrics } from '../../tools/generate/metrics.ts';
import { expectError, newKey, retail } from '../support/client.ts';
import type { SentSpan } from '../support/collector.ts';
import { startCollector } from '../support/collector.ts';
import { again, caughtUp, publish, readTopic } from '../support/kafka.ts';
import { scrape } from '../support/metrics.ts';
import { eventually, useBank } from '../support/world.ts';

/** Tests that metrics, logs, and traces of a running bank show its activity and its faults. */
const collector = await startCollector();
afterAll(() => collector.stop());
const world = useBank({ dashboards: 1, webhooks: 1, env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
const { api } = world;

/** Enough requests without a reply to open the breaker. */
const sent = 20;

const look = (name: 'gateway' | 'ledger' | 'accounts' | 'webhooks' | 'dashboard') => scrape(world.bank.process(name));
const outcomes = async (service: 'ledger' | 'accounts', name: string) => {
  const { series } = await look(service);
  const counted = series.filter((one) => one.name === 'corebanking_commands_total' && one.labels['name'] === name);
  return Object.fromEntries(counted.map(({ labels, value }) => [labels['outcome'], value]));
};

describe('Metrics', () => {
  it('count exactly what was executed', async () => {
    const { account_id } = await api.newAccount({ initial_deposit: 10 });
    for (let i = 0; i < 3; i++) await api.transact(account_id, 'Deposit', 5);
    const withdrawal = { account_id, transaction_type: 'Withdrawal', amount: 1000 };
    for (let i = 0; i < 2; i++) expectError(await api.post('/transactions', withdrawal), 400, 'insufficient_funds');
    const [key, deposit] = [newKey(), { account_id, transaction_type: 'Deposit', amount: 1 }];
    for (let i = 0; i < 3; i++) expect((await api.once(key, '/transactions', deposit)).status).toBe(201);
    expectError(await api.once(key, '/transactions', { ...deposit, amount: 2 }), 422, 'idempotency_key_reused');
    const clientKey = newKey();
    for (let i = 0; i < 2; i++) expect((await api.once(clientKey, '/clients', retail())).status).toBe(201);
    expect((await api.get(`/accounts/${account_id}`)).status).toBe(200);
    expect((await api.with({}).get(`/accounts/${account_id}`)).status).toBe(401);

    expect(await outcomes('ledger', 'create_transaction')).toEqual({
      done: 4,
      insufficient_funds: 2,
      replayed: 2,
      idempotency_key_reused: 1,
    });
    expect(await outcomes('ledger', 'open_ledger_account')).toEqual({ done: 1 });
    expect(await outcomes('accounts', 'create_client')).toEqual({ done: 2, replayed: 1 });
    expect(await outcomes('accounts', 'open_account')).toEqual({ begun: 1, done: 1 });
    const [gateway, ledger] = await Promise.all([look('gateway'), look('ledger')]);
    const answers = (endpoint: string, status: number) =>
      gateway.value('corebanking_gateway_requests_total', { endpoint, status: String(status) });
    expect([201, 400, 422].map((status) => answers('create_transaction', status))).toEqual([6, 2, 1]);
    expect([
      answers('get_account', 200),
      gateway.value('corebanking_gateway_refusals_total', { code: 'missing_credentials' }),
    ]).toEqual([1, 1]);
    expect(
      gateway.value('corebanking_gateway_request_duration_seconds_count', { endpoint: 'create_transaction' }),
    ).toBe(9);
    expect(gateway.value('corebanking_gateway_reply_wait_seconds_count', { message: 'create_transaction' })).toBe(9);
    // The gateway also asks the ledger for the time now and then.
    await eventually(async () => (await look('gateway')).value('corebanking_gateway_pending_replies') === 0);
    expect(ledger.value('corebanking_ledger_batch_commands_sum')).toBe(10);
    expect(ledger.value('corebanking_ledger_lock_wait_seconds_count')).toBe(
      ledger.value('corebanking_ledger_batch_duration_seconds_count'),
    );
  });

  it('are those of docs/metrics.md, in each service', async () => {
    for (const service of ['gateway', 'ledger', 'accounts', 'webhooks', 'dashboard'] as const) {
      const { families, series } = await look(service);
      const documented = describeMetrics().filter((metric) => metric.services.includes(service));
      const said = [...families]
        .filter(([name]) => name.startsWith(metricPrefix))
        .map(([name, { type, help }]) => ({ name, type, help }));
      expect(said.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(
        documented.map(({ name, type, help }) => ({ name, type, help })),
      );
      const own = series.filter(({ name }) => name.startsWith(metricPrefix));
      for (const { name, labels } of own)
        expect(
          [...(documented.find((metric) => name.startsWith(metric.name))?.labels ?? []), 'service', 'le'],
          name,
        ).toEqual(expect.arrayContaining(Object.keys(labels)));
      expect(new Set(series.map(({ labels }) => labels['service']))).toEqual(new Set([service]));
      expect(series.some(({ name }) => name === 'nodejs_eventloop_lag_p99_seconds')).toBe(true);
      expect(series.find(({ name }) => name === 'corebanking_build_info')?.labels).toMatchObject({
        version: expect.stringMatching(/^\d/),
        node_version: process.version,
      });
    }
  });

  it('show lock waits and dead letters', async () => {
    const { account_id } = await api.newAccount();
    const locked = (await look('ledger')).value('corebanking_ledger_lock_wait_seconds_sum') ?? 0;
    const client = await world.pool.connect();
    await client.query('begin');
    await client.query('select from accounts where account_id = $1::uuid for update', [account_id.slice(4)]);
    const waiting = api.transact(account_id, 'Deposit', 1);
    await eventually(
      async () =>
        (
          await world.sql(
            "select from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.application_name like 'ledger%' and datname = current_database()",
          )
        ).length > 0,
    );
    const sleep = 300;
    await client.query('select pg_sleep($1)', [sleep / 1000]);
    await client.query('commit');
    client.release();
    await waiting;
    expect((await look('ledger')).value('corebanking_ledger_lock_wait_seconds_sum')).toBeGreaterThan(
      locked + sleep / 1000,
    );

    const [good] = await readTopic(world.bank, 'ledger.commands');
    const poison = { ...again(good!), value: 'no JSON' };
    await publish(world.bank, [
      poison,
      { ...poison, topic: topicName(world.bank.topic_prefix, 'accounts.commands') },
      poison,
    ]);
    await eventually(async () => (await look('accounts')).value('corebanking_dead_letters_open') === 3);
    // A dead letter is counted after it was published, so accounts may have it before.
    await eventually(async () => {
      const [ledger, accounts] = await Promise.all([look('ledger'), look('accounts')]);
      return (
        ledger.value('corebanking_dead_letters_total', { topic: 'ledger.commands', code: 'malformed_json' }) === 2 &&
        accounts.value('corebanking_dead_letters_total', { topic: 'accounts.commands' }) === 1
      );
    });
  });

  it('show an outbox that is not published, and books that do not balance', async () => {
    const { account_id } = await api.newAccount();
    const rows = async () => (await look('ledger')).value('corebanking_outbox_rows');
    // This reads the table and not the metric, which is up to a second old and would still count rows that are
    // published but not yet marked.
    await eventually(
      async () => (await world.sql('select from outbox_batches where published_at is null')).length === 0,
    );
    await world.sql("update outbox_lease set holder = 'test', expires_at = clock_timestamp() + interval '1 hour'");
    await eventually(async () => (await look('ledger')).value('corebanking_outbox_relay_active') === 0);
    const published = (await look('ledger')).value('corebanking_outbox_published_total') ?? 0;
    await api.transact(account_id, 'Deposit', 1);
    // The two rows are the transaction and the account's balance.
    await eventually(async () => (await rows()) === 2);
    expect((await look('ledger')).value('corebanking_outbox_oldest_age_seconds')).toBeGreaterThan(0);
    await world.sql('update outbox_lease set expires_at = clock_timestamp()');
    await eventually(async () => (await rows()) === 0);
    expect((await look('ledger')).value('corebanking_outbox_published_total')).toBe(published + 2);

    expect((await look('ledger')).value('corebanking_books_difference_minor', { currency: 'USD' })).toBe(0);
    await world.sql(
      "update accounts set balance_minor = balance_minor + 7 where account_type = 'Vault' and currency = 'USD'",
    );
    // A new process has not yet read the outbox.
    await world.bank.process('ledger').restart();
    await eventually(
      async () => (await look('ledger')).value('corebanking_books_difference_minor', { currency: 'USD' }) === 7,
    );
    expect((await api.post('/admin/verifications')).status).toBeLessThan(300);
    await eventually(async () => ((await look('ledger')).value('corebanking_books_findings') ?? 0) > 0);
    await world.sql(
      "update accounts set balance_minor = balance_minor - 7 where account_type = 'Vault' and currency = 'USD'",
    );
  });

  it('show an unavailable service: its lag, waiting requests, the breaker, late replies', async () => {
    const { account_id } = await api.newAccount();
    await caughtUp(world.bank, 'ledger');
    const late = (await look('gateway')).value('corebanking_gateway_late_replies_total') ?? 0;
    const ledger = world.bank.process('ledger');
    await ledger.stop();
    // All of them are sent before the breaker opens, eight seconds after the first.
    const waiting = Array.from({ length: sent }, async (_, i) => {
      await new Promise((resolve) => setTimeout(resolve, 300 * i));
      return (
        await api.post(
          '/transactions',
          { account_id, transaction_type: 'Deposit', amount: 1 },
          { 'x-request-id': randomUUID() },
        )
      ).status;
    });
    await eventually(async () => ((await look('gateway')).value('corebanking_gateway_pending_replies') ?? 0) > 0);
    expect(await Promise.all(waiting)).toEqual(Array(sent).fill(202));
    await eventually(
      async () => (await look('gateway')).value('corebanking_consumer_lag_messages', { group: 'ledger' }) === sent,
    );
    await eventually(
      async () => (await look('gateway')).value('corebanking_gateway_breaker_open', { target: 'ledger' }) === 1,
    );
    expect((await look('gateway')).value('corebanking_gateway_breaker_open', { target: 'accounts' })).toBe(0);
    await ledger.restart();
    // The gateway's own queries for the database's time are late, too.
    await eventually(
      async () => ((await look('gateway')).value('corebanking_gateway_late_replies_total') ?? 0) >= late + sent,
    );
    await eventually(
      async () =>
        (await api.get(`/accounts/${account_id}`)).status === 200 &&
        (await look('gateway')).value('corebanking_gateway_breaker_open', { target: 'ledger' }) === 0,
    );
  });
});

describe('Logs', () => {
  const lines = (name: string) => readFileSync(world.bank.process(name).log, 'utf8').trim().split('\n');
  const logged = (name: string, msg: string) =>
    lines(name)
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line['msg'] === msg);

  it('are JSON; each line has time, level, service, and instance', () => {
    for (const name of ['gateway', 'ledger', 'accounts', 'webhooks']) {
      for (const line of lines(name)) {
        expect(JSON.parse(line)).toMatchObject({
          time: expect.stringMatching(/Z$/),
          level: expect.stringMatching(/^(info|warn|error)$/),
          service: name,
          instance: name,
          msg: expect.any(String),
        });
      }
    }
  });

  it('contain the ids of the request and its command, if the line is about one', () => {
    const command = { request_id: expect.stringMatching(/./), command_id: expect.stringMatching(/^\w+_[0-9a-f]{32}$/) };
    expect(logged('gateway', 'no reply').filter(({ message }) => message === 'create_transaction')).toEqual(
      Array(sent).fill(expect.objectContaining({ ...command, stage: 'no_reply' })),
    );
    expect(logged('ledger', 'dead-lettered')).toEqual(
      Array(2).fill(
        expect.objectContaining({
          ...command,
          code: 'malformed_json',
          topic: topicName(world.bank.topic_prefix, 'ledger.commands'),
        }),
      ),
    );
    expect(logged('accounts', 'dead-lettered')).toEqual([expect.objectContaining(command)]);
    expect(logged('ledger', 'the books do not balance')).toEqual([
      expect.objectContaining({ request_id: command.request_id, verification_id: expect.stringMatching(/^ver_/) }),
    ]);
  });

  it('contain no credentials or personal data', () => {
    const all = ['gateway', 'ledger', 'accounts', 'webhooks'].flatMap(lines).join('\n');
    for (const secret of [
      world.bank.api_key,
      ...Object.entries(retail())
        .filter(([name]) => name !== 'client_type')
        .map(([, value]) => String(value)),
    ])
      expect(all).not.toContain(secret);
  });
});

describe('Traces', () => {
  const newTrace = () => randomBytes(16).toString('hex');
  const traceparent = (trace: string, flags = '01') => `00-${trace}-${'c'.repeat(16)}-${flags}`;
  const shown = ({ service, name }: SentSpan) => `${service.replace('core-banking-', '')}: ${name}`;
  /** Returns each span with its ancestors. */
  const tree = (spans: SentSpan[]) => {
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const path = (span: SentSpan): string => {
      const above = byId.get(span.parentSpanId ?? '');
      return above ? `${path(above)} > ${shown(span)}` : shown(span);
    };
    return spans.map(path).toSorted();
  };

  it('a trace covers a posting from HTTP through command, batch, and SQL to reply and event', async () => {
    const { account_id } = await api.newAccount();
    const trace = newTrace();
    const posted = await api.post(
      '/transactions',
      { account_id, transaction_type: 'Deposit', amount: 3 },
      { traceparent: traceparent(trace), 'x-request-id': trace },
    );
    expect(posted.status).toBe(201);
    const spans = await eventually(async () => collector.of(trace).length >= 9 && collector.of(trace));
    const http = 'gateway: POST /transactions';
    const asked = `${http} > gateway: request create_transaction`;
    const batch = `${asked} > ledger: process create_transaction > ledger: batch`;
    expect(tree(spans)).toEqual(
      [
        http,
        asked,
        `${asked} > ledger: process create_transaction`,
        batch,
        `${batch} > ledger: SQL lock and read`,
        `${batch} > ledger: SQL write and commit`,
        `${batch} > ledger: decide`,
        `${asked} > ledger: publish replies`,
        `${asked} > ledger: publish transactions`,
      ].toSorted(),
    );
    expect(spans.find(({ name }) => name === 'POST /transactions')?.parentSpanId).toBe('c'.repeat(16));
    for (const span of spans)
      expect(BigInt(span.endTimeUnixNano), span.name).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
    const event = (await readTopic(world.bank, 'transactions')).find(({ headers }) => headers['request-id'] === trace);
    expect(event?.headers['traceparent']?.split('-')[1]).toBe(trace);
  });

  it('a trace covers a saga through both services and back', async () => {
    const { client_id } = await api.client();
    const trace = newTrace();
    expect(
      (
        await api.post(
          '/accounts',
          { client_id, account_type: 'Savings', currency: 'USD' },
          { traceparent: traceparent(trace) },
        )
      ).status,
    ).toBe(201);
    const names = [
      'gateway: POST /accounts',
      'gateway: request open_account',
      'accounts: process open_account',
      'accounts: publish ledger.commands',
      'ledger: process open_ledger_account',
      'ledger: publish accounts.commands',
      'accounts: process ledger_reply',
      'accounts: publish replies',
      'accounts: publish accounts',
    ];
    await eventually(async () => names.every((name) => collector.of(trace).some((span) => shown(span) === name)));
    expect(collector.of(trace).map(shown)).toEqual(expect.arrayContaining(names));
  });

  it('commands of one batch have separate traces, linked to the batch', async () => {
    const { account_id } = await api.newAccount();
    const client = await world.pool.connect();
    await client.query('begin');
    await client.query('select from accounts where account_id = $1::uuid for update', [account_id.slice(4)]);
    const traces = Array.from({ length: 4 }, newTrace);
    // The first command waits for the lock; the commands that arrive meanwhile form one batch.
    const posted = traces.map((trace) =>
      api.post(
        '/transactions',
        { account_id, transaction_type: 'Deposit', amount: 1 },
        { traceparent: traceparent(trace) },
      ),
    );
    await eventually(
      async () => (await look('gateway')).value('corebanking_gateway_pending_replies') === traces.length,
    );
    await client.query('commit');
    client.release();
    expect((await Promise.all(posted)).map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    const processed = () =>
      traces.flatMap((trace) => collector.of(trace).filter(({ name }) => name === 'process create_transaction'));
    await eventually(async () => processed().length === traces.length);
    const batches = () => traces.flatMap((trace) => collector.of(trace).filter(({ name }) => name === 'batch'));
    const linked = processed().flatMap(({ links }) => links ?? []);
    expect(batches().length + linked.length).toBe(traces.length);
    for (const { traceId, spanId } of linked)
      expect(batches()).toContainEqual(expect.objectContaining({ traceId, spanId }));
  });

  it('nothing is sent for a request that its caller does not sample, and its event is marked as not sampled', async () => {
    const { account_id } = await api.newAccount();
    const [dark, light] = [newTrace(), newTrace()];
    for (const [trace, flags] of [
      [dark, '00'],
      [light, '01'],
    ] as const) {
      expect(
        (
          await api.post(
            '/transactions',
            { account_id, transaction_type: 'Deposit', amount: 3 },
            { traceparent: traceparent(trace, flags), 'x-request-id': trace },
          )
        ).status,
      ).toBe(201);
    }
    await eventually(async () => collector.of(light).length >= 9);
    expect(collector.of(dark)).toEqual([]);
    const event = (await readTopic(world.bank, 'transactions')).find(({ headers }) => headers['request-id'] === dark);
    expect(event?.headers['traceparent']).toMatch(new RegExp(`^00-${dark}-[0-9a-f]{16}-00$`));
  });
});
