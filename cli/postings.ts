import { Argument, type Command } from 'commander';
import { type Bank, BankError, NoAnswerError, type Transaction, type Transfer } from '../clients/typescript/index.ts';
import { accountIdOf, amountOf, money } from './accounts.ts';
import { answer, callOf, jsonOption, keyOption, type Names, namesOf, openBank, withNames } from './api.ts';

interface PostingOptions extends Names {
  currency?: string;
  description?: string;
  reference?: string;
  key?: string;
  json?: true;
}

const account = () => new Argument('<account>', 'its number, such as SAV-1234567897, or its id');
const amount = () => new Argument('<amount>', 'such as 250.75').argParser(amountOf);

/** `bank deposit|withdraw|transfer|reverse`: money. */
export function addPostings(program: Command): void {
  for (const [name, transaction_type, what] of [
    ['deposit', 'Deposit', 'Pay cash in'],
    ['withdraw', 'Withdrawal', 'Pay cash out'],
  ] as const) {
    common(program.command(name).addArgument(account()).addArgument(amount()))
      .description(`${what} (scope transactions:write)`)
      .option('--reference <text>', 'kept and searched for')
      .addHelpText('after', `\nExample:\n  bank ${name} SAV-1234567897 250.75 --description Cash`)
      .action(async (to: string, paid: number, options: PostingOptions) => {
        const bank = openBank();
        const account_id = await accountIdOf(bank, to);
        const transaction = await bank.createTransaction(
          { account_id, transaction_type, amount: paid, ...fieldsOf(options), reference: options.reference },
          callOf(options),
        );
        answer(options, transaction, transactionLine(transaction), ...(await balanceLines(bank, account_id, options)));
      });
  }

  common(
    program
      .command('transfer')
      .addArgument(account())
      .addArgument(new Argument('<to>', 'the other account'))
      .addArgument(amount()),
  )
    .description('Move money from one account to another (scope transfers:write)')
    .addHelpText('after', '\nExample:\n  bank transfer SAV-1234567897 CHK-9876543217 100 --description Rent')
    .action(async (from: string, to: string, moved: number, options: PostingOptions) => {
      const bank = openBank();
      const [from_account_id, to_account_id] = await Promise.all([accountIdOf(bank, from), accountIdOf(bank, to)]);
      const transfer = await bank.createTransfer(
        { from_account_id, to_account_id, amount: moved, ...fieldsOf(options) },
        callOf(options),
      );
      answer(options, transfer, transferLine(transfer), ...(await balanceLines(bank, from_account_id, options)));
    });

  withNames(program.command('reverse'))
    .argument('<id>', 'of the transaction or the transfer')
    .description(
      'Undo a transaction, or a transfer (scope transactions:reverse); money is booked back, nothing is deleted',
    )
    .requiredOption('--reason <text>', 'why, for the record')
    .addOption(keyOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank reverse trf_… --reason "sent twice"')
    .action(async (id: string, options: { reason: string } & PostingOptions) => {
      const bank = openBank();
      const transaction_id = id.startsWith('trf_') ? await legOf(bank, id) : id;
      const { reason } = options;
      const reversal = await bank.reverseTransaction({ transaction_id, reason, ...namesOf(options) }, callOf(options));
      answer(options, reversal, transactionLine(reversal));
    });
}

function common(command: Command): Command {
  return withNames(
    command
      .option('--currency <code>', "refused where it is not the account's")
      .option('--description <text>', 'stands on the statement'),
  )
    .addOption(keyOption())
    .addOption(jsonOption());
}

const fieldsOf = ({ currency, description, ...names }: PostingOptions) => ({
  currency,
  description,
  ...namesOf(names),
});

/** A transaction of the transfer; where there is none, the transfer's own refusal. */
async function legOf(bank: Bank, transfer_id: string): Promise<string> {
  const [leg] = await bank.listTransactions({ transfer_id }).toArray(1);
  if (leg === undefined) await bank.getTransfer({ transfer_id });
  return leg?.transaction_id ?? '';
}

/**
 * For people, what the account has after a posting, and what can be taken of it where that is less.
 * The posting is done: that its account cannot be read then is no failure.
 */
export async function balanceLines(bank: Bank, account_id: string, { json }: { json?: true }): Promise<string[]> {
  if (json) return [];
  try {
    const { account_number, balance, available_balance = balance, currency } = await bank.getAccount({ account_id });
    const available = available_balance === balance ? '' : `  available ${money(available_balance, currency)}`;
    return [`${account_number}  balance ${money(balance, currency)}${available}`];
  } catch (error) {
    if (error instanceof BankError || error instanceof NoAnswerError) return [];
    throw error;
  }
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
