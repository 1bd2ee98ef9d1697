/**
 * Returns the statement that inserts rows into these columns. Its parameter $`parameter` is the rows as a JSON array of
 * objects with the columns' names; a missing field is null. Values of json columns
 * are stored as they were written. Postgres rejects NUL (22P05).
 */
export function insertRows(table: string, columns: string, parameter = 1): string {
  return `insert into ${table} (${columns}) select ${columns} from json_populate_recordset(null::${table}, $${parameter})`;
}
