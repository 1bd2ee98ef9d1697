import { fromMinor } from '#libs/contracts/money.ts';
import type { CashDays } from '#libs/contracts/statistics.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { dayText, moneyText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { minorOf } from '../html/amounts.ts';
import { highest } from '../html/charts.ts';
import { notice, numeric, table } from '../html/show.ts';

/** Cash in and out by day, as bars of each currency, which are drawn here because the content policy allows no styles. */

type CashDay = CashDays['days'][number];

/** More would not be looked at. */
const mostCurrencies = 4;
const height = 120;
const width = 560;

export function cashBars({ from, to, counted_from, complete, days }: CashDays): Html {
  const currencies = Map.groupBy(days, ({ currency }) => currency);
  const busiest = [...currencies].sort(([a, one], [b, other]) => other.length - one.length || (a < b ? -1 : 1));
  const shown = busiest.slice(0, mostCurrencies);
  const dates: string[] = [];
  for (let date = from; date <= to; date = plusDays(date, 1)) dates.push(date);
  return html`${!complete && notice('info', `Days before ${counted_from} are still being counted.`)}${
    shown.length === 0
      ? html`<p role="status">No cash came in or went out in these days.</p>`
      : html`<div class="halves">${shown.map(([currency, rows]) => bars(currency, rows, dates))}</div>`
  }${
    busiest.length > shown.length &&
    html`<p class="quiet">Not shown: ${busiest
      .slice(mostCurrencies)
      .map(([currency]) => currency)
      .join(', ')}.</p>`
  }`;
}

function bars(currency: string, rows: readonly CashDay[], dates: readonly string[]): Html {
  const byDate = new Map(rows.map((row) => [row.date, row]));
  const none = { money_in: '0', money_out: '0' };
  const all = dates.map((date) => ({ currency, ...none, ...byDate.get(date), date }));
  const most = highest(all.flatMap((row) => [minorOf(row.money_in, currency), minorOf(row.money_out, currency)]));
  const step = width / dates.length;
  const today = dates.at(-1);
  /** The height of a bar; an amount that is not 0 is seen. */
  const tall = (amount: bigint) => (amount <= 0n ? 0 : Math.max(1, Number((amount * BigInt(height)) / most)));
  const bar = (decimal: string, kind: 'in' | 'out', index: number) => {
    const size = tall(minorOf(decimal, currency));
    const left = index * step + (kind === 'in' ? step * 0.15 : step * 0.5);
    return html`<rect class="${kind}" x="${left.toFixed(1)}" y="${height - size}" width="${(step * 0.32).toFixed(1)}" height="${size}"/>`;
  };
  const drawn = all.map((row, index) => {
    const title = `${dayText(row.date)}: in ${moneyText(row.money_in, currency)}, out ${moneyText(row.money_out, currency)}`;
    return html`<g${row.date === today && html` class="last"`}>${bar(row.money_in, 'in', index)}${bar(row.money_out, 'out', index)}<rect class="day" x="${(index * step).toFixed(1)}" y="0" width="${step.toFixed(1)}" height="${height}"><title>${title}</title></rect></g>`;
  });
  // The labels are text beside the picture, which is stretched. Of many days, not every one fits.
  const labels = dates.map((date, index) => {
    const isShown = dates.length <= 14 || (dates.length - 1 - index) % 5 === 0;
    return html`<span>${isShown && (date === today ? 'Today' : String(Number(date.slice(8))))}</span>`;
  });
  return html`<div><figure class="picture"><figcaption><strong>${currency}</strong> <span class="legend in">In</span> <span class="legend out">Out</span></figcaption>
<p class="scale">${moneyText(fromMinor(most, currency), currency)}</p>
<svg class="days" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="Cash in and out in ${currency} by day; the table below has the figures">${drawn}</svg>
<p class="dates" aria-hidden="true">${labels}</p></figure>
<details><summary>${currency} as a table</summary>${table<CashDay>(
    `Cash in ${currency} by day`,
    [
      {
        title: 'Day',
        show: ({ date }) => (date === today ? html`<strong>${dayText(date)}</strong>, today` : dayText(date)),
      },
      numeric('In', (row) => moneyText(row.money_in, currency)),
      numeric('Out', (row) => moneyText(row.money_out, currency)),
    ],
    all.toReversed(),
    '',
  )}</details></div>`;
}
