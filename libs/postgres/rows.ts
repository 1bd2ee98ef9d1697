import { type IdKind, isId } from '#libs/contracts/ids.ts';
import type { Queries } from './pool.ts';

/**
 * Returns the statement that inserts rows into these columns. Its parameter $`parameter` is the rows as a JSON array of
 * objects with the columns' names; a missing field is null. Values of json columns
 * are stored as they were written. Postgres rejects NUL (22P05).
 */
export function insertRows(table: string, columns: string, parameter = 1): string {
  return `insert into ${table} (${columns}) select ${columns} from json_populate_recordset(null::${table}, $${parameter})`;
}

/** Returns the row of a statement whose parameter $1 is the id. A malformed id is an unknown one. */
export async function rowById<Row extends object>(
  db: Queries,
  kind: IdKind,
  id: string,
  statement: string,
): Promise<Row | undefined> {
  return isId(kind, id) ? (await db.query<Row>(statement, [id])).rows[0] : undefined;
}
