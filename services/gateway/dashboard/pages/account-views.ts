import { accountType, freezeReason } from '#libs/contracts/resources.ts';
import type { Account, Entry, StatusTransition, Transaction } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import type { Html } from '#libs/service/html.ts';
import { actorOf } from '../html/actors.ts';
import type { KeyNames } from '../html/actors.ts';
import { confirmation, inputOf, once, problem } from '../html/forms.ts';
import type { Wrong } from '../html/forms.ts';
import { csrfField } from '../html/layout.ts';
import type { Person } from '../html/layout.ts';
import type { Sorting } from '../html/lists.ts';
import { facts, idLink, moneyText, statusOf, table, timeOf } from '../html/show.ts';

/** The account pages. */

const url = '/admin/ui/accounts';
const money = (amount: string, currency: string | null) => html`${moneyText(amount, currency)}${currency !== null && ` ${currency}`}`;

export function accountTable(rows: readonly Account[], sort?: Sorting): Html {
  return table<Account>('Accounts', [
    { title: 'Account', show: (row) => html`<strong>${idLink(row.account_id, row.account_number)}</strong>` },
    { title: 'Type', show: (row) => row.account_type },
    { title: 'Status', show: (row) => statusOf(row.status) },
    { title: 'Balance', isNumber: true, show: (row) => money(row.balance, row.currency) },
    { title: 'Opened', ...(sort && { sort }), show: (row) => timeOf(row.created_at) },
  ], rows, 'No account fits.');
}

export function transactionTable(rows: readonly Transaction[], sort?: Sorting): Html {
  return table<Transaction>('Transactions', [
    { title: 'When', ...(sort && { sort }), show: (row) => idLink(row.transaction_id, timeOf(row.created_at)) },
    { title: 'Type', show: (row) => html`${row.transaction_type}${row.reverses_transaction_id !== undefined && html`<br><span class="quiet">reversal</span>`}` },
    { title: 'Status', show: (row) => html`${statusOf(row.status)}${row.failure_code !== undefined && html`<br><span class="quiet">${row.failure_code}</span>`}` },
    { title: 'Out', isNumber: true, show: (row) => (row.direction === 'debit' ? money(row.amount, row.currency) : '') },
    { title: 'In', isNumber: true, show: (row) => (row.direction === 'credit' ? money(row.amount, row.currency) : '') },
    { title: 'Reference', show: (row) => html`<span class="long">${row.reference}</span>` },
    { title: 'Description', show: (row) => html`<span class="text">${row.description}</span>` },
  ], rows, 'No transaction fits.');
}

export function entryTable(rows: readonly Entry[], sort?: Sorting): Html {
  return table<Entry>('Entries', [
    { title: 'No.', isNumber: true, show: (row) => String(row.sequence) },
    { title: 'Booked', ...(sort && { sort }), show: (row) => timeOf(row.created_at) },
    { title: 'Debit', isNumber: true, show: (row) => (row.side === 'DR' ? moneyText(row.amount, row.currency) : '') },
    { title: 'Credit', isNumber: true, show: (row) => (row.side === 'CR' ? moneyText(row.amount, row.currency) : '') },
    { title: 'Balance after', isNumber: true, show: (row) => money(row.balance_after, row.currency) },
    { title: 'Transaction', show: (row) => html`<span class="long">${idLink(row.transaction_id)}</span>` },
  ], rows, 'There is no entry.');
}

export function historyTable(rows: readonly StatusTransition[], names: KeyNames, sort?: Sorting): Html {
  return table<StatusTransition>('Status history', [
    { title: 'When', ...(sort && { sort }), show: (row) => timeOf(row.created_at) },
    { title: 'Status', show: (row) => html`${row.from_status} → ${statusOf(row.to_status)}` },
    { title: 'Reason', show: (row) => row.reason ?? '–' },
    { title: 'Note', show: (row) => html`<span class="text">${row.note ?? '–'}</span>` },
    { title: 'Who', show: (row) => (row.actor === undefined ? '–' : actorOf(row.actor, names)) },
  ], rows, 'The status was never changed.');
}

const parts = [['', 'Overview', 'accounts:read'], ['/transactions', 'Transactions', 'transactions:read'], ['/entries', 'Entries', 'transactions:read'], ['/statement', 'Statement', 'transactions:read'], ['/history', 'Status history', 'accounts:read']] as const;

/** The ways to the pages of one account. */
export function accountParts(accountId: string, here: string, { scopes }: Person): Html {
  return html`<nav class="parts" aria-label="Account"><ul>${parts.filter(([, , scope]) => scopes.has(scope)).map(([part, title]) => html`<li><a href="${url}/${accountId}${part}"${part === here && html` aria-current="page"`}>${title}</a></li>`)}</ul></nav>`;
}

