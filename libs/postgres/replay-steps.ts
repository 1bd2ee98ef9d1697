import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { bigintArray } from './arrays.ts';
import type { OutboxEvent } from './outbox.ts';
import { eventOf, unpackMessages, uuidOf } from './outbox-messages.ts';
import { replayColumns, type ReplayRow } from './replays.ts';

/** SQL of the Replayer: who works at a replay, and what it reads. */

export interface HeldReplay extends ReplayRow {
  holder: string;
  /** Everything up to this batch is published. */
  done_batch_id: bigint | null;
  /** Counts this one, and those since anything was published. */
  attempts: number;
}

/** A second late, so that whoever wrote in the period has a transaction number by now. */
const claimStatement = `update replays set holder = $1, held_until = clock_timestamp() + $2::float8 * interval '1 millisecond', attempts = attempts + 1
  where replay_id = (
    select replay_id from replays where ended_at is null and held_until <= clock_timestamp() and to_time < clock_timestamp() - interval '1 second'
    order by created_at limit 1 for update skip locked
  ) returning ${replayColumns}, holder, done_batch_id, attempts`;

/** The oldest replay at which nobody works. */
export async function claimReplay(pool: Pool, holder: string, leaseMs: number): Promise<HeldReplay | undefined> {
  const { rows } = await pool.query<HeldReplay>({ name: 'claim_replay', text: claimStatement, values: [holder, leaseMs] });
  return rows[0];
}

const snapshotStatement = 'select pg_snapshot_xmin(snapshot)::text::bigint as oldest, pg_snapshot_xmax(snapshot)::text::bigint as next from pg_current_snapshot() as snapshot';

/** Resolves to true when every transaction of this moment has ended; to false when that takes longer than maxMs. */
export async function transactionsEnded(pool: Pool, maxMs: number): Promise<boolean> {
  const look = async () => (await pool.query<{ oldest: bigint; next: bigint }>(snapshotStatement)).rows[0] ?? { oldest: 0n, next: 1n };
  const { next } = await look();
  for (let waitedMs = 0; waitedMs < maxMs; waitedMs += 100) {
    if ((await look()).oldest >= next) return true;
    await sleep(100);
  }
  return false;
}

/** Numbers and times are drawn one after the other by each, but may cross between two: by far less than this. */
const slack = "interval '10 seconds'";

/** By halving: times rise with the numbers, and there is no index on them. */
const startStatement = `with recursive halved as (
    select coalesce(min(batch_id), 1) as low, coalesce(max(batch_id), 0) + 1 as high from outbox_batches
    union all
    select case when b.created_at < $1::timestamptz - ${slack} then b.batch_id + 1 else low end, case when b.created_at < $1::timestamptz - ${slack} then high else middle end
    from (select low, high, (low + high) / 2 as middle from halved where low < high) h
      cross join lateral (select batch_id, created_at from outbox_batches where batch_id >= h.middle order by batch_id limit 1) b
  ) select low from halved where low >= high`;

/** No batch before this one is of the period. */
export async function startOf(pool: Pool, { from_time }: ReplayRow): Promise<bigint> {
  const { rows } = await pool.query<{ low: bigint }>(startStatement, [from_time]);
  return rows[0]?.low ?? 0n;
}

export interface Step {
  events: OutboxEvent[];
  /** Everything up to this batch is looked at. */
  upTo: bigint;
  isLast: boolean;
  /** Deletion has taken batches of the period which were not published again. */
  isOvertaken: boolean;
}

interface Batch {
  batch_id: bigint;
  size: number;
  is_within: boolean;
  is_beyond: boolean;
}

const batchesAtOnce = 1000;

const batchesStatement = `select batch_id, size, created_at >= $2::timestamptz and created_at < $3::timestamptz as is_within, created_at >= $3::timestamptz + ${slack} as is_beyond
  from outbox_batches where batch_id > $1 order by batch_id limit ${batchesAtOnce}`;

