import { z } from 'zod';
import { type EventType, events, schemaId } from '#libs/contracts/events.ts';
import { holdMeanings } from '#libs/contracts/holds.ts';
import { eventExamples } from './event-examples.ts';

/** Generates the JSON Schemas (draft-07) of events: docs/events/<type>.schema.json, and the payloads in AsyncAPI. */

export type JsonSchema = { [keyword: string]: unknown };

/** The change that each event type reports, and when it is published. */
const summaries: { [T in EventType]?: string } = {
  'corebanking.transaction.completed.v1':
    'A transaction was posted to an account. Contains every entry of its operation. There is one event per account, so a transfer has two',
  'corebanking.transaction.failed.v1': 'A transaction was refused and stored as Failed; nothing was posted',
  'corebanking.transaction.account_not_found.v1':
    'A posting named an account that does not exist, or that its caller must not know about. Nothing was posted, and the event is not part of any account. Use it to detect probing for accounts',
  'corebanking.transfer.completed.v1': 'A transfer was posted to both accounts',
  'corebanking.transfer.failed.v1': 'A transfer was refused and stored as Failed; nothing was posted',
  'corebanking.transfer.reversed.v1':
    'A transfer was reversed by a transfer back, which has its own transfer_id. The key is the reversed transfer',
  'corebanking.account.opened.v1':
    'An account was opened and accepts postings. Its initial deposit, if any, is a transaction',
  'corebanking.account.status_changed.v1': 'An account was activated, deactivated, or frozen',
  'corebanking.client.created.v1': 'A client was created. Contains no personal data',
  'corebanking.client.updated.v1':
    'Fields of a client were changed. Contains the names of the fields but not their values',
  'corebanking.client.erased.v1': 'The personal data of a client was erased. Erase your copies too',
  'corebanking.approval.requested.v1': 'A request needs the approval of a second person. Nothing has been executed',
  'corebanking.approval.decided.v1': 'An approval was approved or rejected, or expired',
  'corebanking.webhook.disabled.v1':
    'The bank stopped sending events to a webhook, because its receiver returned 410, no delivery succeeded for five days, a key that last set its URL or secret was revoked or has expired, or its client was erased',
  'corebanking.balance.v1':
    'The state of an account after its latest posting; the topic keeps the latest of each account forever',
  'corebanking.account.v1':
    'The master data of an account after its opening or a change; the topic keeps the latest of each account forever',
  'corebanking.client.v1':
    'The master data of a client after a change, without personal data; the topic keeps the latest of each client forever',
  'corebanking.audit.recorded.v1': 'An act that is kept for auditors',
  'corebanking.audit.head.v1':
    'The last link of each chain of audit records, published every minute with new records. It proves later that no earlier record was changed or removed',
  'corebanking.security.activity.v1':
    'A security activity for a SIEM: refused credentials and permissions, API keys, sign-ins, exports. One event per minute, address, caller, and route, with its count',
  'corebanking.api_key.v1':
    'Internal, for gateways: what they need to verify a key. The topic keeps the latest state of each key forever',
};

/** Returns the change that the event type reports, and when it is published. */
export function summaryOf(type: EventType): string {
  const row = events[type];
  return 'summary' in row ? row.summary : (summaries[type] ?? '');
}

