import type { FastifyInstance } from 'fastify';
import type { Account } from '#libs/contracts/accounts.ts';
import { clientName } from '#libs/contracts/clients.ts';
import { allowsMore, type LimitName } from '#libs/contracts/limits.ts';
import { toMinor } from '#libs/contracts/money.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import { fieldAmount, jsonNumber, minorOf, typedLimit } from '../html/amounts.ts';
import {
  accepted,
  addFormPage,
  enteredIn,
  type Field,
  showFields,
  showForm,
  type Wrong,
  WrongInput,
  waitingFor,
} from '../html/forms.ts';
import type { PageRequest, PageResult } from '../html/frame.ts';
import { readOwnedAccount } from '../html/owners.ts';
import { desk, facts, notice } from '../html/show.ts';
import { accountFacts, accountHeading, accountLine, accountParts } from './account-views.ts';
import { availableBalance } from './counter-instructions.ts';
import { needsApproval } from './needs-approval.ts';
import { addTask } from './tasks.ts';

/** The limits of an account: the page that shows and changes them. */

type Limits = { currency: string; out_today?: string } & Partial<Record<LimitName, string>>;

/** The limits in words; `field`: the label of its field. */
const texts: Record<LimitName, { name: string; field: string; hint: string }> = {
  per_transaction: {
    name: 'At most per posting',
    field: 'Most per posting',
    hint: 'For one withdrawal, transfer, or hold.',
  },
  per_day_out: {
    name: 'At most out per day',
    field: 'Most out per day',
    hint: 'All that leaves the account on one day of the bank.',
  },
  minimum_balance: {
    name: 'Must stay available',
    field: 'Least that stays available',
    hint: 'Withdrawals, transfers, and holds leave this much.',
  },
};
const inOrder: readonly LimitName[] = ['per_transaction', 'per_day_out', 'minimum_balance'];

const limitsUrl = (accountId: string) => `/admin/ui/accounts/${accountId}/limits`;

export function addLimits(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Limits', scope: 'accounts:read' } as const;
  const done = (data: unknown) => ({ redirectTo: `${limitsUrl((data as Account).account_id)}?saved` });
  const task = addTask(app, { name: 'limits', title: page.title, scope: 'accounts:limits', done }, secrets);
  const form = {
    draw: (visit: PageRequest, sent: URLSearchParams, wrong: Wrong) => draw(visit, task.getValues(visit, sent), wrong),
    take: (visit: PageRequest) => take(visit, task),
  };
  addFormPage(app, limitsUrl(':account_id'), page, form, 'accounts:limits');
}

/** The hidden field with the limit that the page showed. */
const shownAs = (name: LimitName) => `shown_${name}`;

const read = async ({ api }: PageRequest, id: string): Promise<Limits> =>
  (await api.get<Limits>(`/accounts/${id}/limits`)).data;

const limitText = (limits: Limits, name: LimitName): string =>
  limits[name] === undefined ? 'no limit' : amountText(limits[name], limits.currency);

/** Shows the limits on the page of their account, which is being read, if there are any. */
export async function limitsOn(visit: PageRequest, reading: Promise<Account>): Promise<Html | undefined> {
  const [limits, { account_type }] = await Promise.all([known(read(visit, visit.id)), reading]);
  if (account_type === 'Loan') return undefined;
  if (!limits) return html`not known`;
  const set = inOrder.filter((name) => limits[name] !== undefined);
  if (set.length === 0) return undefined;
  return html`${set.map((name) => html`${texts[name].name} <strong class="whole">${limitText(limits, name)}</strong><br>`)}`;
}

async function draw(visit: PageRequest, values: URLSearchParams, wrong: Wrong): Promise<PageResult> {
  const owned = await readOwnedAccount(visit, visit.id);
  const { account } = owned;
  const content =
    account.account_type === 'Loan'
      ? html`<p role="status">A loan has no limits, because nothing is paid from it.</p>`
      : await showLimits(visit, account, values, wrong);
  return {
    title: `Limits of account ${account.account_number}`,
    heading: accountHeading(owned),
    content: html`${accountLine(account)}${accountParts(account.account_id, '/limits', visit.person)}${visit.query.has('saved') && notice('success', 'The limits were changed. They bind every later posting.')}${desk('The account', accountFacts({ ...owned, lastChange: undefined }), content)}`,
  };
}

