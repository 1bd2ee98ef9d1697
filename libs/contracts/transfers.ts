import { z } from 'zod';
import { dayFilters, eventDay, givenDay, shownDay } from './days.ts';
import { money } from './money.ts';
import { externalId, givenNames, listedMetadata, metadataConfined, metadataFilters, shownNames } from './names.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { failureAccount, postingErrors, searched, transactionStatus } from './transactions.ts';

/** Transfers (contract: transactions): movements between two accounts. */

export const transferSchema = z
  .object({
    transfer_id: z.string(),
    from_account_id: z.string(),
    to_account_id: z.string(),
    amount: money,
    currency: z.string().nullable(),
    description: z.string().nullable(),
    status: transactionStatus,
    created_at: shown.time,
    ...shownDay,
    reverses_transfer_id: z.string().optional(),
    reversed_by_transfer_id: z.string().optional(),
    hold_id: z.string().optional(),
    batch_id: z.string().optional(),
    failure_code: z.string().optional(),
    ...shownNames,
  })
  .meta({ id: 'Transfer' });
export type Transfer = z.infer<typeof transferSchema>;

export const transferBody = z
  .strictObject({
    from_account_id: field.id,
    to_account_id: field.id,
    amount: field.amount(false),
    currency: field.currency.nullish(),
    description: field.description,
    ...givenDay,
    ...givenNames,
  })
  .check(...field.amountFits('amount'))
  .meta({ id: 'CreateTransferRequest' });

const listFilters = z
  .strictObject({
    account_id: field.id.optional(),
    status: transactionStatus.optional(),
    from: field.time.optional(),
    to: field.time.optional(),
    ...dayFilters,
    external_id: externalId.optional(),
    ...metadataFilters,
    ...field.page,
  })
  .check(metadataConfined);

const reversal = {
  transfer_id: `trf_${example.bits(2)}`,
  from_account_id: example.ids.otherAccount,
  to_account_id: example.ids.account,
  description: 'paid twice',
  reverses_transfer_id: example.ids.transfer,
};
const reversals = { transfer: {}, reversed: { reversed_by_transfer_id: reversal.transfer_id }, reversal };
const names = { external_id: 'order-1842', metadata: { channel: 'app' } };

export const transferEndpoints = {
  list_transfers: {
    route: 'GET /transfers',
    summary: 'List transfers',
    scope: 'transactions:read',
    query: listFilters,
    description: searched('without `account_id` or `external_id`'),
    shape: 'page',
    answers: reversals,
  },
  get_transfer: {
    route: 'GET /transfers/:transfer_id',
    summary: 'Get a transfer',
    scope: 'transactions:read',
    errors: ['idempotency_key_reused'],
    answers: reversals,
  },
  create_transfer: {
    route: 'POST /transfers',
    summary: 'Move funds between two accounts',
    scope: 'transfers:write',
    body: transferBody,
    success: 201,
    pending: true,
    errors: ['same_account', 'amount_exceeds_outstanding', 'destination_refused', ...postingErrors],
    requests: { transfer: { currency: 'USD', description: 'Rent' }, names },
    answers: { transfer: {}, names },
  },
} satisfies EndpointRows;

export const transferData = z.object({
  transfer_id: message.id,
  from_account_id: message.accountId,
  to_account_id: message.accountId,
  amount: message.amount,
  currency: message.currency.nullable(),
  description: message.text,
  ...givenDay,
  ...givenNames,
});

export const transferMessages = {
  create_transfer: message.command('ledger.commands', transferData, transferSchema),
  list_transfers: message.ledger.query(message.listRequest(listFilters), message.searchedPageSchema(transferSchema)),
  get_transfer: message.ledger.query({ transfer_id: message.id }, transferSchema),
};

const transferIds = {
  transfer_id: event.idField('transfer'),
  from_account_id: event.idField('account'),
  to_account_id: event.idField('account'),
  hold_id: event.idField('hold').optional(),
  batch_id: event.idField('batch').optional(),
};
const completedTransfer = transferSchema
  .omit({ reverses_transfer_id: true, reversed_by_transfer_id: true, failure_code: true })
  .extend({
    ...transferIds,
    ...eventDay,
    created_at: event.moment,
    amount: event.positiveMoney,
    currency: event.currencyCode,
    status: z.literal('Completed'),
  });

export const transferEvents = {
  'corebanking.transfer.completed.v1': event.ledgerRow('transfers', {
    summary: 'A transfer was posted to both accounts',
    fields: {
      transfer: event.named('Transfer', completedTransfer),
      operation_id: event.idField('operation'),
      ...event.asked,
    },
  }),
  'corebanking.transfer.failed.v1': event.ledgerRow('transfers', {
    summary: 'A transfer was refused and stored as Failed; nothing was posted',
    fields: {
      transfer: event.named(
        'FailedTransfer',
        completedTransfer.extend({
          currency: event.currencyCode.nullable(),
          status: z.literal('Failed'),
          failure_code: event.openList(event.failureCodes),
        }),
      ),
      ...failureAccount,
      ...event.asked,
    },
  }),
  /** The transfer that reverses another one. The key is the reversed transfer. */
  'corebanking.transfer.reversed.v1': event.ledgerRow('transfers', {
    summary:
      'A transfer was reversed by a transfer back, which has its own transfer_id. The key is the reversed transfer',
    fields: {
      transfer: event.named(
        'TransferReversal',
        completedTransfer.extend({ reverses_transfer_id: event.idField('transfer') }),
      ),
      operation_id: event.idField('operation'),
      ...event.asked,
    },
    example: { transfer: reversal },
  }),
};

export const transferMeanings = {
  fields: {
    transfer_id: `The transfer: \`trf_\` and 32 hexadecimal digits, ${meaning.opaque}; in a transaction, the transfer to which it belongs`,
    'Transfer.currency': meaning.postingCurrency,
    'Transfer.status':
      'Pending: not yet decided; Completed: posted; Failed: refused, and nothing was posted. Completed and Failed are final',
    'list_transfers.account_id': 'Only transfers from or to this account',
    'list_transfers.metadata': listedMetadata,
    'list_transfers.from': 'Accepted at or after this time: ISO 8601 date or time; a date means midnight UTC',
    'list_transfers.to': 'Accepted before this time: ISO 8601 date or time; a date means midnight UTC',
    reverses_transfer_id: 'The transfer that this one reverses',
    reversed_by_transfer_id: 'The transfer that reversed this one',
    from_account_id: 'The account that is debited',
    to_account_id: 'The account that is credited; a Loan is paid off',
  },
  eventFields: {
    transfer: 'The transfer as in REST, with its amount as a string',
  },
  errors: {
    same_account: {
      meaning: 'Source and destination of the transfer are the same account.',
      action: 'Correct one of them.',
      example: ['to_account_id must differ from from_account_id', meaning.refusedTransaction],
    },
    destination_refused: {
      meaning:
        "The destination cannot accept this payment. Bound callers are not told the reason for other clients' accounts.",
      action: 'Ask the recipient.',
      example: ['the destination account cannot take this payment', meaning.refusedTransaction],
    },
    amount_exceeds_outstanding: {
      meaning: 'The payment exceeds the outstanding amount of the Loan.',
      action: "Pay at most the Loan's balance.",
      example: [
        `the amount exceeds the outstanding principal of loan account ${example.ids.account}`,
        meaning.refusedTransaction,
      ],
    },
    transfer_not_found: meaning.notFound('transfer', example.ids.transfer),
  },
} satisfies Meanings;
