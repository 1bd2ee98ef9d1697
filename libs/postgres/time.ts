import type { Pool } from './pool.ts';

/** Returns the database's time in ms since 1970. */
export async function readTime(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ time: string }>('select clock_timestamp() as time');
  return Date.parse(rows[0]?.time ?? '');
}
