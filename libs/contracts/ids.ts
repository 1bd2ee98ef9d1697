import { hash } from 'node:crypto';

/**
 * Identifiers: a type prefix, an underscore, and 128 bits as 32 lowercase hex digits (contract: envelope-7).
 *
 * The last byte of the id of a transaction, transfer, or hold is a routing hint: the bucket of its command's
 * key. Only the first 120 bits are unique, so that the same Idempotency-Key used for two accounts (two buckets)
 * still collides, as it must.
 */
export const idPrefix = {
  client: 'cli',
  account: 'acc',
  transaction: 'txn',
  transfer: 'trf',
  transition: 'tra',
  note: 'nte',
  key: 'key',
  operation: 'opr',
  audit: 'aud',
  dead_letter: 'dlt',
  verification: 'ver',
  approval: 'apr',
  hold: 'hld',
  batch: 'bat',
  webhook: 'whk',
  delivery: 'dlv',
  till: 'til',
} as const;

export type IdKind = keyof typeof idPrefix;

/** The kinds of resources that callers name by id. */
const resourceKinds = [
  'client',
  'account',
  'transaction',
  'transfer',
  'hold',
  'key',
  'dead_letter',
  'approval',
  'batch',
  'webhook',
  'delivery',
  'till',
] as const satisfies IdKind[];

export type ResourceKind = (typeof resourceKinds)[number];

/** The names of fields and parameters that contain such an id, in bodies, paths, and filters. */
export type IdField = `${ResourceKind}_id`;

/** Returns what the field or parameter of this name identifies, if it contains such an id. */
export function kindFromField(name: IdField): ResourceKind;
export function kindFromField(name: string | undefined): ResourceKind | undefined;
export function kindFromField(name: string | undefined): ResourceKind | undefined {
  return name?.endsWith('_id') ? resourceKinds.find((kind) => kind === name.slice(0, -3)) : undefined;
}

const hex = /^[0-9a-f]{32}$/;

/**
 * Reports whether `value` has the form of an id of that kind. Any other value is treated as an unknown id, not
 * as an error.
 */
export function isId(kind: IdKind, value: string): boolean {
  return value.length === 36 && value.startsWith(`${idPrefix[kind]}_`) && hex.test(value.slice(4));
}

const subjectIds = /\b(?:acc|cli)_[0-9a-f]{32}\b/g;
/** Returns the ids of accounts and clients in a text, each once. Pure. */
export const subjectsIn = (text: string): string[] => [...new Set(text.match(subjectIds))];

/** Returns the 32 hex digits of an id. */
export function idBits(id: string): string {
  return id.slice(-32);
}

export function formatId(kind: IdKind, bits: string): string {
  return `${idPrefix[kind]}_${bits}`;
}

/**
 * Returns the bucket, 0-255, of a command's key (FNV-1a, folded). A command goes to partition `bucket %
 * partitions`.
 */
export function bucketForKey(key: string): number {
  let fnv = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) {
    fnv = Math.imul(fnv ^ key.charCodeAt(i), 0x01000193);
  }
  fnv ^= fnv >>> 16;
  return (fnv ^ (fnv >>> 8)) & 0xff;
}

/** Returns the bits with the bucket of `key` in the last byte. */
export function withBucket(bits: string, key: string): string {
  return inBucket(bits, bucketForKey(key));
}

/** Returns the bits with `bucket` in the last byte. */
export function inBucket(bits: string, bucket: number): string {
  return bits.slice(0, 30) + bucket.toString(16).padStart(2, '0');
}

/** Returns the bucket in the id of a transaction, transfer, hold, or batch. */
export function bucketOfId(id: string): number {
  return Number.parseInt(id.slice(-2), 16);
}

/** Returns the second id of a command that creates two: the bits with the top bit inverted. It is its own inverse. */
export function siblingBits(bits: string): string {
  const first = Number.parseInt(bits.charAt(0), 16) ^ 8;
  return first.toString(16) + bits.slice(1);
}

/** Returns the id of the transaction on the source account of a transfer. It has the transfer's bits. */
export function debitLegId(transferId: string): string {
  return formatId('transaction', idBits(transferId));
}

/** Returns the id of the transaction on the destination account of a transfer. */
export function creditLegId(transferId: string): string {
  return formatId('transaction', siblingBits(idBits(transferId)));
}

/** Returns the id of the transaction for the initial deposit of an account. There is at most one per account. */
export function openingTransactionId(accountId: string): string {
  return formatId('transaction', withBucket(idBits(accountId), accountId));
}

/** Returns the unique part of a transaction or transfer id: all but the routing hint. */
export function idKey(id: string): string {
  return id.slice(0, -2);
}

/**
 * Returns the bits of the id that an item of a batch creates. They are derived from the batch, so that every repeat and
 * every service uses the same id, and contain its bucket.
 */
export function itemBits(batchId: string, index: number): string {
  return hash('sha256', `item ${index} of ${idKey(batchId)}`).slice(0, 30) + batchId.slice(-2);
}

/** Returns the 128 bits under which a command's outcome is stored: its id without the routing hint. */
export function commandKey(messageId: string): string {
  return `${messageId.slice(-32, -2)}00`;
}

/** Returns the 128 bits under which the ledger stores that a command waits for an approval. */
export function approvalKey(messageId: string): string {
  return hash('sha256', `approval of ${commandKey(messageId)}`).slice(0, 32);
}

/** Returns the id of a command's audit record. Repeated deliveries produce the same id. */
export function auditId(messageId: string): string {
  return formatId('audit', hash('sha256', `audit ${messageId}`).slice(0, 32));
}

/** Returns the id of the event for a change of a hold. `change` is unique among the changes of the hold. */
export function holdEventId(holdId: string, change: string): string {
  return hash('sha256', `${holdId} ${change}`).slice(0, 32);
}

/**
 * Returns the id of a transfer's event, derived from the bits of its debit leg. It differs from the ids of both
 * transactions.
 */
export function transferEventId(bits: string): string {
  return hash('sha256', `transfer ${bits}${siblingBits(bits)}`).slice(0, 32);
}
