import type { FastifyInstance } from 'fastify';
import { clientName } from '#libs/contracts/clients.ts';
import { debitLegId, isId } from '#libs/contracts/ids.ts';
import { currencies, plainMoney } from '#libs/contracts/money.ts';
import type { Timeline } from '#libs/contracts/timeline.ts';
import { type Transaction, transactionStatus, transactionType } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import {
  amountText,
  bankTime,
  type MovedWord,
  moneyText,
  movedWords,
  transactionTitle,
  zoneText,
} from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { type ActorNames, actorText, readActorNames, showActor } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import { addPage, type PageRequest } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { addListPage, externalId, type Filter, type List, type Sorting, withChosen } from '../html/lists.ts';
import { accountsBy, readClients } from '../html/owners.ts';
import {
  emptyState,
  type Fact,
  facts,
  idLink,
  idText,
  idTextLink,
  notice,
  numeric,
  otherValueDate,
  ownNames,
  pill,
  showFullTime,
  showPosted,
  table,
  technical,
  totalText,
} from '../html/show.ts';
import { refusalText, showReversed } from './counter-instructions.ts';
import { counterUrl } from './counter-views.ts';
import { type MadeBy, makerFacts, readMaker } from './made-by.ts';
import { addParties, type WithParties } from './parties.ts';
import { reversalLink } from './reversal.ts';

export const transactionsUrl = '/admin/ui/transactions';

/** The list of transactions of the whole bank, and the pages of a transaction and of a transfer. */
export function addTransactions(app: FastifyInstance): void {
  const scope = 'transactions:read';
  addListPage(app, transactionsUrl, { title: 'Transactions', scope }, ofBank, transactionColumns);
  addPage(app, `${transactionsUrl}/:transaction_id`, { title: 'Transaction', scope }, async (visit) => {
    const { data } = await visit.api.get<Transaction>(`/transactions/${visit.id}`);
    const [parties, events, maker] = await Promise.all([
      readParties(visit, [data.account_id, data.counterparty_account_id]),
      showEvents(visit, data.transaction_id, data.status),
      readMaker(visit, data.transfer_id ?? data.transaction_id),
    ]);
    return {
      title: `${transactionTitle(data)} ${showMoney(data)}`,
      content: html`${visit.query.has('reversed') && notice('success', 'The reversal was posted.')}${showPosting(data, parties.between(data), parties.show)}${actions(data, data.transaction_id, data.transaction_id, visit.person)}${transactionFacts(data, maker)}${events}`,
    };
  });
  addPage(app, '/admin/ui/transfers/:transfer_id', { title: 'Transfer', scope }, async (visit) => {
    const { data } = await visit.api.get<Transfer>(`/transfers/${visit.id}`);
    const leg = isId('transfer', data.transfer_id) ? debitLegId(data.transfer_id) : '';
    const between = { from: data.from_account_id, to: data.to_account_id, isKnown: true };
    const [parties, events, maker] = await Promise.all([
      readParties(visit, [between.from, between.to]),
      showEvents(visit, leg, data.status),
      readMaker(visit, data.transfer_id),
    ]);
    return {
      title: `Transfer ${showMoney(data)}`,
      content: html`${showPosting(data, between, parties.show)}${actions(data, data.transfer_id, leg, visit.person)}${transferFacts(data, leg, maker)}${events}`,
    };
  });
}

/** The receipt, to print it again, and the reversal. `transactionId`: for a transfer, one of its two transactions. */
function actions(posting: Transaction | Transfer, id: string, transactionId: string, person: Person): Html {
  const hasReceipt = posting.status === 'Completed' && person.scopes.has('accounts:read');
  return html`<p class="actions">${hasReceipt && html`<a role="button" data-next href="${counterUrl}/receipts/${id}">Receipt</a> `}${reversalLink(posting, transactionId, person)}</p>`;
}

/** The statuses in the words of the counter. */
const statusWords: Record<Transaction['status'], string> = {
  Completed: 'Posted',
  Failed: 'Refused',
  Pending: 'Not decided yet',
};
const statusOptions = (all: readonly Transaction['status'][]) =>
  all.map((status) => [status, statusWords[status]] as const);

