import type { Hold } from '#libs/contracts/holds.ts';
import type { Account } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import { sumText } from '../html/amounts.ts';
import type { Wrong } from '../html/forms.ts';
import { amountField, descriptionField, formOf, inputsOf, referenceField } from '../html/forms.ts';
import type { Visit } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import type { Sorting } from '../html/lists.ts';
import type { Owned } from '../html/owners.ts';
import {
  amountText,
  desk,
  facts,
  fullTimeOf,
  idLink,
  idText,
  ownNames,
  statusOf,
  table,
  timeOf,
  untilOf,
} from '../html/show.ts';
import { nameOf } from './client-views.ts';
import { availableOf } from './counter-instructions.ts';
import { customer } from './counter-views.ts';

/** The pages of holds. */

export const holdUrl = (holdId: string) => `/admin/ui/holds/${holdId}`;
export const holdsUrl = (accountId: string) => `/admin/ui/accounts/${accountId}/holds`;

/** Returns the amount that is still reserved, or would be if the hold were Active. */
export const leftOf = ({ amount, captured_amount, currency }: Hold): string =>
  sumText(amount, captured_amount, currency, -1n);

export function holdTable(rows: readonly Hold[], { scopes }: Person, sort?: Sorting): Html {
  const release = (hold: Hold) =>
    html`${hold.status === 'Active' && html`<a href="${holdUrl(hold.hold_id)}/release" aria-label="Release ${amountText(leftOf(hold), hold.currency)}">Release</a>`}`;
  return table<Hold>(
    'Holds',
    [
      { title: 'Placed', sort, show: ({ hold_id, created_at }) => idLink(hold_id, timeOf(created_at)) },
      { title: 'Status', show: ({ status }) => statusOf(status) },
      { title: 'Amount', isNumber: true, show: ({ amount, currency }) => amountText(amount, currency) },
      { title: 'Captured', isNumber: true, show: (row) => amountText(row.captured_amount, row.currency) },
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

export function placeAction(account: Account, person: Person): Html {
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
export function holdPage(hold: Hold, { account, owner }: Owned, { scopes }: Person): Html {
  const { hold_id, currency, status } = hold;
  const mayCapture = scopes.has('transactions:write') || scopes.has('transfers:write');
  const isOpen = status === 'Active' && scopes.has('holds:write');
  return html`${facts([
    ['Status', statusOf(status)],
    ['Amount', html`<strong class="balance">${amountText(hold.amount, currency)}</strong>`],
    ['Captured', amountText(hold.captured_amount, currency)],
    ['Still held', status === 'Active' && html`<strong>${amountText(leftOf(hold), currency)}</strong>`],
    ['Customer', owner && idLink(owner.client_id, nameOf(owner))],
    [
      'Account',
      html`${idLink(account.account_id, account.account_number)}, ${account.account_type}, ${statusOf(account.status)}`,
    ],
    ['Reference', hold.reference],
    ['Description', hold.description],
    ...ownNames(hold),
    ['Placed', fullTimeOf(hold.created_at)],
    [status === 'Active' ? 'Held until' : 'Was held until at most', untilOf(hold.expires_at)],
    ['Id', idText(hold_id)],
  ])}
${
  isOpen &&
  html`<p class="actions">${mayCapture && html`<a role="button" href="${holdUrl(hold_id)}/capture">Capture</a> `}<a role="button" class="secondary" href="${holdUrl(hold_id)}/release">Release</a></p>
<p class="quiet">Capture takes the money, or a part of it. Release makes it available to the customer again.</p>`
}
<p><a href="${holdsUrl(account.account_id)}">All holds of the account</a></p>`;
}

export const mostDays = 30;

export function placeForm(visit: Visit, owned: Owned, values: URLSearchParams, wrong: Wrong): Html {
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

export function captureForm(visit: Visit, hold: Hold, owned: Owned, values: URLSearchParams, wrong: Wrong): Html {
  const { scopes } = visit.person;
  const to = {
    name: 'to_number',
    label: 'To account',
    maxLength: 40,
    isRequired: !scopes.has('transactions:write'),
    hint: scopes.has('transactions:write') ? 'Its number. Empty: paid out in cash.' : 'Its number.',
  };
  const keep = html`<label><input type="checkbox" name="keep" value="yes"${values.get('keep') === 'yes' && html` checked`}> Keep the rest held</label>`;
  const left = `${amountText(leftOf(hold), hold.currency)} are still held.`;
  const description = descriptionField('Printed on the statement. Empty: that of the hold.');
  const inputs = [amountField(hold.currency, left), ...(scopes.has('transfers:write') ? [to] : []), description];
  const content = html`${inputsOf(inputs, values, wrong)}
${keep}`;
  const form = formOf(visit, { wrong, button: 'Continue', cancel: holdUrl(hold.hold_id) }, content);
  return desk('The customer', customer(owned), form);
}