/** Those of the batches that the replay is of. */
async function readEvents(pool: Pool, source: string, batchIds: bigint[], { topic, account_id }: ReplayRow): Promise<OutboxEvent[]> {
  if (batchIds.length === 0) return [];
  const { rows } = await pool.query<{ records: Buffer }>('select records from outbox where batch_id = any($1::int8[]) order by batch_id', [bigintArray(batchIds)]);
  const messages = rows.flatMap(({ records }) => unpackMessages(records, source, account_id ?? '')).filter((message) => message.topic === topic);
  return messages.map(eventOf).filter((event) => account_id === null || isOf(event, account_id));
}

/** A transfer is of both its sides. */
function isOf({ topic, key, payload }: OutboxEvent, accountId: string): boolean {
  if (key === accountId) return true;
  if (topic !== 'transfers' || payload === null) return false;
  const { transfer } = JSON.parse(payload) as { transfer: { from_account_id: string; to_account_id: string } };
  return transfer.from_account_id === accountId || transfer.to_account_id === accountId;
}

const overtakenStatement = 'select from outbox_purged where ($1::int8 is null or batch_id > $1) and created_at >= $2::timestamptz';

/** What comes behind `done`: of as many batches as have `stepEvents` events, but at least of one. */
export async function nextStep(pool: Pool, source: string, replay: HeldReplay, done: bigint, stepEvents: number): Promise<Step> {
  const { rows: batches } = await pool.query<Batch>(batchesStatement, [done, replay.from_time, replay.to_time]);
  const taken: bigint[] = [];
  let upTo = done;
  let size = 0;
  let isLast = batches.length < batchesAtOnce;
  for (const batch of batches) {
    if (batch.is_beyond) {
      isLast = true;
      break;
    }
    if (taken.length > 0 && size + batch.size > stepEvents) {
      isLast = false;
      break;
    }
    upTo = batch.batch_id;
    if (!batch.is_within) continue;
    taken.push(batch.batch_id);
    size += batch.size;
  }
  const events = await readEvents(pool, source, taken, replay);
  // Asked last: what is not deleted now had not been deleted when it was read.
  const { rowCount } = await pool.query(overtakenStatement, [replay.done_batch_id, replay.from_time]);
  return { events, upTo, isLast, isOvertaken: rowCount !== 0 };
}

const saveStatement = `update replays set done_batch_id = $3, event_count = event_count + $4::int, first_ce_id = coalesce(first_ce_id, $5::uuid), last_ce_id = coalesce($6::uuid, last_ce_id),
    attempts = 0, held_until = clock_timestamp() + $7::float8 * interval '1 millisecond'
  where replay_id = $1 and holder = $2 and ended_at is null
  returning done_batch_id, event_count, first_ce_id, last_ce_id, attempts`;

/** Notes that the step is published; false where another one has taken the replay. */
export async function saveStep(pool: Pool, replay: HeldReplay, { events, upTo }: Step, leaseMs: number): Promise<boolean> {
  const [first, last] = [events[0], events.at(-1)].map((event) => event && uuidOf(event.id));
  const values = [replay.replay_id, replay.holder, upTo, events.length, first ?? null, last ?? null, leaseMs];
  const { rows: [saved] } = await pool.query<Partial<HeldReplay>>(saveStatement, values);
  Object.assign(replay, saved);
  return saved !== undefined;
}

/** Lets go of a replay, for so long. */
export async function putOffReplay(pool: Pool, { replay_id, holder }: HeldReplay, pauseMs: number): Promise<void> {
  await pool.query(`update replays set held_until = clock_timestamp() + $3::float8 * interval '1 millisecond', holder = null where replay_id = $1 and holder = $2`, [replay_id, holder, pauseMs]);
}

/** False where another one has taken the replay. */
export async function endReplay(pool: Pool, { replay_id, holder }: HeldReplay, failure: string | null): Promise<boolean> {
  const { rowCount } = await pool.query('update replays set ended_at = clock_timestamp(), failure = $3, holder = null where replay_id = $1 and holder = $2 and ended_at is null', [replay_id, holder, failure]);
  return rowCount === 1;
}
