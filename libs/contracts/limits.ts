import { z } from 'zod';
import { money } from './money.ts';
import { type EndpointRows, example, field, type Meanings, meaning, message } from './subject.ts';

/** The limits of an account (contract: limits): how little may be left on it, and how much may leave it. */

export const limitNames = ['minimum_balance', 'per_transaction', 'per_day_out'] as const;
export type LimitName = (typeof limitNames)[number];

/** Reports whether a limit allows more than it did. Null: there is none. */
export function allowsMore(name: LimitName, was: bigint | null, is: bigint | null): boolean {
  if (was === null) return false;
  return is === null || (name === 'minimum_balance' ? is < was : is > was);
}

const limitsSchema = z
  .object({
    account_id: z.string(),
    currency: z.string(),
    minimum_balance: money.optional(),
    per_transaction: money.optional(),
    per_day_out: money.optional(),
    /** What left the account on this day of the bank. Only with per_day_out. */
    out_today: money.optional(),
  })
  .meta({ id: 'AccountLimits' });

/** The amounts whose decimals the ledger checks, because only it knows the currency. */
const limit = field.amount(true);
const scopes = ['accounts:limits', 'accounts:read'] as const;
const daily = { minimum_balance: 10, per_day_out: 500 };

export const limitEndpoints = {
  get_account_limits: {
    route: 'GET /accounts/:account_id/limits',
    summary: 'Get the limits of an account',
    scope: scopes,
    bankOnly: true,
    answers: { daily: { ...daily, out_today: 0 } },
  },
  set_account_limits: {
    route: 'PUT /accounts/:account_id/limits',
    summary: 'Set the limits of an account',
    scope: 'accounts:limits',
    bankOnly: true,
    body: z.strictObject({
      minimum_balance: limit.optional(),
      per_transaction: limit.optional(),
      per_day_out: limit.optional(),
    }),
    description:
      'Replaces all limits: one that is left out no longer applies. They bind every later withdrawal, transfer, and hold of the account, whoever asks for it. What left the account on this day counts from its beginning.',
    errors: ['invalid_amount', 'invalid_amount_precision', 'amount_too_large', 'invalid_account_type'],
    requests: { daily, none: {} },
    answers: { daily: { ...daily, out_today: 0 } },
  },
} satisfies EndpointRows;

const amounts = {
  minimum_balance: message.amountOrZero.optional(),
  per_transaction: message.amountOrZero.optional(),
  per_day_out: message.amountOrZero.optional(),
};

export const limitMessages = {
  set_account_limits: message.ledger.command({ account_id: message.accountId, ...amounts }, limitsSchema),
  get_account_limits: message.ledger.query({ account_id: message.id }, limitsSchema),
};

export const limitMeanings = {
  fields: {
    minimum_balance: `The least that withdrawals, transfers, and holds leave available, ${meaning.inUnits}`,
    per_transaction: `The most that one withdrawal, transfer, or hold may take, ${meaning.inUnits}`,
    per_day_out: `The most that may leave the account on one day of the bank, ${meaning.inUnits}`,
    out_today: `What has left the account on this day of the bank, reversals excepted, ${meaning.inUnits}`,
  },
  errors: {
    limit_exceeded: {
      meaning: 'The posting or hold would exceed a limit of the account that pays; `details.limit` names it.',
      action: 'Post less, or on another day; or have the bank change the limits of the account.',
      example: [
        `per_transaction of account ${example.ids.account} allows less than this withdrawal`,
        { details: { limit: 'per_transaction', transaction_id: example.ids.transaction } },
      ],
    },
  },
} satisfies Meanings;
