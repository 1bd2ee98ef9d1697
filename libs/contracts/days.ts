import { z } from 'zod';
import { money } from './money.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';

/** The books by the day (contract: days): value dates, that is the days for which postings count, and closed days. */

/** In requests and commands. Null and absent mean the bank's day at the decision. */
export const givenDay = { effective_date: field.day.nullish() };
/** In resources; omitted while it is not known. */
export const shownDay = { effective_date: shown.day.optional() };
export const eventDay = { effective_date: event.since('1.0.0', event.day) };

/** Returns the value date if one was given. Pure. */
export function pickDay({ effective_date: day }: { effective_date?: string | null | undefined }) {
  return day == null ? {} : { effective_date: day };
}

/** The filters of a list by value date. */
export const dayFilters = { effective_from: field.day.optional(), effective_to: field.day.optional() };

/** What moved on a closed day, per currency and class of accounts. */
const dayTotal = z
  .object({
    currency: z.string(),
    class: z.enum(['liability', 'asset']),
    opening: money,
    debits: money,
    credits: money,
    closing: money,
    entry_count: z.number().int().min(0),
    operation_count: z.number().int().min(0),
  })
  .meta({ id: 'DayTotal' });
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
export const dayClosingSchema = z
  .object({
    date: shown.day,
    closed_at: shown.time,
    closed_by: z.string(),
    totals: z.array(dayTotal),
    accounts_sha256: sha256,
    previous_hash: sha256,
    hash: sha256,
  })
  .meta({ id: 'DayClosing' });
export type DayClosing = z.infer<typeof dayClosingSchema>;

/** A line of a closing: an account with movement. Its bytes are those that were hashed, so amounts are decimal strings. */
export const dayLineSchema = z
  .object({
    account_id: z.string(),
    account_number: z.string(),
    currency: z.string(),
    class: z.enum(['liability', 'asset']),
    opening: z.string(),
    closing: z.string(),
    sum: z.string(),
    count: z.number().int().min(1),
    first_sequence: z.number().int().min(1),
    last_sequence: z.number().int().min(1),
  })
  .meta({ id: 'DayLine' });
export type DayLine = z.infer<typeof dayLineSchema>;

/** The balance of an account on a day. */
const dayBalanceSchema = z
  .object({
    account_id: z.string(),
    account_number: z.string(),
    currency: z.string(),
    balance: z.string(),
  })
  .meta({ id: 'DayBalance' });

export const dayEndpoints = {
  close_day: {
    route: 'POST /admin/day-closings',
    summary: 'Close a day of the books',
    scope: 'books:close',
    body: z.strictObject({ date: field.day }),
    description:
      'The day must have ended, and be the one after the last closed; the first may be any, and closes all before it. From then on, no posting with that value date or an earlier one is decided.',
    result: dayClosingSchema,
    success: 201,
    errors: ['day_closed', 'day_not_closable'],
    requests: { close: {} },
  },
  list_day_closings: {
    route: 'GET /admin/day-closings',
    summary: 'List closed days',
    scope: 'books:read',
    shape: 'page',
  },
  get_day_closing: {
    route: 'GET /admin/day-closings/:date',
    summary: 'Get a closed day',
    scope: 'books:read',
    errors: ['day_not_found'],
  },
  list_day_lines: {
    route: 'GET /admin/day-closings/:date/accounts',
    summary: 'Get the accounts with movement on a closed day',
    scope: 'books:read',
    description:
      'Streams JSON lines, by account_id, which never change and have the hash `accounts_sha256`, or CSV (`Accept: text/csv`). A caller may request one such file at a time; a second gets a 429.',
    result: dayLineSchema,
    shape: 'stream',
    errors: ['day_not_found'],
  },
  list_balances: {
    route: 'GET /admin/balances',
    summary: 'Get the balances of all accounts of clients on a day',
    scope: 'books:read',
    query: z.strictObject({ on: field.day.optional(), currency: field.currency.optional() }),
    description:
      'Streams JSON lines, or CSV (`Accept: text/csv`): every account, by account_id, with its balance by value date at the end of the day `on`, by default the current day. All are of one moment. A caller may request one such file at a time; a second gets a 429.',
    result: dayBalanceSchema,
    shape: 'stream',
    errors: ['unsupported_currency'],
  },
} satisfies EndpointRows;

/** A page of a file that the gateway streams. `lines`: JSON texts. */
const linesSchema = z.object({ lines: z.array(z.string()), next: z.string().optional(), as_of: z.string().optional() });
const after = z.string().max(64).optional();