const showMoney = ({ amount, currency }: Transaction | Transfer) => amountText(amount, currency);

/** What happened: its state, and from whom to whom the money went. */
function showPosting(posting: Transaction | Transfer, { from, to, isKnown }: Between, show: Parties['show']): Html {
  const { status, failure_code, created_at } = posting;
  const side = (title: string, id: string | undefined) => html`<div>${facts([[title, show(id)]])}</div>`;
  return html`<p class="under">${pill(status, statusWords[status])} ${showFullTime(created_at)}</p>
${failure_code !== undefined && notice('error', refusalText(failure_code, {}))}
<article class="movement">${side(isKnown ? 'From' : 'Between', from)}
${facts([['Amount', html`<strong class="sum">${showMoney(posting)}</strong>`]])}
${side(isKnown ? 'To' : 'And', to)}</article>`;
}

const link = (id: string | undefined, text: string) => id !== undefined && idLink(id, text);

/** What else a posting has, with its own facts between those that people and those that technicians need. */
function postingFacts(row: Transaction | Transfer, own: readonly Fact[], ids: readonly Fact[]): Html {
  const { hold_id, batch_id } = row;
  return html`${facts([
    ['Reference', 'reference' in row && row.reference],
    ['Description', row.description],
    ['Value date', otherValueDate(row)],
    ...own,
    ['Hold', link(hold_id, 'the hold that it captures')],
    ['Batch', link(batch_id, 'the payments with which it was sent')],
    ...ownNames(row),
  ])}${technical([...ids, ['Hold', hold_id !== undefined && idTextLink(hold_id)]])}`;
}

const transactionFacts = (row: Transaction, maker: MadeBy | undefined): Html =>
  postingFacts(
    row,
    [
      ...makerFacts(maker),
      ['Transfer', link(row.transfer_id, 'with the transactions of both accounts')],
      ['Reverses', link(row.reverses_transaction_id, 'an earlier transaction')],
      ['Reversed by', link(row.reversed_by_transaction_id, 'a later transaction')],
    ],
    [
      ['Id', idText(row.transaction_id)],
      ['Direction', row.direction],
      ['Transfer', row.transfer_id !== undefined && idTextLink(row.transfer_id)],
    ],
  );

const transferFacts = (row: Transfer, leg: string, maker: MadeBy | undefined): Html =>
  postingFacts(
    row,
    [
      ...makerFacts(maker),
      ['Reverses', link(row.reverses_transfer_id, 'an earlier transfer')],
      ['Reversed by', link(row.reversed_by_transfer_id, 'a later transfer')],
    ],
    [
      ['Id', idText(row.transfer_id)],
      ['Transaction', row.status === 'Completed' && idTextLink(leg)],
    ],
  );

/** The timeline, for people who may read it. A pending transaction has none. */
async function showEvents(
  { api, person }: PageRequest,
  transactionId: string,
  status: Transaction['status'],
): Promise<Html> {
  if (status === 'Pending') return html`<p role="status">It is not decided yet. Open the page again in a moment.</p>`;
  if (!person.scopes.has('audit:read')) return html``;
  try {
    const { data } = await api.get<Timeline>(`/admin/transactions/${encodeURIComponent(transactionId)}/timeline`);
    return showTimeline(data, await readActorNames({ api }, [data.request], 'actor'));
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status !== 404) throw error;
    return html`<p role="status">It has no timeline.</p>`;
  }
}

type TimelineEntry = Timeline['entries'][number];
type TimelineEvent = Timeline['events'][number];

