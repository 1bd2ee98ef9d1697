import type { Queries } from '#libs/postgres/pool.ts';
import { requireZone } from '../domain/calendar.ts';

/**
 * Throws if the days of the books were closed in another zone than that of this process. An unreachable database is not an
 * error, because every batch looks at the zone (readClockAndKnownIds).
 */
export async function checkZone(books: Queries): Promise<void> {
  let closedIn: string | undefined;
  try {
    const { rows } = await books.query<{ time_zone: string }>('select time_zone from closed_days limit 1');
    closedIn = rows[0]?.time_zone;
  } catch {
    // Also what is thrown before there is a connection: too many open files.
    return;
  }
  requireZone(closedIn);
}
