import type { FastifyInstance } from 'fastify';
import type { Timeline } from '#libs/contracts/administration.ts';
import { debitLegId, isId } from '#libs/contracts/ids.ts';
import type { Account, Transaction, Transfer } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import type { Html } from '#libs/service/html.ts';
import { keyNamesOf } from '../html/actors.ts';
import { ApiRefused } from '../api.ts';
import { addPage } from '../html/frame.ts';
import type { Visit } from '../html/frame.ts';
import { facts, idLink, moneyText, statusOf, timeOf } from '../html/show.ts';
import { timelineOf } from './timeline.ts';

/** A transaction with what became of it, and a transfer with that of its operation. */
export function addTransactions(app: FastifyInstance): void {
  addPage(app, '/admin/ui/transactions/:transaction_id', { title: 'Transaction', scope: 'transactions:read' }, async (visit) => {
    const { data } = await visit.api.get<Transaction>(`/transactions/${encodeURIComponent(visit.params['transaction_id'] ?? '')}`);
    const kind = data.reverses_transaction_id === undefined ? data.transaction_type : `Reversal of a ${data.transaction_type}`;
    return { title: `${kind} ${moneyOf(data)}`, content: html`${transactionFacts(data, await numbersOf(visit, [data.account_id, data.counterparty_account_id]))}${await story(visit, data.transaction_id, data.status)}` };
  });
  addPage(app, '/admin/ui/transfers/:transfer_id', { title: 'Transfer', scope: 'transactions:read' }, async (visit) => {
    const { data } = await visit.api.get<Transfer>(`/transfers/${encodeURIComponent(visit.params['transfer_id'] ?? '')}`);
    const leg = isId('transfer', data.transfer_id) ? debitLegId(data.transfer_id) : '';
    return { title: `Transfer ${moneyOf(data)}`, content: html`${transferFacts(data, leg, await numbersOf(visit, [data.from_account_id, data.to_account_id]))}${await story(visit, leg, data.status)}` };
  });
}

const moneyOf = ({ amount, currency }: Pick<Transaction, 'amount' | 'currency'>) => `${moneyText(amount, currency)}${currency === null ? '' : ` ${currency}`}`;

/** The numbers of these accounts, by which people know them, as far as the person may see them. */
async function numbersOf({ api, person }: Visit, accountIds: readonly (string | undefined)[]): Promise<Numbers> {
  const known = new Map<string, string>();
  if (!person.scopes.has('accounts:read')) return known;
  await Promise.all(accountIds.map(async (id) => {
    if (id === undefined) return;
    try {
      known.set(id, (await api.get<Account>(`/accounts/${encodeURIComponent(id)}`)).data.account_number);
    } catch (error) {
      if (!(error instanceof ApiRefused)) throw error;
    }
  }));
  return known;
}

type Numbers = ReadonlyMap<string, string>;

function transactionFacts(row: Transaction, numbers: Numbers): Html {
  const link = (id: string | undefined) => id !== undefined && idLink(id);
  return facts([
    ['Status', statusOf(row.status)], ['Refused because', row.failure_code], ['Amount', html`<strong>${moneyOf(row)}</strong>, ${row.direction === 'credit' ? 'in' : 'out'}`], ['Account', idLink(row.account_id, numbers.get(row.account_id))],
    ['Other account', row.counterparty_account_id !== undefined && idLink(row.counterparty_account_id, numbers.get(row.counterparty_account_id))], ['Transfer', link(row.transfer_id)], ['Reverses', link(row.reverses_transaction_id)], ['Reversed by', link(row.reversed_by_transaction_id)],
    ['Reference', row.reference], ['Description', row.description], ['Accepted', html`${timeOf(row.created_at)} UTC`], ['Id', html`<code>${row.transaction_id}</code>`],
  ]);
}

function transferFacts(row: Transfer, leg: string, numbers: Numbers): Html {
  return facts([
    ['Status', statusOf(row.status)], ['Refused because', row.failure_code], ['Amount', html`<strong>${moneyOf(row)}</strong>`], ['From', idLink(row.from_account_id, numbers.get(row.from_account_id))], ['To', idLink(row.to_account_id, numbers.get(row.to_account_id))],
    ['Transaction', row.status === 'Completed' && idLink(leg)], ['Description', row.description], ['Accepted', html`${timeOf(row.created_at)} UTC`], ['Id', html`<code>${row.transfer_id}</code>`],
  ]);
}

/** The timeline, for those who may see it; of what is not decided yet there is none. */
async function story({ api, person }: Visit, transactionId: string, status: Transaction['status']): Promise<Html> {
  if (!person.scopes.has('audit:read')) return html`<p class="quiet">Its timeline is for those who may read the audit.</p>`;
  if (status === 'Pending') return html`<p role="status">It is not decided yet. Open the page again in a moment.</p>`;
  try {
    const { data } = await api.get<Timeline>(`/admin/transactions/${encodeURIComponent(transactionId)}/timeline`);
    return timelineOf(data, await keyNamesOf({ api, person }, [data.request.actor]));
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status !== 404) throw error;
    return html`<p role="status">No timeline is known of it.</p>`;
  }
}
