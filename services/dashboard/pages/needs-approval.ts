import { z } from 'zod';
import { type ApprovalAction, approvalAction, type OwnRules } from '#libs/contracts/approvals.ts';
import { toMinor } from '#libs/contracts/money.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import type { PageRequest } from '../html/frame.ts';
import { notice } from '../html/show.ts';

/** Says before a request is sent that a second person must approve it, by the rules that the bank will apply to it. */

/** What the rules depend on. Amounts are decimals. */
export const askedSchema = z.object({
  action: approvalAction,
  amount: z.string().optional(),
  currency: z.string().optional(),
  effective_date: z.string().optional(),
});
export type Asked = z.infer<typeof askedSchema>;

/** Returns the rules for this person, or undefined if they are not known now. */
export const readRules = async ({ api }: Pick<PageRequest, 'api'>): Promise<OwnRules | undefined> =>
  (await known(api.get<OwnRules>('/admin/approval-rules')))?.data;

const everyOne: Partial<Record<ApprovalAction, string>> = {
  reverse: 'every reversal',
  unfreeze: 'every unfreezing of an account',
  create_key: 'every new API key',
  webhook: 'every new webhook, receiver, list of event types, or secret',
  erase: 'every erasure of a client',
  client_contact: 'every change of names, registration number, phone, e-mail, or USSD phone',
  close_day: 'every closing of a day',
  raise_limit: 'every change of limits that allows more',
};

/** Returns the rule by which this needs an approval, or undefined if it needs none. Pure. */
export function whyApproval(rules: OwnRules, { action, effective_date, ...posting }: Asked): string | undefined {
  const needs = (one: ApprovalAction) => rules.actions.includes(one);
  if (effective_date !== undefined && effective_date < rules.day && needs('backdate'))
    return 'every value date before today';
  if (!needs(action)) return undefined;
  if (action !== 'post_above') return everyOne[action] ?? '';
  const { amount = '0', currency = '' } = posting;
  return beyondLimit(rules, amount, currency);
}

/** Returns why a posting, or postings together, of this amount need an approval. Pure. */
function beyondLimit({ limits }: OwnRules, amount: string, currency: string): string | undefined {
  const known = limits.find((one) => one.currency === currency);
  if (!known) return `every posting in ${currency}`;
  const text = (decimal: string) => amountText(decimal, currency);
  if (!isMore(amount, known.left, currency)) return undefined;
  if (isMore(amount, known.limit, currency)) return `every posting above ${text(known.limit)}`;
  return `one person alone posts at most ${text(known.limit)} a day, and you have posted ${text(known.posted)} today`;
}

/** Reports whether `amount` is more than `most`, or more than any account may have. */
export function isMore(amount: string, most: string, currency: string): boolean {
  const [minor, limit] = [toMinor(amount, currency), toMinor(most, currency)];
  return typeof minor !== 'bigint' || (typeof limit === 'bigint' && minor > limit);
}

/** Reports whether this needs an approval, as far as the rules are known now. */
export async function needsApproval(visit: PageRequest, asked: Asked): Promise<boolean> {
  const rules = await readRules(visit);
  return rules !== undefined && whyApproval(rules, asked) !== undefined;
}

/** What is said above the button, and the button's text. */
export interface Announced {
  says: Html | undefined;
  button: string;
}

/** Says whether what is asked needs an approval; `button`: the text of the button if it needs none. */
export async function announce(visit: PageRequest, asked: Asked | undefined, button: string): Promise<Announced> {
  if (asked === undefined) return { says: undefined, button };
  const rules = await readRules(visit);
  if (!rules)
    return {
      says: notice('info', 'It is not known now whether this needs the approval of a second person.'),
      button,
    };
  const why = whyApproval(rules, asked);
  return why === undefined
    ? { says: undefined, button }
    : {
        says: notice(
          'warning',
          html`<strong>Needs approval: a second person decides.</strong> Nothing is done before. The rule: ${why}.`,
        ),
        button: 'Ask for approval',
      };
}
