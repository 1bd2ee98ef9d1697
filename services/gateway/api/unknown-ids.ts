import { isId } from '#libs/contracts/ids.ts';
import type { Refused } from '../http/errors.ts';
import { quote, refuse } from '../http/errors.ts';

/** A malformed id is unknown (contract: Envelope, ids, time), so it is a 404 and no query is sent. */

const notFoundCodes = {
  client: 'client_not_found',
  account: 'account_not_found',
  transaction: 'transaction_not_found',
  transfer: 'transfer_not_found',
  hold: 'hold_not_found',
  key: 'api_key_not_found',
  deadLetter: 'dead_letter_not_found',
  approval: 'approval_not_found',
  batch: 'batch_not_found',
  webhook: 'webhook_not_found',
  delivery: 'delivery_not_found',
} as const;

export type ResourceKind = keyof typeof notFoundCodes;

const kinds = {
  client_id: 'client',
  account_id: 'account',
  transaction_id: 'transaction',
  transfer_id: 'transfer',
  hold_id: 'hold',
  key_id: 'key',
  dead_letter_id: 'deadLetter',
  approval_id: 'approval',
  batch_id: 'batch',
  webhook_id: 'webhook',
  delivery_id: 'delivery',
} as const satisfies Record<string, ResourceKind>;

export type IdName = keyof typeof kinds;

/** The resource that a parameter refers to, by the parameter's name. */
export const kindOfField: Record<IdName, ResourceKind> & Record<string, ResourceKind | undefined> = kinds;

const spoken: Partial<Record<ResourceKind, string>> = { key: 'API key', deadLetter: 'dead letter' };

export function notFound(kind: ResourceKind, id: string): Refused {
  return refuse(notFoundCodes[kind], `${spoken[kind] ?? kind} ${quote(id)} not found`);
}

export function numberNotFound(accountNumber: string): Refused {
  return refuse('account_not_found', `account number ${quote(accountNumber)} not found`);
}

/** Returns the id if it is well formed; otherwise throws its 404. */
export function knownForm(kind: ResourceKind, id: string | undefined): string {
  if (id === undefined || !isId(kind, id)) throw notFound(kind, id ?? '');
  return id;
}
