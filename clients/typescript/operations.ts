// Made from the OpenAPI document by `npm run generate`; not to be edited.
import type { CallOptions, Lines, Pages } from './call.ts';

/** How an operation is called, and where its response contains the resource. */
export interface Operation {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  /** A list, or one resource that is divided into pages. */
  paged?: 'items' | 'document';
  /** A feed, whose responses have the cursor for the next request. */
  feed?: true;
  /** A file of any length: of the type that form names, otherwise JSON lines or CSV. */
  stream?: true;
  /** The body is the resource itself. */
  bare?: true;
  /** The body is of this type. */
  form?: 'text/html' | 'application/xml';
}

export const operations = {
  health: { method: 'GET', path: '/', bare: true },
  listClients: { method: 'GET', path: '/clients', paged: 'items' },
  searchClientByUssd: { method: 'GET', path: '/clients/ussd/search' },
  getClient: { method: 'GET', path: '/clients/:client_id' },
  createClient: { method: 'POST', path: '/clients' },
  updateClient: { method: 'PATCH', path: '/clients/:client_id' },
  addClientNote: { method: 'POST', path: '/clients/:client_id/notes' },
  listClientNotes: { method: 'GET', path: '/clients/:client_id/notes', paged: 'items' },
  listAccounts: { method: 'GET', path: '/accounts', paged: 'items' },
  getBalanceByNumber: { method: 'GET', path: '/accounts/number/:accountNumber/balance' },
  getAccount: { method: 'GET', path: '/accounts/:account_id' },
  openAccount: { method: 'POST', path: '/accounts' },
  changeAccountStatus: { method: 'POST', path: '/accounts/:account_id/status-transitions' },
  listStatusTransitions: { method: 'GET', path: '/accounts/:account_id/status-transitions', paged: 'items' },
  getAccountLimits: { method: 'GET', path: '/accounts/:account_id/limits' },
  setAccountLimits: { method: 'PUT', path: '/accounts/:account_id/limits' },
  addAccountNote: { method: 'POST', path: '/accounts/:account_id/notes' },
  listAccountNotes: { method: 'GET', path: '/accounts/:account_id/notes', paged: 'items' },
  listEntries: { method: 'GET', path: '/accounts/:account_id/entries', paged: 'items' },
  getAccountBalance: { method: 'GET', path: '/accounts/:account_id/balance' },
  getAccountDays: { method: 'GET', path: '/accounts/:account_id/days' },
  getStatement: { method: 'GET', path: '/accounts/:account_id/statement', paged: 'document' },
  getStatementHtml: { method: 'GET', path: '/accounts/:account_id/statement', form: 'text/html' },
  getStatementXml: { method: 'GET', path: '/accounts/:account_id/statement', form: 'application/xml', stream: true },
  listTransactions: { method: 'GET', path: '/transactions', paged: 'items' },
  getTransaction: { method: 'GET', path: '/transactions/:transaction_id' },
  createTransaction: { method: 'POST', path: '/transactions', bare: true },
  reverseTransaction: { method: 'POST', path: '/transactions/:transaction_id/reversal' },
  listTransfers: { method: 'GET', path: '/transfers', paged: 'items' },
  getTransfer: { method: 'GET', path: '/transfers/:transfer_id' },
  createTransfer: { method: 'POST', path: '/transfers' },
  listHolds: { method: 'GET', path: '/accounts/:account_id/holds', paged: 'items' },
  getHold: { method: 'GET', path: '/holds/:hold_id' },
  placeHold: { method: 'POST', path: '/accounts/:account_id/holds' },
  captureHold: { method: 'POST', path: '/holds/:hold_id/capture' },
  releaseHold: { method: 'POST', path: '/holds/:hold_id/release' },
  createBatch: { method: 'POST', path: '/batches' },
  listBatches: { method: 'GET', path: '/batches', paged: 'items' },
  getBatch: { method: 'GET', path: '/batches/:batch_id' },
  listEvents: { method: 'GET', path: '/events', feed: true },
  createWebhook: { method: 'POST', path: '/webhooks' },
  listWebhooks: { method: 'GET', path: '/webhooks', paged: 'items' },
  getWebhook: { method: 'GET', path: '/webhooks/:webhook_id' },
  updateWebhook: { method: 'PATCH', path: '/webhooks/:webhook_id' },
  deleteWebhook: { method: 'DELETE', path: '/webhooks/:webhook_id' },
  rotateWebhookSecret: { method: 'POST', path: '/webhooks/:webhook_id/secret-rotation' },
  testWebhook: { method: 'POST', path: '/webhooks/:webhook_id/test' },
  replayWebhook: { method: 'POST', path: '/webhooks/:webhook_id/replay' },
  listDeliveries: { method: 'GET', path: '/webhooks/:webhook_id/deliveries', paged: 'items' },
  redeliver: { method: 'POST', path: '/webhooks/:webhook_id/deliveries/:delivery_id/redelivery' },
  skipDelivery: { method: 'POST', path: '/webhooks/:webhook_id/deliveries/:delivery_id/skip' },
  createApiKey: { method: 'POST', path: '/admin/api-keys' },
  listApiKeys: { method: 'GET', path: '/admin/api-keys', paged: 'items' },
  getApiKey: { method: 'GET', path: '/admin/api-keys/:key_id' },
  rotateApiKey: { method: 'POST', path: '/admin/api-keys/:key_id/rotation' },
  revokeApiKey: { method: 'POST', path: '/admin/api-keys/:key_id/revocation' },
  eraseClient: { method: 'POST', path: '/admin/clients/:client_id/erasure' },
  getTrialBalance: { method: 'GET', path: '/admin/trial-balance' },
  getSystemAccounts: { method: 'GET', path: '/admin/system-accounts' },
  closeDay: { method: 'POST', path: '/admin/day-closings' },
  listDayClosings: { method: 'GET', path: '/admin/day-closings', paged: 'items' },
  getDayClosing: { method: 'GET', path: '/admin/day-closings/:date' },
  listDayLines: { method: 'GET', path: '/admin/day-closings/:date/accounts', stream: true },
  listBalances: { method: 'GET', path: '/admin/balances', stream: true },
  search: { method: 'GET', path: '/admin/search' },
  getTimeline: { method: 'GET', path: '/admin/transactions/:transaction_id/timeline' },
  getPostingStatistics: { method: 'GET', path: '/admin/posting-statistics' },
  getPostingTotals: { method: 'GET', path: '/admin/posting-totals' },
  getCashDays: { method: 'GET', path: '/admin/cash-days' },
  getStaffDay: { method: 'GET', path: '/admin/staff-day' },
  openTill: { method: 'POST', path: '/tills' },
  listTills: { method: 'GET', path: '/tills', paged: 'items' },
  getTill: { method: 'GET', path: '/tills/:till_id' },
  closeTill: { method: 'POST', path: '/tills/:till_id/closing' },
  getOperations: { method: 'GET', path: '/admin/operations' },
  verifyBooks: { method: 'POST', path: '/admin/verifications' },
  listAudit: { method: 'GET', path: '/admin/audit', paged: 'items' },
  listAuditActors: { method: 'GET', path: '/admin/audit/actors' },
  listStaffNames: { method: 'GET', path: '/admin/staff-names' },
  listDeadLetters: { method: 'GET', path: '/admin/dead-letters', paged: 'items' },
  getDeadLetter: { method: 'GET', path: '/admin/dead-letters/:dead_letter_id' },
  redriveDeadLetter: { method: 'POST', path: '/admin/dead-letters/:dead_letter_id/redrive' },
  dropDeadLetter: { method: 'POST', path: '/admin/dead-letters/:dead_letter_id/drop' },
  listApprovals: { method: 'GET', path: '/admin/approvals', paged: 'items' },
  getApproval: { method: 'GET', path: '/admin/approvals/:approval_id' },
  getApprovalRules: { method: 'GET', path: '/admin/approval-rules' },
  approveRequest: { method: 'POST', path: '/admin/approvals/:approval_id/approval' },
  rejectRequest: { method: 'POST', path: '/admin/approvals/:approval_id/rejection' },
  signIn: { method: 'POST', path: '/admin/sign-ins' },
  signOut: { method: 'POST', path: '/admin/sign-outs' },
  recordActivity: { method: 'POST', path: '/admin/activities' },
} as const satisfies Record<string, Operation>;

