import { z } from 'zod';
import { idField } from './event-fields.ts';
import type { pageParameters } from './fields.ts';
import { isCurrency, maxDecimalLength } from './money.ts';
import type { TopicName } from './topics.ts';

/** Fields of commands and queries, and the makers of their rows in the messages table (messages.ts). */

/** An id that the sender has made or looked up. */
export const id = z.string().max(64);
/** Ids supplied by callers. The gateway does not look them up; an unknown id is stored as requested. */
export const [accountId, transactionId, holdId] = [idField('account'), idField('transaction'), idField('hold')];
export const text = z.string().nullable();
export const time = z.string();
/** Amounts that the gateway accepts: plain, non-negative decimals. */
export const amount = z
  .string()
  .max(maxDecimalLength)
  .regex(/^\d+(\.\d+)?$/)
  .regex(/[1-9]/);
export const amountOrZero = z
  .string()
  .max(maxDecimalLength)
  .regex(/^\d+(\.\d+)?$/);
export const currency = z.string().refine(isCurrency);

/** A position in a list: the row after which the next page starts. */
export const position = z.object({ at: z.string(), id: z.string() });
export type Position = z.infer<typeof position>;

export const page = {
  limit: z.number().int().min(1).max(500),
  order: z.enum(['asc', 'desc']),
  after: position.optional(),
};

/** The filters of a list, which accept what they return when parsed again, and the page of the message. */
export function listRequest<S extends typeof pageParameters.shape>({ shape }: z.ZodObject<S>) {
  const { limit: _limit, order: _order, cursor: _cursor, ...filters } = shape;
  return { ...filters, ...page };
}

export function pageSchema<T extends z.ZodType>(item: T) {
  return z.object({ items: z.array(item), next: position.optional() });
}

/** `complete` is set for searches only (searches.ts). False if the page ended because the scan limit was reached. */
export function searchedPageSchema<T extends z.ZodType>(item: T) {
  return pageSchema(item).extend({ complete: z.boolean().optional() });
}

export function command<T extends TopicName, D extends z.ZodType, R extends z.ZodType>(topic: T, data: D, result: R) {
  return { kind: 'command' as const, topic, data, result };
}

/** The commands and queries of a service whose data are objects with these fields, on its own two topics. */
function defineMessages<S extends 'accounts' | 'ledger' | 'webhooks'>(service: S) {
  return {
    command: <D extends z.ZodRawShape, R extends z.ZodType>(data: D, result: R) =>
      command(`${service}.commands` as const, z.object(data), result),
    query: <D extends z.ZodRawShape, R extends z.ZodType>(data: D, result: R) => {
      return { kind: 'query' as const, topic: `${service}.queries` as const, data: z.object(data), result };
    },
  };
}
export const [accounts, ledger, webhooks] = [
  defineMessages('accounts'),
  defineMessages('ledger'),
  defineMessages('webhooks'),
];
