import { z } from 'zod';
import { money } from './money.ts';
import { clientsOwn, externalId, givenNames, shownMasterNames } from './names.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';

/** Accounts (contract: accounts): their master data, which accounts keeps, and their balances, which the ledger keeps. */

export const accountType = z.enum(['Savings', 'Checking', 'Current', 'Loan']);
export const accountStatus = z.enum(['Active', 'Inactive', 'Frozen']);

export type AccountType = z.infer<typeof accountType>;
export type AccountStatus = z.infer<typeof accountStatus>;

export const accountSchema = z
  .object({
    account_id: z.string(),
    client_id: z.string(),
    account_number: z.string(),
    account_type: accountType,
    currency: z.string(),
    balance: money,
    /** The balance minus the held amount. Missing only in repeated replies from before holds existed. */
    available_balance: money.optional(),
    status: accountStatus,
    ...shownMasterNames,
    created_at: shown.time,
    updated_at: shown.time,
  })
  .meta({ id: 'Account' });
export type Account = z.infer<typeof accountSchema>;

/** Prefixes of account numbers (contract: accounts-1). */
export const numberPrefixes: Record<AccountType, string> = {
  Savings: 'SAV',
  Checking: 'CHK',
  Current: 'CUR',
  Loan: 'LOA',
};
export const isLoanNumber = (accountNumber: string): boolean => accountNumber.startsWith(`${numberPrefixes.Loan}-`);

/** An account without its balance, which only the ledger knows. */
const accountMasterSchema = accountSchema.omit({ balance: true, available_balance: true });
export type AccountMaster = z.infer<typeof accountMasterSchema>;

/** Replies to the gateway have the version of the status, which is not shown: it is part of the entity tag. */
const forTag = { status_version: z.number().int().optional() };
export const accountReplySchema = accountSchema.extend(forTag);
export type AccountReply = z.infer<typeof accountReplySchema>;

/** The data that the ledger stores of an account. */
const ledgerAccountSchema = accountSchema
  .pick({
    account_id: true,
    account_number: true,
    currency: true,
    status: true,
    balance: true,
    available_balance: true,
  })
  .extend(forTag);
export type LedgerAccount = z.infer<typeof ledgerAccountSchema>;

export const accountBalanceSchema = accountSchema
  .pick({
    account_id: true,
    account_number: true,
    balance: true,
    currency: true,
  })
  .meta({ id: 'AccountBalance' });

/** An account number from another system. It needs no check digit. */
const accountNumber = z
  .string()
  .regex(/^[A-Z]{3}-\d{4,20}$/, "must be the type's prefix, a hyphen and 4 to 20 digits, such as SAV-1234567897")
  .meta({
    description:
      'The number that the account had in another system (scope `accounts:import`): the prefix of its type, a hyphen, and 4 to 20 digits; if omitted, the bank generates one',
    pattern: `^(${Object.values(numberPrefixes).join('|')})-[0-9]{4,20}$`,
    input_examples: ['SAV-00042'],
  });

function prefixFor({ account_type }: field.Body): string | undefined {
  const type = accountType.safeParse(account_type);
  return type.success ? numberPrefixes[type.data] : undefined;
}

/** Invalid account numbers and unknown types violate other rules. */
function hasOwnPrefix(body: field.Body): boolean {
  const [prefix, number] = [prefixFor(body), body['account_number']];
  return (
    prefix === undefined ||
    typeof number !== 'string' ||
    !accountNumber.safeParse(number).success ||
    number.startsWith(`${prefix}-`)
  );
}

const listFilters = z.strictObject({
  client_id: field.id.optional(),
  client_ids: field.ids('cli'),
  account_ids: field.ids('acc'),
  account_type: accountType.optional(),
  status: accountStatus.optional(),
  currency: field.currency.optional(),
  external_id: externalId.optional(),
  ...field.page,
});

const names = { external_id: 'core-4711', metadata: { branch: 'Nairobi 3' } };

