import { z } from 'zod';
import { dayFilters, eventDay, givenDay, shownDay } from './days.ts';
import { direction, eventEntry, exampleEntry, exampleTellerId, exampleVaultId } from './entries.ts';
import type { ErrorCode } from './errors.ts';
import { openingTransactionId } from './ids.ts';
import { money } from './money.ts';
import { externalId, givenNames, listedMetadata, metadataConfined, metadataFilters, shownNames } from './names.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { violation } from './violation.ts';

/** Transactions (contract: transactions): deposits, withdrawals, and each account's side of transfers. */

export const transactionType = z.enum(['Deposit', 'Withdrawal', 'Transfer', 'Loan Payment']);
export const transactionStatus = z.enum(['Pending', 'Completed', 'Failed']);
export type TransactionType = z.infer<typeof transactionType>;
export const transactionSchema = z
  .object({
    transaction_id: z.string(),
    account_id: z.string(),
    transaction_type: transactionType,
    amount: money,
    /** null only if the caller named none and the account's is not known: while Pending, or if there is no such account. */
    currency: z.string().nullable(),
    description: z.string().nullable(),
    reference: z.string().nullable(),
    status: transactionStatus,
    created_at: shown.time,
    ...shownDay,
    direction,
    transfer_id: z.string().optional(),
    counterparty_account_id: z.string().optional(),
    reverses_transaction_id: z.string().optional(),
    reversed_by_transaction_id: z.string().optional(),
    /** The hold that the transaction captured or was meant to capture. */
    hold_id: z.string().optional(),
    batch_id: z.string().optional(),
    failure_code: z.string().optional(),
    ...shownNames,
  })
  .meta({ id: 'Transaction' });
export type Transaction = z.infer<typeof transactionSchema>;

/** The description of the opening of a migrated account, which a caller cannot give an opening. */
export const openingBalance = 'Opening balance';

/** Reports whether the transaction is the balance that a migration brought, for which nobody took cash. */
export function isOpeningBalance({
  transaction_id,
  account_id,
  description,
}: Pick<Transaction, 'transaction_id' | 'account_id' | 'description'>): boolean {
  return description === openingBalance && transaction_id === openingTransactionId(account_id);
}

export const postingErrors: ErrorCode[] = [
  ...field.moneyErrors,
  'account_not_found',
  'insufficient_funds',
  'limit_exceeded',
  'inactive_account',
  'invalid_account_type',
  'currency_mismatch',
  'balance_limit_exceeded',
  'invalid_effective_date',
  'day_closed',
];

const transactionKind = z
  .unknown()
  .transform((value, ctx) => {
    if (value === undefined || value === null) return violation(ctx, 'validation_failed', 'is required');
    if (value !== 'Deposit' && value !== 'Withdrawal')
      return violation(ctx, 'invalid_transaction_type', 'must be Deposit or Withdrawal');
    return value as 'Deposit' | 'Withdrawal';
  })
  .meta({ type: 'string', enum: ['Deposit', 'Withdrawal'] });

export const transactionBody = z
  .strictObject({
    account_id: field.id,
    transaction_type: transactionKind,
    amount: field.amount(false),
    currency: field.currency.nullish(),
    description: field.description,
    reference: field.reference,
    ...givenDay,
    ...givenNames,
  })
  .check(...field.amountFits('amount'))
  .meta({ id: 'CreateTransactionRequest' });

export const searched = (when: string) =>
  `The list has no index ${when}. It then scans the newest 200,000 transactions per page; \`complete\` says whether these are all, and the Link continues from there. A caller may run two such lists at a time, and eight more wait for up to 3 s; beyond that, 429.`;

const listFilters = z
  .strictObject({
    account_id: field.id.optional(),
    counterparty_account_id: field.id.optional(),
    transaction_type: transactionType.optional(),
    status: transactionStatus.optional(),
    currency: field.currency.optional(),
    actor: z.string().max(1000).optional(),
    reference: z
      .string()
      .trim()
      .refine((value) => [...value].length <= 100, 'must have at most 100 characters')
      .optional(),
    transfer_id: field.id.optional(),
    from: field.time.optional(),
    to: field.time.optional(),
    ...dayFilters,
    min_amount: field.decimalParameter.optional(),
    max_amount: field.decimalParameter.optional(),
    idempotency_key: z.string().trim().max(255).optional(),
    external_id: externalId.optional(),
    request_id: z.string().max(128).optional(),
    ...metadataFilters,
    ...field.page,
  })
  .check(metadataConfined);

const withdrawal = {
  transaction_type: 'Withdrawal',
  amount: 10.75,
  description: null,
  reference: null,
  direction: 'debit',
};

