import { z } from 'zod';
import { givenDay } from './days.ts';
import { givenNames } from './names.ts';
import { type EndpointRows, example, type Meanings, message } from './subject.ts';
import { text } from './texts.ts';
import { transactionSchema } from './transactions.ts';

/** Reversals of transactions (contract: transactions). */

export const reversalEndpoints = {
  reverse_transaction: {
    route: 'POST /transactions/:transaction_id/reversal',
    summary: 'Reverse a transaction',
    scope: 'transactions:reverse',
    body: z.strictObject({ reason: text(1, 255, { lines: true }), ...givenDay, ...givenNames }),
    success: 201,
    errors: [
      'not_reversible',
      'already_reversed',
      'insufficient_funds',
      'inactive_account',
      'balance_limit_exceeded',
      'amount_exceeds_outstanding',
      'invalid_effective_date',
      'day_closed',
    ],
    answers: {
      reversal: {
        transaction_id: `txn_${example.bits(2)}`,
        description: 'posted twice',
        reference: null,
        direction: 'debit',
        reverses_transaction_id: example.ids.transaction,
      },
    },
  },
} satisfies EndpointRows;

export const reversalMessages = {
  reverse_transaction: message.ledger.command(
    {
      transaction_id: message.id,
      reverses_transaction_id: message.transactionId,
      reason: z.string(),
      ...givenDay,
      ...givenNames,
    },
    transactionSchema,
  ),
};

export const reversalMeanings = {
  fields: {
    reverses_transaction_id: 'The transaction that this one reverses',
    reversed_by_transaction_id: 'The transaction that reversed this one',
    'reverse_transaction.reason':
      'The reason, 1 to 255 characters. It becomes the description of the reversal; bound callers never see it',
  },
  errors: {
    not_reversible: {
      meaning: 'The transaction is Failed or Pending, or is itself a reversal.',
      action: 'Post the opposite transaction instead.',
      example: [`transaction ${example.ids.transaction} is Failed`],
    },
    already_reversed: {
      meaning: 'It has already been reversed; `details.reversal_transaction_id` is the reversal.',
      action: 'Nothing.',
      example: [
        `transaction ${example.ids.transaction} was reversed by txn_2195f0c2a1b27c3d8e4f5a6b7c8d9e0f`,
        { details: { reversal_transaction_id: 'txn_2195f0c2a1b27c3d8e4f5a6b7c8d9e0f' } },
      ],
    },
  },
} satisfies Meanings;
