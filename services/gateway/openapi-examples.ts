import type { EndpointName } from '#libs/contracts/endpoints.ts';
import { refusal } from '#libs/contracts/errors.ts';
import type { ErrorCode } from '#libs/contracts/errors.ts';
import type { Json } from './openapi-schemas.ts';

const bits = '0195f0c2a1b27c3d8e4f5a6b7c8d9e0f';
const account = `acc_${bits}`;
const client = `cli_${bits}`;

const examples: Record<string, string> = {
  client_id: client,
  account_id: account,
  transaction_id: `txn_${bits}`,
  transfer_id: `trf_${bits}`,
  key_id: `key_${bits}`,
  dead_letter_id: `dlt_${bits}`,
  replay_id: `rpl_${bits}`,
  accountNumber: 'SAV-1234567897',
};

/** An example of a path parameter. */
export function exampleOf(name: string): string {
  return examples[name] ?? name;
}

const requests: Partial<Record<EndpointName, Record<string, Json>>> = {
  create_client: {
    Retail: { client_type: 'Retail', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com', contact_number: '+254700000001', ussd_phone_number: '+254700000001', ussd_status: 'active' },
    Corporate: { client_type: 'Corporate', company_name: 'Analytical Engines', registration_number: 'C-1842', email: 'office@example.com', contact_number: '+254700000002' },
  },
  update_client: { address: { address: '12 St James Square' } },
  open_account: { savings: { client_id: client, account_type: 'Savings', currency: 'USD', initial_deposit: 100.5 } },
  change_account_status: { freeze: { status: 'Frozen', reason: 'fraud', note: 'reported by the owner' }, activate: { status: 'Active' } },
  create_transaction: {
    deposit: { account_id: account, transaction_type: 'Deposit', amount: 25, currency: 'USD', description: 'Cash', reference: 'R-1' },
    withdrawal: { account_id: account, transaction_type: 'Withdrawal', amount: 10.75 },
  },
  create_transfer: { transfer: { from_account_id: account, to_account_id: `acc_${bits.replace(/^0/, '1')}`, amount: 10, currency: 'USD', description: 'Rent' } },
  reverse_transaction: { reversal: { reason: 'booked twice' } },
  create_api_key: { reader: { name: 'reporting', scopes: ['accounts:read', 'transactions:read'], environment: 'live' } },
  rotate_api_key: { hour: { overlap_seconds: 3600 } },
  revoke_api_key: { revoke: {} },
  redrive_dead_letter: { redrive: {}, renewed: { renew_deadline: true } },
  verify_books: { verify: {} },
  create_replay: {
    day: { topic: 'transactions', from: '2026-01-02T00:00:00.000Z', to: '2026-01-03T00:00:00.000Z' },
    account: { topic: 'transfers', from: '2026-01-02T00:00:00.000Z', account_id: account },
  },
  drop_dead_letter: { drop: { reason: 'a test message' } },
};

export function requestExamples(name: EndpointName): Record<string, Json> {
  return Object.fromEntries(Object.entries(requests[name] ?? {}).map(([title, value]) => [title, { value }]));
}

const messages: Partial<Record<ErrorCode, string>> = {
  validation_failed: 'email must be an e-mail address',
  malformed_json: 'the body is not JSON',
  unknown_field: 'foo is not a known field',
  unknown_parameter: 'foo is not a known parameter',
  invalid_cursor: 'the cursor is not one of this list with these filters',
  invalid_amount: 'amount must be greater than 0',
  invalid_amount_precision: 'amount has more decimal places than USD has',
  amount_too_large: 'amount exceeds 10^15 - 1 minor units',
  unsupported_currency: 'currency must be an ISO 4217 currency code in upper case',
  insufficient_funds: `account ${account} has too little balance for this withdrawal`,
  inactive_account: `account ${account} is Frozen`,
  invalid_account_type: 'a Loan takes no deposits',
  missing_credentials: 'credentials are required: Authorization: Bearer <token>, or x-api-key',
  invalid_credentials: 'the credentials are not valid',
  ambiguous_credentials: 'send either Authorization or x-api-key, not both',
  insufficient_scope: 'the scope accounts:read is required',
  client_not_found: `client ${client} not found`,
  account_not_found: `account ${account} not found`,
  events_expired: 'from must be 2026-01-02T03:04:05.679Z or later: older events are not kept any more',
  service_unavailable: 'the service cannot answer now; nothing was executed, the request can be repeated',
  outcome_unknown: `the outcome of txn_${bits} is not known yet: repeat the request with the same Idempotency-Key`,
};

/** An error body with that code. */
export function errorExample(code: ErrorCode): Json {
  const { message } = refusal(code, messages[code] ?? code.replaceAll('_', ' '));
  return { status: 'error', message, code, request_id: '7c9e6679-7425-40de-944b-e07fc1f90ae7' };
}
