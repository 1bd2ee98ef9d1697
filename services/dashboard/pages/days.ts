import type { FastifyInstance } from 'fastify';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { TrialBalance } from '#libs/contracts/books.ts';
import type { DayClosing } from '#libs/contracts/days.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { bankDay, dayText, moneyText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type Api, ApiRefused, known } from '../api.ts';
import { readActorNames, showActor } from '../html/actors.ts';
import { amountBetween } from '../html/amounts.ts';
import {
  addFormPage,
  checkConfirmed,
  confirmation,
  enteredIdempotencyKey,
  showForm,
  type Wrong,
  waitingFor,
} from '../html/forms.ts';
import { addDownload, addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { facts, loaded, notice, numeric, parts, refreshed, showFullTime, table } from '../html/show.ts';
import { makerFacts, readMaker } from './made-by.ts';
import { announce } from './needs-approval.ts';

/** The days of the books: the calendar, closing a day, and a closed day. */

export const daysUrl = '/admin/ui/books/days';
const dayUrl = (day: string) => `${daysUrl}/${day}`;

export function addDays(app: FastifyInstance): void {
  const scope = 'books:read';
  addPage(app, daysUrl, { title: 'Days', scope }, showCalendar);
  addPage(app, dayUrl(':date'), { title: 'Closed day', scope }, showDay);
  addPage(app, `${dayUrl(':date')}/preview`, { title: 'Preview', scope }, async ({ api, id, person }) =>
    isDay(id)
      ? {
          title: `Books of ${id}`,
          content: html`<div id="preview">${await preview(api, id)}${postingsLink(person, id)}</div>`,
        }
      : notADay(id),
  );
  addDownload(app, `${dayUrl(':date')}/accounts.csv`, { title: 'Closed day', scope }, async ({ api, id }) => {
    const { content } = await api.getFile(`/admin/day-closings/${id}/accounts`, 'text/csv');
    return content;
  });
  addFormPage(
    app,
    `${dayUrl(':date')}/closing`,
    { title: 'Close a day', scope: 'books:close' },
    {
      draw: (visit, _values, wrong) => drawClosing(visit, wrong),
      take,
    },
  );
}

/** Links to the pages of the books. */
export const bookParts = (here: 'books' | 'days'): Html =>
  parts('Books', [
    { href: '/admin/ui/books', text: 'Now', isHere: here === 'books' },
    { href: daysUrl, text: 'Days', isHere: here === 'days' },
  ]);

const isDay = (text: string): boolean =>
  /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)) && plusDays(text, 0) === text;

const wrongDay = (title: string, why: Html): PageResult => ({
  title,
  status: 400,
  content: html`${bookParts('days')}${notice('error', why)}`,
});
const notADay = (text: string): PageResult => wrongDay(text, html`This is not a day.`);

/** The first and the last closed day; undefined while none is closed. All days up to the last are closed. */
interface Closed {
  first: string | undefined;
  last: string | undefined;
}

async function readClosed({ api, now, person }: PageRequest): Promise<Closed> {
  const end = async (order: 'asc' | 'desc') =>
    (await api.get<DayClosing[]>(`/admin/day-closings?limit=1&order=${order}`)).data[0]?.date;
  if (!person.scopes.has('books:read')) return { first: undefined, last: undefined };
  const [first, last] = await Promise.all([end('asc'), end('desc')]);
  const next = nextToClose({ first, last }, bankDay(now));
  return { first, last: (next && (await readClosedUpTo(api, next))) ?? last };
}

/** The last closed day, also while its totals are calculated: until then, the list does not have it. */
async function readClosedUpTo(api: Api, day: string): Promise<string | undefined> {
  try {
    return (await api.get<DayClosing>(`/admin/day-closings/${day}`)).data.date;
  } catch (error) {
    if (error instanceof ApiRefused && 'closed_up_to' in (error.problem.details ?? {})) return closedUpTo(error);
    throw error;
  }
}

