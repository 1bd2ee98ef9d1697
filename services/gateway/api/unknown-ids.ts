import { notFoundCodes } from '#libs/contracts/errors.ts';
import { type IdField, idFields, isId, isIdField } from '#libs/contracts/ids.ts';
import { quote, type Refused, refuse } from '../http/errors.ts';

/** A malformed id is unknown (contract: Envelope, ids, time), so it is a 404 and no query is sent. */

type ResourceKind = keyof typeof notFoundCodes;

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

/** Returns the id in the path parameter of this name. Throws the 404 of its resource if it is malformed. */
export function pathId(name: IdField, params: Record<string, string>): string {
  return knownForm(idFields[name], params[name]);
}

/** Returns what the field or parameter of this name identifies, if it contains an id. */
export function kindOf(name: string | undefined): ResourceKind | undefined {
  return name !== undefined && isIdField(name) ? idFields[name] : undefined;
}
