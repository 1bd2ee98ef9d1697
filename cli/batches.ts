import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Bank, Batch, BatchSummary } from '../clients/typescript/index.ts';
import { money, parseAmount } from './accounts.ts';
import { answer, callOptions, Failure, jsonOption, type Names, openBank, toNames, withNames } from './api.ts';
import { transactionLine, transferLine } from './postings.ts';

interface BatchOptions extends Names {
  atomic?: true;
  key: string;
  json?: true;
}

type Items = Parameters<Bank['createBatch']>[0]['items'];

/** `bank batch send|list|show`. */
export function addBatches(program: Command): void {
  const group = program.command('batch').description('Batches: up to 1,000 transactions and transfers in one request');
  withNames(group.command('send <file>'))
    .description('Send the items of a file (scopes transactions:write, transfers:write)')
    .option('--atomic', 'post all items or none, at most 500; by default, each item on its own')
    .requiredOption('--key <text>', 'Idempotency-Key: a file sent again with the same key is posted once')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The file is a JSON array of items as in POST /batches:
  [{"transfer": {"from_account_id": "acc_…", "to_account_id": "acc_…", "amount": 10.5, "description": "Rent"}},
   {"transaction": {"account_id": "acc_…", "transaction_type": "Deposit", "amount": 25}}]
The exit code is 1 if an item was refused.

Example:
  bank batch send salaries.json --atomic --key salaries-2026-01`,
    )
    .action(async (file: string, options: BatchOptions) => {
      const mode = options.atomic ? 'atomic' : 'independent';
      showBatch(
        await openBank().createBatch({ mode, items: itemsIn(file), ...toNames(options) }, callOptions(options)),
        options,
      );
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

/** Returns the items of the file. Refuses numbers that a double cannot represent unchanged. */
function itemsIn(file: string): Items {
  try {
    return JSON.parse(readFileSync(file, 'utf8'), (_, value: unknown, context?: { source: string }) =>
      typeof value === 'number' ? parseAmount(context?.source ?? '') : value,
    ) as Items;
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
