import { z } from 'zod';
import { refusalSchema } from './errors.ts';
import { fromMinor, toMinor } from './money.ts';
import { type Names, shownNames } from './names.ts';

/**
 * Resources as they appear in replies and events: snake_case fields, money as decimal strings, times in ISO
 * 8601 UTC with three decimals. REST shows money as JSON numbers (see `money` and the gateway's presenter).
 */

/** Marks a decimal string that REST shows as a JSON number. */
export const money = z
  .string()
  .regex(/^-?\d+(\.\d+)?$/)
  .meta({ money: true });

export const clientType = z.enum(['Retail', 'Corporate']);
export const ussdStatus = z.enum(['active', 'inactive']);
export const accountType = z.enum(['Savings', 'Checking', 'Current', 'Loan']);
export const accountStatus = z.enum(['Active', 'Inactive', 'Frozen']);
export const transactionType = z.enum(['Deposit', 'Withdrawal', 'Transfer', 'Loan Payment']);
export const transactionStatus = z.enum(['Pending', 'Completed', 'Failed']);
const direction = z.enum(['debit', 'credit']);
const side = z.enum(['DR', 'CR']);
export const freezeReason = z.enum(['fraud', 'legal', 'customer_request', 'deceased', 'other']);
export const keyEnvironment = z.enum(['live', 'test']);

export type AccountType = z.infer<typeof accountType>;
export type AccountStatus = z.infer<typeof accountStatus>;
export type TransactionType = z.infer<typeof transactionType>;
export type Direction = z.infer<typeof direction>;
export type Side = z.infer<typeof side>;

const time = z.string();

/** The fields that identify a client. Bound credentials cannot change them, and previous values are audited. */
export const identityFields = ['first_name', 'last_name', 'company_name', 'registration_number'] as const;

const contact = {
  email: z.string(),
  contact_number: z.string(),
  address: z.string().nullable(),
  /** Set if the client was erased; all personal data is then replaced. */
  erased_at: time.optional(),
};
const stamps = { created_at: time, updated_at: time };

export const clientSchema = z.discriminatedUnion('client_type', [
  z.object({
    client_id: z.string(),
    client_type: z.literal('Retail'),
    first_name: z.string(),
    last_name: z.string(),
    ...contact,
    ussd_phone_number: z.string().nullable(),
    ussd_status: ussdStatus,
    ...shownNames,
    ...stamps,
  }),
  z.object({
    client_id: z.string(),
    client_type: z.literal('Corporate'),
    company_name: z.string(),
    registration_number: z.string(),
    ...contact,
    ...shownNames,
    ...stamps,
  }),
]);
export type Client = z.infer<typeof clientSchema>;

export const accountSchema = z.object({
  account_id: z.string(),
  client_id: z.string(),
  account_number: z.string(),
  account_type: accountType,
  currency: z.string(),
  balance: money,
  /** The balance minus the held amount. Missing only in repeated replies from before holds existed. */
  available_balance: money.optional(),
  status: accountStatus,
  ...shownNames,
  ...stamps,
});
export type Account = z.infer<typeof accountSchema>;

/** Prefixes of account numbers (contract: accounts-1). */
export const numberPrefixes: Record<AccountType, string> = {
  Savings: 'SAV',
  Checking: 'CHK',
  Current: 'CUR',
  Loan: 'LOA',
};

/** An account without its balance, which only the ledger knows. */
export const accountMasterSchema = accountSchema.omit({ balance: true, available_balance: true });
export type AccountMaster = z.infer<typeof accountMasterSchema>;

/** The data that the ledger stores of an account. */
export const ledgerAccountSchema = accountSchema.pick({
  account_id: true,
  account_number: true,
  currency: true,
  status: true,
  balance: true,
  available_balance: true,
});
export type LedgerAccount = z.infer<typeof ledgerAccountSchema>;

export const accountBalanceSchema = accountSchema.pick({
  account_id: true,
  account_number: true,
  balance: true,
  currency: true,
});

/** An account's balance after the last entry posted before a given time. */
export const balanceAtSchema = accountBalanceSchema.extend({
  /** Only for the current time. */
  available_balance: money.optional(),
  at: time,
  /** The sequence of the entry; 0 before the first one. */
  sequence: z.number().int().min(0),
});

export const transactionSchema = z.object({
  transaction_id: z.string(),
  account_id: z.string(),
  transaction_type: transactionType,
  amount: money,
  /** null only if the caller named none and the account's is not known: while Pending, or if there is no such account. */
  currency: z.string().nullable(),
  description: z.string().nullable(),
  reference: z.string().nullable(),
  status: transactionStatus,
  created_at: time,
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
});
export type Transaction = z.infer<typeof transactionSchema>;

export const transferSchema = z.object({
  transfer_id: z.string(),
  from_account_id: z.string(),
  to_account_id: z.string(),
  amount: money,
  currency: z.string().nullable(),
  description: z.string().nullable(),
  status: transactionStatus,
  created_at: time,
  reverses_transfer_id: z.string().optional(),
  reversed_by_transfer_id: z.string().optional(),
  hold_id: z.string().optional(),
  batch_id: z.string().optional(),
  failure_code: z.string().optional(),
  ...shownNames,
});
export type Transfer = z.infer<typeof transferSchema>;

export const batchMode = z.enum(['independent', 'atomic']);
export type BatchMode = z.infer<typeof batchMode>;

/**
 * The result of one item of a batch. If it has neither transaction nor transfer, the item is Pending and the
 * result was read by a later request.
 */
export const itemResultSchema = z.object({
  index: z.number().int().min(0).max(999),
  status: transactionStatus,
  transaction: transactionSchema.optional(),
  transfer: transferSchema.optional(),
  /** The error that the item would have returned if it had been sent alone. */
  error: refusalSchema.optional(),
});
export type ItemResult = z.infer<typeof itemResultSchema>;

