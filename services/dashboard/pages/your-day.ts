import type { Approval } from '#libs/contracts/approvals.ts';
import { clientName } from '#libs/contracts/clients.ts';
import type { StaffDay } from '#libs/contracts/staff-days.ts';
import { bankDay, moneyText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import type { PageRequest } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { accountsBy, readClients } from '../html/owners.ts';
import { countText, emptyState, idLink, notice, pill, resourceLink, showTime, table, toned } from '../html/show.ts';
import { clientsOf, readSubjects } from './approval-subjects.ts';
import { approvalsUrl, summarize } from './approvals.ts';
import { counterUrl } from './counter-views.ts';
import { showYourTill } from './tills.ts';
import { transactionsUrl } from './transactions.ts';

/** What the person who looks at the first page has posted today, and what became of their requests. */

const requestsShown = 5;
const mostCounted = 20;

type Total = StaffDay['totals'][number];

export async function showYourDay(visit: PageRequest): Promise<Html> {
  const { api } = visit;
  const readRequests = (more: string) => known(api.get<Approval[]>(`/admin/approvals?requested_by=me&${more}`));
  const [day, till, requests, waiting] = await Promise.all([
    known(api.get<StaffDay>('/admin/staff-day')),
    visit.person.scopes.has('transactions:write') && showYourTill(visit),
    readRequests(`limit=${requestsShown}`),
    readRequests(`status=Waiting&limit=${mostCounted}`),
  ]);
  const [posted, customers, asked] = await Promise.all([
    day
      ? showPosted(
          visit,
          day.data,
          html`${till}${requests && requests.data.length > 0 && waiting && waitingTile(waiting)}`,
        )
      : html`${notice('warning', 'What you posted cannot be shown now.')}${till}`,
    day && showCustomers(visit, day.data),
    requests && showRequests(visit, requests.data),
  ]);
  return html`<h2>Your day</h2>${posted}<div class="halves">${asked}${customers}</div>`;
}

/** How many of the person's requests somebody must still decide. */
function waitingTile({ data, next }: { data: readonly Approval[]; next: string | undefined }): Html {
  const count = `${data.length}${next === undefined ? '' : '+'}`;
  const state =
    data.length === 0
      ? html`<span>${toned('good', 'done', 'All decided')}</span>`
      : html`<span>${toned('wait', 'waiting', `${count} waiting`)}</span> <span class="quiet">for a second person</span>`;
  return html`<a class="tile" href="${approvalsUrl}/mine"><span class="tile-title">Your requests</span> ${state}</a>`;
}

/** `others`: the tiles beside what was posted. */
function showPosted(
  { actor, now, person }: PageRequest,
  { totals, refused, batch_items }: StaffDay,
  others: Html,
): Html {
  const list = (text: string, more: Record<string, string> = {}): Html => {
    const filters = new URLSearchParams({ actor, from_day: bankDay(now), ...more });
    return person.scopes.has('transactions:read')
      ? html`<a href="${transactionsUrl}?${filters.toString()}">${text}</a>`
      : html`${text}`;
  };
  const counted = (what: string, { currency, ...total }: Total, field: 'cash_in' | 'cash_out' | 'transferred') =>
    html`<span class="quiet">${what} ${moneyText(total[field], currency)}, ${countText(total[`${field}_count`])}</span>`;
  const lines = [
    Number(refused) > 0 && html`${list(`${refused} refused`, { status: 'Failed' })}`,
    Number(batch_items) > 0 &&
      html`${String(batch_items) === '1' ? '1 payment from a file, which is' : `${batch_items} payments from files, which are`} not in these sums`,
  ].filter((line) => line !== false);
  return html`<div class="tiles day">${
    totals.length === 0
      ? html`<div class="tile"><span class="tile-title">Net cash</span><p role="status">You have posted nothing today.</p></div>`
      : totals.map(
          (total) =>
            html`<div class="tile"><span class="tile-title">Net cash in ${list(total.currency, { currency: total.currency })}</span> <strong class="sum">${moneyText(total.net_cash, total.currency)}</strong> ${counted('In', total, 'cash_in')} ${counted('Out', total, 'cash_out')} ${counted('Between accounts', total, 'transferred')}</div>`,
        )
  }${others}</div>${lines.length > 0 && html`<p class="quiet">${lines.map((line, i) => html`${i > 0 && '; '}${line}`)}.</p>`}`;
}

/** The state of a request, with the receipt of what was posted. */
const showState = ({ outcome, status }: Approval, { scopes }: Person): Html => {
  if (outcome?.status === 'error') return pill('Failed', 'Refused when it was carried out');
  const posted = outcome?.data['transfer_id'] ?? outcome?.data['transaction_id'];
  const hasReceipt = typeof posted === 'string' && scopes.has('transactions:read') && scopes.has('accounts:read');
  return html`${pill(status)}${hasReceipt && html` <a href="${counterUrl}/receipts/${posted}">Receipt</a>`}`;
};

async function showRequests(visit: PageRequest, requests: readonly Approval[]): Promise<Html> {
  const subjects = await readSubjects(visit, requests);
  return html`<section><h3>Your requests</h3>${
    requests.length === 0
      ? emptyState('None of your actions needed a second person.')
      : html`${table<Approval>(
          'Your requests',
          [
            {
              title: 'What',
              show: (request) =>
                html`<a href="${approvalsUrl}/${request.approval_id}">${summarize(request, subjects)}</a>${clientsOf(request, subjects).map((client) => html`<br><span class="long">${clientName(client)}</span>`)}${request.reason !== null && html`<br><span class="quiet text">${request.reason}</span>`}`,
            },
            { title: 'State', show: (request) => showState(request, visit.person) },
            {
              title: 'When',
              show: ({ requested_at, decided_at, decided_by_name }) =>
                html`${showTime(decided_at ?? requested_at)}${decided_by_name !== undefined && html`<br><span class="quiet">by ${decided_by_name}</span>`}`,
            },
          ],
          requests,
          '',
        )}<p><a href="${approvalsUrl}/mine">All your requests</a></p>`
  }</section>`;
}

async function showCustomers(visit: PageRequest, { customers }: StaffDay): Promise<Html> {
  const [clients, accounts] = await Promise.all([
    readClients(visit, customers),
    accountsBy(
      visit,
      customers.map(({ account_id }) => account_id),
    ),
  ]);
  const shown = (id: string, name: string | undefined) =>
    name === undefined ? resourceLink(id, visit.person.scopes) : idLink(id, name);
  return html`<section><h3>Your last customers</h3>${
    customers.length === 0
      ? emptyState('You have not served anybody yet.')
      : table<StaffDay['customers'][number]>(
          'Your last customers',
          [
            {
              title: 'Customer',
              show: ({ client_id }) => {
                const client = clients.get(client_id);
                return shown(client_id, client && clientName(client));
              },
            },
            {
              title: 'Account',
              show: ({ account_id }) => shown(account_id, accounts.get(account_id)?.account_number),
            },
            { title: 'When', show: ({ served_at }) => showTime(served_at) },
          ],
          customers,
          '',
        )
  }</section>`;
}
