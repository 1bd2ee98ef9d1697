import { Argument, type Command, Option } from 'commander';
import type { Bank, Transaction, Transfer } from '../clients/typescript/index.ts';
import { accountIdOf, amountOf, money } from './accounts.ts';
import { jsonOption, openBank, print, printJson } from './api.ts';

interface PostingOptions {
  currency?: string;
  description?: string;
  reference?: string;
  externalId?: string;
  key?: string;
  json?: true;
}

const account = () => new Argument('<account>', 'its number, such as SAV-1234567897, or its id');
const amount = () => new Argument('<amount>', 'such as 250.75').argParser(amountOf);
const key = () => new Option('--key <text>', 'Idempotency-Key: the same command with the same key is done once');

/** `bank deposit|withdraw|transfer|reverse`: money. */
export function addPostings(program: Command): void {
  for (const [name, type, what] of [
    ['deposit', 'Deposit', 'Pay cash in'],
    ['withdraw', 'Withdrawal', 'Pay cash out'],
  ] as const) {
    common(
      program
        .command(name)
        .description(`${what} (scope transactions:write)`)
        .addArgument(account())
        .addArgument(amount()),
    )
      .option('--reference <text>', 'kept and searched for')
      .addHelpText('after', `\nExample:\n  bank ${name} SAV-1234567897 250.75 --description Cash`)
      .action(async (to: string, paid: number, options: PostingOptions) => {
        const bank = openBank();
        const transaction = await bank.createTransaction(
          {
            account_id: await accountIdOf(bank, to),
            transaction_type: type,
            amount: paid,
            ...fieldsOf(options),
            reference: options.reference,
          },
          callOf(options),
        );
        if (options.json) return printJson(transaction);
        print(transactionLine(transaction));
        await printBalance(bank, transaction.account_id);
      });
  }

  common(
    program
      .command('transfer')
      .description('Move money from one account to another (scope transfers:write)')
      .addArgument(account())
      .addArgument(new Argument('<to>', 'the other account'))
      .addArgument(amount()),
  )
    .addHelpText('after', '\nExample:\n  bank transfer SAV-1234567897 CHK-9876543217 100 --description Rent')
    .action(async (from: string, to: string, moved: number, options: PostingOptions) => {
      const bank = openBank();
      const [from_account_id, to_account_id] = await Promise.all([accountIdOf(bank, from), accountIdOf(bank, to)]);
      const transfer = await bank.createTransfer(
        { from_account_id, to_account_id, amount: moved, ...fieldsOf(options) },
        callOf(options),
      );
      if (options.json) return printJson(transfer);
      print(transferLine(transfer));
      await printBalance(bank, from_account_id);
    });

  program
    .command('reverse <id>')
    .description(
      'Undo a transaction, or a transfer (scope transactions:reverse); money is booked back, nothing is deleted',
    )
    .requiredOption('--reason <text>', 'why, for the record')
    .addOption(key())
    .addOption(jsonOption())
    .action(async (id: string, options: { reason: string } & PostingOptions) => {
      const bank = openBank();
      const transaction_id = id.startsWith('trf_') ? await legOf(bank, id) : id;
      const reversal = await bank.reverseTransaction({ transaction_id, reason: options.reason }, callOf(options));
      if (options.json) return printJson(reversal);
      print(transactionLine(reversal));
    });
}

function common(command: Command): Command {
  return command
    .option('--currency <code>', "refused where it is not the account's")
    .option('--description <text>', 'stands on the statement')
    .option('--external-id <text>', 'your own name for it')
    .addOption(key())
    .addOption(jsonOption());
}

const fieldsOf = ({ currency, description, externalId }: PostingOptions) => ({
  currency,
  description,
  external_id: externalId,
});
const callOf = ({ key: idempotencyKey }: PostingOptions) => (idempotencyKey === undefined ? {} : { idempotencyKey });

/** A transaction of the transfer; where there is none, the transfer's own refusal. */
async function legOf(bank: Bank, transfer_id: string): Promise<string> {
  const [leg] = await bank.listTransactions({ transfer_id }).toArray(1);
  if (leg === undefined) await bank.getTransfer({ transfer_id });
  return leg?.transaction_id ?? '';
}

async function printBalance(bank: Bank, account_id: string): Promise<void> {
  const { account_number, balance, currency } = await bank.getAccount({ account_id });
  print(`${account_number}  balance ${money(balance, currency)}`);
}

export function transactionLine(transaction: Transaction): string {
  const {
    transaction_id,
    status,
    transaction_type,
    direction,
    amount: paid,
    currency,
    description,
    created_at,
    reverses_transaction_id,
  } = transaction;
  const what =
    reverses_transaction_id === undefined
      ? transaction_type
      : `Reversal of ${transaction_type} ${reverses_transaction_id}`;
  return [
    transaction_id,
    created_at,
    status,
    what,
    `${direction} ${money(paid, currency ?? '')}`,
    ...(description ? [description] : []),
  ].join('  ');
}

export function transferLine({
  transfer_id,
  created_at,
  status,
  from_account_id,
  to_account_id,
  amount: moved,
  currency,
  description,
}: Transfer): string {
  return [
    transfer_id,
    created_at,
    status,
    `from ${from_account_id} to ${to_account_id}`,
    money(moved, currency ?? ''),
    ...(description ? [description] : []),
  ].join('  ');
}
