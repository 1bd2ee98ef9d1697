import { type Endpoint, type EndpointName, endpoints } from '#libs/contracts/endpoints.ts';
import type { ErrorCode, Refusal } from '#libs/contracts/errors.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { kindOf } from '#libs/contracts/ids.ts';
import { errorMeanings } from '../error-meanings.ts';
import { exampleIds, exampleResources, session_id } from './openapi-answers.ts';
import type { Json } from './openapi-schemas.ts';

const { account, client } = exampleIds;

/** Returns an example of a path parameter. */
export function exampleOf(name: string): string {
  const kind = kindOf(name);
  if (kind) return exampleIds[kind];
  return name === 'accountNumber' ? 'SAV-1234567897' : name;
}

/** Returns the fields of a resource that a request also has. */
function pick<T extends object>(resource: T, ...fields: (keyof T & string)[]): Json {
  return Object.fromEntries(fields.map((field) => [field, resource[field]]));
}

const { retail, corporate, deposit, transfer } = exampleResources;
const newRetail = pick(retail, 'client_type', 'first_name', 'last_name', 'email', 'contact_number');
const newAccount = { client_id: client, account_type: 'Savings', currency: 'USD' };
const newDeposit = pick(deposit, 'account_id', 'transaction_type', 'amount', 'currency');
const newTransfer = pick(transfer, 'from_account_id', 'to_account_id', 'amount');
const describedTransfer = { ...newTransfer, ...pick(transfer, 'currency', 'description') };
/** Of a file of payments: its hash could be the external_id. */
const exampleNames = { external_id: 'wages-2026-01', metadata: { file_name: 'wages.csv' } };

