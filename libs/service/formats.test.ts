import { afterEach, expect, it } from 'vitest';
import { showFullTime, showTime, showUntil } from '../../services/dashboard/html/show.ts';
import { bankDay, endOfDay, moneyText, setBankFormats, startOfDay } from './formats.ts';

afterEach(() => setBankFormats({ timeZone: 'UTC', locale: undefined }));

const moment = '2026-06-30T22:15:09.123Z';

it('by default times are UTC with digits only', () => {
  expect(showTime(moment).text).toBe(`<time datetime="${moment}">2026-06-30 22:15:09</time>`);
  expect(showFullTime(moment).text).toMatch(/<\/time> UTC$/);
  expect(moneyText('-1234567.5', 'KES')).toBe('−1\u00a0234\u00a0567.50');
  expect([startOfDay('2026-06-30'), endOfDay('2026-06-30'), startOfDay('nonsense')]).toEqual([
    '2026-06-30T00:00:00.000Z',
    '2026-07-01T00:00:00.000Z',
    'nonsense',
  ]);
});

it('times and days are those of the bank’s time zone, with UTC available', () => {
  setBankFormats({ timeZone: 'Africa/Nairobi', locale: undefined });
  expect(showTime(moment).text).toBe(
    `<time datetime="${moment}" title="2026-06-30 22:15:09 UTC">2026-07-01 01:15:09</time>`,
  );
  expect(showFullTime(moment).text).toMatch(/<\/time> GMT\+3$/);
  expect(bankDay(Date.parse(moment))).toBe('2026-07-01');
  expect([startOfDay('2026-07-01'), endOfDay('2026-07-01')]).toEqual([
    '2026-06-30T21:00:00.000Z',
    '2026-07-01T21:00:00.000Z',
  ]);
});

it.each([
  ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00.000Z', '2026-03-29T22:00:00.000Z'],
  ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00:00.000Z', '2026-10-25T23:00:00.000Z'],
  ['America/New_York', '2026-11-01', '2026-11-01T04:00:00.000Z', '2026-11-02T05:00:00.000Z'],
  ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15:00.000Z', '2026-01-01T18:15:00.000Z'],
])('a day in %s, %s, lasts from %s to %s, also when clocks change', (timeZone, day, from, to) => {
  setBankFormats({ timeZone, locale: undefined });
  expect([startOfDay(day), endOfDay(day)]).toEqual([from, to]);
});

it.each([
  ['de-DE', '−9.999.999.999.999,99', '30.06.2026, 22:15:09'],
  ['en-KE', '−9,999,999,999,999.99', '30 Jun 2026, 22:15:09'],
  ['en-IN', '−99,99,99,99,99,999.99', '30 Jun 2026, 10:15:09 pm'],
])('amounts and times have the format of %s, exact to the last digit', (locale, amount, time) => {
  setBankFormats({ timeZone: 'UTC', locale });
  expect(moneyText('-9999999999999.99', 'USD')).toBe(amount);
  expect(showTime(moment).text).toContain(`>${time}</time>`.replaceAll('\u202f', ' '));
});

it('the end of a day is shown by that day in the bank’s time zone, another time to the second', () => {
  setBankFormats({ timeZone: 'Africa/Nairobi', locale: undefined });
  expect(showUntil(endOfDay('2026-12-02')).text).toBe(
    'the end of <time datetime="2026-12-02T21:00:00.000Z" title="2026-12-02 21:00:00 UTC">2026-12-02</time>',
  );
  expect(showUntil('2026-12-03T00:00:00.000Z').text).toContain('>2026-12-03 03:00:00</time> GMT+3');
});
