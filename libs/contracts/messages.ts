import { z } from 'zod';
import {
  administrationParameters,
  auditRecordSchema,
  checkSchema,
  deadLetterContentSchema,
  deadLetterSchema,
  erasureSchema,
  outboxStateSchema,
  postingStatisticsSchema,
  postingTotalsSchema,
  searchHitSchema,
  searchKind,
  timelineSchema,
} from './administration.ts';
import { approvableCommand, approvalParameters, approvalRequestSchema, approvalSchema } from './approvals.ts';
import { idField } from './event-fields.ts';
import { bodies, maxItems, parameters } from './fields.ts';
import { holdMessages } from './holds.ts';
import type { Signer } from './mac.ts';
import {
  accountId,
  accounts,
  amount,
  amountOrZero,
  command,
  currency,
  id,
  ledger,
  listOf,
  page,
  pageOf,
  position,
  searchedPageOf,
  text,
  time,
  transactionId,
  webhooks,
} from './message-fields.ts';
import { givenNames } from './names.ts';
import {
  accountBalanceSchema,
  accountMasterSchema,
  accountSchema,
  accountStatus,
  accountType,
  apiKeySchema,
  balanceAtSchema,
  batchMode,
  batchSchema,
  batchSummarySchema,
  clientSchema,
  entryLineSchema,
  freezeReason,
  itemResultSchema,
  keyEnvironment,
  ledgerAccountSchema,
  money,
  noteSchema,
  statementSchema,
  statusTransitionSchema,
  systemAccountSchema,
  transactionSchema,
  transferSchema,
  trialBalanceSchema,
} from './resources.ts';
import { cloudEventSchema, deliverySchema, webhookChanges, webhookParameters, webhookSchema } from './webhooks.ts';

/**
 * The messages table: every command and query with its topic, data, and result. Sender and receiver validate
 * against it.
 */

const secretHash = z.string().regex(/^[0-9a-f]{64}$/);

/** True if the change from Frozen needs an approval that this command does not have. The command is then refused. */
const keepFrozen = z.boolean().optional();

/** `scopes`: the scopes of the person who decides. */
const verdict = z.object({ approval_id: id, reason: text, scopes: z.array(z.string()) });

const keyData = z.object({
  key_id: id,
  name: z.string(),
  scopes: z.array(z.string()),
  environment: keyEnvironment,
  client_id: text,
  /** null: the latest possible time. */
  expires_at: time.nullable(),
  /** The latest expiry that the bank allows. */
  not_after: time.nullish(),
  /** The API key that creates this one, if it was not created by a person. */
  maker_key_id: id.nullish(),
  /** HMAC-SHA-256 of the whole key under the pepper, in hex. The secret itself is never sent. */
  secret_hash: secretHash,
});

const newTransaction = z.object({
  transaction_id: id,
  account_id: accountId,
  transaction_type: z.enum(['Deposit', 'Withdrawal']),
  amount,
  currency: currency.nullable(),
  description: text,
  reference: text,
  ...givenNames,
});
const newTransfer = z.object({
  transfer_id: id,
  from_account_id: accountId,
  to_account_id: accountId,
  amount,
  currency: currency.nullable(),
  description: text,
  ...givenNames,
});

const item = z.union([
  z.object({ transaction: newTransaction.omit({ transaction_id: true }) }),
  z.object({ transfer: newTransfer.omit({ transfer_id: true }) }),
]);
const batchMessageSchema = z.object({
  batch_id: id,
  mode: batchMode,
  items: z.array(item).min(1).max(maxItems),
  ...givenNames,
});

