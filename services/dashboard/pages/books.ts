import type { FastifyInstance } from 'fastify';
import type { SystemAccount, TrialBalance } from '#libs/contracts/books.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import type { Operations, Verification } from '#libs/contracts/operations.ts';
import { type PostingStatistics, type PostingTotals, statisticsUnit } from '#libs/contracts/statistics.ts';
import { plusDays } from '#libs/contracts/times.ts';
import {
  bankDay,
  dayText,
  endOfDay,
  minuteText,
  moneyText,
  numberText,
  startOfDay,
  zoneText,
} from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import type { Api } from '../api.ts';
import { type ActorNames, readActorNames, showActor } from '../html/actors.ts';
import { minorOf } from '../html/amounts.ts';
import { barChart, highest } from '../html/charts.ts';
import { addForm, addPage } from '../html/frame.ts';
import { csrfField, type Person } from '../html/layout.ts';
import {
  loaded,
  notice,
  numeric,
  refreshed,
  showFullTime,
  showOptions,
  showVerdict,
  table,
  toned,
} from '../html/show.ts';
import { bookParts, cashTwice } from './days.ts';

const url = '/admin/ui/books';
const balanceUrl = `${url}/balance`;

/**
 * Adds the page of the books: the trial balance of each currency, the bank's own accounts, and the result of
 * the last verification.
 */
export function addBooks(app: FastifyInstance): void {
  addPage(app, url, { title: 'The books', scope: 'books:read' }, async ({ api, person, now }) => {
    const [accounts, operations] = await Promise.all([
      api.get<SystemAccount[]>('/admin/system-accounts'),
      api.get<Operations>('/admin/operations'),
    ]);
    const last = operations.data.last_verification;
    const names = await readActorNames({ api }, last ? [last] : [], 'requested_by');
    // The trial balance reads all accounts, so the page does not wait for it.
    const [balance, postings] = [
      loaded('balance', balanceUrl, 'Trial balance'),
      loaded('postings', postingsUrl, 'Postings over time'),
    ];
    const figures = html`<h2>Teller and Vault</h2>${systemAccounts(accounts.data)}
<h2>Verification</h2>${verification(last, names, person)}`;
    return html`${bookParts('books')}${balance}${refreshed('books', url, 30, now, figures)}${postings}`;
  });
  addPage(app, balanceUrl, { title: 'Trial balance', scope: 'books:read' }, async ({ api, now }) => {
    const { data } = await api.get<TrialBalance[]>('/admin/trial-balance');
    const content = html`${verdict(data)}<h2>Trial balance</h2>${trialBalance(data)}${cashTwice}`;
    return html`<p><a href="${url}">To the books</a></p>${refreshed('balance', balanceUrl, 300, now, content)}`;
  });
  addPostings(app);
  addForm(app, `${url}/verification`, { title: 'Verification', scope: 'books:read' }, async ({ api }) => {
    await api.post<Verification>('/admin/verifications', {});
    return { redirectTo: url };
  });
}

const results: Record<Verification['state'], string> = {
  running: 'A check is running.',
  passed: 'All rules that were checked are satisfied.',
  broken: 'Some rules are violated. Tell operations at once.',
  interrupted: 'The last check did not finish, so it says nothing about the books.',
};

const verdicts = { running: 'info', passed: 'success', broken: 'error', interrupted: 'warning' } as const;

function verification(last: Verification | null, names: ActorNames, { csrf }: Person): Html {
  return html`${
    last === null
      ? html`<p role="status">The entries have not been checked yet.</p>`
      : html`${notice(verdicts[last.state], results[last.state])}
<p class="quiet">Started ${showFullTime(last.started_at)} by ${showActor(last.requested_by, names)}${last.ended_at !== null && html`, ended ${showFullTime(last.ended_at)}`}. ${last.covers.includes('audit') ? 'The audit is checked too.' : 'The audit could not be checked.'}</p>
${last.findings.map(({ rule, rows }) => html`<details><summary>${rule}</summary>${rows.map((row) => html`<p><code>${JSON.stringify(row)}</code></p>`)}</details>`)}`
  }
<form method="post" action="${url}/verification">${csrfField(csrf)}<div class="actions"><button class="secondary"${last?.state === 'running' && html` disabled`}>Check every entry now</button></div></form>`;
}

