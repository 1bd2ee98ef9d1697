import type { FastifyInstance } from 'fastify';
import type { Account } from '#libs/contracts/accounts.ts';
import { type Client, clientName } from '#libs/contracts/clients.ts';
import type { Erasure } from '#libs/contracts/erasure.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import type { ApiProblem } from '../api.ts';
import { addFormPage, checkConfirmed, confirmation, showForm, type Wrong } from '../html/forms.ts';
import type { PageRequest, PageResult } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { accountsOwnedBy, readAccountNumbers } from '../html/owners.ts';
import { facts, idLink, notice, numeric, pill, showFullTime, showTime, table } from '../html/show.ts';
import { addTask } from './tasks.ts';

/** The pages of the erasure of a client: what it deletes permanently, what prevents it, the summary, and the result. */

const clientUrl = (clientId: string) => `/admin/ui/clients/${clientId}`;
const erasureUrl = (clientId: string) => `${clientUrl(clientId)}/erasure`;

export function addErasure(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Erase a client', scope: 'clients:erase' } as const;
  const task = addTask(
    app,
    { name: 'erasure', ...page, isDangerous: true, done: (data) => erased(data as Erasure), refusal: standsAgainst },
    secrets,
  );
  addFormPage(app, erasureUrl(':client_id'), page, {
    draw: async (visit, _values, wrong) => show(visit, await readClient(visit), wrong),
    async take(visit) {
      checkConfirmed(visit);
      const client = await readClient(visit);
      const { client_id } = client;
      return task.summarise(visit, {
        path: `/admin/clients/${client_id}/erasure`,
        body: {},
        facts: [
          ['Client', clientName(client)],
          ['Phone', client.contact_number],
          ['E-mail', client.email],
        ],
        changes: [
          { what: 'Names, contacts, notes and stored replies', before: 'kept', after: 'erased' },
          { what: 'Postings with their texts, account numbers and dates', before: 'kept', after: 'kept' },
        ],
        warning: 'Erased data cannot be restored.',
        button: 'Erase this client permanently',
        form: erasureUrl(client_id),
        entered: {},
        asked: { action: 'erase' },
      });
    },
  });
}

/** The notice at the top of the client's page. */
export function erasureNotice({ erased_at }: Client): Html {
  return html`${erased_at !== undefined && notice('info', html`This client was erased (${showFullTime(erased_at)}). Their data can no longer be changed.`)}`;
}

/** The link on the client's page. */
export function erasureAction({ client_id, erased_at }: Client, { scopes }: Person): Html {
  return html`${erased_at === undefined && scopes.has('clients:erase') && html`<p><a href="${erasureUrl(client_id)}">Erase this client</a></p>`}`;
}

const readClient = async (visit: PageRequest) => (await visit.api.get<Client>(`/clients/${visit.id}`)).data;

/** The known steps before the erasure, in order. The bank itself checks the time of the last posting. */
function hindrance({ status, balance, account_type }: Account): string {
  const isEmpty = !/[1-9]/.test(balance);
  return [
    status === 'Frozen' && 'unfreeze it',
    status === 'Inactive' && !isEmpty && 'activate it',
    !isEmpty && (account_type === 'Loan' ? 'have the loan paid back' : 'pay the money out'),
    (status !== 'Inactive' || !isEmpty) && 'deactivate it',
  ]
    .filter((step) => step !== false)
    .join(', ');
}

