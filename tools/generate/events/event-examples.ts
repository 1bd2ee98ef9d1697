import { type EventData, type EventType, events } from '#libs/contracts/events.ts';

/** One example of each event type, used in the JSON Schemas, in AsyncAPI, and in docs/events.md. */

const bits = '0195f0c2a1b27c3d8e4f5a6b7c8d9e0f';
const other = '1195f0c2a1b27c3d8e4f5a6b7c8d9e0f';
const client_id = `cli_${bits}`;
const account_id = `acc_${bits}`;
const transaction_id = `txn_${bits}`;
const operation_id = `opr_${bits}`;
const at = '2026-01-02T03:04:05.678Z';
const booked = '2026-01-02T03:04:05.681Z';

export const depositExample = {
  transaction_id,
  account_id,
  transaction_type: 'Deposit' as const,
  amount: '25.00',
  currency: 'USD',
  description: 'Cash',
  reference: 'R-1',
  status: 'Completed' as const,
  created_at: at,
  direction: 'credit' as const,
};
const entry = (account: string, sequence: number, direction: 'debit' | 'credit', side: 'DR' | 'CR') => ({
  entry_id: `ent_${account.slice(4)}-${sequence}`,
  account_id: account,
  sequence,
  direction,
  side,
  operation_id,
  transaction_id,
  amount: '25.00',
  currency: 'USD',
  created_at: booked,
});
const asked = { actor: 'jwt:https://issuer.example|alice', request_channel: 'staff' };
const ownership = { client_id, account_number: 'SAV-1234567897' };
const decided = { batch_id: 4711, batch_position: 2 };
export const transferExample = {
  transfer_id: `trf_${bits}`,
  from_account_id: account_id,
  to_account_id: `acc_${other}`,
  amount: '10.00',
  currency: 'USD',
  description: 'Rent',
  status: 'Completed' as const,
  created_at: at,
};
const ids = { vault: `acc_2${bits.slice(1)}`, teller: `acc_3${bits.slice(1)}` };

const account = {
  account_id,
  client_id,
  account_number: 'SAV-1234567897',
  account_type: 'Savings',
  currency: 'USD',
  status: 'Active',
  created_at: at,
  updated_at: at,
} as const;

