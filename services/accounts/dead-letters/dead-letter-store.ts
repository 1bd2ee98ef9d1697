import type { DeadLetter } from '#libs/contracts/dead-letters.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import { insertRows, rowById } from '#libs/postgres/rows.ts';

/** SQL of dead letters. Topics are stored without prefix. */

export type DeadLetterRow = Omit<DeadLetter, 'offset' | 'source_offset'> & {
  offset: bigint;
  source_offset: bigint | null;
};
/** A dead letter as it arrives. */
export type NewDeadLetter = Omit<DeadLetterRow, 'state' | 'decided_by' | 'decided_at' | 'drop_reason'>;

export function toDeadLetter(row: DeadLetterRow): DeadLetter {
  return {
    ...row,
    offset: Number(row.offset),
    source_offset: row.source_offset === null ? null : Number(row.source_offset),
  };
}

const arriving =
  'dead_letter_id, topic, "partition", "offset", source_topic, source_partition, source_offset, key, code, reason, size_bytes, message, request_id, dead_at';

export const deadLetterColumns = `${arriving}, state, decided_by, decided_at, drop_reason`;

/** Inserts new dead letters and skips known ones. */
export async function insertDeadLetters(client: Queries, letters: readonly NewDeadLetter[]): Promise<void> {
  const rows = letters.map((letter) => ({
    ...letter,
    offset: String(letter.offset),
    source_offset: letter.source_offset === null ? null : String(letter.source_offset),
  }));
  await client.query(`${insertRows('dead_letters', arriving)} on conflict do nothing`, [JSON.stringify(rows)]);
}

const byId = `select ${deadLetterColumns} from dead_letters where dead_letter_id = $1`;

export function findDeadLetter(db: Queries, id: string): Promise<DeadLetterRow | undefined> {
  return rowById(db, 'dead_letter', id, byId);
}

/** Locks and returns the dead letter, so that it is decided once. */
export function lockDeadLetter(client: Queries, id: string): Promise<DeadLetterRow | undefined> {
  return rowById(client, 'dead_letter', id, `${byId} for update`);
}

export async function decideDeadLetter(client: Queries, letter: DeadLetterRow): Promise<void> {
  const { dead_letter_id, state, decided_by, decided_at, drop_reason } = letter;
  await client.query(
    'update dead_letters set state = $2, decided_by = $3, decided_at = $4, drop_reason = $5 where dead_letter_id = $1',
    [dead_letter_id, state, decided_by, decided_at, drop_reason],
  );
}

export async function countOpenDeadLetters(pool: Pool): Promise<number> {
  const result = await pool.query<{ open: bigint }>("select count(*) as open from dead_letters where state = 'open'");
  return Number(result.rows[0]?.open ?? 0);
}
