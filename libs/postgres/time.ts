import type { Queries } from './pool.ts';

const timeoutMs = 4_000;

/** Returns the database's time in ms since 1970. Rejects if it does not respond within 4 s. */
export async function readTime(pool: Queries): Promise<number> {
  const { rows } = await pool.query<{ time: string }>({
    text: 'select clock_timestamp() as time',
    query_timeout: timeoutMs,
  });
  return Date.parse(rows[0]?.time ?? '');
}
