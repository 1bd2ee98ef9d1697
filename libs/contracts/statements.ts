import { z } from 'zod';
import { accountBalanceSchema } from './accounts.ts';
import { dayFilters } from './days.ts';
import { entrySchema } from './entries.ts';
import { money } from './money.ts';
import { type EndpointRows, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { transactionType } from './transactions.ts';

/** Entries of an account, its balance at a time, and its statement (contract: double-entry). */

/** An account's balance after the last entry posted before a given time. */
const balanceAtSchema = accountBalanceSchema
  .extend({
    /** Only for the current time. */
    available_balance: money.optional(),
    /** Time and sequence of the entry (0 before the first one), unless it is the balance of a day. */
    at: shown.time.optional(),
    sequence: z.number().int().min(0).optional(),
    on: shown.day.optional(),
  })
  .meta({ id: 'BalanceAt' });

/** An entry with all data of a line of a printed statement. */
export const entryLineSchema = entrySchema
  .extend({
    transaction_type: transactionType,
    description: z.string().nullable(),
    reference: z.string().nullable(),
    counterparty_account_id: z.string().optional(),
    counterparty_account_number: z.string().optional(),
    transfer_id: z.string().optional(),
    reverses_transaction_id: z.string().optional(),
    reversed_by_transaction_id: z.string().optional(),
  })
  .meta({ id: 'EntryLine' });
export type EntryLine = z.infer<typeof entryLineSchema>;

/** The days of a statement by value date, both inclusive; omitted if it is not, or open on that side. */
const shownDays = { effective_from: shown.day.optional(), effective_to: shown.day.optional() };

/**
 * An account over a period, with one page of its entries in posting order. Totals and balances cover the whole
 * period.
 */
export const statementSchema = z
  .object({
    account_id: z.string(),
    account_number: z.string(),
    currency: z.string(),
    /** The period includes `from` and excludes `to`; null: no bound. */
    from: shown.time.nullable(),
    to: shown.time.nullable(),
    ...shownDays,
    opening_balance: money,
    closing_balance: money,
    debit_total: money,
    credit_total: money,
    entry_count: z.number().int().min(0).max(100_000),
    entries: z.array(entryLineSchema),
  })
  .meta({ id: 'Statement' });
export type Statement = z.infer<typeof statementSchema>;

/** The most days whose movements are shown at once. */
const maxDaysShown = 366;

/** What moved on an account on each of its last days by value date. Days without movement are left out. */
const accountDaysSchema = z
  .object({
    account_id: z.string(),
    account_number: z.string(),
    currency: z.string(),
    /** The first of these days, and the bank's day. */
    from: shown.day,
    to: shown.day,
    opening_balance: money,
    days: z.array(
      z.object({ date: shown.day, debit_total: money, credit_total: money, balance: money }).meta({ id: 'AccountDay' }),
    ),
  })
  .meta({ id: 'AccountDays' });
export type AccountDays = z.infer<typeof accountDaysSchema>;

const daysInOrder = field.rule(
  'validation_failed',
  'effective_to',
  'must not be before effective_from',
  ({ effective_from: from, effective_to: to }) => typeof from !== 'string' || typeof to !== 'string' || from <= to,
);
const onePeriod = field.rule(
  'validation_failed',
  'effective_from',
  'and effective_to cannot be combined with from and to',
  ({ from, to, effective_from, effective_to }) =>
    (from ?? to) === undefined || (effective_from ?? effective_to) === undefined,
);
const oneDay = field.rule(
  'validation_failed',
  'on',
  'cannot be combined with from, to, effective_from, and effective_to',
  ({ on, from, to, effective_from, effective_to }) =>
    on === undefined || (from ?? to ?? effective_from ?? effective_to) === undefined,
);

export const statementEndpoints = {
  list_entries: {
    route: 'GET /accounts/:account_id/entries',
    summary: 'List the ledger entries of an account',
    scope: 'transactions:read',
    query: z.strictObject({ ...dayFilters, ...field.page }),
    shape: 'page',
    answers: {
      deposit: {},
      transfer: {
        transaction_type: 'Transfer',
        reference: null,
        counterparty_account_id: example.ids.otherAccount,
        counterparty_account_number: 'CHK-9876543217',
        transfer_id: example.ids.transfer,
      },
    },
  },
  get_account_balance: {
    route: 'GET /accounts/:account_id/balance',
    summary: 'Get the balance of an account, now or at a time',
    scope: 'accounts:read',
    query: z
      .strictObject({ at: field.time.optional(), on: field.day.optional() })
      .check(
        field.rule('validation_failed', 'on', 'cannot be combined with at', ({ at, on }) => (at && on) === undefined),
      ),
    description:
      'With `on`, returns the balance by value date at the end of that day, without `at` and `sequence`; it changes as long as postings are dated back to that day. With `at`, returns the balance after the last entry posted before that time; before the first entry, 0 with sequence 0.',
    answers: {
      now: { available_balance: 85.5, at: example.time, sequence: 2 },
      'at a moment': { balance: 100.5, at: '2026-01-02T00:00:00.000Z', sequence: 1 },
      'on a day': { balance: 100.5, on: '2026-01-01' },
    },
  },
  get_account_days: {
    route: 'GET /accounts/:account_id/days',
    summary: 'Get what moved on an account on each of its last days',
    scope: 'transactions:read',
    query: z.strictObject({ days: field.count(maxDaysShown, 90) }),
    description:
      'Returns the totals of each of the last days of the bank by value date, the current one included, and the balance at its end, which is that of `balance?on=`. Days on which nothing moved are left out. At most 100,000 entries. Postings that are dated back change earlier days.',
    answers: {
      'two days': {
        from: '2026-01-01',
        to: '2026-01-30',
        opening_balance: 100.5,
        days: [
          { date: '2026-01-02', debit_total: 15, credit_total: 0, balance: 85.5 },
          { date: '2026-01-30', debit_total: 0, credit_total: 20, balance: 105.5 },
        ],
      },
    },
  },
  get_statement: {
    route: 'GET /accounts/:account_id/statement',
    summary: 'Get a statement of an account for a period',
    scope: 'transactions:read',
    query: z
      .strictObject({
        from: field.time.optional(),
        to: field.time.optional(),
        ...dayFilters,
        on: field.day.optional(),
        limit: field.page.limit,
        cursor: field.page.cursor,
      })
      .check(field.inOrder, daysInOrder, onePeriod, oneDay),
    description:
      'Returns entries in posting order, one page at a time, from `from` (inclusive) to `to` (exclusive). Balances and totals cover the whole period and are the same on every page. With `effective_from` or `effective_to`, the period is one of value dates: balances and totals are those of value dates, while `balance_after` and the order remain those of posting. `on` is the statement of one day by value date, which must have ended; it changes as long as postings are dated back to that day or an earlier one. A period may have at most 100,000 entries. With `Accept: text/html`, returns the whole period as one self-contained page made for paper, regardless of `limit`: at most 10,000 entries, in the language and time zone of the bank, with the account holder if the caller also has `clients:read`. With `Accept: application/xml` and `on`, streams the whole day as ISO 20022 camt.053.001.08, for accounting software. A caller may request one page or file at a time; a second gets a 429.',
    shape: 'document',
    forms: ['text/html', 'application/xml'],
  },
} satisfies EndpointRows;

export const statementMessages = {
  get_account_days: message.ledger.query(
    { account_id: message.id, days: z.number().int().min(1).max(maxDaysShown) },
    accountDaysSchema,
  ),
  list_entries: message.ledger.query(
    { account_id: message.id, ...dayFilters, ...message.page },
    message.pageSchema(entryLineSchema),
  ),
  get_account_balance: message.ledger.query(
    { account_id: message.id, at: message.time.optional(), on: field.day.optional() },
    balanceAtSchema,
  ),
  get_statement: message.ledger.query(
    {
      account_id: message.id,
      from: message.time.optional(),
      to: message.time.optional(),
      ...dayFilters,
      on: field.day.optional(),
      limit: message.page.limit,
      after: message.page.after,
    },
    z.object({ item: statementSchema, next: message.position.optional() }),
  ),
};

export const statementMeanings = {
  fields: {
    balance_after: `The balance after this entry, ${meaning.inUnits}`,
    operation_id: 'Everything posted together: the entries of one operation balance per currency',
    entry_id: 'The entry, an opaque string',
    sequence: 'Number of the entry within its account: 1, 2, 3, and so on, without gaps',
    'BalanceAt.sequence': 'The sequence of the last entry before that time; 0 if there is none',
    at: `The time, ${meaning.utc}`,
    on: 'The day, in the time zone of the bank',
    'get_account_balance.on': 'Return the balance by value date at the end of this day of the bank, not a future one',
    'get_statement.on': 'The statement of this day by value date, which must have ended',
    'get_account_balance.at':
      'Return the balance after the last entry posted before this time: ISO 8601 date or time; default: now',
    'Statement.from': `Posted at or after this time, ${meaning.utc}; null: since the account was opened`,
    'Statement.to': `Posted before this time, ${meaning.utc}; null: until now`,
    opening_balance: `The balance before the first entry of the period, ${meaning.inUnits}`,
    closing_balance: `The balance after the last entry of the period, ${meaning.inUnits}`,
    debit_total: `Total debits of the period, ${meaning.inUnits}`,
    credit_total: `Total credits of the period, ${meaning.inUnits}`,
    entry_count: 'Number of entries in the whole period',
    'get_account_days.days': 'How many days, the current one included',
    'AccountDays.from': 'The first of the days',
    'AccountDays.to': 'The day of the bank, which has not ended',
    'AccountDays.opening_balance': `The balance at the end of the day before, ${meaning.inUnits}`,
    'AccountDays.days': 'The days on which something moved, in order',
    'AccountDay.date': 'The day, in the time zone of the bank',
    'AccountDay.debit_total': `What left the account on that day, ${meaning.inUnits}`,
    'AccountDay.credit_total': `What arrived on that day, ${meaning.inUnits}`,
    'AccountDay.balance': `The balance at the end of that day, ${meaning.inUnits}`,
    entries: 'Entries in posting order; in a statement, those of this page',
    'Entry.created_at': `When it was posted, ${meaning.utc}`,
    'EntryLine.created_at': `When it was posted, ${meaning.utc}`,
  },
} satisfies Meanings;
