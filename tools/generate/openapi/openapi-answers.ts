import { type Endpoint, type EndpointName, endpoints } from '#libs/contracts/endpoints.ts';
import { depositExample, transferExample } from '../events/event-examples.ts';
import type { Json } from './openapi-schemas.ts';

/** Example responses of all operations, which refer to the same resources. A test validates each against its schema. */

/** Returns the 32 hex digits of an id; `which` makes them different. */
const bits = (which = 0): string => `${which.toString(16)}195f0c2a1b27c3d8e4f5a6b7c8d9e0f`;
export const exampleIds = {
  client: `cli_${bits()}`,
  account: `acc_${bits()}`,
  otherAccount: `acc_${bits(1)}`,
  transaction: `txn_${bits()}`,
  transfer: `trf_${bits()}`,
  key: `key_${bits()}`,
  dead_letter: `dlt_${bits()}`,
  approval: `apr_${bits(2)}`,
  hold: `hld_${bits()}`,
  batch: `bat_${bits(3)}`,
  webhook: `whk_${bits()}`,
  delivery: `dlv_${'0'.repeat(28)}1a2b`,
  request: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
} as const;
const {
  client: client_id,
  account: account_id,
  otherAccount,
  transaction: transaction_id,
  transfer: transfer_id,
  key: key_id,
  request: request_id,
} = exampleIds;
const created_at = '2026-01-02T03:04:05.678Z';
const stamps = { created_at, updated_at: created_at };
const actor = `key:${key_id}`;
export const session_id = `ses_${bits()}`;
const note = {
  note_id: `nte_${bits()}`,
  client_id,
  account_id: null,
  note: 'Prefers to be called in the afternoon',
  actor,
  created_at,
};
const number = 'SAV-1234567897';

const retail = {
  client_id,
  client_type: 'Retail',
  first_name: 'Ada',
  last_name: 'Lovelace',
  email: 'ada@example.com',
  contact_number: '+254700000001',
  address: '12 St James Square',
  ussd_phone_number: '+254700000001',
  ussd_status: 'active',
  ...stamps,
};
const corporate = {
  client_id,
  client_type: 'Corporate',
  company_name: 'Analytical Engines',
  registration_number: 'C-1842',
  email: 'office@example.com',
  contact_number: '+254700000002',
  address: null,
  ...stamps,
};
const account = {
  account_id,
  client_id,
  account_number: number,
  account_type: 'Savings',
  currency: 'USD',
  balance: 100.5,
  available_balance: 100.5,
  status: 'Active',
  ...stamps,
};
const deposit = { ...depositExample, amount: 25 };
const reversal = {
  ...deposit,
  transaction_id: `txn_${bits(2)}`,
  description: 'posted twice',
  reference: null,
  direction: 'debit',
  reverses_transaction_id: transaction_id,
};
const transfer = { ...transferExample, amount: 10 };

const batch_id = exampleIds.batch;
const batch = {
  batch_id,
  mode: 'independent',
  status: 'Completed',
  counts: { completed: 1, failed: 1, pending: 0 },
  totals: [{ currency: 'USD', amount: 25 }],
  actor,
  created_at,
  external_id: 'wages-2026-01',
  metadata: { file_name: 'wages.csv' },
  results: [
    { index: 0, status: 'Completed', transaction: { ...deposit, batch_id } },
    {
      index: 1,
      status: 'Failed',
      transfer: { ...transfer, status: 'Failed', batch_id, failure_code: 'insufficient_funds' },
      error: {
        code: 'insufficient_funds',
        message: `Insufficient Funds: the available balance of source account ${account_id} is too low for this transfer`,
        details: { transaction_id: `txn_${bits()}` },
      },
    },
  ],
};
const { results: _results, ...batchSummary } = batch;
const { error: _error, ...unfinished } = batch.results[1] as { error?: object };
const pendingBatch = {
  ...batch,
  status: 'Pending',
  counts: { completed: 1, failed: 0, pending: 1 },
  results: [
    batch.results[0],
    { ...unfinished, status: 'Pending', transfer: { ...transfer, status: 'Pending', batch_id } },
  ],
};
const undone = { ...transfer, reversed_by_transfer_id: `trf_${bits(2)}` };
const undoing = {
  ...transfer,
  transfer_id: `trf_${bits(2)}`,
  from_account_id: otherAccount,
  to_account_id: account_id,
  description: 'paid twice',
  reverses_transfer_id: transfer_id,
};

