import { z } from 'zod';
import { eventExamples } from './event-examples.ts';
import { type EventType, events, schemaId } from './events.ts';

/** Generates the JSON Schemas (draft-07) of events: docs/events/<type>.schema.json, and the payloads in AsyncAPI. */

export type JsonSchema = { [keyword: string]: unknown };

/** What each event type reports and when it is published. */
export const eventSummaries: Record<EventType, string> = {
  'corebanking.transaction.completed.v1':
    'A transaction was posted to an account: complete, with every entry of its operation. One per account: a transfer has two',
  'corebanking.transaction.failed.v1': 'A transaction was refused and kept as Failed; nothing was posted',
  'corebanking.transaction.account_not_found.v1':
    'A posting named an account that is none, or that its caller may not know: who probes for accounts shows here. Nothing was posted; it is no part of any account',
  'corebanking.transfer.completed.v1': 'A transfer was posted to both accounts',
  'corebanking.transfer.failed.v1': 'A transfer was refused and kept as Failed; nothing was posted',
  'corebanking.transfer.reversed.v1':
    'A transfer was reversed, by a transfer back with a transfer_id of its own. Its key is the transfer that it reverses',
  'corebanking.hold.placed.v1': 'Money of an account was set aside',
  'corebanking.hold.captured.v1':
    'Held money was taken: a withdrawal or a transfer, which has its own events. The hold stays Active where some of it is still held',
  'corebanking.hold.released.v1': 'Held money was given back, or what captures had left of it',
  'corebanking.hold.expired.v1': 'A hold no longer counts since its expires_at; told within 10 s of it',
  'corebanking.account.opened.v1':
    'An account was opened and takes postings. Its initial deposit, if any, is a transaction',
  'corebanking.account.status_changed.v1': 'An account was activated, deactivated or frozen',
  'corebanking.client.created.v1': 'A client was created. No personal data',
  'corebanking.client.updated.v1': 'Fields of a client were changed: their names, without their values',
  'corebanking.client.erased.v1': 'What is personal of a client was replaced: erase what you keep of them',
  'corebanking.approval.requested.v1': 'Somebody asked for what a second person must approve; nothing has happened',
  'corebanking.approval.decided.v1': 'It was approved or rejected, or nobody decided in time',
  'corebanking.webhook.disabled.v1':
    'The bank has stopped sending events to a webhook: its receiver answered 410, nothing has got through for five days, or the key that made it was revoked with what it had made',
  'corebanking.balance.v1':
    'The state of an account after its latest posting; the topic keeps the latest of each account for ever',
  'corebanking.audit.recorded.v1': 'An act that is kept for auditors',
  'corebanking.audit.head.v1':
    'The last link of each chain of audit records, every minute in which there were new ones: with it anybody can prove later that no record before it was changed or removed',
  'corebanking.security.activity.v1':
    'What a SIEM is told of: refused credentials and permissions, API keys, sign-ins, exports; one per minute, address, caller and route, with its count',
  'corebanking.api_key.v1':
    'Internal, for gateways: what they need to check a key; the topic keeps the latest of each for ever',
};

