import { z } from 'zod';
import { administrationBodies, administrationParameters, auditRecordSchema, deadLetterContentSchema, deadLetterSchema, operationsSchema, postingStatisticsSchema, searchHitSchema, timelineSchema, verificationSchema } from './administration.ts';
import { approvalAction, approvalBodies, approvalSchema, approvalStatus } from './approvals.ts';
import type { ErrorCode } from './errors.ts';
import { bodies, page, parameters } from './fields.ts';
import type { MessageName } from './messages.ts';
import {
  accountBalanceSchema,
  accountSchema,
  apiKeySchema,
  clientSchema,
  entrySchema,
  statementSchema,
  statusTransitionSchema,
  systemAccountSchema,
  transactionSchema,
  transferSchema,
  trialBalanceSchema,
} from './resources.ts';
import type { Scope } from './scopes.ts';

/**
 * The endpoints table: what the gateway routes, OpenAPI documents and clients call. Paths are fastify's (`:name`).
 */
export interface Endpoint {
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  tag: 'Health' | 'Clients' | 'Accounts' | 'Transactions' | 'Transfers' | 'Administration';
  summary: string;
  /** null: any authenticated caller. */
  scope: Scope | null;
  /** Needed besides `scope`: what it shows is the subject of this one. */
  also?: Scope;
  query: z.ZodType;
  body?: z.ZodType;
  /** What callers must know beyond the summary. */
  description?: string;
  /** What `data` holds; `list` and `page` say how. `document`: one, of which a part is a page. */
  result: z.ZodType;
  shape: 'one' | 'list' | 'page' | 'document' | 'bare' | 'health';
  success: 200 | 201;
  /** Answered 202 with a Pending resource when no reply comes in time. */
  pending?: true;
  /** Answered 202 with an Approval where a second person must approve it. */
  approval?: true;
  /** The message that carries it; composed reads name their first one. */
  message: MessageName | null;
  /** Codes beyond those that every endpoint can answer. */
  errors: ErrorCode[];
}

const none = parameters.none;
const moneyErrors: ErrorCode[] = ['invalid_amount', 'invalid_amount_precision', 'amount_too_large', 'unsupported_currency'];
const postingErrors: ErrorCode[] = [
  ...moneyErrors,
  'account_not_found',
  'insufficient_funds',
  'inactive_account',
  'invalid_account_type',
  'currency_mismatch',
  'balance_limit_exceeded',
  'deadline_exceeded',
  'idempotency_key_reused',
  'outcome_unknown',
];
const writeErrors: ErrorCode[] = ['deadline_exceeded', 'idempotency_key_reused', 'outcome_unknown'];

const searched = (when: string) => `No index confines the list ${when}: then the newest 200,000 transactions are looked at for one page, \`complete\` says whether that was all, and the Link goes on from there. A caller may have two such lists under way; a third is 429.`;

