import { z } from 'zod';
import { auditRecordSchema, securityActivitySchema } from './administration.ts';
import { approvalAction, approvalStatus } from './approvals.ts';
import { accountMasterSchema, accountStatus, accountType, entrySchema, freezeReason, keyEnvironment, money, transactionSchema, transferSchema } from './resources.ts';
import type { TopicName } from './topics.ts';

/**
 * Events for downstream systems: CloudEvents 1.0, at least once, the same ce_id on a repeat, in order per key, never
 * one for what rolled back. Within a type version only additions.
 */
const reversalFree = transactionSchema.omit({ reversed_by_transaction_id: true });

const transactionCompletedSchema = z.object({
  transaction: reversalFree,
  /** Gap-free per account: the sequence of this account's entry. */
  sequence: z.number().int(),
  balance_after: money,
  operation_id: z.string(),
  /** Every entry of the operation, Teller's and Vault's too. */
  entries: z.array(entrySchema),
});

function event<S extends z.ZodType>(topic: TopicName, data: S) {
  return { topic, data };
}

export const events = {
  'corebanking.transaction.completed.v1': event('transactions', transactionCompletedSchema),
  'corebanking.transaction.failed.v1': event('transactions', z.object({ transaction: reversalFree })),
  'corebanking.transfer.completed.v1': event('transfers', z.object({ transfer: transferSchema, operation_id: z.string() })),
  'corebanking.account.opened.v1': event('accounts', z.object({ account: accountMasterSchema })),
  'corebanking.account.status_changed.v1': event(
    'accounts',
    z.object({
      account_id: z.string(),
      client_id: z.string(),
      transition_id: z.string(),
      from_status: accountStatus,
      to_status: accountStatus,
      reason: freezeReason.nullable(),
      status_version: z.number().int(),
      actor: z.string(),
      changed_at: z.string(),
    }),
  ),
  /** Ids, type and names of changed fields: no personal data. */
  'corebanking.client.created.v1': event('clients', z.object({ client_id: z.string(), client_type: z.string(), created_at: z.string() })),
  'corebanking.client.updated.v1': event(
    'clients',
    z.object({ client_id: z.string(), client_type: z.string(), changed_fields: z.array(z.string()), updated_at: z.string() }),
  ),
  /** Ids and words of the table alone: what was asked for is read by those who may decide it. */
  'corebanking.approval.requested.v1': event(
    'approvals',
    z.object({ approval_id: z.string(), action: approvalAction, operation: z.string(), requested_by: z.string(), requested_at: z.string(), expires_at: z.string() }),
  ),
  /** Approved, Rejected, or Expired, which nobody decided. */
  'corebanking.approval.decided.v1': event(
    'approvals',
    z.object({
      approval_id: z.string(),
      action: approvalAction,
      operation: z.string(),
      requested_by: z.string(),
      status: approvalStatus.exclude(['Waiting']),
      decided_by: z.string().nullable(),
      decided_at: z.string(),
    }),
  ),
  /** The latest state of an account, from its opening on, after every posting and change of status; the topic is compacted. */
  'corebanking.balance.v1': event(
    'balances',
    z.object({
      account_id: z.string(),
      account_number: z.string(),
      account_type: accountType,
      currency: z.string(),
      status: accountStatus,
      status_version: z.number().int(),
      balance: money,
      sequence: z.number().int(),
      updated_at: z.string(),
    }),
  ),
  /** Every audit record, keyed by its actor. */
  'corebanking.audit.recorded.v1': event('audit', auditRecordSchema),
  /** The last link of each chain of audit records (decision 30). */
  'corebanking.audit.head.v1': event('audit', z.object({ heads: z.array(z.object({ chain: z.number().int(), sequence: z.number().int(), audit_id: z.string(), hash: z.string() })) })),
  /** Keyed by the actor. Published by the gateways, summed up each minute: what a crash interrupts is lost. */
  'corebanking.security.activity.v1': event('security', securityActivitySchema),
  /** What gateways need to check a key; the topic is compacted. */
  'corebanking.api_key.v1': event(
    'api-keys',
    z.object({
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
  ),
};

/** Headers of an event: CloudEvents 1.0 in Kafka's binary content mode, and by what it is found in logs and traces. */
export const eventHeadersSchema = z.object({
  ce_specversion: z.literal('1.0').describe('CloudEvents version'),
  ce_id: z.guid().describe('The same on every publication of the event: by it consumers know repeats'),
  ce_type: z.string().regex(/^corebanking\.[a-z_]+(\.[a-z_]+)?\.v\d+$/).describe('The event type, with its version'),
  ce_source: z.string().regex(/^\/core-banking\/(ledger|accounts|gateway)$/).describe('The service that published it'),
  ce_time: z.iso.datetime({ precision: 3 }).describe('When it happened, by the clock of the bank; UTC with three decimals'),
  ce_subject: z.string().describe('The message key'),
  'content-type': z.literal('application/json').describe('Of the value'),
  'request-id': z.string().optional().describe('X-Request-Id of the request that led to it, as in logs and in the audit'),
  traceparent: z.string().optional().describe('W3C trace context of that request'),
});

export type EventType = keyof typeof events;
export type EventData<T extends EventType> = z.infer<(typeof events)[T]['data']>;
