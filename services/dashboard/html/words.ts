import { ToWords } from 'to-words/en-GB';
import { plainMoney } from '#libs/contracts/money.ts';

const numbers = new ToWords();

/** Writes an amount in English words, with its decimals as a fraction: Ninety-nine and 50/100 KES. */
export function amountInWords(decimal: string, currency: string): string {
  const [whole = '', fraction = ''] = plainMoney(decimal, currency).split('.');
  const words = numbers
    .convert(BigInt(whole))
    .toLowerCase()
    .replace(/(?<=ty) (?=(?:one|two|three|four|five|six|seven|eight|nine)\b)/g, '-');
  const rest = fraction === '' ? '' : ` and ${fraction}/1${'0'.repeat(fraction.length)}`;
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${rest} ${currency}`;
}
