import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EncodedMessage } from '#libs/contracts/record.ts';
import { isEventTopic, topics } from '#libs/contracts/topics.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { type OutboxEvent, writeOutbox } from '#libs/postgres/outbox.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createRelay } from '#libs/postgres/relay.ts';
import { silent } from '#libs/postgres/test-database.ts';
import { transaction } from '#libs/postgres/transaction.ts';
import { relayOptions } from '#libs/service/config.ts';
import { migrateAccounts } from '#services/accounts/schema.ts';
import { grants, ledgerSchema, migrationsDir } from '#services/ledger/migrate.ts';
import type { Child } from '../deploy/local/child.ts';
import { freePort } from '../deploy/local/ports.ts';
import { startPostgres } from '../deploy/local/postgres.ts';

/** What docs/debezium.md tells a connector, without the connector: the real tables, and a logical slot of a server with wal_level=logical. */
const dir = mkdtempSync(join(tmpdir(), 'core-banking-debezium-'));
const docs = (file: string) => readFileSync(join(import.meta.dirname, '../docs/debezium', file), 'utf8');
let server: Child;
let url: string;
let pool: Pool;

beforeAll(async () => {
  const port = await freePort();
  const owner = { name: 'owner', password: 'test-password' };
  server = await startPostgres({ dir: join(dir, 'postgres'), log: join(dir, 'log'), port, superuserPassword: 'test-password', owner, durable: false, settings: { wal_level: 'logical', shared_buffers: '16MB', min_wal_size: '80MB' } });
  url = `postgres://postgres:test-password@127.0.0.1:${port}/${owner.name}`;
  await migrate({ owner_url: url, schema: ledgerSchema, role: 'ledger', role_password: 'test-password', dir: migrationsDir, grants }, silent);
  await migrateAccounts({ owner_url: url, role: 'accounts', role_password: 'test-password' }, silent);
  pool = createPool({ url, application_name: 'test', schema: ledgerSchema, max: 4 }, silent);
}, 60_000);
afterAll(async () => {
  await pool?.end();
  await server?.stop(5000);
  rmSync(dir, { recursive: true, force: true });
});

/** Text columns of the inserts among messages of pgoutput (protocol 1): 'I', relation, 'N', columns. */
function insertsOf(messages: Buffer[]): string[][] {
  return messages.filter((message) => String.fromCharCode(message[0] ?? 0) === 'I').map((message) => {
    const columns: string[] = [];
    let at = 8;
    for (let left = message.readUInt16BE(6); left > 0; left--) {
      const isText = String.fromCharCode(message[at] ?? 0) === 't';
      const length = isText ? message.readUInt32BE(at + 1) : 0;
      columns.push(isText ? message.toString('utf8', at + 5, at + 5 + length) : '');
      at += isText ? 5 + length : 1;
    }
    return columns;
  });
}

const event = (n: number, topic: string): OutboxEvent => ({ id: n.toString(16).padStart(32, '0'), topic, key: `k${n % 2}`, type: 't.v1', time: '2026-01-02T03:04:05.678Z', payload: `{"n":${n}}` });

describe('docs/debezium', () => {
  const { config } = JSON.parse(docs('ledger-connector.json')) as { config: Record<string, string> };

  it('names columns that the tables have', async () => {
    const placed = (config['transforms.outbox.table.fields.additional.placement'] ?? '').split(',').map((part) => part.split(':')[0]);
    const named = [...Object.entries(config).filter(([name]) => /\.table\.field\.event\.|route\.by\.field/.test(name)).map(([, column]) => column), ...placed];
    expect(named.length).toBe(9);
    const page = readFileSync(join(import.meta.dirname, '../docs/debezium.md'), 'utf8');
    for (const schema of ['ledger', 'accounts']) {
      const { rows } = await pool.query<{ column_name: string }>("select column_name from information_schema.columns where table_schema = $1 and table_name = 'outbox_events' order by ordinal_position", [schema]);
      const columns = rows.map(({ column_name }) => column_name);
      expect(named.filter((column) => !columns.includes(String(column)))).toEqual([]);
      for (const column of columns) expect(page).toContain(`\`${column}\``);
    }
  });

  it('its publications let pass what relays give the connector: what consumers read, in its order, and nothing else', async () => {
    await pool.query(docs('ledger.sql'));
    await pool.query(docs('accounts.sql'));
    await pool.query("select pg_create_logical_replication_slot('test', 'pgoutput')");
    const every = Object.keys(topics).map((topic, n) => event(n, topic));
    const others: string[] = [];
    const kafka = { publishAll: async (messages: EncodedMessage[]) => void others.push(...messages.map(({ topic }) => topic)) };
    for (const schema of ['ledger', 'accounts']) {
      const own = createPool({ url, application_name: 'test', schema, max: 4 }, silent);
      await transaction(own, (client) => writeOutbox(client, 's', every));
      await transaction(own, (client) => writeOutbox(client, 's', [event(100, 'transactions')]));
      const relay = createRelay({ ...relayOptions({ OUTBOX_RETENTION_HOURS: 1, EVENTS_PUBLISHED_BY: 'debezium' }), pool: own, publisher: kafka, schema, topicName: (topic) => `p.${topic}`, source: 's', logger: silent });
      relay.start();
      await expect.poll(async () => (await own.query('select from outbox_batches where published_at is null')).rowCount).toBe(0);
      await relay.stop();
      await own.end();
    }
    const { rows } = await pool.query<{ data: Buffer }>("select data from pg_logical_slot_get_binary_changes('test', null, null, 'proto_version', '1', 'publication_names', 'bank_ledger_events,bank_accounts_events')");
    const told = insertsOf(rows.map(({ data }) => data)).map(([, topic, , , , , payload]) => [topic, payload]);
    const read = every.filter(({ topic }) => isEventTopic(topic)).map(({ topic, payload }) => [topic, payload]);
    expect(read.length).toBe(6);
    const each = [...read, ['transactions', '{"n":100}']];
    expect(told).toEqual([...each, ...each]);
    const rest = every.filter(({ topic }) => !isEventTopic(topic)).map(({ topic }) => `p.${topic}`);
    expect(others).toEqual([...rest, ...rest]);
  });
});