const isEven = ({ difference, debit_total, credit_total }: TrialBalance) =>
  /^-?0(\.0*)?$/.test(difference) && debit_total === credit_total;

function verdict(balances: readonly TrialBalance[]): Html {
  const wrong = balances.filter((balance) => !isEven(balance)).map(({ currency }) => currency);
  if (balances.length === 0) return html`<p role="status">Nothing is posted yet.</p>`;
  if (wrong.length > 0)
    return notice('error', html`The books do not balance in ${wrong.join(', ')}. Tell operations at once.`);
  return notice('success', 'The books balance: in every currency debits equal credits, and assets equal liabilities.');
}

function trialBalance(balances: readonly TrialBalance[]): Html {
  const column = (title: string, field: Exclude<keyof TrialBalance, 'currency'>) =>
    numeric<TrialBalance>(title, (row) => moneyText(row[field], row.currency));
  return table<TrialBalance>(
    'Trial balance',
    [
      { title: 'Currency', show: (row) => html`<strong>${row.currency}</strong>` },
      column('Debits', 'debit_total'),
      column('Credits', 'credit_total'),
      column('Assets', 'assets'),
      column('Liabilities', 'liabilities'),
      numeric('Difference', (row) => showVerdict(moneyText(row.difference, row.currency), isEven(row))),
    ],
    balances,
    'Nothing is posted yet.',
  );
}

function systemAccounts(accounts: readonly SystemAccount[]): Html {
  return table<SystemAccount>(
    'Teller and Vault',
    [
      { title: 'Account', show: (row) => html`<strong id="${row.account_number}">${row.account_number}</strong>` },
      { title: 'Kind', show: (row) => row.kind },
      numeric(
        'Balance',
        (row) =>
          html`${moneyText(row.balance, row.currency)}${row.balance.startsWith('-') && html`<br>${toned('wait', 'warning', 'below zero: more cash was paid out than paid in')}`}`,
      ),
    ],
    accounts,
    'They are created with the first posting in a currency.',
  );
}

const postingsUrl = `${url}/postings`;

type Unit = PostingStatistics['unit'];
type Bucket = PostingStatistics['buckets'][number];

/** Postings and amounts over time, as a chart and as a table. */
function addPostings(app: FastifyInstance): void {
  addPage(app, postingsUrl, { title: 'Postings over time', scope: 'books:read' }, async ({ api, query, now }) => {
    const { data: accounts } = await api.get<SystemAccount[]>('/admin/system-accounts');
    const currencies = [...new Set(accounts.map(({ currency }) => currency))];
    const asked = query.get('currency') ?? (currencies.length > 1 ? await busiestIn(api) : undefined);
    const currency = asked !== undefined && currencies.includes(asked) ? asked : currencies[0];
    if (currency === undefined) return { content: html`<p role="status">Nothing is posted yet.</p>` };
    const unit = statisticsUnit.catch('hour').parse(query.get('unit'));
    const data = await readStatistics(api, currency, unit, now);
    return html`<p><a href="${url}">To the books</a></p>${section(data, currencies)}`;
  });
}

/** Days are those of the bank, so they are summed up from hours: those of the API are of UTC. */
async function readStatistics(api: Api, currency: string, unit: Unit, now: number): Promise<PostingStatistics> {
  const path = `/admin/posting-statistics?currency=${currency}`;
  if (unit !== 'day') return (await api.get<PostingStatistics>(`${path}&unit=${unit}`)).data;
  const from = startOfDay(plusDays(bankDay(now), -29));
  const { data } = await api.get<PostingStatistics>(`${path}&unit=hour&from=${encodeURIComponent(from)}`);
  return { ...data, unit, buckets: toDays(data) };
}

/** Sums up buckets by the bank's day of their start. Pure. */
export function toDays({ currency, buckets }: Pick<PostingStatistics, 'currency' | 'buckets'>): Bucket[] {
  const days = Map.groupBy(buckets, ({ start }) => bankDay(Date.parse(start)));
  return [...days].map(([day, hours]) => {
    const minor = hours.reduce((sum, { amount }) => sum + minorOf(amount, currency), 0n);
    const operations = hours.reduce((sum, hour) => sum + Number(hour.operations), 0);
    return { start: startOfDay(day), operations, amount: fromMinor(minor, currency) };
  });
}

