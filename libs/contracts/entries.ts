import { z } from 'zod';
import { money } from './money.ts';
import { event, example } from './subject.ts';

/** Entries (contract: double-entry): what an operation debits and credits. */

export const direction = z.enum(['debit', 'credit']);
const side = z.enum(['DR', 'CR']);

export type Direction = z.infer<typeof direction>;
export type Side = z.infer<typeof side>;

export const entrySchema = z.object({
  entry_id: z.string(),
  operation_id: z.string(),
  transaction_id: z.string(),
  account_id: z.string(),
  sequence: z.number().int().min(1),
  direction,
  side,
  amount: money,
  currency: z.string(),
  balance_after: money,
  created_at: z.string(),
});
export type Entry = z.infer<typeof entrySchema>;

/**
 * An entry without balance_after: the balance of the event's own account is a field of the event, and balances of other
 * accounts must not be disclosed.
 */
export const eventEntry = entrySchema.omit({ balance_after: true }).extend({
  created_at: event.moment,
  entry_id: event.entryId,
  operation_id: event.idField('operation'),
  transaction_id: event.idField('transaction'),
  account_id: event.idField('account'),
  sequence: event.count,
  amount: event.positiveMoney,
  currency: event.currencyCode,
});

/** Returns the entry of an operation on an account. */
export function exampleEntry(
  on: string,
  sequence: number,
  direction: 'debit' | 'credit',
  side: 'DR' | 'CR',
  balance_after: number,
) {
  return {
    entry_id: `ent_${on.slice(4)}-${sequence}`,
    operation_id: `opr_${example.bits()}`,
    transaction_id: example.ids.transaction,
    account_id: on,
    sequence,
    direction,
    side,
    amount: 25,
    currency: 'USD',
    balance_after,
    created_at: '2026-01-02T03:04:05.690Z',
  };
}
export const exampleOwnEntry = exampleEntry(example.ids.account, 2, 'credit', 'CR', 125.5);

/** Returns an entry in an event. */
export const exampleEventEntry = (
  account: string,
  sequence: number,
  direction: 'debit' | 'credit',
  side: 'DR' | 'CR',
) => ({
  entry_id: `ent_${account.slice(4)}-${sequence}`,
  account_id: account,
  sequence,
  direction,
  side,
  operation_id: `opr_${example.bits()}`,
  transaction_id: example.ids.transaction,
  amount: '25.00',
  currency: 'USD',
  created_at: example.changedAt,
});
