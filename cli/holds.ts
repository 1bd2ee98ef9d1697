import { Argument, type Command, Option } from 'commander';
import type { Hold } from '../clients/typescript/index.ts';
import { money, parseAmount, resolveAccountId } from './accounts.ts';
import { answer, callOptions, jsonOption, keyOption, moment, type Names, openBank, toNames, withNames } from './api.ts';
import { balanceLines, transactionLine, transferLine } from './postings.ts';

interface HoldOptions extends Names {
  currency?: string;
  description?: string;
  reference?: string;
  expiresAt?: Date;
  to?: string;
  keepRest?: true;
  status?: 'Active' | 'Captured' | 'Released' | 'Expired';
  key?: string;
  json?: true;
}

/** `bank hold place|capture|release|list|show`. */
export function addHolds(group: Command): void {
  withNames(group.command('place'))
    .description('Reserve money: the available balance falls, the balance does not')
    .argument('<account>', 'its number, such as SAV-1234567897, or its id')
    .argument('<amount>', 'such as 250.75', parseAmount)
    .option('--expires-at <time>', 'end of the hold (ISO 8601), at most 31 days ahead; default: 7 days', moment)
    .option('--currency <code>', "must be the account's currency")
    .option('--description <text>', 'text on the statement after the capture')
    .option('--reference <text>', 'your reference')
    .addOption(keyOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank hold place SAV-1234567897 250.75 --description Hotel')
    .action(async (account: string, amount: number, options: HoldOptions) => {
      const bank = openBank();
      const { currency, description, reference } = options;
      const account_id = await resolveAccountId(bank, account);
      const expires_at = options.expiresAt?.toISOString();
      const hold = await bank.placeHold(
        { account_id, amount, currency, description, reference, expires_at, ...toNames(options) },
        callOptions(options),
      );
      answer(options, hold, holdLine(hold), ...(await balanceLines(bank, account_id, options)));
    });

  withNames(group.command('capture'))
    .description(
      'Take held money: in cash (scope transactions:write too) or to another account (scope transfers:write too)',
    )
    .argument('<hold_id>')
    .addArgument(new Argument('[amount]', 'default: everything that is still held').argParser(parseAmount))
    .option('--to <account>', 'account that receives the money; without it, cash')
    .option('--keep-rest', 'keep the rest held instead of releasing it')
    .option('--description <text>', 'text on the statement; default: that of the hold')
    .addOption(keyOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank hold capture hld_… 200 --to CUR-9876543217 --keep-rest')
    .action(async (hold_id: string, amount: number | undefined, options: HoldOptions) => {
      const bank = openBank();
      const { to, keepRest, description } = options;
      const to_account_id = to === undefined ? undefined : await resolveAccountId(bank, to);
      const captured = await bank.captureHold(
        { hold_id, amount, to_account_id, final: !keepRest, description, ...toNames(options) },
        callOptions(options),
      );
      const { hold, transaction, transfer } = captured;
      const booked = [
        ...(transaction ? [transactionLine(transaction)] : []),
        ...(transfer ? [transferLine(transfer)] : []),
      ];
      answer(options, captured, holdLine(hold), ...booked);
    });

  group
    .command('release <hold_id>')
    .description('Release held money')
    .addOption(keyOption())
    .addOption(jsonOption())
    .action(async (hold_id: string, options: HoldOptions) => {
      const hold = await openBank().releaseHold({ hold_id }, callOptions(options));
      answer(options, hold, holdLine(hold));
    });

  group
    .command('show <hold_id>')
    .description('Show a hold (scope transactions:read)')
    .addOption(jsonOption())
    .action(async (hold_id: string, options: HoldOptions) => {
      const hold = await openBank().getHold({ hold_id });
      answer(options, hold, holdLine(hold));
    });

  group
    .command('list <account>')
    .description('List the holds of an account, newest first (scope transactions:read)')
    .addOption(new Option('--status <status>').choices(['Active', 'Captured', 'Released', 'Expired']))
    .addOption(jsonOption())
    .action(async (account: string, options: HoldOptions) => {
      const bank = openBank();
      const { status } = options;
      const holds = await bank.listHolds({ account_id: await resolveAccountId(bank, account), status }).toArray(1000);
      answer(options, holds, ...holds.map(holdLine));
    });
}

export function holdLine({
  hold_id,
  created_at,
  status,
  amount,
  captured_amount,
  currency,
  expires_at,
  description,
}: Hold): string {
  const captured = captured_amount === 0 ? [] : [`captured ${money(captured_amount, currency)}`];
  return [
    hold_id,
    created_at,
    status,
    money(amount, currency),
    ...captured,
    `until ${expires_at}`,
    ...(description ? [description] : []),
  ].join('  ');
}
