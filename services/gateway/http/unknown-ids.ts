import { notFoundCode } from '#libs/contracts/errors.ts';
import { type IdField, isId, kindFromField, type ResourceKind } from '#libs/contracts/ids.ts';
import { quote, type Refused, refuse } from './errors.ts';

/** A malformed id is unknown (contract: envelope-10), so it is a 404 and no query is sent. */

export function notFound(kind: ResourceKind, id: string): Refused {
  const spoken = kind === 'key' ? 'API key' : kind.replace('_', ' ');
  return refuse(notFoundCode(kind), `${spoken} ${quote(id)} not found`);
}

export function numberNotFound(accountNumber: string): Refused {
  return refuse('account_not_found', `account number ${quote(accountNumber)} not found`);
}

/** Returns the id if it is well formed; otherwise throws its 404. */
export function knownForm(kind: ResourceKind, id: string | undefined): string {
  if (id === undefined || !isId(kind, id)) throw notFound(kind, id ?? '');
  return id;
}

/** Returns the id in the path parameter of this name. Throws the 404 of its resource if it is malformed. */
export function pathId(name: IdField, params: Record<string, string>): string {
  return knownForm(kindFromField(name), params[name]);
}