/** `holder`: the name of its client, where it is known here. */
export function accountFacts(account: Account, holder?: string): Html {
  return facts([
    ['Balance', html`<strong class="balance">${money(account.balance, account.currency)}</strong>`], ['Status', statusOf(account.status)], ['Type', account.account_type], ['Client', idLink(account.client_id, holder)],
    ['Id', html`<code>${account.account_id}</code>`], ['Opened', html`${timeOf(account.created_at)} UTC`], ['Last changed', html`${timeOf(account.updated_at)} UTC`],
  ]);
}

/** What can be done with the account as it is. */
export function statusActions({ account_id, status }: Account, { scopes }: Person): Html {
  const possible = statusChanges.filter((change) => changes[change].from.includes(status));
  return html`${scopes.has('accounts:status') && html`<p class="actions">${possible.map((change) => html`<a role="button"${changes[change].status !== 'Active' && html` class="secondary"`} href="${url}/${account_id}/${change}">${changes[change].verb}</a> `)}</p>`}`;
}

export function openingForm(person: Person, values: URLSearchParams, wrong: Wrong): Html {
  return html`<form class="narrow" method="post" action="${url}/new">${csrfField(person.csrf)}${once()}
${problem(wrong)}
${inputOf({ name: 'client_id', label: 'Client', isRequired: true, placeholder: 'cli_…', hint: 'The id of the client; its page has a button that fills this in.' }, values, wrong)}
${inputOf({ name: 'account_type', label: 'Type', options: accountType.options.map((type) => [type, type] as const) }, values, wrong)}
${inputOf({ name: 'currency', label: 'Currency', isRequired: true, maxLength: 3, placeholder: 'USD' }, values, wrong)}
${inputOf({ name: 'initial_deposit', label: 'First deposit', inputMode: 'decimal', placeholder: '0.00', hint: 'With a point before the decimals. Of a Loan: the principal. Empty: nothing.' }, values, wrong)}
<div class="actions"><button>Open the account</button> <a href="${values.get('client_id') ? `/admin/ui/clients/${encodeURIComponent(values.get('client_id') ?? '')}` : url}">Cancel</a></div>
</form>`;
}

const reasons = { fraud: 'fraud', legal: 'legal', customer_request: 'request of the customer', deceased: 'deceased', other: 'other' } as const;
export type StatusChange = 'freezing' | 'unfreezing' | 'activation' | 'deactivation';

interface Change {
  verb: string;
  status: Account['status'];
  from: readonly Account['status'][];
  /** What it means, for whoever is about to do it. */
  meaning: string;
}

const taken = 'From then on postings to this account and from it are taken again.';
/** The changes of status that a page offers, by the last part of its path. */
export const changes: Record<StatusChange, Change> = {
  freezing: { verb: 'Freeze', status: 'Frozen', from: ['Active', 'Inactive'], meaning: 'While an account is frozen, every posting to it and from it is refused.' },
  unfreezing: { verb: 'Unfreeze', status: 'Active', from: ['Frozen'], meaning: taken },
  activation: { verb: 'Activate', status: 'Active', from: ['Inactive'], meaning: taken },
  deactivation: { verb: 'Deactivate', status: 'Inactive', from: ['Active'], meaning: 'While an account is inactive, every posting to it and from it is refused.' },
};
export const statusChanges = Object.keys(changes) as StatusChange[];

/** The confirmation: what it means, why, and a tick that nobody sets by accident. */
export function statusForm(person: Person, account: Account, change: StatusChange, values: URLSearchParams, wrong: Wrong): Html {
  const { verb, status, meaning } = changes[change];
  const isFreezing = status === 'Frozen';
  const options = [['', isFreezing ? 'Choose one' : 'none'] as const, ...freezeReason.options.map((value) => [value, reasons[value]] as const)];
  return html`<form class="narrow" method="post" action="${url}/${account.account_id}/${change}">${csrfField(person.csrf)}${once()}
${problem(wrong)}
<p role="alert">${meaning}</p>
${accountFacts(account)}
${inputOf({ name: 'reason', label: 'Reason', options, isRequired: isFreezing }, values, wrong)}
${inputOf({ name: 'note', label: 'Note', type: 'textarea', maxLength: 500, hint: 'Stands in the status history, with your name.' }, values, wrong)}
${confirmation(`${verb} account ${account.account_number}`, wrong)}
<div class="actions"><button${status !== 'Active' && html` class="danger"`}>${verb} the account</button> <a href="${url}/${account.account_id}">Cancel</a></div>
</form>`;
}