/** What the refusal of a day says about the last closed one. */
const closedUpTo = ({ problem: { details } }: ApiRefused): string | undefined =>
  typeof details?.['closed_up_to'] === 'string' ? details['closed_up_to'] : undefined;

/** The day that can be closed next; of a bank without a closed day, any that has ended, so that this is yesterday. */
function nextToClose({ last }: Closed, today: string): string | undefined {
  const next = last === undefined ? plusDays(today, -1) : plusDays(last, 1);
  return next < today ? next : undefined;
}

const dayMs = 86_400_000;

/**
 * Returns how many ended days are open, or are being closed: after the last one with totals. 0 while there is none, because the
 * bank may not use closed days.
 */
export async function countOpenDays({ api, now }: PageRequest): Promise<number> {
  const { data } = await api.get<DayClosing[]>('/admin/day-closings?limit=1&order=desc');
  const last = data[0]?.date;
  return last === undefined ? 0 : openDays({ first: last, last }, bankDay(now));
}

/** Counts the days from the next one that can be closed to yesterday. */
function openDays(closed: Closed, today: string): number {
  const next = nextToClose(closed, today);
  return next === undefined ? 0 : (Date.parse(today) - Date.parse(next)) / dayMs;
}

async function showCalendar(visit: PageRequest): Promise<PageResult> {
  const { now, person, query } = visit;
  const closed = await readClosed(visit);
  const today = bankDay(now);
  const asked = query.get('month') ?? '';
  const month = /^[12]\d{3}-(0[1-9]|1[0-2])$/.test(asked) && asked <= today ? asked : today.slice(0, 7);
  const next = nextToClose(closed, today);
  const open = openDays(closed, today);
  const mayClose = person.scopes.has('books:close');
  const state = closed.last
    ? html`<p role="status">Closed up to <strong>${closed.last}</strong>. ${next === undefined ? 'Every day that has ended is closed.' : `${open === 1 ? 'One ended day is' : `${open} ended days are`} still open.`}</p>`
    : notice(
        'info',
        'No day has been closed yet: the bank does not use closed days. The first closing may be that of any day that has ended; it closes all days before it too.',
      );
  return {
    title: `Days: ${monthText(month)}`,
    content: html`${bookParts('days')}${state}
${next !== undefined && mayClose && html`<p class="actions"><a role="button" href="${dayUrl(next)}/closing">Close ${dayText(next)}</a></p>`}
${monthLinks(month, today.slice(0, 7))}${calendar(month, (day) => showDayCell(day, { closed, next, today, mayClose }))}`,
  };
}

const monthText = (month: string): string =>
  new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(Date.parse(`${month}-01`));

function monthLinks(month: string, current: string): Html {
  const of = (other: string) => html`<a href="${daysUrl}?month=${other}">${monthText(other)}</a>`;
  const before = plusDays(`${month}-01`, -1).slice(0, 7);
  const after = plusDays(`${month}-28`, 4).slice(0, 7);
  return html`<nav class="actions" aria-label="Months"><span>← ${of(before)}</span>${after <= current && html`<span>${of(after)} →</span>`}${after < current && html`<a href="${daysUrl}">This month</a>`}</nav>`;
}

const weekdays = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

function calendar(month: string, show: (day: string) => Html): Html {
  const first = `${month}-01`;
  // Monday is the first day of a week.
  const blanks = (new Date(first).getUTCDay() + 6) % 7;
  const start = plusDays(first, -blanks);
  const end = plusDays(`${plusDays(first, 31).slice(0, 7)}-01`, -1);
  const weeks = Math.ceil((blanks + Number(end.slice(8))) / 7);
  const cell = (day: string) => (day.startsWith(month) ? show(day) : html`<td></td>`);
  const week = (row: number) => html`<tr>${weekdays.map((_, column) => cell(plusDays(start, row * 7 + column)))}</tr>`;
  return html`<table class="calendar"><caption class="quiet">${monthText(month)}</caption><thead><tr>${weekdays.map((name) => html`<th scope="col"><abbr title="${name}">${name.slice(0, 2)}</abbr></th>`)}</tr></thead>
<tbody>${Array.from({ length: weeks }, (_, row) => week(row))}</tbody></table>`;
}

