import type { FastifyInstance } from 'fastify';
import type { Operations, Verification } from '#libs/contracts/operations.ts';
import type { CashDays, PostingTotals } from '#libs/contracts/statistics.ts';
import { bankDay, dayText, moneyText, numberText, startOfDay, timeText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import { addPage, type PageRequest } from '../html/frame.ts';
import { icon } from '../html/icons.ts';
import { hasAny, visibleSections } from '../html/navigation.ts';
import { loaded, notice, numeric, refreshed, showTime, table, tags } from '../html/show.ts';
import { approvalsUrl, countWaiting } from './approvals.ts';
import { cashBars } from './cash-bars.ts';
import { counterScopes, startForm } from './counter-views.ts';
import { countOpenDays, daysUrl } from './days.ts';
import { showSwitchedOff } from './operations.ts';
import { tillsUrl } from './tills.ts';
import { transactionsUrl } from './transactions.ts';
import { showYourDay } from './your-day.ts';

/** What was posted today, and what requires action by staff. This part of the first page refreshes itself. */

const url = '/admin/ui/today';

type Total = PostingTotals['totals'][number];

export function addToday(app: FastifyInstance): void {
  addPage(app, url, { title: 'Today', scope: 'books:read' }, async (visit) => {
    const { api, person, now } = visit;
    const day = bankDay(now);
    const [totals, operations, waiting, openDays] = await Promise.all([
      known(api.get<PostingTotals>(`/admin/posting-totals?from=${startOfDay(day)}`)),
      known(api.get<Operations>('/admin/operations')),
      person.scopes.has('approvals:write') ? known(countWaiting(visit)) : undefined,
      known(countOpenDays(visit)),
    ]);
    const content = html`${operations && showSwitchedOff(operations.data)}<div class="tiles">${tiles(visit, operations?.data, waiting, openDays)}</div>
<h2>Posted today</h2>${posted(totals?.data, day, person.scopes)}`;
    return refreshed('today', url, 30, now, content);
  });
}

const cashUrl = '/admin/ui/cash-days';

/** The cash of the last days, which the first page loads apart: the figures above it need not wait for it. */
export function addCashDays(app: FastifyInstance): void {
  addPage(app, cashUrl, { title: 'Cash by day of posting', scope: 'books:read' }, async ({ api, query, now }) => {
    const isLong = query.get('days') === '30';
    const cash = await known(api.get<CashDays>(`/admin/cash-days?days=${isLong ? 30 : 14}`));
    const content = html`<h2>Cash by day of posting</h2>${cash ? cashBars(cash.data) : notice('warning', 'The cash of the last days cannot be shown now.')}
<p class="quiet">Here is all cash, also of payment files and of programs, which is in no till.</p>
<p><a href="${cashUrl}?days=${isLong ? 14 : 30}">${isLong ? '14 days' : '30 days'}</a></p>`;
    return refreshed('cash-days', isLong ? `${cashUrl}?days=30` : cashUrl, 300, now, content);
  });
}

/** In order, somebody must act, or something does not work. */
const icons = { good: 'done', wait: 'waiting', bad: 'error' } as const;

type Figure = Omit<Tile, 'title' | 'href'>;

interface Tile {
  title: string;
  value: Html | string;
  /** Its meaning, in a few words. */
  about: string;
  href: string | false;
  tone: keyof typeof icons;
}

/** `waiting`: requests that wait for this person; `openDays`: ended days that are not closed. Undefined: not known now. */
function tiles(
  { person }: PageRequest,
  operations: Operations | undefined,
  waiting: string | undefined,
  openDays: number | undefined,
): Html[] {
  const operationsUrl = '/admin/ui/operations';
  const unknown = { value: 'not known', about: 'no answer', tone: 'bad' } as const;
  const list: Tile[] = [
    { title: 'Postings waiting', href: operationsUrl, ...(operations ? pendingFigure(operations) : unknown) },
    {
      title: 'Dead letters',
      href: operationsUrl,
      ...(operations && operations.dead_letters_open !== null
        ? {
            value: String(operations.dead_letters_open),
            about: 'messages that could not be processed',
            tone: Number(operations.dead_letters_open) > 0 ? 'bad' : 'good',
          }
        : unknown),
    },
    {
      title: 'The books',
      href: '/admin/ui/books',
      ...(operations ? checkFigure(operations.last_verification) : unknown),
    },
    { title: 'Services', href: operationsUrl, ...(operations ? servicesFigure(operations) : unknown) },
  ];
  const failing = Number(operations?.webhooks_failing ?? 0);
  if (failing > 0)
    list.push({
      title: 'Webhooks',
      href: person.scopes.has('webhooks:manage') ? '/admin/ui/webhooks' : operationsUrl,
      value: `${failing} failing`,
      about: 'events of the bank are not delivered',
      tone: 'bad',
    });
  if (openDays !== 0)
    list.unshift({
      title: 'Days',
      href: daysUrl,
      ...(openDays === undefined
        ? unknown
        : { value: `${openDays} not closed`, about: 'ended, and still open', tone: 'wait' }),
    });
  const differences = Number(operations?.tills_different ?? 0);
  if (differences > 0)
    list.unshift({
      title: 'Tills',
      href: `${tillsUrl}?status=Closed`,
      value: `${differences} with a difference`,
      about: 'closed in the last 24 hours',
      tone: 'wait',
    });
  if (person.scopes.has('approvals:write'))
    list.unshift({
      title: 'Approvals',
      href: `${approvalsUrl}?status=Waiting`,
      ...(waiting === undefined
        ? unknown
        : { value: waiting, about: 'waiting for your decision', tone: waiting === '0' ? 'good' : 'wait' }),
    });
  return list.map(
    ({ title, value, about, href, tone }) =>
      html`<a class="tile" href="${href}"><span class="tile-title">${title}</span> <strong class="status ${tone}">${icon(icons[tone])}${value}</strong> <span class="quiet">${about}</span></a>`,
  );
}

/** The commands that are waiting for the ledger. */
function pendingFigure({ consumer_lag }: Operations): Figure {
  if (consumer_lag === null) return { value: 'not known', about: 'the broker does not answer', tone: 'bad' };
  const commands = consumer_lag.filter(({ topic }) => /^ledger\.(commands|batches)$/.test(topic));
  const waiting = commands.reduce((sum, { lag }) => sum + Number(lag), 0);
  return { value: String(waiting), about: 'accepted but not posted yet', tone: waiting > 1000 ? 'bad' : 'good' };
}

const checks: Record<Verification['state'], string> = {
  running: 'are being checked',
  passed: 'in order',
  broken: 'not in order',
  interrupted: 'not checked',
};

function checkFigure(last: Verification | null): Figure {
  if (last === null) return { value: 'not checked', about: 'the entries have not been checked', tone: 'wait' };
  const at = timeText(last.ended_at ?? last.started_at);
  return {
    value: checks[last.state],
    about: `last check ${at}`,
    tone: ({ running: 'good', passed: 'good', broken: 'bad', interrupted: 'wait' } as const)[last.state],
  };
}

function servicesFigure({ services }: Operations): Figure {
  const away = services.filter(({ answers }) => !answers).map(({ service }) => service);
  return away.length === 0
    ? { value: 'all answer', about: services.map(({ service }) => service).join(', '), tone: 'good' }
    : { value: `${away.join(', ')} not answering`, about: 'requests to them have to wait', tone: 'bad' };
}

function posted(totals: PostingTotals | undefined, day: string, scopes: ReadonlySet<string>): Html {
  if (!totals) return notice('warning', 'What was posted cannot be shown now: the ledger does not answer.');
  const list = (currency: string, more: Record<string, string> = {}) =>
    `${transactionsUrl}?${new URLSearchParams({ currency, from_day: day, ...more }).toString()}`;
  const link = (href: string, text: string) =>
    scopes.has('transactions:read') ? html`<a href="${href}">${text}</a>` : text;
  const money = (title: string, field: 'money_in' | 'money_out' | 'transferred') =>
    numeric<Total>(title, (row) => moneyText(row[field], row.currency));
  return html`${!totals.complete && notice('info', html`There were too many postings to count. These are the postings since ${showTime(totals.counted_from)}.`)}${table<Total>(
    'Posted today',
    [
      { title: 'Currency', show: ({ currency }) => html`<strong>${link(list(currency), currency)}</strong>` },
      numeric('Postings', ({ operations }) => numberText(operations)),
      money('In', 'money_in'),
      money('Out', 'money_out'),
      money('Between accounts', 'transferred'),
      numeric('Refused', ({ currency, refused }) =>
        Number(refused) === 0 ? '0' : link(list(currency, { status: 'Failed' }), numberText(refused)),
      ),
    ],
    totals.totals,
    'Nothing has been posted today yet.',
  )}`;
}

const yourDayUrl = '/admin/ui/your-day';

/** The person's own day, which the first page loads, so that its search is there at once. */
export function addYourDay(app: FastifyInstance): void {
  addPage(app, yourDayUrl, { title: 'Your day', scope: counterScopes }, async (visit) => ({
    content: html`<div id="your-day">${await showYourDay(visit)}</div>`,
  }));
}

/** The first page: the search of the counter and the person's own day, the bank's day, or the sections for those who see neither. */
export function addHome(app: FastifyInstance): void {
  addPage(app, '/admin/ui', { title: 'Home', scope: null }, (visit) => {
    const { scopes } = visit.person;
    const [isClerk, seesBooks] = [hasAny(scopes, counterScopes), scopes.has('books:read')];
    const sections = visibleSections(scopes).filter((section) => section.url !== '/admin/ui');
    const parts = [
      isClerk && loaded('your-day', yourDayUrl, 'Your day'),
      seesBooks && html`${loaded('today', url, 'The day so far')}${loaded('cash-days', cashUrl, 'Cash by day')}`,
    ];
    return {
      ...((isClerk || seesBooks) && { heading: html`${dayText(bankDay(visit.now))}` }),
      content: html`${isClerk && startForm('')}${scopes.has('approvals:write') ? parts.reverse() : parts}
${sections.length === 0 && html`<p role="status">You have no permissions here yet. Ask an administrator for those that you need.</p>`}
${
  !isClerk &&
  !seesBooks &&
  html`<h2>Go to</h2>
<div class="cards">${sections.map(({ url: href, title, about }) => html`<article><h3><a href="${href}">${title}</a></h3><p>${about}</p></article>`)}</div>`
}
<details><summary>Your permissions</summary><p>${tags([...scopes].sort())}</p></details>`,
    };
  });
}
