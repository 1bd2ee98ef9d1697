import type { FastifyInstance } from 'fastify';
import { freezeReason, type StatusTransition } from '#libs/contracts/account-status.ts';
import { type Account, accountType } from '#libs/contracts/accounts.ts';
import { type Client, clientName } from '#libs/contracts/clients.ts';
import type { Entry } from '#libs/contracts/entries.ts';
import { currencies, withdrawnOn } from '#libs/contracts/money.ts';
import type { EntryLine } from '#libs/contracts/statements.ts';
import { amountText, moneyText, movedWords, movementTitle } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type ActorNames, showActor } from '../html/actors.ts';
import { sumText } from '../html/amounts.ts';
import type { CsvColumn } from '../html/csv.ts';
import { confirmation, showField, showForm, type Wrong } from '../html/forms.ts';
import type { PageOptions, PageRequest } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { addListPage, type List, type Sorting } from '../html/lists.ts';
import { type Owned, readOwnedAccount } from '../html/owners.ts';
import {
  desk,
  emptyState,
  facts,
  idLink,
  idText,
  idTextLink,
  more,
  numeric,
  ownNames,
  parts,
  pill,
  showDay,
  showFullTime,
  showPosted,
  showTime,
  table,
  technical,
  totalText,
} from '../html/show.ts';
import { showEmail } from './client-views.ts';
import { kindsFor, showReversed } from './counter-instructions.ts';
import { counterActions } from './counter-views.ts';
import type { Announced } from './needs-approval.ts';
import type { WithParties } from './parties.ts';

/** The account pages. */

const url = '/admin/ui/accounts';

export type Owners = ReadonlyMap<string, Client>;

/** `owners`: the owners of accounts of several clients, if the person may read them. */
export function accountTable(rows: readonly Account[], sort?: Sorting, owners?: Owners): Html {
  const owner = ({ client_id }: Account) => {
    const client = owners?.get(client_id);
    return html`<span class="name">${idLink(client_id, client ? clientName(client) : html`<code class="long">${client_id}</code>`)}</span>`;
  };
  const together = (isLoan: boolean) => {
    const some = rows.filter(({ account_type }) => (account_type === 'Loan') === isLoan);
    return totalText(some.map(({ balance, currency }) => ({ amount: balance, currency })));
  };
  const [held, owed] = [together(false), together(true)];
  const currencies = new Set(rows.map(({ currency }) => currency));
  const [only] = currencies.size === 1 ? currencies : [];
  return html`${table<Account>(
    'Accounts',
    [
      { title: 'Account', show: (row) => html`<strong>${idLink(row.account_id, row.account_number)}</strong>` },
      ...(owners ? [{ title: 'Client', show: owner }] : []),
      { title: 'Type', show: (row) => row.account_type },
      { title: 'Status', show: (row) => pill(row.status) },
      numeric(only ? `Balance in ${only}` : 'Balance', (row) =>
        only ? moneyText(row.balance, row.currency) : amountText(row.balance, row.currency),
      ),
      { title: 'Opened', sort, isMinor: true, show: (row) => showDay(row.created_at) },
    ],
    rows,
    sort
      ? emptyState('No account matches. Remove a filter, or look for a name or number in the box above.', {
          href: url,
          text: 'Clear the filters',
        })
      : 'There is no account yet.',
  )}${rows.length > 1 && html`<p class="totals">On this page${held !== '' && html`: balances <strong>${held}</strong>`}${owed !== '' && html`; owed on loans <strong>${owed}</strong>`}</p>`}`;
}

/** The other account of a posting, after the name of its owner if that is known. */
function showCounterparty(row: WithParties<EntryLine>): Html {
  const { counterparty_account_id: id, counterparty_account_number: number, other } = row;
  if (id === undefined) return html``;
  return html` ${other?.customer && `${other.customer}, `}<span class="whole">${idLink(id, number)}</span>`;
}

