import type { Queries } from '#libs/postgres/pool.ts';
import { isSameZone } from '#libs/service/days.ts';
import { bankZone } from '../domain/calendar.ts';

/** The zone in which days were closed. In another one, a day that nobody can post to any more would be other times. */

/** Throws if days were closed in another zone than that of this process. `closedIn`: undefined if no day is closed. */
export function requireZone(closedIn: string | undefined): void {
  const own = bankZone();
  if (closedIn === undefined || isSameZone(closedIn, own)) return;
  throw new Error(
    `BANK_TIME_ZONE is ${own}, but days of these books were closed in ${closedIn}, which cannot change any more: set BANK_TIME_ZONE=${closedIn} in every process of the bank`,
  );
}

/**
 * Throws if the days of the books were closed in another zone than that of this process. An unreachable database is not an
 * error, because every batch looks at the zone (readClockAndKnownIds).
 */
export async function checkZone(books: Queries): Promise<void> {
  const found = await books
    .query<{ time_zone: string }>('select time_zone from closed_days limit 1')
    .catch(() => undefined);
  requireZone(found?.rows[0]?.time_zone);
}
