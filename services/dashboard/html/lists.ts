import type { FastifyInstance } from 'fastify';
import { endOfDay, startOfDay, zoneText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { type CsvColumn, exportCsv } from './csv.ts';
import {
  addDownload,
  addPage,
  type PageContent,
  type PageOptions,
  type PageRequest,
  type PageResult,
  toPageResult,
} from './frame.ts';
import { icon } from './icons.ts';
import { type Choice, notice, showOptions } from './show.ts';

/** Shows pages of the API's lists, newest or oldest first, with filters and cursor in the address. */

export interface Filter {
  name: string;
  label: string;
  hint?: string;
  /** The choices besides `any`: values, or values with their texts. */
  options?: readonly Choice[];
  /** The choices in groups. */
  groups?: readonly (readonly [title: string, choices: readonly Choice[]])[];
  /** What may be entered in a field for text. */
  suggestions?: readonly string[];
  /** It is not a parameter of the API. */
  isOwn?: boolean;
  /** The text of the first choice, which means no filter. */
  any?: string;
  /** It is always in sight, however many there are. */
  isMain?: boolean;
  /** The filter is set by a link, not entered. Returns its description, which is shown with a link that removes it. */
  fromLink?: (value: string) => Html | string;
}

export const externalId: Filter = { name: 'external_id', label: 'External id', hint: 'CRM-1842' };

/** Returns the choices, with the chosen value if it is none of them. */
export const withChosen = (
  choices: readonly Exclude<Choice, string>[],
  chosen: string | null,
  toText: (value: string) => string,
): readonly Choice[] =>
  !chosen || choices.some(([value]) => value === chosen) ? choices : [...choices, [chosen, toText(chosen)] as const];

export interface List<Row> {
  /** The path of the API's list, and the filters that always apply. */
  path: string;
  fixed?: Record<string, string>;
  filters?: readonly Filter[];
  /** True if the list can be filtered by the first and the last day. */
  hasDays?: boolean;
  pageSize?: number;
  /** True if the oldest come first unless the newest are asked for. */
  oldestFirst?: boolean;
  show: (rows: readonly Row[], sorting: Sorting, isFiltered: boolean) => Html | Promise<Html>;
  /** Adds to rows of its file what people know them by. */
  complete?: (rows: readonly Row[]) => Promise<readonly Row[]>;
  /** What its page shows above it, with a title if that is not the one of the page. */
  above?: () => PageContent | Promise<PageContent>;
  /** What its page says below it, after the zone of its times. */
  note?: string;
}

/** The order of a list, and the address of the same list in the opposite order. */
export interface Sorting {
  direction: 'ascending' | 'descending';
  href: string;
}

const orders = [
  ['desc', 'Newest first'],
  ['asc', 'Oldest first'],
] as const;

/** Adds the page of a list, and its CSV file if there are columns for one, with the filters of the page. */
export function addListPage<Row>(
  app: FastifyInstance,
  url: string,
  page: PageOptions,
  getList: (visit: PageRequest) => List<Row> | Promise<List<Row>>,
  csv?: readonly CsvColumn<Row>[],
): void {
  addPage(app, url, page, async (visit) => showList(visit, await getList(visit), csv !== undefined));
  if (csv)
    addDownload(app, `${url}.csv`, page, async (visit) => {
      const list = await getList(visit);
      const parameters = apiParameters(list, keptFilters(list, visit.query));
      const { path, complete } = list;
      return exportCsv(visit.api, { path, parameters, columns: csv, complete, hasSeparator: visit.query.has('sep') });
    });
}

/** Shows the list with its filters; if the API rejects a filter, shows the reason. */
export async function showList<Row>(visit: PageRequest, list: List<Row>, hasFile = false): Promise<PageResult> {
  const given = keptFilters(list, visit.query);
  const [above, found] = await Promise.all([list.above?.() ?? html``, readRows(visit, list, given)]);
  const shown = toPageResult(above);
  if ('redirectTo' in shown) return shown;
  const { status = 200, content } = await pageOfList(visit, list, given, found, hasFile);
  const note = html`<p class="quiet">Times are ${zoneText()}.${list.note !== undefined && ` ${list.note}`}</p>`;
  return { ...shown, status, content: html`${shown.content}${content}${note}` };
}

/** Reads the page of the list, or returns the refusal of its filters. */
async function readRows<Row>({ api }: PageRequest, list: List<Row>, given: URLSearchParams) {
  try {
    return await api.get<Row[]>(`${list.path}?${apiParameters(list, given)}`);
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status !== 400) throw error;
    return error.problem;
  }
}