const unmoved: { [T in EventType]?: EventData<T> } = {
  'corebanking.transaction.completed.v1': {
    transaction: depositExample,
    sequence: 12,
    balance_after: '125.50',
    operation_id,
    entries: [
      entry(account_id, 12, 'credit', 'CR'),
      entry(ids.teller, 7, 'credit', 'DR'),
      entry(ids.teller, 8, 'debit', 'CR'),
      entry(ids.vault, 4, 'credit', 'DR'),
    ],
    ...ownership,
    ...asked,
    ...decided,
  },
  'corebanking.transaction.failed.v1': {
    transaction: {
      ...depositExample,
      transaction_type: 'Withdrawal',
      amount: '5000.00',
      description: null,
      reference: null,
      status: 'Failed',
      direction: 'debit',
      failure_code: 'insufficient_funds',
    },
    ...ownership,
    ...asked,
    ...decided,
  },
  'corebanking.transaction.account_not_found.v1': {
    transaction: {
      ...depositExample,
      account_id: `acc_${other}`,
      currency: null,
      status: 'Failed',
      failure_code: 'account_not_found',
    },
    actor: 'key:key_0195f0c2a1b27c3d8e4f5a6b7c8d9e0f',
    request_channel: 'api_key',
    ...decided,
  },
  'corebanking.transfer.completed.v1': { transfer: transferExample, operation_id, ...asked, ...decided },
  'corebanking.transfer.failed.v1': {
    transfer: { ...transferExample, status: 'Failed', failure_code: 'insufficient_funds' },
    ...asked,
    ...decided,
  },
  'corebanking.transfer.reversed.v1': {
    transfer: {
      ...transferExample,
      transfer_id: `trf_${other}`,
      from_account_id: transferExample.to_account_id,
      to_account_id: transferExample.from_account_id,
      description: 'paid twice',
      reverses_transfer_id: transferExample.transfer_id,
    },
    operation_id: `opr_${other}`,
    ...asked,
    ...decided,
  },
  'corebanking.account.opened.v1': { account, ...asked },
  'corebanking.account.status_changed.v1': {
    account_id,
    client_id,
    transition_id: `tra_${bits}`,
    from_status: 'Active',
    to_status: 'Frozen',
    reason: 'fraud',
    status_version: 2,
    changed_at: booked,
    account_number: ownership.account_number,
    ...asked,
  },
  'corebanking.client.created.v1': { client_id, client_type: 'Retail', created_at: at, ...asked },
  'corebanking.client.updated.v1': {
    client_id,
    client_type: 'Retail',
    changed_fields: ['email'],
    updated_at: at,
    ...asked,
  },
  'corebanking.client.erased.v1': { client_id, client_type: 'Retail', erased_at: booked, ...asked },
  'corebanking.approval.requested.v1': {
    approval_id: `apr_${bits}`,
    action: 'reverse',
    operation: 'reverse_transaction',
    requested_by: 'jwt:https://issuer.example|alice',
    requested_at: at,
    expires_at: '2026-01-03T03:04:05.678Z',
  },
  'corebanking.approval.decided.v1': {
    approval_id: `apr_${bits}`,
    action: 'reverse',
    operation: 'reverse_transaction',
    requested_by: 'jwt:https://issuer.example|alice',
    status: 'Approved',
    decided_by: 'jwt:https://issuer.example|bob',
    decided_at: booked,
  },
  'corebanking.webhook.disabled.v1': {
    webhook_id: `whk_${bits}`,
    client_id: null,
    reason: 'failing',
    failing_since: '2025-12-28T03:04:05.678Z',
    disabled_at: at,
  },
  'corebanking.balance.v1': {
    account_id,
    client_id,
    account_number: 'SAV-1234567897',
    account_type: 'Savings',
    currency: 'USD',
    status: 'Active',
    status_version: 1,
    balance: '125.50',
    available_balance: '85.50',
    sequence: 12,
    hold_version: 1,
    updated_at: booked,
    ...decided,
  },
  'corebanking.account.v1': { account, status_version: 1 },
  'corebanking.client.v1': { client_id, client_type: 'Retail', created_at: at, updated_at: booked, erased_at: null },
  'corebanking.audit.recorded.v1': {
    audit_id: `aud_${bits}`,
    created_at: at,
    actor: 'jwt:https://issuer.example|alice',
    action: 'change_account_status',
    resource_id: account_id,
    outcome: 'success',
    request_id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    details: { from_status: 'Active', to_status: 'Frozen', reason: 'fraud' },
    address: '203.0.113.7',
  },
  'corebanking.audit.head.v1': {
    heads: [{ chain: 3, sequence: 4711, audit_id: `aud_${bits}`, hash: 'ab'.repeat(32) }],
  },
  'corebanking.security.activity.v1': {
    class_uid: 3002,
    class_name: 'Authentication',
    activity_name: 'Logon',
    status: 'Failure',
    since: at,
    until: '2026-01-02T03:05:00.000Z',
    count: 57,
    actor: 'unauthenticated',
    address: '203.0.113.7',
    action: 'list_accounts',
    outcome: 'invalid_credentials',
    resource_id: null,
    request_id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  },
  'corebanking.api_key.v1': {
    key_id: `key_${bits}`,
    family_id: `key_${bits}`,
    secret_hash: 'ab'.repeat(32),
    scopes: ['accounts:read'],
    environment: 'live',
    client_id: null,
    expires_at: '2027-01-02T03:04:05.678Z',
    revoked_at: null,
    version: 1,
  },
};

export const eventExamples = Object.fromEntries(
  Object.entries(events).map(([type, row]) => [type, 'example' in row ? row.example : unmoved[type as EventType]]),
) as { [T in EventType]: EventData<T> };
