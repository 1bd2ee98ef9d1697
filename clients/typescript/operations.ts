// Made from the endpoints table by `npm run generate`; not to be edited.
import type { CallOptions } from './bank.ts';
import type { Pages } from './pages.ts';

/** How an operation is asked for, and where its answer holds the resource. */
export interface Operation {
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  /** A list, or one resource of which each page holds a part. */
  paged?: 'items' | 'document';
  /** The body is the resource itself. */
  bare?: true;
}

export const operations = {
  health: { method: 'GET', path: '/', bare: true },
  listClients: { method: 'GET', path: '/clients', paged: 'items' },
  searchClientByUssd: { method: 'GET', path: '/clients/ussd/search' },
  getClient: { method: 'GET', path: '/clients/:client_id' },
  createClient: { method: 'POST', path: '/clients' },
  updateClient: { method: 'PATCH', path: '/clients/:client_id' },
  listAccounts: { method: 'GET', path: '/accounts', paged: 'items' },
  getBalanceByNumber: { method: 'GET', path: '/accounts/number/:accountNumber/balance' },
  getAccount: { method: 'GET', path: '/accounts/:account_id' },
  openAccount: { method: 'POST', path: '/accounts' },
  changeAccountStatus: { method: 'POST', path: '/accounts/:account_id/status-transitions' },
  listStatusTransitions: { method: 'GET', path: '/accounts/:account_id/status-transitions', paged: 'items' },
  listEntries: { method: 'GET', path: '/accounts/:account_id/entries', paged: 'items' },
  getStatement: { method: 'GET', path: '/accounts/:account_id/statement', paged: 'document' },
  listTransactions: { method: 'GET', path: '/transactions', paged: 'items' },
  getTransaction: { method: 'GET', path: '/transactions/:transaction_id' },
  createTransaction: { method: 'POST', path: '/transactions', bare: true },
  reverseTransaction: { method: 'POST', path: '/transactions/:transaction_id/reversal' },
  listTransfers: { method: 'GET', path: '/transfers', paged: 'items' },
  getTransfer: { method: 'GET', path: '/transfers/:transfer_id' },
  createTransfer: { method: 'POST', path: '/transfers' },
  createApiKey: { method: 'POST', path: '/admin/api-keys' },
  listApiKeys: { method: 'GET', path: '/admin/api-keys', paged: 'items' },
  getApiKey: { method: 'GET', path: '/admin/api-keys/:key_id' },
  rotateApiKey: { method: 'POST', path: '/admin/api-keys/:key_id/rotation' },
  revokeApiKey: { method: 'POST', path: '/admin/api-keys/:key_id/revocation' },
  getTrialBalance: { method: 'GET', path: '/admin/trial-balance' },
  getSystemAccounts: { method: 'GET', path: '/admin/system-accounts' },
  search: { method: 'GET', path: '/admin/search' },
  getTimeline: { method: 'GET', path: '/admin/transactions/:transaction_id/timeline' },
  getPostingStatistics: { method: 'GET', path: '/admin/posting-statistics' },
  getOperations: { method: 'GET', path: '/admin/operations' },
  verifyBooks: { method: 'POST', path: '/admin/verifications' },
  listAudit: { method: 'GET', path: '/admin/audit', paged: 'items' },
  listDeadLetters: { method: 'GET', path: '/admin/dead-letters', paged: 'items' },
  getDeadLetter: { method: 'GET', path: '/admin/dead-letters/:dead_letter_id' },
  redriveDeadLetter: { method: 'POST', path: '/admin/dead-letters/:dead_letter_id/redrive' },
  dropDeadLetter: { method: 'POST', path: '/admin/dead-letters/:dead_letter_id/drop' },
  listApprovals: { method: 'GET', path: '/admin/approvals', paged: 'items' },
  getApproval: { method: 'GET', path: '/admin/approvals/:approval_id' },
  approveRequest: { method: 'POST', path: '/admin/approvals/:approval_id/approval' },
  rejectRequest: { method: 'POST', path: '/admin/approvals/:approval_id/rejection' },
} as const satisfies Record<string, Operation>;

