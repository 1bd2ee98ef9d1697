import type { FastifyInstance } from 'fastify';
import type { Account } from '#libs/contracts/accounts.ts';
import { type CapturedHold, type Hold, holdStatus } from '#libs/contracts/holds.ts';
import { amountText, bankDay, endOfDay, plainMoney } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { sumText, typedAmount } from '../html/amounts.ts';
import type { CsvColumn } from '../html/csv.ts';
import {
  accepted,
  addFormPage,
  amountField,
  descriptionField,
  enteredIn,
  formOf,
  inputsOf,
  referenceField,
  type Wrong,
} from '../html/forms.ts';
import { addPage, type Visit } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import type { List, Sorting } from '../html/lists.ts';
import { holderOf, type Owned, ownedOf } from '../html/owners.ts';
import {
  desk,
  facts,
  fullTimeOf,
  idLink,
  idText,
  numeric,
  ownNames,
  statusOf,
  table,
  timeOf,
  untilOf,
} from '../html/show.ts';
import { addPart } from './account-views.ts';
import { nameOf } from './client-views.ts';
import { availableOf, counterpartOf, idOfPosting, refusalText } from './counter-instructions.ts';
import { counterUrl, customer } from './counter-views.ts';
import { addTask, amountChange } from './tasks.ts';

/** Adds the pages of holds: the list of an account, one hold, placing, capturing, and releasing. */
export function addHolds(app: FastifyInstance, secrets: readonly string[]): void {
  addPart(app, '/holds', { title: 'Holds', scope: 'transactions:read' }, listOf, columns, placeAction);
  addPlacing(app, secrets);
  addPage(app, holdUrl(':hold_id'), { title: 'Hold', scope: 'transactions:read' }, async (visit) => {
    const hold = await newHold(visit);
    const said = ['placed', 'captured', 'released'].find((name) => visit.query.has(name));
    return {
      title: `Hold of ${amountText(hold.amount, hold.currency)}`,
      content: html`${said !== undefined && html`<p class="notice" role="status">The hold was ${said}.</p>`}${holdPage(hold, await ownedOf(visit, hold.account_id), visit.person)}`,
    };
  });
  addCapture(app, secrets);
  addRelease(app, secrets);
}

const newHold = async (visit: Visit): Promise<Hold> => (await visit.api.get<Hold>(`/holds/${visit.id}`)).data;

const listOf = ({ id, person }: Visit): List<Hold> => ({
  path: `/accounts/${id}/holds`,
  filters: [{ name: 'status', label: 'Status', options: holdStatus.options }],
  show: (rows, sort) => holdTable(rows, person, sort),
});
const columns: CsvColumn<Hold>[] = [
  'hold_id',
  'created_at',
  'status',
  { title: 'amount', value: (row) => plainMoney(row.amount, row.currency) },
  { title: 'captured_amount', value: (row) => plainMoney(row.captured_amount, row.currency) },
  'currency',
  'expires_at',
  'reference',
  'description',
];

const dayMs = 86_400_000;

function addPlacing(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Hold money', scope: 'holds:write' } as const;
  const task = addTask(
    app,
    { name: 'hold', ...page, done: (data) => ({ goTo: `${holdUrl((data as Hold).hold_id)}?placed` }) },
    secrets,
  );
  const url = `${holdsUrl(':account_id')}/new`;
  const ownedIn = (visit: Visit) => ownedOf(visit, visit.id);
  const dayIn = ({ now }: Visit, days: number) => bankDay(now + days * dayMs);
  addFormPage(app, url, page, {
    async draw(visit, sent, wrong) {
      const before = task.valuesOf(visit, sent);
      const values = before.size > 0 ? before : new URLSearchParams({ until: dayIn(visit, 7) });
      return placeForm(visit, await ownedIn(visit), values, wrong);
    },
    async take(visit) {
      const { account, owner } = await ownedIn(visit);
      const { account_id, account_number, currency } = account;
      const { until = '', ...texts } = enteredIn(['until', 'reference', 'description'], visit.fields);
      const isDay = /^\d{4}-\d\d-\d\d$/.test(until) && until >= dayIn(visit, 0) && until <= dayIn(visit, mostDays);
      const {
        amount: { amount },
      } = accepted({
        amount: typedAmount(visit.fields.get('amount') ?? '', currency),
        until: isDay ? {} : { wrong: `Choose a day from ${dayIn(visit, 0)} to ${dayIn(visit, mostDays)}.` },
      });
      const after = sumText(availableOf(account), amount, currency, -1n);
      return task.summarise(visit, {
        path: `/accounts/${account_id}/holds`,
        body: { amount, currency, expires_at: endOfDay(until), ...texts },
        facts: [
          ['Amount', amountText(amount, currency)],
          ['Customer', owner && nameOf(owner)],
          ['Account', account_number],
          ['Until the end of', until],
          ['Reference', texts['reference']],
          ['Description', texts['description']],
        ],
        changes: [amountChange(`${account_number}: available`, availableOf(account), after, currency)],
        ...(after.startsWith('-') && { warning: refusalText('insufficient_funds', { from: account }) }),
        button: `Hold ${amountText(amount, currency)}`,
        form: `${holdsUrl(account_id)}/new`,
        entered: { amount, until, ...texts },
      });
    },
  });
}

