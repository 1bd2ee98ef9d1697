import { z } from 'zod';
import { givenDay } from './days.ts';
import { money } from './money.ts';
import { externalId, givenNames, shownNames } from './names.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { postingErrors, transactionSchema } from './transactions.ts';
import { transferSchema } from './transfers.ts';

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

const holdSchema = z
  .object({
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
    expires_at: shown.time,
    created_at: shown.time,
    updated_at: shown.time,
    ...shownNames,
  })
  .meta({ id: 'Hold' });
export type Hold = z.infer<typeof holdSchema>;

/** The hold after the capture, and the posting: a transfer if a destination was named, otherwise a withdrawal. */
const capturedHoldSchema = z
  .object({
    hold: holdSchema,
    transaction: transactionSchema.optional(),
    transfer: transferSchema.optional(),
  })
  .meta({ id: 'CapturedHold' });

const listFilters = z.strictObject({
  status: holdStatus.optional(),
  external_id: externalId.optional(),
  ...field.page,
});

const hotel = { amount: 40, description: 'Hotel', reference: 'AUTH-7' };
const names = { external_id: 'booking-7', metadata: { channel: 'app' } };
export const holdEndpoints = {
  list_holds: {
    route: 'GET /accounts/:account_id/holds',
    summary: 'List the holds of an account',
    scope: 'transactions:read',
    query: listFilters,
    shape: 'page',
    answers: { hotel },
  },
  get_hold: {
    route: 'GET /holds/:hold_id',
    summary: 'Get a hold',
    scope: 'transactions:read',
    answers: { hotel },
  },
  place_hold: {
    route: 'POST /accounts/:account_id/holds',
    summary: 'Place a hold on an account',
    scope: 'holds:write',
    body: z
      .strictObject({
        amount: field.amount(false),
        currency: field.currency.nullish(),
        description: field.description,
        reference: field.reference,
        expires_at: field.moment.nullish().meta({ description: 'Within 31 days from now; 7 days from now if omitted' }),
        ...givenNames,
      })
      .check(...field.amountFits('amount')),
    description:
      'Reserves money: the `available_balance` decreases, while the balance and the books do not change. Only for Active accounts that are not Loans; an account has at most 1,000 Active holds.',
    success: 201,
    errors: [
      ...field.moneyErrors,
      'insufficient_funds',
      'limit_exceeded',
      'inactive_account',
      'invalid_account_type',
      'currency_mismatch',
      'too_many_holds',
    ],
    requests: { hotel, names: { ...hotel, ...names } },
    answers: { hotel, names: { ...hotel, ...names } },
  },
  capture_hold: {
    route: 'POST /holds/:hold_id/capture',
    summary: 'Capture a hold, in cash or to another account',
    scope: 'holds:write',
    body: z.strictObject({
      amount: field.amount(false).nullish().meta({
        description:
          'How much to capture, in units of the currency, with at most its decimal places; the remaining amount if omitted',
      }),
      to_account_id: field.id.nullish().meta({ description: 'The destination of a transfer; a withdrawal if omitted' }),
      final: z.boolean().default(true).meta({ description: 'false: the remaining amount stays held' }),
      description: field.description,
      ...givenDay,
      ...givenNames,
    }),
    description:
      'With `to_account_id` it is a transfer, which also requires `transfers:write`; otherwise a withdrawal, which also requires `transactions:write`. The hold becomes Captured after a `final` capture, or when nothing is left. ' +
      'If the account is not Active, the capture is refused and the hold remains.',
    success: 201,
    errors: [
      'hold_not_active',
      'amount_exceeds_hold',
      'same_account',
      'amount_exceeds_outstanding',
      ...postingErrors.filter((code) => code !== 'unsupported_currency'),
    ],
    requests: { cash: {}, transfer: { amount: 32.5, to_account_id: example.ids.otherAccount, final: false } },
    answers: {
      cash: {
        hold: { ...hotel, status: 'Captured', captured_amount: 40 },
        transaction: { ...hotel, transaction_type: 'Withdrawal', direction: 'debit', hold_id: example.ids.hold },
      },
      transfer: {
        hold: { ...hotel, captured_amount: 32.5 },
        transfer: { amount: 32.5, description: 'Hotel', hold_id: example.ids.hold },
      },
    },
  },
  release_hold: {
    route: 'POST /holds/:hold_id/release',
    summary: 'Release a hold',
    scope: 'holds:write',
    description: 'Also possible if the account is not Active.',
    errors: ['hold_not_active'],
    answers: { release: { ...hotel, status: 'Released' } },
  },
} satisfies EndpointRows;

