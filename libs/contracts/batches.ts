import { z } from 'zod';
import { refusalSchema } from './errors.ts';
import { fromMinor, money, toMinor } from './money.ts';
import type { Names } from './names.ts';
import { externalId, givenNames, shownNames } from './names.ts';
import { type EndpointRows, event, example, field, type Meanings, meaning, message, shown } from './subject.ts';
import { transactionBody, transactionData, transactionSchema, transactionStatus } from './transactions.ts';
import { transferBody, transferData, transferSchema } from './transfers.ts';

/** Batches (contract: batches): many postings in one request, each alone or all or none. */

export const batchMode = z.enum(['independent', 'atomic']);
export type BatchMode = z.infer<typeof batchMode>;

/**
 * The result of one item of a batch. If it has neither transaction nor transfer, the item is Pending and the
 * result was read by a later request.
 */
const itemResultSchema = z
  .object({
    index: z.number().int().min(0).max(999),
    status: transactionStatus,
    transaction: transactionSchema.optional(),
    transfer: transferSchema.optional(),
    /** The error that the item would have returned if it had been sent alone. */
    error: refusalSchema.optional(),
  })
  .meta({ id: 'BatchResult' });
export type ItemResult = z.infer<typeof itemResultSchema>;

/** A batch without its results, as in a list. */
export const batchSummarySchema = z
  .object({
    batch_id: z.string(),
    mode: batchMode,
    /** Pending while any item is Pending. Refused: a batch of which nothing was executed, which only the list shows. */
    status: z.enum(['Completed', 'Pending', 'Refused']),
    counts: z
      .object({
        completed: z.number().int().min(0).max(1000),
        failed: z.number().int().min(0).max(1000),
        pending: z.number().int().min(0).max(1000),
      })
      .meta({ id: 'BatchCounts' }),
    /** The sums of the Completed items, by currency. */
    totals: z.array(z.object({ currency: z.string(), amount: money }).meta({ id: 'BatchTotal' })),
    actor: z.string(),
    created_at: shown.time,
    ...shownNames,
  })
  .meta({ id: 'BatchSummary' });
export type BatchSummary = z.infer<typeof batchSummarySchema>;

export const batchSchema = batchSummarySchema
  .extend({
    /** In the order of the items. */
    results: z.array(itemResultSchema),
  })
  .meta({ id: 'Batch' });
export type Batch = z.infer<typeof batchSchema>;

/** What a batch has before any of its items is decided. */
export type BatchHead = Pick<BatchSummary, 'batch_id' | 'mode' | 'actor' | 'created_at'> & Names;

/** Returns the batch with these results, which are in the order of its items. Pure. */
export function buildBatch(head: BatchHead, results: ItemResult[]): Batch {
  const count = (status: ItemResult['status']): number => results.filter((result) => result.status === status).length;
  const counts = { completed: count('Completed'), failed: count('Failed'), pending: count('Pending') };
  return { ...head, status: batchStatus(counts), counts, totals: sumTotals(results), results };
}

/** Returns the status of a batch that was not refused. Pure. */
export function batchStatus({ pending }: BatchSummary['counts']): BatchSummary['status'] {
  return pending === 0 ? 'Completed' : 'Pending';
}

function sumTotals(results: ItemResult[]): BatchSummary['totals'] {
  const sums = new Map<string, bigint>();
  for (const { status, transaction, transfer } of results) {
    const { amount = '0', currency = null } = transfer ?? transaction ?? {};
    const minor = status === 'Completed' && currency !== null ? toMinor(amount, currency) : undefined;
    if (typeof minor === 'bigint' && currency !== null) sums.set(currency, (sums.get(currency) ?? 0n) + minor);
  }
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([currency, minor]) => ({ currency, amount: fromMinor(minor, currency) }));
}

/** The maximum number of items in a batch, also in atomic mode, which uses one database transaction. */
const maxItems = 1000;
const maxAtomicItems = 500;

/**
 * Whether source and destination are the same account is decided per item. A validation rule would refuse the whole
 * batch.
 */
