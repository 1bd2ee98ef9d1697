import type { FastifyInstance } from 'fastify';
import { currencies, isCurrency } from '#libs/contracts/money.ts';
import type { Account, Client, Entry, EntryLine, StatusTransition, Transaction } from '#libs/contracts/resources.ts';
import { accountStatus, accountType, transactionStatus, transactionType } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import { keyNamesOf } from '../html/actors.ts';
import type { TypedAmount } from '../html/amounts.ts';
import { jsonNumber, typedAmount } from '../html/amounts.ts';
import type { CsvColumn } from '../html/csv.ts';
import { zoneText } from '../html/formats.ts';
import type { Wrong } from '../html/forms.ts';
import { addFormPage, checkConfirmed, enteredIn, idempotencyKeyOf, WrongInput, waitingFor } from '../html/forms.ts';
import type { Shown, Visit } from '../html/frame.ts';
import { addPage } from '../html/frame.ts';
import type { List } from '../html/lists.ts';
import { addListFile, showList } from '../html/lists.ts';
import { clientsBy } from '../html/owners.ts';
import { desk, idText, plainMoney } from '../html/show.ts';
import { holdsOn } from './account-holds.ts';
import type { OwnedAccount, StatusChange } from './account-views.ts';
import {
  accountFacts,
  accountParts,
  accountTable,
  changes,
  entryTable,
  historyTable,
  movementTable,
  openingForm,
  statusActions,
  statusChanges,
  statusForm,
  transactionTable,
} from './account-views.ts';
import { counterActions } from './counter-views.ts';
import { notesOf } from './notes.ts';

const url = '/admin/ui/accounts';

const list: List<Account> = {
  url,
  path: '/accounts',
  csv: [
    'account_id',
    'account_number',
    'client_id',
    'account_type',
    'status',
    { title: 'balance', value: (row) => plainMoney(row.balance, row.currency) },
    'currency',
    'created_at',
  ],
  show: async (rows, sort, visit) =>
    accountTable(
      rows,
      sort,
      await clientsBy(
        visit,
        rows.map(({ client_id }) => client_id),
      ),
    ),
  filters: [
    { name: 'account_type', label: 'Type', options: accountType.options },
    { name: 'status', label: 'Status', options: accountStatus.options },
    { name: 'currency', label: 'Currency', options: currencies },
    { name: 'client_id', label: 'Client', fromLink: (id) => html`Of the client ${idText(id)} only.` },
  ],
};

/** Adds the pages of accounts: the list, opening, one account with its lists, and changes of status. */
export function addAccounts(app: FastifyInstance): void {
  addPage(app, url, { title: 'Accounts', scope: 'accounts:read' }, async (visit) => {
    const { status = 200, content } = await showList(visit, list);
    return {
      status,
      content: html`${visit.person.scopes.has('accounts:write') && html`<p><a role="button" href="${url}/new">Open an account</a></p>`}${content}<p class="quiet">Times are ${zoneText()}.</p>`,
    };
  });
  addListFile(app, url, { title: 'Accounts', scope: 'accounts:read' }, () => list);
  addFormPage(
    app,
    `${url}/new`,
    { title: 'Open an account', scope: 'accounts:write' },
    { draw: drawOpening, take: open },
  );
  addPage(app, `${url}/:account_id`, { title: 'Account', scope: 'accounts:read' }, showAccount);
  addPart(app, { part: '/transactions', title: 'Transactions', scope: 'transactions:read' }, transactionsOf);
  addPart(app, { part: '/entries', title: 'Entries', scope: 'transactions:read' }, ({ id }) => ({
    url: `${url}/${id}/entries`,
    path: `/accounts/${id}/entries`,
    filters: [],
    csv: entryColumns,
    show: entryTable,
  }));
  addPart<StatusTransition>(app, { part: '/history', title: 'Status history', scope: 'accounts:read' }, (visit) => ({
    url: `${url}/${visit.id}/history`,
    path: `/accounts/${visit.id}/status-transitions`,
    filters: [],
    csv: ['created_at', 'from_status', 'to_status', 'reason', 'note', 'actor'],
    show: async (rows, sort) =>
      historyTable(
        rows,
        await keyNamesOf(
          visit,
          rows.map(({ actor }) => actor),
        ),
        sort,
      ),
  }));
  for (const change of statusChanges) addStatusChange(app, change);
}

