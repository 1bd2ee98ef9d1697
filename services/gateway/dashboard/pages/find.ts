import type { FastifyInstance } from 'fastify';
import { maxHits } from '#libs/contracts/administration.ts';
import type { SearchHit, SearchKind } from '#libs/contracts/administration.ts';
import { html } from '#libs/service/html.ts';
import type { Html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { addPage } from '../html/frame.ts';
import { pageOf, table, timeOf } from '../html/show.ts';

const kinds: Record<SearchKind, string> = { client: 'Clients', account: 'Accounts', transaction: 'Transactions', transfer: 'Transfers', audit_record: 'Audit records' };
const matches: Record<SearchHit['matched'], string> = {
  id: 'id', account_number: 'account number', name: 'name', phone: 'phone', reference: 'reference', idempotency_key: 'idempotency key', operation_id: 'operation id', request_id: 'request id',
};

/** What the box in the header finds, by kind. A single hit, and the one of just this id, leads to its page at once. */
export function addFind(app: FastifyInstance): void {
  addPage(app, '/admin/ui/find', { title: 'Find', scope: null }, async ({ api, query }) => {
    const q = query.get('q')?.trim() ?? '';
    if (q === '') return { content: help };
    try {
      const { data: hits } = await api.get<SearchHit[]>(`/admin/search?${new URLSearchParams({ q })}`);
      const meant = hits.find(({ id }) => id === q) ?? (hits.length === 1 ? hits[0] : undefined);
      if (meant) return { goTo: addressOf(meant, q) };
      return { title: `Found for “${q}”`, content: hits.length === 0 ? html`<p role="status">Nothing was found that you may see.</p>${help}` : groups(hits, q) };
    } catch (error) {
      if (!(error instanceof ApiRefused) || error.status !== 400) throw error;
      return { status: 400, content: html`<p class="notice wrong" role="alert">This cannot be looked for: ${error.problem.message}.</p>${help}` };
    }
  });
}

const help = html`<p>Enter a whole account number, phone number, reference, idempotency key, request id, or the id of anything; or the beginning of a client’s name.</p>`;

/** Audit records have no page of their own: those of the request are shown. */
function addressOf({ id }: SearchHit, q: string): string {
  return pageOf(id) ?? `/admin/ui/audit?${new URLSearchParams({ request_id: q })}`;
}

function groups(hits: readonly SearchHit[], q: string): Html {
  return html`${[...Map.groupBy(hits, ({ kind }) => kind)].map(([kind, rows]) => html`<h2>${kinds[kind]}</h2>${table<SearchHit>(kinds[kind], [
    { title: 'What', show: (hit) => html`<strong><a href="${addressOf(hit, q)}">${hit.title}</a></strong>` },
    { title: 'About', show: (hit) => html`<span class="wide">${hit.subtitle}</span>` },
    { title: 'Found by', show: (hit) => matches[hit.matched] },
    { title: 'Since', show: (hit) => timeOf(hit.created_at) },
  ], rows, '')}${rows.length >= maxHits && html`<p class="quiet">At most ${maxHits} are shown: there may be more. Enter more of it.</p>`}`)}`;
}