const itemBody = z
  .strictObject({ transaction: transactionBody.optional(), transfer: transferBody.optional() })
  .check(
    z.refine((body) => (body.transaction === undefined) !== (body.transfer === undefined), {
      error: 'must be either a transaction or a transfer',
      when: ({ issues }) => issues.length === 0,
    }),
  )
  .meta({ minProperties: 1, maxProperties: 1 })
  .meta({ id: 'BatchItem' });

const listFilters = z.strictObject({
  external_id: externalId.optional(),
  actor: z.string().max(1000).optional(),
  from: field.time.optional(),
  to: field.time.optional(),
  ...field.page,
});

/** Of a file of payments: its hash could be the external_id. */
const names = { external_id: 'wages-2026-01', metadata: { file_name: 'wages.csv' } };
const summary = { counts: { pending: 0 }, ...names };
const posted = { index: 0, transaction: { batch_id: example.ids.batch } };
const refused = {
  status: 'Failed',
  transfer: { status: 'Failed', batch_id: example.ids.batch, failure_code: 'insufficient_funds' },
  error: {
    code: 'insufficient_funds',
    message: `Insufficient Funds: the available balance of source account ${example.ids.account} is too low for this transfer`,
    details: { transaction_id: example.ids.transaction },
  },
};
const completed = { ...summary, results: [posted, refused] };
const pending = { ...names, status: 'Pending', counts: { failed: 0 }, results: [posted, { status: 'Pending' }] };

export const batchEndpoints = {
  create_batch: {
    route: 'POST /batches',
    summary: 'Post up to 1,000 transactions and transfers in one request',
    scope: ['transactions:write', 'transfers:write'],
    body: z
      .strictObject({
        mode: batchMode,
        items: z.array(itemBody).min(1, 'must have at least one item').max(maxItems),
        ...givenNames,
      })
      .check(
        field.rule(
          'validation_failed',
          'items',
          `must have at most ${maxAtomicItems} items in atomic mode`,
          ({ mode, items }) => mode !== 'atomic' || !Array.isArray(items) || items.length <= maxAtomicItems,
        ),
      ),
    bodyLimit: 1024 * 1024,
    needsKey: true,
    description:
      'Requires `transactions:write` if there are transactions and `transfers:write` if there are transfers. An invalid item fails the whole batch before anything is executed; the error names it (`items[3].transfer.amount`). ' +
      '`independent`: each item is decided as if sent alone. Items without an outcome within 5 s are Pending; get the batch later. ' +
      '`atomic`: at most 500 items, decided in order in one database transaction. If one is refused, nothing is posted (`batch_refused`, naming every refused item).',
    result: batchSchema,
    errors: [
      ...field.moneyErrors,
      'invalid_transaction_type',
      'insufficient_scope',
      'account_not_found',
      'batch_refused',
      'missing_idempotency_key',
      'approval_required',
    ],
    requests: {
      independent: { items: [{ transaction: {} }, { transfer: {} }], ...names },
      atomic: { mode: 'atomic', items: [{ transfer: {} }] },
    },
    answers: { completed, pending },
  },
  list_batches: {
    route: 'GET /batches',
    summary: 'List batches',
    scope: 'transactions:read',
    query: listFilters,
    description:
      'Who sent each batch and when, how many of its items were posted, and their totals. A caller bound to a client sees only the batches of its own client. By an `actor` that is an API key, and without `external_id`, the list has no index: a caller may run two such lists at a time, and eight more wait for up to 3 s; beyond that, 429.',
    shape: 'page',
    answers: { completed: summary },
  },
  get_batch: {
    route: 'GET /batches/:batch_id',
    summary: 'Get the results of a batch',
    scope: 'transactions:read',
    description: 'A refused atomic batch returns the same error as its request.',
    errors: ['batch_refused', 'deadline_exceeded', 'idempotency_key_reused'],
    answers: { completed, pending },
  },
} satisfies EndpointRows;