/** The history of a transaction: request, command, entries on both sides, events. */
function showTimeline(
  { transaction, request, command, booked_at, entries, events }: Timeline,
  names: ActorNames,
): Html {
  return html`<h2>Timeline</h2><ol class="timeline">
<li><h3>Request</h3>${facts([
    ['Accepted', moment(request.accepted_at, request.accepted_at)],
    ['Caller', showActor(request.actor, names)],
    [
      'Request id',
      html`<a href="/admin/ui/audit?request_id=${encodeURIComponent(request.request_id)}"><code>${request.request_id}</code></a>`,
    ],
    ['Idempotency key', request.idempotency_key !== null && html`<code>${request.idempotency_key}</code>`],
  ])}</li>
<li><h3>Command</h3>${facts([
    ['Name', command.name],
    ['ce_id', html`<code>${command.id}</code>`],
    ['Topic', `${command.topic}, partition ${command.partition}`],
  ])}</li>
<li><h3>Entries</h3>${booked_at === null ? html`<p>Nothing was posted${transaction.failure_code !== undefined && html`: ${transaction.failure_code}`}.</p>` : html`${facts([['Posted', moment(booked_at, request.accepted_at)]])}${entryRows(entries)}`}</li>
<li><h3>Events</h3>${eventRows(events, request.accepted_at)}</li>
</ol><p class="quiet">Times are ${zoneText()}, to the millisecond, with the time since the request was accepted.</p>`;
}

/** Shows a time to the millisecond, and the time since the first step. */
function moment(iso: string, since: string): Html {
  const after = Date.parse(iso) - Date.parse(since);
  return html`<time datetime="${iso}">${bankTime(Date.parse(iso)).slice(0, 23).replace('T', ' ')}</time>${iso !== since && html` <span class="quiet after">(${after < 0 ? '−' : '+'}${Math.abs(after)} ms)</span>`}`;
}

const isOwn = ({ account_type }: TimelineEntry) => account_type === 'Teller' || account_type === 'Vault';

function entryRows(entries: readonly TimelineEntry[]): Html {
  return table<TimelineEntry>(
    'Entries of the operation',
    [
      {
        title: 'Account',
        show: (row) => (isOwn(row) ? row.account_number : idLink(row.account_id, row.account_number)),
      },
      { title: 'Kind', show: (row) => row.account_type },
      numeric('Debit', (row) => (row.side === 'DR' ? moneyText(row.amount, row.currency) : '')),
      numeric('Credit', (row) => (row.side === 'CR' ? moneyText(row.amount, row.currency) : '')),
      numeric('Balance after', (row) => amountText(row.balance_after, row.currency)),
      numeric('No.', (row) => String(row.sequence)),
    ],
    entries,
    'No entry is known.',
  );
}

function eventRows(events: readonly TimelineEvent[], since: string): Html {
  return table<TimelineEvent>(
    'Events',
    [
      {
        title: 'Event',
        show: (row) =>
          html`<span class="wide">${row.type.split('.').map((part, i) => html`${i > 0 && html`.<wbr>`}${part}`)}</span>`,
      },
      { title: 'ce_id', show: (row) => html`<code class="long">${row.ce_id}</code>` },
      { title: 'Topic', show: (row) => row.topic },
      { title: 'State', show: ({ state }) => pill(state, state === 'not_kept' ? 'no longer kept' : state) },
      { title: 'Recorded', show: ({ recorded_at }) => (recorded_at === null ? '–' : moment(recorded_at, since)) },
      { title: 'Published', show: ({ published_at }) => (published_at === null ? '–' : moment(published_at, since)) },
    ],
    events,
    'There is no event.',
  );
}

const type: Filter = { name: 'transaction_type', label: 'Type', options: transactionType.options, isMain: true };
const own: readonly Filter[] = [
  { name: 'min_amount', label: 'Amount from', hint: '10.00' },
  { name: 'max_amount', label: 'Amount to', hint: '100.00' },
  { name: 'reference', label: 'Reference', hint: 'INVOICE 77' },
  externalId,
];