export const messages = {
  // accounts: commands
  create_client: accounts.command({ client_id: id, client: bodies.createClient }, clientSchema),
  update_client: accounts.command(
    { client_id: id, changes: bodies.updateClient, if_match: z.array(z.string()).optional() },
    clientSchema,
  ),
  /** Starts the erasure saga: see services/accounts/erasure. */
  erase_client: accounts.command({ client_id: id }, erasureSchema),
  open_account: accounts.command(
    {
      account_id: id,
      client_id: id,
      account_type: accountType,
      currency,
      initial_deposit: amountOrZero,
      status: accountStatus,
      account_number: z.string().max(24).nullish(),
      migrated: z.boolean().optional(),
      ...givenNames,
    },
    accountSchema,
  ),
  change_account_status: accounts.command(
    {
      transition_id: id,
      account_id: id,
      status: accountStatus,
      reason: freezeReason.nullable(),
      note: text,
      keep_frozen: keepFrozen,
    },
    accountSchema,
  ),
  add_client_note: accounts.command({ note_id: id, client_id: id, note: z.string() }, noteSchema),
  add_account_note: accounts.command({ note_id: id, account_id: id, note: z.string() }, noteSchema),
  create_api_key: command('accounts.commands', keyData, apiKeySchema),
  rotate_api_key: command(
    'accounts.commands',
    keyData
      .pick({ key_id: true, secret_hash: true, maker_key_id: true })
      .extend({ rotates_key_id: id, overlap_seconds: z.number().int(), maker_scopes: z.array(z.string()) }),
    apiKeySchema,
  ),
  /** Revokes all keys of its family and, with `descendants`, the keys that they created. Returns the families, too. */
  revoke_api_key: accounts.command(
    { key_id: id, descendants: z.boolean().optional() },
    apiKeySchema.extend({ families: z.array(z.string()) }),
  ),
  /** No reply. Reports that a key was used, at most once a minute per key and gateway. */
  record_api_key_use: accounts.command({ key_id: id, used_at: time }, z.null()),

  /**
   * No reply. Records what the gateway refused and what the ledger posted for staff. Duplicates are recognized
   * by audit_id.
   */
  record_audit: command('accounts.commands', auditRecordSchema, z.null()),
  redrive_dead_letter: accounts.command({ dead_letter_id: id, renew_deadline: z.boolean() }, deadLetterSchema),
  drop_dead_letter: accounts.command({ dead_letter_id: id, reason: text }, deadLetterSchema),
  /** Sent instead of a command that a second person must approve. */
  request_approval: command('accounts.commands', approvalRequestSchema, approvalSchema),
  approve_request: command('accounts.commands', verdict, approvalSchema),
  reject_request: command('accounts.commands', verdict, approvalSchema),
  /** Sets the secret of a key created by an approval. Its requester is shown the secret once. */
  claim_approved_key: accounts.command({ approval_id: id, key_id: id, secret_hash: secretHash }, apiKeySchema),

  // accounts: queries
  list_clients: accounts.query(listOf(parameters.listClients), pageOf(clientSchema)),
  get_client: accounts.query({ client_id: id }, clientSchema),
  search_client_by_ussd: accounts.query(parameters.searchUssd.shape, clientSchema),
  list_accounts: accounts.query(listOf(parameters.listAccounts), pageOf(accountMasterSchema)),
  get_account: accounts.query({ account_id: id }, accountMasterSchema),
  list_status_transitions: accounts.query({ account_id: id, ...page }, pageOf(statusTransitionSchema)),
  list_notes: accounts.query({ client_id: id.optional(), account_id: id.optional(), ...page }, pageOf(noteSchema)),
  list_api_keys: accounts.query({ ...page }, pageOf(apiKeySchema)),
  get_api_key: accounts.query({ key_id: id }, apiKeySchema),
  list_audit: accounts.query(listOf(administrationParameters.listAudit), pageOf(auditRecordSchema)),
  search_records: accounts.query({ q: z.string(), kinds: z.array(searchKind) }, z.array(searchHitSchema)),
  get_accounts_operations: accounts.query(
    {},
    z.object({
      outbox: outboxStateSchema,
      dead_letters_open: z.number().int(),
      last_audit_check: checkSchema.nullable(),
    }),
  ),
  /** On the queries topic, so that no command waits for the check. The reply is sent when the check has started. */
  verify_audit: command('accounts.queries', z.object({ verification_id: id }), checkSchema),
  list_dead_letters: accounts.query(listOf(administrationParameters.listDeadLetters), pageOf(deadLetterSchema)),
  get_dead_letter: accounts.query({ dead_letter_id: id }, deadLetterContentSchema),
  /** `scopes`: those of the caller, who sees their own approvals and those that they may decide. */
  list_approvals: accounts.query(
    { ...listOf(approvalParameters.list), scopes: z.array(z.string()) },
    pageOf(approvalSchema),
  ),
  get_approval: accounts.query(
    { approval_id: id, scopes: z.array(z.string()) },
    z.object({
      approval: approvalSchema,
      /** True if the approval created a key whose secret has not been shown. */ has_unread_key: z.boolean(),
    }),
  ),

  // ledger: commands
  create_transaction: command('ledger.commands', newTransaction, transactionSchema),
  create_transfer: command('ledger.commands', newTransfer, transferSchema),
  /** The id of each item is derived from its index and the batch's id (`itemBits` in ids.ts). */
  create_batch: command('ledger.batches', batchMessageSchema, z.object({ results: z.array(itemResultSchema) })),
  reverse_transaction: ledger.command(
    { transaction_id: id, reverses_transaction_id: transactionId, reason: z.string(), ...givenNames },
    transactionSchema,
  ),
  ...holdMessages,
  /** A step of the opening saga. The reply goes to `accounts.commands`. */
  open_ledger_account: ledger.command(
    {
      account_id: id,
      client_id: id,
      account_number: z.string(),
      account_type: accountType,
      currency,
      status: accountStatus,
      initial_deposit: amountOrZero,
      migrated: z.boolean().optional(),
    },
    z.object({ account_id: id, status: accountStatus, status_version: z.number().int(), balance: money }),
  ),
  /** A step of the status saga. The ledger decides the previous and new status, no-ops, and the order. */
  change_ledger_account_status: ledger.command(
    { transition_id: id, account_id: accountId, status: accountStatus, keep_frozen: keepFrozen },
    z.object({
      account_id: id,
      from_status: accountStatus,
      to_status: accountStatus,
      changed: z.boolean(),
      status_version: z.number().int(),
      balance: money,
      /** Missing in replies from before holds existed. */
      available_balance: money.optional(),
      changed_at: time,
    }),
  ),

  // ledger: queries
  /**
   * Returns the time of the database, which determines posting times. It has no reply_by, because the clock of the
   * sender may be wrong.
   */
  get_time: ledger.query({}, z.object({ time })),
  get_ledger_accounts: ledger.query({ account_ids: z.array(id).max(500) }, z.array(ledgerAccountSchema)),
  get_balance_by_number: ledger.query({ account_number: z.string().max(64) }, accountBalanceSchema),
  list_transactions: ledger.query(
    // A canonical decimal may be longer than a parameter.
    {
      ...listOf(parameters.listTransactions),
      min_amount: amountOrZero.optional(),
      max_amount: amountOrZero.optional(),
    },
    searchedPageOf(transactionSchema),
  ),
  /**
   * The query for what a command creates may also be sent to the topic of the command, in its bucket, and is then
   * answered after the preceding commands (`createdOn` in services/gateway/api/reads.ts).
   */
  get_transaction: ledger.query({ transaction_id: id }, transactionSchema),
  list_transfers: ledger.query(listOf(parameters.listTransfers), searchedPageOf(transferSchema)),
  get_transfer: ledger.query({ transfer_id: id }, transferSchema),
  get_batch: ledger.query({ batch_id: id }, batchSchema),
  list_batches: ledger.query(listOf(parameters.listBatches), pageOf(batchSummarySchema)),
  list_entries: ledger.query({ account_id: id, ...page }, pageOf(entryLineSchema)),
  get_account_balance: ledger.query({ account_id: id, at: time.optional() }, balanceAtSchema),
  get_statement: ledger.query(
    { account_id: id, from: time.optional(), to: time.optional(), limit: page.limit, after: page.after },
    z.object({ item: statementSchema, next: position.optional() }),
  ),
  get_timeline: ledger.query({ transaction_id: id }, timelineSchema),
  get_ledger_operations: ledger.query(
    {},
    z.object({ outbox: outboxStateSchema, last_verification: checkSchema.nullable() }),
  ),
  /**
   * The ledger's step of an erasure, which is refused while an account of the client is not Inactive, has money, or has a
   * posting after `kept_since`. It is on the queries topic, because it changes nothing in the ledger.
   */
  check_erasure: command('ledger.queries', z.object({ client_id: idField('client'), kept_since: time }), z.object({})),
  /** Also on the queries topic. */
  verify_books: command('ledger.queries', z.object({ verification_id: id }), checkSchema),
  get_posting_statistics: ledger.query(administrationParameters.postingStatistics.shape, postingStatisticsSchema),
  get_posting_totals: ledger.query(administrationParameters.postingTotals.shape, postingTotalsSchema),
  search_postings: ledger.query({ q: z.string() }, z.array(searchHitSchema)),
  get_trial_balance: ledger.query({}, z.array(trialBalanceSchema)),
  get_system_accounts: ledger.query({}, z.array(systemAccountSchema)),

  // webhooks: commands. `sealed_secret` is stored in the table of webhooks as it is (webhook-secret.ts).
  create_webhook: webhooks.command(
    {
      webhook_id: id,
      url: z.string(),
      event_types: z.array(z.string()),
      description: text,
      sealed_secret: z.string(),
    },
    webhookSchema,
  ),
  update_webhook: webhooks.command({ webhook_id: id, changes: webhookChanges }, webhookSchema),
  delete_webhook: webhooks.command({ webhook_id: id }, webhookSchema),
  rotate_webhook_secret: webhooks.command(
    { webhook_id: id, sealed_secret: z.string(), overlap_seconds: z.number().int() },
    webhookSchema,
  ),
  test_webhook: webhooks.command({ webhook_id: id }, deliverySchema),
  redeliver: webhooks.command({ webhook_id: id, delivery_id: id }, deliverySchema),
  replay_webhook: webhooks.command({ webhook_id: id, from: time, to: time }, webhookSchema),
  /**
   * Disables the webhooks whose URL or secret these callers set last, or of this client, because their keys were revoked
   * or have expired.
   */
  disable_webhooks: webhooks.command(
    { set_by: z.array(z.string()), client_id: id.nullable() },
    z.object({ disabled: z.array(z.string()) }),
  ),

  // webhooks: queries
  list_webhooks: webhooks.query({ ...page }, pageOf(webhookSchema)),
  /** Returns the ids of the webhooks whose URL or secret these callers set last. */
  list_webhooks_set_by: webhooks.query({ actors: z.array(z.string()) }, z.array(z.string())),
  get_webhook: webhooks.query({ webhook_id: id }, webhookSchema),
  list_deliveries: webhooks.query({ webhook_id: id, ...listOf(webhookParameters.deliveries) }, pageOf(deliverySchema)),
  get_webhooks_operations: webhooks.query({}, z.object({ outbox: outboxStateSchema })),
  list_events: webhooks.query(
    {
      after: z.string().optional(),
      types: z.array(z.string()).optional(),
      account_id: z.string().optional(),
      limit: page.limit,
    },
    z.object({ items: z.array(cloudEventSchema), cursor: z.string(), more: z.boolean() }),
  ),
};