async function pageOfList<Row>(
  { path }: PageRequest,
  list: List<Row>,
  given: URLSearchParams,
  found: Awaited<ReturnType<typeof readRows<Row>>>,
  hasFile: boolean,
) {
  if ('code' in found) {
    const reasons = found.errors?.map(({ field, message }) => inWords(list, field, message)).join('; ');
    return {
      status: 400,
      content: html`${filterForm(list, path, given)}${notice('error', html`These filters are not valid: ${reasons ?? found.message}.`)}`,
    };
  }
  const { data, next, complete } = found;
  const isFiltered = without(given, 'order', 'cursor').size > 0;
  const file = withQuery(`${path}.csv`, without(given, 'cursor'));
  const spreadsheet = withQuery(`${path}.csv`, new URLSearchParams([...without(given, 'cursor'), ['sep', 'yes']]));
  return {
    content: html`${filterForm(list, path, given)}${await list.show(data, readSorting(path, given, list.oldestFirst), isFiltered)}${complete === false && notice('info', 'This page is not complete: the search stopped after 200,000 records. The next page continues from there; a filter by days is faster.')}${pager(path, given, next)}${hasFile && data.length > 0 && html`<p class="actions"><a href="${file}">Download all as CSV</a> <a href="${spreadsheet}">for Excel</a></p>`}`,
  };
}

/** Describes the filter by its label. */
function inWords({ filters = [] }: Filters, field: string, message: string): string {
  const label = filters.find(({ name }) => name === field)?.label;
  return label !== undefined && message.startsWith(`${field} `) ? `${label}${message.slice(field.length)}` : message;
}

type Filters = Pick<List<never>, 'filters' | 'hasDays' | 'pageSize' | 'fixed' | 'oldestFirst'>;

/** Returns the filters of the request that are not empty, trimmed except for an external_id, which may have blanks. */
function keptFilters({ filters = [], hasDays }: Filters, query: URLSearchParams): URLSearchParams {
  const names = [
    ...filters.map(({ name }) => name),
    ...(hasDays === true ? ['from_day', 'to_day'] : []),
    'order',
    'cursor',
  ];
  return new URLSearchParams(
    [...query]
      .map(([name, value]) => [name, name === externalId.name && value.trim() !== '' ? value : value.trim()])
      .filter(([name, value]) => names.includes(name ?? '') && value !== '') as [string, string][],
  );
}

/** Returns the parameters of the API: the days become the start of the first and the end of the last. */
function apiParameters(
  { filters = [], pageSize = 50, fixed = {}, oldestFirst = false }: Filters,
  given: URLSearchParams,
): URLSearchParams {
  const own = filters.filter(({ isOwn }) => isOwn).map(({ name }) => name);
  const parameters = without(given, 'from_day', 'to_day', ...own);
  const [from, to] = [given.get('from_day'), given.get('to_day')];
  parameters.set('limit', String(pageSize));
  if (oldestFirst && !given.has('order')) parameters.set('order', 'asc');
  if (from !== null) parameters.set('from', startOfDay(from));
  if (to !== null) parameters.set('to', endOfDay(to));
  for (const [name, value] of Object.entries(fixed)) parameters.set(name, value);
  return parameters;
}

function without(given: URLSearchParams, ...names: string[]): URLSearchParams {
  return new URLSearchParams([...given].filter(([name]) => !names.includes(name)));
}

export function withQuery(url: string, parameters: URLSearchParams): string {
  const text = parameters.toString();
  return text === '' ? url : `${url}?${text}`;
}

/** Shows links to the first and the next page of a list; they keep the filters. */
export function pager(path: string, query: URLSearchParams, next: string | undefined): Html {
  const first = without(query, 'cursor');
  const isFirst = !query.has('cursor');
  if (isFirst && next === undefined) return html``;
  return html`<nav class="actions" aria-label="Pages">${!isFirst && html`<a href="${withQuery(path, first)}">First page</a>`}${next !== undefined && html`<a href="${withQuery(path, new URLSearchParams([...first, ['cursor', next]]))}" rel="next">Next page</a>`}</nav>`;
}