export type Client =
  | {
    client_id: string;
    client_type: 'Retail';
    first_name: string;
    last_name: string;
    email: string;
    contact_number: string;
    address: string | null;
    ussd_phone_number: string | null;
    ussd_status: 'active' | 'inactive';
    created_at: string;
    updated_at: string;
  }
  | {
    client_id: string;
    client_type: 'Corporate';
    company_name: string;
    registration_number: string;
    email: string;
    contact_number: string;
    address: string | null;
    created_at: string;
    updated_at: string;
  };

export interface Account {
  account_id: string;
  client_id: string;
  account_number: string;
  account_type: 'Savings' | 'Checking' | 'Current' | 'Loan';
  currency: string;
  balance: number;
  status: 'Active' | 'Inactive' | 'Frozen';
  created_at: string;
  updated_at: string;
}

export interface AccountBalance {
  account_id: string;
  account_number: string;
  balance: number;
  currency: string;
}

export interface Transaction {
  transaction_id: string;
  account_id: string;
  transaction_type: 'Deposit' | 'Withdrawal' | 'Transfer' | 'Loan Payment';
  amount: number;
  currency: string | null;
  description: string | null;
  reference: string | null;
  status: 'Pending' | 'Completed' | 'Failed';
  created_at: string;
  direction: 'debit' | 'credit';
  transfer_id?: string;
  counterparty_account_id?: string;
  reverses_transaction_id?: string;
  reversed_by_transaction_id?: string;
  failure_code?: string;
}

export interface Transfer {
  transfer_id: string;
  from_account_id: string;
  to_account_id: string;
  amount: number;
  currency: string | null;
  description: string | null;
  status: 'Pending' | 'Completed' | 'Failed';
  created_at: string;
  failure_code?: string;
}

export interface Entry {
  entry_id: string;
  operation_id: string;
  transaction_id: string;
  account_id: string;
  sequence: number;
  direction: 'debit' | 'credit';
  side: 'DR' | 'CR';
  amount: number;
  currency: string;
  balance_after: number;
  created_at: string;
}

export interface Statement {
  account_id: string;
  account_number: string;
  currency: string;
  from: string | null;
  to: string | null;
  opening_balance: number;
  closing_balance: number;
  debit_total: number;
  credit_total: number;
  entry_count: number;
  entries: Entry[];
}

export interface StatusTransition {
  transition_id: string;
  account_id: string;
  from_status: 'Active' | 'Inactive' | 'Frozen';
  to_status: 'Active' | 'Inactive' | 'Frozen';
  reason?: 'fraud' | 'legal' | 'customer_request' | 'deceased' | 'other' | null;
  note?: string | null;
  actor?: string;
  created_at: string;
}

export interface ApiKey {
  key_id: string;
  name: string;
  scopes: string[];
  environment: 'live' | 'test';
  client_id: string | null;
  status: 'active' | 'expired' | 'revoked';
  created_at: string;
  created_by: string;
  expires_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
  rotated_from: string | null;
}

export interface ApiKeyWithSecret {
  key_id: string;
  name: string;
  scopes: string[];
  environment: 'live' | 'test';
  client_id: string | null;
  status: 'active' | 'expired' | 'revoked';
  created_at: string;
  created_by: string;
  expires_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
  rotated_from: string | null;
  api_key?: string;
}

export interface TrialBalance {
  currency: string;
  debit_total: number;
  credit_total: number;
  assets: number;
  liabilities: number;
  difference: number;
}

export interface SystemAccount {
  account_id: string;
  account_number: string;
  kind: 'Teller' | 'Vault';
  currency: string;
  balance: number;
  slots: { account_id: string; account_number: string; balance: number }[];
}