export type MessageName = keyof typeof messages;
export type MessageData<N extends MessageName> = z.output<(typeof messages)[N]['data']>;
export type MessageResult<N extends MessageName> = z.output<(typeof messages)[N]['result']>;

/** The senders of messages that not only the gateway sends. */
const senders: Partial<Record<MessageName, readonly Signer[]>> = {
  open_ledger_account: ['accounts'],
  change_ledger_account_status: ['accounts'],
  check_erasure: ['accounts'],
  disable_webhooks: ['accounts'],
  record_audit: ['gateway', 'ledger', 'webhooks'],
  // Approvable commands are also sent by accounts, after an approval.
  ...Object.fromEntries(approvableCommand.options.map((name) => [name, ['gateway', 'accounts'] as const])),
};

/** Reports whether the service may send this message. */
export function maySend(signer: Signer, name: MessageName): boolean {
  return senders[name]?.includes(signer) ?? signer === 'gateway';
}

/** Returns the ce_type of a command or query. */
export function messageType(name: MessageName): string {
  return `corebanking.${messages[name].kind}.${name}.v1`;
}

const byType = new Map((Object.keys(messages) as MessageName[]).map((name) => [messageType(name), name]));

/** Returns the message of a ce_type, or undefined if the type is unknown. */
export function messageOfType(type: string): MessageName | undefined {
  return byType.get(type);
}