/** One of the known values, or one that a newer bank has. */
export type Open<Known extends string> = Known | (string & Record<never, never>);

export type CreateClientRequest = CreateRetailClientRequest | CreateCorporateClientRequest;

export type CreateRetailClientRequest = {
  client_type: 'Retail';
  first_name: string;
  last_name: string;
  email: string;
  contact_number: string;
  address?: string | null;
  ussd_phone_number?: string | null;
  ussd_status?: 'active' | 'inactive';
  external_id?: string | null;
  metadata?: Record<string, string> | null;
};

export type CreateCorporateClientRequest = {
  client_type: 'Corporate';
  company_name: string;
  registration_number: string;
  email: string;
  contact_number: string;
  address?: string | null;
  external_id?: string | null;
  metadata?: Record<string, string> | null;
};

export type UpdateClientRequest = {
  first_name?: string;
  last_name?: string;
  company_name?: string;
  registration_number?: string;
  email?: string;
  contact_number?: string;
  address?: string | null;
  ussd_phone_number?: string | null;
  ussd_status?: 'active' | 'inactive';
  external_id?: string | null;
  metadata?: Record<string, string> | null;
  client_metadata?: Record<string, string> | null;
};

export type AddClientNoteRequest = { note: string };

export type OpenAccountRequest = {
  client_id: string;
  account_type: 'Savings' | 'Checking' | 'Current' | 'Loan';
  currency: string;
  initial_deposit?: number;
  status?: 'Active' | 'Inactive' | 'Frozen';
  account_number?: string | null;
  migrated?: boolean;
  external_id?: string | null;
  metadata?: Record<string, string> | null;
  client_metadata?: Record<string, string> | null;
};

export type ChangeAccountStatusRequest = {
  status: 'Active' | 'Inactive' | 'Frozen';
  reason?: 'fraud' | 'legal' | 'customer_request' | 'deceased' | 'other' | null;
  note?: string | null;
};

export type SetAccountLimitsRequest = { minimum_balance?: number; per_transaction?: number; per_day_out?: number };

export type AddAccountNoteRequest = { note: string };

export type CreateTransactionRequest = {
  account_id: string;
  transaction_type: 'Deposit' | 'Withdrawal';
  amount: number;
  currency?: string | null;
  description?: string | null;
  reference?: string | null;
  effective_date?: string | null;
  external_id?: string | null;
  metadata?: Record<string, string> | null;
};

export type ReverseTransactionRequest = { reason: string; effective_date?: string | null; external_id?: string | null; metadata?: Record<string, string> | null };

export type CreateTransferRequest = {
  from_account_id: string;
  to_account_id: string;
  amount: number;
  currency?: string | null;
  description?: string | null;
  effective_date?: string | null;
  external_id?: string | null;
  metadata?: Record<string, string> | null;
};

export type PlaceHoldRequest = {
  amount: number;
  currency?: string | null;
  description?: string | null;
  reference?: string | null;
  expires_at?: string | null;
  external_id?: string | null;
  metadata?: Record<string, string> | null;
};

export type CaptureHoldRequest = {
  amount?: number | null;
  to_account_id?: string | null;
  final?: boolean;
  description?: string | null;
  effective_date?: string | null;
  external_id?: string | null;
  metadata?: Record<string, string> | null;
};

export type CreateBatchRequest = { mode: 'independent' | 'atomic'; items: BatchItem[]; external_id?: string | null; metadata?: Record<string, string> | null };

export type BatchItem = { transaction?: CreateTransactionRequest; transfer?: CreateTransferRequest };

export type CreateWebhookRequest = { url: string; event_types: string[]; description?: string | null; ordering?: 'account' | 'none' };

export type UpdateWebhookRequest = { url?: string; event_types?: string[]; description?: string | null; ordering?: 'account' | 'none'; status?: 'Active' | 'Paused' };

export type RotateWebhookSecretRequest = { overlap_seconds?: number };

export type ReplayWebhookRequest = { from: string; to?: string };

export type CreateApiKeyRequest = {
  name: string;
  scopes: ('clients:read' | 'clients:write' | 'clients:erase' | 'accounts:read' | 'accounts:write' | 'accounts:status' | 'accounts:import' | 'accounts:limits' | 'transactions:read' | 'transactions:write' | 'transactions:reverse' | 'transfers:write' | 'holds:write' | 'keys:manage' | 'audit:read' | 'books:read' | 'ops:manage' | 'approvals:write' | 'webhooks:manage' | 'transactions:backdate' | 'books:close')[];
  expires_at?: string | null;
  client_id?: string | null;
  environment?: 'live' | 'test';
};

export type RotateApiKeyRequest = { overlap_seconds?: number };

export type RevokeApiKeyRequest = { descendants?: boolean };

export type CloseDayRequest = { date: string };

export type OpenTillRequest = { counted: CashCount[] };

export type CashCount = { currency: string; amount: number };

export type CloseTillRequest = { counted: CashCount[]; reason?: string | null };

export type RedriveDeadLetterRequest = { renew_deadline?: boolean };

export type DropDeadLetterRequest = { reason?: string | null };

export type ApproveRequestRequest = { reason?: string | null };

export type RejectRequestRequest = { reason: string };

export type SignInRequest = { session_id: string; id_token?: string };

export type SignOutRequest = { session_id: string };

export type RecordActivityRequest = {
  action: string;
  outcome: 'success' | 'insufficient_scope' | 'invalid_credentials';
  resource_id?: string | null;
  file?: string;
  filters?: Record<string, string>;
};

export type ErrorBody = { status: 'error'; code: ErrorCode; message: string; errors?: Violation[]; details?: Record<string, unknown>; request_id: string };

export type ErrorCode = Open<'validation_failed' | 'malformed_json' | 'unknown_field' | 'unknown_parameter' | 'invalid_cursor' | 'invalid_amount' | 'invalid_amount_precision' | 'amount_too_large' | 'unsupported_currency' | 'insufficient_funds' | 'inactive_account' | 'invalid_account_type' | 'duplicate_account_number' | 'currency_mismatch' | 'same_account' | 'destination_refused' | 'amount_exceeds_hold' | 'hold_not_active' | 'too_many_holds' | 'limit_exceeded' | 'amount_exceeds_outstanding' | 'balance_limit_exceeded' | 'invalid_effective_date' | 'day_not_closable' | 'day_closed' | 'invalid_transaction_type' | 'invalid_status_transition' | 'duplicate_ussd_phone' | 'duplicate_external_id' | 'till_not_counted' | 'till_difference' | 'not_reversible' | 'erasure_refused' | 'already_reversed' | 'approval_required' | 'batch_refused' | 'missing_idempotency_key' | 'missing_credentials' | 'invalid_credentials' | 'ambiguous_credentials' | 'insufficient_scope' | 'own_approval' | 'client_not_found' | 'account_not_found' | 'transaction_not_found' | 'transfer_not_found' | 'hold_not_found' | 'api_key_not_found' | 'dead_letter_not_found' | 'approval_not_found' | 'batch_not_found' | 'webhook_not_found' | 'delivery_not_found' | 'day_not_found' | 'till_not_found' | 'route_not_found' | 'method_not_allowed' | 'deadline_exceeded' | 'approval_decided' | 'till_open' | 'till_closed' | 'client_erased' | 'dead_letter_expired' | 'request_timeout' | 'version_mismatch' | 'body_too_large' | 'unsupported_media_type' | 'idempotency_key_reused' | 'rate_limited' | 'headers_too_large' | 'internal_error' | 'service_unavailable' | 'outcome_unknown'>;