interface Shown {
  closed: Closed;
  next: string | undefined;
  today: string;
  mayClose: boolean;
}

function showDayCell(day: string, { closed: { first, last }, next, today, mayClose }: Shown): Html {
  const number = html`<time datetime="${day}">${String(Number(day.slice(8)))}</time>`;
  const cell = (state: string, text: Html | string, isLinked: boolean, href = '') =>
    html`<td class="${state}"${state === 'today' && html` aria-current="date"`}>${isLinked ? html`<a href="${href}">${number} <span>${text}</span></a>` : html`${number} <span>${text}</span>`}</td>`;
  if (last !== undefined && day <= last) return cell('closed', 'closed', day >= (first ?? last), dayUrl(day));
  if (day > today) return cell('later', '', false);
  if (day === today) return cell('today', 'today', false);
  const isNext = last === undefined || day === next;
  return cell(
    day === next ? 'next' : 'open',
    day === next ? 'next' : 'open',
    isNext && mayClose,
    `${dayUrl(day)}/closing`,
  );
}

/** Why the day cannot be closed now, with what to do instead. */
function notClosable(day: string, closed: Closed, today: string): Html | undefined {
  const next = nextToClose(closed, today);
  if (day >= today) return html`The day has not ended yet.`;
  if (closed.last === undefined || day === next) return undefined;
  if (day <= closed.last) return html`The day is closed already.`;
  return html`Days are closed in order. Close <a href="${dayUrl(next ?? '')}/closing">${next}</a> first.`;
}

async function drawClosing(visit: PageRequest, wrong: Wrong): Promise<PageResult> {
  const { id: day, now, person } = visit;
  if (!isDay(day)) return notADay(day);
  const title = `Close ${dayText(day)}`;
  const closed = await readClosed(visit);
  const why = notClosable(day, closed, bankDay(now));
  if (why !== undefined) return wrongDay(title, why);
  const mayRead = person.scopes.has('books:read');
  const { says, button } = await announce(visit, { action: 'close_day' }, 'Close the day');
  const form = showForm(
    visit,
    { wrong: problemOf(wrong), button, cancel: mayRead ? daysUrl : '/admin/ui', isDangerous: true },
    confirmation(`Close ${dayText(day)} for good`, wrong),
  );
  return {
    title,
    content: html`${bookParts('days')}${await showMeaning(visit, day)}${says}${form}`,
  };
}

const notConfirmed = 'The bank has not confirmed yet that the day is closed. If it stays open, close it again.';

async function take(visit: PageRequest): Promise<PageResult> {
  checkConfirmed(visit);
  const { api, id: date, person } = visit;
  // Without books:read, the page of the day is not for this person.
  const shown = (query: 'closed' | 'asked', text: string): PageResult =>
    person.scopes.has('books:read')
      ? { redirectTo: `${dayUrl(date)}?${query}` }
      : { title: date, content: notice('info', text) };
  try {
    const { data } = await api.post<DayClosing>('/admin/day-closings', { date }, enteredIdempotencyKey(visit));
    return waitingFor(data) ?? shown('closed', 'The day was closed.');
  } catch (error) {
    // Its totals may take longer than a request. The page of the day shows whether it is closed.
    if (!(error instanceof ApiRefused) || error.status !== 504) throw error;
    return shown('asked', notConfirmed);
  }
}

/** A refusal of the API is about the day, for which the form has no field. */
function problemOf(wrong: Wrong): Wrong {
  const { date } = wrong.fields ?? {};
  return date === undefined ? wrong : { ...wrong, message: date };
}