/** The latest entries with the balance after each, which customers ask about most. */
export function movementTable(
  rows: readonly WithParties<EntryLine>[],
  accountNumber: string,
  caption = 'Latest movements',
  empty = 'Nothing has been posted yet.',
): Html {
  const { debit, credit } = movedWords(accountNumber);
  const amount = (row: EntryLine, direction: EntryLine['direction']) =>
    row.direction === direction ? moneyText(row.amount, row.currency) : '';
  return table<WithParties<EntryLine>>(
    caption,
    [
      {
        title: 'What',
        show: (row) => {
          const said = row.description ?? row.reference;
          return html`${idLink(row.transaction_id, movementTitle(row, accountNumber))}${showCounterparty(row)}${showReversed(row)}${said !== null && html`<br><span class="quiet text">${said}</span>`}`;
        },
      },
      { title: 'Posted', show: (row) => html`<span class="quiet">${showPosted(row)}</span>` },
      numeric(debit.title, (row) => amount(row, 'debit'), debit.way),
      numeric(credit.title, (row) => amount(row, 'credit'), credit.way),
      numeric('Balance', (row) => html`<strong>${moneyText(row.balance_after, row.currency)}</strong>`),
    ],
    rows,
    empty,
  );
}

export function entryTable(rows: readonly Entry[], sort?: Sorting): Html {
  return table<Entry>(
    'Entries',
    [
      numeric('No.', (row) => String(row.sequence)),
      { title: 'Posted', sort, show: showPosted },
      numeric('Debit', (row) => (row.side === 'DR' ? moneyText(row.amount, row.currency) : '')),
      numeric('Credit', (row) => (row.side === 'CR' ? moneyText(row.amount, row.currency) : '')),
      numeric('Balance after', (row) => amountText(row.balance_after, row.currency)),
      { title: 'Transaction', show: (row) => idTextLink(row.transaction_id) },
    ],
    rows,
    'There is no entry.',
  );
}

export function historyTable(rows: readonly StatusTransition[], names: ActorNames, sort?: Sorting): Html {
  return table<StatusTransition>(
    'Status history',
    [
      { title: 'When', sort, show: (row) => showTime(row.created_at) },
      { title: 'Status', show: (row) => html`${row.from_status} → ${pill(row.to_status)}` },
      { title: 'Reason', show: ({ reason }) => (reason ? reasons[reason] : '–') },
      { title: 'Note', show: (row) => html`<span class="text">${row.note ?? '–'}</span>` },
      { title: 'Who', show: (row) => (row.actor === undefined ? '–' : showActor(row.actor, names)) },
    ],
    rows,
    'The status was never changed.',
  );
}

const pages = [
  ['', 'Overview', 'accounts:read'],
  ['/transactions', 'Transactions', 'transactions:read'],
  ['/entries', 'Entries', 'transactions:read'],
  ['/holds', 'Holds', 'transactions:read'],
  ['/statement', 'Statement', 'transactions:read'],
  ['/limits', 'Limits', 'accounts:read'],
  ['/history', 'Status history', 'accounts:read'],
] as const;

/** Links to the pages of an account. */
export function accountParts(accountId: string, here: string, { scopes }: Person): Html {
  const shown = pages.filter(([, , scope]) => scopes.has(scope));
  const links = shown.map(([part, text]) => ({ href: `${url}/${accountId}${part}`, text, isHere: part === here }));
  return parts('Account', links);
}

/** Adds the page and the CSV file of a list of one account. `getNumber`: its number, for what the list shows. */
export function addPart<Row>(
  app: FastifyInstance,
  part: string,
  page: PageOptions,
  getList: (visit: PageRequest, getNumber: () => string) => List<Row>,
  csv: readonly CsvColumn<Row>[],
): void {
  const withAccount = (visit: PageRequest): List<Row> => {
    let number = '';
    return {
      ...getList(visit, () => number),
      async above() {
        const owned = await readOwnedAccount(visit, visit.id);
        const { account } = owned;
        number = account.account_number;
        return {
          title: `${page.title} of account ${number}`,
          heading: accountHeading(owned),
          content: html`${accountLine(account)}${accountParts(account.account_id, part, visit.person)}`,
        };
      },
    };
  };
  addListPage(app, `${url}/:account_id${part}`, page, withAccount, csv);
}

