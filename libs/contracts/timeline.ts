import { z } from 'zod';
import { entrySchema, exampleEntry, exampleTellerId, exampleVaultId } from './entries.ts';
import { type EndpointRows, example, type Meanings, meaning, message, shown } from './subject.ts';
import { transactionSchema } from './transactions.ts';

/** The timeline of a transaction, from its request to its events. */

/** Everything recorded about one transaction, from its request to its events. */
export const timelineSchema = z
  .object({
    transaction: transactionSchema,
    request: z
      .object({
        request_id: z.string(),
        actor: z.string(),
        idempotency_key: z.string().nullable(),
        accepted_at: shown.time,
      })
      .meta({ id: 'TimelineRequest' }),
    /** The command that the ledger received: ce_id, topic without prefix, partition (a transfer to a hot account is in another). */
    command: z
      .object({ name: z.string(), id: z.string(), topic: z.string(), partition: z.number().int().min(0) })
      .meta({ id: 'TimelineCommand' }),
    /** null if the transaction was refused and nothing was posted. */
    booked_at: shown.time.nullable(),
    /** All entries of the operation, including those of the other party, Teller, and Vault. */
    entries: z.array(
      entrySchema.extend({ account_number: z.string(), account_type: z.string() }).meta({ id: 'TimelineEntry' }),
    ),
    /** `not_kept` if the outbox, which keeps published events for 24 hours, no longer has them. */
    events: z.array(
      z
        .object({
          ce_id: z.string(),
          type: z.string(),
          topic: z.string(),
          key: z.string().nullable(),
          state: z.enum(['waiting', 'published', 'not_kept']),
          recorded_at: shown.time.nullable(),
          published_at: shown.time.nullable(),
        })
        .meta({ id: 'TimelineEvent' }),
    ),
  })
  .meta({ id: 'Timeline' });
export type Timeline = z.infer<typeof timelineSchema>;

const timeline = {
  command: { name: 'create_transaction', id: example.ids.transaction },
  booked_at: example.time,
  entries: [
    { ...exampleEntry(exampleVaultId, 9, 'credit', 'DR'), account_number: 'VLT-USD/0', account_type: 'Vault' },
    { ...exampleEntry(exampleTellerId, 17, 'credit', 'DR'), account_number: 'TLR-USD/0', account_type: 'Teller' },
    { ...exampleEntry(exampleTellerId, 18, 'debit', 'CR'), account_number: 'TLR-USD/0', account_type: 'Teller' },
    exampleEntry(example.ids.account, 2, 'credit', 'CR'),
  ],
  events: [
    {
      topic: 'transactions',
      key: example.ids.account,
      state: 'published',
      recorded_at: example.time,
      published_at: example.time,
    },
  ],
};

export const timelineEndpoints = {
  get_timeline: {
    route: 'GET /admin/transactions/:transaction_id/timeline',
    summary: 'Get the timeline of a transaction: request, command, entries, events',
    scope: 'audit:read',
    alsoRequires: 'transactions:read',
    description:
      'Returns the entries of the whole operation, including those of Teller, Vault, and the other party. Events are included for as long as the outbox keeps them, 24 hours after publication.',
    answers: { deposit: timeline },
  },
} satisfies EndpointRows;

export const timelineMessages = {
  get_timeline: message.ledger.query({ transaction_id: message.id }, timelineSchema),
};

export const timelineMeanings = {
  fields: {
    'Timeline.entries': 'All entries of the operation, including those of the other party, Teller, and Vault',
    'Timeline.transaction': 'The transaction of the timeline',
    'TimelineCommand.name': 'The command that the ledger received',
    'TimelineCommand.id': 'Its ce_id',
    command: 'The command that the ledger received',
    booked_at: `When it was posted, ${meaning.utc}; null: it was refused`,
    events: 'The published events',
    accepted_at: `When the gateway accepted it, ${meaning.utc}`,
    'TimelineRequest.idempotency_key': 'Its Idempotency-Key; null: none',
    ce_id: 'Id of the event, as in its header ce_id',
    type: 'Type of the event, such as corebanking.transaction.completed.v1',
    'TimelineEvent.state': 'waiting: not yet published; published; not_kept: too old, so that the bank no longer knows',
    recorded_at: `When it was written to the database, ${meaning.utc}; null: unknown`,
    published_at: `When it was published, ${meaning.utc}; null: not yet, or unknown`,
  },
} satisfies Meanings;
