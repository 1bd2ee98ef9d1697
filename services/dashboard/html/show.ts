import { fromMinor, isCurrency, toMinor } from '#libs/contracts/money.ts';
import type { Scope } from '#libs/contracts/scopes.ts';
import {
  amountText,
  bankDay,
  dayEndingAt,
  dayText,
  fullTimeText,
  minuteText,
  timeText,
} from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type IconName, icon } from './icons.ts';
import { type Status, statuses, type Tone } from './statuses.ts';

/** Shows values on pages. */

/** Shows a time to the minute in the bank's format, with the second in its title; a dash for null. */
export function showTime(iso: string | null): Html {
  return iso === null ? html`<span class="quiet">–</span>` : timeAs(minuteText(iso), iso);
}

/** Shows a time to the second. */
export const showSecond = (iso: string): Html => timeAs(timeText(iso), iso);

/** Shows the bank's day of a time. */
export const showDay = (iso: string): Html => timeAs(dayText(bankDay(Date.parse(iso))), iso);

/** Shows how long ago it was, at most in hours, with the time in its title. */
export function showAge(iso: string, now: number): Html {
  const minutes = Math.max(0, Math.floor((now - Date.parse(iso)) / 60_000));
  const age = minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
  return timeAs(age, iso);
}

const timeAs = (shown: string, iso: string): Html =>
  html`<time datetime="${iso}" title="${fullTimeText(iso)}">${shown}</time>`;

/** Shows a time at which a day ends by that day, as people choose it; any other time as it is. */
export function showUntil(iso: string): Html {
  const day = dayEndingAt(iso);
  return day === undefined ? showTime(iso) : html`the end of ${timeAs(dayText(day), iso)}`;
}

/** Returns the value date of a posting if it is not the bank's day of that time. */
export const otherValueDate = (row: { effective_date?: string | undefined; created_at: string }): string | false =>
  row.effective_date !== undefined &&
  row.effective_date !== bankDay(Date.parse(row.created_at)) &&
  dayText(row.effective_date);

/** Shows the time of a posting, and its value date if that is another day. */
export const showPosted = (row: Parameters<typeof otherValueDate>[0]): Html => {
  const day = otherValueDate(row);
  return html`${showTime(row.created_at)}${day !== false && html`<br><span class="quiet whole">value date ${day}</span>`}`;
};

/** Shows the time with its offset from UTC, for pages that do not name the zone of their times. */
export function showFullTime(iso: string | null): Html {
  return iso === null ? showTime(iso) : timeAs(fullTimeText(iso), iso);
}

interface Place {
  path: string;
  /** The scope that the page requires. */
  scope: Scope;
}
const places: Record<string, Place> = {
  cli: { path: 'clients', scope: 'clients:read' },
  acc: { path: 'accounts', scope: 'accounts:read' },
  txn: { path: 'transactions', scope: 'transactions:read' },
  trf: { path: 'transfers', scope: 'transactions:read' },
  hld: { path: 'holds', scope: 'transactions:read' },
  bat: { path: 'counter/batches', scope: 'transactions:read' },
  key: { path: 'api-keys', scope: 'keys:manage' },
  whk: { path: 'webhooks', scope: 'webhooks:manage' },
};

function findPlace(id: string): Place | undefined {
  return /^[a-z]{3}_[0-9a-f]{32}$/.test(id) ? places[id.slice(0, 3)] : undefined;
}

/** Returns the page of the resource with this id, or undefined if there is none. */
export function resourcePage(id: string): string | undefined {
  const place = findPlace(id);
  return place && `/admin/ui/${place.path}/${id}`;
}

/** Shows an id briefly, as a link for people who may open its page. */
export function resourceLink(id: string, scopes: ReadonlySet<string>): Html {
  return scopes.has(findPlace(id)?.scope ?? '') ? idLink(id, shortId(id)) : shortId(id);
}

/** Shows an id or a text as a link to the page of the resource. */
export function idLink(id: string, text?: Html | string): Html {
  const page = resourcePage(id);
  const shown = text ?? html`<code>${id}</code>`;
  return page === undefined ? html`${shown}` : html`<a href="${page}">${shown}</a>`;
}

/**
 * Renders an id so that its first and last characters are easy to compare. Selecting it or reading
 * it with a screen reader gives the whole id, and a button copies it.
 */
export function idText(id: string): Html {
  return html`${shortId(id)} ${copyButton(id)}`;
}

/** Does the same, as a link to the page of the resource. */
export function idTextLink(id: string): Html {
  return html`${idLink(id, shortId(id))} ${copyButton(id)}`;
}

function shortId(id: string): Html {
  const parts = /^([a-z]{3}_.{4})(.+)(.{4})$/.exec(id);
  if (!parts) return html`<code>${id}</code>`;
  return html`<code class="id" title="${id}">${parts[1]}<span>${parts[2]}</span>${parts[3]}</code>`;
}

const copyButton = (id: string) =>
  html`<button type="button" class="copy-id" data-copy-text="${id}" aria-label="Copy the id" hidden>Copy</button>`;

