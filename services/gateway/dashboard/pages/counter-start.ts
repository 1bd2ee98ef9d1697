import type { SearchHit } from '#libs/contracts/administration.ts';
import type { Account } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import { refuse } from '../../http/errors.ts';
import { ApiRefused } from '../api.ts';
import type { Shown, Visit } from '../html/frame.ts';
import { clientsOf } from '../html/owners.ts';
import { holderOf } from './accounts.ts';
import { counterKinds, kinds, kindsFor } from './counter-instructions.ts';
import type { Owned } from './counter-views.ts';
import { choiceTable, counterUrl, startForm } from './counter-views.ts';

/** Reads an account with its owner. */
export async function ownedOf(visit: Visit, accountId: string): Promise<Owned> {
  const { data: account } = await visit.api.get<Account>(`/accounts/${encodeURIComponent(accountId)}`);
  return { account, owner: await holderOf(visit, account) };
}

/** The maximum number of clients whose accounts are shown. */
const maxClients = 10;

/** Finds the customer's accounts: one leads to its form, several to a choice. */
export async function startCounter(visit: Visit): Promise<Shown> {
  const { api, person, query } = visit;
  if (!counterKinds.some((kind) => person.scopes.has(kinds[kind].scope)))
    throw refuse('insufficient_scope', 'the scope transactions:write or transfers:write is required');
  const q = query.get('q')?.trim() ?? '';
  if (q === '') return { content: startForm(q) };
  const answer = await search(api, /^[a-z]{3}-\d+$/i.test(q) ? q.toUpperCase() : q);
  if (answer === undefined)
    return {
      status: 400,
      content: html`${startForm(q)}
<p class="notice wrong" role="alert">This cannot be searched for. Enter an account number, a phone number or a name.</p>`,
    };
  const clients = answer.filter(({ kind }) => kind === 'client').map(({ id }) => id);
  const shown = clients.slice(0, maxClients);
  const [owners, ofClients, ofAccounts] = await Promise.all([
    clientsOf(
      visit,
      shown.map((client_id) => ({ client_id })),
    ),
    Promise.all(shown.map((id) => accountsOf(visit, id))),
    Promise.all(answer.filter(({ kind }) => kind === 'account').map(({ id }) => ownedOf(visit, id))),
  ]);
  const found = ofClients.flat().map((account) => ({ account, owner: owners.get(account.client_id) }));
  const rows = [...new Map([...ofAccounts, ...found].map((row) => [row.account.account_id, row])).values()];
  const [only] = rows;
  const [kind] = rows.length === 1 && only ? kindsFor(only.account, person.scopes) : [];
  if (only && kind) return { goTo: `${counterUrl}/${only.account.account_id}/${kind}` };
  if (rows.length === 0)
    return { content: html`${startForm(q)}<p role="status">${nothing(q, clients.length > 0)}</p>` };
  const more = clients.length > maxClients && html`<p class="quiet">More customers match: enter more of the name.</p>`;
  return { content: html`${startForm(q, true)}${choiceTable(rows, person)}${more}` };
}

const nothing = (q: string, isKnown: boolean): string =>
  isKnown
    ? 'This customer has no account yet.'
    : `No customer or account was found for “${q}”. Check the number, or enter the beginning of the name.`;

/** Returns undefined if the text cannot be searched for. */
async function search(api: Visit['api'], q: string): Promise<SearchHit[] | undefined> {
  try {
    return (await api.get<SearchHit[]>(`/admin/search?${new URLSearchParams({ q })}`)).data;
  } catch (error) {
    if (error instanceof ApiRefused && error.status === 400) return undefined;
    throw error;
  }
}

async function accountsOf({ api }: Visit, client_id: string): Promise<Account[]> {
  return (await api.get<Account[]>(`/accounts?${new URLSearchParams({ client_id, limit: '50' })}`)).data;
}
