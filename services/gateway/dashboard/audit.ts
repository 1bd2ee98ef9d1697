import type { FastifyInstance } from 'fastify';
import type { AuditRecord } from '#libs/contracts/administration.ts';
import { ApiRefused } from './api.ts';
import { addPage } from './frame.ts';
import { html } from './html.ts';
import type { Html } from './html.ts';
import { pager, table, timeOf } from './show.ts';

const url = '/admin/ui/audit';
const pageSize = 100;
const dayMs = 86_400_000;

const filters = [
  { name: 'actor', label: 'Who', hint: 'key:… or jwt:…' },
  { name: 'action', label: 'Action', hint: 'create_api_key' },
  { name: 'outcome', label: 'Outcome', hint: 'success' },
  { name: 'resource_id', label: 'Resource', hint: 'acc_…' },
  { name: 'request_id', label: 'Request id', hint: '' },
] as const;

/** The audit: who did or was refused what, newest first. */
export function addAudit(app: FastifyInstance): void {
  addPage(app, url, { title: 'Audit', scope: 'audit:read' }, async ({ api, query }) => {
    const given = keptFilters(query);
    try {
      const { data, next } = await api.get<AuditRecord[]>(`/admin/audit?${parametersOf(given)}`);
      return { content: html`${filterForm(given)}${records(data)}${pager(url, given, next)}<p class="quiet">Times are UTC. Records are never changed or deleted.</p>` };
    } catch (error) {
      if (!(error instanceof ApiRefused) || error.status !== 400) throw error;
      const reasons = error.problem.errors?.map(({ field, message }) => `${field} ${message}`).join('; ') ?? error.problem.message;
      return { status: 400, content: html`${filterForm(given)}<p class="notice wrong" role="alert">These filters were not taken: ${reasons}.</p>` };
    }
  });
}

/** What is filtered by, without what was left empty. */
function keptFilters(query: URLSearchParams): URLSearchParams {
  const names = [...filters.map(({ name }) => name as string), 'from_day', 'to_day', 'cursor'];
  return new URLSearchParams([...query].map(([name, value]) => [name, value.trim()]).filter(([name, value]) => names.includes(name ?? '') && value !== '') as [string, string][]);
}

/** Days as the API's moments: from the beginning of the one to the end of the other. */
function parametersOf(given: URLSearchParams): URLSearchParams {
  const parameters = new URLSearchParams(given);
  const [from, to] = [given.get('from_day'), given.get('to_day')];
  parameters.delete('from_day');
  parameters.delete('to_day');
  parameters.set('limit', String(pageSize));
  if (from !== null) parameters.set('from', momentOf(from, 0));
  if (to !== null) parameters.set('to', momentOf(to, dayMs));
  return parameters;
}

/** What is no day goes to the API as it is, which says so. */
function momentOf(day: string, plusMs: number): string {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(day) : Number.NaN;
  return Number.isNaN(ms) ? day : new Date(ms + plusMs).toISOString();
}

function filterForm(given: URLSearchParams): Html {
  const isFiltered = [...given.keys()].some((name) => name !== 'cursor');
  return html`<details${isFiltered && html` open`}><summary>Filter</summary><form method="get" action="${url}" class="filters">
${filters.map(({ name, label, hint }) => html`<label>${label} <input name="${name}" value="${given.get(name)}" placeholder="${hint}" autocomplete="off"></label>`)}
<label>From (day) <input type="date" name="from_day" value="${given.get('from_day')}"></label>
<label>To (day) <input type="date" name="to_day" value="${given.get('to_day')}"></label>
<p class="actions"><button>Filter</button> <a href="${url}">Clear</a></p>
</form></details>`;
}

function records(rows: readonly AuditRecord[]): Html {
  const narrowed = (name: string, value: string) => html`<a href="${url}?${new URLSearchParams({ [name]: value }).toString()}">${value}</a>`;
  return table<AuditRecord>('Audit records', [
    { title: 'When', show: (row) => html`${timeOf(row.created_at)}<br><code class="long">${row.request_id}</code>` },
    { title: 'Who', show: (row) => html`<span class="long">${narrowed('actor', row.actor)}</span>${row.address !== null && html`<br><span class="quiet">from ${row.address}</span>`}` },
    { title: 'Action', show: (row) => html`${narrowed('action', row.action)}<br><span class="status ${row.outcome === 'success' ? 'active' : 'refused'}">${row.outcome}</span>` },
    { title: 'Resource', show: (row) => (row.resource_id === null ? '–' : html`<code class="long">${row.resource_id}</code>`) },
    { title: 'Details', show: ({ details }) => html`<div class="details">${Object.entries(details).filter(([, value]) => value !== null).map(([name, value]) => html`<div><span class="quiet">${name}</span> ${factText(value)}</div>`)}</div>` },
  ], rows, 'No record fits.');
}

function factText(value: unknown): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.join(', ') : JSON.stringify(value);
}