const requests: Partial<Record<EndpointName, Record<string, Json>>> = {
  create_client: {
    Retail: newRetail,
    USSD: { ...newRetail, ...pick(retail, 'ussd_phone_number', 'ussd_status') },
    Corporate: pick(corporate, 'client_type', 'company_name', 'registration_number', 'email', 'contact_number'),
  },
  update_client: {
    address: { address: '12 St James Square' },
    name: { last_name: 'King' },
    names: { external_id: 'crm-A17', metadata: { segment: 'student' } },
    'no metadata': { metadata: null },
  },
  erase_client: { erase: {} },
  open_account: {
    savings: { ...newAccount, initial_deposit: 100.5 },
    names: { ...newAccount, external_id: 'core-4711', metadata: { branch: 'Nairobi 3' } },
    moving_in: { ...newAccount, account_number: 'SAV-00042', initial_deposit: 1500.75, migrated: true },
  },
  change_account_status: {
    freeze: { status: 'Frozen', reason: 'fraud', note: 'reported by the owner' },
    activate: { status: 'Active' },
  },
  add_client_note: { known: { note: 'Prefers to be called in the afternoon' } },
  add_account_note: { known: { note: 'Statement by post until June' } },
  create_transaction: {
    deposit: { ...newDeposit, ...pick(deposit, 'description', 'reference') },
    withdrawal: { account_id: account, transaction_type: 'Withdrawal', amount: 10.75 },
  },
  create_transfer: {
    transfer: describedTransfer,
    names: { ...newTransfer, external_id: 'order-1842', metadata: { channel: 'app' } },
  },
  create_batch: {
    independent: {
      mode: 'independent',
      items: [{ transaction: { ...newDeposit, ...pick(deposit, 'reference') } }, { transfer: describedTransfer }],
      ...exampleNames,
    },
    atomic: {
      mode: 'atomic',
      items: [{ transfer: newTransfer }],
    },
  },
  reverse_transaction: { reversal: { reason: 'posted twice' } },
  create_api_key: {
    reader: { name: 'reporting', scopes: ['accounts:read', 'transactions:read'], environment: 'live' },
  },
  rotate_api_key: { hour: { overlap_seconds: 3600 } },
  revoke_api_key: { revoke: {} },
  redrive_dead_letter: { redrive: {}, renewed: { renew_deadline: true } },
  sign_in: { officer: { session_id } },
  sign_out: { officer: { session_id } },
  record_activity: {
    export: { action: 'export', outcome: 'success', file: 'transactions.csv', filters: { currency: 'KES' } },
    refused: { action: 'page:api-keys/new', outcome: 'insufficient_scope' },
  },
  verify_books: { verify: {} },
  drop_dead_letter: { drop: { reason: 'a test message' } },
  approve_request: { approve: {}, reason: { reason: 'seen the receipt' } },
  create_webhook: {
    transactions: { url: 'https://receiver.example/bank', event_types: ['transaction.*'], description: 'Bookkeeping' },
  },
  update_webhook: { pause: { status: 'Paused' } },
  rotate_webhook_secret: { day: { overlap_seconds: 86400 } },
  test_webhook: { test: {} },
  replay_webhook: { january: { from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z' } },
  redeliver: { redeliver: {} },
  reject_request: { reject: { reason: 'the customer keeps the money' } },
};

export function requestExamples(name: EndpointName): Record<string, Json> {
  const { requests: own = requests[name] ?? {} }: Endpoint = endpoints[name];
  return Object.fromEntries(Object.entries(own).map(([title, value]) => [title, { value }]));
}

type Details = Pick<Refusal, 'errors' | 'details'>;

function violation(field: string, code: ErrorCode, rule: string): [message: string, rest: Details] {
  return [`${field} ${rule}`, { errors: [{ field, code, message: `${field} ${rule}` }] }];
}

const transaction = { transaction_id: exampleIds.transaction };

/** An example message of each code, and its details. */
const errors: Partial<Record<ErrorCode, [message: string, rest?: Details]>> = {
  validation_failed: violation('email', 'validation_failed', 'must be an e-mail address'),
  malformed_json: ['the body is not JSON'],
  unknown_field: violation('foo', 'unknown_field', 'is not a known field'),
  unknown_parameter: violation('foo', 'unknown_parameter', 'is not a known parameter'),
  invalid_cursor: violation('cursor', 'invalid_cursor', 'is not one of this list with these filters'),
  invalid_amount: violation('amount', 'invalid_amount', 'must be greater than 0'),
  invalid_amount_precision: violation('amount', 'invalid_amount_precision', 'has more decimal places than USD has'),
  amount_too_large: violation('amount', 'amount_too_large', 'exceeds 10^15 - 1 minor units'),
  unsupported_currency: violation(
    'currency',
    'unsupported_currency',
    'must be an ISO 4217 currency code in upper case',
  ),
  insufficient_funds: [
    `the available balance of account ${account} is too low for this withdrawal`,
    { details: transaction },
  ],
  inactive_account: [`account ${account} is Frozen`, { details: transaction }],
  invalid_account_type: ['a Deposit is not possible on a Loan account', { details: transaction }],
  duplicate_account_number: ['an account with the number SAV-1234567897 already exists'],
  currency_mismatch: [`account ${account} has the currency USD, not KES`, { details: transaction }],
  same_account: ['to_account_id must differ from from_account_id', { details: transaction }],
  destination_refused: ['the destination account cannot take this payment', { details: transaction }],
  amount_exceeds_outstanding: [
    `the amount exceeds the outstanding principal of loan account ${account}`,
    { details: transaction },
  ],
  balance_limit_exceeded: [
    `the balance of account ${account} would exceed 10^15 - 1 minor units`,
    { details: transaction },
  ],
  invalid_transaction_type: violation('transaction_type', 'invalid_transaction_type', 'must be Deposit or Withdrawal'),
  invalid_status_transition: [`dead letter ${exampleIds.dead_letter} is already dropped`],
  duplicate_ussd_phone: ['another client has this USSD phone number active'],
  duplicate_external_id: ['another client has this external_id'],
  not_reversible: [`transaction ${exampleIds.transaction} is Failed`],
  already_reversed: [
    `transaction ${exampleIds.transaction} was reversed by txn_2195f0c2a1b27c3d8e4f5a6b7c8d9e0f`,
    { details: { reversal_transaction_id: 'txn_2195f0c2a1b27c3d8e4f5a6b7c8d9e0f' } },
  ],
  erasure_refused: [
    `client ${client} cannot be erased: 1 of their accounts must be kept`,
    {
      details: {
        accounts: [{ account_id: account, reasons: ['within_retention'], kept_until: '2036-01-02T03:04:05.678Z' }],
      },
    },
  ],
  approval_required: [`account ${account} is frozen: a second person must approve this`],
  batch_refused: [
    `1 of 2 items were refused, and nothing was posted; items[1].transfer: Insufficient Funds: the available balance of source account ${account} is too low for this transfer`,
    {
      errors: [
        {
          field: 'items[1].transfer',
          code: 'insufficient_funds',
          message: `Insufficient Funds: the available balance of source account ${account} is too low for this transfer`,
        },
      ],
      details: { batch_id: exampleIds.batch },
    },
  ],
  missing_idempotency_key: ['a batch needs an Idempotency-Key'],
  missing_credentials: ['credentials are required: Authorization: Bearer <token>, or x-api-key'],
  invalid_credentials: ['the credentials are not valid'],
  ambiguous_credentials: ['send either Authorization or x-api-key, not both'],
  insufficient_scope: ['the scope accounts:read is required'],
  own_approval: ['a second person must decide: nobody can approve or reject their own request'],
  client_not_found: [`client ${client} not found`],
  account_not_found: [
    `account_id ${account}: account not found`,
    { details: { field: 'account_id', account_id: account, ...transaction } },
  ],
  transaction_not_found: [`transaction ${exampleIds.transaction} not found`],
  transfer_not_found: [`transfer ${exampleIds.transfer} not found`],
  api_key_not_found: [`API key ${exampleIds.key} not found`],
  dead_letter_not_found: [`dead letter ${exampleIds.dead_letter} not found`],
  batch_not_found: [`batch ${exampleIds.batch} not found`],
  webhook_not_found: [`webhook ${exampleIds.webhook} not found`],
  delivery_not_found: [`delivery ${exampleIds.delivery} not found`],
  approval_not_found: [`approval ${exampleIds.approval} not found`],
  route_not_found: ['the path does not exist'],
  method_not_allowed: ['DELETE is not allowed here, only GET, HEAD, POST'],
  deadline_exceeded: [
    'the command was received after its deadline: it was not executed and never will be; repeat it with a new Idempotency-Key',
  ],
  approval_decided: [
    `approval ${exampleIds.approval} is already Rejected`,
    { details: { approval_id: exampleIds.approval, status: 'Rejected' } },
  ],
  client_erased: [`client ${client} was erased and can no longer be changed`],
  dead_letter_expired: [`the message of ${exampleIds.dead_letter} was deleted by retention: it can only be dropped`],
  version_mismatch: [`client ${client} has changed: If-Match does not name its current version`],
  request_timeout: ['the request was not received in time'],
  body_too_large: ['the body must not exceed 64 KiB'],
  unsupported_media_type: ['the Content-Type must be application/json'],
  idempotency_key_reused: ['this Idempotency-Key was used for another request'],
  rate_limited: ['more than 600 requests a minute; try again in 12 s'],
  headers_too_large: ['the request line and headers must not exceed 80 KiB'],
  internal_error: ['an unexpected error occurred'],
  service_unavailable: ['the service cannot answer now; nothing was executed, the request can be repeated'],
  outcome_unknown: [
    `the outcome of ${exampleIds.transaction} is not known yet: repeat the request with the same Idempotency-Key`,
    { details: transaction },
  ],
};

/** Returns an error body with that code. */
export function errorExample(code: ErrorCode): Json {
  const [message, rest] = errorMeanings[code].example ?? errors[code] ?? [''];
  return { status: 'error', ...refusal(code, message, rest), request_id: exampleIds.request };
}
