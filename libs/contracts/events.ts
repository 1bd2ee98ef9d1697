import { z } from 'zod';
import { auditRecordSchema, securityActivitySchema } from './administration.ts';
import { approvalAction, approvalStatus } from './approvals.ts';
import {
  accountNumber,
  asked,
  count,
  currencyCode,
  decided,
  entryId,
  failureCodes,
  idField,
  moment,
  openList,
  openWord,
  ownership,
  positiveMoney,
  since,
} from './event-fields.ts';
import { holdEvents } from './holds.ts';
import { shownNames } from './names.ts';
import {
  accountMasterSchema,
  accountStatus,
  accountType,
  clientType,
  entrySchema,
  freezeReason,
  keyEnvironment,
  money,
  transactionSchema,
  transferSchema,
} from './resources.ts';
import type { TopicName } from './topics.ts';

/**
 * Events for downstream systems: CloudEvents 1.0, delivered at least once, with the same ce_id on every repeat,
 * in order per key, and never published for a transaction that rolled back. Within a version, types only gain
 * fields (docs/events-evolution.md).
 */
const time = { created_at: moment };

const transactionIds = {
  transaction_id: idField('transaction'),
  account_id: idField('account'),
  transfer_id: idField('transfer').optional(),
  counterparty_account_id: idField('account').optional(),
  reverses_transaction_id: idField('transaction').optional(),
  hold_id: idField('hold').optional(),
  batch_id: idField('batch').optional(),
};

/**
 * transaction_type is open, so that fees or interest can be added. Account, direction, and amount describe the
 * posting completely.
 */
const postedTransaction = transactionSchema.omit({ reversed_by_transaction_id: true, failure_code: true }).extend({
  ...transactionIds,
  ...time,
  transaction_type: openWord,
  amount: positiveMoney,
  currency: currencyCode,
  status: z.literal('Completed'),
});

/** The currency is absent if the caller named none and the account was not read. */
const refusedTransaction = postedTransaction.extend({
  currency: currencyCode.nullable(),
  status: z.literal('Failed'),
  failure_code: openList(failureCodes),
});

/** The account at the other end, if it, and not the transaction's own account, is the reason for the failure. */
const failureAccount = { failure_account_id: idField('account').optional() };

/**
 * An entry without balance_after: the balance of the event's own account is a field of the event, and balances of other
 * accounts must not be disclosed.
 */
const eventEntry = entrySchema.omit({ balance_after: true }).extend({
  ...time,
  entry_id: entryId,
  operation_id: idField('operation'),
  transaction_id: idField('transaction'),
  account_id: idField('account'),
  sequence: count,
  amount: positiveMoney,
  currency: currencyCode,
});

const transferIds = {
  transfer_id: idField('transfer'),
  from_account_id: idField('account'),
  to_account_id: idField('account'),
  hold_id: idField('hold').optional(),
  batch_id: idField('batch').optional(),
};
const completedTransfer = transferSchema
  .omit({ reverses_transfer_id: true, reversed_by_transfer_id: true, failure_code: true })
  .extend({ ...transferIds, ...time, amount: positiveMoney, currency: currencyCode, status: z.literal('Completed') });

/** A row without its documentation. */
const event = <S extends z.ZodRawShape>(topic: TopicName, fields: S) => ({ topic, data: z.object(fields) });
const ledgerEvent = <S extends z.ZodRawShape>(topic: TopicName, fields: S) => event(topic, { ...fields, ...decided });

const client = { client_id: idField('client'), client_type: clientType };
const eventAccount = accountMasterSchema.extend({
  account_id: idField('account'),
  client_id: idField('client'),
  account_number: accountNumber,
  currency: currencyCode,
  created_at: moment,
  updated_at: moment,
});

