import { z } from 'zod';
import {
  administrationBodies,
  administrationParameters,
  operationsSchema,
  verificationSchema,
} from './administration.ts';
import { approvalBodies, approvalParameters, approvalSchema } from './approvals.ts';
import type { EndpointRow } from './endpoint-row.ts';
import type { ErrorCode } from './errors.ts';
import { notFoundCode } from './errors.ts';
import { bodies, moneyErrors, parameters, postingErrors } from './fields.ts';
import { holdEndpoints } from './holds.ts';
import { kindOf } from './ids.ts';
import type { MessageName } from './messages.ts';
import { messages } from './messages.ts';
import { accountSchema, apiKeySchema, batchSchema } from './resources.ts';
import type { Scope } from './scopes.ts';
import { activitySchema, signInBodies, signInSchema, signOutSchema } from './sign-ins.ts';
import { webhookBodies, webhookParameters, webhookWithSecretSchema } from './webhooks.ts';

/** An endpoint: a row of the table below with all its fields. Routes of the gateway, OpenAPI, and clients are derived from it. */
export interface Endpoint
  extends Omit<EndpointRow, 'route' | 'message' | Defaulted>,
    Required<Pick<EndpointRow, Defaulted>> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  tag: string;
  message: MessageName | null;
}
type Defaulted = 'query' | 'result' | 'shape' | 'success' | 'errors';
type Row = Omit<EndpointRow, 'message'> & { message?: MessageName | null };

/** An endpoint with the exact types of its row. */
type Completed<R extends Row> = Omit<Endpoint, keyof R | 'method'> &
  Omit<R, 'route'> & { method: R['route'] extends `${infer Method} ${string}` ? Method : never };

const searched = (when: string) =>
  `The list has no index ${when}. It then scans the newest 200,000 transactions per page; \`complete\` says whether these are all, and the Link continues from there. A caller may run two such lists at a time; a third returns 429.`;

const ofStaff = 'Notes are of staff, for staff: not for credentials bound to one client. A note is never changed.';