/** Field descriptions. A field has the same meaning in every event; a test finds fields without a description. */
const fields: Record<string, string> = {
  account: 'The account as in REST, without its balance',
  account_id: 'acc_ and 32 hex digits',
  account_number: 'The account number, such as SAV-1234567897',
  account_type: 'Savings, Checking, Current, or Loan',
  action: 'The operation, as named in OpenAPI',
  actor: 'The caller: key:<family of the API key>, jwt:<issuer>|<subject>, or system',
  activity_name: 'OCSF activity: Logon, Logoff, Create, Read, Update, Delete, or Other',
  address: "The caller's network address; in a summary, the /64 of an IPv6 address, null for several addresses",
  amount: 'Always positive; a decimal string',
  available_balance: 'The balance minus the held amount; a decimal string',
  approval_id: 'apr_ and 32 hex digits',
  audit_id: 'aud_ and 32 hex digits',
  balance: 'For a Loan, the outstanding amount; a decimal string',
  balance_after: 'The balance of the account after this transaction; a decimal string',
  batch_id: 'The batch that contained it as an item',
  ...holdMeanings.eventFields,
  chain: 'Number of the chain, 0 to 15',
  changed_at: 'When the new status took effect; ISO 8601 UTC',
  changed_fields: 'Field names as in REST',
  class_name: 'OCSF class: Authentication, Entity Management, or API Activity',
  class_uid: 'Number of the OCSF class',
  client_id: 'cli_ and 32 hex digits',
  client_type: 'Retail or Corporate',
  count: 'Number of occurrences between since and until',
  counterparty_account_id: 'The other account of a transfer',
  created_at: 'For an entry, when it was posted; otherwise when the request was accepted; ISO 8601 UTC',
  currency: 'ISO 4217',
  decided_at: 'ISO 8601 UTC',
  decided_by: 'The second person; null if the approval expired',
  description: 'Free text of the caller',
  details: 'Short facts; no personal data, no secrets',
  disabled_at: 'ISO 8601 UTC',
  direction: 'credit: the balance of this account rises; debit: it falls',
  entries: 'Every entry of the operation, including those of Teller and Vault; debits and credits (side) are equal',
  entry_id: 'ent_, the digits of the account, and the sequence',
  environment: 'live or test',
  erased_at: 'ISO 8601 UTC',
  expires_at: 'When it expires; ISO 8601 UTC',
  external_id: "The caller's own id, if set",
  failing_since: 'The first failure since the last success; null if there was none; ISO 8601 UTC',
  failure_account_id: 'The account at the other end, if it is the reason for the failure',
  failure_code: 'The error code, if status is Failed',
  family_id: 'The first key of the family',
  from_account_id: 'The source',
  from_status: 'The previous status',
  hash: 'SHA-256 over the record and the previous hash, in hex',
  heads: 'One per chain that has records',
  key_id: 'key_ and 32 hex digits',
  metadata: 'Named strings set by the caller, if any',
  operation: 'The requested API operation',
  operation_id: 'opr_ and 32 hex digits: everything posted together',
  outcome: 'success, or the error code of the refusal',
  reason:
    'Why the account was frozen; for a webhook, gone (410), failing (for five days), or revoked (a key that set its URL or secret was revoked or has expired, or its client was erased)',
  reference: "The caller's own reference",
  request_channel: 'How it was requested: api_key, token, staff (a staff user), or system',
  request_id: 'X-Request-Id',
  requested_at: 'ISO 8601 UTC',
  requested_by: 'The requester',
  resource_id: 'The affected resource',
  reversed_by_transaction_id: 'The reversal of this transaction',
  reverses_transaction_id: 'The transaction that this one reverses',
  reverses_transfer_id: 'The transfer that this one reverses',
  revoked_at: 'ISO 8601 UTC',
  scopes: 'The scopes of the key',
  secret_hash: 'HMAC of the key',
  sequence:
    'Number of the entry within its account (or of the link within its chain), gap-free from 1; in a balance, the last entry included, 0 before the first',
  side: 'Accounting side',
  since: 'First occurrence; ISO 8601 UTC',
  status:
    'Of a transaction: Completed or Failed; of an activity: Success or Failure; of an account: Active, Inactive, or Frozen; of an approval: Approved, Rejected, or Expired; of a hold: Active, Captured, Released, or Expired',
  status_version: 'Incremented by each status change; 1 when the account is opened',
  to_account_id: 'The destination',
  to_status: 'The new status',
  transaction: 'The transaction as in REST, with amounts as strings',
  transaction_id: 'txn_ and 32 hex digits',
  transaction_type:
    'Deposit, Withdrawal, Transfer, or Loan Payment; more may be added, so rely on direction and amount. A reversal has the type of what it reverses',
  transfer: 'The transfer as in REST, with its amount as a string',
  transfer_id: 'trf_ and 32 hex digits',
  transition_id: 'tra_ and 32 hex digits',
  until: 'When it was summarized; ISO 8601 UTC',
  updated_at: 'ISO 8601 UTC',
  webhook_id: 'whk_ and 32 hex digits',
  version: 'Incremented by each change of the key',
};

/**
 * Converts a zod schema to draft-07. Output schemas allow additional fields, because events may gain fields
 * within a version.
 */
export function wireSchema(schema: z.ZodType, io: 'input' | 'output' = 'output'): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, {
    io,
    target: 'draft-7',
    unrepresentable: 'any',
  }) as JsonSchema;
  return adjusted(rest) as JsonSchema;
}

/** Removes properties that only REST or zod need, and adds field descriptions. */
function adjusted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(adjusted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(
    ([name, item]) =>
      !['money', 'input_default', 'input_examples'].includes(name) &&
      !(name === 'additionalProperties' && item === false) &&
      Math.abs(Number(item)) !== Number.MAX_SAFE_INTEGER,
  );
  return withSince(
    Object.fromEntries(
      entries.map(([name, item]) => [
        name,
        name === 'properties' ? described(item as Record<string, JsonSchema>) : adjusted(item),
      ]),
    ),
  );
}

/**
 * Marks fields with `since` as required in published events. Readers must treat them as optional, because older
 * events lack them.
 */
function withSince(schema: JsonSchema): JsonSchema {
  if (typeof schema['properties'] !== 'object' || schema['type'] !== 'object') return schema;
  const names = Object.entries(schema['properties'] as Record<string, JsonSchema>).flatMap(([name, property]) =>
    String(property['$comment'] ?? '').startsWith('since ') ? [name] : [],
  );
  return names.length === 0 ? schema : { ...schema, required: [...((schema['required'] ?? []) as string[]), ...names] };
}

function described(properties: Record<string, JsonSchema>): Record<string, JsonSchema> {
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const made = adjusted(property) as JsonSchema;
      return [name, fields[name] === undefined ? made : { description: fields[name], ...made }];
    }),
  );
}

/** Returns the schema file of an event type: the schema of the message value, with an example. */
export function eventSchema(type: EventType): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: schemaId(type),
    title: type,
    description: summaryOf(type),
    ...wireSchema(events[type].data),
    examples: [eventExamples[type]],
  };
}

/** Returns all schema files by name in docs/events. */
export function eventSchemaFiles(): Record<string, JsonSchema> {
  const types = Object.keys(events) as EventType[];
  return Object.fromEntries(types.map((type) => [`${type}.schema.json`, eventSchema(type)]));
}
