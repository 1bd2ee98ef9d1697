import { expect, it } from 'vitest';
import { dayIn, isRepeated, isSameZone, lastTimeOf, startOfDay } from './days.ts';

it.each([
  ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'],
  ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z'],
  ['America/New_York', '2026-11-01', '2026-11-01T04:00:00.000Z', '2026-11-02T05:00:00.000Z'],
  ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15:00.000Z', '2026-01-01T18:15:00.000Z'],
  ['+03:00', '2026-01-01', '2025-12-31T21:00:00.000Z', '2026-01-01T21:00:00.000Z'],
  ['US/Eastern', '2026-01-01', '2026-01-01T05:00:00.000Z', '2026-01-02T05:00:00.000Z'],
  // Clocks are set from 0:00 to 1:00, and from 1:00 back to 0:00.
  ['America/Havana', '2026-03-08', '2026-03-08T05:00:00.000Z', '2026-03-09T04:00:00.000Z'],
  ['America/Havana', '2026-11-01', '2026-11-01T04:00:00.000Z', '2026-11-02T05:00:00.000Z'],
  ['Africa/Cairo', '2026-04-24', '2026-04-23T22:00:00.000Z', '2026-04-24T21:00:00.000Z'],
  ['America/Santiago', '2026-09-06', '2026-09-06T04:00:00.000Z', '2026-09-07T03:00:00.000Z'],
  ['Asia/Beirut', '2026-03-29', '2026-03-28T22:00:00.000Z', '2026-03-29T21:00:00.000Z'],
  // Clocks are set from 0:00 back to 23:00 of the day before.
  ['Asia/Beirut', '2026-10-25', '2026-10-24T22:00:00.000Z', '2026-10-25T22:00:00.000Z'],
  ['America/Sao_Paulo', '2018-02-18', '2018-02-18T03:00:00.000Z', '2018-02-19T03:00:00.000Z'],
  // From 0:01 of the day, which had begun, back to 23:01 of the day before.
  ['America/St_Johns', '2006-10-29', '2006-10-29T02:30:00.000Z', '2006-10-30T03:30:00.000Z'],
  // Skipped, so it is empty.
  ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00.000Z', '2011-12-30T10:00:00.000Z'],
  ['Pacific/Kwajalein', '1993-08-21', '1993-08-21T12:00:00.000Z', '1993-08-21T12:00:00.000Z'],
])('in %s %s lasts from %s to before %s', (zone, day, from, to) => {
  // contract: envelope-22
  expect([startOfDay(zone, day), startOfDay(zone, day, 1)]).toEqual([from, to]);
});

it.each([
  ['Asia/Calcutta', 'Asia/Kolkata', true],
  ['utc', 'Etc/UTC', true],
  ['Europe/Paris', 'Europe/Berlin', false],
  ['UTC', 'Africa/Accra', false],
])('%s and %s are one zone: %s', (one, other, same) => {
  expect(isSameZone(one, other)).toBe(same);
});

const dayMs = 86_400_000;
const zones = Intl.supportedValuesOf('timeZone');
const begin = Date.UTC(1970, 0, 1);

/** Returns a function that computes the offset of the zone from UTC in ms, without the library that days.ts uses. */
function offsets(timeZone: string) {
  const clock = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  return (at: number) => Date.parse(`${clock.format(at).replace(' ', 'T')}Z`) - Math.floor(at / 1000) * 1000;
}

/** Returns the times at which clocks of the zone change, to this precision, where changes are at least 25 days apart. */
function listChanges(zone: string, from: number, to: number, precision: number): number[] {
  const offset = offsets(zone);
  const changes: number[] = [];
  let atLow = offset(from);
  for (let low = from; low < to; low += 25 * dayMs) {
    let [before, after] = [low, low + 25 * dayMs];
    const [atBefore, atAfter] = [atLow, offset(after)];
    atLow = atAfter;
    if (atBefore === atAfter) continue;
    while (after - before > precision) {
      const middle = before + Math.floor((after - before) / 2000) * 1000;
      if (offset(middle) === atBefore) before = middle;
      else after = middle;
    }
    changes.push(after);
  }
  return changes;
}