export interface AuditRecord {
  audit_id: string;
  created_at: string;
  actor: string;
  action: string;
  resource_id: string | null;
  outcome: string;
  request_id: string;
  details: Record<string, unknown>;
  address: string | null;
}

export interface SearchHit {
  kind: 'client' | 'account' | 'transaction' | 'transfer' | 'audit_record';
  id: string;
  title: string;
  subtitle: string;
  matched: 'id' | 'account_number' | 'name' | 'phone' | 'reference' | 'idempotency_key' | 'operation_id' | 'request_id';
  created_at: string;
}

export interface Timeline {
  transaction: Transaction;
  request: { request_id: string; actor: string; idempotency_key: string | null; accepted_at: string };
  command: { name: string; id: string; topic: string; partition: number };
  booked_at: string | null;
  entries: {
    entry_id: string;
    operation_id: string;
    transaction_id: string;
    account_id: string;
    sequence: number;
    direction: 'debit' | 'credit';
    side: 'DR' | 'CR';
    amount: number;
    currency: string;
    balance_after: number;
    created_at: string;
    account_number: string;
    account_type: string;
  }[];
  events: {
    ce_id: string;
    type: string;
    topic: string;
    key: string | null;
    state: 'waiting' | 'published' | 'not_kept';
    recorded_at: string | null;
    published_at: string | null;
  }[];
}

export interface PostingStatistics {
  currency: string;
  unit: 'minute' | 'hour' | 'day';
  from: string;
  to: string;
  complete: boolean;
  counted_from: string;
  buckets: { start: string; operations: number; amount: number }[];
}

export interface Operations {
  services: { service: 'ledger' | 'accounts'; answers: boolean; outbox: { rows: number; oldest_age_ms: number } | null }[];
  breakers: { service: 'ledger' | 'accounts'; state: 'closed' | 'open' }[];
  dead_letters_open: number | null;
  consumer_lag: { group: string; topic: string; partition: number; lag: number }[] | null;
  last_verification: Verification | null;
  requests: { window_seconds: number; count: number; server_errors: number; mean_ms: number | null; slowest_ms: number | null };
}

export interface Verification {
  verification_id: string;
  requested_by: string;
  started_at: string;
  ended_at: string | null;
  state: 'running' | 'passed' | 'broken' | 'interrupted';
  findings: { rule: string; rows: Record<string, unknown>[] }[];
}

export interface DeadLetter {
  dead_letter_id: string;
  topic: string;
  partition: number;
  offset: number;
  source_topic: string;
  source_partition: number | null;
  source_offset: number | null;
  key: string | null;
  code: string | null;
  reason: string | null;
  size_bytes: number;
  message: string | null;
  request_id: string | null;
  dead_at: string;
  state: 'open' | 'redriven' | 'dropped';
  decided_by: string | null;
  decided_at: string | null;
  drop_reason: string | null;
}

export interface DeadLetterContent {
  dead_letter_id: string;
  topic: string;
  partition: number;
  offset: number;
  source_topic: string;
  source_partition: number | null;
  source_offset: number | null;
  key: string | null;
  code: string | null;
  reason: string | null;
  size_bytes: number;
  message: string | null;
  request_id: string | null;
  dead_at: string;
  state: 'open' | 'redriven' | 'dropped';
  decided_by: string | null;
  decided_at: string | null;
  drop_reason: string | null;
  available: boolean;
  headers: Record<string, string>;
  value: string | null;
  encoding: 'utf-8' | 'base64' | null;
  truncated: boolean;
}

