import type { FastifyInstance } from 'fastify';
import type { Account } from '#libs/contracts/accounts.ts';
import { clientName } from '#libs/contracts/clients.ts';
import { type Hold, holdStatus } from '#libs/contracts/holds.ts';
import { plainMoney } from '#libs/contracts/money.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { sumText } from '../html/amounts.ts';
import type { CsvColumn } from '../html/csv.ts';
import { addPage, type PageRequest } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import type { List, Sorting } from '../html/lists.ts';
import { type Owned, readOwnedAccount } from '../html/owners.ts';
import {
  type Column,
  facts,
  idLink,
  idText,
  notice,
  numeric,
  ownNames,
  pill,
  showFullTime,
  showTime,
  showUntil,
  table,
  technical,
  toned,
} from '../html/show.ts';
import { addPart } from './account-views.ts';
import { availableBalance } from './counter-instructions.ts';
import { addTask, amountChange } from './tasks.ts';

/** Adds the pages of holds: the list of an account, one hold, and releasing. Programs place and capture them. */
export function addHolds(app: FastifyInstance, secrets: readonly string[]): void {
  addPart(app, '/holds', { title: 'Holds', scope: 'transactions:read' }, holdList, columns);
  addPage(app, holdUrl(':hold_id'), { title: 'Hold', scope: 'transactions:read' }, async (visit) => {
    const hold = await readHold(visit);
    return {
      title: `Hold of ${amountText(hold.amount, hold.currency)}`,
      content: html`${visit.query.has('released') && notice('success', html`The hold was released. <a data-next href="/admin/ui/accounts/${hold.account_id}">To the account</a>`)}${holdPage(hold, await readOwnedAccount(visit, hold.account_id), visit.person)}`,
    };
  });
  addRelease(app, secrets);
}

const readHold = async (visit: PageRequest): Promise<Hold> => (await visit.api.get<Hold>(`/holds/${visit.id}`)).data;

const holdList = ({ id, person }: PageRequest): List<Hold> => ({
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

/** There is nothing to enter, so the link leads directly to the summary. */
function addRelease(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Release a hold', scope: 'holds:write' } as const;
  const task = addTask(
    app,
    { name: 'release', ...page, done: (data) => ({ redirectTo: `${holdUrl((data as Hold).hold_id)}?released` }) },
    secrets,
  );
  addPage(app, `${holdUrl(':hold_id')}/release`, page, async (visit) => {
    const hold = await readHold(visit);
    const { account, owner } = await readOwnedAccount(visit, hold.account_id);
    const { hold_id, currency } = hold;
    if (hold.status !== 'Active') return { redirectTo: holdUrl(hold_id) };
    const left = heldAmount(hold);
    const available = availableBalance(account);
    const after = sumText(available, left, currency, 1n);
    return task.summarise(visit, {
      path: `/holds/${hold_id}/release`,
      body: {},
      facts: [
        ['Amount', amountText(left, currency)],
        ['Customer', owner && clientName(owner)],
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
const heldAmount = ({ amount, captured_amount, currency }: Hold): string =>
  sumText(amount, captured_amount, currency, -1n);

/** A hold that is active is not done, as an account is that is active. */
const showStatus = (status: Hold['status']): Html =>
  status === 'Active' ? toned('info', 'going', status) : pill(status);

/** The link that releases a hold, for people who may. */
const releaseColumn = ({ scopes }: Person): Column<Hold>[] => {
  const release = (hold: Hold) =>
    html`${hold.status === 'Active' && html`<a role="button" class="secondary" href="${holdUrl(hold.hold_id)}/release" aria-label="Release ${amountText(heldAmount(hold), hold.currency)}">Release</a>`}`;
  return scopes.has('holds:write') ? [{ title: 'Action', show: release }] : [];
};

function holdTable(rows: readonly Hold[], person: Person, sort?: Sorting): Html {
  return table<Hold>(
    'Holds',
    [
      { title: 'Placed', sort, show: ({ hold_id, created_at }) => idLink(hold_id, showTime(created_at)) },
      { title: 'Status', show: ({ status }) => showStatus(status) },
      numeric('Amount', ({ amount, currency }) => amountText(amount, currency)),
      numeric('Captured', (row) => amountText(row.captured_amount, row.currency)),
      { title: 'Until', show: ({ expires_at }) => showUntil(expires_at) },
      { title: 'Reference', show: ({ reference }) => html`<span class="long">${reference}</span>` },
      { title: 'Description', show: ({ description }) => html`<span class="text">${description}</span>` },
      ...releaseColumn(person),
    ],
    rows,
    'There is no hold. Programs place them, for a card payment for example.',
  );
}

/** What still reserves money of one account. */
const activeTable = (rows: readonly Hold[], person: Person): Html =>
  table<Hold>(
    'Holds',
    [
      {
        title: 'What',
        show: ({ hold_id, description, reference }) =>
          html`${idLink(hold_id, html`<span class="text">${description ?? reference ?? 'Hold'}</span>`)}${description !== null && reference !== null && html`<br><span class="quiet long">${reference}</span>`}`,
      },
      { title: 'Until', show: ({ expires_at }) => showUntil(expires_at) },
      numeric('Held', (hold) => amountText(heldAmount(hold), hold.currency)),
      ...releaseColumn(person),
    ],
    rows,
    '',
  );

/** The holds on the page of their account, which is being read, if there are any, for people who may read them. */
export async function holdsOn({ api, person, id }: PageRequest, reading: Promise<Account>): Promise<Html> {
  if (!person.scopes.has('transactions:read')) return html``;
  const [{ data, next }, account] = await Promise.all([
    api.get<Hold[]>(`/accounts/${id}/holds?status=Active&limit=5`),
    reading,
  ]);
  if (data.length === 0) return html``;
  const { account_id, balance, currency } = account;
  const held = sumText(balance, availableBalance(account), currency, -1n);
  return html`<h2>Holds</h2><p>Held <strong>${amountText(held, currency)}</strong></p>${activeTable(data, person)}
${next !== undefined && html`<p><a href="${holdsUrl(account_id)}">All holds</a></p>`}`;
}

/** The page of one hold: its properties and the possible actions. */
function holdPage(hold: Hold, { account, owner }: Owned, { scopes }: Person): Html {
  const { hold_id, currency, status } = hold;
  const mayRelease = status === 'Active' && scopes.has('holds:write');
  return html`${facts([
    ['Status', showStatus(status)],
    ['Amount', html`<strong class="balance">${amountText(hold.amount, currency)}</strong>`],
    ['Captured', amountText(hold.captured_amount, currency)],
    ['Still held', status === 'Active' && html`<strong>${amountText(heldAmount(hold), currency)}</strong>`],
    ['Customer', owner && idLink(owner.client_id, clientName(owner))],
    [
      'Account',
      html`${idLink(account.account_id, account.account_number)}, ${account.account_type}, ${pill(account.status)}`,
    ],
    ['Reference', hold.reference],
    ['Description', hold.description],
    ...ownNames(hold),
    ['Placed', showFullTime(hold.created_at)],
    [status === 'Active' ? 'Held until' : 'Held until (at the latest)', showUntil(hold.expires_at)],
  ])}
${
  mayRelease &&
  html`<p class="actions"><a role="button" class="secondary" href="${holdUrl(hold_id)}/release">Release</a></p>
<p class="quiet">Releasing makes the money available to the customer again. Programs place and capture holds.</p>`
}
<p><a href="${holdsUrl(account.account_id)}">All holds of the account</a></p>${technical([['Id', idText(hold_id)]])}`;
}
