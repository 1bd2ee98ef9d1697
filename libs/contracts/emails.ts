import { idnHostname } from 'idn-hostname';
import { z } from 'zod';
import { faultInName } from './texts.ts';
import { violation } from './violation.ts';

/**
 * E-mail addresses in the one form in which a mailbox is found however it was typed (contract: clients-8): the local
 * part as RFC 6531 allows it without quotes, in NFC, and a domain beyond ASCII as A-labels (RFC 5890), which every mail
 * system understands and in which no look-alike hides. A domain in ASCII stays as it was typed.
 */

const longest = 254;
const longestLocal = 64;
const localForm =
  /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u{80}-\u{10ffff}-]+)*$/u;
const domainForm = /^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+([A-Za-z]{2,63}|xn--[a-z0-9-]{0,58}[a-z0-9])$/;
/** Full stops that IDNA reads as dots. */
const fullStops = /[\u3002\uff0e\uff61]/g;

/** Returns the domain in ASCII, or undefined if it is none. idn-hostname knows the rules of RFC 5890 to 5893. */
function domainInAscii(domain: string): string | undefined {
  const isPlain = /^[\x21-\x7e]*$/.test(domain) && !/(^|\.)xn--/i.test(domain);
  try {
    const ascii = isPlain ? domain : idnHostname(domain.replace(fullStops, '.'));
    return domainForm.test(ascii) && ascii.length < longest ? ascii : undefined;
  } catch {
    return undefined;
  }
}

function isLocalPart(local: string): boolean {
  return (
    localForm.test(local) &&
    Buffer.byteLength(local) <= longestLocal &&
    !/[\p{Z}\p{Cs}]/u.test(local) &&
    faultInName(local) === undefined
  );
}

function toAddress(given: string, ctx: z.RefinementCtx): string {
  const wrong = (rule: string) => violation(ctx, 'validation_failed', rule);
  const value = given.trim();
  const tooLong = `must have at most ${longest} characters`;
  if (value.length > longest) return wrong(tooLong);
  const [local = '', typed, ...more] = value.split('@');
  if (typed === undefined || more.length > 0 || local === '' || typed === '') return wrong('must be an e-mail address');
  const mailbox = local.normalize('NFC');
  if (!isLocalPart(mailbox))
    return wrong(
      `must be an e-mail address: before the @ it has at most ${longestLocal} bytes of letters, digits, and the marks that need no quotes, and no two dots together`,
    );
  const domain = domainInAscii(typed);
  if (domain === undefined)
    return wrong(
      'must be an e-mail address: after the @ it has a domain name of two or more parts, in ASCII or in letters of any script (RFC 5890)',
    );
  const address = `${mailbox}@${domain}`;
  return Buffer.byteLength(address) > longest ? wrong(tooLong) : address;
}

const meta = {
  description:
    'An e-mail address, trimmed. A domain beyond ASCII is kept in its ASCII form: info@münchen.example as info@xn--mnchen-3ya.example',
  maxLength: longest,
  pattern: '^\\s*[^\\s@]+@[^\\s@]+\\s*$',
  input_examples: ['ada@example.com'],
};

/** An e-mail address. Others are refused with the part that is wrong. */
export const email = z.string().transform(toAddress).meta(meta);

/** An e-mail address in a query parameter. A blank inside was a plus (contract: clients-19). */
export const emailParameter = z
  .string()
  .transform((value, ctx) => toAddress(value.trim().replaceAll(' ', '+'), ctx))
  .meta(meta);
