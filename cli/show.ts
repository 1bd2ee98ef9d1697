import { rename, rm, writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import type { Bank } from '../clients/typescript/index.ts';
import { money, resolveAccountId } from './accounts.ts';
import { answer, day, Failure, jsonOption, moment, openBank, openFileBank, print, printJson, say } from './api.ts';
import { holdLine } from './holds.ts';
import { accountLine, clientLine } from './opening.ts';
import { transactionLine, transferLine } from './postings.ts';

/** `bank show`. */
export function addShow(command: Command): void {
  command
    .argument('<name>')
    .addOption(jsonOption())
    .addHelpText('after', '\nExamples:\n  bank show SAV-1234567897\n  bank show txn_…')
    .action(async (name: string, options: { json?: true }) => {
      const { data, lines } = await look(openBank(), name);
      answer(options, data, ...lines);
    });
}

/** `bank balance`. */
export function addBalance(command: Command): void {
  command
    .argument('<account>')
    .option('--at <time>', 'the balance after the last entry posted before this time (ISO 8601)', moment)
    .addOption(
      new Option('--on <date>', 'the balance by value date at the end of this day').argParser(day).conflicts('at'),
    )
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank balance SAV-1234567897 --at 2026-01-31T00:00:00Z')
    .action(async (account: string, options: { at?: Date; on?: string; json?: true }) => {
      const bank = openBank();
      const account_id = await resolveAccountId(bank, account);
      const found = await bank.getAccountBalance({ account_id, at: options.at?.toISOString(), on: options.on });
      const { account_number, balance, available_balance, currency, at, on, sequence } = found;
      const available = available_balance === undefined ? [] : [`available ${money(available_balance, currency)}`];
      const after = sequence === undefined ? [] : [`after entry ${sequence}`];
      const line = [account_number, on ?? at, `balance ${money(balance, currency)}`, ...available, ...after];
      answer(options, found, line.join('  '));
    });
}

/** `bank statement`. */
export function addStatement(command: Command): void {
  command
    .argument('<account>')
    .option('--from <time>', 'start of the period, inclusive (ISO 8601)', moment)
    .option('--to <time>', 'end of the period, exclusive (ISO 8601)', moment)
    .addOption(
      new Option('--on <date>', 'instead: this day by value date, which has ended')
        .argParser(day)
        .conflicts(['from', 'to']),
    )
    .addOption(jsonOption().conflicts(['html', 'camt']))
    .addOption(new Option('--html <file>', 'write a page made for paper, at most 10,000 entries').conflicts('camt'))
    .option('--camt <file>', 'write ISO 20022 camt.053 of the day --on, for accounting software')
    .addHelpText(
      'after',
      '\nExamples:\n  bank statement SAV-1234567897 --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z\n  bank statement SAV-1234567897 --on 2026-01-31 --camt statement.xml',
    )
    .action(async (account: string, { from, to, on, json, html, camt }: StatementOptions) => {
      const bank = openBank();
      const account_id = await resolveAccountId(bank, account);
      if (camt !== undefined) {
        if (on === undefined) throw new Failure(2, '--camt is the statement of one day: give --on <date> too');
        return writeStatement(camt, openFileBank().getStatementXml({ account_id, on }));
      }
      const period = { account_id, from: from?.toISOString(), to: to?.toISOString(), on };
      if (html !== undefined) return writeStatement(html, await bank.getStatementHtml(period));
      if (json) {
        const [first, ...rest] = await bank.getStatement(period).toArray();
        return printJson({ ...first, entries: [first, ...rest].flatMap((page) => page?.entries ?? []) });
      }
      let closing = '';
      for await (const page of bank.getStatement(period)) {
        const { account_number, currency, opening_balance, closing_balance, entries } = page;
        if (closing === '') {
          print(`${account_number}  ${on ?? `from ${page.from ?? 'its opening'} to ${page.to ?? 'now'}`}`);
          print(`${'opening balance'.padEnd(48)}${money(opening_balance, currency).padStart(20)}`);
        }
        closing ||= money(closing_balance, currency);
        for (const line of entries) print(statementLine(line));
      }
      print(`${'closing balance'.padEnd(48)}${closing.padStart(20)}`);
    });
}

interface StatementOptions {
  from?: Date;
  to?: Date;
  on?: string;
  json?: true;
  html?: string;
  camt?: string;
}

async function writeStatement(path: string, page: string | AsyncIterable<Uint8Array>): Promise<void> {
  // A file that breaks off must not look like a whole one.
  const part = `${path}.part`;
  try {
    await writeFile(part, page);
    await rename(part, path);
    say(`written to ${path}`);
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    throw error instanceof Error && 'syscall' in error ? new Failure(2, error.message) : error;
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

/** Returns the resource with that id or account number. */
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
    case 'hld_': {
      const hold = await bank.getHold({ hold_id: name });
      return { data: hold, lines: [holdLine(hold)] };
    }
    default: {
      const account = await bank.getAccount({ account_id: await resolveAccountId(bank, name) });
      const latest = await bank.listTransactions({ account_id: account.account_id }).toArray(5);
      return {
        data: account,
        lines: [accountLine(account), ...latest.map((transaction) => `  ${transactionLine(transaction)}`)],
      };
    }
  }
}
