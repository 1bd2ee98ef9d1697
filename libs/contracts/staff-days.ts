import { z } from 'zod';
import { money } from './money.ts';
import { type EndpointRows, field, type Meanings, meaning, message, shown } from './subject.ts';

/** What one person of the bank has posted on a day (contract: tills). */

/** Reports whether the actor is a person, or another holder of a token, and no API key. Only their postings have an index. */
export const isPerson = (actor: string): boolean => actor.startsWith('jwt:');

/** The most postings of a person, the latest, among which their last customers are sought. */
export const customersAmong = 200;
export const customersShown = 5;

const count = z.number().int().min(0);
const staffDaySchema = z
  .object({
    actor: z.string(),
    on: shown.day,
    totals: z.array(
      z
        .object({
          currency: z.string(),
          cash_in: money,
          cash_in_count: count,
          cash_out: money,
          cash_out_count: count,
          net_cash: money,
          transferred: money.meta({
            description: `Transfers, repayments, captures to accounts, balances of a migration, and reversals of these or of what was no cash over the counter, ${meaning.inUnits}`,
          }),
          transferred_count: count,
        })
        .meta({ id: 'StaffDayTotal' }),
    ),
    refused: count,
    batch_items: count,
    /** The newest first. */
    customers: z.array(
      z.object({ client_id: z.string(), account_id: z.string(), served_at: shown.time }).meta({ id: 'ServedCustomer' }),
    ),
  })
  .meta({ id: 'StaffDay' });
export type StaffDay = z.infer<typeof staffDaySchema>;

const query = z.strictObject({ on: field.day.optional(), actor: z.string().max(600).optional() });

export const staffDayEndpoints = {
  get_staff_day: {
    route: 'GET /admin/staff-day',
    summary: 'Get what a person has posted on a day',
    scope: null,
    bankOnly: true,
    query,
    description:
      "The caller's own day, or with `books:read` that of the person `actor`. Days are those of the bank, and every posting is counted, however many there are. What a second person has approved counts for the person who asked for it.",
    errors: ['insufficient_scope'],
    answers: { day: { totals: [{ cash_in: 1500, cash_in_count: 2, cash_out: 200, net_cash: 1300 }] } },
  },
} satisfies EndpointRows;

export const staffDayMessages = {
  get_staff_day: message.ledger.query({ on: field.day.optional(), actor: z.string().max(600) }, staffDaySchema),
};

export const staffDayMeanings = {
  fields: {
    'get_staff_day.on': 'The day of the bank; default: the current day',
    'get_staff_day.actor': 'The person, as `jwt:<issuer>|<subject>`; default: the caller',
    'StaffDay.actor': 'The person',
    'StaffDay.on': 'The day of the bank on which the postings were accepted, whatever their value dates',
    'StaffDay.totals': 'By currency, without items of batches',
    'StaffDay.refused': 'Postings that were refused, without items of batches',
    cash_in: `Deposits, initial deposits, and reversals of withdrawals, over the counter, ${meaning.inUnits}`,
    cash_in_count: 'Number of these postings',
    cash_out: `Withdrawals, captures in cash, payouts of Loans, and reversals of deposits, over the counter, ${meaning.inUnits}`,
    cash_out_count: 'Number of these postings',
    net_cash: 'cash_in minus cash_out',
    transferred_count: 'Number of these operations',
    batch_items: 'Items of batches that the person sent, posted or refused; they are not cash over the counter',
    customers: `The last ${customersShown} customers on whose accounts the person has posted, among their latest ${customersAmong} postings; empty without transactions:read`,
    served_at: `When the last of these postings was accepted, ${meaning.utc}`,
  },
} satisfies Meanings;