export const events = {
  'corebanking.transaction.completed.v1': ledgerEvent('transactions', {
    transaction: postedTransaction,
    /** The sequence of this account's entry. Gap-free per account. */
    sequence: count,
    balance_after: money,
    operation_id: idField('operation'),
    /** All entries of the operation, including those of Teller and Vault. */
    entries: z.array(eventEntry).min(2),
    ...ownership,
    ...asked,
  }),
  'corebanking.transaction.failed.v1': ledgerEvent('transactions', {
    transaction: refusedTransaction,
    ...failureAccount,
    ...ownership,
    ...asked,
  }),
  /** As requested by the caller; the account was not found. */
  'corebanking.transaction.account_not_found.v1': ledgerEvent('transactions', {
    transaction: refusedTransaction.extend({ failure_code: z.literal('account_not_found') }),
    ...failureAccount,
    ...asked,
  }),
  'corebanking.transfer.completed.v1': ledgerEvent('transfers', {
    transfer: completedTransfer,
    operation_id: idField('operation'),
    ...asked,
  }),
  'corebanking.transfer.failed.v1': ledgerEvent('transfers', {
    transfer: completedTransfer.extend({
      currency: currencyCode.nullable(),
      status: z.literal('Failed'),
      failure_code: openList(failureCodes),
    }),
    ...failureAccount,
    ...asked,
  }),
  /** The transfer that reverses another one. The key is the reversed transfer. */
  'corebanking.transfer.reversed.v1': ledgerEvent('transfers', {
    transfer: completedTransfer.extend({ reverses_transfer_id: idField('transfer') }),
    operation_id: idField('operation'),
    ...asked,
  }),
  ...holdEvents,
  'corebanking.account.opened.v1': event('accounts', { account: eventAccount, ...asked }),
  'corebanking.account.status_changed.v1': event('accounts', {
    account_id: idField('account'),
    client_id: idField('client'),
    transition_id: idField('transition'),
    from_status: accountStatus,
    to_status: accountStatus,
    reason: freezeReason.nullable(),
    status_version: count,
    actor: z.string(),
    changed_at: moment,
    account_number: ownership.account_number,
    request_channel: asked.request_channel,
  }),
  /** Ids, type, external_id, metadata, and the names of changed fields; no personal data. */
  'corebanking.client.created.v1': event('clients', { ...client, created_at: moment, ...shownNames, ...asked }),
  'corebanking.client.updated.v1': event('clients', {
    ...client,
    changed_fields: z.array(z.string()),
    updated_at: moment,
    ...shownNames,
    ...asked,
  }),
  /** Consumers that store data of the client must erase it too. */
  'corebanking.client.erased.v1': event('clients', { ...client, erased_at: moment, ...asked }),
  /** Contains only ids and enumeration values. Approvers read the request through the API. */
  'corebanking.approval.requested.v1': event('approvals', {
    approval_id: idField('approval'),
    action: approvalAction,
    operation: z.string(),
    requested_by: z.string(),
    requested_at: moment,
    expires_at: moment,
  }),
  /** Approved, Rejected, or Expired without a decision. */
  'corebanking.approval.decided.v1': event('approvals', {
    approval_id: idField('approval'),
    action: approvalAction,
    operation: z.string(),
    requested_by: z.string(),
    status: approvalStatus.exclude(['Waiting']),
    decided_by: z.string().nullable(),
    decided_at: moment,
  }),
  /**
   * The bank stopped sending to the webhook. `gone`: its receiver returned 410. `failing`: nothing was delivered for
   * five days. `revoked`: a key that last set its URL or secret was revoked or has expired, or its client was erased.
   */
  'corebanking.webhook.disabled.v1': event('webhooks', {
    webhook_id: idField('webhook'),
    client_id: idField('client').nullable(),
    reason: z.enum(['gone', 'failing', 'revoked']),
    failing_since: moment.nullable(),
    disabled_at: moment,
  }),
  /**
   * The latest state of an account, published when it is opened and after every posting, status change, and
   * hold change. The topic is compacted.
   */
  'corebanking.balance.v1': ledgerEvent('balances', {
    account_id: idField('account'),
    client_id: ownership.client_id,
    account_number: accountNumber,
    account_type: accountType,
    currency: currencyCode,
    status: accountStatus,
    status_version: count,
    balance: money,
    /** The balance minus the held amount. Messages from before 0.2.0 lack it, and hold_version. */
    available_balance: since('0.2.0', money),
    sequence: z.number().int().min(0),
    hold_version: since('0.2.0', z.number().int().min(0)),
    updated_at: moment,
  }),
  /** The master data of an account after its opening and every change; the topic is compacted. */
  'corebanking.account.v1': event('account-masters', { account: eventAccount, status_version: count }),
  /** The master data of a client after every change, without personal data; the topic is compacted. */
  'corebanking.client.v1': event('client-masters', {
    ...client,
    created_at: moment,
    updated_at: moment,
    erased_at: moment.nullable(),
    ...shownNames,
  }),
  /** Every audit record, keyed by its actor. */
  'corebanking.audit.recorded.v1': event('audit', {
    ...auditRecordSchema.shape,
    audit_id: idField('audit'),
    created_at: moment,
  }),
  /** The last link of each chain of audit records (decision 30). */
  'corebanking.audit.head.v1': event('audit', {
    heads: z.array(
      z.object({
        chain: z.number().int().min(0),
        sequence: count,
        audit_id: idField('audit'),
        hash: z.string().regex(/^[0-9a-f]{64}$/),
      }),
    ),
  }),
  /** The key is the actor. Gateways publish a summary each minute; a crash loses the current minute. */
  'corebanking.security.activity.v1': event('security', {
    ...securityActivitySchema.shape,
    since: moment,
    until: moment,
    count,
  }),
  /** The data with which gateways verify a key. The topic is compacted. */
  'corebanking.api_key.v1': event('api-keys', {
    key_id: z.string(),
    family_id: z.string(),
    secret_hash: z.string(),
    scopes: z.array(z.string()),
    environment: keyEnvironment,
    client_id: z.string().nullable(),
    expires_at: z.string(),
    revoked_at: z.string().nullable(),
    version: z.number().int(),
  }),
};

/** Headers of an event: CloudEvents 1.0 in Kafka's binary content mode, and the ids used in logs and traces. */
export const eventHeadersSchema = z.object({
  ce_specversion: z.literal('1.0').describe('CloudEvents version'),
  ce_id: z.guid().describe('The same on every publication of the event, so that consumers recognize repeats'),
  ce_type: z
    .string()
    .regex(/^corebanking\.[a-z_]+(\.[a-z_]+)?\.v\d+$/)
    .describe('The event type, with its version'),
  ce_source: z
    .string()
    .regex(/^\/core-banking\/(ledger|accounts|gateway|webhooks)$/)
    .describe('The service that published the event'),
  ce_dataschema: z
    .string()
    .regex(/^urn:corebanking:/)
    .optional()
    .describe('The $id of the schema of the data; events from before 0.2.0 lack it'),
  ce_time: z.iso
    .datetime({ precision: 3 })
    .describe('The time of the change by the clock of the bank; UTC with three decimals'),
  ce_subject: z.string().describe('The message key'),
  'content-type': z.literal('application/json').describe('The content type of the value'),
  'request-id': z
    .string()
    .optional()
    .describe('X-Request-Id of the request that caused the event, as in logs and in the audit'),
  traceparent: z.string().optional().describe('W3C trace context of that request'),
});

/** Returns the schema name of an event type: the `$id` of its schema and the `ce_dataschema` of its events. */
export function schemaId(type: string): string {
  return `urn:corebanking:event:${type}`;
}

export type EventType = keyof typeof events;
export type EventData<T extends EventType> = z.infer<(typeof events)[T]['data']>;
