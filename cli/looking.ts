import { writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Bank } from '../clients/typescript/index.ts';
import { accountIdOf, money } from './accounts.ts';
import { Failure, jsonOption, moment, openBank, print, printJson } from './api.ts';
import { accountLine, clientLine } from './opening.ts';
import { transactionLine, transferLine } from './postings.ts';

/** `bank show`, `bank statement`: what there is. */
export function addLooking(program: Command): void {
  program
    .command('show <name>')
    .description('Show a client, an account (by id or number), a transaction or a transfer')
    .addOption(jsonOption())
    .addHelpText('after', '\nExamples:\n  bank show SAV-1234567897\n  bank show txn_…')
    .action(async (name: string, { json: asJson }: { json?: true }) => {
      const { data, lines } = await look(openBank(), name);
      if (asJson) return printJson(data);
      for (const line of lines) print(line);
    });

  program
    .command('statement <account>')
    .description('What was booked on an account, with the balance before and after (scope transactions:read)')
    .option('--from <time>', 'booked then or later (ISO 8601)', moment)
    .option('--to <time>', 'booked before then (ISO 8601)', moment)
    .addOption(jsonOption().conflicts('pdf'))
    .option('--pdf <file>', 'write it to that file, as a PDF of at most 2,000 entries')
    .addHelpText(
      'after',
      '\nExample:\n  bank statement SAV-1234567897 --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z',
    )
    .action(async (account: string, { from, to, json: asJson, pdf }: StatementOptions) => {
      const bank = openBank();
      const period = {
        account_id: await accountIdOf(bank, account),
        from: from?.toISOString(),
        to: to?.toISOString(),
      };
      if (pdf !== undefined) return writeStatement(pdf, await bank.getStatementPdf(period));
      const pages = bank.getStatement(period);
      let first: Awaited<ReturnType<typeof pages.toArray>>[number] | undefined;
      const entries = [];
      for await (const page of pages) {
        first ??= page;
        entries.push(...page.entries);
      }
      if (first === undefined) throw new Failure(3, 'the bank answered without a statement');
      if (asJson) return printJson({ ...first, entries });
      const { currency } = first;
      print(`${first.account_number}  from ${first.from ?? 'its opening'} to ${first.to ?? 'now'}`);
      print(`${'opening balance'.padEnd(62)} ${money(first.opening_balance, currency).padStart(22)}`);
      for (const line of entries) print(statementLine(line));
      print(`${'closing balance'.padEnd(62)} ${money(first.closing_balance, currency).padStart(22)}`);
    });
}

interface StatementOptions {
  from?: Date;
  to?: Date;
  json?: true;
  pdf?: string;
}

function writeStatement(path: string, file: Uint8Array): void {
  try {
    writeFileSync(path, file);
  } catch (error) {
    throw new Failure(2, (error as Error).message);
  }
}

type Line = Awaited<ReturnType<ReturnType<Bank['listEntries']>['toArray']>>[number];

function statementLine({
  created_at,
  direction,
  amount,
  currency,
  balance_after,
  transaction_type,
  description,
  counterparty_account_number,
}: Line): string {
  const signed = `${direction === 'credit' ? '+' : '-'}${money(amount, currency)}`;
  const what = [
    transaction_type,
    ...(counterparty_account_number === undefined ? [] : [counterparty_account_number]),
    ...(description ? [description] : []),
  ].join(' ');
  return `${created_at}  ${signed.padStart(20)}  ${money(balance_after, currency).padStart(20)}  ${what}`;
}

/** What has that id, or that account number. */
async function look(bank: Bank, name: string): Promise<{ data: object; lines: string[] }> {
  switch (name.slice(0, 4)) {
    case 'cli_': {
      const client = await bank.getClient({ client_id: name });
      const accounts = await bank.listAccounts({ client_id: name }).toArray(100);
      return { data: client, lines: [clientLine(client), ...accounts.map((account) => `  ${accountLine(account)}`)] };
    }
    case 'txn_': {
      const transaction = await bank.getTransaction({ transaction_id: name });
      return { data: transaction, lines: [transactionLine(transaction)] };
    }
    case 'trf_': {
      const transfer = await bank.getTransfer({ transfer_id: name });
      return { data: transfer, lines: [transferLine(transfer)] };
    }
    default: {
      const account = await bank.getAccount({ account_id: await accountIdOf(bank, name) });
      const latest = await bank.listTransactions({ account_id: account.account_id }).toArray(5);
      return {
        data: account,
        lines: [accountLine(account), ...latest.map((transaction) => `  ${transactionLine(transaction)}`)],
      };
    }
  }
}
