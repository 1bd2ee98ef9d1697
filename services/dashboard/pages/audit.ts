import type { FastifyInstance } from 'fastify';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import { type Endpoint, endpoints } from '#libs/contracts/endpoints.ts';
import { bankTime } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { actorText, type KeyNames, readKeyNames } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import type { PageRequest } from '../html/frame.ts';
import { addListPage, type Filter, type List, type Sorting, withChosen } from '../html/lists.ts';
import { idText, resourceLink, showTime, table, toned } from '../html/show.ts';

const url = '/admin/ui/audit';

const others: Record<string, string> = {
  sign_in: 'Sign in',
  sign_out: 'Sign out',
  export: 'Download a file',
  authenticate: 'Authenticate',
  disable_webhook: 'Disable a webhook',
};

/** The action in words. */
const actionText = (action: string): string =>
  others[action] ?? (endpoints as Record<string, Endpoint>)[action]?.summary ?? action.replaceAll('_', ' ');

const actions = [...Object.keys(others), ...Object.keys(endpoints)]
  .map((action) => [action, actionText(action)] as const)
  .toSorted(([, a], [, b]) => a.localeCompare(b));

const outcomes = [
  ['success', 'Done'],
  ['insufficient_scope', 'Refused: not allowed'],
  ['invalid_credentials', 'Refused: invalid credentials'],
  ['missing_credentials', 'Refused: no credentials'],
  ['own_approval', 'Refused: own request'],
] as const;
const outcomeText = (outcome: string): string =>
  outcomes.find(([value]) => value === outcome)?.[1] ?? `Refused: ${outcome.replaceAll('_', ' ')}`;

function filtersFor(names: KeyNames, { actor, query }: PageRequest): Filter[] {
  const known = [[actor, 'Me'], ...[...names].map(([id, name]) => [`key:${id}`, `key ${name}`])] as [string, string][];
  return [
    { name: 'reads', label: 'Records of', any: 'changes', options: [['with', 'changes and reads']] },
    { name: 'actor', label: 'Who', options: withChosen(known, query.get('actor'), actorText) },
    { name: 'action', label: 'What', options: actions },
    { name: 'outcome', label: 'Outcome', options: withChosen(outcomes, query.get('outcome'), outcomeText) },
    { name: 'resource_id', label: 'Resource', fromLink: (id) => html`Records about ${idText(id)} only.` },
    { name: 'request_id', label: 'Request', fromLink: (id) => html`Of the request <code>${id}</code> only.` },
  ];
}

/** Reads are shown only on request or by a link, because otherwise there would be more of them than changes. */
const showsReads = (query: URLSearchParams) =>
  ['reads', 'action', 'resource_id', 'request_id'].some((name) => (query.get(name) ?? '') !== '');

/** Adds the page of the audit: who did what, or was refused. */
export function addAudit(app: FastifyInstance): void {
  addListPage(app, url, { title: 'Audit', scope: 'audit:read' }, auditList, columns);
}

const columns: CsvColumn<AuditRecord>[] = [
  'audit_id',
  { title: 'created_at', value: (row) => bankTime(Date.parse(row.created_at)) },
  'actor',
  'address',
  'action',
  'outcome',
  'resource_id',
  'request_id',
  { title: 'details', value: (row) => JSON.stringify(row.details) },
];

async function auditList(visit: PageRequest): Promise<List<AuditRecord>> {
  const names = await readKeyNames(visit, [{ actor: 'key:' }], 'actor');
  return {
    path: '/admin/audit',
    ...(!showsReads(visit.query) && { fixed: { reads: 'without' } }),
    filters: filtersFor(names, visit),
    hasDays: true,
    show: (rows, sort) => records(rows, { names, scopes: visit.person.scopes }, sort),
    note: 'Records are never changed or deleted.',
  };
}

/** The records of one request on this page. */
interface OneRequest {
  first: AuditRecord;
  all: AuditRecord[];
}

function records(
  rows: readonly AuditRecord[],
  { names, scopes }: { names: KeyNames; scopes: ReadonlySet<string> },
  sort: Sorting,
): Html {
  const narrowed = (name: string, value: string, text = value) =>
    html`<a href="${url}?${new URLSearchParams({ [name]: value }).toString()}"${text !== value && html` title="${value}"`}>${text}</a>`;
  const requests = [...Map.groupBy(rows, ({ request_id }) => request_id).values()].flatMap((all): OneRequest[] =>
    all[0] ? [{ first: all[0], all }] : [],
  );
  return table<OneRequest>(
    'Audit records',
    [
      { title: 'When', sort, show: ({ first }) => showTime(first.created_at) },
      {
        title: 'Who',
        show: ({ first: { actor, address } }) =>
          html`<span class="name">${narrowed('actor', actor, actorText(actor, names))}</span>${address !== null && html`<br><span class="quiet whole">from ${address}</span>`}`,
      },
      {
        title: 'What',
        show: ({ all }) =>
          html`${all.map(({ action, outcome }) => html`<div class="name">${narrowed('action', action, actionText(action))}${outcome !== 'success' && html`<br>${toned('bad', 'refused', outcomeText(outcome))}`}</div>`)}`,
      },
      {
        title: 'Resource',
        show: ({ all }) =>
          html`${[...new Set(all.flatMap(({ resource_id }) => resource_id ?? []))].map((id) => html`<div>${resourceLink(id, scopes)}</div>`)}`,
      },
      {
        title: 'Details',
        show: ({ first, all }) =>
          html`<details class="details wide-open"><summary>Show</summary><div><span class="quiet">request</span> ${narrowed('request_id', first.request_id)}</div>${all
            .flatMap(({ details }) => Object.entries(details))
            .filter(([, value]) => value !== null)
            .map(
              ([name, value]) =>
                html`<div><span class="quiet">${name.replaceAll('_', ' ')}</span> ${factText(value)}</div>`,
            )}</details>`,
      },
    ],
    requests,
    'No record matches. Choose more days, or records of reads too.',
  );
}

function factText(value: unknown): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.join(', ') : JSON.stringify(value);
}