export interface OwnedAccount extends Owned {
  /** The latest change of its status. */
  lastChange: StatusTransition | undefined;
  /** Its limits in words, if it has any and they are shown. */
  limits?: Html | undefined;
}

/** The heading of every page of an account: its owner, who is read by people who may read clients. */
export const accountHeading = ({ account, owner }: Owned): Html =>
  html`${owner ? idLink(account.client_id, clientName(owner)) : account.account_number}`;

/** What people know an account by, and its state. */
export const accountLine = (account: Account): Html =>
  html`<p class="under"><span class="whole">${account.account_number}</span> <span>${account.account_type}</span> ${pill(account.status)}</p>`;

/** The balance, and which part of it is available. */
function showBalance({ balance, available_balance, currency, account_type }: Account): Html {
  const isLoan = account_type === 'Loan';
  const isHeld = !isLoan && available_balance !== undefined && available_balance !== balance;
  return html`<p class="figure"><span class="quiet">${isLoan ? 'Still owed' : 'Balance'}</span> <strong>${moneyText(balance, currency)}</strong> ${currency}</p>
${
  isHeld &&
  facts([
    ['Available', amountText(available_balance, currency)],
    ['Held', amountText(sumText(balance, available_balance, currency, -1n), currency)],
  ])
}`;
}

const properties = ({ account, owner, lastChange, limits }: OwnedAccount): Html =>
  html`${facts([
    ['Reason', lastChange?.to_status === account.status && whyText(lastChange)],
    ['Phone', owner?.contact_number],
    ['E-mail', owner && showEmail(owner)],
    ['Limits', limits],
  ])}${technical([
    ['Id', idText(account.account_id)],
    ...ownNames(account),
    ['Opened', showFullTime(account.created_at)],
    ['Last changed', showFullTime(account.updated_at)],
  ])}`;

/** The account beside a form. */
export const accountFacts = (owned: OwnedAccount): Html =>
  html`<p class="who">${owned.owner ? idLink(owned.account.client_id, clientName(owned.owner)) : idLink(owned.account.client_id)}</p>${accountLine(owned.account)}${showBalance(owned.account)}${properties(owned)}`;

/** The account on its own page, with what can be done: one thing is likely, the others are beside it or under More. */
export function accountSide(owned: OwnedAccount, person: Person, isNew: boolean): Html {
  const { account } = owned;
  const isServed = kindsFor(account, person.scopes).length > 0;
  const others = statusChanges
    .filter((change) => person.scopes.has('accounts:status') && changes[change].from.includes(account.status))
    .map(
      (change) =>
        html`<a${!isServed && html` role="button" class="secondary"`} href="${url}/${account.account_id}/${change}">${changes[change].verb}</a>`,
    );
  const actions = isServed ? html`${counterActions(account, person, isNew)}${more(others)}` : html`${others}`;
  return html`${showBalance(account)}<div class="actions">${actions}</div>${properties(owned)}`;
}

const currencyOptions = [['', 'Choose one'] as const, ...currencies.filter((code) => withdrawnOn(code) === undefined)];

const whose = 'Phone number, e-mail address, or words of a name.';
const optionOf = (client: Client) => [client.client_id, `${clientName(client)}, ${client.contact_number}`] as const;