const rows = {
  health: {
    route: 'GET /',
    summary: 'Health check',
    scope: null,
    result: z.object({ status: z.literal('success'), message: z.string(), apiVersion: z.string() }),
    shape: 'health',
    message: null,
  },
  list_clients: {
    route: 'GET /clients',
    summary: 'List clients',
    scope: 'clients:read',
    query: parameters.listClients,
    shape: 'page',
  },
  search_client_by_ussd: {
    route: 'GET /clients/ussd/search',
    summary: 'Find a Retail client by USSD phone number',
    scope: 'clients:read',
    query: parameters.searchUssd,
    versioned: true,
    errors: ['client_not_found'],
  },
  get_client: {
    route: 'GET /clients/:client_id',
    summary: 'Get a client',
    scope: 'clients:read',
    versioned: true,
  },
  create_client: {
    route: 'POST /clients',
    summary: 'Create a client',
    scope: 'clients:write',
    bankOnly: true,
    body: bodies.createClient,
    description: 'Not for credentials bound to one client.',
    success: 201,
    versioned: true,
    errors: ['duplicate_ussd_phone', 'duplicate_external_id'],
  },
  update_client: {
    route: 'PATCH /clients/:client_id',
    summary: 'Update a client: names, contact fields, USSD phone and status, external_id, and metadata',
    scope: 'clients:write',
    body: bodies.updateClient,
    description:
      'Omitted fields keep their values. Credentials bound to a client cannot change names and the registration number; the audit log records their previous values. With `If-Match`, the client is changed only if it still has this `ETag`.',
    versioned: true,
    errors: ['client_erased', 'version_mismatch', 'duplicate_ussd_phone', 'duplicate_external_id'],
  },
  add_client_note: {
    route: 'POST /clients/:client_id/notes',
    summary: 'Leave a note on a client',
    scope: 'clients:write',
    bankOnly: true,
    body: bodies.addNote,
    description: ofStaff,
    success: 201,
    errors: ['client_erased'],
  },
  list_client_notes: {
    route: 'GET /clients/:client_id/notes',
    summary: 'Notes on a client',
    scope: 'clients:read',
    bankOnly: true,
    description: ofStaff,
    shape: 'page',
    message: 'list_notes',
  },
  list_accounts: {
    route: 'GET /accounts',
    summary: 'List accounts',
    scope: 'accounts:read',
    query: parameters.listAccounts,
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
  },
  open_account: {
    route: 'POST /accounts',
    summary: 'Open an account for a client',
    scope: 'accounts:write',
    body: bodies.openAccount,
    description:
      'An `initial_deposit` above 0 also requires `transactions:write`; `account_number` and `migrated` require `accounts:import`.',
    success: 201,
    errors: [...moneyErrors, 'client_not_found', 'client_erased', 'duplicate_account_number', 'duplicate_external_id'],
  },
  change_account_status: {
    route: 'POST /accounts/:account_id/status-transitions',
    summary: 'Activate, deactivate, or freeze an account',
    scope: 'accounts:status',
    body: bodies.changeStatus,
    errors: ['client_erased', 'approval_required'],
  },
  list_status_transitions: {
    route: 'GET /accounts/:account_id/status-transitions',
    summary: 'List the status history of an account',
    scope: 'accounts:read',
    shape: 'page',
  },
  add_account_note: {
    route: 'POST /accounts/:account_id/notes',
    summary: 'Leave a note on an account',
    scope: 'accounts:write',
    bankOnly: true,
    body: bodies.addNote,
    description: ofStaff,
    success: 201,
    errors: ['client_erased'],
  },
  list_account_notes: {
    route: 'GET /accounts/:account_id/notes',
    summary: 'Notes on an account',
    scope: 'accounts:read',
    bankOnly: true,
    description: ofStaff,
    shape: 'page',
    message: 'list_notes',
  },
  list_entries: {
    route: 'GET /accounts/:account_id/entries',
    summary: 'List the ledger entries of an account',
    scope: 'transactions:read',
    shape: 'page',
  },
  get_account_balance: {
    route: 'GET /accounts/:account_id/balance',
    summary: 'Get the balance of an account, now or at a time',
    scope: 'accounts:read',
    query: parameters.balance,
    description:
      'With `at`, returns the balance after the last entry posted before that time; before the first entry, 0 with sequence 0.',
  },
  get_statement: {
    route: 'GET /accounts/:account_id/statement',
    summary: 'Get a statement of an account for a period',
    scope: 'transactions:read',
    query: parameters.statement,
    description:
      'Returns entries in posting order, one page at a time, from `from` (inclusive) to `to` (exclusive). Balances and totals cover the whole period and are the same on every page. A period may have at most 100,000 entries. With `Accept: text/html`, returns the whole period as one self-contained page made for paper, regardless of `limit`: at most 10,000 entries, in the language and time zone of the bank, with the account holder if the caller also has `clients:read`. A caller may request one such page at a time; a second gets a 429.',
    shape: 'document',
    printed: true,
  },
  list_transactions: {
    route: 'GET /transactions',
    summary: 'List transactions',
    scope: 'transactions:read',
    query: parameters.listTransactions,
    description: `${searched('without `account_id` or `transfer_id`, by type, currency, amount, actor, or the status Completed')} \`actor\`: the caller, as in the audit log; not available to credentials bound to a client.`,
    shape: 'page',
    errors: ['invalid_amount', 'unsupported_currency'],
  },
  get_transaction: {
    route: 'GET /transactions/:transaction_id',
    summary: 'Get a transaction',
    scope: 'transactions:read',
    errors: ['idempotency_key_reused'],
  },
  create_transaction: {
    route: 'POST /transactions',
    summary: 'Deposit or withdraw',
    scope: 'transactions:write',
    body: bodies.createTransaction,
    shape: 'bare',
    success: 201,
    pending: true,
    errors: ['invalid_transaction_type', ...postingErrors],
  },
  reverse_transaction: {
    route: 'POST /transactions/:transaction_id/reversal',
    summary: 'Reverse a transaction',
    scope: 'transactions:reverse',
    body: bodies.reverse,
    success: 201,
    errors: [
      'not_reversible',
      'already_reversed',
      'insufficient_funds',
      'inactive_account',
      'balance_limit_exceeded',
      'amount_exceeds_outstanding',
    ],
  },
  list_transfers: {
    route: 'GET /transfers',
    summary: 'List transfers',
    scope: 'transactions:read',
    query: parameters.listTransfers,
    description: searched('without `account_id` or `external_id`'),
    shape: 'page',
  },
  get_transfer: {
    route: 'GET /transfers/:transfer_id',
    summary: 'Get a transfer',
    scope: 'transactions:read',
    errors: ['idempotency_key_reused'],
  },
  create_transfer: {
    route: 'POST /transfers',
    summary: 'Move funds between two accounts',
    scope: 'transfers:write',
    body: bodies.createTransfer,
    success: 201,
    pending: true,
    errors: ['same_account', 'amount_exceeds_outstanding', 'destination_refused', ...postingErrors],
  },
  ...holdEndpoints,
  create_batch: {
    route: 'POST /batches',
    summary: 'Post up to 1,000 transactions and transfers in one request',
    scope: ['transactions:write', 'transfers:write'],
    body: bodies.createBatch,
    bodyLimit: 1024 * 1024,
    needsKey: true,
    description:
      'Requires `transactions:write` if there are transactions and `transfers:write` if there are transfers. An invalid item fails the whole batch before anything is executed; the error names it (`items[3].transfer.amount`). ' +
      '`independent`: each item is decided as if sent alone. Items without an outcome within 5 s are Pending; get the batch later. ' +
      '`atomic`: at most 500 items, decided in order in one database transaction. If one is refused, nothing is posted (`batch_refused`, naming every refused item).',
    result: batchSchema,
    errors: [
      ...moneyErrors,
      'invalid_transaction_type',
      'insufficient_scope',
      'account_not_found',
      'batch_refused',
      'missing_idempotency_key',
      'approval_required',
    ],
  },
  list_batches: {
    route: 'GET /batches',
    summary: 'List batches',
    scope: 'transactions:read',
    query: parameters.listBatches,
    description:
      'Who sent each batch and when, how many of its items were posted, and their totals. A caller bound to a client sees only the batches of its own client.',
    shape: 'page',
  },
  get_batch: {
    route: 'GET /batches/:batch_id',
    summary: 'Get the results of a batch',
    scope: 'transactions:read',
    description: 'A refused atomic batch returns the same error as its request.',
    errors: ['batch_refused', 'deadline_exceeded', 'idempotency_key_reused'],
  },
  list_events: {
    route: 'GET /events',
    summary: 'Poll events with a cursor',
    scope: 'transactions:read',
    query: webhookParameters.events,
    description:
      'Returns the published CloudEvents, oldest first, in publication order per account. To continue, pass `cursor` as `after` with the same filters. ' +
      'No event that is committed later appears before a cursor. Without `after`, starts with the oldest stored event (EVENTS_RETENTION_DAYS). A Link is present while there are more events. ' +
      'A caller bound to a client sees only events and entries of its own accounts.',
    shape: 'feed',
  },
  create_webhook: {
    route: 'POST /webhooks',
    summary: 'Create a webhook',
    scope: 'webhooks:manage',
    body: webhookBodies.create,
    description:
      'Sends events to a URL (Standard Webhooks 1.0; see docs/webhooks.md). `secret` is shown only in this response. A caller may have at most 20 webhooks. Private network addresses are refused.',
    result: webhookWithSecretSchema,
    success: 201,
  },
  list_webhooks: {
    route: 'GET /webhooks',
    summary: 'List webhooks',
    scope: 'webhooks:manage',
    shape: 'page',
  },
  get_webhook: {
    route: 'GET /webhooks/:webhook_id',
    summary: 'Get a webhook',
    scope: 'webhooks:manage',
  },
  update_webhook: {
    route: 'PATCH /webhooks/:webhook_id',
    summary: 'Update, pause, or resume a webhook',
    scope: 'webhooks:manage',
    body: webhookBodies.update,
    description:
      'Events are not sent while the webhook is Paused or Disabled; a replay sends them later. Setting Active also resumes a Disabled webhook.',
  },
  delete_webhook: {
    route: 'DELETE /webhooks/:webhook_id',
    summary: 'Delete a webhook and its pending deliveries',
    scope: 'webhooks:manage',
  },
  rotate_webhook_secret: {
    route: 'POST /webhooks/:webhook_id/secret-rotation',
    summary: 'Rotate the secret of a webhook',
    scope: 'webhooks:manage',
    body: webhookBodies.rotate,
    description:
      'During the overlap the old secret signs too. The new secret is shown only in this response. At most two secrets sign: another rotation within the overlap ends the oldest.',
    result: webhookWithSecretSchema,
  },
  test_webhook: {
    route: 'POST /webhooks/:webhook_id/test',
    summary: 'Send a test event to a webhook',
    scope: 'webhooks:manage',
    errors: ['invalid_status_transition'],
  },
  replay_webhook: {
    route: 'POST /webhooks/:webhook_id/replay',
    summary: 'Replay the events of a period to a webhook',
    scope: 'webhooks:manage',
    body: webhookBodies.replay,
    description:
      'Sends the stored events from `from` (inclusive) to `to` (exclusive; default: now) by event time, including events from before the webhook was created.',
    errors: ['invalid_status_transition'],
  },
  list_deliveries: {
    route: 'GET /webhooks/:webhook_id/deliveries',
    summary: 'List the deliveries of a webhook with their attempts',
    scope: 'webhooks:manage',
    query: webhookParameters.deliveries,
    description: 'Delivered deliveries are kept for 7 days, Failed ones for 30 days.',
    shape: 'page',
  },
  redeliver: {
    route: 'POST /webhooks/:webhook_id/deliveries/:delivery_id/redelivery',
    summary: 'Redeliver a delivery',
    scope: 'webhooks:manage',
    description:
      'A Pending delivery is attempted now, or as soon as earlier events of its account are delivered or Failed.',
    errors: ['invalid_status_transition'],
  },
  create_api_key: {
    route: 'POST /admin/api-keys',
    summary: 'Create an API key',
    scope: 'keys:manage',
    body: bodies.createKey,
    description:
      'The key expires at `expires_at`, but after at most KEY_MAX_LIFETIME_DAYS and no later than the key that creates it; without `expires_at`, at the latest of these times. A key bound to a client cannot have scopes that belong to the bank.',
    result: apiKeySchema.extend({ api_key: z.string().optional() }),
    success: 201,
    errors: ['client_not_found', 'client_erased'],
  },
  list_api_keys: {
    route: 'GET /admin/api-keys',
    summary: 'List API keys',
    scope: 'keys:manage',
    shape: 'page',
  },
  get_api_key: {
    route: 'GET /admin/api-keys/:key_id',
    summary: 'Get an API key',
    scope: 'keys:manage',
  },
  rotate_api_key: {
    route: 'POST /admin/api-keys/:key_id/rotation',
    summary: 'Rotate an API key',
    scope: 'keys:manage',
    body: bodies.rotateKey,
    description:
      'The old key remains valid during the overlap. The new key expires when the old one would have, and no later than the key that rotates it.',
    result: apiKeySchema.extend({ api_key: z.string().optional() }),
    success: 201,
    errors: ['invalid_status_transition'],
  },
  revoke_api_key: {
    route: 'POST /admin/api-keys/:key_id/revocation',
    summary: 'Revoke an API key and its family',
    scope: 'keys:manage',
    body: bodies.revokeKey,
    description:
      'Revokes every key that it was rotated from or to and, with `descendants`, every key that these created or rotated, recursively. `disabled_webhooks` lists the webhooks whose URL or secret these keys set last: they are disabled. It is left out if webhooks does not answer in time; they are disabled anyway.',
    result: apiKeySchema.extend({ disabled_webhooks: z.array(z.string()).optional() }),
  },
  erase_client: {
    route: 'POST /admin/clients/:client_id/erasure',
    summary: 'Erase the personal data of a client',
    scope: 'clients:erase',
    description:
      'Replaces names, contact data, and notes, also in stored responses, approvals, and audit records, and revokes bound API keys. Postings, holds, and batches keep their texts, like the books. The client can no longer be changed. Every account of the client must be Inactive and empty, and must have been opened, changed, and last posted to more than RETENTION_YEARS ago; otherwise erasure_refused names each account and the reason. The response lists the data that remains and when it is deleted. A repeat replaces what was added since.',
    errors: ['erasure_refused'],
  },
  get_trial_balance: {
    route: 'GET /admin/trial-balance',
    summary: 'Get the trial balance per currency',
    scope: 'books:read',
    shape: 'list',
  },
  get_system_accounts: {
    route: 'GET /admin/system-accounts',
    summary: 'Get Teller and Vault per currency',
    scope: 'books:read',
    shape: 'list',
  },
  search: {
    route: 'GET /admin/search',
    summary: 'Search clients, accounts, postings, and audit records',
    scope: null,
    bankOnly: true,
    query: administrationParameters.search,
    description:
      'Finds clients (clients:read) by id, by the beginning of their name or last name in any script and case, and by contact or USSD phone number; accounts (accounts:read) by id or number; ' +
      'transactions and transfers (transactions:read) by id, operation id, reference, or Idempotency-Key, and by request id among the newest 20,000; audit records (audit:read) by request id. ' +
      'Values other than names must match completely. Returns at most 20 hits per kind and omits kinds that the scopes do not allow. Not available to credentials bound to a client. Client data shown to a staff user is audited.',
    shape: 'list',
    message: 'search_records',
    errors: ['insufficient_scope'],
  },
  get_timeline: {
    route: 'GET /admin/transactions/:transaction_id/timeline',
    summary: 'Get the timeline of a transaction: request, command, entries, events',
    scope: 'audit:read',
    alsoRequires: 'transactions:read',
    description:
      'Returns the entries of the whole operation, including those of Teller, Vault, and the other party. Events are included for as long as the outbox keeps them, OUTBOX_RETENTION_HOURS after publication.',
  },
  get_posting_statistics: {
    route: 'GET /admin/posting-statistics',
    summary: 'Get operations and amounts per minute, hour, or day',
    scope: 'books:read',
    query: administrationParameters.postingStatistics,
    description:
      '`to` defaults to now; `from` defaults to an hour of minutes, a day of hours, or thirty days. At most 1,500 buckets. Counts the newest 200,000 transactions of the period; `complete` says whether these are all.',
    errors: ['unsupported_currency'],
  },
  get_posting_totals: {
    route: 'GET /admin/posting-totals',
    summary: 'Get operations and money in and out per currency',
    scope: 'books:read',
    query: administrationParameters.postingTotals,
    description:
      '`to` defaults to now; `from` defaults to one day before it. Counts the newest 200,000 transactions of the period; `complete` says whether these are all.',
  },
  get_operations: {
    route: 'GET /admin/operations',
    summary: 'Get outboxes, consumer lag, dead letters, breakers, and the last verification',
    scope: 'books:read',
    description: 'A part that does not respond is null; the status is still 200.',
    result: operationsSchema,
    message: 'get_ledger_operations',
  },
  verify_books: {
    route: 'POST /admin/verifications',
    summary: 'Verify the books and the audit log',
    scope: 'books:read',
    description:
      'Responds when the verification has started; its result is in `last_verification` of GET /admin/operations. It checks every entry, in one snapshot, and every audit record; `covers` says whether the audit log could be checked. If a verification is already running, returns that one.',
    result: verificationSchema,
  },
  list_audit: {
    route: 'GET /admin/audit',
    summary: 'List audit records',
    scope: 'audit:read',
    query: administrationParameters.listAudit,
    shape: 'page',
  },
  list_dead_letters: {
    route: 'GET /admin/dead-letters',
    summary: 'List messages that could not be processed',
    scope: 'ops:manage',
    query: administrationParameters.listDeadLetters,
    shape: 'page',
  },
  get_dead_letter: {
    route: 'GET /admin/dead-letters/:dead_letter_id',
    summary: 'Get a dead letter with headers and value',
    scope: 'ops:manage',
    alsoRequires: 'clients:read',
  },
  redrive_dead_letter: {
    route: 'POST /admin/dead-letters/:dead_letter_id/redrive',
    summary: 'Redrive a dead letter: publish its original bytes to its topic again',
    scope: 'ops:manage',
    body: administrationBodies.redriveDeadLetter,
    errors: ['invalid_status_transition', 'dead_letter_expired'],
  },
  drop_dead_letter: {
    route: 'POST /admin/dead-letters/:dead_letter_id/drop',
    summary: 'Drop a dead letter, so that it is never executed',
    scope: 'ops:manage',
    body: administrationBodies.dropDeadLetter,
    errors: ['invalid_status_transition'],
  },
  list_approvals: {
    route: 'GET /admin/approvals',
    summary: 'List approvals',
    scope: null,
    query: approvalParameters.list,
    description:
      "Returns the caller's own approvals and, with `approvals:write`, those whose action's scope the caller has. `requested_by`: only those of the caller (`me`), or only those of others (`others`), which the caller can decide.",
    shape: 'page',
  },
  get_approval: {
    route: 'GET /admin/approvals/:approval_id',
    summary: 'Get an approval',
    scope: null,
    description:
      "Visible to its requester and to everyone who may decide it. If it created an API key, the requester's first GET contains `api_key`: the key itself, shown only once.",
    result: approvalSchema.extend({ api_key: z.string().optional() }),
    errors: ['insufficient_scope', 'outcome_unknown'],
  },
  approve_request: {
    route: 'POST /admin/approvals/:approval_id/approval',
    summary: 'Approve a request',
    scope: 'approvals:write',
    body: approvalBodies.approve,
    description:
      "Also requires the scope of the action. The command is executed in the requester's name; its outcome is added to the approval when it is known.",
    errors: ['own_approval', 'approval_decided'],
  },
  reject_request: {
    route: 'POST /admin/approvals/:approval_id/rejection',
    summary: 'Reject a request',
    scope: 'approvals:write',
    body: approvalBodies.reject,
    description: 'Also requires the scope of the action.',
    errors: ['own_approval', 'approval_decided'],
  },
  sign_in: {
    route: 'POST /admin/sign-ins',
    summary: 'Sign a person in',
    scope: null,
    bankOnly: true,
    body: signInBodies.signIn,
    description:
      "For an application for staff, such as the dashboard, with the person's access token; `session_id` is the application's. Responds when the audit has the sign-in. From then on, earlier tokens of the person for the same OAuth client are refused. A request without a valid token counts as a failed sign-in of its address.",
    result: signInSchema,
    message: null,
    errors: ['insufficient_scope'],
  },
  sign_out: {
    route: 'POST /admin/sign-outs',
    summary: 'Sign a person out',
    scope: null,
    bankOnly: true,
    body: signInBodies.signOut,
    description: 'The access token of the request is refused from then on, on every gateway within 2 s.',
    result: signOutSchema,
    message: null,
    errors: ['insufficient_scope'],
  },
  record_activity: {
    route: 'POST /admin/activities',
    summary: 'Record an export, or a page or form that an application for staff refused',
    scope: null,
    bankOnly: true,
    body: signInBodies.recordActivity,
    description:
      'An export (`success`) has an audit record when this responds. Refusals are counted, and have one record a minute. Values of `filters` that may be personal are not recorded.',
    result: activitySchema,
    message: null,
    errors: ['insufficient_scope'],
  },
} satisfies Record<string, Row>;