export interface Approval {
  approval_id: string;
  action: 'reverse' | 'unfreeze' | 'create_key' | 'redrive' | 'post_above';
  summary: string;
  request: {
    operation: 'reverse_transaction' | 'change_account_status' | 'create_api_key' | 'rotate_api_key' | 'redrive_dead_letter' | 'create_transaction' | 'create_transfer' | 'open_account';
    method: string;
    path: string;
    body: Record<string, unknown>;
  };
  changes: { field: string; before: string | null; after: string | null }[];
  requested_by: string;
  requested_at: string;
  expires_at: string;
  status: 'Waiting' | 'Approved' | 'Rejected' | 'Expired';
  decided_by: string | null;
  decided_at: string | null;
  reason: string | null;
  outcome?: { status: 'success'; data: Record<string, unknown> } | {
    status: 'error';
    code: ErrorCode;
    message: string;
    errors?: { field: string; code: ErrorCode; message: string }[];
    details?: Record<string, unknown>;
  };
}

export interface ApprovalWithKey {
  approval_id: string;
  action: 'reverse' | 'unfreeze' | 'create_key' | 'redrive' | 'post_above';
  summary: string;
  request: {
    operation: 'reverse_transaction' | 'change_account_status' | 'create_api_key' | 'rotate_api_key' | 'redrive_dead_letter' | 'create_transaction' | 'create_transfer' | 'open_account';
    method: string;
    path: string;
    body: Record<string, unknown>;
  };
  changes: { field: string; before: string | null; after: string | null }[];
  requested_by: string;
  requested_at: string;
  expires_at: string;
  status: 'Waiting' | 'Approved' | 'Rejected' | 'Expired';
  decided_by: string | null;
  decided_at: string | null;
  reason: string | null;
  outcome?: { status: 'success'; data: Record<string, unknown> } | {
    status: 'error';
    code: ErrorCode;
    message: string;
    errors?: { field: string; code: ErrorCode; message: string }[];
    details?: Record<string, unknown>;
  };
  api_key?: string;
}

export interface ErrorBody {
  status: 'error';
  message: string;
  code: ErrorCode;
  request_id: string;
  errors?: { field: string; code: ErrorCode; message: string }[];
  details?: Record<string, unknown>;
}

export type ErrorCode =
  | 'validation_failed'
  | 'malformed_json'
  | 'unknown_field'
  | 'unknown_parameter'
  | 'invalid_cursor'
  | 'invalid_amount'
  | 'invalid_amount_precision'
  | 'amount_too_large'
  | 'unsupported_currency'
  | 'insufficient_funds'
  | 'inactive_account'
  | 'invalid_account_type'
  | 'duplicate_account_number'
  | 'currency_mismatch'
  | 'same_account'
  | 'destination_refused'
  | 'amount_exceeds_outstanding'
  | 'balance_limit_exceeded'
  | 'invalid_transaction_type'
  | 'invalid_status_transition'
  | 'duplicate_ussd_phone'
  | 'not_reversible'
  | 'already_reversed'
  | 'approval_required'
  | 'missing_credentials'
  | 'invalid_credentials'
  | 'ambiguous_credentials'
  | 'insufficient_scope'
  | 'own_approval'
  | 'client_not_found'
  | 'account_not_found'
  | 'transaction_not_found'
  | 'transfer_not_found'
  | 'api_key_not_found'
  | 'dead_letter_not_found'
  | 'approval_not_found'
  | 'route_not_found'
  | 'method_not_allowed'
  | 'deadline_exceeded'
  | 'approval_decided'
  | 'dead_letter_expired'
  | 'request_timeout'
  | 'body_too_large'
  | 'unsupported_media_type'
  | 'idempotency_key_reused'
  | 'rate_limited'
  | 'headers_too_large'
  | 'internal_error'
  | 'service_unavailable'
  | 'outcome_unknown';

