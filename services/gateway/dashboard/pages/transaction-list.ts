import type { FastifyInstance } from 'fastify';
import { currencies } from '#libs/contracts/money.ts';
import type { Account, Client, Transaction } from '#libs/contracts/resources.ts';
import { transactionStatus, transactionType } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import { actorText } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import type { Visit } from '../html/frame.ts';
import type { Filter, List, Sorting } from '../html/lists.ts';
import { addListPage } from '../html/lists.ts';
import { accountsBy, clientsOf } from '../html/owners.ts';
import { amountText, idLink, plainMoney, statusOf, table, timeOf, totalText } from '../html/show.ts';
import { nameOf } from './client-views.ts';
import { refusalText } from './counter-instructions.ts';

export const transactionsUrl = '/admin/ui/transactions';

/** Adds the list of the transactions of the whole bank, with the owners of their accounts. */
export function addTransactionList(app: FastifyInstance): void {
  const page = { title: 'Transactions', scope: 'transactions:read' } as const;
  addListPage(app, transactionsUrl, page, ofBank, ['account_id', ...transactionColumns]);
}

const type: Filter = { name: 'transaction_type', label: 'Type', options: transactionType.options };
const amounts: readonly Filter[] = [
  { name: 'min_amount', label: 'Amount from', hint: '10.00' },
  { name: 'max_amount', label: 'Amount to', hint: '100.00' },
  { name: 'reference', label: 'Reference', hint: 'INVOICE 77' },
];

function ofBank(visit: Visit): List<Transaction> {
  return {
    path: '/transactions',
    hasDays: true,
    filters: [
      type,
      { name: 'status', label: 'Status', options: ['Completed', 'Failed'] },
      { name: 'currency', label: 'Currency', options: currencies },
      ...amounts,
      byWhom(visit),
    ],
    async show(rows, sort) {
      const accounts = await accountsBy(
        visit,
        rows.map(({ account_id }) => account_id),
      );
      return transactionTable(rows, sort, { accounts, owners: await clientsOf(visit, accounts.values()) });
    },
  };
}

/** The list of the transactions of one account. */
export function ofAccount({ id }: Visit): List<Transaction> {
  return {
    path: '/transactions',
    fixed: { account_id: id },
    hasDays: true,
    filters: [type, { name: 'status', label: 'Status', options: transactionStatus.options }, ...amounts],
    show: transactionTable,
  };
}

/** The actor who requested it: this person, or the one that a link names. */
function byWhom({ actor, query }: Visit): Filter {
  const named = query.get('actor') ?? '';
  const others = named === '' || named === actor ? [] : [[named, actorText(named)] as const];
  return { name: 'actor', label: 'Entered by', options: [[actor, 'Me'], ...others] };
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

interface People {
  accounts: ReadonlyMap<string, Account>;
  owners: ReadonlyMap<string, Client>;
}

/** `people`: for transactions of several accounts, as far as the person may see them. */
function transactionTable(rows: readonly Transaction[], sort: Sorting, people?: People): Html {
  const accountOf = ({ account_id }: Transaction) => {
    const account = people?.accounts.get(account_id);
    const owner = people?.owners.get(account?.client_id ?? '');
    return html`${idLink(account_id, account?.account_number ?? html`<code class="long">${account_id}</code>`)}${owner && html`<br><span class="quiet name">${nameOf(owner)}</span>`}`;
  };
  const amount = (title: string, direction: Transaction['direction']) => ({
    title,
    isNumber: true,
    show: (row: Transaction) => (row.direction === direction ? amountText(row.amount, row.currency) : ''),
  });
  const total = (direction: Transaction['direction']) =>
    totalText(rows.filter((row) => row.direction === direction && row.status === 'Completed'));
  return html`${table<Transaction>(
    'Transactions',
    [
      { title: 'When', sort, show: (row) => idLink(row.transaction_id, timeOf(row.created_at)) },
      ...(people ? [{ title: 'Account', show: accountOf }] : []),
      {
        title: 'Type',
        show: (row) =>
          html`${row.transaction_type}${row.reverses_transaction_id !== undefined && html`<br><span class="quiet">reversal</span>`}${row.reversed_by_transaction_id !== undefined && html`<br><span class="quiet">reversed</span>`}`,
      },
      amount('Out', 'debit'),
      amount('In', 'credit'),
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