/** Field descriptions. A field means the same in every event; a test finds fields without a description. */
const fields: Record<string, string> = {
  account: 'The account as REST shows it, without its balance',
  account_id: 'acc_ and 32 hex digits',
  account_number: 'The number that people use, such as SAV-1234567897',
  account_type: 'Savings, Checking, Current or Loan',
  action: 'The operation, as OpenAPI names it',
  actor: 'Who asked: key:<family of the API key>, jwt:<issuer>|<subject>, or system',
  activity_name: 'Of OCSF: Logon, Logoff, Create, Read, Update, Delete or Other',
  address: "The caller's network address; of a summary the /64 of an IPv6 address, null for several",
  amount: 'Always positive; a decimal string',
  available_balance: 'The balance less what is held; a decimal string',
  approval_id: 'apr_ and 32 hex digits',
  audit_id: 'aud_ and 32 hex digits',
  balance: 'Of a Loan: what is outstanding; a decimal string',
  balance_after: 'The balance of the account behind this transaction; a decimal string',
  batch_id: 'The batch that it was an item of',
  captured_amount: 'What captures have taken of the hold so far; a decimal string',
  chain: 'Number of the chain, 0 to 15',
  changed_at: 'From this moment on the new status holds; ISO 8601 UTC',
  changed_fields: 'Names of fields as in REST',
  class_name: 'Of OCSF: Authentication, Entity Management or API Activity',
  class_uid: 'Number of that class in OCSF',
  client_id: 'cli_ and 32 hex digits',
  client_type: 'Retail or Corporate',
  count: 'How often, from since until until',
  counterparty_account_id: 'The other account of a transfer',
  created_at: 'Of an entry: when it was posted; else when the request was accepted; ISO 8601 UTC',
  currency: 'ISO 4217',
  decided_at: 'ISO 8601 UTC',
  decided_by: 'The second person; null where nobody decided in time',
  description: 'Free text of the caller',
  details: 'Short facts; no personal data, no secrets',
  disabled_at: 'ISO 8601 UTC',
  direction: 'credit: the balance of this account rises; debit: it falls',
  entries: 'Every entry of the operation, those of Teller and Vault too; debits and credits (side) are equal',
  entry_id: 'ent_, the digits of the account, and the sequence',
  environment: 'live or test',
  erased_at: 'ISO 8601 UTC',
  expires_at: 'From this moment on it no longer counts; ISO 8601 UTC',
  external_id: "The caller's own name of it, where it has one",
  failing_since: 'The first failure behind which nothing got through; null where nothing failed; ISO 8601 UTC',
  failure_account_id: 'The account at the other end, where it is the reason of the failure',
  failure_code: 'The error code, where status is Failed',
  family_id: 'The key from which this one came by rotation',
  from_account_id: 'The source',
  from_status: 'Before',
  hash: 'SHA-256 over the record and the hash of the link before it, hex',
  heads: 'One of each chain that has records',
  hold: 'The hold as REST shows it, with its amounts as strings, as this change leaves it',
  hold_id: 'hld_ and 32 hex digits; of a transaction or transfer: the hold that it captured, or was to capture',
  hold_version: 'Counts the changes of holds on the account, without a gap, from 1; 0 before the first',
  key_id: 'key_ and 32 hex digits',
  metadata: 'Texts that the caller keeps with it, by name, where there are any',
  operation: 'The operation of the API that was asked for',
  operation_id: 'opr_ and 32 hex digits: what is posted together',
  outcome: 'success, or the error code of the refusal',
  reason: 'Why it was frozen; of a webhook: gone or failing',
  reference: "The caller's own reference",
  request_channel: 'How it was asked for: api_key, token, staff (a person of the bank), or system',
  request_id: 'X-Request-Id',
  requested_at: 'ISO 8601 UTC',
  requested_by: 'Who asked',
  resource_id: 'What it was about',
  reversed_by_transaction_id: 'The reversal of this transaction',
  reverses_transaction_id: 'The transaction that this one reverses',
  reverses_transfer_id: 'The transfer that this one reverses',
  revoked_at: 'ISO 8601 UTC',
  scopes: 'What the key may do',
  secret_hash: 'HMAC of the key',
  sequence:
    'Counts the entries of the account (the links of a chain), without a gap, from 1; in a balance: that of the last entry it has in it, 0 before the first',
  side: 'Accounting side',
  since: 'The first time; ISO 8601 UTC',
  status:
    'Of a transaction: Completed or Failed; of an activity: Success or Failure; of an account: Active, Inactive or Frozen; of an approval: Approved, Rejected or Expired; of a hold: Active, Captured, Released or Expired',
  status_version: 'Rises with every change; 1 at the opening',
  to_account_id: 'The destination',
  to_status: 'After',
  transaction: 'The transaction as REST shows it, with amounts as strings',
  transaction_id: 'txn_ and 32 hex digits',
  transaction_type:
    'Deposit, Withdrawal, Transfer or Loan Payment, and others to come: direction and amount say what became of the money. A reversal has that of what it reverses',
  transfer: 'The transfer as REST shows it, with its amount as a string',
  transfer_id: 'trf_ and 32 hex digits',
  transition_id: 'tra_ and 32 hex digits',
  until: 'When it was summed up; ISO 8601 UTC',
  updated_at: 'ISO 8601 UTC',
  webhook_id: 'whk_ and 32 hex digits',
  version: 'Rises with every change of the key',
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

/** Removes what only REST or zod need, and adds field descriptions. */
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

/** The schema file of an event type: the schema of the message value, with an example. */
export function eventSchema(type: EventType): JsonSchema {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: schemaId(type),
    title: type,
    description: eventSummaries[type],
    ...wireSchema(events[type].data),
    examples: [eventExamples[type]],
  };
}

/** All schema files by name in docs/events. */
export function eventSchemaFiles(): Record<string, JsonSchema> {
  const types = Object.keys(events) as EventType[];
  return Object.fromEntries(types.map((type) => [`${type}.schema.json`, eventSchema(type)]));
}
