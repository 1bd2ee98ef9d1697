import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Bank, Batch } from '../clients/typescript/index.ts';
import { amountOf } from './accounts.ts';
import { answer, callOf, Failure, jsonOption, openBank } from './api.ts';
import { transactionLine, transferLine } from './postings.ts';

interface BatchOptions {
  atomic?: true;
  key: string;
  json?: true;
}

type Items = Parameters<Bank['createBatch']>[0]['items'];

/** `bank batch send|show`. */
export function addBatches(program: Command): void {
  const group = program.command('batch').description('Batches: up to 1,000 transactions and transfers in one request');
  group
    .command('send <file>')
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
      showBatch(await openBank().createBatch({ mode, items: itemsIn(file) }, callOf(options)), options);
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
      typeof value === 'number' ? amountOf(context?.source ?? '') : value,
    ) as Items;
  } catch (error) {
    throw new Failure(2, `${file}: ${(error as Error).message}`);
  }
}

function showBatch(batch: Batch, options: { json?: true }): void {
  const { completed, failed, pending } = batch.counts;
  answer(
    options,
    batch,
    ...batch.results.map(({ index, status, transaction, transfer, error }) => {
      const made = transaction ? transactionLine(transaction) : transfer && transferLine(transfer);
      return `${String(index).padStart(3)}  ${made ?? status}${error ? `  ${error.code}: ${error.message}` : ''}`;
    }),
    `${batch.batch_id}  ${batch.mode}  ${batch.status}  ${completed} completed, ${failed} failed, ${pending} pending`,
  );
  if (failed > 0) throw new Failure(1, `${failed} of ${batch.results.length} items were refused`);
}
