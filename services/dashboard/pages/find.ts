import type { FastifyInstance } from 'fastify';
import { isCurrency } from '#libs/contracts/money.ts';
import { maxHits, type SearchHit, type SearchKind } from '#libs/contracts/search.ts';
import { moneyText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { typedAmount } from '../html/amounts.ts';
import { addPage } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { hasAny } from '../html/navigation.ts';
import { type Column, emptyState, notice, resourcePage, showTime, table } from '../html/show.ts';
import { withGroups } from './counter-instructions.ts';
import { counterScopes, counterUrl } from './counter-views.ts';
import { transactionsUrl } from './transactions.ts';

const kinds: Record<SearchKind, string> = {
  client: 'Clients',
  account: 'Accounts',
  transaction: 'Transactions',
  transfer: 'Transfers',
  audit_record: 'Audit records',
};
/** The properties that matched, most specific first. */
const matches: Record<SearchHit['matched'], string> = {
  id: 'id',
  receipt_number: 'receipt number',
  account_number: 'account number',
  external_id: 'external id',
  registration_number: 'registration number',
  email: 'e-mail',
  phone: 'phone',
  reference: 'reference',
  operation_id: 'operation id',
  idempotency_key: 'idempotency key',
  request_id: 'request id',
  name: 'name',
};
const sureness = Object.keys(matches);

/**
 * Adds the search of the header. Results are grouped by kind, the best first. If there is only one
 * result, or one with exactly the id that was entered, its page opens immediately.
 */
export function addFind(app: FastifyInstance): void {
  addPage(app, '/admin/ui/find', { title: 'Find', scope: null }, async ({ api, person, query }) => {
    const given = query.get('q') ?? '';
    const q = given.trim();
    if (q === '') return { content: help };
    const known = withoutSearch(q, person);
    if (known !== undefined) return { redirectTo: known };
    try {
      const { data } = await api.get<SearchHit[]>(`/admin/search?${new URLSearchParams({ q: given })}`);
      const hits = data.toSorted((a, b) => sureness.indexOf(a.matched) - sureness.indexOf(b.matched));
      const exact = hits.filter(({ matched }) => matched === 'receipt_number');
      const meant = hits.find(({ id }) => id === q) ?? ofOneReceipt(exact) ?? (hits.length === 1 ? hits[0] : undefined);
      if (meant)
        return {
          redirectTo:
            meant.matched === 'receipt_number' && serves(person)
              ? `${counterUrl}/receipts/${meant.id}`
              : hitUrl(meant, q),
        };
      return {
        title: `Found for “${q}”`,
        content:
          hits.length === 0
            ? html`${nothing(q, person)}${ofAmount(q, person, true)}${help}`
            : html`${groups(hits, q)}${ofAmount(q, person)}`,
      };
    } catch (error) {
      if (!(error instanceof ApiRefused) || error.status !== 400) throw error;
      return {
        status: 400,
        content: html`${notice('error', html`This cannot be looked for: ${error.problem.message}.`)}${ofAmount(q, person, true)}${help}`,
      };
    }
  });
}

/** Who is looked for by name and not found may not be a client yet. */
const nothing = (q: string, { scopes }: Person): Html =>
  emptyState(
    'Nothing was found that you may see.',
    scopes.has('clients:write') && !/\d/.test(q) && { href: '/admin/ui/clients/new', text: 'Create a Retail client' },
  );

const help = html`<p class="quiet help">Enter words of a name, an e-mail address, a registration number, a phone number with or without its country code, an account number or only its digits, an external id, a receipt number, a reference, an amount with its currency (1500 KES), an account of the bank itself (VLT-KES), or an id. Press / to go to the search box.</p>`;

/** Returns the page for an amount with its currency or a system account, without a search. Pure. */
function withoutSearch(q: string, { scopes }: Person): string | undefined {
  const own = /^(vlt|tlr)-([a-z]{3})(\/\d+)?$/i.exec(q);
  if (own && scopes.has('books:read')) return `/admin/ui/books#${own[1]?.toUpperCase()}-${own[2]?.toUpperCase()}`;
  const code = (/^([a-z]{3})\s*\d|\d\s*([a-z]{3})$/i.exec(q) ?? []).slice(1).find((each) => each !== undefined);
  const currency = code?.toUpperCase() ?? '';
  if (!isCurrency(currency) || !scopes.has('transactions:read')) return undefined;
  const typed = typedAmount(q, currency);
  return 'amount' in typed ? exactly(typed.amount, { currency }) : undefined;
}

const exactly = (amount: string, more: Record<string, string> = {}) =>
  `${transactionsUrl}?${new URLSearchParams({ ...more, min_amount: amount, max_amount: amount }).toString()}`;

/** A number without a currency may be an amount too: a link to the transactions of exactly this amount. */
function ofAmount(q: string, { scopes }: Person, isFocused = false): Html {
  if (!/^[\d.,' ]+$/.test(q) || !scopes.has('transactions:read')) return html``;
  const typed = typedAmount(q, 'EUR');
  if (!('amount' in typed)) return html``;
  const { amount } = typed;
  return html`<p><a data-hit href="${exactly(amount)}"${isFocused && html` autofocus`}>Transactions of exactly ${moneyText(amount, null)}, in any currency</a></p>`;
}

/** Returns the posting with a receipt number, if only one has it: a transfer and its transaction are one. */
function ofOneReceipt(hits: readonly SearchHit[]): SearchHit | undefined {
  const postings = hits.filter(
    ({ kind, id }) => kind === 'transfer' || !hits.some((one) => one.id === `trf_${id.slice(4)}`),
  );
  return postings.length === 1 ? postings[0] : undefined;
}

/** Who serves customers looks for a receipt, which shows the account, to print it again; others look for what was posted. */
const serves = ({ scopes }: Person): boolean => hasAny(scopes, counterScopes) && scopes.has('accounts:read');

/** Audit records have no page of their own; the records of the request are shown. */
function hitUrl({ id }: SearchHit, q: string): string {
  return resourcePage(id) ?? `/admin/ui/audit?${new URLSearchParams({ request_id: q })}`;
}

const foundBy: Column<SearchHit> = { title: 'Found by', show: (hit) => matches[hit.matched] };

/** The arrow keys move from result to result (admin.js), starting at the best one. */
function groups(hits: readonly SearchHit[], q: string): Html {
  const best = hits[0];
  return html`<div data-hits>${[...Map.groupBy(hits, ({ kind }) => kind)].map(
    ([kind, rows]) =>
      html`<h2>${kinds[kind]}</h2>${table<SearchHit>(
        kinds[kind],
        [
          {
            title: 'What',
            show: (hit) =>
              html`<strong><a data-hit href="${hitUrl(hit, q)}"${hit === best && html` autofocus`}>${withGroups(hit.title)}</a></strong>`,
          },
          { title: 'About', show: (hit) => html`<span class="wide">${hit.subtitle}</span>` },
          ...(new Set(rows.map(({ matched }) => matched)).size > 1 ? [foundBy] : []),
          { title: 'Since', show: (hit) => showTime(hit.created_at) },
        ],
        rows,
        '',
      )}${rows.length >= maxHits && html`<p class="quiet">Only the first ${maxHits} are shown. Enter more of the text.</p>`}`,
  )}</div>`;
}