export type Violation = { field: string; code: ErrorCode; message: string };

export type Health = { status: 'success'; message: string; apiVersion: string };

export type Client = RetailClient | CorporateClient;

export type RetailClient = {
  client_id: string;
  client_type: 'Retail';
  first_name: string;
  last_name: string;
  email: string;
  contact_number: string;
  address: string | null;
  erased_at?: string;
  ussd_phone_number: string | null;
  ussd_status: Open<'active' | 'inactive'>;
  external_id?: string;
  metadata?: Record<string, string>;
  client_metadata?: Record<string, string>;
  created_at: string;
  updated_at: string;
};

export type CorporateClient = {
  client_id: string;
  client_type: 'Corporate';
  company_name: string;
  registration_number: string;
  email: string;
  contact_number: string;
  address: string | null;
  erased_at?: string;
  external_id?: string;
  metadata?: Record<string, string>;
  client_metadata?: Record<string, string>;
  created_at: string;
  updated_at: string;
};

export type Approval = {
  approval_id: string;
  action: Open<'reverse' | 'unfreeze' | 'create_key' | 'post_above' | 'erase' | 'client_contact' | 'webhook' | 'close_day' | 'raise_limit' | 'backdate'>;
  summary: string;
  request: ApprovalRequest;
  requested_by: string;
  requested_by_name?: string;
  requested_at: string;
  expires_at: string;
  status: Open<'Waiting' | 'Approved' | 'Rejected' | 'Expired'>;
  decided_by: string | null;
  decided_by_name?: string;
  decided_at: string | null;
  reason: string | null;
  outcome?: ApprovalOutcome;
};

export type ApprovalRequest = {
  operation: Open<'reverse_transaction' | 'change_account_status' | 'create_api_key' | 'rotate_api_key' | 'create_transaction' | 'create_transfer' | 'capture_hold' | 'open_account' | 'erase_client' | 'set_account_limits' | 'update_client' | 'create_webhook' | 'update_webhook' | 'rotate_webhook_secret' | 'close_day'>;
  method: string;
  path: string;
  body: Record<string, unknown>;
};

export type ApprovalOutcome = ApprovalSuccess | ApprovalRefusal;

export type ApprovalSuccess = { status: 'success'; data: Record<string, unknown> };

export type ApprovalRefusal = { status: 'error'; code: ErrorCode; message: string; errors?: Violation[]; details?: Record<string, unknown> };

export type Note = { note_id: string; client_id: string; account_id: string | null; note: string; actor: string; created_at: string };

export type Account = {
  account_id: string;
  client_id: string;
  account_number: string;
  account_type: Open<'Savings' | 'Checking' | 'Current' | 'Loan'>;
  currency: string;
  balance: number;
  available_balance?: number;
  status: Open<'Active' | 'Inactive' | 'Frozen'>;
  external_id?: string;
  metadata?: Record<string, string>;
  client_metadata?: Record<string, string>;
  created_at: string;
  updated_at: string;
};

export type AccountBalance = { account_id: string; account_number: string; balance: number; currency: string };

export type StatusTransition = {
  transition_id: string;
  account_id: string;
  from_status: Open<'Active' | 'Inactive' | 'Frozen'>;
  to_status: Open<'Active' | 'Inactive' | 'Frozen'>;
  reason?: Open<'fraud' | 'legal' | 'customer_request' | 'deceased' | 'other'> | null;
  note?: string | null;
  actor?: string;
  created_at: string;
};

export type AccountLimits = { account_id: string; currency: string; minimum_balance?: number; per_transaction?: number; per_day_out?: number; out_today?: number };

export type EntryLine = {
  entry_id: string;
  operation_id: string;
  transaction_id: string;
  account_id: string;
  sequence: number;
  direction: Open<'debit' | 'credit'>;
  side: Open<'DR' | 'CR'>;
  amount: number;
  currency: string;
  balance_after: number;
  created_at: string;
  effective_date?: string;
  transaction_type: Open<'Deposit' | 'Withdrawal' | 'Transfer' | 'Loan Payment'>;
  description: string | null;
  reference: string | null;
  counterparty_account_id?: string;
  counterparty_account_number?: string;
  transfer_id?: string;
  reverses_transaction_id?: string;
  reversed_by_transaction_id?: string;
};

export type BalanceAt = {
  account_id: string;
  account_number: string;
  balance: number;
  currency: string;
  available_balance?: number;
  at?: string;
  sequence?: number;
  on?: string;
};

export type AccountDays = { account_id: string; account_number: string; currency: string; from: string; to: string; opening_balance: number; days: AccountDay[] };

export type AccountDay = { date: string; debit_total: number; credit_total: number; balance: number };

export type Statement = {
  account_id: string;
  account_number: string;
  currency: string;
  from: string | null;
  to: string | null;
  effective_from?: string;
  effective_to?: string;
  opening_balance: number;
  closing_balance: number;
  debit_total: number;
  credit_total: number;
  entry_count: number;
  entries: EntryLine[];
};

export type Transaction = {
  transaction_id: string;
  account_id: string;
  transaction_type: Open<'Deposit' | 'Withdrawal' | 'Transfer' | 'Loan Payment'>;
  amount: number;
  currency: string | null;
  description: string | null;
  reference: string | null;
  status: Open<'Pending' | 'Completed' | 'Failed'>;
  created_at: string;
  effective_date?: string;
  direction: Open<'debit' | 'credit'>;
  transfer_id?: string;
  counterparty_account_id?: string;
  reverses_transaction_id?: string;
  reversed_by_transaction_id?: string;
  hold_id?: string;
  batch_id?: string;
  failure_code?: string;
  external_id?: string;
  metadata?: Record<string, string>;
  metadata_client_id?: string;
};

export type Transfer = {
  transfer_id: string;
  from_account_id: string;
  to_account_id: string;
  amount: number;
  currency: string | null;
  description: string | null;
  status: Open<'Pending' | 'Completed' | 'Failed'>;
  created_at: string;
  effective_date?: string;
  reverses_transfer_id?: string;
  reversed_by_transfer_id?: string;
  hold_id?: string;
  batch_id?: string;
  failure_code?: string;
  external_id?: string;
  metadata?: Record<string, string>;
  metadata_client_id?: string;
};

export type Hold = {
  hold_id: string;
  account_id: string;
  amount: number;
  captured_amount: number;
  currency: string;
  status: Open<'Active' | 'Captured' | 'Released' | 'Expired'>;
  description: string | null;
  reference: string | null;
  expires_at: string;
  created_at: string;
  updated_at: string;
  external_id?: string;
  metadata?: Record<string, string>;
  metadata_client_id?: string;
};

export type CapturedHold = { hold: Hold; transaction?: Transaction; transfer?: Transfer };

export type Batch = {
  batch_id: string;
  mode: Open<'independent' | 'atomic'>;
  status: Open<'Completed' | 'Pending' | 'Refused'>;
  counts: BatchCounts;
  totals: BatchTotal[];
  actor: string;
  created_at: string;
  external_id?: string;
  metadata?: Record<string, string>;
  metadata_client_id?: string;
  results: BatchResult[];
};

export type BatchCounts = { completed: number; failed: number; pending: number };

export type BatchTotal = { currency: string; amount: number };

export type BatchResult = { index: number; status: Open<'Pending' | 'Completed' | 'Failed'>; transaction?: Transaction; transfer?: Transfer; error?: Refusal };

export type Refusal = { code: ErrorCode; message: string; errors?: Violation[]; details?: Record<string, unknown> };

export type BatchSummary = {
  batch_id: string;
  mode: Open<'independent' | 'atomic'>;
  status: Open<'Completed' | 'Pending' | 'Refused'>;
  counts: BatchCounts;
  totals: BatchTotal[];
  actor: string;
  created_at: string;
  external_id?: string;
  metadata?: Record<string, string>;
  metadata_client_id?: string;
};

