import type { FastifyInstance } from 'fastify';
import type { AuditRecord } from '#libs/contracts/administration.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { KeyNames } from '../html/actors.ts';
import { actorText, keyNamesOf } from '../html/actors.ts';
import { zoneText } from '../html/formats.ts';
import { addPage } from '../html/frame.ts';
import type { Sorting } from '../html/lists.ts';
import { showList } from '../html/lists.ts';
import { resourceLink, table, timeOf } from '../html/show.ts';

const url = '/admin/ui/audit';

const filters = [
  { name: 'actor', label: 'Who', hint: 'key:… or jwt:…' },
  { name: 'action', label: 'Action', hint: 'create_api_key' },
  { name: 'outcome', label: 'Outcome', hint: 'success' },
  { name: 'resource_id', label: 'Resource', hint: 'acc_…' },
  { name: 'request_id', label: 'Request id', hint: '' },
];

/** The audit: who did or was refused what. */
export function addAudit(app: FastifyInstance): void {
  addPage(app, url, { title: 'Audit', scope: 'audit:read' }, async (visit) => {
    const { status = 200, content } = await showList<AuditRecord>(visit, {
      url,
      path: '/admin/audit',
      filters,
      hasDays: true,
      pageSize: 50,
      show: async (rows, sort) =>
        records(
          rows,
          {
            names: await keyNamesOf(
              visit,
              rows.map(({ actor }) => actor),
            ),
            scopes: visit.person.scopes,
          },
          sort,
        ),
    });
    return {
      status,
      content: html`${content}<p class="quiet">Times are ${zoneText()}. Records are never changed or deleted.</p>`,
    };
  });
}

function records(
  rows: readonly AuditRecord[],
  { names, scopes }: { names: KeyNames; scopes: ReadonlySet<string> },
  sort: Sorting,
): Html {
  const narrowed = (name: string, value: string, text = value) =>
    html`<a href="${url}?${new URLSearchParams({ [name]: value }).toString()}"${text !== value && html` title="${value}"`}>${text}</a>`;
  return table<AuditRecord>(
    'Audit records',
    [
      { title: 'When', sort, show: (row) => timeOf(row.created_at) },
      {
        title: 'Who',
        show: (row) =>
          html`<span class="long">${narrowed('actor', row.actor, actorText(row.actor, names))}</span>${row.address !== null && html`<br><span class="quiet">from ${row.address}</span>`}`,
      },
      {
        title: 'Action',
        show: (row) =>
          html`${narrowed('action', row.action)}<br><span class="status ${row.outcome === 'success' ? 'active' : 'refused'}">${row.outcome}</span>`,
      },
      {
        title: 'Resource',
        show: (row) =>
          row.resource_id === null ? '–' : html`<span class="long">${resourceLink(row.resource_id, scopes)}</span>`,
      },
      {
        title: 'Details',
        isPlain: true,
        show: ({ details, request_id }) =>
          html`<div class="details"><div><span class="quiet">request</span> ${narrowed('request_id', request_id)}</div>${Object.entries(
            details,
          )
            .filter(([, value]) => value !== null)
            .map(([name, value]) => html`<div><span class="quiet">${name}</span> ${factText(value)}</div>`)}</div>`,
      },
    ],
    rows,
    'No record fits.',
  );
}

function factText(value: unknown): string {
  if (typeof value === 'string') return value;
  return Array.isArray(value) ? value.join(', ') : JSON.stringify(value);
}