/** The first day of each year, and the two days around each change of clocks. */
function daysToTry(zone: string): string[] {
  // What the rules of the other zones say does not change after 2037.
  const last = /Casablanca|El_Aaiun/.test(zone) ? 2100 : 2040;
  const around = listChanges(zone, begin, Date.UTC(last + 1, 0, 1), dayMs).flatMap((at) => [at - dayMs, at]);
  const days = [...around, ...Array.from({ length: 131 }, (_, year) => Date.UTC(1970 + year, 0, 1))];
  return days.filter((ms) => ms >= begin).map((ms) => new Date(ms).toISOString().slice(0, 10));
}

const skippedDays = [
  'Pacific/Apia 2011-12-30',
  'Pacific/Enderbury 1994-12-31',
  'Pacific/Fakaofo 2011-12-30',
  'Pacific/Kiritimati 1994-12-31',
  'Pacific/Kwajalein 1993-08-21',
];
const regionOf = (zone: string) => zone.split('/', 1)[0] ?? zone;

// One test for each region, because all zones together take longer than a test may on a machine that does other things.
it.each([...Map.groupBy(zones, regionOf)])(
  'each day from 1970 to 2100 in the zones of %s begins when the zone first shows it',
  (region, zonesOfRegion) => {
    // contract: envelope-22
    const skipped: string[] = [];
    const wrong = zonesOfRegion.flatMap((zone) =>
      daysToTry(zone).flatMap((day) => {
        const start = Date.parse(startOfDay(zone, day));
        const [before, shown] = [dayIn(zone, start - 1), dayIn(zone, start)];
        if (shown > day && startOfDay(zone, day, 1) === startOfDay(zone, day)) skipped.push(`${zone} ${day}`);
        else if (!(before < day && shown === day)) return [`${zone} ${day} begins ${startOfDay(zone, day)}`];
        return [];
      }),
    );
    expect(wrong).toEqual([]);
    expect(skipped).toEqual(skippedDays.filter((day) => regionOf(day) === region));
  },
);

it('a time is repeated on both sides of each change that sets clocks back, and of no other', () => {
  const wrong = zones.flatMap((zone) =>
    listChanges(zone, Date.UTC(2025, 0, 1), Date.UTC(2028, 0, 1), 1000).flatMap((at) => {
      const back = offsets(zone)(at - 1) - offsets(zone)(at);
      const sides = back > 0 ? [at - back, at - 1, at, at + back - 1] : [];
      const outside = back > 0 ? [at - back - 1, at + back] : [at - 1, at, at + 3_600_000];
      const isRight = sides.every((ms) => isRepeated(zone, ms)) && !outside.some((ms) => isRepeated(zone, ms));
      return isRight ? [] : [`${zone} ${new Date(at).toISOString()}`];
    }),
  );
  expect(wrong).toEqual([]);
});

it.each([
  ['2026-03-04T00:30:00Z', 'UTC', '2026-03-03T03:00:00.000Z'],
  ['2026-03-04T03:00:00Z', 'UTC', '2026-03-04T03:00:00.000Z'],
  ['2026-03-04T00:30:00Z', 'Africa/Nairobi', '2026-03-04T00:00:00.000Z'],
  ['2026-03-03T23:59:59Z', 'Africa/Nairobi', '2026-03-03T00:00:00.000Z'],
  // The clocks skip from 02:00 to 03:00, and a day has 23 hours.
  ['2026-03-29T00:30:00Z', 'Europe/Berlin', '2026-03-28T02:00:00.000Z'],
  ['2026-03-29T01:30:00Z', 'Europe/Berlin', '2026-03-29T01:00:00.000Z'],
])('at %s in %s it was last 03:00 at %s', (at, zone, last) => {
  expect(new Date(lastTimeOf(zone, '03:00', Date.parse(at))).toISOString()).toBe(last);
});