export async function accountOf({ api, id }: Visit): Promise<Account> {
  return (await api.get<Account>(`/accounts/${id}`)).data;
}

/** Returns the owner of the account if the person may read clients. The API records the read. */
export async function holderOf({ api, person }: Visit, { client_id }: Account): Promise<Client | undefined> {
  return person.scopes.has('clients:read') ? (await api.get<Client>(`/clients/${client_id}`)).data : undefined;
}

const latest = 10;

/** The message after the redirect of a form. */
function saved(account: Account, said: string | null): Html | false {
  const done = said === 'opened' ? 'opened' : changes[said as StatusChange]?.done;
  return done !== undefined && html`<p class="notice" role="status">Account ${account.account_number} ${done}.</p>`;
}

/** On a wide screen, properties and actions are on the left and postings on the right. */
async function showAccount(visit: Visit) {
  const { api, person, query } = visit;
  const account = await accountOf(visit);
  const id = account.account_id;
  const [holder, movements, history, holds, notes] = await Promise.all([
    holderOf(visit, account),
    person.scopes.has('transactions:read')
      ? api.get<EntryLine[]>(`/accounts/${id}/entries?limit=${latest}`)
      : undefined,
    api.get<StatusTransition[]>(`/accounts/${id}/status-transitions?limit=${latest}`),
    holdsOn(visit, account),
    notesOf(visit, 'accounts', id),
  ]);
  const names = await keyNamesOf(
    visit,
    history.data.map(({ actor }) => actor),
  );
  return {
    title: `Account ${account.account_number}`,
    content: html`${accountParts(id, '', person)}${saved(account, query.get('saved'))}${desk(
      'The account',
      html`${accountFacts({ account, holder, lastChange: history.data[0] })}${counterActions(account, person, query.get('saved') === 'opened')}${statusActions(account, person)}`,
      html`${movements && html`<h2>Latest movements</h2>${movementTable(movements.data)}<p class="actions"><a href="${url}/${id}/transactions">All transactions, refused ones too</a> <a href="${url}/${id}/statement">Statement</a></p>`}
${holds}
${notes}
<h2>Status history</h2>${historyTable(history.data, names)}${history.next !== undefined && html`<p><a href="${url}/${id}/history">Whole history</a></p>`}`,
    )}`,
  };
}

interface Part {
  part: string;
  title: string;
  scope: 'accounts:read' | 'transactions:read';
}

/** Adds the page and the CSV file of a list of one account. */
function addPart<Row>(app: FastifyInstance, { part, title, scope }: Part, listOf: (visit: Visit) => List<Row>): void {
  addPage(app, `${url}/:account_id${part}`, { title, scope }, async (visit) => {
    const { account_id, account_number } = await accountOf(visit);
    const { status = 200, content } = await showList(visit, listOf(visit));
    return {
      status,
      title: `${title} of account ${account_number}`,
      content: html`${accountParts(account_id, part, visit.person)}${content}<p class="quiet">Times are ${zoneText()}.</p>`,
    };
  });
  addListFile(app, `${url}/:account_id${part}`, { title, scope }, listOf);
}

function transactionsOf({ id }: Visit): List<Transaction> {
  return {
    url: `${url}/${id}/transactions`,
    path: '/transactions',
    fixed: { account_id: id },
    hasDays: true,
    csv: transactionColumns,
    show: transactionTable,
    filters: [
      { name: 'transaction_type', label: 'Type', options: transactionType.options },
      { name: 'status', label: 'Status', options: transactionStatus.options },
      { name: 'min_amount', label: 'Amount from', hint: '10.00' },
      { name: 'max_amount', label: 'Amount to', hint: '100.00' },
      { name: 'reference', label: 'Reference', hint: '' },
    ],
  };
}

