import type { FastifyInstance } from 'fastify';
import { creditLegId, debitLegId, isId } from '#libs/contracts/ids.ts';
import type { Account, Statement, Transaction, Transfer } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import type { Api } from '../api.ts';
import type { Shown, Visit } from '../html/frame.ts';
import { addPage } from '../html/frame.ts';
import { holderOf } from '../html/owners.ts';
import { amountText } from '../html/show.ts';
import { refusalText } from './counter-instructions.ts';
import type { ReceiptParts } from './counter-views.ts';
import { counterUrl, next, receipt } from './counter-views.ts';

/**
 * Adds the receipt of a posting. It contains only stored data, so it is the same whenever it is
 * opened.
 */
export function addReceipt(app: FastifyInstance): void {
  addPage(app, `${counterUrl}/receipts/:id`, { title: 'Receipt', scope: 'transactions:read' }, (visit) => {
    const id = visit.params['id'] ?? '';
    return isId('transfer', id) ? ofTransfer(visit, id) : ofTransaction(visit, id);
  });
}

const accountOf = async ({ api }: Visit, id: string): Promise<Account> =>
  (await api.get<Account>(`/accounts/${encodeURIComponent(id)}`)).data;

async function ofTransaction(visit: Visit, id: string): Promise<Shown> {
  const { data: posting } = await visit.api.get<Transaction>(`/transactions/${encodeURIComponent(id)}`);
  const account = await accountOf(visit, posting.account_id);
  const title =
    posting.reverses_transaction_id === undefined
      ? posting.transaction_type
      : `Reversal of a ${posting.transaction_type}`;
  if (posting.status !== 'Completed')
    return notDone(title, posting, posting.direction === 'debit' ? { from: account } : { to: account });
  const [owner, balance] = await Promise.all([
    holderOf(visit, account),
    balanceAfter(visit.api, account.account_id, id, posting.created_at),
  ]);
  return done({ posting, id, title, owner, account, other: undefined, balance, owed: undefined });
}

async function ofTransfer(visit: Visit, id: string): Promise<Shown> {
  const { data: posting } = await visit.api.get<Transfer>(`/transfers/${encodeURIComponent(id)}`);
  const [account, other] = await Promise.all([
    accountOf(visit, posting.from_account_id),
    accountOf(visit, posting.to_account_id),
  ]);
  const title = other.account_type === 'Loan' ? 'Loan repayment' : 'Transfer';
  if (posting.status !== 'Completed') return notDone(title, posting, { from: account, to: other });
  // A person who pays another client's loan must not see the amount still owed.
  const isOwnLoan = other.account_type === 'Loan' && other.client_id === account.client_id;
  const [owner, balance, owed] = await Promise.all([
    holderOf(visit, account),
    balanceAfter(visit.api, account.account_id, debitLegId(id), posting.created_at),
    isOwnLoan ? balanceAfter(visit.api, other.account_id, creditLegId(id), posting.created_at) : undefined,
  ]);
  return done({ posting, id, title, owner, account, other, balance, owed });
}

const done = (parts: ReceiptParts): Shown => ({
  title: `${parts.title}: ${amountText(parts.posting.amount, parts.posting.currency)}`,
  content: receipt(parts),
});

function notDone(
  title: string,
  { status, failure_code = '' }: Transaction | Transfer,
  parties: { from?: Account; to?: Account },
): Shown {
  if (status === 'Pending')
    return {
      title: 'Not known yet',
      content: html`<p class="notice" role="status">The bank has not decided about it yet. Do not enter it again;
open this page again in a moment.</p>${next('Next customer')}`,
    };
  return {
    title: `${title}: refused`,
    content: html`<p class="notice wrong" role="alert">It was refused, and nothing was moved.
${refusalText(failure_code, parties)}</p>${next('Next customer')}`,
  };
}

/**
 * A transaction is posted within this time after its acceptance, unless it waited for an approval. It includes
 * differences between clocks.
 */
const beforeMs = 5_000;
const afterMs = 60_000;

/** Returns the balance after this transaction, or undefined if it was posted long after acceptance. */
async function balanceAfter(
  api: Api,
  accountId: string,
  transactionId: string,
  acceptedAt: string,
): Promise<string | undefined> {
  const moment = (plusMs: number) => new Date(Date.parse(acceptedAt) + plusMs).toISOString();
  const period = new URLSearchParams({ from: moment(-beforeMs), to: moment(afterMs), limit: '500' });
  const { data } = await api.get<Statement>(`/accounts/${accountId}/statement?${period}`);
  return data.entries.find(({ transaction_id }) => transaction_id === transactionId)?.balance_after;
}
