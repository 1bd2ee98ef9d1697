import { InvalidArgumentError } from 'commander';
import { currencyDigits } from '#libs/contracts/money.ts';
import type { Bank } from '../clients/typescript/index.ts';

/** Parses accounts and amounts as users type them, and formats amounts. */

/** Returns the id of an account, from its id or number. */
export async function resolveAccountId(bank: Bank, name: string): Promise<string> {
  return name.startsWith('acc_') ? name : (await bank.getBalanceByNumber({ accountNumber: name })).account_id;
}

/** Parses an option that is a decimal which a JavaScript number represents unchanged. */
export function parseAmount(text: string): number {
  // 1.500 may be meant as 1500, and 1.5 needs no zeros.
  if (/\.\d{2,}0$/.test(text)) throw new InvalidArgumentError('must have no zeros behind the second decimal place.');
  if (/^\d{1,15}(\.\d{1,4})?$/.test(text) && text.replace(/\D|^0+/g, '').length <= 15) return Number(text);
  throw new InvalidArgumentError('must be an amount such as 250.75.');
}

/** Formats an amount with all decimal places of the currency. */
export function money(amount: number, currency: string): string {
  return `${amount.toFixed(currencyDigits(currency))} ${currency}`;
}