/** `satisfies` keeps each entry's exact types. */
export const endpoints = {
  health: {
    method: 'GET', path: '/', tag: 'Health', summary: 'Health check', scope: null, query: none,
    result: z.object({ status: z.literal('success'), message: z.string(), apiVersion: z.string() }), shape: 'health', success: 200, message: null, errors: [],
  },
  list_clients: {
    method: 'GET', path: '/clients', tag: 'Clients', summary: 'List clients', scope: 'clients:read', query: parameters.listClients,
    result: clientSchema, shape: 'page', success: 200, message: 'list_clients', errors: ['invalid_cursor'],
  },
  search_client_by_ussd: {
    method: 'GET', path: '/clients/ussd/search', tag: 'Clients', summary: 'Find a Retail client by USSD phone number', scope: 'clients:read', query: parameters.searchUssd,
    result: clientSchema, shape: 'one', success: 200, message: 'search_client_by_ussd', errors: ['client_not_found'],
  },
  get_client: {
    method: 'GET', path: '/clients/:client_id', tag: 'Clients', summary: 'Get a client', scope: 'clients:read', query: none,
    result: clientSchema, shape: 'one', success: 200, message: 'get_client', errors: ['client_not_found'],
  },
  create_client: {
    method: 'POST', path: '/clients', tag: 'Clients', summary: 'Create a client', scope: 'clients:write', query: none, body: bodies.createClient,
    result: clientSchema, shape: 'one', success: 201, message: 'create_client', errors: ['duplicate_ussd_phone', ...writeErrors],
  },
  update_client: {
    method: 'PATCH', path: '/clients/:client_id', tag: 'Clients', summary: 'Change contact fields, USSD phone and USSD status', scope: 'clients:write', query: none, body: bodies.updateClient,
    result: clientSchema, shape: 'one', success: 200, message: 'update_client', errors: ['client_not_found', 'duplicate_ussd_phone', 'deadline_exceeded', 'outcome_unknown'],
  },
  list_accounts: {
    method: 'GET', path: '/accounts', tag: 'Accounts', summary: 'List accounts', scope: 'accounts:read', query: parameters.listAccounts,
    result: accountSchema, shape: 'page', success: 200, message: 'list_accounts', errors: ['invalid_cursor', 'unsupported_currency'],
  },
  get_balance_by_number: {
    method: 'GET', path: '/accounts/number/:accountNumber/balance', tag: 'Accounts', summary: 'Balance by account number', scope: 'accounts:read', query: none,
    result: accountBalanceSchema, shape: 'one', success: 200, message: 'get_balance_by_number', errors: ['account_not_found'],
  },
  get_account: {
    method: 'GET', path: '/accounts/:account_id', tag: 'Accounts', summary: 'Get an account', scope: 'accounts:read', query: none,
    result: accountSchema, shape: 'one', success: 200, message: 'get_account', errors: ['account_not_found'],
  },
  open_account: {
    method: 'POST', path: '/accounts', tag: 'Accounts', summary: 'Open an account for a client', scope: 'accounts:write', query: none, body: bodies.openAccount,
    description: 'An `initial_deposit` above 0 is cash, and needs `transactions:write` besides.',
    result: accountSchema, shape: 'one', success: 201, approval: true, message: 'open_account', errors: [...moneyErrors, 'client_not_found', ...writeErrors],
  },
  change_account_status: {
    method: 'POST', path: '/accounts/:account_id/status-transitions', tag: 'Accounts', summary: 'Activate, deactivate or freeze an account', scope: 'accounts:status', query: none, body: bodies.changeStatus,
    result: accountSchema, shape: 'one', success: 200, approval: true, message: 'change_account_status', errors: ['account_not_found', 'approval_required', ...writeErrors],
  },
  list_status_transitions: {
    method: 'GET', path: '/accounts/:account_id/status-transitions', tag: 'Accounts', summary: 'Status history of an account', scope: 'accounts:read', query: parameters.page,
    result: statusTransitionSchema, shape: 'page', success: 200, message: 'list_status_transitions', errors: ['account_not_found', 'invalid_cursor'],
  },
  list_entries: {
    method: 'GET', path: '/accounts/:account_id/entries', tag: 'Accounts', summary: 'Ledger entries of an account', scope: 'transactions:read', query: parameters.page,
    result: entrySchema, shape: 'page', success: 200, message: 'list_entries', errors: ['account_not_found', 'invalid_cursor'],
  },
  get_statement: {
    method: 'GET', path: '/accounts/:account_id/statement', tag: 'Accounts', summary: 'Statement of an account for a period', scope: 'transactions:read', query: parameters.statement,
    description: 'Entries in the order of booking, `from` included, `to` not, a page at a time; balances and totals are those of the whole period, and on every page those of the first. A period holds at most 100,000 entries.',
    result: statementSchema, shape: 'document', success: 200, message: 'get_statement', errors: ['account_not_found', 'invalid_cursor'],
  },
  list_transactions: {
    method: 'GET', path: '/transactions', tag: 'Transactions', summary: 'List transactions', scope: 'transactions:read', query: parameters.listTransactions,
    description: searched('without `account_id` or `transfer_id`, by type, amount or the status Completed'),
    result: transactionSchema, shape: 'page', success: 200, message: 'list_transactions', errors: ['invalid_cursor', 'invalid_amount'],
  },
  get_transaction: {
    method: 'GET', path: '/transactions/:transaction_id', tag: 'Transactions', summary: 'Get a transaction', scope: 'transactions:read', query: none,
    result: transactionSchema, shape: 'one', success: 200, message: 'get_transaction', errors: ['transaction_not_found', 'idempotency_key_reused'],
  },
  create_transaction: {
    method: 'POST', path: '/transactions', tag: 'Transactions', summary: 'Deposit or withdraw', scope: 'transactions:write', query: none, body: bodies.createTransaction,
    result: transactionSchema, shape: 'bare', success: 201, pending: true, approval: true, message: 'create_transaction', errors: ['invalid_transaction_type', ...postingErrors],
  },
  reverse_transaction: {
    method: 'POST', path: '/transactions/:transaction_id/reversal', tag: 'Transactions', summary: 'Reverse a transaction', scope: 'transactions:reverse', query: none, body: bodies.reverse,
    result: transactionSchema, shape: 'one', success: 201, approval: true, message: 'reverse_transaction',
    errors: ['transaction_not_found', 'not_reversible', 'already_reversed', 'insufficient_funds', 'inactive_account', 'balance_limit_exceeded', 'amount_exceeds_outstanding', ...writeErrors],
  },
  list_transfers: {
    method: 'GET', path: '/transfers', tag: 'Transfers', summary: 'List transfers', scope: 'transactions:read', query: parameters.listTransfers,
    description: searched('without `account_id`'),
    result: transferSchema, shape: 'page', success: 200, message: 'list_transfers', errors: ['invalid_cursor'],
  },
  get_transfer: {
    method: 'GET', path: '/transfers/:transfer_id', tag: 'Transfers', summary: 'Get a transfer', scope: 'transactions:read', query: none,
    result: transferSchema, shape: 'one', success: 200, message: 'get_transfer', errors: ['transfer_not_found', 'idempotency_key_reused'],
  },
  create_transfer: {
    method: 'POST', path: '/transfers', tag: 'Transfers', summary: 'Move funds between two accounts', scope: 'transfers:write', query: none, body: bodies.createTransfer,
    result: transferSchema, shape: 'one', success: 201, pending: true, approval: true, message: 'create_transfer', errors: ['same_account', 'amount_exceeds_outstanding', 'destination_refused', ...postingErrors],
  },
  create_api_key: {
    method: 'POST', path: '/admin/api-keys', tag: 'Administration', summary: 'Create an API key', scope: 'keys:manage', query: none, body: bodies.createKey,
    description: 'It ends after KEY_MAX_LIFETIME_DAYS at the latest, and not after the key that makes it; so it does where `expires_at` is not given. Bound to one client, it cannot have scopes that belong to the bank.',
    result: apiKeySchema.extend({ api_key: z.string().optional() }), shape: 'one', success: 201, approval: true, message: 'create_api_key', errors: ['client_not_found', ...writeErrors],
  },
  list_api_keys: {
    method: 'GET', path: '/admin/api-keys', tag: 'Administration', summary: 'List API keys', scope: 'keys:manage', query: parameters.page,
    result: apiKeySchema, shape: 'page', success: 200, message: 'list_api_keys', errors: ['invalid_cursor'],
  },
  get_api_key: {
    method: 'GET', path: '/admin/api-keys/:key_id', tag: 'Administration', summary: 'Get an API key', scope: 'keys:manage', query: none,
    result: apiKeySchema, shape: 'one', success: 200, message: 'get_api_key', errors: ['api_key_not_found'],
  },
  rotate_api_key: {
    method: 'POST', path: '/admin/api-keys/:key_id/rotation', tag: 'Administration', summary: 'Replace an API key, the old one staying valid for a while', scope: 'keys:manage', query: none, body: bodies.rotateKey,
    description: 'The new key ends when the old one would have ended, and not after the key that rotates it.',
    result: apiKeySchema.extend({ api_key: z.string().optional() }), shape: 'one', success: 201, approval: true, message: 'rotate_api_key', errors: ['api_key_not_found', 'invalid_status_transition', ...writeErrors],
  },
  revoke_api_key: {
    method: 'POST', path: '/admin/api-keys/:key_id/revocation', tag: 'Administration', summary: 'Revoke an API key and its family', scope: 'keys:manage', query: none, body: bodies.revokeKey,
    description: 'Every key that it was rotated from or to ends with it; with `descendants` also what these have made or rotated, and what those have.',
    result: apiKeySchema, shape: 'one', success: 200, message: 'revoke_api_key', errors: ['api_key_not_found', ...writeErrors],
  },
  get_trial_balance: {
    method: 'GET', path: '/admin/trial-balance', tag: 'Administration', summary: 'Trial balance per currency', scope: 'books:read', query: none,
    result: trialBalanceSchema, shape: 'list', success: 200, message: 'get_trial_balance', errors: [],
  },
  get_system_accounts: {
    method: 'GET', path: '/admin/system-accounts', tag: 'Administration', summary: 'Teller and Vault per currency', scope: 'books:read', query: none,
    result: systemAccountSchema, shape: 'list', success: 200, message: 'get_system_accounts', errors: [],
  },
  search: {
    method: 'GET', path: '/admin/search', tag: 'Administration', summary: 'Find anything by one text', scope: null, query: administrationParameters.search,
    description:
      'Finds clients (clients:read) by id, by the beginning of their name or of their last name in any script and case, and by contact or USSD phone number; accounts (accounts:read) by id or number; ' +
      'transactions and transfers (transactions:read) by id, operation id, reference or Idempotency-Key, and by the request id where they are among the newest 20,000; audit records (audit:read) by request id. ' +
      'All but names match as a whole. At most 20 of a kind; a kind that the scopes do not allow is left out. Not for credentials bound to one client. What it shows a member of staff of a client is audited.',
    result: searchHitSchema, shape: 'list', success: 200, message: 'search_records', errors: ['insufficient_scope'],
  },
  get_timeline: {
    method: 'GET', path: '/admin/transactions/:transaction_id/timeline', tag: 'Administration', summary: 'What became of a transaction: request, command, entries, events', scope: 'audit:read', query: none,
    description: 'The entries are those of the whole operation, with Teller, Vault and the other party. Events are told as long as the outbox keeps them, OUTBOX_RETENTION_HOURS after they were published.',
    result: timelineSchema, shape: 'one', success: 200, message: 'get_timeline', errors: ['transaction_not_found'],
  },
  get_posting_statistics: {
    method: 'GET', path: '/admin/posting-statistics', tag: 'Administration', summary: 'Operations and amounts per minute, hour or day', scope: 'books:read', query: administrationParameters.postingStatistics,
    description: 'Without `to` up to now, without `from` an hour of minutes, a day of hours or thirty days; at most 1,500 buckets. The newest 200,000 transactions of the period are counted, and `complete` says whether these are all.',
    result: postingStatisticsSchema, shape: 'one', success: 200, message: 'get_posting_statistics', errors: ['unsupported_currency'],
  },
  get_operations: {
    method: 'GET', path: '/admin/operations', tag: 'Administration', summary: 'Outboxes, consumer lag, dead letters, breakers, the last check of the books', scope: 'books:read', query: none,
    description: 'A part that does not answer is null; the answer is 200 all the same.',
    result: operationsSchema, shape: 'one', success: 200, message: 'get_ledger_operations', errors: [],
  },
  verify_books: {
    method: 'POST', path: '/admin/verifications', tag: 'Administration', summary: 'Check the books against every rule, in one snapshot while postings go on', scope: 'books:read', query: none, body: administrationBodies.verifyBooks,
    description: 'Answered as soon as it has begun; `last_verification` of the operations tells its result. It reads every entry. Where one is running already, that one is answered.',
    result: verificationSchema, shape: 'one', success: 200, message: 'verify_books', errors: ['outcome_unknown'],
  },
  list_audit: {
    method: 'GET', path: '/admin/audit', tag: 'Administration', summary: 'List audit records', scope: 'audit:read', query: administrationParameters.listAudit,
    result: auditRecordSchema, shape: 'page', success: 200, message: 'list_audit', errors: ['invalid_cursor'],
  },
  list_dead_letters: {
    method: 'GET', path: '/admin/dead-letters', tag: 'Administration', summary: 'List messages that could not be processed', scope: 'ops:manage', query: administrationParameters.listDeadLetters,
    result: deadLetterSchema, shape: 'page', success: 200, message: 'list_dead_letters', errors: ['invalid_cursor'],
  },
  get_dead_letter: {
    method: 'GET', path: '/admin/dead-letters/:dead_letter_id', tag: 'Administration', summary: 'Get a dead letter with headers and value', scope: 'ops:manage', also: 'clients:read', query: none,
    result: deadLetterContentSchema, shape: 'one', success: 200, message: 'get_dead_letter', errors: ['dead_letter_not_found'],
  },
  redrive_dead_letter: {
    method: 'POST', path: '/admin/dead-letters/:dead_letter_id/redrive', tag: 'Administration', summary: 'Send a dead letter to its topic again, its very bytes', scope: 'ops:manage', query: none, body: administrationBodies.redriveDeadLetter,
    result: deadLetterSchema, shape: 'one', success: 200, approval: true, message: 'redrive_dead_letter', errors: ['dead_letter_not_found', 'invalid_status_transition', 'dead_letter_expired', ...writeErrors],
  },
  drop_dead_letter: {
    method: 'POST', path: '/admin/dead-letters/:dead_letter_id/drop', tag: 'Administration', summary: 'Decide that a dead letter is never executed', scope: 'ops:manage', query: none, body: administrationBodies.dropDeadLetter,
    result: deadLetterSchema, shape: 'one', success: 200, message: 'drop_dead_letter', errors: ['dead_letter_not_found', 'invalid_status_transition', ...writeErrors],
  },
  list_approvals: {
    method: 'GET', path: '/admin/approvals', tag: 'Administration', summary: 'List what waits for a second person, or did', scope: null,
    query: z.strictObject({ status: approvalStatus.optional(), action: approvalAction.optional(), ...page }),
    description: 'With `approvals:write` those that the caller has the scope of the action for, and always their own.',
    result: approvalSchema, shape: 'page', success: 200, message: 'list_approvals', errors: ['invalid_cursor'],
  },
  get_approval: {
    method: 'GET', path: '/admin/approvals/:approval_id', tag: 'Administration', summary: 'Get an approval', scope: null, query: none,
    description:
      'For those who may decide about it, and for whoever asked for it. Where it has made an API key, the first GET of whoever asked holds `api_key`: the key itself, shown this once.',
    result: approvalSchema.extend({ api_key: z.string().optional() }), shape: 'one', success: 200, message: 'get_approval', errors: ['approval_not_found', 'insufficient_scope', 'outcome_unknown'],
  },
  approve_request: {
    method: 'POST', path: '/admin/approvals/:approval_id/approval', tag: 'Administration', summary: 'Approve what somebody else has asked for', scope: 'approvals:write', query: none,
    body: approvalBodies.approve,
    description: 'Needs the scope of the action besides. The command runs in the name of whoever asked; its outcome stands in the approval, as soon as there is one.',
    result: approvalSchema, shape: 'one', success: 200, message: 'approve_request', errors: ['approval_not_found', 'own_approval', 'approval_decided', ...writeErrors],
  },
  reject_request: {
    method: 'POST', path: '/admin/approvals/:approval_id/rejection', tag: 'Administration', summary: 'Reject what somebody else has asked for', scope: 'approvals:write', query: none,
    body: approvalBodies.reject,
    description: 'Needs the scope of the action besides.',
    result: approvalSchema, shape: 'one', success: 200, message: 'reject_request', errors: ['approval_not_found', 'own_approval', 'approval_decided', ...writeErrors],
  },
} satisfies Record<string, Endpoint>;

export type EndpointName = keyof typeof endpoints;

/** Every scope that a caller needs; none for any authenticated caller. */
export function neededScopes({ scope, also }: Pick<Endpoint, 'scope' | 'also'>): Scope[] {
  return [scope, also].filter((needed) => needed !== null && needed !== undefined);
}

/** Whether its answers come in pages, with a Link to the next one. */
export function isPaged({ shape }: Pick<Endpoint, 'shape'>): boolean {
  return shape === 'page' || shape === 'document';
}