/** Says what the closing of this day means, and which requests it makes impossible, to the person who asks and the one who approves. */
export async function showMeaning(visit: PageRequest, day: string): Promise<Html> {
  const [closed, affected] = await Promise.all([known(readClosed(visit)), showAffected(visit, day)]);
  const mayRead = visit.person.scopes.has('books:read');
  return html`<p role="alert">After this, nothing is posted with the value date ${day} or an earlier one. A closed day cannot be opened again.</p>
${mayRead && closed !== undefined && closed.last === undefined && notice('warning', html`<strong>This is the first closing: it closes every day before ${day} too.</strong>`)}
${affected}${mayRead && dayPreview(day)}`;
}

/**
 * Says how many requests wait for an approval that the closing makes impossible, among the latest 100, to people who may
 * see the requests of others.
 */
async function showAffected({ api, person }: PageRequest, day: string): Promise<Html> {
  if (!person.scopes.has('approvals:write')) return html``;
  const waiting = await known(api.get<Approval[]>('/admin/approvals?status=Waiting&limit=100'));
  const affected = (waiting?.data ?? []).filter(({ request: { body } }) => {
    const { effective_date } = body;
    return typeof effective_date === 'string' && effective_date <= day;
  }).length;
  const isAll = waiting !== undefined && waiting.next === undefined;
  if (affected === 0 && !isAll)
    return notice(
      'warning',
      html`It is not known how many requests with value dates up to this day wait for <a href="/admin/ui/approvals">approval</a>. Once the day is closed, they can no longer be posted.`,
    );
  return html`${affected > 0 && notice('warning', html`${!isAll && 'At least '}<strong>${affected}</strong> ${affected === 1 ? 'request with a value date up to this day waits' : 'requests with value dates up to this day wait'} for <a href="/admin/ui/approvals">approval</a>. Once the day is closed, ${affected === 1 ? 'it' : 'they'} can no longer be posted.`)}`;
}

/** The trial balance of a day as it is now, which is read after the page, because it reads all accounts. */
const dayPreview = (day: string): Html => loaded('preview', `${dayUrl(day)}/preview`, `Books of ${day}`);

async function preview(api: Api, day: string): Promise<Html> {
  const read = async (on: string) => (await api.get<TrialBalance[]>(`/admin/trial-balance?on=${on}`)).data;
  const [before, after] = await Promise.all([read(plusDays(day, -1)), read(day)]);
  const earlier = new Map(before.map((row) => [row.currency, row]));
  const ofDay = (row: TrialBalance, field: 'debit_total' | 'credit_total') =>
    amountBetween(earlier.get(row.currency)?.[field] ?? '0', row[field], row.currency);
  const money = (title: string, amount: (row: TrialBalance) => string) =>
    numeric<TrialBalance>(title, (row) => moneyText(amount(row), row.currency));
  return html`<h2>Books of ${day}, by value date</h2>${table<TrialBalance>(
    `Books of ${day}`,
    [
      { title: 'Currency', show: ({ currency }) => html`<strong>${currency}</strong>` },
      money('Debits of the day', (row) => ofDay(row, 'debit_total')),
      money('Credits of the day', (row) => ofDay(row, 'credit_total')),
      money('Assets at its end', ({ assets }) => assets),
      money('Liabilities at its end', ({ liabilities }) => liabilities),
      money('Difference', ({ difference }) => difference),
    ],
    after,
    'Nothing is posted up to this day.',
  )}${cashTwice}`;
}

/** Explains why debits and credits are more than what was posted. */
export const cashTwice = html`<p class="quiet">Cash counts twice in debits and credits: between customer and Teller, and between Teller and Vault.</p>`;

const postingsLink = ({ scopes }: Person, day: string): Html =>
  html`${scopes.has('transactions:read') && html`<a role="button" class="secondary" href="/admin/ui/transactions?${new URLSearchParams({ effective_from: day, effective_to: day }).toString()}">Postings of this value date</a> `}`;