function entry(on: string, sequence: number, direction: 'debit' | 'credit', side: 'DR' | 'CR', balance_after: number) {
  return {
    entry_id: `ent_${on.slice(4)}-${sequence}`,
    operation_id: `opr_${bits()}`,
    transaction_id,
    account_id: on,
    sequence,
    direction,
    side,
    amount: 25,
    currency: 'USD',
    balance_after,
    created_at: '2026-01-02T03:04:05.690Z',
  };
}
const own = entry(account_id, 2, 'credit', 'CR', 125.5);
const line = { ...own, transaction_type: 'Deposit', description: 'Cash', reference: 'R-1' };
const received = {
  ...line,
  transaction_type: 'Transfer',
  description: 'Rent',
  reference: null,
  counterparty_account_id: otherAccount,
  counterparty_account_number: 'CHK-9876543217',
  transfer_id,
};
const [vault, teller] = [`acc_${bits(8)}`, `acc_${bits(9)}`];
const onAccount = (account_number: string, account_type: string) => ({ account_number, account_type });
const timeline = {
  transaction: deposit,
  request: { request_id, actor, idempotency_key: 'deposit-1', accepted_at: created_at },
  command: { name: 'create_transaction', id: transaction_id, topic: 'ledger.commands', partition: 3 },
  booked_at: own.created_at,
  entries: [
    { ...entry(vault, 9, 'credit', 'DR', 9025), ...onAccount('VLT-USD/0', 'Vault') },
    { ...entry(teller, 17, 'credit', 'DR', 25), ...onAccount('TLR-USD/0', 'Teller') },
    { ...entry(teller, 18, 'debit', 'CR', 0), ...onAccount('TLR-USD/0', 'Teller') },
    { ...own, ...onAccount(number, 'Savings') },
  ],
  events: [
    {
      ce_id: '0195f0c2-a1b2-7c3d-8e4f-5a6b7c8d9e0f',
      type: 'corebanking.transaction.completed.v1',
      topic: 'transactions',
      key: account_id,
      state: 'published',
      recorded_at: '2026-01-02T03:04:05.692Z',
      published_at: '2026-01-02T03:04:05.701Z',
    },
  ],
};
const apiKey = {
  key_id,
  name: 'reporting',
  scopes: ['accounts:read', 'transactions:read'],
  environment: 'live',
  client_id: null,
  status: 'active',
  created_at,
  created_by: `key:key_${bits(1)}`,
  expires_at: '2027-01-02T03:04:05.678Z',
  last_used_at: null,
  revoked_at: null,
  rotated_from: null,
};
const secret = { api_key: 'cbk_live_<id>_<secret>' };
const verification = {
  verification_id: `ver_${bits()}`,
  requested_by: actor,
  started_at: created_at,
  ended_at: '2026-01-02T03:04:06.300Z',
  state: 'passed',
  findings: [],
  covers: ['books', 'audit'],
};
const deadLetter = {
  dead_letter_id: exampleIds.dead_letter,
  topic: 'ledger.commands.dlq',
  partition: 0,
  offset: 12,
  source_topic: 'ledger.commands',
  source_partition: 3,
  source_offset: 40_512,
  key: account_id,
  code: 'invalid_data',
  reason: 'amount: Invalid input',
  size_bytes: 214,
  message: 'create_transaction',
  request_id,
  dead_at: created_at,
  state: 'open',
  decided_by: null,
  decided_at: null,
  drop_reason: null,
};

