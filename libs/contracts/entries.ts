import { z } from 'zod';
import { eventDay, shownDay } from './days.ts';
import { money } from './money.ts';
import { event, example, shown } from './subject.ts';

/** Entries (contract: double-entry): what an operation debits and credits. */

export const direction = z.enum(['debit', 'credit']);
const side = z.enum(['DR', 'CR']);

export type Direction = z.infer<typeof direction>;
export type Side = z.infer<typeof side>;

export const entrySchema = z
  .object({
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
    created_at: shown.time,
    ...shownDay,
  })
  .meta({ id: 'Entry' });
export type Entry = z.infer<typeof entrySchema>;

/** The classes of accounts in the general ledger. */
const accountClasses = ['liability', 'asset'] as const;
export type AccountClass = (typeof accountClasses)[number];

/**
 * An entry without balance_after: the balance of the event's own account is a field of the event, and balances of other
 * accounts must not be disclosed. It says what its account is, because no other topic has Teller and Vault.
 */
export const eventEntry = entrySchema.omit({ balance_after: true }).extend({
  ...eventDay,
  created_at: event.moment,
  entry_id: event.entryId,
  operation_id: event.idField('operation'),
  transaction_id: event.idField('transaction'),
  account_id: event.idField('account'),
  sequence: event.count,
  amount: event.positiveMoney,
  currency: event.currencyCode,
  account_type: event
    .since('1.0.0', event.openWord)
    .describe('Savings, Checking, Current, Loan, Teller, or Vault; more may be added'),
  account_class: event
    .since('1.0.0', event.openList(accountClasses))
    .describe('The class of the account in the general ledger, from which side follows'),
});

/** What the example of an entry on this account says. */
export function exampleEntry(account_id: string, sequence: number, direction: Direction, side: Side) {
  return { entry_id: `ent_${account_id.slice(4)}-${sequence}`, account_id, sequence, direction, side };
}

export const [exampleTellerId, exampleVaultId] = [`acc_${example.bits(9)}`, `acc_${example.bits(8)}`];
