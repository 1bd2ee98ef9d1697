import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import { type Html, html } from '#libs/service/html.ts';
import { known } from '../api.ts';
import { type ActorNames, readActorNames, showActor } from '../html/actors.ts';
import type { PageRequest } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import type { Fact } from '../html/show.ts';

/** What the audit says beside other things: who made something and who approved it, by its audit record, for people who may read the audit. */

export interface MadeBy {
  actor: string;
  approver?: string | undefined;
  approval?: string | undefined;
  names: ActorNames;
}

/** The actions by which is made what these pages show. Others may have a record first, if it was made by a program. */
const making: ReadonlySet<string> = new Set([
  'create_transaction',
  'create_transfer',
  'reverse_transaction',
  'capture_hold',
  'create_api_key',
  'close_day',
]);

/** `resource`: the id of what was made, as its audit record has it: of a transfer, its own. Undefined if none is known. */
export async function readMaker(visit: PageRequest, resource: string): Promise<MadeBy | undefined> {
  if (!visit.person.scopes.has('audit:read')) return undefined;
  const asked = { resource_id: resource, outcome: 'success', reads: 'without', order: 'asc', limit: '1' };
  const records = await known(visit.api.get<AuditRecord[]>(`/admin/audit?${new URLSearchParams(asked)}`));
  const [record] = records?.data ?? [];
  if (record === undefined || !making.has(record.action)) return undefined;
  const text = (name: string) => {
    const value = record.details[name];
    return typeof value === 'string' ? value : undefined;
  };
  const made = { actor: record.actor, approver: text('approved_by'), approval: text('approval_id') };
  return { ...made, names: await readActorNames(visit, [made], 'actor', 'approver') };
}

/** The items of a file, at most 1,000, have the same time and actor, and may have the same account. A page has at most 1 MiB. */
const mostPages = 10;

/** Reports whether this actor asked for the transaction, as far as it is known; nobody needs the audit for it. */
export async function isPostedBy(
  { api }: PageRequest,
  actor: string,
  { account_id, transaction_id, created_at }: Pick<Transaction, 'account_id' | 'transaction_id' | 'created_at'>,
): Promise<boolean> {
  const [from, to] = [0, 1].map((ms) => new Date(Date.parse(created_at) + ms).toISOString());
  const filters = new URLSearchParams({ account_id, actor, from: from ?? '', to: to ?? '', limit: '500' });
  for (let page = 0; page < mostPages; page++) {
    const posted = await known(api.get<Transaction[]>(`/transactions?${filters}`));
    if (posted?.data.some((one) => one.transaction_id === transaction_id) === true) return true;
    if (posted?.next === undefined) return false;
    filters.set('cursor', posted.next);
  }
  return false;
}

const showApprover = ({ approver = '', approval, names }: MadeBy): Html =>
  html`${showActor(approver, names)}${approval !== undefined && html`, <a href="/admin/ui/approvals/${approval}">the request</a>`}`;

/** The facts about them, with this word for what was done. */
export const makerFacts = (made: MadeBy | undefined, word = 'Entered by'): Fact[] => [
  [word, made && showActor(made.actor, made.names)],
  ['Approved by', made?.approver !== undefined && showApprover(made)],
];

/** Leads from a client or an account to what was done about it. */
export const auditLink = (id: string, { scopes }: Person): Html =>
  html`${scopes.has('audit:read') && html`<p><a href="/admin/ui/audit?subject=${id}">Who did what about it</a></p>`}`;
