import type { ErrorCode, Refusal } from './errors.ts';
import { ids } from './examples.ts';

/** What the generated documents say about the fields and errors of a subject. */
export interface Meanings {
  /**
   * The meaning, unit, and form of fields and parameters of REST. An entry applies to all resources that have the
   * field; `Owner.name` overrides it for one owner (a resource, an operation, or an enclosing field). A `meta`
   * description in the zod schema takes precedence.
   */
  fields: Record<string, string>;
  /** The fields of events whose meaning is not that of REST. A field has the same meaning in every event. */
  eventFields?: Record<string, string>;
  errors?: { [Code in ErrorCode]?: ErrorMeaning };
}

/** What an error means, what the caller should do, and an example of its message and details. */
export interface ErrorMeaning {
  meaning: string;
  action: string;
  example: [message: string, rest?: Pick<Refusal, 'errors' | 'details'>];
}

/** In the example of an error of a posting. */
export const refusedTransaction = { details: { transaction_id: ids.transaction } };

/** Phrases of meanings. */
export const utc = 'ISO 8601 in UTC with three decimals';
export const inUnits = 'in units of the currency, with at most its decimal places';
export const opaque = 'an opaque string assigned by the bank';
export const actorForms = '`key:<family of the API key>`, `jwt:<issuer>|<subject>` or `system…`';
/** Of a posting. */
export const postingCurrency =
  'ISO 4217 code in upper case; null if the request named none and that of the account is not known: while Pending, or because the account does not exist';

export function invalidExample(field: string, code: ErrorCode, rule: string): ErrorMeaning['example'] {
  return [`${field} ${rule}`, { errors: [{ field, code, message: `${field} ${rule}` }] }];
}

/** Of a resource that callers name by its id. */
export const notFound = (resource: string, id: string): ErrorMeaning => ({
  meaning: `The ${resource} does not exist, or is not visible to this caller.`,
  action: 'Correct the id.',
  example: [`${resource} ${id} not found`],
});
