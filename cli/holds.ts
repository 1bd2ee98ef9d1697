import { Argument, type Command, Option } from 'commander';
import type { Hold } from '../clients/typescript/index.ts';
import { accountIdOf, amountOf, money } from './accounts.ts';
import { jsonOption, moment, openBank, print, printJson } from './api.ts';
import { transactionLine, transferLine } from './postings.ts';

interface HoldOptions {
  currency?: string;
  description?: string;
  reference?: string;
  expiresAt?: Date;
  to?: string;
  keepRest?: true;
  externalId?: string;
  key?: string;
  json?: true;
}

const key = () => new Option('--key <text>', 'Idempotency-Key: the same command with the same key is done once');
const callOf = ({ key: idempotencyKey }: HoldOptions) => (idempotencyKey === undefined ? {} : { idempotencyKey });

/** `bank hold place|capture|release|show`: money that is set aside. */
export function addHolds(program: Command): void {
  const group = program
    .command('hold')
    .description('Money of an account that is set aside for later (scope holds:write)');

  group
    .command('place')
    .description('Set money aside: the balance stays, what can be taken does not')
    .argument('<account>', 'its number, such as SAV-1234567897, or its id')
    .argument('<amount>', 'such as 250.75', amountOf)
    .option('--expires-at <time>', 'until then (ISO 8601), at most 31 days; default: 7 days', moment)
    .option('--currency <code>', "refused where it is not the account's")
    .option('--description <text>', 'stands on the statement, once it is captured')
    .option('--reference <text>', 'kept and searched for')
    .option('--external-id <text>', 'your own name for it')
    .addOption(key())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank hold place SAV-1234567897 250.75 --description Hotel')
    .action(
      async (
        account: string,
        amount: number,
        { currency, description, reference, expiresAt, externalId, ...options }: HoldOptions,
      ) => {
        const bank = openBank();
        const hold = await bank.placeHold(
          {
            account_id: await accountIdOf(bank, account),
            amount,
            currency,
            description,
            reference,
            expires_at: expiresAt?.toISOString(),
            external_id: externalId,
          },
          callOf(options),
        );
        if (options.json) return printJson(hold);
        print(holdLine(hold));
        const {
          account_number,
          balance,
          available_balance,
          currency: held,
        } = await bank.getAccount({ account_id: hold.account_id });
        print(
          `${account_number}  balance ${money(balance, held)}  available ${money(available_balance ?? balance, held)}`,
        );
      },
    );

  group
    .command('capture')
    .description('Take what is held: in cash (transactions:write besides), or to another account (transfers:write)')
    .argument('<hold_id>')
    .addArgument(new Argument('[amount]', 'default: all that is left').argParser(amountOf))
    .option('--to <account>', 'the account that gets it')
    .option('--keep-rest', 'what is not taken stays held; else it is given back')
    .option('--description <text>', 'stands on the statement; default: that of the hold')
    .option('--external-id <text>', 'your own name for it')
    .addOption(key())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank hold capture hld_… 200 --to CUR-9876543217 --keep-rest')
    .action(
      async (
        hold_id: string,
        amount: number | undefined,
        { to, keepRest, description, externalId, ...options }: HoldOptions,
      ) => {
        const bank = openBank();
        const to_account_id = to === undefined ? undefined : await accountIdOf(bank, to);
        const captured = await bank.captureHold(
          { hold_id, amount, to_account_id, final: !keepRest, description, external_id: externalId },
          callOf(options),
        );
        if (options.json) return printJson(captured);
        print(holdLine(captured.hold));
        if (captured.transaction) print(transactionLine(captured.transaction));
        if (captured.transfer) print(transferLine(captured.transfer));
      },
    );

  for (const [name, what] of [
    ['release', 'Give back what is held'],
    ['show', 'Show a hold (transactions:read)'],
  ] as const) {
    const command = group.command(name).description(what).argument('<hold_id>').addOption(jsonOption());
    if (name === 'release') command.addOption(key());
    command.action(async (hold_id: string, options: HoldOptions) => {
      const hold = await (name === 'show'
        ? openBank().getHold({ hold_id })
        : openBank().releaseHold({ hold_id }, callOf(options)));
      if (options.json) return printJson(hold);
      print(holdLine(hold));
    });
  }
}

function holdLine({
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
