import { InvalidArgumentError } from 'commander';
import { currencyDigits } from '#libs/contracts/money.ts';
import type { Bank } from '../clients/typescript/index.ts';

/** What people type of accounts and amounts, and how amounts are shown to them. */

/** The id of an account that is named by id or number. */
export async function accountIdOf(bank: Bank, name: string): Promise<string> {
  return name.startsWith('acc_') ? name : (await bank.getBalanceByNumber({ accountNumber: name })).account_id;
}

/** A parser of options and arguments: a decimal that a number carries unchanged. */
export function amountOf(text: string): number {
  if (/^\d{1,15}(\.\d{1,4})?$/.test(text) && text.replace(/\D|^0+/g, '').length <= 15) return Number(text);
  throw new InvalidArgumentError('must be an amount such as 250.75.');
}

/** With all digits of the currency. */
export function money(amount: number, currency: string): string {
  return `${amount.toFixed(currencyDigits(currency))} ${currency}`;
}
