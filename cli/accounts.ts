import { InvalidArgumentError } from 'commander';
import { plainMoney } from '#libs/contracts/money.ts';
import type { Bank } from '../clients/typescript/index.ts';

/** Parses accounts and amounts as users type them, and formats amounts. */

/** Returns the id of an account, from its id or number. */
export async function resolveAccountId(bank: Bank, name: string): Promise<string> {
  return name.startsWith('acc_') ? name : (await bank.getBalanceByNumber({ accountNumber: name })).account_id;
}

/** Parses an argument like parseDecimal. Refuses 1.500, which may be meant as 1500: 1.5 needs no zeros in any currency. */
export function parseAmount(text: string): number {
  if (!/^\d+\.\d{2,}0$/.test(text)) return parseDecimal(text);
  const [more, less] = [text.replace('.', '').replace(/^0+/, ''), text.replace(/\.?0+$/, '')];
  throw new InvalidArgumentError(`must be ${more} or ${less}, also in a currency with three decimals.`);
}

/** Parses a decimal that a JavaScript number represents unchanged. */
export function parseDecimal(text: string): number {
  if (/^\d{1,15}(\.\d{1,4})?$/.test(text) && text.replace(/\D|^0+/g, '').length <= 15) return Number(text);
  throw new InvalidArgumentError('must be an amount such as 250.75.');
}

/** Returns an amount of the bank with all decimal places of the currency. */
export const decimal = (amount: number, currency: string): string => plainMoney(JSON.stringify(amount), currency);

/** Formats an amount with all decimal places of the currency. */
export function money(amount: number, currency: string): string {
  return `${decimal(amount, currency)} ${currency}`;
}
