import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { canonicalDecimal, fromMinor, toMinor } from '#libs/contracts/money.ts';
import type { Bank } from '../clients/typescript/index.ts';
import { decimal } from './accounts.ts';
import { Failure } from './api.ts';

/**
 * The result of an import, compared with the books. Sums are decimal strings with all decimal places of the currency.
 */

const booksSchema = z.record(z.string(), z.object({ deposits: z.string(), loans: z.string() }));

/** Per currency: the bank's liabilities to its clients, and its claims against them. */
type Books = z.infer<typeof booksSchema>;

export interface Counts {
  rows: number;
  imported: number;
  already_there: number;
  refused: number;
}

export interface Comparison {
  currency: string;
  accounts: number;
  /**
   * Opening balances of the imported accounts, and the growth of the books since the import began.
   */
  deposits: string;
  deposits_in_books: string;
  loans: string;
  loans_in_books: string;
  agrees: boolean;
}

export interface Report {
  clients?: Counts;
  accounts?: Counts;
  currencies: Comparison[];
}

/** Opening balances per currency. */
export class Sums {
  readonly #sums = new Map<string, { accounts: number; deposits: bigint; loans: bigint }>();

  /** Adds an account that the bank has accepted, so its currency and amount are valid. */
  add(accountType: string, currency: string, amount: string): void {
    const sum = this.#sums.get(currency) ?? { accounts: 0, deposits: 0n, loans: 0n };
    const minor = toMinor(canonicalDecimal(amount) ?? '', currency);
    if (typeof minor !== 'bigint') throw new TypeError(`${amount} ${currency} is not an amount`);
    sum.accounts++;
    sum[accountType === 'Loan' ? 'loans' : 'deposits'] += minor;
    this.#sums.set(currency, sum);
  }

  /** Compares the sums with the books. Without books, as in a dry run, all agree. */
  against(gained?: (currency: string) => { deposits: bigint; loans: bigint }): Comparison[] {
    return [...this.#sums]
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([currency, { accounts, deposits, loans }]) => {
        const books = gained?.(currency) ?? { deposits, loans };
        const text = (minor: bigint) => fromMinor(minor, currency);
        const agrees = books.deposits === deposits && books.loans === loans;
        return {
          currency,
          accounts,
          deposits: text(deposits),
          deposits_in_books: text(books.deposits),
          loans: text(loans),
          loans_in_books: text(books.loans),
          agrees,
        };
      });
  }
}

/** Reads the current state of the books (books:read). */
export async function readBooks(bank: Bank): Promise<Books> {
  const [balances, systemAccounts] = await Promise.all([bank.getTrialBalance(), bank.getSystemAccounts()]);
  return Object.fromEntries(
    balances.map(({ currency, assets, liabilities }) => {
      const cash = systemAccounts
        .filter((account) => account.currency === currency)
        .reduce((sum, { balance }) => sum + balanceMinor(balance, currency), 0n);
      // Assets are Teller, Vault, and the loans.
      return [
        currency,
        {
          deposits: fromMinor(balanceMinor(liabilities, currency), currency),
          loans: fromMinor(balanceMinor(assets, currency) - cash, currency),
        },
      ];
    }),
  );
}

/** Returns the growth of the books. */
export function compareBooks(before: Books, after: Books): (currency: string) => { deposits: bigint; loans: bigint } {
  const minor = (books: Books, currency: string, part: 'deposits' | 'loans') =>
    BigInt((books[currency]?.[part] ?? '0').replace('.', ''));
  return (currency) => ({
    deposits: minor(after, currency, 'deposits') - minor(before, currency, 'deposits'),
    loans: minor(after, currency, 'loans') - minor(before, currency, 'loans'),
  });
}

function balanceMinor(balance: number, currency: string): bigint {
  return BigInt(decimal(balance, currency).replace('.', ''));
}

const reportSchema = z.looseObject({ books_before: booksSchema });

/**
 * Returns the books before the first run of this import: from its report if there is one, otherwise the current state,
 * which is stored in a new report.
 */
export async function booksBefore(path: string, bank: Bank): Promise<Books> {
  if (existsSync(path)) {
    try {
      return reportSchema.parse(JSON.parse(readFileSync(path, 'utf8'))).books_before;
    } catch {
      throw new Failure(2, `${path} is not a report of an import; move it elsewhere`);
    }
  }
  const books_before = await readBooks(bank);
  writeReport(path, { books_before });
  return books_before;
}

export function writeReport(path: string, report: { books_before: Books } & Partial<Report>): void {
  writeFileSync(`${path}.new`, `${JSON.stringify(report, null, 2)}\n`);
  renameSync(`${path}.new`, path);
}