/** A capture ends at a receipt, as at the counter. */
function receiptOf(data: unknown): string {
  const { transaction, transfer } = data as CapturedHold;
  const posting = transfer ?? transaction;
  return posting === undefined ? '/admin/ui' : `${counterUrl}/receipts/${idOfPosting(posting)}`;
}

function addCapture(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Capture a hold', scope: 'holds:write' } as const;
  const task = addTask(app, { name: 'capture', ...page, done: (data) => ({ goTo: receiptOf(data) }) }, secrets);
  const url = `${holdUrl(':hold_id')}/capture`;
  addFormPage(app, url, page, {
    async draw(visit, sent, wrong) {
      const hold = await newHold(visit);
      if (hold.status !== 'Active') return { goTo: holdUrl(hold.hold_id) };
      const before = task.valuesOf(visit, sent);
      const values = before.size > 0 ? before : new URLSearchParams({ amount: remainingMinor(hold) });
      return captureForm(visit, hold, await ownedOf(visit, hold.account_id), values, wrong);
    },
    async take(visit) {
      const { fields } = visit;
      const hold = await newHold(visit);
      const { currency, hold_id } = hold;
      const left = remainingMinor(hold);
      const entered = enteredIn(['to_number', 'description', 'keep'], fields);
      const { to_number, description, keep } = entered;
      const { account, owner } = await ownedOf(visit, hold.account_id);
      const { account_number, balance } = account;
      const typed = typedAmount(fields.get('amount') ?? '', currency);
      const isMore = 'amount' in typed && sumText(left, typed.amount, currency, -1n).startsWith('-');
      const valid = accepted({
        amount: isMore ? { wrong: `Only ${amountText(left, currency)} are still held.` } : typed,
        to_number: to_number === undefined ? undefined : await destinationOf(visit, to_number, account),
      });
      const to = valid.to_number;
      const { amount } = valid.amount;
      const rest = sumText(left, amount, currency, -1n);
      const keeps = keep === 'yes' && /[1-9]/.test(rest);
      const money = amountText(amount, currency);
      return task.summarise(visit, {
        path: `/holds/${hold_id}/capture`,
        body: {
          amount,
          final: !keeps,
          ...(to && { to_account_id: to.account.account_id }),
          ...(description && { description }),
        },
        facts: [
          ['Amount', money],
          ['Customer', owner && nameOf(owner)],
          ['From account', account_number],
          ['To', to ? toText(to) : 'Cash'],
          ['Remaining afterwards', `${amountText(rest, currency)}, ${keeps ? 'stays held' : 'is released'}`],
          ['Description', description],
        ],
        changes: [
          amountChange(`${account_number}: balance`, balance, sumText(balance, amount, currency, -1n), currency),
          amountChange(`${account_number}: held by this hold`, left, keeps ? rest : '0', currency),
        ],
        button: to ? `Capture ${money}` : `Pay out ${money}`,
        form: `${holdUrl(hold_id)}/capture`,
        entered: { ...entered, amount },
      });
    },
  });
}

interface Destination {
  account: Account;
  name: string | undefined;
}