/** A batch without its results, as in a list. */
export const batchSummarySchema = z.object({
  batch_id: z.string(),
  mode: batchMode,
  /** Pending while any item is Pending. Refused: an atomic batch that posted nothing, which only the list shows. */
  status: z.enum(['Completed', 'Pending', 'Refused']),
  counts: z.object({
    completed: z.number().int().min(0).max(1000),
    failed: z.number().int().min(0).max(1000),
    pending: z.number().int().min(0).max(1000),
  }),
  /** The sums of the Completed items, by currency. */
  totals: z.array(z.object({ currency: z.string(), amount: money })),
  actor: z.string(),
  created_at: time,
  ...shownNames,
});
export type BatchSummary = z.infer<typeof batchSummarySchema>;

export const batchSchema = batchSummarySchema.extend({
  /** In the order of the items. */
  results: z.array(itemResultSchema),
});
export type Batch = z.infer<typeof batchSchema>;

/** What a batch has before any of its items is decided. */
export type BatchHead = Pick<BatchSummary, 'batch_id' | 'mode' | 'actor' | 'created_at'> & Names;

/** Returns the batch with these results, which are in the order of its items. Pure. */
export function batchOf(head: BatchHead, results: ItemResult[]): Batch {
  const count = (status: ItemResult['status']): number => results.filter((result) => result.status === status).length;
  const counts = { completed: count('Completed'), failed: count('Failed'), pending: count('Pending') };
  return { ...head, status: batchStatus(counts), counts, totals: totalsOf(results), results };
}

/** Returns the status of a batch that was not refused. Pure. */
export function batchStatus({ pending }: BatchSummary['counts']): BatchSummary['status'] {
  return pending === 0 ? 'Completed' : 'Pending';
}

function totalsOf(results: ItemResult[]): BatchSummary['totals'] {
  const sums = new Map<string, bigint>();
  for (const { status, transaction, transfer } of results) {
    const { amount = '0', currency = null } = transfer ?? transaction ?? {};
    const minor = status === 'Completed' && currency !== null ? toMinor(amount, currency) : undefined;
    if (typeof minor === 'bigint' && currency !== null) sums.set(currency, (sums.get(currency) ?? 0n) + minor);
  }
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([currency, minor]) => ({ currency, amount: fromMinor(minor, currency) }));
}

export const entrySchema = z.object({
  entry_id: z.string(),
  operation_id: z.string(),
  transaction_id: z.string(),
  account_id: z.string(),
  sequence: z.number().int().min(1),
  direction,
  side,
  amount: money,
  currency: z.string(),
  balance_after: money,
  created_at: time,
});
export type Entry = z.infer<typeof entrySchema>;

/** An entry with all data of a line of a printed statement. */
export const entryLineSchema = entrySchema.extend({
  transaction_type: transactionType,
  description: z.string().nullable(),
  reference: z.string().nullable(),
  counterparty_account_id: z.string().optional(),
  counterparty_account_number: z.string().optional(),
  transfer_id: z.string().optional(),
});
export type EntryLine = z.infer<typeof entryLineSchema>;

/**
 * An account over a period, with one page of its entries in posting order. Totals and balances cover the whole
 * period.
 */
export const statementSchema = z.object({
  account_id: z.string(),
  account_number: z.string(),
  currency: z.string(),
  /** The period includes `from` and excludes `to`; null: no bound. */
  from: time.nullable(),
  to: time.nullable(),
  opening_balance: money,
  closing_balance: money,
  debit_total: money,
  credit_total: money,
  entry_count: z.number().int().min(0).max(100_000),
  entries: z.array(entryLineSchema),
});
export type Statement = z.infer<typeof statementSchema>;

export const statusTransitionSchema = z.object({
  transition_id: z.string(),
  account_id: z.string(),
  from_status: accountStatus,
  to_status: accountStatus,
  /** Not shown to callers bound to a client. */
  reason: freezeReason.nullable().optional(),
  note: z.string().nullable().optional(),
  actor: z.string().optional(),
  created_at: time,
});
export type StatusTransition = z.infer<typeof statusTransitionSchema>;

/** A remark of staff, for staff: on a client, or on one of their accounts. */
export const noteSchema = z.object({
  note_id: z.string(),
  client_id: z.string(),
  /** null: on the client. */
  account_id: z.string().nullable(),
  note: z.string(),
  actor: z.string(),
  created_at: time,
});
export type Note = z.infer<typeof noteSchema>;

export const apiKeySchema = z.object({
  key_id: z.string(),
  name: z.string(),
  scopes: z.array(z.string()),
  environment: keyEnvironment,
  client_id: z.string().nullable(),
  status: z.enum(['active', 'expired', 'revoked']),
  created_at: time,
  created_by: z.string(),
  expires_at: time,
  last_used_at: time.nullable(),
  revoked_at: time.nullable(),
  /** The key that was rotated to create this one. */
  rotated_from: z.string().nullable(),
});
export type ApiKey = z.infer<typeof apiKeySchema>;

export const trialBalanceSchema = z.object({
  currency: z.string(),
  debit_total: money,
  credit_total: money,
  assets: money,
  liabilities: money,
  difference: money,
});

export type TrialBalance = z.infer<typeof trialBalanceSchema>;

export const systemAccountSchema = z.object({
  account_id: z.string(),
  account_number: z.string(),
  kind: z.enum(['Teller', 'Vault']),
  currency: z.string(),
  balance: money,
  slots: z.array(z.object({ account_id: z.string(), account_number: z.string(), balance: money })),
});
export type SystemAccount = z.infer<typeof systemAccountSchema>;
