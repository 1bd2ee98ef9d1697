import { z } from 'zod';
import { event, example, field, type Meanings } from './subject.ts';

/** Value dates (contract: days): the day for which a posting counts, whenever it was posted. */

/** In requests and commands. Null and absent mean the bank's day at the decision. */
export const givenDay = { effective_date: field.day.nullish() };
/** In resources; omitted while it is not known. */
export const shownDay = { effective_date: z.string().optional() };
export const eventDay = { effective_date: event.since('0.2.0', event.day) };

/** Returns the value date if one was given. Pure. */
export function pickDay({ effective_date: day }: { effective_date?: string | null | undefined }) {
  return day == null ? {} : { effective_date: day };
}

/** The filters of a list by value date. */
export const dayFilters = { effective_from: field.day.optional(), effective_to: field.day.optional() };

export const dayMeanings = {
  fields: {
    effective_date:
      "The value date, a day of the bank such as 2026-01-31; in a request, omitted or null: the bank's day when it is decided, and any other day requires transactions:backdate. Omitted while it is not known",
    effective_from: 'Only with this value date or a later one',
    effective_to: 'Only with this value date or an earlier one',
  },
  eventFields: { effective_date: 'The value date, a day in the time zone of the bank' },
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