async function show(visit: PageRequest, client: Client, wrong: Wrong): Promise<PageResult> {
  const title = `Erase ${clientName(client)}`;
  if (client.erased_at !== undefined) return { title, content: erasureNotice(client) };
  const mayRead = visit.person.scopes.has('accounts:read');
  const accounts = mayRead ? await accountsOwnedBy(visit, [client.client_id]) : [];
  return {
    title,
    content: html`<p>An erasure replaces the names, contacts and notes of a client permanently, also in stored replies, approvals and the audit.
Postings stay as they are, with their descriptions and references, because the law requires the bank to keep its books. Programs of
the client lose their access. Do this only if the client has requested it and no law requires the bank to keep the data.</p>
${facts([
  ['Client', idLink(client.client_id, clientName(client))],
  ['Phone', client.contact_number],
  ['E-mail', client.email],
])}
${accounts.length > 0 && html`<h2>Accounts</h2>${accountTable(accounts)}<p class="quiet">In addition, the last posting on each of them must be older than the period for which the bank must keep data. This is checked when you confirm.</p>`}
${showForm(visit, { wrong, button: 'Continue', cancel: clientUrl(client.client_id) }, confirmation(`${clientName(client)} has asked to be erased`, wrong))}`,
  };
}

function accountTable(accounts: readonly Account[]): Html {
  return table<Account>(
    'Accounts',
    [
      { title: 'Account', show: (row) => html`<strong>${idLink(row.account_id, row.account_number)}</strong>` },
      { title: 'Status', show: (row) => pill(row.status) },
      numeric('Balance', (row) => amountText(row.balance, row.currency)),
      { title: 'First', show: (row) => html`<strong>${hindrance(row)}</strong>` },
    ],
    accounts,
    '',
  );
}

const reasons: Record<string, string> = {
  not_inactive: 'deactivate it (a frozen one must be unfrozen first)',
  has_money: 'pay the money out, or have the loan paid back',
  within_retention: 'the bank must keep its data for longer',
};

interface Kept {
  account_id: string;
  reasons: string[];
  kept_until?: string;
}

/** The accounts that prevent the erasure, and what to do about each. */
async function standsAgainst({ code, details }: ApiProblem, visit: PageRequest): Promise<Html | undefined> {
  if (code !== 'erasure_refused') return undefined;
  const kept = (details?.['accounts'] ?? []) as Kept[];
  const ids = kept.map(({ account_id }) => account_id);
  const numbers = await readAccountNumbers(visit, ids);
  return html`Accounts of this client prevent it:<ul>${kept.map(
    (one) =>
      html`<li>${idLink(one.account_id, numbers.get(one.account_id))}: ${one.reasons.map((reason) => reasons[reason] ?? reason).join('; ')}${one.kept_until !== undefined && ` (until ${one.kept_until.slice(0, 10)})`}</li>`,
  )}</ul>`;
}

function erased({ client_id, replaced, revoked_keys, remaining }: Erasure): PageResult {
  return {
    title: 'The client was erased',
    content: html`${notice('success', html`It was done, and cannot be undone. <a href="${clientUrl(client_id)}">Remaining data of the client</a>`)}
${facts([
  ['Notes on accounts', String(replaced.status_notes)],
  ['Approvals', String(replaced.approvals)],
  ['Audit records', String(replaced.audit_records)],
  ['Stored replies', String(replaced.kept_replies)],
  ['API keys revoked', String(revoked_keys)],
])}
${remaining.length > 0 && whatRemains(remaining)}`,
  };
}

function whatRemains(remaining: Erasure['remaining']): Html {
  const last = remaining
    .flatMap(({ gone_at }) => gone_at ?? [])
    .sort()
    .at(-1);
  return html`<p>Postings stay in the books, with their texts.</p>${last !== undefined && html`<p>Copies that the bank keeps for a while are deleted by ${last.slice(0, 10)}.</p>`}
<details><summary>Where data remains</summary>${table<Erasure['remaining'][number]>(
    'Remaining data of the client',
    [
      { title: 'Where', show: ({ place }) => place },
      { title: 'What', show: ({ holds }) => html`<span class="text">${holds}</span>` },
      {
        title: 'Deleted at the latest',
        show: ({ gone_at }) => (gone_at === null ? 'no date' : showTime(gone_at)),
      },
    ],
    remaining,
    '',
  )}</details>`;
}
