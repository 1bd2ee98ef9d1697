import type { FastifyInstance } from 'fastify';
import type { PostingStatistics, PostingTotals } from '#libs/contracts/administration.ts';
import { statisticsUnit } from '#libs/contracts/administration.ts';
import type { SystemAccount } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { Api } from '../api.ts';
import type { AssetName } from '../html/assets.ts';
import { addPage } from '../html/frame.ts';
import { fullTimeOf, moneyText, table } from '../html/show.ts';

const url = '/admin/ui/books/postings';

type Unit = PostingStatistics['unit'];
type Bucket = PostingStatistics['buckets'][number];

/** The files that a page with the chart needs. */
export const chartAssets: readonly AssetName[] = ['uplot.css', 'uplot.js', 'chart.js'];

/** Postings and amounts over time, as a chart and as a table. */
export function addPostings(app: FastifyInstance): void {
  addPage(app, url, { title: 'Postings over time', scope: 'books:read' }, async ({ api, query }) => {
    const [{ data: accounts }, asked] = await Promise.all([
      api.get<SystemAccount[]>('/admin/system-accounts'),
      query.get('currency') ?? busiestIn(api),
    ]);
    const currencies = [...new Set(accounts.map(({ currency }) => currency))];
    const currency = asked !== undefined && currencies.includes(asked) ? asked : currencies[0];
    if (currency === undefined) return { content: html`<p role="status">Nothing is posted yet.</p>` };
    const unit = statisticsUnit.catch('hour').parse(query.get('unit'));
    const { data } = await api.get<PostingStatistics>(`/admin/posting-statistics?currency=${currency}&unit=${unit}`);
    return {
      assets: chartAssets,
      content: html`<p><a href="/admin/ui/books">To the books</a></p>${section(data, currencies)}`,
    };
  });
}

/** The currency with the most postings in the last day, which is the period shown first. */
async function busiestIn(api: Api): Promise<string | undefined> {
  const { data } = await api.get<PostingTotals>('/admin/posting-totals');
  return data.totals[0]?.currency;
}

/** Its place on another page. Scripts load it; without scripts it is a link. */
export const postingsPlace = html`<div id="postings" hx-get="${url}" hx-trigger="load" hx-select="#postings" hx-swap="outerHTML"><p><a href="${url}">Postings over time</a></p></div>`;

const spans: Record<Unit, string> = { minute: 'last hour', hour: 'last day', day: 'last 30 days' };

function section(data: PostingStatistics, currencies: readonly string[]): Html {
  const { currency, unit, buckets, complete, counted_from } = data;
  return html`<section id="postings"><h2>Postings and amounts in ${currency}</h2>
<form method="get" action="${url}" class="filters"><label>Currency <select name="currency">${currencies.map((code) => html`<option value="${code}"${code === currency && html` selected`}>${code}</option>`)}</select></label>
<label>Period <select name="unit">${statisticsUnit.options.map((value) => html`<option value="${value}"${value === unit && html` selected`}>${spans[value]}</option>`)}</select></label><p class="actions"><button>Show</button></p></form>
${!complete && html`<p class="notice wrong" role="status">There were too many postings to count. These are the postings since ${fullTimeOf(counted_from)}.</p>`}
<div class="chart" role="img" aria-label="Chart of operations and amounts in ${currency}, ${spans[unit]} by ${unit}; the table below has its numbers" data-unit="${unit}" data-currency="${currency}" data-points="${JSON.stringify(pointsOf(data))}" hidden></div>
<details${buckets.length <= 12 && html` open`}><summary>The numbers</summary>${table<Bucket>(
    'Postings over time',
    [
      {
        title: `Start of the ${unit} (UTC)`,
        show: ({ start }) =>
          html`<time datetime="${start}">${start.slice(0, unit === 'day' ? 10 : 16).replace('T', ' ')}</time>`,
      },
      { title: 'Operations', isNumber: true, show: ({ operations }) => String(operations) },
      { title: `Amount in ${currency}`, isNumber: true, show: ({ amount }) => moneyText(amount, currency) },
    ],
    buckets,
    'Nothing was posted in this period.',
  )}</details></section>`;
}

const unitMs: Record<Unit, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Points of the chart: seconds, operations, amounts. Periods that the API omits are 0. */
export function pointsOf({ from, to, unit, buckets }: PostingStatistics): [number[], number[], number[]] {
  const step = unitMs[unit];
  const known = new Map(buckets.map((bucket) => [Date.parse(bucket.start), bucket]));
  const [times, operations, amounts]: [number[], number[], number[]] = [[], [], []];
  for (let at = Math.floor(Date.parse(from) / step) * step; at < Date.parse(to); at += step) {
    const bucket = known.get(at);
    times.push(at / 1000);
    operations.push(Number(bucket?.operations ?? 0));
    amounts.push(Number(bucket?.amount ?? 0));
  }
  return [times, operations, amounts];
}
