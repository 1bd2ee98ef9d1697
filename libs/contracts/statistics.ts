import { z } from 'zod';
import { money } from './money.ts';
import { type EndpointRows, field, type Meanings, meaning, message, shown } from './subject.ts';

/** Operations and amounts per unit of time, and per currency. */

export const statisticsUnit = z.enum(['minute', 'hour', 'day']);
/** The maximum number of buckets in one response. It allows more than one day in minutes. */
export const maxBuckets = 1500;

/** Applied operations by time of acceptance, in UTC. Empty buckets are omitted. */
const postingStatisticsSchema = z
  .object({
    currency: z.string(),
    unit: statisticsUnit,
    from: shown.time,
    to: shown.time,
    /** False if the period has more transactions than are scanned; then only those since `counted_from` are counted. */
    complete: z.boolean(),
    counted_from: shown.time,
    /** A transfer or reversal counts as one operation with one amount. */
    buckets: z.array(
      z.object({ start: shown.time, operations: z.number().int().min(0), amount: money }).meta({ id: 'PostingBucket' }),
    ),
  })
  .meta({ id: 'PostingStatistics' });
export type PostingStatistics = z.infer<typeof postingStatisticsSchema>;

/** Totals of a period by currency, the currency with the most operations first. */
const postingTotalsSchema = z
  .object({
    from: shown.time,
    to: shown.time,
    /** As in the statistics. */
    complete: z.boolean(),
    counted_from: shown.time,
    totals: z.array(
      z
        .object({
          currency: z.string(),
          operations: z.number().int().min(0),
          refused: z.number().int().min(0),
          /** Cash deposited and withdrawn. Reversals count in the opposite direction. */
          money_in: money,
          money_out: money,
          /** Transferred between customers. */
          transferred: money,
        })
        .meta({ id: 'PostingTotal' }),
    ),
  })
  .meta({ id: 'PostingTotals' });
export type PostingTotals = z.infer<typeof postingTotalsSchema>;

/** Cash by day of the bank, currencies without any omitted. */
const cashDaysSchema = z
  .object({
    from: shown.day,
    to: shown.day,
    /** False if there are too many transactions to count at once. */
    complete: z.boolean(),
    /** The first day that is counted. */
    counted_from: shown.day,
    days: z.array(
      z.object({ date: shown.day, currency: z.string(), money_in: money, money_out: money }).meta({ id: 'CashDay' }),
    ),
  })
  .meta({ id: 'CashDays' });
export type CashDays = z.infer<typeof cashDaysSchema>;
const cashDaysQuery = z.strictObject({ days: z.enum(['7', '14', '30']).default('14') });

const statisticsQuery = z.strictObject({
  currency: field.currency,
  unit: statisticsUnit.default('hour'),
  from: field.time.optional(),
  to: field.time.optional(),
});
const totalsQuery = z.strictObject({ from: field.time.optional(), to: field.time.optional() });

export const statisticsEndpoints = {
  get_posting_statistics: {
    route: 'GET /admin/posting-statistics',
    summary: 'Get operations and amounts per minute, hour, or day',
    scope: 'books:read',
    query: statisticsQuery,
    description:
      '`to` defaults to now; `from` defaults to an hour of minutes, a day of hours, or thirty days. At most 1,500 buckets. Counts the newest 200,000 transactions of the period; `complete` says whether these are all.',
    errors: ['unsupported_currency'],
  },
  get_posting_totals: {
    route: 'GET /admin/posting-totals',
    summary: 'Get operations and money in and out per currency',
    scope: 'books:read',
    query: totalsQuery,
    description:
      '`to` defaults to now; `from` defaults to one day before it. Counts the newest 200,000 transactions of the period; `complete` says whether these are all.',
  },
  get_cash_days: {
    route: 'GET /admin/cash-days',
    summary: 'Get the cash that came in and went out, by day',
    scope: 'books:read',
    query: cashDaysQuery,
    description:
      'Days are those of the bank on which postings were accepted. If too many were not counted before, `complete` is false, and a later request returns more.',
    answers: { days: { counted_from: '2026-01-01', from: '2026-01-01' } },
  },
} satisfies EndpointRows;

export const statisticsMessages = {
  get_cash_days: message.ledger.query(cashDaysQuery.shape, cashDaysSchema),
  get_posting_statistics: message.ledger.query(statisticsQuery.shape, postingStatisticsSchema),
  get_posting_totals: message.ledger.query(totalsQuery.shape, postingTotalsSchema),
};

export const statisticsMeanings = {
  fields: {
    totals: 'By currency, sorted by code',
    refused: 'Postings that were refused',
    money_in: `Cash deposited, minus reversals, ${meaning.inUnits}`,
    money_out: `Cash withdrawn, minus reversals, ${meaning.inUnits}`,
    transferred: `Transferred between customers, ${meaning.inUnits}`,
    'PostingStatistics.from': `Accepted at or after this time, ${meaning.utc}`,
    'PostingStatistics.to': `Accepted before this time, ${meaning.utc}`,
    'get_posting_statistics.from':
      'Accepted at or after this time: ISO 8601 date or time; default: a number of units before `to`',
    'get_posting_statistics.to': 'Accepted before this time: ISO 8601 date or time; default: now',
    unit: 'Length of a bucket: minute, hour or day, in UTC',
    counted_from: `The start of the counted period, ${meaning.utc}; later than \`from\` if not complete`,
    'CashDays.from': 'The first day',
    'CashDays.to': 'The last day: the current one',
    'CashDays.counted_from': 'The first day that is counted; later than `from` if not complete',
    'CashDays.days': 'By day and currency, the oldest first; without cash omitted',
    'get_cash_days.days': 'How many days, with the current one: 7, 14 or 30',
    buckets: 'One per unit of time with postings, in order',
    start: `Start of the unit of time, ${meaning.utc}`,
    operations: 'Number of operations; a transfer counts once',
    'PostingBucket.amount': `Sum of the operations, ${meaning.inUnits}`,
  },
} satisfies Meanings;
