import { Temporal } from 'temporal-polyfill';

/** The days of a time zone, by its IANA name. Nothing else computes where a day begins, or which day it is. */

const dayMs = 86_400_000;
/** Creating a format takes long; using one takes a tenth of the time of Temporal. */
const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns what clocks in the zone show: 2026-01-31 23:59:59. */
function clockText(timeZone: string, at: number | Date): string {
  const known = formats.get(timeZone);
  // The Swedish format is that of ISO 8601, with a space between date and time.
  const format = known ?? new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  if (!known) formats.set(timeZone, format);
  return format.format(at);
}

/** Returns the day that the zone shows at this time, such as 2026-01-31. `at`: in ms since 1970, or a Date. */
export const dayIn = (timeZone: string, at: number | Date): string => clockText(timeZone, at).slice(0, 10);

/**
 * Returns the first time that the zone shows as this day, `plusDays` days later, as ISO 8601 UTC. If the zone skipped
 * that day, returns the beginning of the next one, so that the skipped day is empty. Throws a RangeError if `day` is not
 * a day such as 2026-01-31.
 */
export function startOfDay(timeZone: string, day: string, plusDays = 0): string {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(day)) throw new RangeError(`${day} is not a day`);
  const start = Temporal.PlainDate.from(day).add({ days: plusDays }).toZonedDateTime(timeZone);
  return new Date(start.epochMilliseconds).toISOString();
}

/** Returns what clocks in the zone show, with the zone's offset: 2026-01-31T23:59:59.999+03:00. `at`: in ms since 1970. */
export const timeIn = (timeZone: string, at: number): string =>
  Temporal.Instant.fromEpochMilliseconds(at).toString({ timeZone, smallestUnit: 'millisecond' });

/** Reports whether clocks in the zone show this time twice, because they are set back. `at`: in ms since 1970. */
export function isRepeated(timeZone: string, at: number): boolean {
  const offset = (ms: number) => Date.parse(`${clockText(timeZone, ms).replace(' ', 'T')}Z`) - ms;
  const second = Math.floor(at / 1000) * 1000;
  if (offset(second - dayMs) === offset(second + dayMs)) return false;
  const shown = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone).toPlainDateTime();
  const moment = (disambiguation: 'earlier' | 'later') => shown.toZonedDateTime(timeZone, { disambiguation });
  return !moment('earlier').equals(moment('later'));
}

/** Reports whether both names are of one zone, such as Asia/Calcutta and Asia/Kolkata. */
export function isSameZone(one: string, other: string): boolean {
  const idOf = (timeZone: string) => new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone;
  return one === other || idOf(one) === idOf(other);
}

/** Returns the last time, not after `at`, at which clocks in the zone showed this time of day (03:00). In ms since 1970. */
export function lastTimeOf(timeZone: string, time: string, at: number): number {
  const shown = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone);
  const daysAgo = (days: number) => shown.subtract({ days }).withPlainTime(time).epochMilliseconds;
  return daysAgo(0) <= at ? daysAgo(0) : daysAgo(1);
}

/** Returns the days of one zone. */
export function calendarIn(timeZone: string) {
  return {
    timeZone,
    isZone: (name: string) => isSameZone(timeZone, name),
    dayAt: (ms: number) => dayIn(timeZone, ms),
    startOfDay: (day: string, plusDays: number) => startOfDay(timeZone, day, plusDays),
  };
}