export type CloudEvent = {
  specversion: '1.0';
  id: string;
  source: string;
  type: string;
  subject: string;
  time: string;
  datacontenttype: 'application/json';
  dataschema?: string;
  data: Record<string, unknown>;
};

export type WebhookWithSecret = {
  webhook_id: string;
  url: string;
  event_types: string[];
  ordering: Open<'account' | 'none'>;
  description: string | null;
  status: Open<'Active' | 'Paused' | 'Disabled'>;
  client_id: string | null;
  created_by: string;
  created_at: string;
  updated_at: string;
  failing_since: string | null;
  previous_secret_ends_at: string | null;
  blocked_accounts: BlockedAccount[];
  secret?: string;
};

export type BlockedAccount = {
  subject: string;
  delivery_id: string;
  event_type: string;
  blocked_since: string;
  attempts: number;
  error: string;
  next_attempt_at: string;
};

export type Webhook = {
  webhook_id: string;
  url: string;
  event_types: string[];
  ordering: Open<'account' | 'none'>;
  description: string | null;
  status: Open<'Active' | 'Paused' | 'Disabled'>;
  client_id: string | null;
  created_by: string;
  created_at: string;
  updated_at: string;
  failing_since: string | null;
  previous_secret_ends_at: string | null;
  blocked_accounts: BlockedAccount[];
};

export type Delivery = {
  delivery_id: string;
  webhook_id: string;
  event_id: string;
  event_type: string;
  status: Open<'Pending' | 'Delivered' | 'Failed'>;
  created_at: string;
  next_attempt_at: string | null;
  finished_at: string | null;
  attempts: DeliveryAttempt[];
};

export type DeliveryAttempt = { attempted_at: string; duration_ms: number; response_status: number | null; error: string | null };

export type ApiKeyWithSecret = {
  key_id: string;
  name: string;
  scopes: string[];
  environment: Open<'live' | 'test'>;
  client_id: string | null;
  status: Open<'active' | 'expired' | 'revoked'>;
  created_at: string;
  created_by: string;
  expires_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
  rotated_from: string | null;
  api_key?: string;
};

export type ApiKey = {
  key_id: string;
  name: string;
  scopes: string[];
  environment: Open<'live' | 'test'>;
  client_id: string | null;
  status: Open<'active' | 'expired' | 'revoked'>;
  created_at: string;
  created_by: string;
  expires_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
  rotated_from: string | null;
};

export type RevokedApiKey = {
  key_id: string;
  name: string;
  scopes: string[];
  environment: Open<'live' | 'test'>;
  client_id: string | null;
  status: Open<'active' | 'expired' | 'revoked'>;
  created_at: string;
  created_by: string;
  expires_at: string;
  last_used_at: string | null;
  revoked_at: string | null;
  rotated_from: string | null;
  disabled_webhooks?: string[];
};

export type Erasure = { client_id: string; erased_at: string; replaced: ErasureCounts; revoked_keys: number; remaining: RemainingData[] };

export type ErasureCounts = { kept_replies: number; audit_records: number; approvals: number; status_notes: number };

export type RemainingData = { place: string; holds: string; gone_at: string | null };

export type TrialBalance = { currency: string; debit_total: number; credit_total: number; assets: number; liabilities: number; difference: number };

export type SystemAccount = {
  account_id: string;
  account_number: string;
  kind: Open<'Teller' | 'Vault'>;
  currency: string;
  balance: number;
  slots: SystemAccountSlot[];
};

export type SystemAccountSlot = { account_id: string; account_number: string; balance: number };

export type DayClosing = { date: string; closed_at: string; closed_by: string; totals: DayTotal[]; accounts_sha256: string; previous_hash: string; hash: string };

export type DayTotal = {
  currency: string;
  class: Open<'liability' | 'asset'>;
  opening: number;
  debits: number;
  credits: number;
  closing: number;
  entry_count: number;
  operation_count: number;
};

export type DayLine = {
  account_id: string;
  account_number: string;
  currency: string;
  class: Open<'liability' | 'asset'>;
  opening: string;
  closing: string;
  sum: string;
  count: number;
  first_sequence: number;
  last_sequence: number;
};

export type DayBalance = { account_id: string; account_number: string; currency: string; balance: string };

export type SearchHit = {
  kind: Open<'client' | 'account' | 'transaction' | 'transfer' | 'audit_record'>;
  id: string;
  title: string;
  subtitle: string;
  matched: Open<'id' | 'receipt_number' | 'account_number' | 'external_id' | 'name' | 'phone' | 'email' | 'registration_number' | 'reference' | 'idempotency_key' | 'operation_id' | 'request_id'>;
  created_at: string;
};

export type Timeline = {
  transaction: Transaction;
  request: TimelineRequest;
  command: TimelineCommand;
  booked_at: string | null;
  entries: TimelineEntry[];
  events: TimelineEvent[];
};

export type TimelineRequest = { request_id: string; actor: string; idempotency_key: string | null; accepted_at: string };

export type TimelineCommand = { name: string; id: string; topic: string; partition: number };

export type TimelineEntry = {
  entry_id: string;
  operation_id: string;
  transaction_id: string;
  account_id: string;
  sequence: number;
  direction: Open<'debit' | 'credit'>;
  side: Open<'DR' | 'CR'>;
  amount: number;
  currency: string;
  balance_after: number;
  created_at: string;
  effective_date?: string;
  account_number: string;
  account_type: string;
};

export type TimelineEvent = {
  ce_id: string;
  type: string;
  topic: string;
  key: string | null;
  state: Open<'waiting' | 'published' | 'not_kept'>;
  recorded_at: string | null;
  published_at: string | null;
};

export type PostingStatistics = {
  currency: string;
  unit: Open<'minute' | 'hour' | 'day'>;
  from: string;
  to: string;
  complete: boolean;
  counted_from: string;
  buckets: PostingBucket[];
};

export type PostingBucket = { start: string; operations: number; amount: number };

export type PostingTotals = { from: string; to: string; complete: boolean; counted_from: string; totals: PostingTotal[] };

export type PostingTotal = { currency: string; operations: number; refused: number; money_in: number; money_out: number; transferred: number };

export type CashDays = { from: string; to: string; complete: boolean; counted_from: string; days: CashDay[] };

export type CashDay = { date: string; currency: string; money_in: number; money_out: number };

export type StaffDay = { actor: string; on: string; totals: StaffDayTotal[]; refused: number; batch_items: number; customers: ServedCustomer[] };

export type StaffDayTotal = {
  currency: string;
  cash_in: number;
  cash_in_count: number;
  cash_out: number;
  cash_out_count: number;
  net_cash: number;
  transferred: number;
  transferred_count: number;
};

export type ServedCustomer = { client_id: string; account_id: string; served_at: string };

export type Till = {
  till_id: string;
  actor: string;
  status: Open<'Open' | 'Closed'>;
  opened_at: string;
  opening: CountedCash[];
  closed_at: string | null;
  balances: TillBalance[];
  so_far?: TillSums[];
  reason: string | null;
  closed_by: string | null;
};

export type CountedCash = { currency: string; amount: number };

export type TillBalance = {
  currency: string;
  opening: number;
  cash_in: number;
  cash_in_count: number;
  cash_out: number;
  cash_out_count: number;
  expected: number;
  counted: number;
  difference: number;
};

export type TillSums = { currency: string; opening: number; cash_in: number; cash_in_count: number; cash_out: number; cash_out_count: number; expected: number };

export type Operations = {
  services: ServiceState[];
  breakers: BreakerState[];
  dead_letters_open: number | null;
  webhooks_failing: number | null;
  tills_different: number | null;
  consumer_lag: ConsumerLag[] | null;
  last_verification: Verification | null;
  four_eyes: FourEyesState;
  requests: RequestStatistics;
  history: OperationsSample[];
};

export type ServiceState = { service: Open<'ledger' | 'accounts' | 'webhooks'>; answers: boolean; outbox: OutboxState | null };

export type OutboxState = { rows: number; oldest_age_ms: number };