export const transactionEndpoints = {
  list_transactions: {
    route: 'GET /transactions',
    summary: 'List transactions',
    scope: 'transactions:read',
    query: listFilters,
    description: `${searched('without `account_id` or `transfer_id`, by type, currency, amount, actor, request id, counterparty, metadata, or the status Completed')} \`actor\`: the caller, as in the audit log; not available to credentials bound to a client.`,
    shape: 'page',
    errors: ['invalid_amount', 'unsupported_currency'],
  },
  get_transaction: {
    route: 'GET /transactions/:transaction_id',
    summary: 'Get a transaction',
    scope: 'transactions:read',
    errors: ['idempotency_key_reused'],
  },
  create_transaction: {
    route: 'POST /transactions',
    summary: 'Deposit or withdraw',
    scope: 'transactions:write',
    body: transactionBody,
    shape: 'bare',
    success: 201,
    pending: true,
    errors: ['invalid_transaction_type', ...postingErrors],
    requests: {
      deposit: { currency: 'USD', description: 'Cash', reference: 'R-1' },
      withdrawal: { transaction_type: 'Withdrawal', amount: 10.75 },
    },
    answers: { deposit: {}, withdrawal },
  },
} satisfies EndpointRows;

export const transactionData = z.object({
  transaction_id: message.id,
  account_id: message.accountId,
  transaction_type: z.enum(['Deposit', 'Withdrawal']),
  amount: message.amount,
  currency: message.currency.nullable(),
  description: message.text,
  reference: message.text,
  ...givenDay,
  ...givenNames,
});

export const transactionMessages = {
  create_transaction: message.command('ledger.commands', transactionData, transactionSchema),
  list_transactions: message.ledger.query(
    // A canonical decimal may be longer than a parameter.
    {
      ...message.listRequest(listFilters),
      min_amount: message.amountOrZero.optional(),
      max_amount: message.amountOrZero.optional(),
    },
    message.searchedPageSchema(transactionSchema),
  ),
  /**
   * The query for what a command creates may also be sent to the topic of the command, in its bucket, and is then
   * answered after the preceding commands (`createdOn` in services/gateway/api/reads.ts).
   */
  get_transaction: message.ledger.query({ transaction_id: message.id }, transactionSchema),
};

const transactionIds = {
  transaction_id: event.idField('transaction'),
  account_id: event.idField('account'),
  transfer_id: event.idField('transfer').optional(),
  counterparty_account_id: event.idField('account').optional(),
  reverses_transaction_id: event.idField('transaction').optional(),
  hold_id: event.idField('hold').optional(),
  batch_id: event.idField('batch').optional(),
};

/**
 * transaction_type is open, so that fees or interest can be added. Account, direction, and amount describe the
 * posting completely.
 */
const postedTransaction = transactionSchema.omit({ reversed_by_transaction_id: true, failure_code: true }).extend({
  ...transactionIds,
  ...eventDay,
  created_at: event.moment,
  transaction_type: event.openWord,
  amount: event.positiveMoney,
  currency: event.currencyCode,
  status: z.literal('Completed'),
});

/** The currency is absent if the caller named none and the account was not read. */
const refusedTransaction = postedTransaction.extend({
  currency: event.currencyCode.nullable(),
  status: z.literal('Failed'),
  failure_code: event.openList(event.failureCodes),
});

/** The account at the other end, if it, and not the transaction's own account, is the reason for the failure. */
export const failureAccount = { failure_account_id: event.idField('account').optional() };