export const accountEndpoints = {
  list_accounts: {
    route: 'GET /accounts',
    summary: 'List accounts',
    scope: 'accounts:read',
    query: listFilters,
    result: accountSchema,
    shape: 'page',
    errors: ['unsupported_currency'],
  },
  get_balance_by_number: {
    route: 'GET /accounts/number/:accountNumber/balance',
    summary: 'Get a balance by account number',
    scope: 'accounts:read',
    errors: ['account_not_found'],
  },
  get_account: {
    route: 'GET /accounts/:account_id',
    summary: 'Get an account',
    scope: 'accounts:read',
    result: accountSchema,
    versioned: true,
  },
  open_account: {
    route: 'POST /accounts',
    summary: 'Open an account for a client',
    scope: 'accounts:write',
    result: accountSchema,
    versioned: true,
    body: z
      .strictObject({
        client_id: field.id,
        account_type: accountType,
        currency: field.currencyInUse,
        initial_deposit: field.orNumber(0, field.amount(true)),
        status: accountStatus.default('Active'),
        account_number: accountNumber.nullish(),
        migrated: z.boolean().optional(),
        ...givenNames,
        ...clientsOwn,
      })
      .check(
        ...field.amountFits('initial_deposit'),
        field.rule(
          'validation_failed',
          'account_number',
          (body) => `must begin with ${String(prefixFor(body))}-`,
          hasOwnPrefix,
        ),
      ),
    description:
      'An `initial_deposit` above 0 also requires `transactions:write`; `account_number` and `migrated` require `accounts:import`. Credentials bound to a client open Active accounts, no Loans, until the client has 20; `metadata` of theirs is `client_metadata`.',
    success: 201,
    errors: [
      ...field.moneyErrors,
      'client_not_found',
      'client_erased',
      'duplicate_account_number',
      'duplicate_external_id',
    ],
    requests: {
      savings: { initial_deposit: 100.5 },
      names,
      moving_in: { account_number: 'SAV-00042', initial_deposit: 1500.75, migrated: true },
    },
    answers: { savings: {}, names },
  },
} satisfies EndpointRows;

export const accountMessages = {
  open_account: message.accounts.command(
    {
      account_id: message.id,
      client_id: message.id,
      account_type: accountType,
      currency: message.currency,
      initial_deposit: message.amountOrZero,
      status: accountStatus,
      account_number: z.string().max(24).nullish(),
      migrated: z.boolean().optional(),
      ...givenNames,
      ...clientsOwn,
    },
    accountReplySchema,
  ),
  /** A step of the opening saga. The reply goes to `accounts.commands`. */
  open_ledger_account: message.ledger.command(
    {
      account_id: message.id,
      client_id: message.id,
      account_number: z.string(),
      account_type: accountType,
      currency: message.currency,
      status: accountStatus,
      initial_deposit: message.amountOrZero,
      migrated: z.boolean().optional(),
    },
    z.object({ account_id: message.id, status: accountStatus, status_version: z.number().int(), balance: money }),
  ),
  list_accounts: message.accounts.query(message.listRequest(listFilters), message.pageSchema(accountMasterSchema)),
  get_account: message.accounts.query({ account_id: message.id }, accountMasterSchema),
  get_ledger_accounts: message.ledger.query(
    { account_ids: z.array(message.id).max(500) },
    z.array(ledgerAccountSchema),
  ),
  get_balance_by_number: message.ledger.query({ account_number: z.string().max(64) }, accountBalanceSchema),
};

const eventAccount = event.named(
  'Account',
  accountMasterSchema.extend({
    account_id: event.idField('account'),
    client_id: event.idField('client'),
    account_number: event.accountNumber,
    currency: event.currencyCode,
    created_at: event.moment,
    updated_at: event.moment,
  }),
);

export const accountEvents = {
  'corebanking.account.opened.v1': event.row('accounts', {
    summary: 'An account was opened and accepts postings. Its initial deposit, if any, is a transaction',
    fields: { account: eventAccount, ...event.asked },
  }),
};

