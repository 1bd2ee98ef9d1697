import type { FastifyInstance } from 'fastify';
import { fromMinor } from '#libs/contracts/money.ts';
import type { AccountDays } from '#libs/contracts/statements.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { amountText, dayText, moneyText, movedWords } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import { minorOf } from '../html/amounts.ts';
import { type ChartDay, dayChart, highest } from '../html/charts.ts';
import { addPage } from '../html/frame.ts';
import { emptyState, loaded, numeric, table } from '../html/show.ts';

/** The last 90 days of an account, as a picture and in numbers. */

const shownDays = 90;

const daysUrl = (accountId: string) => `/admin/ui/accounts/${accountId}/days`;

/** The part of the account's page, which is loaded after it. */
export const accountDays = (accountId: string): Html =>
  loaded('days', daysUrl(accountId), `The last ${shownDays} days`);

export function addAccountDays(app: FastifyInstance): void {
  const page = { title: `The last ${shownDays} days`, scope: 'transactions:read' } as const;
  addPage(app, daysUrl(':account_id'), page, async ({ api, id }) => {
    const found = await known(api.get<AccountDays>(`/accounts/${id}/days?days=${shownDays}`));
    return html`<div id="days">${found ? showDays(found.data) : emptyState('The days of this account cannot be shown: there are too many entries, or no answer.')}</div>
<p class="quiet"><a href="/admin/ui/accounts/${id}">To the account</a></p>`;
  });
}

function showDays({ account_number, currency, from, to, opening_balance, days }: AccountDays): Html {
  const { debit, credit } = movedWords(account_number);
  const byDate = new Map(days.map((day) => [day.date, day]));
  let balance = opening_balance;
  const shown: ChartDay[] = Array.from({ length: shownDays }, (_, i) => {
    const date = plusDays(from, i);
    const day = byDate.get(date);
    balance = day?.balance ?? balance;
    const moved =
      day &&
      `${credit.title.toLowerCase()} ${moneyText(day.credit_total, currency)}, ${debit.title.toLowerCase()} ${moneyText(day.debit_total, currency)}; `;
    return {
      balance: minorOf(balance, currency),
      moneyIn: minorOf(day?.credit_total ?? '0', currency),
      moneyOut: minorOf(day?.debit_total ?? '0', currency),
      title: `${dayText(date)}: ${moved ?? ''}balance ${amountText(balance, currency)}`,
    };
  });
  // Of an account that was empty, nothing is drawn before the day before its first posting.
  const first = shown.findIndex(({ moneyIn, moneyOut }) => moneyIn + moneyOut > 0n);
  const drawn = minorOf(opening_balance, currency) === 0n ? shown.slice(Math.max(0, first - 1)) : shown;
  const begin = plusDays(to, 1 - drawn.length);
  const most = moneyText(fromMinor(highest(drawn.map((day) => day.balance)), currency), currency);
  const label = `Balance by day from ${dayText(begin)} to ${dayText(to)}: ${amountText(opening_balance, currency)} before, ${amountText(balance, currency)} now. The numbers are below.`;
  // One posting makes no line.
  return html`${
    days.length > 1 &&
    html`<figure class="picture"><figcaption><strong>Balance</strong> <span class="legend in">${credit.title}</span> <span class="legend out">${debit.title}</span></figcaption>
<p class="scale">${most}</p>${dayChart(drawn, label)}
<p class="ends"><span>${dayText(begin)}</span><span>Today: ${amountText(balance, currency)}</span></p></figure>`
  }
<details><summary>The numbers</summary>${table<AccountDays['days'][number]>(
    'Day by day',
    [
      { title: 'Day', show: ({ date }) => dayText(date) },
      numeric(debit.title, (row) => moneyText(row.debit_total, currency)),
      numeric(credit.title, (row) => moneyText(row.credit_total, currency)),
      numeric(`Balance in ${currency}`, (row) => moneyText(row.balance, currency)),
    ],
    days.toReversed(),
    `Nothing has moved in ${shownDays} days.`,
  )}</details>`;
}