export type BreakerState = { service: Open<'ledger' | 'accounts' | 'webhooks'>; state: Open<'closed' | 'open'> };

export type ConsumerLag = { group: string; topic: string; partition: number; lag: number };

export type Verification = {
  verification_id: string;
  requested_by: string;
  started_at: string;
  ended_at: string | null;
  state: Open<'running' | 'passed' | 'broken' | 'interrupted'>;
  findings: VerificationFinding[];
  covers: Open<'books' | 'audit'>[];
};

export type VerificationFinding = { rule: string; rows: Record<string, unknown>[] };

export type FourEyesState = {
  off: Open<'reverse' | 'unfreeze' | 'create_key' | 'post_above' | 'erase' | 'client_contact' | 'webhook' | 'close_day' | 'raise_limit' | 'backdate'>[];
  reason: string | null;
};

export type RequestStatistics = { window_seconds: number; count: number; server_errors: number; mean_ms: number | null; slowest_ms: number | null };

export type OperationsSample = { at: string; lag: number | null; count: number; mean_ms: number | null; slowest_ms: number | null };

export type AuditRecord = {
  audit_id: string;
  created_at: string;
  actor: string;
  action: string;
  resource_id: string | null;
  outcome: string;
  request_id: string;
  details: Record<string, unknown>;
  address: string | null;
};

export type AuditActor = { actor: string; name: string };

export type DeadLetter = {
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
  state: Open<'open' | 'redriven' | 'dropped'>;
  decided_by: string | null;
  decided_at: string | null;
  drop_reason: string | null;
};

export type DeadLetterContent = {
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
  state: Open<'open' | 'redriven' | 'dropped'>;
  decided_by: string | null;
  decided_at: string | null;
  drop_reason: string | null;
  available: boolean;
  headers: Record<string, string>;
  value: string | null;
  encoding: Open<'utf-8' | 'base64'> | null;
  truncated: boolean;
};

export type ApprovalWithKey = {
  approval_id: string;
  action: Open<'reverse' | 'unfreeze' | 'create_key' | 'post_above' | 'erase' | 'client_contact' | 'webhook' | 'close_day' | 'raise_limit' | 'backdate'>;
  summary: string;
  request: ApprovalRequest;
  requested_by: string;
  requested_by_name?: string;
  requested_at: string;
  expires_at: string;
  status: Open<'Waiting' | 'Approved' | 'Rejected' | 'Expired'>;
  decided_by: string | null;
  decided_by_name?: string;
  decided_at: string | null;
  reason: string | null;
  outcome?: ApprovalOutcome;
  api_key?: string;
};

export type ApprovalRules = {
  day: string;
  actions: Open<'reverse' | 'unfreeze' | 'create_key' | 'post_above' | 'erase' | 'client_contact' | 'webhook' | 'close_day' | 'raise_limit' | 'backdate'>[];
  limits: ApprovalLimit[];
};

export type ApprovalLimit = { currency: string; limit: number; posted: number; left: number };

export type Session = {
  session_id: string;
  actor: string;
  name: string | null;
  scopes: Open<'clients:read' | 'clients:write' | 'clients:erase' | 'accounts:read' | 'accounts:write' | 'accounts:status' | 'accounts:import' | 'accounts:limits' | 'transactions:read' | 'transactions:write' | 'transactions:reverse' | 'transfers:write' | 'holds:write' | 'keys:manage' | 'audit:read' | 'books:read' | 'ops:manage' | 'approvals:write' | 'webhooks:manage' | 'transactions:backdate' | 'books:close'>[];
};

export type EndedSession = { session_id: string };

export type Activity = { action: string; outcome: Open<'success' | 'insufficient_scope' | 'invalid_credentials'> };

