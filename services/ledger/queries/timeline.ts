import {
  bucketForKey,
  bucketOfId,
  creditLegId,
  formatId,
  idBits,
  isId,
  openingTransactionId,
  transferEventId,
} from '#libs/contracts/ids.ts';
import type { Timeline } from '#libs/contracts/timeline.ts';
import { commandPartition } from '#libs/contracts/topics.ts';
import type { OutboxEvent } from '#libs/postgres/outbox/outbox.ts';
import { toUuid, unpackEvents } from '#libs/postgres/outbox/outbox-messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import {
  type EntryRecord,
  isTransferLeg,
  type TransactionRecord,
  toEntry,
  toTransaction,
  transactionEventType,
} from '../domain/records.ts';
import { placed, readReversals, readTransactions, selectEntries, toEntryRecord, uuids } from '../rows.ts';

/**
 * Returns the timeline of a transaction from existing data; nothing is written or indexed for it. Entries are
 * found by their posting time, events by that of their batch.
 */
export async function getTimeline(pool: Pool, transactionId: string): Promise<Timeline | undefined> {
  const [record] = isId('transaction', transactionId) ? await readTransactions(pool, [transactionId]) : [];
  if (record?.transaction_id !== transactionId) return undefined;
  const { request_id, actor, idempotency_key, created_at } = record;
  const reversals = await readReversals(pool, [transactionId]);
  const bookedAt = record.status === 'Completed' ? await readPostingTime(pool, record) : undefined;
  const entries = bookedAt === undefined ? [] : await readOperation(pool, record, bookedAt);
  return {
    transaction: toTransaction(record, reversals.get(transactionId)),
    request: { request_id, actor, idempotency_key, accepted_at: created_at },
    command: toTimelineCommand(record),
    booked_at: bookedAt ?? null,
    entries: entries.map((row) => ({
      ...toEntry(toEntryRecord(row)),
      account_number: row.account_number,
      account_type: row.account_type,
    })),
    events: await readEvents(pool, record, bookedAt),
  };
}

/** Returns the command whose outcome the record is. Pure. */
function toTimelineCommand(record: TransactionRecord): Timeline['command'] {
  const bits = idBits(record.operation_id);
  const of = (name: string, id: string, bucket = bucketOfId(id), topic = 'ledger.commands') => ({
    name,
    id,
    topic,
    partition: commandPartition(bucket),
  });
  if (record.batch_id !== null)
    return of('create_batch', record.batch_id, bucketOfId(record.batch_id), 'ledger.batches');
  if (record.reverses_transaction_id !== null) return of('reverse_transaction', formatId('transaction', bits));
  if (record.hold_id !== null) return of('capture_hold', formatId('transaction', bits));
  if (isTransferLeg(record)) return of('create_transfer', formatId('transfer', bits));
  if (record.transaction_id === openingTransactionId(record.account_id))
    return of('open_ledger_account', record.account_id, bucketForKey(record.account_id));
  return of('create_transaction', record.transaction_id);
}

/** The gateway's clock, used for acceptance, may differ from the database's, used for posting, by a few seconds. */
const clockMarginMs = 10_000;
/** The maximum number of the account's entries to scan after the time of acceptance. */
const lookedThrough = 100_000;

/** Returns the time at which the entry of a Completed transaction was posted, searching from its time of acceptance. */
async function readPostingTime(
  pool: Pool,
  { account_id, transaction_id, created_at }: TransactionRecord,
): Promise<string | undefined> {
  const since = new Date(Date.parse(created_at) - clockMarginMs).toISOString();
  const { rows } = await pool.query<{ created_at: string }>(
    `with recursive wanted as (select $1::uuid as account_id, $2::timestamptz as time), ${placed}
     select e.created_at from placed p cross join lateral (
       select created_at from entries where account_id = p.account_id and sequence >= p.sequence and sequence < p.sequence + ${lookedThrough} and transaction_id = $3 order by sequence limit 1
     ) e`,
    [idBits(account_id), since, idBits(transaction_id)],
  );
  return rows[0]?.created_at;
}

type OperationRow = EntryRecord & { account_number: string; account_type: string };

export const operationStatement = `with recursive candidates as (
    select unnest($1::uuid[]) as account_id
    union select account_id from accounts where client_id is null and account_type in ('Teller', 'Vault') and currency = $2
  ), wanted as (
    select account_id, time from candidates, (values ($3::timestamptz), ($3::timestamptz + interval '1 millisecond')) as moments (time)
  ), ${placed}, parts as (
    select account_id, min(sequence) as first, max(sequence) as beyond from placed group by account_id
  )
  ${selectEntries(
    'parts p cross join lateral (select * from entries where account_id = p.account_id and sequence >= p.first and sequence < p.beyond and operation_id = $4 offset 0) e',
    ', a.account_number, a.account_type',
  )}
    join accounts a on a.account_id = e.account_id
  order by case a.account_type when 'Vault' then 1 when 'Teller' then 2 else 3 end, a.account_number, e.sequence`;