export const holdMessages = {
  /**
   * `expires_at`: null for the default. Whether it is in the future is decided only by the ledger, which recognizes
   * repeats.
   */
  place_hold: message.ledger.command(
    {
      hold_id: message.id,
      account_id: message.accountId,
      amount: message.amount,
      currency: message.currency.nullable(),
      description: message.text,
      reference: message.text,
      expires_at: z.iso.datetime({ precision: 3 }).nullable(),
      ...givenNames,
    },
    holdSchema,
  ),
  /**
   * `amount`: null for the remaining amount. `transaction_id`: the withdrawal, or the transaction of the
   * transfer on the hold's account.
   */
  capture_hold: message.ledger.command(
    {
      transaction_id: message.id,
      hold_id: message.holdId,
      amount: message.amount.nullable(),
      to_account_id: message.accountId.nullable(),
      final: z.boolean(),
      description: message.text,
      ...givenDay,
      ...givenNames,
    },
    capturedHoldSchema,
  ),
  release_hold: message.ledger.command({ hold_id: message.holdId }, holdSchema),
  get_hold: message.ledger.query({ hold_id: message.id }, holdSchema),
  list_holds: message.ledger.query(
    { account_id: message.id, ...message.listRequest(listFilters) },
    message.pageSchema(holdSchema),
  ),
};

const eventHold = holdSchema.extend({
  created_at: event.moment,
  hold_id: event.idField('hold'),
  account_id: event.idField('account'),
  amount: event.positiveMoney,
  currency: event.currencyCode,
  expires_at: event.moment,
  updated_at: event.moment,
});

/**
 * The hold after the change, and the number of the change among all changes of the account's holds, gap-free
 * from 1.
 */
const holdChange = (title: string, statuses: HoldStatus[]) => ({
  hold: event.named(title, eventHold.extend({ status: holdStatus.extract(statuses) })),
  hold_version: event.count,
  ...event.ownership,
  ...event.asked,
});
export const holdEvents = {
  'corebanking.hold.placed.v1': event.ledgerRow('holds', {
    summary: 'A hold reserved money on an account',
    fields: holdChange('Hold', ['Active']),
  }),
  /** `amount`: the captured amount. */
  'corebanking.hold.captured.v1': event.ledgerRow('holds', {
    summary:
      'A hold was captured by a withdrawal or a transfer, which has its own events. The hold stays Active if part of it is still held',
    fields: {
      ...holdChange('CapturedHold', ['Active', 'Captured']),
      amount: event.positiveMoney,
      transaction_id: event.idField('transaction'),
      transfer_id: event.idField('transfer').optional(),
    },
    example: { hold: { status: 'Captured', captured_amount: '25.00' }, hold_version: 2 },
  }),
  'corebanking.hold.released.v1': event.ledgerRow('holds', {
    summary: 'A hold, or what captures had left of it, was released',
    fields: holdChange('ReleasedHold', ['Released']),
    example: { hold_version: 2 },
  }),
  'corebanking.hold.expired.v1': event.ledgerRow('holds', {
    summary: 'A hold expired. Published within 10 s of its expires_at',
    fields: holdChange('ExpiredHold', ['Expired']),
    example: { hold_version: 2, actor: 'system', request_channel: 'system' },
  }),
};

export const holdMeanings = {
  fields: {
    hold_id: `The hold: \`hld_\` and 32 hexadecimal digits; in a posting, the hold that it captured or was meant to capture`,
    captured_amount: `The total captured so far, ${meaning.inUnits}`,
    hold: 'The hold after the capture',
    'CapturedHold.transaction': 'The withdrawal, if no destination account was given',
    'CapturedHold.transfer': 'The transfer, if a destination account was given',
    'Hold.status':
      'Active: reduces the available balance; Captured: taken completely, or closed by a final capture; Released; Expired',
    'Hold.expires_at': `When it expires, ${meaning.utc}`,
  },
  eventFields: {
    hold: 'The hold after this change, as in REST with amounts as strings',
    hold_version: 'Number of changes of holds on the account, gap-free from 1; 0 before the first',
  },
  errors: {
    amount_exceeds_hold: {
      meaning: 'The capture exceeds the remaining amount of the hold.',
      action: 'Capture at most the remaining amount.',
      example: [`hold ${example.ids.hold} has less than that amount left`, meaning.refusedTransaction],
    },
    hold_not_active: {
      meaning: 'The hold is Captured, Released, or Expired.',
      action: 'Place a new one.',
      example: [`hold ${example.ids.hold} is Released`, meaning.refusedTransaction],
    },
    too_many_holds: {
      meaning: 'The account has 1,000 Active holds. This is decided before its funds.',
      action: 'Capture or release some of them, then retry with a new Idempotency-Key.',
      example: [`account ${example.ids.account} has 1000 Active holds, and cannot have more`],
    },
    hold_not_found: meaning.notFound('hold', example.ids.hold),
  },
} satisfies Meanings;