export type EndpointName = keyof typeof rows;

function complete([name, row]: [string, Row]): [string, Endpoint] {
  const { route, message = name as MessageName, shape = 'one', errors = [], ...rest } = row;
  const [method, path] = route.split(' ') as [Endpoint['method'], string];
  const endpoint = {
    method,
    path,
    tag: tagOf(path),
    query: shape === 'page' ? parameters.page : parameters.none,
    ...(method === 'POST' ? { body: parameters.none } : {}),
    result: message === null ? z.null() : itemOf(messages[message].result, shape),
    shape,
    success: 200 as const,
    message,
    ...rest,
  };
  return [
    name,
    {
      ...endpoint,
      errors: [...notFoundErrors(path), ...listErrors(shape), ...errors, ...writeErrors(method, message)],
    },
  ];
}

/** Returns the schema of a list's items, or of the document that a page is a part of. */
function itemOf(result: z.ZodType, shape: Endpoint['shape']): z.ZodType {
  if (shape === 'list') return (result as z.ZodArray<z.ZodType>).element;
  const { items, item } = (result as z.ZodObject<Record<string, z.ZodType>>).shape ?? {};
  if (shape === 'page' || shape === 'feed') return (items as z.ZodArray<z.ZodType>).element;
  return shape === 'document' ? (item as z.ZodType) : result;
}