function readSorting(url: string, given: URLSearchParams, oldestFirst = false): Sorting {
  const isAscending = (given.get('order') ?? (oldestFirst ? 'asc' : 'desc')) === 'asc';
  const turned = without(given, 'cursor', 'order');
  if (isAscending === oldestFirst) turned.set('order', oldestFirst ? 'desc' : 'asc');
  return { direction: isAscending ? 'ascending' : 'descending', href: withQuery(url, turned) };
}

/** So many filters are in one line. Of more, only those that `isMain`; the others are behind *More filters*. */
const mostInLine = 3;

function filterForm({ filters = [], hasDays }: Filters, url: string, given: URLSearchParams): Html {
  // A list without filters is reversed by the link in its column.
  if (filters.length === 0 && hasDays !== true) return html``;
  const entered = filters.filter(({ fromLink }) => !fromLink);
  const isMain = (filter: Filter) => entered.length <= mostInLine || filter.isMain === true;
  const rest = entered.filter((filter) => !isMain(filter));
  const show = ({ name, label, hint, options, groups, suggestions, any = 'Any' }: Filter) => {
    const chosen = given.get(name);
    const list = suggestions && `${name}-suggestions`;
    return html`<label>${label} ${
      options || groups
        ? html`<select name="${name}">${showOptions([['', any], ...(options ?? [])], chosen)}${groups?.map(([title, choices]) => html`<optgroup label="${title}">${showOptions(choices, chosen)}</optgroup>`)}</select>`
        : html`<input name="${name}" value="${chosen}"${hint !== undefined && html` placeholder="such as ${hint}"`} autocomplete="off"${list !== undefined && html` list="${list}"`}>${suggestions && html`<datalist id="${list}">${suggestions.map((text) => html`<option value="${text}"></option>`)}</datalist>`}`
    }</label>`;
  };
  const linked = filters.filter(({ name, fromLink }) => fromLink && given.has(name));
  const isOpen = rest.some(({ name }) => given.has(name));
  const order = html`<label>Order <select name="order">${showOptions(orders, given.get('order'))}</select></label>`;
  // On a wide screen admin.css shows it open.
  return html`<details class="wide-open"${setFilters(filters, given).length > 0 && html` open`}><summary>Filter and order</summary><form method="get" action="${url}" class="filters">
${linked.map(({ name }) => html`<input type="hidden" name="${name}" value="${given.get(name)}">`)}
${entered.filter(isMain).map(show)}
${hasDays === true && html`<label>From (day) <input type="date" name="from_day" value="${given.get('from_day')}"></label><label>To (day) <input type="date" name="to_day" value="${given.get('to_day')}"></label>`}
${rest.length === 0 && order}<button class="secondary">Filter</button>
${rest.length > 0 && html`<details class="rest"${isOpen && html` open`}><summary>More filters</summary><div>${rest.map(show)}${order}</div></details>`}
</form></details>${chips(filters, url, given)}`;
}

/** The filters that are set, each with its value in words. */
function setFilters(filters: readonly Filter[], given: URLSearchParams): { name: string; says: Html | string }[] {
  const dayLabels = { from_day: 'From', to_day: 'To' };
  const days = Object.entries(dayLabels).flatMap(([name, label]) => {
    const value = given.get(name);
    return value === null ? [] : [{ name, says: `${label}: ${value}` }];
  });
  const set = filters.flatMap(({ name, label, options = [], groups = [], fromLink }) => {
    const value = given.get(name);
    if (value === null) return [];
    const choice = [...options, ...groups.flatMap(([, choices]) => choices)].find(
      (option) => typeof option !== 'string' && String(option[0]) === value,
    );
    return [{ name, says: fromLink ? fromLink(value) : `${label}: ${choice === undefined ? value : choice[1]}` }];
  });
  return [...set, ...days];
}

/** The filters that are set, each with a link that removes it. */
function chips(filters: readonly Filter[], url: string, given: URLSearchParams): Html {
  const set = setFilters(filters, given);
  if (set.length === 0) return html``;
  return html`<ul class="chips" aria-label="Filters that are set">${set.map(({ name, says }) => html`<li>${says} <a href="${withQuery(url, without(given, name, 'cursor'))}" aria-label="Remove this filter">${icon('remove')}</a></li>`)}<li class="all"><a href="${url}">Clear all</a></li></ul>`;
}