export const transactionEvents = {
  'corebanking.transaction.completed.v1': event.ledgerRow('transactions', {
    summary:
      'A transaction was posted to an account. Contains every entry of its operation. There is one event per account, so a transfer has two',
    fields: {
      transaction: event.named('Transaction', postedTransaction),
      /** The sequence of this account's entry. Gap-free per account. */
      sequence: event.count,
      balance_after: money,
      available_balance: event
        .since('1.0.0', money)
        .describe(
          'What can be spent of the account after this transaction: its balance without its holds; a decimal string',
        ),
      operation_id: event.idField('operation'),
      /** All entries of the operation, including those of Teller and Vault. */
      entries: z.array(event.named('Entry', eventEntry)).min(2),
      ...event.ownership,
      ...event.asked,
    },
    example: {
      sequence: 12,
      entries: [
        { ...exampleEntry(example.ids.account, 12, 'credit', 'CR'), account_class: 'liability' },
        { ...exampleEntry(exampleTellerId, 7, 'credit', 'DR'), account_type: 'Teller', account_class: 'asset' },
        { ...exampleEntry(exampleTellerId, 8, 'debit', 'CR'), account_type: 'Teller', account_class: 'asset' },
        { ...exampleEntry(exampleVaultId, 4, 'credit', 'DR'), account_type: 'Vault', account_class: 'asset' },
      ],
    },
  }),
  'corebanking.transaction.failed.v1': event.ledgerRow('transactions', {
    summary: 'A transaction was refused and stored as Failed; nothing was posted',
    fields: {
      transaction: event.named('FailedTransaction', refusedTransaction),
      ...failureAccount,
      available_balance: event
        .since('1.0.0', money)
        .describe('What could be spent of the account when the transaction was refused; a decimal string'),
      ...event.ownership,
      ...event.asked,
    },
    example: { transaction: { ...withdrawal, amount: '5000.00' } },
  }),
  /** As requested by the caller; the account was not found. */
  'corebanking.transaction.account_not_found.v1': event.ledgerRow('transactions', {
    summary:
      'A posting named an account that does not exist, or that its caller must not know about. Nothing was posted, and the event is not part of any account. Use it to detect probing for accounts',
    fields: {
      transaction: event.named(
        'UnknownAccountTransaction',
        refusedTransaction.extend({ failure_code: z.literal('account_not_found') }),
      ),
      ...failureAccount,
      ...event.asked,
    },
    example: { transaction: { account_id: example.ids.otherAccount, currency: null } },
  }),
};

export const transactionMeanings = {
  fields: {
    'create_transaction.transaction_type': 'Deposit or Withdrawal',
    transaction_id: `The transaction: \`txn_\` and 32 hexadecimal digits, ${meaning.opaque}`,
    transaction_type: 'Deposit, Withdrawal, Transfer, or Loan Payment',
    reference: "The caller's reference, at most 100 characters; searchable, not unique; null: none",
    'Transaction.currency': meaning.postingCurrency,
    'Transaction.status':
      'Pending: not yet decided; Completed: posted; Failed: refused, and nothing was posted. Completed and Failed are final',
    'list_transactions.actor':
      'Only transactions of this caller: `key:<family of the API key>` or `jwt:<issuer>|<subject>`',
    'list_transactions.request_id':
      'Only transactions of the request with this X-Request-Id. One of the form that the bank generates contains its time: without `from` and `to`, that time is searched first, and everything only if nothing is there. With another, `from` and `to` save pages. A posting that waited for an approval: `GET /admin/audit?request_id=`',
    'list_transactions.metadata': listedMetadata,
    'list_transactions.from': 'Accepted at or after this time: ISO 8601 date or time; a date means midnight UTC',
    'list_transactions.to': 'Accepted before this time: ISO 8601 date or time; a date means midnight UTC',
    direction: 'credit: the balance of this account rises; debit: it falls',
    side: 'The accounting side: DR or CR',
    counterparty_account_id: 'The other account of a transfer',
    counterparty_account_number: 'The number of the other account of a transfer',
    failure_code: 'If Failed: the error code of the refusal',
    min_amount: 'Only transactions of at least this amount, in units of their currency',
    max_amount: 'Only transactions of at most this amount, in units of their currency',
  },
  eventFields: {
    balance_after: 'The balance of the account after this transaction; a decimal string',
    entries: 'Every entry of the operation, including those of Teller and Vault; debits and credits (side) are equal',
    failure_account_id: 'The account at the other end, if it is the reason for the failure',
    transaction: 'The transaction as in REST, with amounts as strings',
    transaction_type:
      'Deposit, Withdrawal, Transfer, or Loan Payment; more may be added, so rely on direction and amount. A reversal has the type of what it reverses',
  },
  errors: {
    insufficient_funds: {
      meaning: 'The available balance is too low.',
      action: 'Tell the customer. A retry needs a new Idempotency-Key.',
      example: [
        `the available balance of account ${example.ids.account} is too low for this withdrawal`,
        meaning.refusedTransaction,
      ],
    },
    currency_mismatch: {
      meaning: 'An account has another currency; the bank does not exchange currencies.',
      action: "Use the account's currency.",
      example: [`account ${example.ids.account} has the currency USD, not KES`, meaning.refusedTransaction],
    },
    invalid_transaction_type: {
      meaning: 'POST /transactions accepts only Deposit and Withdrawal.',
      action: 'Use POST /transfers for transfers and loan payments.',
      example: meaning.invalidExample('transaction_type', 'invalid_transaction_type', 'must be Deposit or Withdrawal'),
    },
    transaction_not_found: meaning.notFound('transaction', example.ids.transaction),
  },
} satisfies Meanings;