/** An id in the path may be unknown. */
function notFoundErrors(path: string): ErrorCode[] {
  return [...path.matchAll(/:(\w+)/g)].flatMap(([, name]) => {
    const kind = kindOf(name);
    return kind ? [notFoundCode(kind)] : [];
  });
}

function listErrors(shape: Endpoint['shape']): ErrorCode[] {
  return isPaged({ shape }) || shape === 'feed' ? ['invalid_cursor'] : [];
}

/** Only a POST can have an Idempotency-Key. Commands on a queries topic have no deadline and are not stored. */
function writeErrors(method: Endpoint['method'], message: MessageName | null): ErrorCode[] {
  if (method === 'GET' || message === null) return [];
  if (message !== null && messages[message].topic.endsWith('.queries')) return ['outcome_unknown'];
  return ['deadline_exceeded', ...(method === 'POST' ? ['idempotency_key_reused' as const] : []), 'outcome_unknown'];
}

/** Groups the endpoints in OpenAPI by the first part of their path. */
function tagOf(path: string): string {
  if (path.endsWith('/holds')) return 'Holds';
  const [, first = ''] = path.split('/');
  const names: Record<string, string> = { '': 'Health', admin: 'Administration' };
  return names[first] ?? first.charAt(0).toUpperCase() + first.slice(1);
}

export const endpoints = Object.fromEntries(Object.entries<Row>(rows).map(complete)) as {
  [Name in EndpointName]: Completed<(typeof rows)[Name]>;
};

/**
 * Returns what the endpoint requires before it reads a body: one scope of each list. No list means any authenticated
 * caller.
 */
export function neededScopes({ scope, alsoRequires }: Pick<Endpoint, 'scope' | 'alsoRequires'>): (readonly Scope[])[] {
  return [scope, alsoRequires].flatMap((needed) => (needed === null || needed === undefined ? [] : [[needed].flat()]));
}

/** Reports whether the endpoint returns pages with a Link to the next one. */
export function isPaged({ shape }: Pick<Endpoint, 'shape'>): boolean {
  return shape === 'page' || shape === 'document';
}