export interface Calls {
  /** Health check. Any authenticated caller. */
  health(input?: Record<never, never>, options?: CallOptions): Promise<{ status: 'success'; message: string; apiVersion: string }>;
  /** List clients. Scope: clients:read. */
  listClients(input?: { client_type?: 'Retail' | 'Corporate'; ussd_phone?: string; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<Client>;
  /** Find a Retail client by USSD phone number. Scope: clients:read. */
  searchClientByUssd(input: { ussd_phone: string }, options?: CallOptions): Promise<Client>;
  /** Get a client. Scope: clients:read. */
  getClient(input: { client_id: string }, options?: CallOptions): Promise<Client>;
  /** Create a client. Scope: clients:write. */
  createClient(input: {
    client_type: 'Retail';
    first_name: string;
    last_name: string;
    email: string;
    contact_number: string;
    address?: string | null;
    ussd_phone_number?: string | null;
    ussd_status?: 'active' | 'inactive';
  } | {
    client_type: 'Corporate';
    company_name: string;
    registration_number: string;
    email: string;
    contact_number: string;
    address?: string | null;
  }, options?: CallOptions): Promise<Client>;
  /** Change contact fields, USSD phone and USSD status. Scope: clients:write. */
  updateClient(input: {
    client_id: string;
    email?: string;
    contact_number?: string;
    address?: string | null;
    ussd_phone_number?: string | null;
    ussd_status?: 'active' | 'inactive';
  }, options?: CallOptions): Promise<Client>;
  /** List accounts. Scope: accounts:read. */
  listAccounts(input?: {
    client_id?: string;
    account_type?: 'Savings' | 'Checking' | 'Current' | 'Loan';
    status?: 'Active' | 'Inactive' | 'Frozen';
    currency?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Account>;
  /** Balance by account number. Scope: accounts:read. */
  getBalanceByNumber(input: { accountNumber: string }, options?: CallOptions): Promise<AccountBalance>;
  /** Get an account. Scope: accounts:read. */
  getAccount(input: { account_id: string }, options?: CallOptions): Promise<Account>;
  /** Open an account for a client. An `initial_deposit` above 0 is cash, and needs `transactions:write` besides. Scope: accounts:write. */
  openAccount(input: {
    client_id: string;
    account_type: 'Savings' | 'Checking' | 'Current' | 'Loan';
    currency: string;
    initial_deposit?: number;
    status?: 'Active' | 'Inactive' | 'Frozen';
  }, options?: CallOptions): Promise<Account>;
  /** Activate, deactivate or freeze an account. Scope: accounts:status. */
  changeAccountStatus(input: {
    account_id: string;
    status: 'Active' | 'Inactive' | 'Frozen';
    reason?: 'fraud' | 'legal' | 'customer_request' | 'deceased' | 'other' | null;
    note?: string | null;
  }, options?: CallOptions): Promise<Account>;
  /** Status history of an account. Scope: accounts:read. */
  listStatusTransitions(input: { account_id: string; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<StatusTransition>;
  /** Ledger entries of an account. Scope: transactions:read. */
  listEntries(input: { account_id: string; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<Entry>;
  /** Statement of an account for a period. Entries in the order of booking, `from` included, `to` not, a page at a time; balances and totals are those of the whole period, and on every page those of the first. A period holds at most 100,000 entries. Scope: transactions:read. */
  getStatement(input: { account_id: string; from?: string; to?: string; limit?: number; cursor?: string }, options?: CallOptions): Pages<Statement>;
  /** List transactions. No index confines the list without `account_id` or `transfer_id`, by type, amount or the status Completed: then the newest 200,000 transactions are looked at for one page, `complete` says whether that was all, and the Link goes on from there. A caller may have two such lists under way; a third is 429. Scope: transactions:read. */
  listTransactions(input?: {
    account_id?: string;
    transaction_type?: 'Deposit' | 'Withdrawal' | 'Transfer' | 'Loan Payment';
    status?: 'Pending' | 'Completed' | 'Failed';
    reference?: string;
    transfer_id?: string;
    from?: string;
    to?: string;
    min_amount?: number;
    max_amount?: number;
    idempotency_key?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Transaction>;
  /** Get a transaction. Scope: transactions:read. */
  getTransaction(input: { transaction_id: string }, options?: CallOptions): Promise<Transaction>;
  /** Deposit or withdraw. Scope: transactions:write. */
  createTransaction(input: {
    account_id: string;
    transaction_type: 'Deposit' | 'Withdrawal';
    amount: number;
    currency?: string | null;
    description?: string | null;
    reference?: string | null;
  }, options?: CallOptions): Promise<Transaction>;
  /** Reverse a transaction. Scope: transactions:reverse. */
  reverseTransaction(input: { transaction_id: string; reason: string }, options?: CallOptions): Promise<Transaction>;
  /** List transfers. No index confines the list without `account_id`: then the newest 200,000 transactions are looked at for one page, `complete` says whether that was all, and the Link goes on from there. A caller may have two such lists under way; a third is 429. Scope: transactions:read. */
  listTransfers(input?: {
    account_id?: string;
    status?: 'Pending' | 'Completed' | 'Failed';
    from?: string;
    to?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Transfer>;
  /** Get a transfer. Scope: transactions:read. */
  getTransfer(input: { transfer_id: string }, options?: CallOptions): Promise<Transfer>;
  /** Move funds between two accounts. Scope: transfers:write. */
  createTransfer(input: { from_account_id: string; to_account_id: string; amount: number; currency?: string | null; description?: string | null }, options?: CallOptions): Promise<Transfer>;
  /** Create an API key. It ends after KEY_MAX_LIFETIME_DAYS at the latest, and not after the key that makes it; so it does where `expires_at` is not given. Bound to one client, it cannot have scopes that belong to the bank. Scope: keys:manage. */
  createApiKey(input: {
    name: string;
    scopes: ('clients:read' | 'clients:write' | 'accounts:read' | 'accounts:write' | 'accounts:status' | 'transactions:read' | 'transactions:write' | 'transactions:reverse' | 'transfers:write' | 'keys:manage' | 'audit:read' | 'books:read' | 'ops:manage' | 'approvals:write')[];
    expires_at?: string | null;
    client_id?: string | null;
    environment?: 'live' | 'test';
  }, options?: CallOptions): Promise<ApiKeyWithSecret>;
  /** List API keys. Scope: keys:manage. */
  listApiKeys(input?: { limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<ApiKey>;
  /** Get an API key. Scope: keys:manage. */
  getApiKey(input: { key_id: string }, options?: CallOptions): Promise<ApiKey>;
  /** Replace an API key, the old one staying valid for a while. The new key ends when the old one would have ended, and not after the key that rotates it. Scope: keys:manage. */
  rotateApiKey(input: { key_id: string; overlap_seconds?: number }, options?: CallOptions): Promise<ApiKeyWithSecret>;
  /** Revoke an API key and its family. Every key that it was rotated from or to ends with it; with `descendants` also what these have made or rotated, and what those have. Scope: keys:manage. */
  revokeApiKey(input: { key_id: string; descendants?: boolean }, options?: CallOptions): Promise<ApiKey>;
  /** Trial balance per currency. Scope: books:read. */
  getTrialBalance(input?: Record<never, never>, options?: CallOptions): Promise<TrialBalance[]>;
  /** Teller and Vault per currency. Scope: books:read. */
  getSystemAccounts(input?: Record<never, never>, options?: CallOptions): Promise<SystemAccount[]>;
  /** Find anything by one text. Finds clients (clients:read) by id, by the beginning of their name or of their last name in any script and case, and by contact or USSD phone number; accounts (accounts:read) by id or number; transactions and transfers (transactions:read) by id, operation id, reference or Idempotency-Key, and by the request id where they are among the newest 20,000; audit records (audit:read) by request id. All but names match as a whole. At most 20 of a kind; a kind that the scopes do not allow is left out. Not for credentials bound to one client. What it shows a member of staff of a client is audited. Any authenticated caller. */
  search(input: { q: string }, options?: CallOptions): Promise<SearchHit[]>;
  /** What became of a transaction: request, command, entries, events. The entries are those of the whole operation, with Teller, Vault and the other party. Events are told as long as the outbox keeps them, OUTBOX_RETENTION_HOURS after they were published. Scope: audit:read. */
  getTimeline(input: { transaction_id: string }, options?: CallOptions): Promise<Timeline>;
  /** Operations and amounts per minute, hour or day. Without `to` up to now, without `from` an hour of minutes, a day of hours or thirty days; at most 1,500 buckets. The newest 200,000 transactions of the period are counted, and `complete` says whether these are all. Scope: books:read. */
  getPostingStatistics(input: { currency: string; unit?: 'minute' | 'hour' | 'day'; from?: string; to?: string }, options?: CallOptions): Promise<PostingStatistics>;
  /** Outboxes, consumer lag, dead letters, breakers, the last check of the books. A part that does not answer is null; the answer is 200 all the same. Scope: books:read. */
  getOperations(input?: Record<never, never>, options?: CallOptions): Promise<Operations>;
  /** Check the books against every rule, in one snapshot while postings go on. Answered as soon as it has begun; `last_verification` of the operations tells its result. It reads every entry. Where one is running already, that one is answered. Scope: books:read. */
  verifyBooks(input?: Record<never, never>, options?: CallOptions): Promise<Verification>;
  /** List audit records. Scope: audit:read. */
  listAudit(input?: {
    actor?: string;
    action?: string;
    resource_id?: string;
    outcome?: string;
    request_id?: string;
    from?: string;
    to?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<AuditRecord>;
  /** List messages that could not be processed. Scope: ops:manage. */
  listDeadLetters(input?: {
    topic?: 'ledger.commands.dlq' | 'ledger.audit.dlq' | 'accounts.commands.dlq' | 'ledger.queries.dlq' | 'accounts.queries.dlq';
    state?: 'open' | 'redriven' | 'dropped';
    from?: string;
    to?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<DeadLetter>;
  /** Get a dead letter with headers and value. Scope: ops:manage and clients:read. */
  getDeadLetter(input: { dead_letter_id: string }, options?: CallOptions): Promise<DeadLetterContent>;
  /** Send a dead letter to its topic again, its very bytes. Scope: ops:manage. */
  redriveDeadLetter(input: { dead_letter_id: string; renew_deadline?: boolean }, options?: CallOptions): Promise<DeadLetter>;
  /** Decide that a dead letter is never executed. Scope: ops:manage. */
  dropDeadLetter(input: { dead_letter_id: string; reason?: string | null }, options?: CallOptions): Promise<DeadLetter>;
  /** List what waits for a second person, or did. With `approvals:write` those that the caller has the scope of the action for, and always their own. Any authenticated caller. */
  listApprovals(input?: {
    status?: 'Waiting' | 'Approved' | 'Rejected' | 'Expired';
    action?: 'reverse' | 'unfreeze' | 'create_key' | 'redrive' | 'post_above';
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Approval>;
  /** Get an approval. For those who may decide about it, and for whoever asked for it. Where it has made an API key, the first GET of whoever asked holds `api_key`: the key itself, shown this once. Any authenticated caller. */
  getApproval(input: { approval_id: string }, options?: CallOptions): Promise<ApprovalWithKey>;
  /** Approve what somebody else has asked for. Needs the scope of the action besides. The command runs in the name of whoever asked; its outcome stands in the approval, as soon as there is one. Scope: approvals:write. */
  approveRequest(input: { approval_id: string; reason?: string | null }, options?: CallOptions): Promise<Approval>;
  /** Reject what somebody else has asked for. Needs the scope of the action besides. Scope: approvals:write. */
  rejectRequest(input: { approval_id: string; reason: string }, options?: CallOptions): Promise<Approval>;
}