export interface Calls {
  /** Health check. Any authenticated caller. */
  health(input?: Record<never, never>, options?: CallOptions): Promise<Health>;
  /** List clients. Scope: clients:read. */
  listClients(input?: {
    client_type?: 'Retail' | 'Corporate';
    ussd_phone?: string;
    client_ids?: string;
    email?: string;
    registration_number?: string;
    q?: string;
    external_id?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Client>;
  /** Find a Retail client by USSD phone number. Scope: clients:read. */
  searchClientByUssd(input: { ussd_phone: string }, options?: CallOptions): Promise<Client>;
  /** Get a client. Scope: clients:read. */
  getClient(input: { client_id: string }, options?: CallOptions): Promise<Client>;
  /** Create a client. Not for credentials bound to one client. Scope: clients:write. */
  createClient(input: CreateClientRequest, options?: CallOptions): Promise<Client>;
  /** Update a client: names, contact fields, USSD phone and status, external_id, and metadata. Omitted fields keep their values. Credentials bound to a client cannot change names and the registration number (the audit log records their previous values); a new USSD phone of theirs is inactive until the bank activates it, and `metadata` of theirs is `client_metadata`. With `If-Match`, the client is changed only if it still has this `ETag`. Scope: clients:write. */
  updateClient(input: { client_id: string } & UpdateClientRequest, options?: CallOptions): Promise<Client>;
  /** Leave a note on a client. Notes are of staff, for staff: not for credentials bound to one client. A note is never changed. Scope: clients:write. */
  addClientNote(input: { client_id: string } & AddClientNoteRequest, options?: CallOptions): Promise<Note>;
  /** Notes on a client. Notes are of staff, for staff: not for credentials bound to one client. A note is never changed. Scope: clients:read. */
  listClientNotes(input: { client_id: string; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<Note>;
  /** List accounts. Scope: accounts:read. */
  listAccounts(input?: {
    client_id?: string;
    client_ids?: string;
    account_ids?: string;
    account_type?: 'Savings' | 'Checking' | 'Current' | 'Loan';
    status?: 'Active' | 'Inactive' | 'Frozen';
    currency?: string;
    external_id?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Account>;
  /** Get a balance by account number. Scope: accounts:read. */
  getBalanceByNumber(input: { accountNumber: string }, options?: CallOptions): Promise<AccountBalance>;
  /** Get an account. Scope: accounts:read. */
  getAccount(input: { account_id: string }, options?: CallOptions): Promise<Account>;
  /** Open an account for a client. An `initial_deposit` above 0 also requires `transactions:write`; `account_number` and `migrated` require `accounts:import`. Credentials bound to a client open Active accounts, no Loans, until the client has 20; `metadata` of theirs is `client_metadata`. Scope: accounts:write. */
  openAccount(input: OpenAccountRequest, options?: CallOptions): Promise<Account>;
  /** Activate, deactivate, or freeze an account. With `If-Match`, the status is changed only if the account still has this `ETag`, or has the requested status already. Scope: accounts:status. */
  changeAccountStatus(input: { account_id: string } & ChangeAccountStatusRequest, options?: CallOptions): Promise<Account>;
  /** List the status history of an account. Scope: accounts:read. */
  listStatusTransitions(input: { account_id: string; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<StatusTransition>;
  /** Get the limits of an account. Scope: accounts:limits or accounts:read. */
  getAccountLimits(input: { account_id: string }, options?: CallOptions): Promise<AccountLimits>;
  /** Set the limits of an account. Replaces all limits: one that is left out no longer applies. They bind every later withdrawal, transfer, and hold of the account, whoever asks for it. What left the account on this day counts from its beginning. Scope: accounts:limits. */
  setAccountLimits(input: { account_id: string } & SetAccountLimitsRequest, options?: CallOptions): Promise<AccountLimits>;
  /** Leave a note on an account. Notes are of staff, for staff: not for credentials bound to one client. A note is never changed. Scope: accounts:write. */
  addAccountNote(input: { account_id: string } & AddAccountNoteRequest, options?: CallOptions): Promise<Note>;
  /** Notes on an account. Notes are of staff, for staff: not for credentials bound to one client. A note is never changed. Scope: accounts:read. */
  listAccountNotes(input: { account_id: string; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<Note>;
  /** List the ledger entries of an account. Scope: transactions:read. */
  listEntries(input: { account_id: string; effective_from?: string; effective_to?: string; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<EntryLine>;
  /** Get the balance of an account, now or at a time. With `on`, returns the balance by value date at the end of that day, without `at` and `sequence`; it changes as long as postings are dated back to that day. With `at`, returns the balance after the last entry posted before that time; before the first entry, 0 with sequence 0. Scope: accounts:read. */
  getAccountBalance(input: { account_id: string; at?: string; on?: string }, options?: CallOptions): Promise<BalanceAt>;
  /** Get what moved on an account on each of its last days. Returns the totals of each of the last days of the bank by value date, the current one included, and the balance at its end, which is that of `balance?on=`. Days on which nothing moved are left out. At most 100,000 entries. Postings that are dated back change earlier days. Scope: transactions:read. */
  getAccountDays(input: { account_id: string; days?: number }, options?: CallOptions): Promise<AccountDays>;
  /** Get a statement of an account for a period. Returns entries in posting order, one page at a time, from `from` (inclusive) to `to` (exclusive). Balances and totals cover the whole period and are the same on every page. With `effective_from` or `effective_to`, the period is one of value dates: balances and totals are those of value dates, while `balance_after` and the order remain those of posting. `on` is the statement of one day by value date, which must have ended; it changes as long as postings are dated back to that day or an earlier one. A period may have at most 100,000 entries. With `Accept: text/html`, returns the whole period as one self-contained page made for paper, regardless of `limit`: at most 10,000 entries, in the language and time zone of the bank, with the account holder if the caller also has `clients:read`. With `Accept: application/xml` and `on`, streams the whole day as ISO 20022 camt.053.001.08, for accounting software. A caller may request one page or file at a time; a second gets a 429. Scope: transactions:read. */
  getStatement(input: {
    account_id: string;
    from?: string;
    to?: string;
    effective_from?: string;
    effective_to?: string;
    on?: string;
    limit?: number;
    cursor?: string;
  }, options?: CallOptions): Pages<Statement>;
  /** Get a statement of an account for a period, as an HTML page made for paper. */
  getStatementHtml(input: {
    account_id: string;
    from?: string;
    to?: string;
    effective_from?: string;
    effective_to?: string;
    on?: string;
    limit?: number;
    cursor?: string;
  }, options?: CallOptions): Promise<string>;
  /** Get a statement of an account for a period, as a file of ISO 20022 camt.053 that is read as it arrives. It is requested when it is read, once. */
  getStatementXml(input: { account_id: string; on: string }, options?: CallOptions): AsyncIterable<Uint8Array>;
  /** List transactions. The list has no index without `account_id` or `transfer_id`, by type, currency, amount, actor, request id, counterparty, metadata, or the status Completed. It then scans the newest 200,000 transactions per page; `complete` says whether these are all, and the Link continues from there. A caller may run two such lists at a time, and eight more wait for up to 3 s; beyond that, 429. `actor`: the caller, as in the audit log; not available to credentials bound to a client. Scope: transactions:read. */
  listTransactions(input?: {
    account_id?: string;
    counterparty_account_id?: string;
    transaction_type?: 'Deposit' | 'Withdrawal' | 'Transfer' | 'Loan Payment';
    status?: 'Pending' | 'Completed' | 'Failed';
    currency?: string;
    actor?: string;
    reference?: string;
    transfer_id?: string;
    from?: string;
    to?: string;
    effective_from?: string;
    effective_to?: string;
    min_amount?: number;
    max_amount?: number;
    idempotency_key?: string;
    external_id?: string;
    request_id?: string;
    metadata?: Record<string, string>;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Transaction>;
  /** Get a transaction. Scope: transactions:read. */
  getTransaction(input: { transaction_id: string }, options?: CallOptions): Promise<Transaction>;
  /** Deposit or withdraw. Scope: transactions:write. */
  createTransaction(input: CreateTransactionRequest, options?: CallOptions): Promise<Transaction>;
  /** Reverse a transaction. Scope: transactions:reverse. */
  reverseTransaction(input: { transaction_id: string } & ReverseTransactionRequest, options?: CallOptions): Promise<Transaction>;
  /** List transfers. The list has no index without `account_id` or `external_id`. It then scans the newest 200,000 transactions per page; `complete` says whether these are all, and the Link continues from there. A caller may run two such lists at a time, and eight more wait for up to 3 s; beyond that, 429. Scope: transactions:read. */
  listTransfers(input?: {
    account_id?: string;
    status?: 'Pending' | 'Completed' | 'Failed';
    from?: string;
    to?: string;
    effective_from?: string;
    effective_to?: string;
    external_id?: string;
    metadata?: Record<string, string>;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Transfer>;
  /** Get a transfer. Scope: transactions:read. */
  getTransfer(input: { transfer_id: string }, options?: CallOptions): Promise<Transfer>;
  /** Move funds between two accounts. Scope: transfers:write. */
  createTransfer(input: CreateTransferRequest, options?: CallOptions): Promise<Transfer>;
  /** List the holds of an account. Scope: transactions:read. */
  listHolds(input: {
    account_id: string;
    status?: 'Active' | 'Captured' | 'Released' | 'Expired';
    external_id?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Hold>;
  /** Get a hold. Scope: transactions:read. */
  getHold(input: { hold_id: string }, options?: CallOptions): Promise<Hold>;
  /** Place a hold on an account. Reserves money: the `available_balance` decreases, while the balance and the books do not change. Only for Active accounts that are not Loans; an account has at most 1,000 Active holds. Scope: holds:write. */
  placeHold(input: { account_id: string } & PlaceHoldRequest, options?: CallOptions): Promise<Hold>;
  /** Capture a hold, in cash or to another account. With `to_account_id` it is a transfer, which also requires `transfers:write`; otherwise a withdrawal, which also requires `transactions:write`. The hold becomes Captured after a `final` capture, or when nothing is left. If the account is not Active, the capture is refused and the hold remains. Scope: holds:write. */
  captureHold(input: { hold_id: string } & CaptureHoldRequest, options?: CallOptions): Promise<CapturedHold>;
  /** Release a hold. Also possible if the account is not Active. Scope: holds:write. */
  releaseHold(input: { hold_id: string }, options?: CallOptions): Promise<Hold>;
  /** Post up to 1,000 transactions and transfers in one request. Requires `transactions:write` if there are transactions and `transfers:write` if there are transfers. An invalid item fails the whole batch before anything is executed; the error names it (`items[3].transfer.amount`). `independent`: each item is decided as if sent alone. Items without an outcome within 5 s are Pending; get the batch later. `atomic`: at most 500 items, decided in order in one database transaction. If one is refused, nothing is posted (`batch_refused`, naming every refused item). Scope: transactions:write or transfers:write. */
  createBatch(input: CreateBatchRequest, options?: CallOptions): Promise<Batch>;
  /** List batches. Who sent each batch and when, how many of its items were posted, and their totals. A caller bound to a client sees only the batches of its own client. By an `actor` that is an API key, and without `external_id`, the list has no index: a caller may run two such lists at a time, and eight more wait for up to 3 s; beyond that, 429. Scope: transactions:read. */
  listBatches(input?: { external_id?: string; actor?: string; from?: string; to?: string; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<BatchSummary>;
  /** Get the results of a batch. A refused atomic batch returns the same error as its request. Scope: transactions:read. */
  getBatch(input: { batch_id: string }, options?: CallOptions): Promise<Batch>;
  /** Poll events with a cursor. Returns the published CloudEvents, oldest first, in publication order per account. To continue, pass `cursor` as `after` with the same filters. No event that is committed later appears before a cursor. Without `after`, starts with the oldest stored event (EVENTS_RETENTION_DAYS). A Link is present while there are more events. A caller bound to a client sees only events and entries of its own accounts. Scope: transactions:read. */
  listEvents(input?: { after?: string; types?: string; account_id?: string; limit?: number }, options?: CallOptions): Promise<{ data: CloudEvent[]; cursor: string }>;
  /** Create a webhook. Sends events to a URL (Standard Webhooks 1.0; see docs/webhooks.md). `secret` is shown only in this response, also in a 202. A caller may have at most 20 webhooks. Private network addresses are refused. Scope: webhooks:manage. */
  createWebhook(input: CreateWebhookRequest, options?: CallOptions): Promise<WebhookWithSecret>;
  /** List webhooks. Scope: webhooks:manage. */
  listWebhooks(input?: { limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<Webhook>;
  /** Get a webhook. Scope: webhooks:manage. */
  getWebhook(input: { webhook_id: string }, options?: CallOptions): Promise<Webhook>;
  /** Update, pause, or resume a webhook. Events are not sent while the webhook is Paused or Disabled; a replay sends them later. Setting Active also resumes a Disabled webhook. Scope: webhooks:manage. */
  updateWebhook(input: { webhook_id: string } & UpdateWebhookRequest, options?: CallOptions): Promise<Webhook>;
  /** Delete a webhook and its pending deliveries. Scope: webhooks:manage. */
  deleteWebhook(input: { webhook_id: string }, options?: CallOptions): Promise<Webhook>;
  /** Rotate the secret of a webhook. During the overlap the old secret signs too. The new secret is shown only in this response, also in a 202. At most two secrets sign: another rotation within the overlap ends the oldest. Scope: webhooks:manage. */
  rotateWebhookSecret(input: { webhook_id: string } & RotateWebhookSecretRequest, options?: CallOptions): Promise<WebhookWithSecret>;
  /** Send a test event to a webhook. Scope: webhooks:manage. */
  testWebhook(input: { webhook_id: string }, options?: CallOptions): Promise<Delivery>;
  /** Replay the events of a period to a webhook. Sends the stored events from `from` (inclusive) to `to` (exclusive; default: now) by event time, including events from before the webhook was created. Scope: webhooks:manage. */
  replayWebhook(input: { webhook_id: string } & ReplayWebhookRequest, options?: CallOptions): Promise<Webhook>;
  /** List the deliveries of a webhook with their attempts. Delivered deliveries are kept for 7 days, Failed ones for 30 days. Scope: webhooks:manage. */
  listDeliveries(input: { webhook_id: string; status?: 'Pending' | 'Delivered' | 'Failed'; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<Delivery>;
  /** Redeliver a delivery. A Pending delivery is attempted now, or as soon as earlier events of its account are delivered or Failed. Scope: webhooks:manage. */
  redeliver(input: { webhook_id: string; delivery_id: string }, options?: CallOptions): Promise<Delivery>;
  /** Skip a delivery. A Pending delivery becomes Failed, and the next event of its account is sent. An attempt that is running may still arrive. It can be redelivered later. Scope: webhooks:manage. */
  skipDelivery(input: { webhook_id: string; delivery_id: string }, options?: CallOptions): Promise<Delivery>;
  /** Create an API key. The key expires at `expires_at`, but after at most KEY_MAX_LIFETIME_DAYS and no later than the key that creates it; without `expires_at`, at the latest of these times. A key bound to a client cannot have scopes that belong to the bank. Scope: keys:manage. */
  createApiKey(input: CreateApiKeyRequest, options?: CallOptions): Promise<ApiKeyWithSecret>;
  /** List API keys. Scope: keys:manage. */
  listApiKeys(input?: { limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<ApiKey>;
  /** Get an API key. Scope: keys:manage. */
  getApiKey(input: { key_id: string }, options?: CallOptions): Promise<ApiKey>;
  /** Rotate an API key. The old key remains valid during the overlap. The new key expires when the old one would have, and no later than the key that rotates it. Scope: keys:manage. */
  rotateApiKey(input: { key_id: string } & RotateApiKeyRequest, options?: CallOptions): Promise<ApiKeyWithSecret>;
  /** Revoke an API key and its family. Revokes every key that it was rotated from or to and, with `descendants`, every key that these created or rotated, recursively. `disabled_webhooks` lists the webhooks whose URL or secret these keys set last: they are disabled. It is left out if webhooks does not answer in time; they are disabled anyway. Scope: keys:manage. */
  revokeApiKey(input: { key_id: string } & RevokeApiKeyRequest, options?: CallOptions): Promise<RevokedApiKey>;
  /** Erase the personal data of a client. Replaces names, contact data, and notes, also in stored responses, approvals, and audit records, and revokes bound API keys. Postings, holds, and batches keep their texts, like the books; so do approvals of captures and reversals, whose requests name neither the client nor an account. The client can no longer be changed. Every account of the client must be Inactive and empty, and must have been opened, changed, and last posted to more than RETENTION_YEARS ago; otherwise erasure_refused names each account and the reason. The response lists the data that remains and when it is deleted. A repeat replaces what was added since. Scope: clients:erase. */
  eraseClient(input: { client_id: string }, options?: CallOptions): Promise<Erasure>;
  /** Get the trial balance per currency. With `on`, by value date at the end of that day. Scope: books:read. */
  getTrialBalance(input?: { on?: string }, options?: CallOptions): Promise<TrialBalance[]>;
  /** Get Teller and Vault per currency. Scope: books:read. */
  getSystemAccounts(input?: Record<never, never>, options?: CallOptions): Promise<SystemAccount[]>;
  /** Close a day of the books. The day must have ended, and be the one after the last closed; the first may be any, and closes all before it. From then on, no posting with that value date or an earlier one is decided. Scope: books:close. */
  closeDay(input: CloseDayRequest, options?: CallOptions): Promise<DayClosing>;
  /** List closed days. Scope: books:read. */
  listDayClosings(input?: { limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<DayClosing>;
  /** Get a closed day. Scope: books:read. */
  getDayClosing(input: { date: string }, options?: CallOptions): Promise<DayClosing>;
  /** Get the accounts with movement on a closed day. Streams JSON lines, by account_id, which never change and have the hash `accounts_sha256`, or CSV (`Accept: text/csv`). A caller may request one such file at a time; a second gets a 429. Scope: books:read. */
  listDayLines(input: { date: string }, options?: CallOptions): Lines<DayLine>;
  /** Get the balances of all accounts of clients on a day. Streams JSON lines, or CSV (`Accept: text/csv`): every account, by account_id, with its balance by value date at the end of the day `on`, by default the current day. All are of one moment. A caller may request one such file at a time; a second gets a 429. Scope: books:read. */
  listBalances(input?: { on?: string; currency?: string }, options?: CallOptions): Lines<DayBalance>;
  /** Search clients, accounts, postings, and audit records. Finds clients (clients:read) by id, by the words of their name in any script, case, and usual spelling, by e-mail address, registration number, and external_id, and by contact or USSD phone number; accounts (accounts:read) by id or number; transactions and transfers (transactions:read) by id, operation id, receipt number, reference, or Idempotency-Key, and by request id, unless it is a number, among the newest 20,000, or 20,000 of the time that an id of the form of the bank contains; audit records (audit:read) by request id. Values other than names must match completely; blanks around the text count only for an external_id. Returns at most 20 hits per kind and omits kinds that the scopes do not allow. Not available to credentials bound to a client. Client data shown to a staff user is audited. Any authenticated caller. */
  search(input: { q: string }, options?: CallOptions): Promise<SearchHit[]>;
  /** Get the timeline of a transaction: request, command, entries, events. Returns the entries of the whole operation, including those of Teller, Vault, and the other party. Events are included for as long as the outbox keeps them, 24 hours after publication. Scope: audit:read and transactions:read. */
  getTimeline(input: { transaction_id: string }, options?: CallOptions): Promise<Timeline>;
  /** Get operations and amounts per minute, hour, or day. `to` defaults to now; `from` defaults to an hour of minutes, a day of hours, or thirty days. At most 1,500 buckets. Counts the newest 200,000 transactions of the period; `complete` says whether these are all. Scope: books:read. */
  getPostingStatistics(input: { currency: string; unit?: 'minute' | 'hour' | 'day'; from?: string; to?: string }, options?: CallOptions): Promise<PostingStatistics>;
  /** Get operations and money in and out per currency. `to` defaults to now; `from` defaults to one day before it. Counts the newest 200,000 transactions of the period; `complete` says whether these are all. Scope: books:read. */
  getPostingTotals(input?: { from?: string; to?: string }, options?: CallOptions): Promise<PostingTotals>;
  /** Get the cash that came in and went out, by day. Days are those of the bank on which postings were accepted. If too many were not counted before, `complete` is false, and a later request returns more. Scope: books:read. */
  getCashDays(input?: { days?: '7' | '14' | '30' }, options?: CallOptions): Promise<CashDays>;
  /** Get what a person has posted on a day. The caller's own day, or with `books:read` that of the person `actor`. Days are those of the bank, and every posting is counted, however many there are. What a second person has approved counts for the person who asked for it. Any authenticated caller. */
  getStaffDay(input?: { on?: string; actor?: string }, options?: CallOptions): Promise<StaffDay>;
  /** Open a till. A till belongs to a person who has signed in: API keys and OAuth clients have none. A person has at most one that is open. From then on it takes the deposits and withdrawals that the person posts. Scope: transactions:write. */
  openTill(input: OpenTillRequest, options?: CallOptions): Promise<Till>;
  /** List tills. The caller's own, or with `books:read` those of everybody. Any authenticated caller. */
  listTills(input?: { actor?: string; status?: 'Open' | 'Closed'; limit?: number; cursor?: string; order?: 'asc' | 'desc' }, options?: CallOptions): Pages<Till>;
  /** Get a till. Another person than its own requires `books:read`, and sees in `so_far` what an open one has taken. Any authenticated caller. */
  getTill(input: { till_id: string }, options?: CallOptions): Promise<Till>;
  /** Close a till. By its own person, or by another one with `books:read`, who must give a reason. Every currency in which it was opened, or has taken or paid cash, must be counted. If what was counted is not what is expected, a reason is required. Refused counts are audited, and the refusal does not say what is expected. Scope: transactions:write. */
  closeTill(input: { till_id: string } & CloseTillRequest, options?: CallOptions): Promise<Till>;
  /** Get outboxes, consumer lag, dead letters, breakers, and the last verification. A part that does not respond is null; the status is still 200. Scope: books:read. */
  getOperations(input?: Record<never, never>, options?: CallOptions): Promise<Operations>;
  /** Verify the books and the audit log. Responds when the verification has started; its result is in `last_verification` of GET /admin/operations. It checks every entry, in one snapshot, and every audit record; `covers` says whether the audit log could be checked. If a verification is already running, returns that one. Scope: books:read. */
  verifyBooks(input?: Record<never, never>, options?: CallOptions): Promise<Verification>;
  /** List audit records. Scope: audit:read. */
  listAudit(input?: {
    actor?: string;
    action?: string;
    resource_id?: string;
    subject?: string;
    outcome?: string;
    request_id?: string;
    reads?: 'with' | 'without';
    from?: string;
    to?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<AuditRecord>;
  /** List who acted, by name. Returns at most 100 of the persons and keys in the audit log whose name or subject contains `q`, by name. Of a log with more than 2,000 actors, the others are found only by their complete subject or actor. Scope: audit:read. */
  listAuditActors(input?: { q?: string }, options?: CallOptions): Promise<AuditActor[]>;
  /** List the names of persons and keys. For persons of the bank. Returns the API keys, and those of the persons who have signed in with a name (`POST /admin/sign-ins`), by actor. Any authenticated caller. */
  listStaffNames(input: { actors: string }, options?: CallOptions): Promise<AuditActor[]>;
  /** List messages that could not be processed. Scope: ops:manage. */
  listDeadLetters(input?: {
    topic?: 'ledger.commands.dlq' | 'ledger.batches.dlq' | 'ledger.audit.dlq' | 'accounts.commands.dlq' | 'ledger.queries.dlq' | 'accounts.queries.dlq' | 'webhooks.commands.dlq' | 'webhooks.queries.dlq';
    state?: 'open' | 'redriven' | 'dropped';
    from?: string;
    to?: string;
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<DeadLetter>;
  /** Get a dead letter with headers and value. Scope: ops:manage and clients:read. */
  getDeadLetter(input: { dead_letter_id: string }, options?: CallOptions): Promise<DeadLetterContent>;
  /** Redrive a dead letter: publish its original bytes to its topic again. Scope: ops:manage. */
  redriveDeadLetter(input: { dead_letter_id: string } & RedriveDeadLetterRequest, options?: CallOptions): Promise<DeadLetter>;
  /** Drop a dead letter, so that this copy of the message is never executed. Scope: ops:manage. */
  dropDeadLetter(input: { dead_letter_id: string } & DropDeadLetterRequest, options?: CallOptions): Promise<DeadLetter>;
  /** List approvals. Returns the caller's own approvals and, with `approvals:write`, those whose action's scope the caller has; to a person with `audit:read` and `clients:read`, all. `requested_by`: only those of the caller (`me`), or only those of others (`others`), which the caller can decide. Any authenticated caller. */
  listApprovals(input?: {
    status?: 'Waiting' | 'Approved' | 'Rejected' | 'Expired';
    action?: 'reverse' | 'unfreeze' | 'create_key' | 'post_above' | 'erase' | 'client_contact' | 'webhook' | 'close_day' | 'raise_limit' | 'backdate';
    requested_by?: 'me' | 'others';
    limit?: number;
    cursor?: string;
    order?: 'asc' | 'desc';
  }, options?: CallOptions): Pages<Approval>;
  /** Get an approval. Visible to its requester, to everyone who may decide it, and to persons with `audit:read` and `clients:read`. If it created an API key, the requester's first GET contains `api_key`: the key itself, shown only once. Any authenticated caller. */
  getApproval(input: { approval_id: string }, options?: CallOptions): Promise<ApprovalWithKey>;
  /** Get what needs an approval. Returns the actions of the caller that need an approval now. A posting is `post_above` if its amount, or all items of a batch or captures of a hold together, is more than `limit` or more than `left` of its currency, or if its currency is not listed. It promises nothing: another posting of the caller, midnight, or a change of the settings may come before the request. Any authenticated caller. */
  getApprovalRules(input?: Record<never, never>, options?: CallOptions): Promise<ApprovalRules>;
  /** Approve a request. Also requires the scope of the action. The command is executed in the requester's name; its outcome is added to the approval when it is known. Scope: approvals:write. */
  approveRequest(input: { approval_id: string } & ApproveRequestRequest, options?: CallOptions): Promise<Approval>;
  /** Reject a request. Also requires the scope of the action. Scope: approvals:write. */
  rejectRequest(input: { approval_id: string } & RejectRequestRequest, options?: CallOptions): Promise<Approval>;
  /** Sign a person in. For an application for staff, such as the dashboard, with the person's access token; `session_id` is the application's. Responds when the audit has the sign-in. With the `id_token` of the same sign-in, the bank keeps its `name`, or `preferred_username`, for colleagues to see; one that cannot be verified, or is of another person or OAuth client, changes no name. From then on, earlier tokens of the person for the same OAuth client are refused. A request without a valid token counts as a failed sign-in of its address. Any authenticated caller. */
  signIn(input: SignInRequest, options?: CallOptions): Promise<Session>;
  /** Sign a person out. The access token of the request is refused from then on, on every gateway within 2 s. Any authenticated caller. */
  signOut(input: SignOutRequest, options?: CallOptions): Promise<EndedSession>;
  /** Record an export, or a page or form that an application for staff refused. An export (`success`) has an audit record when this responds. Refusals are counted, and have one record a minute. `filters` are query parameters of the API; values that may be personal are not recorded. With sign-ins, at most 60 a minute for one person. Any authenticated caller. */
  recordActivity(input: RecordActivityRequest, options?: CallOptions): Promise<Activity>;
}
