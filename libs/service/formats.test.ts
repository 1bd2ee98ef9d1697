import { afterEach, expect, it, vi } from 'vitest';
import { showFullTime, showSecond, showTime, showUntil } from '../../services/dashboard/html/show.ts';
import { bankDay, endOfDay, minuteText, moneyText, setBankFormats, startOfDay, timeText } from './formats.ts';

afterEach(() => setBankFormats({ timeZone: 'UTC', locale: undefined }));

const moment = '2026-06-30T22:15:09.123Z';

it('by default times are UTC with digits only', () => {
  const start = `<time datetime="${moment}" title="2026-06-30 22:15:09 UTC">`;
  expect(showTime(moment).text).toBe(`${start}2026-06-30 22:15</time>`);
  expect(showSecond(moment).text).toBe(`${start}2026-06-30 22:15:09</time>`);
  expect(showFullTime(moment).text).toBe(`${start}2026-06-30 22:15:09 UTC</time>`);
  expect(moneyText('-1234567.5', 'KES')).toBe('−1\u00a0234\u00a0567.50');
  expect([startOfDay('2026-06-30'), endOfDay('2026-06-30'), startOfDay('nonsense')]).toEqual([
    '2026-06-30T00:00:00.000Z',
    '2026-07-01T00:00:00.000Z',
    'nonsense',
  ]);
});

it('times and days are those of the bank’s time zone', () => {
  setBankFormats({ timeZone: 'Africa/Nairobi', locale: undefined });
  expect(showTime(moment).text).toBe(
    `<time datetime="${moment}" title="2026-07-01 01:15:09 GMT+3">2026-07-01 01:15</time>`,
  );
  expect(showFullTime(moment).text).toContain('>2026-07-01 01:15:09 GMT+3</time>');
  expect(bankDay(Date.parse(moment))).toBe('2026-07-01');
  expect([startOfDay('2026-07-01'), endOfDay('2026-07-01')]).toEqual([
    '2026-06-30T21:00:00.000Z',
    '2026-07-01T21:00:00.000Z',
  ]);
});

it.each(['2026-02-30', '2026-13-01', '2026-1-1', '20260101', '2026-01-01T00:00:00Z', ''])(
  'what is not a day stays as it is, so that the API refuses it: %s',
  (text) => {
    expect([startOfDay(text), endOfDay(text)]).toEqual([text, text]);
  },
);

it.each([
  ['de-DE', '−9.999.999.999.999,99', '30.06.2026, 22:15:09'],
  ['en-KE', '−9,999,999,999,999.99', '30 Jun 2026, 22:15:09'],
  ['en-IN', '−99,99,99,99,99,999.99', '30 Jun 2026, 10:15:09 pm'],
])('amounts and times have the format of %s, exact to the last digit', (locale, amount, time) => {
  setBankFormats({ timeZone: 'UTC', locale });
  expect(moneyText('-9999999999999.99', 'USD')).toBe(amount);
  expect(showSecond(moment).text).toContain(`>${time}</time>`.replaceAll('\u202f', ' '));
});

it('lists show times to the minute, and the year only if it is another one', () => {
  vi.useFakeTimers({ now: Date.parse('2026-12-31T20:59:59Z') });
  setBankFormats({ timeZone: 'Africa/Nairobi', locale: 'en-KE' });
  expect(minuteText(moment)).toBe('1 Jul, 01:15');
  expect(minuteText('2025-12-31T21:00:00Z')).toBe('1 Jan, 00:00');
  expect(minuteText('2025-12-31T20:59:59Z')).toBe('31 Dec 2025, 23:59');
  vi.useRealTimers();
});