const toText = ({ account: { account_number, account_type }, name }: Destination): string =>
  `${account_number}, ${account_type}${name === undefined ? '' : `, ${name}`}`;

/** Returns the destination account, or the reason for which it is refused. */
async function destinationOf(visit: Visit, typed: string, from: Account): Promise<Destination | { wrong: string }> {
  const found = await counterpartOf(visit.api, typed, from);
  if ('wrong' in found) return found;
  const owner = await holderOf(visit, found.account);
  return { ...found, name: owner && nameOf(owner) };
}

/** There is nothing to enter, so the link leads directly to the summary. */
function addRelease(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Release a hold', scope: 'holds:write' } as const;
  const task = addTask(
    app,
    { name: 'release', ...page, done: (data) => ({ goTo: `${holdUrl((data as Hold).hold_id)}?released` }) },
    secrets,
  );
  addPage(app, `${holdUrl(':hold_id')}/release`, page, async (visit) => {
    const hold = await newHold(visit);
    const { account, owner } = await ownedOf(visit, hold.account_id);
    const { hold_id, currency } = hold;
    if (hold.status !== 'Active') return { goTo: holdUrl(hold_id) };
    const left = remainingMinor(hold);
    const available = availableOf(account);
    const after = sumText(available, left, currency, 1n);
    return task.summarise(visit, {
      path: `/holds/${hold_id}/release`,
      body: {},
      facts: [
        ['Amount', amountText(left, currency)],
        ['Customer', owner && nameOf(owner)],
        ['Account', account.account_number],
      ],
      changes: [amountChange(`${account.account_number}: available`, available, after, currency)],
      button: `Release ${amountText(left, currency)}`,
      form: holdUrl(hold_id),
      entered: {},
    });
  });
}

const holdUrl = (holdId: string) => `/admin/ui/holds/${holdId}`;
const holdsUrl = (accountId: string) => `/admin/ui/accounts/${accountId}/holds`;

/** Returns the amount that is still reserved, or would be if the hold were Active. */
const remainingMinor = ({ amount, captured_amount, currency }: Hold): string =>
  sumText(amount, captured_amount, currency, -1n);

function holdTable(rows: readonly Hold[], { scopes }: Person, sort?: Sorting): Html {
  const release = (hold: Hold) =>
    html`${hold.status === 'Active' && html`<a href="${holdUrl(hold.hold_id)}/release" aria-label="Release ${amountText(remainingMinor(hold), hold.currency)}">Release</a>`}`;
  return table<Hold>(
    'Holds',
    [
      { title: 'Placed', sort, show: ({ hold_id, created_at }) => idLink(hold_id, timeOf(created_at)) },
      { title: 'Status', show: ({ status }) => statusOf(status) },
      numeric('Amount', ({ amount, currency }) => amountText(amount, currency)),
      numeric('Captured', (row) => amountText(row.captured_amount, row.currency)),
      { title: 'Until', show: ({ expires_at }) => untilOf(expires_at) },
      { title: 'Reference', show: ({ reference }) => html`<span class="long">${reference}</span>` },
      { title: 'Description', show: ({ description }) => html`<span class="text">${description}</span>` },
      ...(scopes.has('holds:write') ? [{ title: 'Action', isPlain: true, show: release }] : []),
    ],
    rows,
    'No hold matches.',
  );
}

const mayHold = ({ account_type, status }: Account, { scopes }: Person): boolean =>
  scopes.has('holds:write') && status === 'Active' && account_type !== 'Loan';

function placeAction(account: Account, person: Person): Html {
  return html`${mayHold(account, person) && html`<p class="actions"><a role="button" class="secondary" href="${holdsUrl(account.account_id)}/new">Hold money</a></p>`}`;
}

/** The holds on the page of their account, with a link to place one, for people who may read them. */
export async function holdsOn({ api, person }: Visit, account: Account): Promise<Html> {
  if (!person.scopes.has('transactions:read')) return html``;
  const { account_id, balance, currency } = account;
  const { data, next } = await api.get<Hold[]>(`/accounts/${account_id}/holds?status=Active&limit=5`);
  if (data.length === 0 && !mayHold(account, person)) return html``;
  const held = sumText(balance, availableOf(account), currency, -1n);
  return html`<h2>Holds</h2>${data.length > 0 ? html`<p>Held <strong>${amountText(held, currency)}</strong></p>${holdTable(data, person)}` : html`<p role="status">Nothing is held.</p>`}
${next !== undefined && html`<p><a href="${holdsUrl(account_id)}">All holds</a></p>`}${placeAction(account, person)}`;
}

