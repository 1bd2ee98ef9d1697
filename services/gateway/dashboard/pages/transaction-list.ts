import type { FastifyInstance } from 'fastify';
import { currencies } from '#libs/contracts/money.ts';
import type { Transaction } from '#libs/contracts/resources.ts';
import { transactionType } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import { actorText } from '../html/actors.ts';
import type { Visit } from '../html/frame.ts';
import { addPage } from '../html/frame.ts';
import type { Filter, List, Sorting } from '../html/lists.ts';
import { addListFile, showList } from '../html/lists.ts';
import { accountsBy, clientsBy } from '../html/owners.ts';
import { idLink, moneyText, statusOf, table, timeOf, totalText } from '../html/show.ts';
import type { Owners } from './account-views.ts';
import { transactionColumns } from './accounts.ts';
import { nameOf } from './client-views.ts';
import { refusalText } from './counter-instructions.ts';

export const transactionsUrl = '/admin/ui/transactions';

const page = { title: 'Transactions', scope: 'transactions:read' } as const;

/** The transactions of the whole bank, with the owners of their accounts. */
export function addTransactionList(app: FastifyInstance): void {
  addPage(app, transactionsUrl, page, (visit) => showList(visit, listFor(visit)));
  addListFile(app, transactionsUrl, page, listFor);
}

const filters: readonly Filter[] = [
  { name: 'transaction_type', label: 'Type', options: transactionType.options },
  { name: 'status', label: 'Status', options: ['Completed', 'Failed'] },
  { name: 'currency', label: 'Currency', options: currencies },
  { name: 'min_amount', label: 'Amount from', hint: '10.00' },
  { name: 'max_amount', label: 'Amount to', hint: '100.00' },
  { name: 'reference', label: 'Reference', hint: 'INVOICE 77' },
];

/** The actor who requested it: this person, or the one that a link names. */
function byWhom({ actor, query }: Visit): Filter {
  const named = query.get('actor') ?? '';
  const others = named === '' || named === actor ? [] : [[named, actorText(named)] as const];
  return { name: 'actor', label: 'Entered by', options: [[actor, 'Me'], ...others] };
}

function listFor(visit: Visit): List<Transaction> {
  return {
    url: transactionsUrl,
    path: '/transactions',
    hasDays: true,
    csv: ['account_id', ...transactionColumns],
    filters: [...filters, byWhom(visit)],
    show: listed,
  };
}

async function listed(rows: readonly Transaction[], sort: Sorting, visit: Visit): Promise<Html> {
  const accounts = await accountsBy(
    visit,
    rows.map(({ account_id }) => account_id),
  );
  const owners: Owners = await clientsBy(
    visit,
    [...accounts.values()].map(({ client_id }) => client_id),
  );
  const ownerOf = ({ account_id }: Transaction) => {
    const owner = owners.get(accounts.get(account_id)?.client_id ?? '');
    return owner && html`<br><span class="quiet name">${nameOf(owner)}</span>`;
  };
  const amount = (row: Transaction, direction: Transaction['direction']) =>
    row.direction === direction ? `${moneyText(row.amount, row.currency)} ${row.currency ?? ''}` : '';
  const total = (direction: Transaction['direction']) =>
    totalText(rows.filter((row) => row.direction === direction && row.status === 'Completed'));
  return html`${table<Transaction>(
    'Transactions',
    [
      { title: 'When', sort, show: (row) => idLink(row.transaction_id, timeOf(row.created_at)) },
      {
        title: 'Account',
        show: (row) =>
          html`${idLink(row.account_id, accounts.get(row.account_id)?.account_number ?? html`<code class="long">${row.account_id}</code>`)}${ownerOf(row)}`,
      },
      {
        title: 'Type',
        show: (row) =>
          html`${row.transaction_type}${row.reverses_transaction_id !== undefined && html`<br><span class="quiet">reversal</span>`}${row.reversed_by_transaction_id !== undefined && html`<br><span class="quiet">reversed</span>`}`,
      },
      { title: 'Out', isNumber: true, show: (row) => amount(row, 'debit') },
      { title: 'In', isNumber: true, show: (row) => amount(row, 'credit') },
      {
        title: 'Status',
        show: (row) =>
          html`${statusOf(row.status)}${row.failure_code !== undefined && html`<br><span class="quiet text">${refusalText(row.failure_code, {})}</span>`}`,
      },
      {
        title: 'Reference',
        show: ({ reference, description }) =>
          html`<span class="text">${reference}</span>${description !== null && html`${reference !== null && html`<br>`}<span class="quiet text">${description}</span>`}`,
      },
    ],
    rows,
    'No transaction matches. Remove a filter, or choose more days.',
  )}${rows.length > 1 && html`<p class="totals">Completed on this page: out <strong>${total('debit') || '–'}</strong>, in <strong>${total('credit') || '–'}</strong></p>`}`;
}
