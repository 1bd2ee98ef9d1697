import { z } from 'zod';

/**
 * Resources as they travel in replies and events: snake_case fields, money as decimal strings, times as ISO 8601 UTC
 * with three decimals. REST shows the same with money as JSON numbers (see `money` and the gateway's presenter).
 */

/** Marks a decimal string that REST shows as a JSON number. */
export const money = z.string().regex(/^-?\d+(\.\d+)?$/).meta({ money: true });

export const clientType = z.enum(['Retail', 'Corporate']);
export const ussdStatus = z.enum(['active', 'inactive']);
export const accountType = z.enum(['Savings', 'Checking', 'Current', 'Loan']);
export const accountStatus = z.enum(['Active', 'Inactive', 'Frozen']);
export const transactionType = z.enum(['Deposit', 'Withdrawal', 'Transfer', 'Loan Payment']);
export const transactionStatus = z.enum(['Pending', 'Completed', 'Failed']);
export const direction = z.enum(['debit', 'credit']);
export const side = z.enum(['DR', 'CR']);
export const freezeReason = z.enum(['fraud', 'legal', 'customer_request', 'deceased', 'other']);
export const keyEnvironment = z.enum(['live', 'test']);

export type AccountType = z.infer<typeof accountType>;
export type AccountStatus = z.infer<typeof accountStatus>;
export type TransactionType = z.infer<typeof transactionType>;
export type Direction = z.infer<typeof direction>;
export type Side = z.infer<typeof side>;

const time = z.string();

const contact = { email: z.string(), contact_number: z.string(), address: z.string().nullable() };
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
    ...stamps,
  }),
  z.object({
    client_id: z.string(),
    client_type: z.literal('Corporate'),
    company_name: z.string(),
    registration_number: z.string(),
    ...contact,
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
  status: accountStatus,
  ...stamps,
});
export type Account = z.infer<typeof accountSchema>;

/** An account without its balance, which the ledger alone knows. */
export const accountMasterSchema = accountSchema.omit({ balance: true });
export type AccountMaster = z.infer<typeof accountMasterSchema>;

/** What the ledger knows of an account. */
export const ledgerAccountSchema = z.object({
  account_id: z.string(),
  account_number: z.string(),
  currency: z.string(),
  status: accountStatus,
  balance: money,
});
export type LedgerAccount = z.infer<typeof ledgerAccountSchema>;

export const accountBalanceSchema = z.object({ account_id: z.string(), account_number: z.string(), balance: money, currency: z.string() });

export const transactionSchema = z.object({
  transaction_id: z.string(),
  account_id: z.string(),
  transaction_type: transactionType,
  amount: money,
  /** null only where the account was never found and the caller named no currency. */
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
  failure_code: z.string().optional(),
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
  failure_code: z.string().optional(),
});
export type Transfer = z.infer<typeof transferSchema>;

export const entrySchema = z.object({
  entry_id: z.string(),
  operation_id: z.string(),
  transaction_id: z.string(),
  account_id: z.string(),
  sequence: z.number().int(),
  direction,
  side,
  amount: money,
  currency: z.string(),
  balance_after: money,
  created_at: time,
});
export type Entry = z.infer<typeof entrySchema>;

/** An account over a period, with a page of its entries in the order of booking; totals and balances are those of the whole period. */
export const statementSchema = z.object({
  account_id: z.string(),
  account_number: z.string(),
  currency: z.string(),
  /** Booked at `from` or later, and before `to`; null: no bound. */
  from: time.nullable(),
  to: time.nullable(),
  opening_balance: money,
  closing_balance: money,
  debit_total: money,
  credit_total: money,
  entry_count: z.number().int(),
  entries: z.array(entrySchema),
});
export type Statement = z.infer<typeof statementSchema>;

export const statusTransitionSchema = z.object({
  transition_id: z.string(),
  account_id: z.string(),
  from_status: accountStatus,
  to_status: accountStatus,
  /** Why, and by whom: not for callers bound to one client. */
  reason: freezeReason.nullable().optional(),
  note: z.string().nullable().optional(),
  actor: z.string().optional(),
  created_at: time,
});
export type StatusTransition = z.infer<typeof statusTransitionSchema>;

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
  /** The key that this one was made from by rotation. */
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