async function showDay(visit: PageRequest): Promise<PageResult> {
  const { api, id: day, now, person, query } = visit;
  const here = dayUrl(day);
  const title = `Closed day ${day}`;
  if (!isDay(day)) return notADay(day);
  try {
    const { data } = await api.get<DayClosing>(`/admin/day-closings/${day}`);
    const names = await readActorNames(visit, [data], 'closed_by');
    const [after, maker] = await Promise.all([known(readClosed(visit)), readMaker(visit, day)]);
    return {
      title,
      content: html`${bookParts('days')}<div id="day">${query.has('closed') && notice('success', 'The day was closed.')}
${facts([['Closed', showFullTime(data.closed_at)], ['Closed by', showActor(data.closed_by, names)], ...makerFacts(maker).slice(1)])}
<h2>Totals, by value date</h2>${totalsTable(data)}${cashTwice}
<h2>Hashes</h2>${facts([
        ['Of its accounts', hashText(data.accounts_sha256)],
        [
          'Of the day before',
          /^0+$/.test(data.previous_hash) ? 'no earlier day was closed' : hashText(data.previous_hash),
        ],
        ['Of both', hashText(data.hash)],
      ])}
<p class="actions"><button type="button" data-print hidden>Print</button> ${postingsLink(person, day)}<a role="button" class="secondary" href="${here}/accounts.csv" download="day-${day}.csv">Download its accounts as CSV</a></p>
<nav class="actions" aria-label="Days">${after?.first !== undefined && day > after.first && html`<a href="${dayUrl(plusDays(day, -1))}">← ${plusDays(day, -1)}</a>`}<a href="${daysUrl}?month=${day.slice(0, 7)}">Calendar</a>${after?.last !== undefined && day < after.last && html`<a href="${dayUrl(plusDays(day, 1))}">${plusDays(day, 1)} →</a>`}</nav></div>`,
    };
  } catch (error) {
    if (!(error instanceof ApiRefused)) throw error;
    const wait = (text: string) => ({
      title: day,
      content: html`${bookParts('days')}${refreshed('day', `${here}?asked`, 5, now, notice('info', text))}`,
    });
    if (error.problem.code === 'service_unavailable' && closedUpTo(error) !== undefined)
      return wait('The day is closed. Its totals are being calculated.');
    if (error.problem.code !== 'day_not_found') throw error;
    if (query.has('asked')) return wait(notConfirmed);
    return {
      title: day,
      status: 404,
      content: html`${bookParts('days')}${notClosed(day, person, await known(readClosed(visit)))}`,
    };
  }
}

function notClosed(day: string, { scopes }: Person, closed: Closed | undefined): Html {
  const { first, last } = closed ?? {};
  const isWithLater = first !== undefined && day < first;
  return html`<p role="status">${isWithLater ? html`This day was closed with <a href="${dayUrl(first)}">${first}</a>, the first closing, and has no totals of its own.` : 'This day is not closed.'}</p>
<p class="actions">${scopes.has('books:close') && (last === undefined || day > last) && html`<a href="${dayUrl(day)}/closing">Close it</a> `}<a href="${daysUrl}?month=${day.slice(0, 7)}">Calendar</a></p>`;
}

const hashText = (hash: string): Html => html`<span class="secret wide">${hash}</span>`;

type Total = DayClosing['totals'][number];

function totalsTable({ date, totals }: DayClosing): Html {
  const money = (title: string, field: 'opening' | 'debits' | 'credits' | 'closing') =>
    numeric<Total>(title, (row) => moneyText(row[field], row.currency));
  return table<Total>(
    `Totals of ${date}`,
    [
      {
        title: 'Accounts',
        show: ({ currency, class: ofClass }) =>
          html`<strong>${currency}</strong> ${ofClass === 'liability' ? 'liabilities' : 'assets'}`,
      },
      money('Opening', 'opening'),
      money('Debits', 'debits'),
      money('Credits', 'credits'),
      money('Closing', 'closing'),
      numeric('Entries', ({ entry_count }) => String(entry_count)),
      numeric('Operations', ({ operation_count }) => String(operation_count)),
    ],
    totals,
    'Nothing was posted up to this day.',
  );
}
