import { plusDays } from '#libs/contracts/times.ts';

/** The days of the bank (contract: days). Pure, but for the calendar, which is set once per process. */

/** The days of a time zone. */
export interface Calendar {
  timeZone: string;
  /** Reports whether this is another name of the zone. */
  isZone(name: string): boolean;
  dayAt(ms: number): string;
  startOfDay(day: string, plusDays: number): string;
}

const utc: Calendar = {
  timeZone: 'UTC',
  isZone: (name) => name === 'UTC',
  dayAt: (ms) => new Date(ms).toISOString().slice(0, 10),
  startOfDay: (day, plusDays) => new Date(Date.parse(day) + plusDays * 86_400_000).toISOString(),
};

let calendar = utc;
let backdateDays = 90;
/** The newest day that was asked for, with its beginning and end, so that a posting needs no calendar. */
let newest = { day: '', from: '', to: '' };

/** Sets the calendar, which is UTC otherwise, and BACKDATE_DAYS. */
export function setCalendar(of: Calendar = utc, days = 90): void {
  [calendar, backdateDays] = [of, days];
  newest = { day: '', from: '', to: '' };
}

/** Returns the time zone whose days these are (BANK_TIME_ZONE). */
export const bankZone = (): string => calendar.timeZone;

/**
 * Throws if days were closed in another zone than that of this process, in which they would be other times. `closedIn`:
 * undefined if no day is closed.
 */
export function requireZone(closedIn: string | undefined): void {
  if (closedIn === undefined || calendar.isZone(closedIn)) return;
  throw new Error(
    `BANK_TIME_ZONE is ${calendar.timeZone}, but days of these books were closed in ${closedIn}, which cannot change any more: set BANK_TIME_ZONE=${closedIn} in every process of the bank`,
  );
}

/** Returns the bank's day at this time, which is ISO 8601 UTC. */
export function dayAt(time: string): string {
  if (time >= newest.from && time < newest.to) return newest.day;
  const day = calendar.dayAt(Date.parse(time));
  if (time >= newest.to) newest = { day, from: calendar.startOfDay(day, 0), to: calendar.startOfDay(day, 1) };
  return day;
}

/** Returns the earliest day that a posting of this day may have, unless a later one is closed. */
export const earliestDay = (today: string): string => plusDays(today, -backdateDays);

/** Returns the days from `from` to `to`, both inclusive, as parameters of a statement: the first, and the one after the last. */
export function dayBounds(from: string | undefined, to: string | undefined): [string, string] {
  return [from ?? '-infinity', to === undefined || to > '9998' ? 'infinity' : plusDays(to, 1)];
}

/** Returns when these days begin and end; undefined if they are open on that side. */
export function dayTimes(from: string | undefined, to: string | undefined): [string | undefined, string | undefined] {
  return [from === undefined ? undefined : dayLimit(from), to === undefined ? undefined : dayLimit(to, 1)];
}

/** Returns when a day begins, or ends (`plusDays` 1), for a parameter of a statement: Postgres has no years 0 and 10000. */
export function dayLimit(day: string, plusDays = 0): string {
  if (day < '0002') return '-infinity';
  return day > '9998' ? 'infinity' : calendar.startOfDay(day, plusDays);
}