/** Returns the sum of the amounts per currency. */
export function totalText(rows: readonly { amount: string; currency: string | null }[]): string {
  const sums = new Map<string, bigint>();
  for (const { amount, currency } of rows) {
    const minor = currency !== null && isCurrency(currency) ? toMinor(amount.replace(/^-/, ''), currency) : '';
    if (currency !== null && typeof minor === 'bigint')
      sums.set(currency, (sums.get(currency) ?? 0n) + (amount.startsWith('-') ? -minor : minor));
  }
  return [...sums].map(([currency, sum]) => amountText(fromMinor(sum, currency), currency)).join(', ');
}

/** A property with its value; absent ones are not shown. */
export type Fact<Value = Html | string> = readonly [name: string, value: Value | false | null | undefined];

/** Shows the properties of one resource. */
export function facts(pairs: readonly Fact[]): Html {
  const known = pairs.filter(([, value]) => value !== false && value !== null && value !== undefined && value !== '');
  return html`<dl class="facts">${known.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

export const fieldWords = (name: string): string =>
  `${name.charAt(0).toUpperCase()}${name.slice(1)}`.replaceAll('_', ' ');

type Texts = Record<string, string> | null | undefined;

/** The properties external_id and metadata, and the metadata that the client gave. */
export function ownNames(names: {
  external_id?: string | null | undefined;
  metadata?: Texts;
  client_metadata?: Texts;
}): Fact[] {
  const show = (metadata: Texts) => {
    const texts = Object.entries(metadata ?? {});
    return texts.length > 0 && html`${texts.map(([key, text]) => html`<span class="long">${key}: ${text}</span><br>`)}`;
  };
  return [
    ['External id', names.external_id],
    ['Metadata', show(names.metadata)],
    ['Metadata of the client', show(names.client_metadata)],
  ];
}

/** A value of a select with its text, or a value that is its own text. */
export type Choice = string | readonly [value: string | number, text: string];

/** The options of a select. */
export const showOptions = (choices: readonly Choice[], chosen: string | number | null): Html =>
  html`${choices
    .map((choice) => (typeof choice === 'string' ? [choice, choice] : choice))
    .map(([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`)}`;

/** What only technicians need, closed. */
export const technical = (pairs: readonly Fact[]): Html =>
  html`<details class="technical"><summary>For technicians</summary>${facts(pairs)}</details>`;

/** Actions that are needed seldom. */
export const more = (links: readonly Html[]): Html =>
  html`${links.length > 0 && html`<details class="more"><summary role="button" class="secondary">${icon('more')}More</summary><ul>${links.map((link) => html`<li>${link}</li>`)}</ul></details>`}`;

/** Facts, with what can be done, on the left; what has happened, or a form, on the right. */
export function desk(label: string, side: Html, content: Html): Html {
  return html`<div class="desk"><section class="side" aria-label="${label}">${side}</section><div>${content}</div></div>`;
}

/** A part of another page, which scripts load. Without scripts it is a link to that page. */
export const loaded = (id: string, url: string, text: string): Html =>
  html`<div id="${id}" class="loading" hx-get="${url}" hx-trigger="load" hx-select="#${id}" hx-swap="outerHTML"><p><a href="${url}">${text}</a></p></div>`;

/** A part of the page of this address that reads itself again. `now`: when it was read, in ms since 1970. */
export const refreshed = (id: string, url: string, seconds: number, now: number, content: Html): Html =>
  html`<div id="${id}" hx-get="${url}" hx-trigger="every ${seconds}s, refresh" hx-select="#${id}" hx-swap="outerHTML">${content}
<p class="quiet">As of ${showFullTime(new Date(now).toISOString())}; updated every ${seconds < 60 ? `${seconds} seconds` : `${seconds / 60} minutes`}.</p></div>`;

interface PartLink {
  href: string;
  text: Html | string;
  isHere: boolean;
  /** A digit that leads there together with Alt (admin.js). */
  digit?: number;
}

/** Links to the pages of one resource. */
export function parts(label: string, links: readonly PartLink[]): Html {
  return html`<nav class="parts" aria-label="${label}"><ul>${links.map(({ href, text, isHere, digit }) => html`<li><a href="${href}"${digit !== undefined && html` aria-keyshortcuts="Alt+${digit}"`}${isHere && html` aria-current="page"`}>${text}${digit !== undefined && html` <kbd aria-hidden="true">Alt+${digit}</kbd>`}</a></li>`)}</ul></nav>`;
}

/** Shows names that programs use, such as scopes. */
export const tags = (names: readonly string[]): Html =>
  html`<span class="tags">${names.map((name) => html`<code>${name}</code> `)}</span>`;

/** Shows a state in the colour and with the icon of what it asks of people. */
export const toned = (tone: Tone, name: IconName, text: Html | string): Html =>
  html`<span class="pill ${tone}">${icon(name)}${typeof text === 'string' ? fieldWords(text) : text}</span>`;

/** Shows a status of the API. `text`: what people call it, if that is another word. */
export function pill(status: Status, text: Html | string = status): Html {
  const [tone, name] = statuses[status];
  return toned(tone, name, text);
}

export const showVerdict = (text: string, isGood: boolean): Html =>
  isGood ? toned('good', 'done', text) : toned('bad', 'error', text);

const noticeKinds = {
  success: 'done',
  info: 'information',
  warning: 'warning',
  error: 'error',
} as const;

/**
 * A message about the page: something was done (success), something to know (info), to mind before going on (warning),
 * or was refused (error, which screen readers say at once). `isUrgent`: they say this one at once, too.
 */
export function notice(kind: keyof typeof noticeKinds, content: Html | string, isUrgent = kind === 'error'): Html {
  return html`<div class="notice ${kind}" role="${isUrgent ? 'alert' : 'status'}">${icon(noticeKinds[kind])}<div>${content}</div></div>`;
}

/** Instead of a list without rows: why there is none, and the link to the next step, if the person may take it. */
export const emptyState = (why: Html | string, action?: { href: string; text: string } | false): Html =>
  html`<div class="empty"><p role="status">${why}</p>${action && html`<p><a role="button" class="secondary" href="${action.href}">${action.text}</a></p>`}</div>`;

export interface Column<Row> {
  title: string;
  show: (row: Row) => Html | string;
  isNumber?: boolean;
  /** Left out on a phone. */
  isMinor?: boolean;
  /** On a phone it is in the first line of a row, instead of the first number or state. */
  isLeading?: boolean;
  /** Which way the money of this column goes. A phone, which shows no heads of columns, shows it as a sign. */
  way?: 'in' | 'out' | undefined;
  /** The list is ordered by this column; the link reverses it. */
  sort?: { direction: 'ascending' | 'descending'; href: string } | undefined;
}

/** Says how many postings these are. `count`: as the API returns it. */
export const countText = (count: number | string): string =>
  String(count) === '1' ? '1 posting' : `${count} postings`;

/** A column of numbers. */
export const numeric = <Row>(title: string, show: Column<Row>['show'], way?: Column<Row>['way']): Column<Row> => ({
  title,
  isNumber: true,
  way,
  show,
});

export interface ShownChange {
  what: Html | string;
  before: Html | string | null;
  after: Html | string | null;
}

/** Shows values before and after a change, under these titles. */
export function changeTable(caption: string, titles: readonly [string, string], rows: readonly ShownChange[]): Html {
  const value = (shown: Html | string | null) => html`<span class="text">${shown ?? '–'}</span>`;
  const columns: Column<ShownChange>[] = [
    { title: 'What', show: ({ what }) => what },
    ...(rows.some(({ before }) => before !== null)
      ? [{ title: titles[0], show: (row: ShownChange) => value(row.before) }]
      : []),
    { title: titles[1], show: ({ after }) => value(html`<strong>${after ?? '–'}</strong>`) },
  ];
  return table(caption, columns, rows, 'Nothing.');
}

/** Shows a table, which scrolls separately if it is wider than the screen, or `empty` if it has no rows. */
export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  empty: Html | string,
): Html {
  if (rows.length === 0) return typeof empty === 'string' ? emptyState(empty) : empty;
  const align = ({ isNumber }: Column<Row>) => isNumber === true && html` class="number"`;
  const isBlank = (shown: Html | string) =>
    (typeof shown === 'string' ? shown : shown.text.replace(/<[^>]*>/g, '')).trim() === '';
  const isState = (shown: Html | string) => typeof shown !== 'string' && shown.text.includes('class="pill');
  // On a narrow screen a row is a card. Its first line has the first column, and the first number or state.
  const showRow = (row: Row) => {
    const cells = columns.map((column) => {
      const shown = column.show(row);
      return { ...column, shown, isEmpty: isBlank(shown) };
    });
    const [first, ...rest] = cells.filter(({ isEmpty, isMinor }) => !isEmpty && isMinor !== true);
    const figure = rest.find(({ isLeading }) => isLeading) ?? rest.find((cell) => cell.isNumber || isState(cell.shown));
    const leading = [first, figure];
    const shown = cells.map((cell) => {
      const classes = [cell.isNumber === true && 'number', cell.way, leading.includes(cell) && 'leading']
        .filter(Boolean)
        .join(' ');
      return html`<td data-title="${cell.title}"${cell.isEmpty && html` data-blank`}${cell.isMinor === true && html` data-minor`}${classes !== '' && html` class="${classes}"`}><div>${cell.shown}</div></td>`;
    });
    // A click anywhere on a row follows the link that leads it (admin.js).
    const isLink = first?.shown !== undefined && typeof first.shown !== 'string' && first.shown.text.includes('<a ');
    return html`<tr${isLink && html` class="opens"`}>${shown}</tr>`;
  };
  const head = ({ title, sort }: Column<Row>) =>
    sort
      ? html`<a href="${sort.href}">${title} <span aria-hidden="true">${sort.direction === 'ascending' ? '↑' : '↓'}</span></a>`
      : title;
  const sorted = ({ sort }: Column<Row>) => sort && html` aria-sort="${sort.direction}"`;
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table class="striped">
<thead><tr>${columns.map((column) => html`<th scope="col"${align(column)}${sorted(column)}>${head(column)}</th>`)}</tr></thead>
<tbody>${rows.map(showRow)}</tbody>
</table></div>`;
}
