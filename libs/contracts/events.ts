import { z } from 'zod';
import { auditRecordSchema, replayedTopic } from './administration.ts';
import { accountMasterSchema, accountStatus, entrySchema, freezeReason, keyEnvironment, money, transactionSchema, transferSchema } from './resources.ts';
import type { TopicName } from './topics.ts';

/**
 * Events for downstream systems: CloudEvents 1.0, at least once, the same ce_id on a repeat, in order per key, never
 * one for what rolled back. Within a type version only additions.
 */
const reversalFree = transactionSchema.omit({ reversed_by_transaction_id: true });

export const transactionCompletedSchema = z.object({
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
  /** The latest state of an account's balance; the topic is compacted. */
  'corebanking.balance.v1': event(
    'balances',
    z.object({ account_id: z.string(), account_number: z.string(), currency: z.string(), balance: money, sequence: z.number().int(), updated_at: z.string() }),
  ),
  /** Every audit record, keyed by its actor. */
  'corebanking.audit.recorded.v1': event('audit', auditRecordSchema),
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

export type EventType = keyof typeof events;
export type EventData<T extends EventType> = z.infer<(typeof events)[T]['data']>;

/**
 * The last message of a replay in each partition of its side topic. What was published twice because a process died comes
 * with its own ce_id again: `event_count` counts different ones, over all partitions.
 */
export const replayEndedType = 'corebanking.replay.ended.v1';
export const replayEndedSchema = z.object({
  replay_id: z.string(),
  topic: replayedTopic,
  from: z.string(),
  to: z.string(),
  account_id: z.string().nullable(),
  state: z.enum(['completed', 'failed']),
  failure: z.string().nullable(),
  event_count: z.number().int(),
});