export const dayMessages = {
  /** The reply comes when the day is closed; its totals are calculated afterwards. */
  close_day: message.ledger.command(
    { date: field.day },
    dayClosingSchema.pick({ date: true, closed_at: true, closed_by: true }),
  ),
  list_day_closings: message.ledger.query(message.page, message.pageSchema(dayClosingSchema)),
  get_day_closing: message.ledger.query({ date: z.string() }, dayClosingSchema),
  list_day_lines: message.ledger.query({ date: z.string(), after }, linesSchema),
  /** `as_of`: the time of the first page, which all have. */
  list_balances: message.ledger.query(
    { on: field.day.optional(), currency: field.currency.optional(), after, as_of: message.time.optional() },
    linesSchema,
  ),
};

const eventTotal = dayTotal.extend({ currency: event.currencyCode });

export const dayEvents = {
  'corebanking.day.closed.v1': event.ledgerRow('days', {
    summary: 'A day was closed. The key is the day',
    fields: {
      ...dayClosingSchema.shape,
      date: event.day,
      closed_at: event.moment,
      closed_by: z.string(),
      totals: z.array(event.named('DayTotal', eventTotal)),
      /** By partition of the topic `transactions`: the offset of its last record with postings of the day, or of a later one; -1: none. */
      last_sequences: z.record(z.string().regex(/^\d+$/), z.number().int().min(-1)),
      /** The lines of Teller and Vault, because no other topic has their numbers and balances. */
      system_accounts: z.array(
        event.named(
          'SystemAccountDay',
          dayLineSchema.extend({
            account_id: event.idField('account'),
            currency: event.currencyCode,
            opening: money,
            closing: money,
            sum: money,
            count: dayLineSchema.shape.count.describe('Number of entries of the day'),
          }),
        ),
      ),
    },
    example: { last_sequences: { '0': 4711, '1': 4710 } },
  }),
};

export const dayMeanings = {
  fields: {
    effective_date:
      "The value date, a day of the bank such as 2026-01-31; in a request, omitted or null: the bank's day when it is decided, and any other day requires transactions:backdate. Omitted while it is not known",
    date: 'The day, in the time zone of the bank',
    closed_at: `When it was closed, ${meaning.utc}`,
    closed_by: `Who closed it: ${meaning.actorForms}`,
    'DayClosing.totals': 'Per currency and class, over all accounts',
    class: 'liability (Savings, Checking, Current) or asset (Loan, Teller, Vault)',
    opening: 'The balance by value date before the day',
    debits: 'The sum of DR entries of the day',
    credits: 'The sum of CR entries of the day',
    closing: 'The balance by value date at the end of the day',
    operation_count: 'Number of operations of the day',
    'DayTotal.entry_count': 'Number of entries of the day',
    accounts_sha256: 'SHA-256 of the JSON lines of its accounts, in hex',
    previous_hash: 'The hash of the day before; 64 zeros for the first',
    hash: 'SHA-256 of previous_hash followed by accounts_sha256, in hex',
    sum: 'closing minus opening',
    'DayLine.count': 'Number of entries of the day',
    first_sequence: 'The lowest sequence of them',
    last_sequence: 'The highest sequence of them',
    'list_balances.on': 'The day of the bank, not a future one; default: the current day',
    'list_balances.currency': 'Only accounts in this currency',
    effective_from: 'Only with this value date or a later one',
    effective_to: 'Only with this value date or an earlier one',
  },
  eventFields: {
    system_accounts: 'The lines of Teller and Vault with movement, as they were hashed',
    effective_date: 'The value date, a day in the time zone of the bank',
    date: 'The day',
    closed_at: 'ISO 8601 UTC',
    closed_by: 'Who closed it',
    totals: 'Per currency and class of accounts',
    accounts_sha256: 'SHA-256 of the JSON lines of its accounts',
    previous_hash: 'The hash of the day before; 64 zeros for the first',
    last_sequences:
      'By partition of transactions, the offset of the last record that can have postings of the day; -1: none',
  },
  errors: {
    invalid_effective_date: {
      meaning:
        'The value date is in the future, too far in the past (BACKDATE_DAYS), before the transaction that is reversed, or before the payout of the Loan that is paid.',
      action: 'Use another day.',
      example: [
        "effective_date 2026-01-03 is after the bank's day 2026-01-02",
        { details: { transaction_id: example.ids.transaction } },
      ],
    },
    day_not_closable: {
      meaning: 'The day has not ended, or is not the one after the last closed.',
      action: 'Close the days in order, each after it has ended.',
      example: ['Day Not Closable: the next day to close is 2026-01-01'],
    },
    day_not_found: {
      meaning: 'The day is not closed.',
      action: 'Close it.',
      example: ['day 2026-01-01 is not closed'],
    },
    day_closed: {
      meaning: 'The value date is a closed day, or a day before it.',
      action: 'Use the first day that is not closed, or a later one.',
      example: [
        'Day Closed: the days up to 2025-12-31 are closed',
        { details: { transaction_id: example.ids.transaction } },
      ],
    },
  },
} satisfies Meanings;
