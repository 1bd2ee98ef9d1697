import { once } from 'node:events';
import { type Command, Option } from 'commander';
import type { AccountLimits, DayClosing, Lines } from '../clients/typescript/index.ts';
import { money, parseAmount, resolveAccountId } from './accounts.ts';
import { answer, callOptions, day, jsonOption, keyOption, openBank, openFileBank, wholeNumber } from './api.ts';

/** Days of the books, balances on a day, and limits of accounts. */

/** `bank days list|close|show`. */
export function addDays(group: Command): void {
  group
    .command('list')
    .description('List the closed days, latest first (scope books:read)')
    .option('--limit <number>', 'how many', wholeNumber(1, 99_999), 31)
    .addOption(jsonOption())
    .action(async (options: { limit: number; json?: true }) => {
      const closings = await openBank().listDayClosings().toArray(options.limit);
      answer(options, closings, ...(closings.length === 0 ? ['none'] : closings.map(closingLine)));
    });

  group
    .command('close')
    .description('Close a day for good: nothing is posted with this value date or an earlier one any more')
    .argument('<date>', 'the first day that is not closed, such as 2026-01-31; it must have ended', day)
    .addOption(keyOption())
    .addOption(jsonOption())
    .addHelpText('after', '\nExample:\n  bank days close 2026-01-31')
    .action(async (date: string, options: { key?: string; json?: true }) => {
      const closing = await openBank().closeDay({ date }, callOptions(options));
      answer(options, closing, closingLine(closing), ...totalLines(closing));
    });

  group
    .command('show')
    .description('Show a closed day: its totals, or its accounts (scope books:read)')
    .argument('<date>', 'such as 2026-01-31', day)
    .addOption(formOption('--accounts', 'print a line per account with movement instead'))
    .addOption(jsonOption().conflicts('accounts'))
    .addHelpText(
      'after',
      '\nExamples:\n  bank days show 2026-01-31\n  bank days show 2026-01-31 --accounts csv > day.csv',
    )
    .action(async (date: string, options: { accounts?: Form; json?: true }) => {
      if (options.accounts) return printFile(openFileBank().listDayLines({ date }), options.accounts);
      const closing = await openBank().getDayClosing({ date });
      answer(options, closing, closingLine(closing), ...totalLines(closing));
    });
}

/** `bank balances`. */
export function addBalances(command: Command): void {
  command
    .option('--on <date>', 'the end of this day, by value date; default: now', day)
    .option('--currency <code>', 'only accounts in this currency')
    .addOption(formOption('--form', 'how to print them').default('csv'))
    .addHelpText('after', '\nExample:\n  bank balances --on 2026-01-31 --currency KES > balances.csv')
    .action(({ form, ...filters }: { on?: string; currency?: string; form: Form }) =>
      printFile(openFileBank().listBalances(filters), form),
    );
}

type Limit = 'minimum_balance' | 'per_transaction' | 'per_day_out';
type LimitOption = 'minimumBalance' | 'perTransaction' | 'perDayOut';
const limits: readonly (readonly [Limit, LimitOption])[] = [
  ['minimum_balance', 'minimumBalance'],
  ['per_transaction', 'perTransaction'],
  ['per_day_out', 'perDayOut'],
];

/** `bank limits`. */
export function addLimits(command: Command): void {
  command
    .argument('<account>', 'its number, such as SAV-1234567897, or its id')
    .option('--minimum-balance <amount>', 'the least that stays available; none: no limit', limitAmount)
    .option('--per-transaction <amount>', 'the most that one posting or hold takes; none: no limit', limitAmount)
    .option('--per-day-out <amount>', 'the most that leaves the account on a day; none: no limit', limitAmount)
    .addOption(jsonOption())
    .addHelpText(
      'after',
      '\nLimits that are not named are sent as they are now. Do not change limits of one account in two places at once: a change made\nin between is undone.\n\nExamples:\n  bank limits SAV-1234567897\n  bank limits SAV-1234567897 --per-day-out 1000 --minimum-balance none',
    )
    .action(async (account: string, options: { [N in LimitOption]?: number | 'none' } & { json?: true }) => {
      const bank = openBank();
      const account_id = await resolveAccountId(bank, account);
      const now = await bank.getAccountLimits({ account_id });
      const isChange = limits.some(([, option]) => options[option] !== undefined);
      const changed = isChange ? await bank.setAccountLimits({ account_id, ...merged(now, options) }) : now;
      answer(options, changed, ...limitLines(changed));
    });
}

const limitAmount = (text: string): number | 'none' => (text === 'none' ? text : parseAmount(text));

const merged = (now: AccountLimits, options: { [N in LimitOption]?: number | 'none' }) =>
  Object.fromEntries(
    limits.flatMap(([name, option]) => {
      const value = options[option] ?? now[name];
      return value === undefined || value === 'none' ? [] : [[name, value]];
    }),
  );

const limitLines = (shown: AccountLimits): string[] => [
  ...limits.map(([name]) => `${name}  ${shown[name] === undefined ? 'none' : money(shown[name], shown.currency)}`),
  ...(shown.out_today === undefined ? [] : [`out_today  ${money(shown.out_today, shown.currency)}`]),
];

function closingLine({ date, closed_at, closed_by, hash }: DayClosing): string {
  return [date, `closed ${closed_at}`, closed_by, hash].join('  ');
}

function totalLines({ totals }: DayClosing): string[] {
  return totals.map(({ currency, class: ofClass, opening, debits, credits, closing, entry_count }) =>
    [
      `  ${currency} ${ofClass.padEnd(9)}`,
      `opening ${money(opening, currency)}`,
      `debits ${money(debits, currency)}`,
      `credits ${money(credits, currency)}`,
      `closing ${money(closing, currency)}`,
      `entries ${entry_count}`,
    ].join('  '),
  );
}

const forms = { csv: 'text/csv', json: 'application/x-ndjson' } as const;
type Form = keyof typeof forms;

const formOption = (flag: string, description: string): Option =>
  new Option(`${flag} <form>`, `${description}: csv, or json (a line of JSON each)`).choices(Object.keys(forms));

/** Prints a file of any length, no faster than it is read. */
async function printFile(file: Lines<unknown>, form: Form): Promise<void> {
  for await (const part of file.bytes(forms[form]))
    if (!process.stdout.write(part)) await once(process.stdout, 'drain');
}
