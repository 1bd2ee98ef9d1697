import type { FastifyInstance } from 'fastify';
import type { Timeline } from '#libs/contracts/administration.ts';
import { debitLegId, isId } from '#libs/contracts/ids.ts';
import type { Transaction, Transfer } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import type { Html } from '#libs/service/html.ts';
import { keyNamesOf } from './actors.ts';
import { ApiRefused } from './api.ts';
import { addPage } from './frame.ts';
import type { Visit } from './frame.ts';
import { facts, idLink, moneyText, statusOf, timeOf } from './show.ts';
import { timelineOf } from './timeline.ts';

/** A transaction with what became of it, and a transfer with that of its operation. */
export function addTransactions(app: FastifyInstance): void {
  addPage(app, '/admin/ui/transactions/:transaction_id', { title: 'Transaction', scope: 'transactions:read' }, async (visit) => {
    const { data } = await visit.api.get<Transaction>(`/transactions/${encodeURIComponent(visit.params['transaction_id'] ?? '')}`);
    return { title: `${data.transaction_type} ${moneyOf(data)}`, content: html`${transactionFacts(data)}${await story(visit, data.transaction_id, data.status)}` };
  });
  addPage(app, '/admin/ui/transfers/:transfer_id', { title: 'Transfer', scope: 'transactions:read' }, async (visit) => {
    const { data } = await visit.api.get<Transfer>(`/transfers/${encodeURIComponent(visit.params['transfer_id'] ?? '')}`);
    const leg = isId('transfer', data.transfer_id) ? debitLegId(data.transfer_id) : '';
    return { title: `Transfer ${moneyOf(data)}`, content: html`${transferFacts(data, leg)}${await story(visit, leg, data.status)}` };
  });
}

const moneyOf = ({ amount, currency }: Pick<Transaction, 'amount' | 'currency'>) => `${moneyText(amount, currency)}${currency === null ? '' : ` ${currency}`}`;

function transactionFacts(row: Transaction): Html {
  const link = (id: string | undefined) => id !== undefined && idLink(id);
  return facts([
    ['Status', statusOf(row.status)], ['Refused because', row.failure_code], ['Amount', html`<strong>${moneyOf(row)}</strong>, ${row.direction === 'credit' ? 'in' : 'out'}`], ['Account', idLink(row.account_id)],
    ['Other account', link(row.counterparty_account_id)], ['Transfer', link(row.transfer_id)], ['Reverses', link(row.reverses_transaction_id)], ['Reversed by', link(row.reversed_by_transaction_id)],
    ['Reference', row.reference], ['Description', row.description], ['Accepted', html`${timeOf(row.created_at)} UTC`], ['Id', html`<code>${row.transaction_id}</code>`],
  ]);
}

function transferFacts(row: Transfer, leg: string): Html {
  return facts([
    ['Status', statusOf(row.status)], ['Refused because', row.failure_code], ['Amount', html`<strong>${moneyOf(row)}</strong>`], ['From', idLink(row.from_account_id)], ['To', idLink(row.to_account_id)],
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