/** The currency with the most postings in the last day, which is the period shown first. */
async function busiestIn(api: Api): Promise<string | undefined> {
  const { data } = await api.get<PostingTotals>('/admin/posting-totals');
  return data.totals[0]?.currency;
}

const spans: Record<Unit, string> = { minute: 'last hour', hour: 'last day', day: 'last 30 days' };

function section(data: PostingStatistics, currencies: readonly string[]): Html {
  const { currency, unit, buckets, complete, counted_from } = data;
  return html`<section id="postings"><h2>Postings and amounts in ${currency}</h2>
<form method="get" action="${postingsUrl}" class="filters"><label>Currency <select name="currency">${showOptions(currencies, currency)}</select></label>
<label>Period <select name="unit">${showOptions(Object.entries(spans), unit)}</select></label><p class="actions"><button class="secondary">Show</button></p></form>
${!complete && notice('warning', html`There were too many postings to count. These are the postings since ${showFullTime(counted_from)}.`)}
${pictures(data)}
<details${buckets.length <= 12 && html` open`}><summary>The numbers</summary>${table<Bucket>(
    'Postings over time',
    [
      {
        title: unit === 'day' ? 'Day' : `Start of the ${unit}`,
        show: ({ start }) => html`<time datetime="${start}">${startText(start, unit)}</time>`,
      },
      numeric('Operations', ({ operations }) => numberText(operations)),
      numeric(`Amount in ${currency}`, ({ amount }) => moneyText(amount, currency)),
    ],
    buckets,
    'Nothing was posted in this period.',
  )}</details><p class="quiet">Times are ${zoneText()}.</p></section>`;
}

const unitMs: Record<Unit, number> = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** The start of a period in the bank's format. */
const startText = (start: string, unit: Unit): string =>
  unit === 'day' ? dayText(bankDay(Date.parse(start))) : minuteText(start);

/** The numbers and amounts of the periods as bars, each with its scale. */
function pictures(data: PostingStatistics): Html {
  const { currency, unit } = data;
  const points = chartPoints(data);
  const [from, to] = [points[0], points.at(-1)].map((point) => (point ? startText(point.start, unit) : ''));
  const picture = (title: string, read: (point: ChartPoint) => bigint, toText: (value: bigint) => string) =>
    html`<figure class="picture"><figcaption><strong>${title}</strong></figcaption>
<p class="scale">${toText(highest(points.map(read)))}</p>
${barChart(
  points.map((point) => ({ value: read(point), title: `${startText(point.start, unit)}: ${toText(read(point))}` })),
  `${title}, ${spans[unit]} by ${unit}; the table below has the numbers`,
)}<p class="ends"><span>${from}</span><span>${to}</span></p></figure>`;
  return html`<div class="halves">${picture('Operations', ({ operations }) => operations, numberText)}${picture(
    `Amount in ${currency}`,
    ({ amount }) => amount,
    (value) => moneyText(fromMinor(value, currency), currency),
  )}</div>`;
}

interface ChartPoint {
  start: string;
  operations: bigint;
  /** In the minor unit. */
  amount: bigint;
}

/** The periods of the chart. Those that the API omits are 0. Pure. */
export function chartPoints({ currency, from, to, unit, buckets }: PostingStatistics): ChartPoint[] {
  const step = unitMs[unit];
  const known = new Map(buckets.map((bucket) => [Date.parse(bucket.start), bucket]));
  const first = unit === 'day' ? Date.parse(from) : Math.floor(Date.parse(from) / step) * step;
  // Not every day has 24 hours.
  const next = (at: number) => (unit === 'day' ? Date.parse(endOfDay(bankDay(at))) : at + step);
  const points: ChartPoint[] = [];
  for (let at = first; at < Date.parse(to); at = next(at)) {
    const bucket = known.get(at);
    points.push({
      start: new Date(at).toISOString(),
      operations: BigInt(bucket?.operations ?? 0),
      amount: minorOf(bucket?.amount ?? '0', currency),
    });
  }
  return points;
}