/** `holder`: the client for whom the account is opened, if it is known. `found`: those of whom the person must choose. */
export function openingForm(
  visit: PageRequest,
  { holder, found }: { holder: Client | undefined; found: readonly Client[] },
  values: URLSearchParams,
  wrong: Wrong,
): Html {
  const client = holder
    ? html`<p>For <strong>${idLink(holder.client_id, clientName(holder))}</strong></p><input type="hidden" name="client_id" value="${holder.client_id}">`
    : found.length > 0
      ? html`${showField({ name: 'client_id', label: 'Client', options: [['', 'Choose one'] as const, ...found.map(optionOf)] }, values, wrong)}
${showField({ name: 'other_words', label: 'Or another client', maxLength: 255, hint: whose }, new URLSearchParams(), wrong)}`
      : showField({ name: 'client_id', label: 'Client', isRequired: true, maxLength: 255, hint: whose }, values, wrong);
  const fields = html`${client}
${showField({ name: 'account_type', label: 'Type', options: accountType.options }, values, wrong)}
${showField({ name: 'currency', label: 'Currency', isRequired: true, options: currencyOptions }, values, wrong)}
${showField({ name: 'initial_deposit', label: 'First deposit', inputMode: 'decimal', placeholder: '0.00', hint: 'In cash, for example 1500, 1,500 or 1 500,50. For a loan, the amount that is lent and paid out in cash. Leave it empty for none.' }, values, wrong)}`;
  const id = holder?.client_id;
  const cancel = id ? `/admin/ui/clients/${encodeURIComponent(id)}` : url;
  return showForm(visit, { wrong, button: 'Open the account', cancel }, fields);
}

const reasons = {
  fraud: 'fraud',
  legal: 'legal',
  customer_request: 'request of the customer',
  deceased: 'deceased',
  other: 'other',
} as const;
export const whyText = ({ reason, note }: Pick<StatusTransition, 'reason' | 'note'>): string =>
  [reason && reasons[reason], note].filter((text) => text).join(': ');

export type StatusChange = 'freezing' | 'unfreezing' | 'activation' | 'deactivation';

interface Change {
  verb: string;
  status: Account['status'];
  from: readonly Account['status'][];
  /** The effect of the change, in words for the person who confirms it. */
  meaning: string;
  /** The result, in words: the account is … */
  done: string;
}

const taken = 'After this, postings to this account and from it are accepted again.';
/** The changes of status that a page offers, by the last part of its path. */
export const changes: Record<StatusChange, Change> = {
  freezing: {
    verb: 'Freeze',
    status: 'Frozen',
    from: ['Active', 'Inactive'],
    meaning: 'While an account is frozen, every posting to it and from it is refused.',
    done: 'frozen',
  },
  unfreezing: { verb: 'Unfreeze', status: 'Active', from: ['Frozen'], meaning: taken, done: 'unfrozen' },
  activation: { verb: 'Activate', status: 'Active', from: ['Inactive'], meaning: taken, done: 'activated' },
  deactivation: {
    verb: 'Deactivate',
    status: 'Inactive',
    from: ['Active'],
    meaning: 'While an account is inactive, every posting to it and from it is refused.',
    done: 'deactivated',
  },
};
export const statusChanges = Object.keys(changes) as StatusChange[];

/** The form of a change of status: its effect, reason, note, and a checkbox to confirm. */
export function statusForm(
  visit: PageRequest,
  owned: OwnedAccount,
  change: StatusChange,
  { says, button }: Announced,
  values: URLSearchParams,
  wrong: Wrong,
): Html {
  const { account, owner } = owned;
  const { verb, status, meaning } = changes[change];
  const whose = owner ? ` of ${clientName(owner)}` : '';
  const isFreezing = status === 'Frozen';
  const isUnfreezing = change === 'unfreezing';
  const options = [
    ['', isFreezing ? 'Choose one' : 'none'] as const,
    ...freezeReason.options.map((value) => [value, reasons[value]] as const),
  ];
  const frame = {
    wrong,
    button,
    cancel: `${url}/${account.account_id}`,
    isDangerous: status !== 'Active',
  };
  const form = showForm(
    visit,
    frame,
    html`<p role="alert">${meaning}</p>${says}
${status !== 'Active' && showField({ name: 'reason', label: 'Reason', options, isRequired: isFreezing }, values, wrong)}
${showField({ name: 'note', label: isUnfreezing ? 'Why it may be used again' : 'Note', type: 'textarea', maxLength: 500, isRequired: isUnfreezing, hint: `${isUnfreezing ? 'For example who was identified, or which order was lifted. ' : ''}Shown in the status history, with your name.` }, values, wrong)}
${confirmation(`${verb} account ${account.account_number}${whose}`, wrong)}`,
  );
  return desk('The account', accountFacts(owned), form);
}