it.each([
  ['th-TH', '30 มิ.ย. 2026 22:15:09'],
  ['th-TH-u-ca-buddhist-nu-thai', '30 มิ.ย. 2026 22:15:09'],
  ['fa-IR', '30 ژوئن 2026، 22:15:09'],
  ['ar-SA-u-ca-islamic-umalqura', '30\u200f/06\u200f/2026، 10:15:09 م'],
  ['ne-NP', '2026 जुन 30, 22:15:09'],
  ['ja-JP-u-ca-japanese', '2026/06/30 22:15:09'],
  ['zh-TW-u-ca-roc', '2026年6月30日 晚上10:15:09'],
  [undefined, '2026-06-30 22:15:09'],
])('in %s days are those of the filters, and digits those of amounts', (locale, time) => {
  setBankFormats({ timeZone: 'UTC', locale });
  expect(timeText(moment).replaceAll(/[\u202f\u00a0]/g, ' ')).toBe(time);
});

it('no locale that this version of Node knows changes the calendar or the digits', () => {
  const languages = 'abcdefghijklmnopqrstuvwxyz'.split('').flatMap((a, _, all) => all.map((b) => `${a}${b}`));
  const locales = Intl.DateTimeFormat.supportedLocalesOf(languages).flatMap((one) => [
    one,
    `${one}-u-nu-native-ca-persian`,
  ]);
  const wrong = locales.filter((locale) => {
    setBankFormats({ timeZone: 'UTC', locale });
    const shown = [timeText(moment), moneyText('1234567', 'JPY')];
    return (
      !/2026.*30|30.*2026/.test(shown[0] ?? '') ||
      !/15.0?9/.test(shown[0] ?? '') ||
      !/1.?2.?34.?567/.test(shown[1] ?? '')
    );
  });
  expect([locales.length > 200, wrong]).toEqual([true, []]);
});

it.each([
  ['Europe/Berlin', '2026-10-25T00:30:00.000Z', '2026-10-25 02:30:00 GMT+2'],
  ['Europe/Berlin', '2026-10-25T01:30:00.999Z', '2026-10-25 02:30:00 GMT+1'],
  ['Europe/Berlin', '2026-10-24T23:59:59.999Z', '2026-10-25 01:59:59'],
  ['Europe/Berlin', '2026-10-25T02:00:00.000Z', '2026-10-25 03:00:00'],
  ['Europe/Berlin', '2026-03-29T01:00:00.000Z', '2026-03-29 03:00:00'],
  ['Europe/London', '2026-10-25T01:30:00.000Z', '2026-10-25 01:30:00 UTC'],
  ['America/New_York', '2026-11-01T05:30:00.000Z', '2026-11-01 01:30:00 GMT-4'],
  ['America/New_York', '2026-11-01T06:30:00.000Z', '2026-11-01 01:30:00 GMT-5'],
  ['Australia/Lord_Howe', '2026-04-04T14:45:00.000Z', '2026-04-05 01:45:00 GMT+11'],
  ['Australia/Lord_Howe', '2026-04-04T15:15:00.000Z', '2026-04-05 01:45:00 GMT+10:30'],
  ['Africa/Nairobi', '2026-10-25T00:30:00.000Z', '2026-10-25 03:30:00'],
])('where clocks of %s are set back, %s is shown as %s', (timeZone, iso, shown) => {
  // contract: envelope-23
  setBankFormats({ timeZone, locale: undefined });
  expect(timeText(iso)).toBe(shown);
  // To the minute, unless there are two of it.
  expect(minuteText(iso)).toBe(/ [UG]/.test(shown) ? shown : shown.slice(0, -3));
});

it('the end of a day is shown by that day in the bank’s time zone, another time to the minute', () => {
  setBankFormats({ timeZone: 'Africa/Nairobi', locale: undefined });
  expect(showUntil(endOfDay('2026-12-02')).text).toBe(
    'the end of <time datetime="2026-12-02T21:00:00.000Z" title="2026-12-03 00:00:00 GMT+3">2026-12-02</time>',
  );
  expect(showUntil('2026-12-03T00:00:00.000Z').text).toContain('>2026-12-03 03:00</time>');
});