export const accountStates = {
  /**
   * The latest state of an account, published when it is opened and after every posting, status change, and
   * hold change. The topic is compacted.
   */
  'corebanking.balance.v1': event.ledgerRow('balances', {
    summary: 'The state of an account after its latest posting; the topic keeps the latest of each account forever',
    fields: {
      account_id: event.idField('account'),
      client_id: event.ownership.client_id,
      account_number: event.accountNumber,
      account_type: accountType,
      currency: event.currencyCode,
      status: accountStatus,
      status_version: event.count,
      balance: money,
      /** The balance minus the held amount. Messages from before 1.0.0 lack it, and hold_version. */
      available_balance: event.since('1.0.0', money),
      sequence: z.number().int().min(0),
      hold_version: event.since('1.0.0', z.number().int().min(0)),
      updated_at: event.moment,
    },
  }),
  /** The master data of an account after its opening and every change; the topic is compacted. */
  'corebanking.account.v1': event.row('account-masters', {
    summary:
      'The master data of an account after its opening or a change; the topic keeps the latest of each account forever',
    fields: { account: eventAccount, status_version: event.count },
  }),
};

export const accountMeanings = {
  fields: {
    account_id: `The account: \`acc_\` and 32 hexadecimal digits, ${meaning.opaque}`,
    account_ids: 'Only these accounts: at most 100 ids, separated by commas',
    'list_accounts.client_ids': 'Only accounts of these clients: at most 100 ids, separated by commas',
    accountNumber: 'An account number, such as SAV-1234567897',
    account_number:
      'The account number that customers know: SAV, CHK, CUR, or LOA by type, a hyphen, and digits; for Teller and Vault, TLR or VLT and the currency',
    account_type: 'Savings, Checking, Current, or Loan; the balance of a Loan is the outstanding amount. Never changes',
    'open_account.initial_deposit': `Posted when the account is opened, as a deposit; for a Loan, the principal that is paid out; ${meaning.inUnits}. 0: nothing is posted`,
    'open_account.migrated':
      'true: the account was kept in another system until now (scope `accounts:import`); the description of its `initial_deposit` is "Opening balance"',
    balance: `The balance, ${meaning.inUnits}; for a Loan, the outstanding amount`,
    available_balance: `The balance minus the held amount, ${meaning.inUnits}`,
    'Account.status':
      'Active: can transact; Inactive: cannot transact; Frozen: cannot transact, typically for fraud or legal reasons',
    'open_account.status': 'The initial status. If it is not Active, nothing but the initial deposit can be posted',
  },
  eventFields: {
    account: 'The account as in REST, without its balance',
  },
  errors: {
    inactive_account: {
      meaning: 'The account is Inactive or Frozen.',
      action: 'Activate it, then retry with a new Idempotency-Key.',
      example: [`account ${example.ids.account} is Frozen`, meaning.refusedTransaction],
    },
    invalid_account_type: {
      meaning: 'This type of account does not support the operation, such as a Deposit on a Loan.',
      action: 'Use another operation or account.',
      example: ['a Deposit is not possible on a Loan account', meaning.refusedTransaction],
    },
    duplicate_account_number: {
      meaning: 'Another account has this `account_number`.',
      action: 'Use another one, or omit it: the bank then generates one.',
      example: ['an account with the number SAV-1234567897 already exists'],
    },
    balance_limit_exceeded: {
      meaning: 'The balance would exceed 10^15 - 1 minor units.',
      action: 'Use another account.',
      example: [
        `the balance of account ${example.ids.account} would exceed 10^15 - 1 minor units`,
        meaning.refusedTransaction,
      ],
    },
    account_not_found: {
      meaning: 'The account does not exist, or is not visible to this caller; the message says which account.',
      action: 'Correct the id or number.',
      example: [
        `account_id ${example.ids.account}: account not found`,
        { details: { field: 'account_id', account_id: example.ids.account, transaction_id: example.ids.transaction } },
      ],
    },
  },
} satisfies Meanings;