/** The list of the transactions of all accounts, with the owners of the accounts. */
function ofBank(visit: PageRequest): List<WithParties<Transaction>> {
  return {
    path: '/transactions',
    complete: addParties(visit),
    hasDays: true,
    filters: [
      type,
      { name: 'status', label: 'Status', options: statusOptions(['Completed', 'Failed']), isMain: true },
      { name: 'currency', label: 'Currency', options: currencies },
      ...own,
      { name: 'effective_from', label: 'Value date', fromLink: (day) => `Value date from ${day}` },
      { name: 'effective_to', label: 'Value date', fromLink: (day) => `Value date up to ${day}` },
      // The actor who requested it: this person, or the one that a link names.
      {
        name: 'actor',
        label: 'Entered by',
        isMain: true,
        options: withChosen([[visit.actor, 'Me']], visit.query.get('actor'), actorText),
      },
    ],
    show: async (rows, sort) => {
      const ids = rows.flatMap(({ account_id, counterparty_account_id }) => [account_id, counterparty_account_id]);
      return operationTable(rows, sort, await readParties(visit, ids));
    },
    note: 'A transfer is one row; the file has a line for each of its two accounts.',
  };
}

export function ofAccount(visit: PageRequest, getNumber: () => string): List<WithParties<Transaction>> {
  return {
    path: '/transactions',
    complete: addParties(visit),
    fixed: { account_id: visit.id },
    hasDays: true,
    filters: [
      type,
      { name: 'status', label: 'Status', options: statusOptions(transactionStatus.options), isMain: true },
      ...own,
    ],
    show: (rows, sort) => transactionTable(rows, sort, getNumber()),
  };
}

export const transactionColumns: CsvColumn<WithParties<Transaction>>[] = [
  'created_at',
  'effective_date',
  { title: 'account_number', value: ({ own }) => own?.account_number },
  { title: 'customer', value: ({ own }) => own?.customer },
  { title: 'transaction_type', value: transactionTitle },
  'direction',
  { title: 'amount', value: (row) => plainMoney(row.amount, row.currency) },
  'currency',
  'status',
  'failure_code',
  'reference',
  'description',
  { title: 'counterparty_account_number', value: ({ other }) => other?.account_number },
  { title: 'counterparty', value: ({ other }) => other?.customer },
  'transaction_id',
  'transfer_id',
  'reverses_transaction_id',
  'reversed_by_transaction_id',
  'account_id',
];

/** The accounts of a payer and a receiver; undefined: cash. Unless `isKnown`, they may be the other way round. */
interface Between {
  from: string | undefined;
  to: string | undefined;
  isKnown: boolean;
}

interface Parties {
  /** Shows an account by its owner and its number, with links, as far as the person may see them. */
  show: (accountId: string | undefined) => Html;
  between: (row: Transaction) => Between;
}

async function readParties(visit: PageRequest, accountIds: readonly (string | undefined)[]): Promise<Parties> {
  const accounts = await accountsBy(visit, accountIds);
  const owners = await readClients(visit, accounts.values());
  return {
    show(id) {
      if (id === undefined) return html`Cash`;
      const account = accounts.get(id);
      const owner = owners.get(account?.client_id ?? '');
      const number = idLink(id, account?.account_number ?? html`<code class="long">${id}</code>`);
      return owner
        ? html`<span class="name">${idLink(owner.client_id, clientName(owner))}</span><br><span class="quiet">${number}</span>`
        : number;
    },
    between({ account_id, counterparty_account_id: other, transaction_type, direction, reverses_transaction_id }) {
      const way = (isPayer: boolean | undefined): Between => {
        const [from, to] = isPayer === false ? [other, account_id] : [account_id, other];
        return { from, to, isKnown: isPayer !== undefined };
      };
      // The type says which way cash goes, also that of a loan, of which the balance is what is owed.
      if (transaction_type === 'Deposit') return way(reverses_transaction_id !== undefined);
      if (transaction_type === 'Withdrawal') return way(reverses_transaction_id === undefined);
      if (transaction_type === 'Transfer') return way(direction === 'debit');
      const type = accounts.get(account_id)?.account_type;
      return way(type && (direction === 'debit') !== (type === 'Loan'));
    },
  };
}

/** The status, and why it was refused. What is usual is quiet. */
const showOutcome = (row: Transaction): Html =>
  html`${row.status === 'Completed' ? html`<span class="quiet">${statusWords.Completed}</span>` : pill(row.status, statusWords[row.status])}${row.failure_code !== undefined && html`<br><span class="quiet text">${refusalText(row.failure_code, {})}</span>`}`;