async function showLimits(visit: PageRequest, account: Account, values: URLSearchParams, wrong: Wrong): Promise<Html> {
  const { account_id, currency } = account;
  const limits = await read(visit, account_id);
  const now = facts([
    ...inOrder.map((name) => [texts[name].name, html`<strong>${limitText(limits, name)}</strong>`] as const),
    ['Out today', limits.out_today !== undefined && amountText(limits.out_today, currency)],
  ]);
  if (!visit.person.scopes.has('accounts:limits')) return html`<h2>Limits</h2>${now}`;
  const entered = new URLSearchParams(values);
  if (values.size === 0) for (const name of inOrder) entered.set(name, fieldAmount(limits[name], currency));
  const fields = inOrder.map(
    (name): Field => ({
      name,
      label: `${texts[name].field}, in ${currency}`,
      inputMode: 'decimal',
      maxLength: 40,
      hint: `${texts[name].hint} Empty: no limit.`,
    }),
  );
  const form = showForm(
    visit,
    { wrong, button: 'Change the limits', cancel: `/admin/ui/accounts/${account_id}` },
    html`${inOrder.map((name) => html`<input type="hidden" name="${shownAs(name)}" value="${limits[name] ?? ''}">`)}${showFields(fields, entered, wrong)}`,
  );
  return html`<h2>Limits</h2>${now}<h2>Change them</h2>
<p class="quiet">Reversals are exempt.</p>${form}`;
}

async function take(visit: PageRequest, task: ReturnType<typeof addTask>): Promise<PageResult> {
  const { account, owner } = await readOwnedAccount(visit, visit.id);
  const { account_id, currency } = account;
  const typed = (name: LimitName) => typedLimit(visit.fields.get(name) ?? '', currency);
  const limits = accepted({
    per_transaction: typed('per_transaction'),
    per_day_out: typed('per_day_out'),
    minimum_balance: typed('minimum_balance'),
  });
  // All limits are sent, so one that somebody else has changed would be changed back.
  const now = await read(visit, account_id);
  const changed = inOrder.filter((name) => (visit.fields.get(shownAs(name)) ?? '') !== (now[name] ?? ''));
  if (changed.length > 0)
    throw new WrongInput(
      Object.fromEntries(
        changed.map((name) => [
          name,
          `Somebody has changed this meanwhile: ${limitText(now, name)}. Check all limits.`,
        ]),
      ),
    );
  const wanted = Object.fromEntries(
    Object.entries(limits).flatMap(([name, limit]) => (limit ? [[name, limit.amount]] : [])),
  );
  const path = `/accounts/${account_id}/limits`;
  const minor = (decimal: string | undefined) => (decimal === undefined ? null : BigInt(toMinor(decimal, currency)));
  const isRaised = inOrder.some((name) => allowsMore(name, minor(now[name]), minor(wanted[name])));
  const asked = isRaised ? { action: 'raise_limit' as const } : undefined;
  const warning = whyLocked(account, wanted, now);
  if (warning !== undefined || (asked && (await needsApproval(visit, asked))))
    return task.summarise(visit, {
      method: 'put',
      path,
      body: wanted,
      facts: [
        ['Customer', owner && clientName(owner)],
        ['Account', account.account_number],
      ],
      changes: limitChanges(wanted, now, currency),
      warning,
      button: 'Change the limits',
      form: limitsUrl(account_id),
      entered: enteredIn(
        inOrder.flatMap((name) => [name, shownAs(name)]),
        visit.fields,
      ),
      asked,
    });
  const body = Object.fromEntries(Object.entries(wanted).map(([name, amount]) => [name, jsonNumber(amount)]));
  const { data } = await visit.api.put(path, body);
  return waitingFor(data) ?? { redirectTo: `${limitsUrl(account_id)}?saved` };
}

/** Says that nothing could leave the account, if a limit that is changed would have that effect. */
function whyLocked(account: Account, wanted: Partial<Record<LimitName, string>>, now: Limits): string | undefined {
  const { currency } = account;
  const changed = (name: LimitName) => {
    const [minor, before] = [wanted[name], now[name]].map((limit) => limit && minorOf(limit, currency));
    return minor === before ? undefined : minor;
  };
  const [available, out] = [availableBalance(account), now.out_today];
  const [least, most] = [changed('minimum_balance'), changed('per_day_out')];
  if (typeof least === 'bigint' && least > 0n && least >= minorOf(available, currency))
    return `Available is only ${amountText(available, currency)}: nothing could leave the account until more is paid in.`;
  return typeof most === 'bigint' && out !== undefined && minorOf(out, currency) >= most
    ? `${amountText(out, currency)} left the account today: nothing more could leave it today.`
    : undefined;
}

/** The limits that a request changes, before and after. `now`: undefined if it is not known, and then all of them. */
export function limitChanges(
  body: Record<string, unknown>,
  now: Partial<Record<LimitName, string>> | undefined,
  currency: string | null = null,
) {
  const text = (limit: unknown) => (limit === undefined ? 'no limit' : amountText(String(limit), currency));
  const rows = inOrder.map((name) => ({
    what: texts[name].name,
    before: now === undefined ? 'not known' : text(now[name]),
    after: text(body[name]),
  }));
  return rows.filter(({ before, after }) => before !== after);
}