/**
 * Returns every entry of an operation, on its accounts and on the slots of Teller and Vault. All have the same
 * posting time.
 */
async function readOperation(
  pool: Pool,
  { account_id, counterparty_account_id, currency, operation_id }: TransactionRecord,
  bookedAt: string,
): Promise<OperationRow[]> {
  const parties = counterparty_account_id === null ? [account_id] : [account_id, counterparty_account_id];
  const { rows } = await pool.query<OperationRow>(operationStatement, [
    uuids(parties),
    currency,
    bookedAt,
    idBits(operation_id),
  ]);
  return rows;
}

/**
 * A batch is written to the outbox by its transaction shortly after its time was read. Times are truncated to
 * milliseconds.
 */
const [earlierMs, laterMs] = [100, 6_000];

/** Batch numbers increase with time, so the numbers of a period are found by binary search. */
export const batchesStatement = `with recursive halved (time, low, high) as (
    select time, (select min(batch_id) from outbox_batches), (select max(batch_id) + 1 from outbox_batches) from (values ($1::timestamptz), ($2::timestamptz)) as moments (time)
    union all
    select time, case when b.created_at < time then b.batch_id + 1 else low end, case when b.created_at < time then high else middle end
    from (select time, low, high, (low + high) / 2 as middle from halved where low < high) h
      cross join lateral (select batch_id, created_at from outbox_batches where batch_id >= h.middle order by batch_id limit 1) b
  ) select min(low) as first, max(low) as beyond from halved where low >= high`;

const batchesAtOnce = 20;

export const messagesStatement = `select b.batch_id, b.created_at, b.published_at, o.records from outbox_batches b cross join lateral (select records from outbox where batch_id = b.batch_id offset 0) o
  where b.batch_id >= $1 and b.batch_id < $2 order by b.batch_id limit ${batchesAtOnce}`;

interface BatchRow {
  batch_id: bigint;
  created_at: string;
  published_at: string | null;
  records: Buffer;
}

/** Finds the batch with the events of this transaction among those of a period. */
async function findBatch(
  pool: Pool,
  transactionId: string,
  from: string,
  to: string,
): Promise<(BatchRow & { events: OutboxEvent[] }) | undefined> {
  const {
    rows: [range],
  } = await pool.query<{ first: bigint | null; beyond: bigint | null }>(batchesStatement, [from, to]);
  let { first, beyond } = { first: range?.first ?? 0n, beyond: range?.beyond ?? 0n };
  while (first < beyond) {
    const { rows } = await pool.query<BatchRow>(messagesStatement, [first, beyond]);
    for (const row of rows) {
      const events = unpackEvents(row.records, transactionId);
      if (events.some(({ id }) => toUuid(id) === toUuid(transactionId))) return { ...row, events };
    }
    first = (rows.at(-1)?.batch_id ?? beyond) + 1n;
  }
  return undefined;
}

/** Returns the events of the operation, and the balances that its batch published for its accounts. */
async function readEvents(
  pool: Pool,
  record: TransactionRecord,
  bookedAt: string | undefined,
): Promise<Timeline['events']> {
  const type = transactionEventType(record);
  if (type === undefined) return [];
  const aroundMs = Date.parse(bookedAt ?? record.created_at);
  const [from = '', to = ''] = [aroundMs - earlierMs, aroundMs + laterMs].map((ms) => new Date(ms).toISOString());
  const debitLeg = formatId('transaction', idBits(record.operation_id));
  const ids = new Set(
    [record.transaction_id, debitLeg, creditLegId(debitLeg), transferEventId(idBits(debitLeg))].map(toUuid),
  );
  const accounts = bookedAt === undefined ? [] : [record.account_id, record.counterparty_account_id];
  const batch = await findBatch(pool, record.transaction_id, from, to);
  if (batch === undefined) return [notKept(record, type)];
  const { created_at, published_at, events } = batch;
  const state = published_at === null ? 'waiting' : 'published';
  return events
    .filter(({ id, topic, key }) => ids.has(toUuid(id)) || (topic === 'balances' && accounts.includes(key)))
    .map(({ id, type, topic, key }) => ({
      ce_id: toUuid(id),
      type,
      topic,
      key: key ?? '',
      recorded_at: created_at,
      published_at,
      state,
    }));
}

/** Returns the transaction's own event, reconstructed from its record except for the times. */
function notKept({ transaction_id, account_id }: TransactionRecord, type: string): Timeline['events'][number] {
  return {
    ce_id: toUuid(transaction_id),
    type,
    topic: 'transactions',
    key: account_id,
    state: 'not_kept',
    recorded_at: null,
    published_at: null,
  };
}
