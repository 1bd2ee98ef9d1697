import { z } from 'zod';
import { amount, amountFits, currency, description, id, moment, page, reference } from './fields.ts';
import { externalId, givenNames, shownNames } from './names.ts';
import { money, transactionSchema, transferSchema } from './resources.ts';

/** Holds (contract: holds) reserve money on an account. The balance and the books do not change. */

export const holdStatus = z.enum(['Active', 'Captured', 'Released', 'Expired']);
export type HoldStatus = z.infer<typeof holdStatus>;

const day = 24 * 60 * 60 * 1000;
/** The lifetime if no expires_at is given. */
export const holdLifetimeMs = 7 * day;
/** The maximum lifetime. */
export const maxHoldLifetimeMs = 31 * day;
/** The maximum number of Active holds on an account. The database enforces it, too. */
export const maxActiveHolds = 1000;

const time = z.string();

export const holdSchema = z.object({
  hold_id: z.string(),
  account_id: z.string(),
  amount: money,
  /** The total of all captures so far. */
  captured_amount: money,
  currency: z.string(),
  /** An Active hold whose expires_at has passed is Expired: it no longer reduces the available balance. */
  status: holdStatus,
  description: z.string().nullable(),
  reference: z.string().nullable(),
  expires_at: time,
  created_at: time,
  updated_at: time,
  ...shownNames,
});
export type Hold = z.infer<typeof holdSchema>;

/** The hold after the capture, and the posting: a transfer if a destination was named, otherwise a withdrawal. */
export const capturedHoldSchema = z.object({
  hold: holdSchema,
  transaction: transactionSchema.optional(),
  transfer: transferSchema.optional(),
});
export type CapturedHold = z.infer<typeof capturedHoldSchema>;

export const holdBodies = {
  placeHold: z
    .strictObject({
      amount: amount(false),
      currency: currency.nullish(),
      description,
      reference,
      expires_at: moment.nullish().meta({ description: 'Within 31 days from now; 7 days from now if omitted' }),
      ...givenNames,
    })
    .check(...amountFits('amount')),
  captureHold: z.strictObject({
    amount: amount(false).nullish().meta({
      description:
        'How much to capture, in units of the currency, with at most its decimal places; the remaining amount if omitted',
    }),
    to_account_id: id.nullish().meta({ description: 'The destination of a transfer; a withdrawal if omitted' }),
    final: z.boolean().default(true).meta({ description: 'false: the remaining amount stays held' }),
    description,
    ...givenNames,
  }),
};

export const holdParameters = {
  listHolds: z.strictObject({ status: holdStatus.optional(), external_id: externalId.optional(), ...page }),
};
