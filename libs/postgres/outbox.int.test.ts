import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeOutbox } from './outbox.ts';
import type { OutboxEvent } from './outbox.ts';
import { createPool } from './pool.ts';
import type { Pool } from './pool.ts';
import { createRelay } from './relay.ts';
import type { OutgoingMessage } from './relay.ts';
import { createTestDatabase, silent } from './test-database.ts';
import type { TestDatabase } from './test-database.ts';
import { transaction } from './transaction.ts';

let database: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.url, application_name: 'outbox-test', schema: 'public' }, silent);
  await pool.query(readFileSync(new URL('./outbox.sql', import.meta.url), 'utf8'));
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

const event = (n: number, key = 'k'): OutboxEvent => ({
  id: `txn_${n.toString(16).padStart(32, '0')}`, topic: 'transactions', key, type: 't.v1', time: '2026-01-02T03:04:05.678Z', payload: `{"n":${n}}`,
});

test('what a transaction wrote is published once committed', async () => {
  const sent: OutgoingMessage[] = [];
  const relay = createRelay({ pool, publisher: { publishAll: async (messages) => void sent.push(...messages) }, schema: 'public', topicName: (t) => `p.${t}`, source: 'test', logger: silent });
  relay.start();
  await transaction(pool, (client) => writeOutbox(client, [event(1), event(2)]));
  relay.wake();
  await expect.poll(() => sent.length).toBe(2);
  expect(sent).toMatchInlineSnapshot(`
    [
      {
        "headers": {
          "ce_id": "00000000-0000-0000-0000-000000000001",
          "ce_source": "test",
          "ce_specversion": "1.0",
          "ce_subject": "k",
          "ce_time": "2026-01-02T03:04:05.678Z",
          "ce_type": "t.v1",
          "content-type": "application/json",
        },
        "key": "k",
        "topic": "p.transactions",
        "value": "{"n":1}",
      },
      {
        "headers": {
          "ce_id": "00000000-0000-0000-0000-000000000002",
          "ce_source": "test",
          "ce_specversion": "1.0",
          "ce_subject": "k",
          "ce_time": "2026-01-02T03:04:05.678Z",
          "ce_type": "t.v1",
          "content-type": "application/json",
        },
        "key": "k",
        "topic": "p.transactions",
        "value": "{"n":2}",
      },
    ]
  `);
  await expect.poll(() => relay.stats()).toEqual({ batches: 0, rows: 0, oldest_age_ms: 0 });
  await relay.stop();
});
