import { InvalidArgumentError } from 'commander';
import { plainMoney } from '#libs/service/formats.ts';
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

type Reviver = (key: string, value: unknown, context: { source: string }) => unknown;
// Available since Node 21, but not yet in TypeScript's library.
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): number;
};

/**
 * Parses JSON so that no digit of an amount is lost: a number of more than 15 digits, as totals of the books may have, is
 * kept as its text. JSON.stringify returns that text; nothing can be calculated with it.
 */
export function parseExactly(text: string): unknown {
  if (!/\d[\d.]{15}/.test(text)) return JSON.parse(text);
  return parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source.replace(/\D/g, '').length > 15 ? rawJSON(source) : value,
  );
}

/** Returns an amount of the bank with all decimal places of the currency. */
export const decimal = (amount: number, currency: string): string => plainMoney(JSON.stringify(amount), currency);

/** Formats an amount with all decimal places of the currency. */
export function money(amount: number, currency: string): string {
  return `${decimal(amount, currency)} ${currency}`;
}
