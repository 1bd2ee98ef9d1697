import type { FastifyInstance } from 'fastify';
import type { Account } from '#libs/contracts/accounts.ts';
import { type Client, clientName } from '#libs/contracts/clients.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { amountText, fullTimeText, transactionTitle } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { sumText } from '../html/amounts.ts';
import { addFormPage, enteredIn, showFields, showForm, valueDateField, type Wrong, WrongInput } from '../html/forms.ts';
import type { PageRequest, PageResult } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { readOwnedAccount } from '../html/owners.ts';
import { idLink, notice } from '../html/show.ts';
import { availableBalance, refusalText } from './counter-instructions.ts';
import { addTask, amountChange, type Change, consequences, type Entered } from './tasks.ts';

/** The reversal of a transaction: the form, the summary, and the new transaction. */

const reversalUrl = (transactionId: string) => `/admin/ui/transactions/${transactionId}/reversal`;

export function addReversal(app: FastifyInstance, secrets: readonly string[]): void {
  const page = { title: 'Reverse a transaction', scope: 'transactions:reverse' } as const;
  const task = addTask(
    app,
    {
      name: 'reversal',
      title: 'Reversal',
      scope: page.scope,
      isDangerous: true,
      done: (data) => ({ redirectTo: `/admin/ui/transactions/${(data as Transaction).transaction_id}?reversed` }),
      refusal: ({ code, details }) =>
        code === 'already_reversed' &&
        html`It was already reversed${typeof details?.['reversal_transaction_id'] === 'string' && html`: ${idLink(details['reversal_transaction_id'], 'to its reversal')}`}.`,
    },
    secrets,
  );
  addFormPage(app, reversalUrl(':transaction_id'), page, {
    draw: async (visit, sent, wrong) =>
      show(visit, await planReversal(visit, visit.id), task.getValues(visit, sent), wrong),
    async take(visit) {
      const { original, impossible, ...shown } = await planReversal(visit, visit.id);
      const { reason, effective_date } = enteredIn(['reason', 'effective_date'], visit.fields);
      if (reason === undefined || impossible !== undefined) throw new WrongInput({ reason: 'Say why.' });
      const { transaction_id } = original;
      return task.summarise(visit, {
        ...shown,
        path: `/transactions/${transaction_id}/reversal`,
        body: { reason, ...(effective_date !== undefined && { effective_date }) },
        facts: [...shown.facts, ['Reason', reason], ['Value date', effective_date]],
        button: `Reverse this ${typeText(original)}`,
        form: reversalUrl(transaction_id),
        asked: { action: 'reverse', ...(effective_date !== undefined && { effective_date }) },
        entered: { reason, ...(effective_date !== undefined && { effective_date }) },
      });
    },
  });
}

const typeText = ({ transaction_type }: Transaction): string => transactionTitle({ transaction_type });

/** Reports whether the posting itself can be reversed. */
const isReversible = (posting: Transaction | Transfer): boolean =>
  posting.status === 'Completed' &&
  !('reverses_transaction_id' in posting || 'reversed_by_transaction_id' in posting) &&
  !('reverses_transfer_id' in posting || 'reversed_by_transfer_id' in posting);

/** The link on the page of a posting. `transactionId`: for a transfer, one of its two transactions. */
export function reversalLink(posting: Transaction | Transfer, transactionId: string, { scopes }: Person): Html {
  return html`${scopes.has('transactions:reverse') && isReversible(posting) && html`<a role="button" class="secondary" href="${reversalUrl(transactionId)}">Reverse</a>`}`;
}

interface Planned extends Pick<Entered, 'facts' | 'changes' | 'warning'> {
  original: Transaction;
  /** Returns why the posting cannot be reversed. */
  impossible?: string;
}

