import type { Approval } from '#libs/contracts/approvals.ts';
import type { StaffDay } from '#libs/contracts/staff-days.ts';
import { bankDay, moneyText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import type { PageRequest } from '../html/frame.ts';
import { accountsBy, readClients } from '../html/owners.ts';
import { countText, emptyState, idLink, notice, numeric, pill, resourceLink, showTime, table } from '../html/show.ts';
import { readSubjects } from './approval-subjects.ts';
import { approvalsUrl, summarize } from './approvals.ts';
import { clientName } from './client-views.ts';
import { showYourTill } from './tills.ts';
import { transactionsUrl } from './transactions.ts';

/** What the person who looks at the first page has posted today, and what became of their requests. */

const requestsShown = 5;

export async function showYourDay(visit: PageRequest): Promise<Html> {
  const { api } = visit;
  const [day, till, requests] = await Promise.all([
    known(api.get<StaffDay>('/admin/staff-day')),
    visit.person.scopes.has('transactions:write') && showYourTill(visit),
    known(api.get<Approval[]>(`/admin/approvals?requested_by=me&limit=${requestsShown}`)),
  ]);
  const [posted, customers, asked] = await Promise.all([
    day ? showPosted(visit, day.data) : notice('warning', 'What you posted cannot be shown now.'),
    day && showCustomers(visit, day.data),
    requests && showRequests(visit, requests.data),
  ]);
  return html`<h2>Your day</h2>${posted}${till}<div class="halves">${asked}${customers}</div>`;
}

function showPosted({ actor, now, person }: PageRequest, { totals, refused, batch_items }: StaffDay): Html {
  const list = (text: string, more: Record<string, string> = {}): Html => {
    const filters = new URLSearchParams({ actor, from_day: bankDay(now), ...more });
    return person.scopes.has('transactions:read')
      ? html`<a href="${transactionsUrl}?${filters.toString()}">${text}</a>`
      : html`${text}`;
  };
  type Total = StaffDay['totals'][number];
  const money = (title: string, field: 'cash_in' | 'cash_out' | 'transferred') =>
    numeric<Total>(title, (total) => {
      return html`${moneyText(total[field], total.currency)} <span class="quiet whole">${countText(total[`${field}_count`])}</span>`;
    });
  const lines = [
    Number(refused) > 0 && html`${list(`${refused} refused`, { status: 'Failed' })}`,
    Number(batch_items) > 0 && html`${batch_items} payments from files, which are not in these sums`,
  ].filter((line) => line !== false);
  return html`${
    totals.length === 0
      ? html`<p role="status">You have posted nothing today.</p>`
      : table<Total>(
          'Your day',
          [
            { title: 'Currency', show: ({ currency }) => html`<strong>${list(currency, { currency })}</strong>` },
            money('In', 'cash_in'),
            money('Out', 'cash_out'),
            numeric('Net cash', ({ net_cash, currency }) => html`<strong>${moneyText(net_cash, currency)}</strong>`),
            money('Between accounts', 'transferred'),
          ],
          totals,
          '',
        )
  }${lines.length > 0 && html`<p class="quiet">${lines.map((line, i) => html`${i > 0 && '; '}${line}`)}.</p>`}`;
}

async function showRequests(visit: PageRequest, requests: readonly Approval[]): Promise<Html> {
  const subjects = await readSubjects(visit, requests);
  return html`<section><h3>Your requests</h3>${
    requests.length === 0
      ? html`<p class="quiet">None of your actions needed a second person.</p>`
      : html`<ul class="plain">${requests.map(
          (request) =>
            html`<li>${request.outcome?.status === 'error' ? pill('Failed', 'Refused when it was carried out') : pill(request.status)} <a href="${approvalsUrl}/${request.approval_id}">${summarize(request, subjects)}</a> <span class="quiet">${showTime(request.decided_at ?? request.requested_at)}${request.decided_by_name !== undefined && ` by ${request.decided_by_name}`}${request.reason !== null && html`: ${request.reason}`}</span></li>`,
        )}</ul><p><a href="${approvalsUrl}/mine">All your requests</a></p>`
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
      : html`<ul class="plain">${customers.map(({ client_id, account_id, served_at }) => {
          const client = clients.get(client_id);
          return html`<li>${shown(client_id, client && clientName(client))} <span class="quiet">${shown(account_id, accounts.get(account_id)?.account_number)}, ${showTime(served_at)}</span></li>`;
        })}</ul>`
  }</section>`;
}
