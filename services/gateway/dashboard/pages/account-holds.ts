import type { Hold } from '#libs/contracts/holds.ts';
import type { Account } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { Visit } from '../html/frame.ts';
import { holdSection } from './hold-views.ts';

const shown = 5;

/** The holds on the page of an account, for people who may read them. */
export async function holdsOn({ api, person }: Visit, account: Account): Promise<Html> {
  if (!person.scopes.has('transactions:read')) return html``;
  const { data, next } = await api.get<Hold[]>(`/accounts/${account.account_id}/holds?status=Active&limit=${shown}`);
  return holdSection(account, data, next !== undefined, person);
}