/** What the reversal of this transaction would change now. */
export async function planReversal(visit: PageRequest, transactionId: string): Promise<Planned> {
  const { data: original } = await visit.api.get<Transaction>(`/transactions/${transactionId}`);
  const parties = visit.person.scopes.has('accounts:read')
    ? await Promise.all(
        [original.account_id, original.counterparty_account_id].flatMap((id) =>
          id === undefined ? [] : [readOwnedAccount(visit, id)],
        ),
      )
    : [];
  const [own, other] = parties.map(({ account, owner }) => ({ ...account, owner }));
  const facts: Entered['facts'] = [
    ['Reversed operation', `${transactionTitle(original)} of ${amountText(original.amount, original.currency)}`],
    ['Posted', fullTimeText(original.created_at)],
    ['Description', original.description],
    ['Reference', original.reference],
  ];
  if (!isReversible(original)) return { original, facts, changes: [], impossible: impossibleBecause(original) };
  const isLoanPayment = original.transaction_type === 'Loan Payment';
  const gains = original.direction === 'debit';
  const otherGains = original.direction === (isLoanPayment ? 'debit' : 'credit');
  const rows = [
    ...(own ? [toChange(own, original, gains)] : []),
    ...(other ? [toChange(other, original, otherGains)] : []),
  ];
  const isCash = ['Deposit', 'Withdrawal'].includes(original.transaction_type);
  // Reversing the payout of a Loan returns the cash and cancels the debt.
  const cash =
    own && isCash
      ? [
          {
            what: 'Cash of the bank',
            before: '–',
            after: `${amountText(original.amount, original.currency)} ${gains === isLoan(own) ? 'less' : 'more'}`,
          },
        ]
      : [];
  const warning = findWarning(rows);
  return { original, facts, changes: [...rows.map(({ change }) => change), ...cash], ...(warning && { warning }) };
}

type Party = Account & { owner: Client | undefined };

const isLoan = (account: Party | undefined): boolean => account?.account_type === 'Loan';

function toChange(account: Party, { amount }: Transaction, gains: boolean): { change: Change; account: Party } {
  const { currency, account_number, owner } = account;
  const before = isLoan(account) ? account.balance : availableBalance(account);
  const after = sumText(before, amount, currency, gains ? 1n : -1n);
  const name = owner ? `, ${clientName(owner)}` : '';
  const what = `${account_number}${name}: ${isLoan(account) ? 'still owed' : 'available'}`;
  return { account, change: amountChange(what, before, after, currency) };
}

/** Returns why the bank would refuse it at present. */
function findWarning(rows: readonly { change: Change; account: Party }[]): string | undefined {
  const [from, to] = rows.map(({ account }) => account);
  if (rows.some(({ account }) => account.status !== 'Active')) return refusalText('inactive_account', { from, to });
  const short = rows.find(({ change }) => change.after.startsWith('−'));
  if (!short) return undefined;
  return isLoan(short.account)
    ? 'Less than this is now owed on the loan, so it cannot be reversed.'
    : refusalText('insufficient_funds', { from: short.account });
}

function impossibleBecause(original: Transaction): string {
  if (original.status === 'Pending') return 'It is not decided yet. Open the page again in a moment.';
  if (original.status === 'Failed') return 'It was refused and moved no money: there is nothing to reverse.';
  if (original.reverses_transaction_id !== undefined) return 'It is itself a reversal, which cannot be reversed.';
  return 'It was already reversed.';
}

function show(visit: PageRequest, planned: Planned, values: URLSearchParams, wrong: Wrong): PageResult {
  const { original, impossible } = planned;
  const back = `/admin/ui/transactions/${original.transaction_id}`;
  const title = `Reverse a ${typeText(original)}`;
  if (impossible !== undefined)
    return {
      title,
      content: html`${consequences(planned)}${notice('warning', impossible)}
<p><a href="${back}" role="button">To the transaction</a></p>`,
    };
  const reason = {
    name: 'reason',
    label: 'Reason',
    isRequired: true,
    maxLength: 255,
    hint: 'Used as the description of the reversal, also on the statement.',
  };
  return {
    title,
    content: html`<p>A reversal posts the same amount in the opposite direction. Both stay in the books and on the statement, linked to each other.</p>
${consequences(planned)}
${showForm(visit, { wrong, button: 'Continue', cancel: back }, showFields([reason, ...valueDateField(visit)], values, wrong))}`,
  };
}
