import { z } from 'zod';
import type { MessageContext } from './envelope.ts';
import { type IdKind, idPrefix } from './ids.ts';

/**
 * Fields of events, as narrow as what is published: a schema that refuses what the bank never sends
 * (docs/events-evolution.md).
 */

export const idField = (kind: IdKind) => z.string().regex(new RegExp(`^${idPrefix[kind]}_[0-9a-f]{32}$`));
export const entryId = z.string().regex(/^ent_[0-9a-f]{32}-[1-9]\d*$/);
export const positiveMoney = z.string().regex(/^(?!0+(\.0+)?$)\d+(\.\d+)?$/);
export const currencyCode = z.string().regex(/^[A-Z]{3}$/);
export const moment = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  .meta({ format: 'date-time' });
export const count = z.number().int().min(1);
/** Customers' accounts have the bank's own prefixes; one that was taken over has 4 to 20 digits. */
export const accountNumber = z.string().regex(/^(SAV|CHK|CUR|LOA)-\d{4,20}$/);

/** A word of which there may be more within a version: consumers take those that they do not know. */
export const openWord = z
  .string()
  .regex(/^\S.{0,39}$/)
  .meta({ $comment: 'open: take what you do not know' });

/**
 * A list that may grow within a version. What is published is one of it; a consumer that is older
 * than the list takes what it does not know.
 */
export function openList(values: readonly string[]) {
  return z
    .string()
    .regex(/^[a-z_]+$/)
    .meta({ enum: [...values], $comment: 'open: the list may grow within the version' });
}

/** In every event that is published since that release; older ones, which topics still have, lack it. */
export function since<S extends z.ZodType>(release: string, schema: S) {
  return schema.optional().meta({ $comment: `since ${release}` });
}

/** Why a posting can be refused. */
export const failureCodes = [
  'insufficient_funds',
  'inactive_account',
  'invalid_account_type',
  'currency_mismatch',
  'same_account',
  'amount_exceeds_outstanding',
  'balance_limit_exceeded',
  'destination_refused',
  'deadline_exceeded',
  'account_not_found',
] as const;

export const requestChannels = ['api_key', 'token', 'staff', 'system'] as const;

/** Who asked, and by which way: an API key, a token, a person of the bank, or nobody but the bank itself. */
export const asked = {
  actor: since('0.2.0', z.string().min(1)),
  request_channel: since('0.2.0', openList(requestChannels)),
};

/** The account's client and number. */
export const ownership = {
  client_id: since('0.2.0', idField('client')),
  account_number: since('0.2.0', accountNumber),
};

/** PURE: the members `asked` of an event that a command led to. */
export function askedBy({ actor, staff }: Pick<MessageContext, 'actor' | 'staff'>): {
  actor: string;
  request_channel: (typeof requestChannels)[number];
} {
  if (actor.startsWith('key:')) return { actor, request_channel: 'api_key' };
  if (!actor.startsWith('jwt:')) return { actor: actor || 'system', request_channel: 'system' };
  return { actor, request_channel: staff === 'true' ? 'staff' : 'token' };
}