const person = (name: string): string => `jwt:https://issuer.example|${name}`;
const waiting = {
  approval_id: exampleIds.approval,
  action: 'reverse',
  summary: `Reverse Deposit ${transaction_id} of 25.00 USD`,
  request: {
    operation: 'reverse_transaction',
    method: 'POST',
    path: `/transactions/${transaction_id}/reversal`,
    body: { reason: 'posted twice' },
  },
  changes: [
    { field: `transaction ${transaction_id}`, before: 'Completed', after: 'reversed' },
    { field: `balance of account ${account_id}`, before: null, after: '-25.00 USD' },
  ],
  requested_by: person('officer'),
  requested_at: created_at,
  expires_at: '2026-01-03T03:04:05.678Z',
  status: 'Waiting',
  decided_by: null,
  decided_at: null,
  reason: null,
};
const approved = {
  ...waiting,
  status: 'Approved',
  decided_by: person('manager'),
  decided_at: '2026-01-02T09:00:00.000Z',
  reason: 'seen the receipt',
  outcome: { status: 'success', data: reversal },
};
const rejected = {
  ...waiting,
  status: 'Rejected',
  decided_by: person('manager'),
  decided_at: '2026-01-02T09:00:00.000Z',
  reason: 'the customer keeps the money',
};

const webhook = {
  webhook_id: exampleIds.webhook,
  url: 'https://receiver.example/bank',
  event_types: ['transaction.*'],
  description: 'Bookkeeping',
  status: 'Active',
  client_id: null,
  created_by: actor,
  ...stamps,
  failing_since: null,
  previous_secret_ends_at: null,
};
const webhookSecret = { secret: 'whsec_<base64>' };
const delivery = {
  delivery_id: exampleIds.delivery,
  webhook_id: exampleIds.webhook,
  event_id: '0195f0c2-a1b2-7c3d-8e4f-5a6b7c8d9e0f',
  event_type: 'corebanking.transaction.completed.v1',
  status: 'Delivered',
  created_at,
  next_attempt_at: null,
  finished_at: '2026-01-02T03:04:10.912Z',
  attempts: [
    {
      attempted_at: '2026-01-02T03:04:05.702Z',
      duration_ms: 15_000,
      response_status: null,
      error: 'no answer within 15 s',
    },
    { attempted_at: '2026-01-02T03:04:10.900Z', duration_ms: 12, response_status: 204, error: null },
  ],
};
const underWay = { ...delivery, status: 'Pending', next_attempt_at: created_at, finished_at: null, attempts: [] };
const cloudEvent = {
  specversion: '1.0',
  id: delivery.event_id,
  source: '/core-banking/accounts',
  type: 'corebanking.client.created.v1',
  subject: client_id,
  time: created_at,
  datacontenttype: 'application/json',
  data: { client_id, client_type: 'Retail', created_at },
};
/** For a page of events. */
export const exampleCursor = '8m3-t7x2k1';

/** Resources with the fields of requests. */
export const exampleResources = { retail, corporate, deposit, transfer };

/** An approval as returned to its requester. */
export const waitingExample = waiting;

