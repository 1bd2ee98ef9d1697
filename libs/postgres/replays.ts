import type { Replay } from '#libs/contracts/administration.ts';
import { type Refusal, refusal, violationsRefusal } from '#libs/contracts/errors.ts';
import { idBits, idOf } from '#libs/contracts/ids.ts';
import type { MessageData, Position } from '#libs/contracts/messages.ts';
import { cutPage } from '#libs/contracts/page.ts';
import { type ReplayedTopic, sideTopic } from '#libs/contracts/topics.ts';
import type { Pool, Queries } from './pool.ts';

/** SQL of the table replays, of the schema on the search_path: asked for, and looked at. replayer.ts works them off. */

export interface ReplayRow {
  replay_id: string;
  topic: ReplayedTopic;
  from_time: string;
  to_time: string;
  account_id: string | null;
  requested_by: string;
  created_at: string;
  ended_at: string | null;
  failure: string | null;
  event_count: bigint;
  first_ce_id: string | null;
  last_ce_id: string | null;
}

export const replayColumns = 'replay_id, topic, from_time, to_time, account_id, requested_by, created_at, ended_at, failure, event_count, first_ce_id, last_ce_id';

export function replayOf(row: ReplayRow): Replay {
  const { replay_id, topic, from_time: from, to_time: to, event_count, ended_at, failure, ...rest } = row;
  const state = ended_at === null ? 'running' : failure === null ? 'completed' : 'failed';
  return { replay_id: idOf('replay', replay_id.replaceAll('-', '')), topic, side_topic: sideTopic(topic), from, to, ...rest, ended_at, failure, state, event_count: Number(event_count) };
}

export async function findReplay(db: Queries, replayId: string): Promise<Replay | undefined> {
  const { rows } = await db.query<ReplayRow>(`select ${replayColumns} from replays where replay_id = $1`, [idBits(replayId)]);
  return rows[0] && replayOf(rows[0]);
}

/** A page by (created_at, replay_id). */
export async function listReplays(pool: Pool, { limit, order, after }: MessageData<'list_ledger_replays'>): Promise<{ items: Replay[]; next?: Position }> {
  const beyond = after ? `where (created_at, replay_id) ${order === 'asc' ? '>' : '<'} ($2::timestamptz, $3::uuid)` : '';
  const values = after ? [limit + 1, after.at, idBits(after.id)] : [limit + 1];
  const { rows } = await pool.query<ReplayRow>(`select ${replayColumns} from replays ${beyond} order by created_at ${order}, replay_id ${order} limit $1`, values);
  return cutPage(rows, limit, replayOf, (row) => ({ at: row.created_at, id: replayOf(row).replay_id }));
}

const insertStatement = `insert into replays (replay_id, topic, from_time, to_time, account_id, requested_by)
  values ($1, $2, $3, coalesce($4::timestamptz, date_trunc('milliseconds', clock_timestamp())), $5, $6) returning ${replayColumns}`;

const boundsStatement = `select clock_timestamp() as now, exists (select from outbox_purged where created_at >= $1::timestamptz) as is_gone,
  (select created_at + interval '1 millisecond' from outbox_purged) as kept_since`;

/**
 * Takes a replay, to be worked off by a Replayer. Refused where the period reaches into the
 * future, or where something of it is not kept any more. A repeat of its id violates the primary key.
 */
export async function insertReplay(client: Queries, { replay_id, topic, from, to, account_id }: MessageData<'create_ledger_replay'>, requestedBy: string): Promise<Replay | { refusal: Refusal }> {
  const { rows: [bounds] } = await client.query<{ now: string; is_gone: boolean; kept_since: string | null }>(boundsStatement, [from]);
  if (!bounds) throw new Error('the database gave no time');
  const wrong = (field: string, message: string) => ({ refusal: violationsRefusal([{ field, code: 'validation_failed', message: `${field} ${message}` }]) });
  if (from >= bounds.now) return wrong('from', 'must lie in the past');
  if (to !== null && to > bounds.now) return wrong('to', 'must not lie in the future');
  if (bounds.is_gone) {
    const message = `from must be ${bounds.kept_since} or later: older events are not kept any more`;
    return { refusal: refusal('events_expired', message, { errors: [{ field: 'from', code: 'events_expired', message }], details: { kept_since: bounds.kept_since } }) };
  }
  const { rows: [row] } = await client.query<ReplayRow>(insertStatement, [idBits(replay_id), topic, from, to, account_id, requestedBy]);
  if (!row) throw new Error('a replay was not inserted');
  return replayOf(row);
}