/** The page of one hold: its properties and the possible actions. */
function holdPage(hold: Hold, { account, owner }: Owned, { scopes }: Person): Html {
  const { hold_id, currency, status } = hold;
  const mayCapture = scopes.has('transactions:write') || scopes.has('transfers:write');
  const isOpen = status === 'Active' && scopes.has('holds:write');
  return html`${facts([
    ['Status', statusOf(status)],
    ['Amount', html`<strong class="balance">${amountText(hold.amount, currency)}</strong>`],
    ['Captured', amountText(hold.captured_amount, currency)],
    ['Still held', status === 'Active' && html`<strong>${amountText(remainingMinor(hold), currency)}</strong>`],
    ['Customer', owner && idLink(owner.client_id, nameOf(owner))],
    [
      'Account',
      html`${idLink(account.account_id, account.account_number)}, ${account.account_type}, ${statusOf(account.status)}`,
    ],
    ['Reference', hold.reference],
    ['Description', hold.description],
    ...ownNames(hold),
    ['Placed', fullTimeOf(hold.created_at)],
    [status === 'Active' ? 'Held until' : 'Held until (at the latest)', untilOf(hold.expires_at)],
    ['Id', idText(hold_id)],
  ])}
${
  isOpen &&
  html`<p class="actions">${mayCapture && html`<a role="button" href="${holdUrl(hold_id)}/capture">Capture</a> `}<a role="button" class="secondary" href="${holdUrl(hold_id)}/release">Release</a></p>
<p class="quiet">Capture takes the money, or a part of it. Release makes it available to the customer again.</p>`
}
<p><a href="${holdsUrl(account.account_id)}">All holds of the account</a></p>`;
}

const mostDays = 30;

function placeForm(visit: Visit, owned: Owned, values: URLSearchParams, wrong: Wrong): Html {
  const { account } = owned;
  if (!mayHold(account, visit.person))
    return html`${customer(owned)}<p class="notice wrong" role="status">${account.account_type === 'Loan' ? 'A hold is not possible on a loan account.' : 'A hold is possible only on an active account.'}</p>
<p><a role="button" href="/admin/ui/accounts/${account.account_id}">To the account</a></p>`;
  const until = {
    name: 'until',
    label: 'Held until the end of (day)',
    type: 'date',
    isRequired: true,
    hint: `Within the next ${mostDays} days. After that day it is released automatically.`,
  } as const;
  const inputs = [amountField(account.currency), until, referenceField, descriptionField('Why it is held.')];
  const cancel = `/admin/ui/accounts/${account.account_id}`;
  return desk(
    'The customer',
    customer(owned),
    formOf(visit, { wrong, button: 'Continue', cancel }, inputsOf(inputs, values, wrong)),
  );
}

function captureForm(visit: Visit, hold: Hold, owned: Owned, values: URLSearchParams, wrong: Wrong): Html {
  const { scopes } = visit.person;
  const to = {
    name: 'to_number',
    label: 'To account',
    maxLength: 40,
    isRequired: !scopes.has('transactions:write'),
    hint: scopes.has('transactions:write') ? 'Its number. Empty: paid out in cash.' : 'Its number.',
  };
  const keep = html`<label><input type="checkbox" name="keep" value="yes"${values.get('keep') === 'yes' && html` checked`}> Keep the rest held</label>`;
  const left = `${amountText(remainingMinor(hold), hold.currency)} are still held.`;
  const description = descriptionField('Printed on the statement. Empty: that of the hold.');
  const inputs = [amountField(hold.currency, left), ...(scopes.has('transfers:write') ? [to] : []), description];
  const content = html`${inputsOf(inputs, values, wrong)}
${keep}`;
  const form = formOf(visit, { wrong, button: 'Continue', cancel: holdUrl(hold.hold_id) }, content);
  return desk('The customer', customer(owned), form);
}
