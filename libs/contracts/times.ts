/** The last time there is, which some programs send with more decimals: nothing is after it. */
const lastMs = Date.parse('9999-12-31T23:59:59.999Z');

/**
 * Converts a time to UTC with three decimals. Further ones are rounded up: whatever has three decimals is before,
 * or not before, both times alike. Returns undefined for dates that do not exist (30 February) and years outside 1 to
 * 9999.
 */
export function utcTime(text: string): string | undefined {
  const day = text.slice(0, 10);
  const dayMs = Date.parse(day);
  const ms = Date.parse(text);
  // Date.parse accepts 30 February as 2 March.
  if (Number.isNaN(ms) || Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return undefined;
  const utc = new Date(/\.\d{3}\d*[1-9]/.test(text) && ms < lastMs ? ms + 1 : ms).toISOString();
  return /^\d{4}-/.test(utc) && !utc.startsWith('0000') ? utc : undefined;
}

/** Converts an ISO 8601 date (the start of the day in UTC), or time with its offset in any form, like utcTime. */
export function parameterTime(text: string): string | undefined {
  const [, day, time = '', decimals = '', offset = '', hours = '', minutes = '00'] =
    /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d(?::\d\d(?:[.,](\d{1,30}))?)?)(Z|([+-]\d\d)(?::?(\d\d))?))?$/i.exec(text) ?? [];
  if (day === undefined || time === '') return day && utcTime(day);
  const clock = time.replace(/[.,].*/, '');
  return utcTime(`${day}T${clock}${decimals && `.${decimals}`}${hours ? `${hours}:${minutes}` : offset.toUpperCase()}`);
}

/** Returns the day so many days later, or earlier if negative. Throws a RangeError if `day` is not a day such as 2026-01-31. */
export const plusDays = (day: string, days: number): string =>
  new Date(Date.parse(day) + days * 86_400_000).toISOString().slice(0, 10);
