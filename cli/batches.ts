import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Bank, Batch, BatchSummary } from '../clients/typescript/index.ts';
import { money, parseDecimal } from './accounts.ts';
import { answer, callOptions, Failure, jsonOption, type Names, openBank, toNames, withNames } from './api.ts';
import { transactionLine, transferLine } from './postings.ts';

interface BatchOptions extends Names {
  atomic?: true;
  key: string;
  json?: true;
}

type Body = Parameters<Bank['createBatch']>[0];

/** `bank batch send|list|show`. */
export function addBatches(group: Command): void {
  withNames(group.command('send <file>'))
    .description('Send the items of a file (scopes transactions:write, transfers:write)')
    .option('--atomic', 'post all items or none, at most 500; by default, each item on its own')
    .requiredOption('--key <text>', 'Idempotency-Key: a file sent again with the same key is posted once')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The file is the JSON body of POST /batches, or only its array of items:
  [{"transfer": {"from_account_id": "acc_…", "to_account_id": "acc_…", "amount": 10.5, "description": "Rent"}},
   {"transaction": {"account_id": "acc_…", "transaction_type": "Deposit", "amount": 25}}]
The exit code is 1 if an item was refused.

Example:
  bank batch send salaries.json --atomic --key salaries-2026-01`,
    )
    .action(async (file: string, options: BatchOptions) => {
      const { mode = options.atomic ? 'atomic' : 'independent', ...body } = readBatch(file);
      if (options.atomic && mode !== 'atomic') throw new Failure(2, `--atomic: the mode in ${file} is ${mode}`);
      const { external_id = body.external_id, metadata = body.metadata } = toNames(options);
      showBatch(await openBank().createBatch({ ...body, mode, external_id, metadata }, callOptions(options)), options);
    });
  group
    .command('list')
    .description('List batches, newest first, at most 100: who, when, counts, and totals (scope transactions:read)')
    .option('--external-id <text>', 'only those with this identifier of yours')
    .addOption(jsonOption())
    .action(async ({ externalId: external_id, ...options }: { externalId?: string; json?: true }) => {
      const batches = await openBank().listBatches({ external_id }).toArray(100);
      answer(options, batches, ...(batches.length === 0 ? ['none'] : batches.map(batchLine)));
    });
  group
    .command('show <batch_id>')
    .description('Show the result of each item (scope transactions:read)')
    .addOption(jsonOption())
    .action(async (batch_id: string, options: { json?: true }) =>
      showBatch(await openBank().getBatch({ batch_id }), options),
    );
}

/** Returns the batch in the file. Refuses numbers that a double cannot represent unchanged. */
function readBatch(file: string): Omit<Body, 'mode'> & Partial<Pick<Body, 'mode'>> {
  try {
    const content = JSON.parse(readFileSync(file, 'utf8'), (_, value: unknown, context?: { source: string }) =>
      typeof value === 'number' ? parseDecimal(context?.source ?? '') : value,
    ) as Body | Body['items'];
    if (Array.isArray(content)) return { items: content };
    if (typeof content === 'object' && content !== null) return content;
    throw new Error('must be an array of items, or a body of POST /batches');
  } catch (error) {
    throw new Failure(2, `${file}: ${(error as Error).message}`);
  }
}

function batchLine({ batch_id, mode, status, counts, totals, created_at, actor, external_id }: BatchSummary): string {
  const { completed, failed, pending } = counts;
  const sums = totals.map(({ currency, amount }) => money(amount, currency)).join(', ') || 'nothing';
  const named = external_id === undefined ? '' : `  ${external_id}`;
  return `${batch_id}  ${created_at}  ${mode}  ${status}  ${completed} completed, ${failed} failed, ${pending} pending  ${sums}  ${actor}${named}`;
}

function showBatch(batch: Batch, options: { json?: true }): void {
  const { failed } = batch.counts;
  answer(
    options,
    batch,
    ...batch.results.map(({ index, status, transaction, transfer, error }) => {
      const made = transaction ? transactionLine(transaction) : transfer && transferLine(transfer);
      return `${String(index).padStart(3)}  ${made ?? status}${error ? `  ${error.code}: ${error.message}` : ''}`;
    }),
    batchLine(batch),
  );
  if (failed > 0) throw new Failure(1, `${failed} of ${batch.results.length} items were refused`);
}