export const transactionColumns: CsvColumn<Transaction>[] = [
  'transaction_id',
  'created_at',
  'transaction_type',
  'direction',
  { title: 'amount', value: (row) => plainMoney(row.amount, row.currency) },
  'currency',
  'status',
  'failure_code',
  'reference',
  'description',
  'counterparty_account_id',
  'transfer_id',
];

export const entryColumns: CsvColumn<Entry>[] = [
  'sequence',
  'created_at',
  'side',
  { title: 'amount', value: (row) => plainMoney(row.amount, row.currency) },
  'currency',
  { title: 'balance_after', value: (row) => plainMoney(row.balance_after, row.currency) },
  'transaction_id',
  'operation_id',
  'entry_id',
];

async function drawOpening(visit: Visit, entered: URLSearchParams, wrong: Wrong): Promise<Html> {
  const { api, person, query } = visit;
  const values = entered.size > 0 ? entered : new URLSearchParams({ client_id: query.get('client_id') ?? '' });
  const client_id = encodeURIComponent(values.get('client_id') ?? '');
  // The API reports an unknown client, and the message is shown at the field.
  const holder =
    client_id !== '' && person.scopes.has('clients:read')
      ? await api.get<Client>(`/clients/${client_id}`).catch(() => undefined)
      : undefined;
  return openingForm(visit, holder?.data, values, wrong);
}

async function open(visit: Visit): Promise<Shown> {
  const { initial_deposit = '', currency: typed = '', ...rest } = enteredIn(opened, visit.fields);
  const currency = typed.toUpperCase();
  const deposit = depositOf(initial_deposit, currency);
  if ('wrong' in deposit) throw new WrongInput({ initial_deposit: deposit.wrong });
  const { data } = await visit.api.post<Account>(
    '/accounts',
    { ...rest, currency, ...('amount' in deposit && { initial_deposit: jsonNumber(deposit.amount) }) },
    idempotencyKeyOf(visit),
  );
  return waitingFor(data) ?? { goTo: `${url}/${data.account_id}?saved=opened` };
}

const opened = ['client_id', 'account_type', 'currency', 'initial_deposit'];

/**
 * Parses an optional amount as people type it. It can be checked only if the currency exists,
 * because the currency determines the number of decimals.
 */
function depositOf(typed: string, currency: string): TypedAmount | object {
  return typed === '' || /^0+([.,]0*)?$/.test(typed) || !isCurrency(currency) ? {} : typedAmount(typed, currency);
}

async function owned(visit: Visit, change: StatusChange): Promise<OwnedAccount> {
  const account = await accountOf(visit);
  const [holder, changed] = await Promise.all([
    holderOf(visit, account),
    change === 'unfreezing'
      ? visit.api.get<StatusTransition[]>(`/accounts/${account.account_id}/status-transitions?limit=1`)
      : undefined,
  ]);
  return { account, holder, lastChange: changed?.data[0] };
}

function addStatusChange(app: FastifyInstance, change: StatusChange): void {
  const { verb, status } = changes[change];
  const page = { title: `${verb} an account`, scope: 'accounts:status' } as const;
  addFormPage(app, `${url}/:account_id/${change}`, page, {
    async draw(visit, values, wrong) {
      const its = await owned(visit, change);
      return {
        title: `${verb} account ${its.account.account_number}`,
        content: statusForm(visit, its, change, values, wrong),
      };
    },
    async take(visit) {
      checkConfirmed(visit);
      const body = { status, ...enteredIn(['reason', 'note'], visit.fields) };
      const path = `/accounts/${visit.id}/status-transitions`;
      const { data } = await visit.api.post<Account>(path, body, idempotencyKeyOf(visit));
      return waitingFor(data) ?? { goTo: `${url}/${visit.id}?saved=${change}` };
    },
  });
}
