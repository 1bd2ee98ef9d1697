import type { FastifyInstance } from 'fastify';
import type { SystemAccount, TrialBalance } from '#libs/contracts/resources.ts';
import { addPage } from './frame.ts';
import { html } from './html.ts';
import type { Html } from './html.ts';
import { moneyText, table, timeOf } from './show.ts';

const url = '/admin/ui/books';

/** The books: the trial balance of every currency, and the bank's own accounts. */
export function addBooks(app: FastifyInstance, now: () => number): void {
  addPage(app, url, { title: 'The books', scope: 'ops:manage' }, async ({ api }) => {
    const [balances, accounts] = await Promise.all([api.get<TrialBalance[]>('/admin/trial-balance'), api.get<SystemAccount[]>('/admin/system-accounts')]);
    return { content: html`<div id="books" hx-get="${url}" hx-trigger="every 30s, refresh" hx-select="#books" hx-swap="outerHTML">${verdict(balances.data)}
<h2>Trial balance</h2>${trialBalance(balances.data)}
<h2>Teller and Vault</h2>${systemAccounts(accounts.data)}
<p class="quiet">As of ${timeOf(new Date(now()).toISOString())} UTC; looked at again every 30 seconds.</p></div>` };
  });
}

const isEven = ({ difference, debit_total, credit_total }: TrialBalance) => /^-?0(\.0*)?$/.test(difference) && debit_total === credit_total;

function verdict(balances: readonly TrialBalance[]): Html {
  const wrong = balances.filter((balance) => !isEven(balance)).map(({ currency }) => currency);
  if (balances.length === 0) return html`<p role="status">Nothing is booked yet.</p>`;
  if (wrong.length > 0) return html`<p class="notice wrong" role="alert">The books do not balance in ${wrong.join(', ')}. Tell operations at once.</p>`;
  return html`<p class="notice" role="status">The books balance: in every currency debits equal credits, and assets equal liabilities.</p>`;
}

function trialBalance(balances: readonly TrialBalance[]): Html {
  const column = (title: string, field: Exclude<keyof TrialBalance, 'currency'>) => ({ title, isNumber: true, show: (row: TrialBalance) => moneyText(row[field], row.currency) });
  return table<TrialBalance>('Trial balance', [
    { title: 'Currency', show: (row) => html`<strong>${row.currency}</strong>` },
    column('Debits', 'debit_total'), column('Credits', 'credit_total'), column('Assets', 'assets'), column('Liabilities', 'liabilities'),
    { title: 'Difference', isNumber: true, show: (row) => html`<strong class="status ${isEven(row) ? 'active' : 'refused'}">${moneyText(row.difference, row.currency)}</strong>` },
  ], balances, 'Nothing is booked yet.');
}

function systemAccounts(accounts: readonly SystemAccount[]): Html {
  return table<SystemAccount>('Teller and Vault', [
    { title: 'Account', show: (row) => html`<strong>${row.account_number}</strong>` },
    { title: 'Kind', show: (row) => row.kind },
    { title: 'Balance', isNumber: true, show: (row) => moneyText(row.balance, row.currency) },
    { title: 'Slots', show: ({ slots, currency }) => html`<details><summary>${slots.length === 1 ? 'one slot' : `${slots.length} slots`}</summary>${slots.map((slot) => html`<code>${slot.account_number}</code> ${moneyText(slot.balance, currency)}<br>`)}</details>` },
  ], accounts, 'They are made with the first posting in a currency.');
}