const finishedBatch = batchSummarySchema.omit({ actor: true }).extend({
  batch_id: event.idField('batch'),
  status: z
    .enum(['Completed', 'Refused'])
    .describe('Completed: every item is decided; Refused: a batch of which nothing was executed'),
  counts: event
    .named('BatchCounts', batchSummarySchema.shape.counts.omit({ pending: true }))
    .describe('The number of items by outcome'),
  totals: z
    .array(event.named('BatchTotal', z.object({ currency: event.currencyCode, amount: event.positiveMoney })))
    .describe('The sums of the items that were posted, by currency'),
  created_at: event.moment,
});

export const batchEvents = {
  'corebanking.batch.completed.v1': event.ledgerRow('batches', {
    summary:
      'Every item of a batch is decided, whatever the results, or an atomic batch was refused. The transactions of its items have its batch_id',
    fields: {
      batch: event.named('Batch', finishedBatch).describe('The batch'),
      client_id: event.idField('client').nullable().describe('The client to which its caller is bound; null: none'),
      ...event.asked,
    },
    example: { batch: { counts: { completed: 2, failed: 0 } } },
  }),
};

const item = z.union([
  z.object({ transaction: transactionData.omit({ transaction_id: true }) }),
  z.object({ transfer: transferData.omit({ transfer_id: true }) }),
]);
const batchMessageSchema = z.object({
  batch_id: message.id,
  mode: batchMode,
  items: z.array(item).min(1).max(maxItems),
  ...givenNames,
});

export const batchMessages = {
  /** The id of each item is derived from its index and the batch's id (`itemBits` in ids.ts). */
  create_batch: message.command('ledger.batches', batchMessageSchema, z.object({ results: z.array(itemResultSchema) })),
  get_batch: message.ledger.query({ batch_id: message.id }, batchSchema),
  list_batches: message.ledger.query(message.listRequest(listFilters), message.pageSchema(batchSummarySchema)),
};

export const batchMeanings = {
  fields: {
    batch_id: `The batch: \`bat_\` and 32 hexadecimal digits; in a posting, the batch that contained it`,
    'BatchItem.transaction': 'A deposit or withdrawal, as in POST /transactions',
    'BatchItem.transfer': 'A transfer, as in POST /transfers',
    'BatchResult.transaction': 'The transaction of a deposit or withdrawal',
    'BatchResult.transfer': 'The transfer',
    mode: 'independent: each item is decided as if sent alone; atomic: all items are applied, or none',
    'list_batches.from': 'Accepted at or after this time: ISO 8601 date or time; a date means midnight UTC',
    'list_batches.to': 'Accepted before this time: ISO 8601 date or time; a date means midnight UTC',
    items: 'The items, in order; at most 500 in atomic mode',
    'Batch.status': 'Pending while any item is Pending, then Completed, whatever the results',
    'BatchSummary.status':
      'Pending while any item is Pending; Refused: a batch of which nothing was executed; otherwise Completed, whatever the results',
    'BatchTotal.amount': `The sum, ${meaning.inUnits}`,
    'BatchResult.status': 'The status of the item',
    counts: 'The number of items by status',
    completed: 'Number of items that were posted',
    failed: 'Number of items that were refused',
    pending: 'Number of items that are not yet decided',
    results: 'One result per item, in order',
    index: 'Position of the item in the request, from 0',
    error: 'Why the item is Failed: the error that it would have returned if sent alone',
  },
  errors: {
    batch_refused: {
      meaning: 'An item of an atomic batch was refused, so nothing was posted; `errors` lists the refused items.',
      action: 'Correct or remove them, and retry with a new Idempotency-Key.',
      example: [
        `1 of 2 items were refused, and nothing was posted; items[1].transfer: Insufficient Funds: the available balance of source account ${example.ids.account} is too low for this transfer`,
        {
          errors: [
            {
              field: 'items[1].transfer',
              code: 'insufficient_funds',
              message: `Insufficient Funds: the available balance of source account ${example.ids.account} is too low for this transfer`,
            },
          ],
          details: { batch_id: example.ids.batch },
        },
      ],
    },
    batch_not_found: meaning.notFound('batch', example.ids.batch),
  },
} satisfies Meanings;