const nothingFound = 'No transaction matches. Remove a filter, or choose more days.';

/** The operations of the bank: of a transfer, which has a transaction on either account, always the same one. */
function operationTable(rows: readonly Transaction[], sort: Sorting, parties: Parties): Html {
  const shown = rows.filter(
    ({ transaction_id, transfer_id }) => transfer_id === undefined || transaction_id === debitLegId(transfer_id),
  );
  const currencies = new Set(shown.map(({ currency }) => currency));
  const [only] = currencies.size === 1 ? currencies : [];
  const completed = Map.groupBy(
    shown.filter(({ status }) => status === 'Completed'),
    (row) => {
      const { from, to } = parties.between(row);
      return from === undefined ? 'in' : to === undefined ? 'out' : 'between accounts';
    },
  );
  const totals = (['in', 'out', 'between accounts'] as const).flatMap((way) => {
    const rowsOfWay = completed.get(way);
    return rowsOfWay ? [html`${way} <strong>${totalText(rowsOfWay)}</strong>`] : [];
  });
  const side = (row: Transaction, end: 'from' | 'to', unknown: string) => {
    const between = parties.between(row);
    return html`${!between.isKnown && `${unknown} `}${parties.show(between[end])}`;
  };
  return html`${table<Transaction>(
    'Transactions',
    [
      { title: 'When', sort, show: (row) => idLink(row.transaction_id, showPosted(row)) },
      {
        title: 'What',
        show: ({ description, reference, ...row }) =>
          html`${transactionTitle(row)}${showReversed(row)}${(description ?? reference) !== null && html`<br><span class="quiet text">${[description, reference].filter((text) => text !== null).join(', ')}</span>`}`,
      },
      { title: 'From', show: (row) => side(row, 'from', 'between') },
      { title: 'To', show: (row) => side(row, 'to', 'and') },
      numeric(only ? `Amount in ${only}` : 'Amount', (row) =>
        only ? moneyText(row.amount, row.currency) : amountText(row.amount, row.currency),
      ),
      { title: 'Status', show: showOutcome },
    ],
    shown,
    emptyState(nothingFound, { href: transactionsUrl, text: 'Clear the filters' }),
  )}${shown.length > 1 && totals.length > 0 && html`<p class="totals">Posted on this page: ${totals.map((total, i) => html`${i > 0 && '; '}${total}`)}</p>`}`;
}

/** The transactions of one account. */
function transactionTable(rows: readonly Transaction[], sort: Sorting, accountNumber: string): Html {
  const [first] = rows;
  const { debit, credit } = movedWords(accountNumber);
  const amount = ({ title, way }: MovedWord, direction: Transaction['direction']) =>
    numeric<Transaction>(
      first?.currency ? `${title}, ${first.currency}` : title,
      (row) => (row.direction === direction ? moneyText(row.amount, row.currency) : ''),
      way,
    );
  const total = (direction: Transaction['direction']) =>
    totalText(rows.filter((row) => row.direction === direction && row.status === 'Completed'));
  return html`${table<Transaction>(
    'Transactions',
    [
      { title: 'When', sort, show: (row) => idLink(row.transaction_id, showPosted(row)) },
      { title: 'Type', show: (row) => html`${transactionTitle(row)}${showReversed(row)}` },
      {
        title: 'Description',
        show: ({ reference, description }) =>
          html`<span class="text">${description ?? reference}</span>${description !== null && reference !== null && html`<br><span class="quiet text">${reference}</span>`}`,
      },
      amount(debit, 'debit'),
      amount(credit, 'credit'),
      { title: 'Status', show: showOutcome },
    ],
    rows,
    nothingFound,
  )}${rows.length > 1 && html`<p class="totals">Posted on this page: ${debit.title.toLowerCase()} <strong>${total('debit') || '–'}</strong>, ${credit.title.toLowerCase()} <strong>${total('credit') || '–'}</strong></p>`}`;
}
