import { readFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { createPool } from '../pool.ts';
import { createTestDatabase, silent } from '../test/test-database.ts';
import { transaction } from '../transaction.ts';
import type { OutboxEvent } from './outbox.ts';
import { outboxInsert, outboxValues, writeOutbox } from './outbox.ts';
import { toPublishedEvent } from './outbox-messages.ts';
import { purge, readUnpublished } from './relay-read.ts';
import { readOutbox } from './test/test-outbox.ts';

const database = await createTestDatabase();
const pool = createPool({ url: database.url, application_name: 'outbox-test', schema: 'public' }, silent);
await pool.query(readFileSync(new URL('./outbox.sql', import.meta.url), 'utf8'));
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const event = (n: number, more: Partial<OutboxEvent> = {}): OutboxEvent => ({
  id: `txn_${n.toString(16).padStart(32, '0')}`,
  topic: 'transactions',
  key: 'acc_1',
  type: 't.v1',
  time: '2026-01-02T03:04:05.678Z',
  payload: `{"n":${n}}`,
  ...more,
});
const empty = () => pool.query('truncate outbox, outbox_batches restart identity');
const write = (...events: OutboxEvent[]) => transaction(pool, (client) => writeOutbox(client, events));
const messages = async () =>
  (await readUnpublished(pool, 1000)).flatMap(({ events }) =>
    events.map((each) => toPublishedEvent(each, 'ledger', String)),
  );

test('a message has CloudEvents headers, key, value, and topic', async () => {
  await write(event(1));
  expect(await messages()).toEqual([
    {
      topic: 'transactions',
      key: 'acc_1',
      value: '{"n":1}',
      headers: {
        ce_specversion: '1.0',
        ce_id: '00000000-0000-0000-0000-000000000001',
        ce_type: 't.v1',
        ce_source: 'ledger',
        ce_time: '2026-01-02T03:04:05.678Z',
        ce_subject: 'acc_1',
        'content-type': 'application/json',
      },
    },
  ]);
  await empty();
});

test('own headers take precedence, a partition is kept, a null payload is a tombstone, and a null key has no subject', async () => {
  await write(
    event(1, {
      headers: { 'correlation-id': 'c', traceparent: '00-a-b-01', ce_subject: 's' },
      partition: 0,
      payload: null,
    }),
    event(2, { key: null }),
  );
  const [first, second] = await messages();
  expect(first).toMatchObject({
    value: null,
    partition: 0,
    headers: { 'correlation-id': 'c', traceparent: '00-a-b-01', ce_subject: 's' },
  });
  expect(second).toMatchObject({ key: null });
  expect(second?.headers).not.toHaveProperty('ce_subject');
  expect(second).not.toHaveProperty('partition');
  await empty();
});

test('the payload is stored byte for byte', async () => {
  const payload = '{ "b":1.00,"a":"Ünï\\u0000 ✓ 😀 \\" \' \\\\", "b": 2 }\n';
  await write(event(1, { payload }));
  expect((await messages())[0]?.value).toBe(payload);
  await empty();
});

test('nothing is written for no events, or after a rollback', async () => {
  await write();
  await pool.query(`with ${outboxInsert(1)} select 1`, outboxValues([]));
  await transaction(pool, async (client) => {
    await writeOutbox(client, [event(1)]);
    throw new Error('no');
  }).catch(() => undefined);
  expect((await pool.query('select from outbox_batches')).rowCount).toBe(0);
});

test('the CTEs of outboxInsert can be combined with others in one statement', async () => {
  await pool.query('create table accounts (id int)');
  const text = `with accounts_written as (insert into accounts select unnest($1::int[])), ${outboxInsert(2)} select count(*) from outbox_batch`;
  const values = outboxValues([event(1), event(2)]);
  await pool.query(text, [[1, 2], ...values]);
  expect((await messages()).map((message) => message.value)).toEqual(['{"n":1}', '{"n":2}']);
  await empty();
});

test('reads return whole batches in chunks, without published but unmarked ones', async () => {
  await write(event(0), event(1));
  await write(...Array.from({ length: 7 }, (_, n) => event(n + 2)));
  await write(event(9));
  const read = async (published: bigint[] = []) => {
    const batches = await readUnpublished(pool, 3, published);
    return batches.map((batch) => [batch.batch_id, batch.events.map(({ payload }) => JSON.parse(payload ?? '').n)]);
  };
  const seven = [2, 3, 4, 5, 6, 7, 8];
  expect(await read()).toEqual([
    [1n, [0, 1]],
    [2n, seven],
  ]);
  expect(await read([1n])).toEqual([[2n, seven]]);
  expect(await read([1n, 2n])).toEqual([[3n, [9]]]);
  await pool.query('update outbox_batches set published_at = now() where batch_id = 2');
  expect(await read()).toEqual([
    [1n, [0, 1]],
    [3n, [9]],
  ]);
  await empty();
});

test('purging deletes the oldest published batches and keeps the others', async () => {
  for (let n = 0; n < 25; n += 1) await write(event(n), event(100 + n));
  await pool.query(`update outbox_batches set published_at = now() - interval '2 hours' where batch_id <= 22`);
  await pool.query(`update outbox_batches set published_at = now() where batch_id = 23`);
  expect(await purge(pool, 3_600_000)).toBe(true);
  expect(await purge(pool, 3_600_000)).toBe(false);
  expect((await pool.query('select batch_id from outbox_batches order by 1')).rows).toEqual([
    { batch_id: 23n },
    { batch_id: 24n },
    { batch_id: 25n },
  ]);
  expect((await readOutbox(pool)).map(({ batch_id }) => batch_id)).toEqual([23n, 23n, 24n, 24n, 25n, 25n]);
  await empty();
});
