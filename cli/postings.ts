import { Argument, type Command, Option } from 'commander';
import { type Bank, BankError, NoAnswerError, type Transaction, type Transfer } from '../clients/typescript/index.ts';
import { money, parseAmount, resolveAccountId } from './accounts.ts';
import { answer, callOptions, day, jsonOption, keyOption, type Names, openBank, toNames, withNames } from './api.ts';

interface PostingOptions extends Names {
  currency?: string;
  description?: string;
  reference?: string;
  effectiveDate?: string;
  key?: string;
  json?: true;
}

const account = () => new Argument('<account>', 'its number, such as SAV-1234567897, or its id');
const amount = () => new Argument('<amount>', 'such as 250.75').argParser(parseAmount);

/** `bank deposit`, `bank withdraw`. */
export function addCash(transaction_type: 'Deposit' | 'Withdrawal') {
  return (command: Command): void => {
    common(command.addArgument(account()).addArgument(amount()))
      .option('--reference <text>', 'your reference, for searches')
      .addHelpText('after', `\nExample:\n  bank ${command.name()} SAV-1234567897 250.75 --description Cash`)
      .action(async (to: string, paid: number, options: PostingOptions) => {
        const bank = openBank();
        const account_id = await resolveAccountId(bank, to);
        const transaction = await bank.createTransaction(
          { account_id, transaction_type, amount: paid, ...postingFields(options), reference: options.reference },
          callOptions(options),
        );
        answer(options, transaction, transactionLine(transaction), ...(await balanceLines(bank, account_id, options)));
      });
  };
}

/** `bank transfer`. */
export function addTransfer(command: Command): void {
  common(
    command.addArgument(account()).addArgument(new Argument('<to>', 'the receiving account')).addArgument(amount()),
  )
    .addHelpText('after', '\nExample:\n  bank transfer SAV-1234567897 CHK-9876543217 100 --description Rent')
    .action(async (from: string, to: string, moved: number, options: PostingOptions) => {
      const bank = openBank();
      const [from_account_id, to_account_id] = await Promise.all([
        resolveAccountId(bank, from),
        resolveAccountId(bank, to),
      ]);
      const transfer = await bank.createTransfer(
        { from_account_id, to_account_id, amount: moved, ...postingFields(options) },
        callOptions(options),
      );
      answer(options, transfer, transferLine(transfer), ...(await balanceLines(bank, from_account_id, options)));
    });
}

/** `bank reverse`. */
export function addReverse(command: Command): void {
  withNames(command)
    .argument('<id>', 'id of the transaction or transfer')
    .requiredOption('--reason <text>', 'reason, kept with the reversal')
    .addOption(dateOption())
    .addOption(keyOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank reverse trf_… --reason "sent twice"')
    .action(async (id: string, options: { reason: string } & PostingOptions) => {
      const bank = openBank();
      const transaction_id = id.startsWith('trf_') ? await findLeg(bank, id) : id;
      const { reason, effectiveDate: effective_date } = options;
      const reversal = await bank.reverseTransaction(
        { transaction_id, reason, effective_date, ...toNames(options) },
        callOptions(options),
      );
      answer(options, reversal, transactionLine(reversal));
    });
}

function common(command: Command): Command {
  return withNames(
    command
      .option('--currency <code>', "must be the account's currency")
      .option('--description <text>', 'text on the statement')
      .addOption(dateOption()),
  )
    .addOption(keyOption())
    .addOption(jsonOption());
}

/** Another day than the bank's requires a scope of its own. */
const dateOption = (): Option =>
  new Option('--effective-date <date>', 'value date (scope transactions:backdate); default: today').argParser(day);

const postingFields = ({ currency, description, effectiveDate, ...names }: PostingOptions) => ({
  currency,
  description,
  effective_date: effectiveDate,
  ...toNames(names),
});

/** Returns the id of one of the transfer's two transactions. Throws the bank's 404 if the transfer is unknown. */
async function findLeg(bank: Bank, transfer_id: string): Promise<string> {
  const [leg] = await bank.listTransactions({ transfer_id }).toArray(1);
  if (leg === undefined) await bank.getTransfer({ transfer_id });
  return leg?.transaction_id ?? '';
}

/**
 * Returns the balance of an account after a posting, as text, and nothing with --json. A failure to read it is not
 * reported, because the posting itself has succeeded.
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