/** One resource, or the items of a list. */
const answers: Partial<Record<EndpointName, Record<string, Json>>> = {
  health: { running: { status: 'success', message: 'the service is running', apiVersion: '0.2.0' } },
  list_clients: { Retail: retail, Corporate: corporate },
  search_client_by_ussd: { Retail: retail },
  get_client: { Retail: retail, Corporate: corporate },
  create_client: { Retail: retail, Corporate: corporate },
  update_client: {
    address: retail,
    names: { ...retail, external_id: 'crm-A17', metadata: { segment: 'student' } },
    'no metadata': retail,
  },
  erase_client: {
    erased: {
      client_id,
      erased_at: '2037-01-02T09:00:00.000Z',
      replaced: { kept_replies: 2, audit_records: 17, approvals: 0, status_notes: 1 },
      revoked_keys: 1,
      remaining: [
        { place: 'topic transactions', holds: 'descriptions and references', gone_at: '2038-02-13T09:00:00.000Z' },
      ],
    },
  },
  list_accounts: { savings: account },
  get_balance_by_number: { savings: { account_id, account_number: number, balance: 100.5, currency: 'USD' } },
  get_account: { savings: account },
  open_account: {
    savings: account,
    names: { ...account, external_id: 'core-4711', metadata: { branch: 'Nairobi 3' } },
  },
  change_account_status: { freeze: { ...account, status: 'Frozen' }, activate: account },
  list_status_transitions: {
    freeze: {
      transition_id: `tra_${bits()}`,
      account_id,
      from_status: 'Active',
      to_status: 'Frozen',
      reason: 'fraud',
      note: 'reported by the owner',
      actor,
      created_at,
    },
  },
  add_account_note: { account: { ...note, account_id } },
  list_account_notes: { account: { ...note, account_id } },
  add_client_note: { client: note },
  list_client_notes: { client: note },
  list_entries: { deposit: line, transfer: received },
  get_account_balance: {
    now: {
      account_id,
      account_number: number,
      balance: 125.5,
      currency: 'USD',
      available_balance: 125.5,
      at: '2026-01-02T04:00:00.000Z',
      sequence: 2,
    },
    'at a moment': {
      account_id,
      account_number: number,
      balance: 100.5,
      currency: 'USD',
      at: '2026-01-02T00:00:00.000Z',
      sequence: 1,
    },
  },
  get_statement: {
    january: {
      account_id,
      account_number: number,
      currency: 'USD',
      from: '2026-01-01T00:00:00.000Z',
      to: '2026-02-01T00:00:00.000Z',
      opening_balance: 100.5,
      closing_balance: 125.5,
      debit_total: 0,
      credit_total: 25,
      entry_count: 1,
      entries: [line],
    },
  },
  list_transactions: { deposit },
  get_transaction: { deposit },
  create_transaction: {
    deposit,
    withdrawal: {
      ...deposit,
      transaction_type: 'Withdrawal',
      amount: 10.75,
      description: null,
      reference: null,
      direction: 'debit',
    },
  },
  reverse_transaction: { reversal },
  list_transfers: { transfer, reversed: undone, reversal: undoing },
  get_transfer: { transfer, reversed: undone, reversal: undoing },
  create_transfer: { transfer, names: { ...transfer, external_id: 'order-1842', metadata: { channel: 'app' } } },
  list_events: { event: cloudEvent },
  create_webhook: { transactions: { ...webhook, ...webhookSecret } },
  list_webhooks: { transactions: webhook },
  get_webhook: { transactions: webhook },
  update_webhook: { pause: { ...webhook, status: 'Paused' } },
  delete_webhook: { transactions: webhook },
  rotate_webhook_secret: { day: { ...webhook, previous_secret_ends_at: '2026-01-03T03:04:05.678Z', ...webhookSecret } },
  test_webhook: { test: { ...underWay, event_type: 'corebanking.webhook.test.v1' } },
  replay_webhook: { january: webhook },
  list_deliveries: { delivery },
  redeliver: { redeliver: underWay },
  create_api_key: { reader: { ...apiKey, ...secret } },
  list_api_keys: { reader: apiKey },
  get_api_key: { reader: apiKey },
  rotate_api_key: { hour: { ...apiKey, ...secret, rotated_from: `key_${bits(1)}` } },
  revoke_api_key: {
    revoke: { ...apiKey, status: 'revoked', revoked_at: '2026-02-01T08:00:00.000Z', disabled_webhooks: [] },
  },
  get_trial_balance: {
    dollars: {
      currency: 'USD',
      debit_total: 125.5,
      credit_total: 125.5,
      assets: 125.5,
      liabilities: 125.5,
      difference: 0,
    },
  },
  get_system_accounts: {
    vault: {
      account_id: vault,
      account_number: 'VLT-USD',
      kind: 'Vault',
      currency: 'USD',
      balance: 125.5,
      slots: [{ account_id: `acc_${bits(7)}`, account_number: 'VLT-USD/0', balance: 125.5 }],
    },
  },
  search: {
    client: {
      kind: 'client',
      id: client_id,
      title: 'Ada Lovelace',
      subtitle: 'Retail, +254700000001',
      matched: 'name',
      created_at,
    },
  },
  get_timeline: { deposit: timeline },
  get_posting_statistics: {
    hour: {
      currency: 'USD',
      unit: 'hour',
      from: '2026-01-01T03:00:00.000Z',
      to: '2026-01-02T03:00:00.000Z',
      complete: true,
      counted_from: '2026-01-01T03:00:00.000Z',
      buckets: [{ start: '2026-01-02T02:00:00.000Z', operations: 412, amount: 90_210.75 }],
    },
  },
  get_posting_totals: {
    day: {
      from: '2026-01-01T03:00:00.000Z',
      to: '2026-01-02T03:00:00.000Z',
      complete: true,
      counted_from: '2026-01-01T03:00:00.000Z',
      totals: [
        { currency: 'KES', operations: 412, refused: 3, money_in: 90_210.75, money_out: 12_000, transferred: 48_120.5 },
      ],
    },
  },
  get_operations: {
    calm: {
      services: [
        { service: 'ledger', answers: true, outbox: { rows: 0, oldest_age_ms: 0 } },
        { service: 'accounts', answers: true, outbox: { rows: 0, oldest_age_ms: 0 } },
        { service: 'webhooks', answers: true, outbox: { rows: 0, oldest_age_ms: 0 } },
      ],
      breakers: [
        { service: 'ledger', state: 'closed' },
        { service: 'accounts', state: 'closed' },
      ],
      dead_letters_open: 0,
      consumer_lag: [{ group: 'ledger', topic: 'ledger.commands', partition: 0, lag: 0 }],
      last_verification: verification,
      requests: { window_seconds: 60, count: 812, server_errors: 0, mean_ms: 6.2, slowest_ms: 41.8 },
    },
  },
  sign_in: {
    officer: {
      session_id,
      actor: 'jwt:https://issuer.example|olivia',
      scopes: ['clients:read', 'accounts:read', 'transactions:read'],
    },
  },
  sign_out: { officer: { session_id } },
  record_activity: { refused: { action: 'page:api-keys/new', outcome: 'insufficient_scope' } },
  verify_books: { verify: { ...verification, ended_at: null, state: 'running' } },
  create_batch: { completed: batch, pending: pendingBatch },
  list_batches: { completed: batchSummary },
  get_batch: {
    completed: batch,
    pending: { ...pendingBatch, results: [batch.results[0], { index: 1, status: 'Pending' }] },
  },
  list_audit: {
    freeze: {
      audit_id: `aud_${bits()}`,
      created_at,
      actor,
      action: 'change_account_status',
      resource_id: account_id,
      outcome: 'success',
      request_id,
      details: { from_status: 'Active', to_status: 'Frozen', reason: 'fraud' },
      address: null,
    },
  },
  list_dead_letters: { poison: deadLetter },
  get_dead_letter: {
    poison: {
      ...deadLetter,
      available: true,
      headers: { ce_id: transaction_id, ce_type: 'corebanking.create_transaction.v1' },
      value: '{"account_id":"…"}',
      encoding: 'utf-8',
      truncated: false,
    },
  },
  redrive_dead_letter: {
    redrive: { ...deadLetter, state: 'redriven', decided_by: actor, decided_at: '2026-01-02T09:00:00.000Z' },
  },
  drop_dead_letter: {
    drop: {
      ...deadLetter,
      state: 'dropped',
      decided_by: actor,
      decided_at: '2026-01-02T09:00:00.000Z',
      drop_reason: 'a test message',
    },
  },
  list_approvals: { waiting },
  get_approval: { waiting, approved },
  approve_request: { approve: approved },
  reject_request: { reject: rejected },
};

/** Resources that the operation returns, by the name of the example. */
export function answerExamples(name: EndpointName): Record<string, Json> {
  const { answers: own }: Endpoint = endpoints[name];
  return (own as Record<string, Json> | undefined) ?? answers[name] ?? {};
}
