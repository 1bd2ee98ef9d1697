import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { StatusTransition } from '#libs/contracts/account-status.ts';
import type { Account } from '#libs/contracts/accounts.ts';
import type { Client } from '#libs/contracts/clients.ts';
import { creditLegId, debitLegId, isId } from '#libs/contracts/ids.ts';
import type { SearchHit } from '#libs/contracts/search.ts';
import type { Statement } from '#libs/contracts/statements.ts';
import { isOpeningBalance, type Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { amountText, bankDay, transactionTitle } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type Api, ApiRefused, inTurns, known } from '../api.ts';
import { minorOf, typedAmount } from '../html/amounts.ts';
import { accepted, addFormPage, enteredIdempotencyKey, enteredIn, type Wrong } from '../html/forms.ts';
import { addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import { accountsOwnedBy, type Owned, readAccount, readClients, readHolder, readOwnedAccount } from '../html/owners.ts';
import { notice } from '../html/show.ts';
import { whyText } from './account-views.ts';
import { addConfirmation, type Confirmation } from './confirmation.ts';
import {
  availableBalance,
  type CounterKind,
  counterKinds,
  findCounterpart,
  hasOther,
  type Instruction,
  idOfPosting,
  instructionSchema,
  isPossible,
  kinds,
  kindsFor,
  moneyDirection,
  refusalText,
  toRequest,
  valueDateRefusals,
} from './counter-instructions.ts';
import {
  alreadyPosted,
  choiceTable,
  confirms,
  counterForm,
  counterScopes,
  counterUrl,
  type FoundAccounts,
  next,
  type ReceiptParts,
  receipt,
  startForm,
  summary,
  withoutAccount,
} from './counter-views.ts';
import { isPostedBy, readMaker } from './made-by.ts';
import { announce } from './needs-approval.ts';
import { notesFor } from './notes.ts';
import { tillAt, warnOfClosedTill } from './tills.ts';

/**
 * Adds the pages of the counter, which lead from a customer to a form, a summary, and a receipt. An
 * accepted form redirects to a page, and a refused one is shown again. Money is moved with the
 * idempotency key that was created with the form, so that nothing is posted twice.
 */
export function addCounter(app: FastifyInstance, secrets: readonly string[]): void {
  const instructions = addConfirmation(app, confirmation, secrets);
  addPage(app, counterUrl, { title: 'Counter', scope: counterScopes }, startCounter);
  for (const kind of counterKinds) {
    const page = { title: kinds[kind].title, scope: kinds[kind].scope } as const;
    const url = `${counterUrl}/:account_id/${kind}`;
    addFormPage(app, url, page, {
      async draw(visit, sent, wrong) {
        const of = visit.query.get('of');
        const opened = sent.size === 0 ? instructions.open(of, visit.actor) : undefined;
        const changed = opened?.kind === kind && opened.account_id === visit.id ? opened : undefined;
        const before = changed && (await findPosting(visit, changed));
        if (before?.status === 'Completed') return showPosted(kind, before.hit);
        if (before?.status === 'Pending')
          return { redirectTo: `${confirmation.address}/outcome?${new URLSearchParams({ of: of ?? '' })}` };
        const values = new URLSearchParams(changed ? valuesOf(changed) : sent);
        if (values.has('found_for')) values.set('other_number', readOther(values));
        // It may be confirmed already without being found: with the same key, it is posted once. A refusal is stored under it.
        if (changed && !before) values.set('idempotency_key', changed.idempotency_key);
        return showForm(visit, kind, readAccount(visit, visit.id), values, wrong);
      },
      take: (visit) => take(visit, kind, instructions),
    });
  }
  // A receipt contains only stored data, so it is the same whenever it is opened.
  addPage(app, `${counterUrl}/receipts/:id`, { title: 'Receipt', scope: 'transactions:read' }, (visit) => {
    const id = visit.params['id'] ?? '';
    return isId('transfer', id) ? ofTransfer(visit, id) : ofTransaction(visit, id);
  });
}

/** `found`: the accounts of which the person must choose the other one. */
async function showForm(
  visit: PageRequest,
  kind: CounterKind,
  reading: Promise<Account>,
  values: URLSearchParams,
  wrong: Wrong,
  found?: FoundAccounts,
): Promise<PageResult> {
  const [account, owner, siblings, notes, till] = await Promise.all([
    reading,
    reading.then((its) => readHolder(visit, its)),
    hasOther(kind) ? reading.then(({ client_id }) => accountsOwnedBy(visit, [client_id], { status: 'Active' })) : [],
    reading.then((its) => notesFor(visit, its)),
    tillFor(visit, kind),
  ]);
  const owned = { account, owner };
  const others = siblings.filter((one) => one.account_id !== account.account_id);
  return { content: counterForm(visit, { kind, owned, notes, siblings: others, values, wrong, found, till }) };
}

const tillFor = (visit: PageRequest, kind: CounterKind): Html | Promise<Html> =>
  hasOther(kind) ? html`` : warnOfClosedTill(visit);

/** Returns what was entered in the form of an instruction. */
const valuesOf = ({ amount, reference, description, effective_date = '', other_number = '' }: Instruction) =>
  new URLSearchParams({ amount, reference, description, effective_date, other_number });

type Instructions = ReturnType<typeof addConfirmation<Instruction>>;

/** Converts the entered values to an instruction and redirects to its summary. */
async function take(visit: PageRequest, kind: CounterKind, instructions: Instructions): Promise<PageResult> {
  const { fields, actor } = visit;
  const account = await readAccount(visit, visit.id);
  const typed = typedAmount(fields.get('amount') ?? '', account.currency);
  const named = hasOther(kind) ? await findOther(visit, kind, account) : undefined;
  if (named !== undefined && 'found' in named) {
    const wrong: Wrong = { fields: 'wrong' in typed ? { amount: typed.wrong } : {} };
    return { ...(await showForm(visit, kind, Promise.resolve(account), fields, wrong, named.found)), status: 400 };
  }
  const { amount, other_number: other } = accepted({ other_number: named, amount: typed });
  const entered = enteredIn(['reference', 'description', 'effective_date'], fields);
  const { reference = '', description = '', effective_date } = entered;
  const instruction: Instruction = {
    actor,
    kind,
    account_id: account.account_id,
    account_number: account.account_number,
    amount: amount.amount,
    currency: account.currency,
    entered_at: visit.now,
    reference,
    description,
    ...(effective_date !== undefined && { effective_date }),
    idempotency_key: enteredIdempotencyKey(visit) ?? randomUUID(),
    ...(other && {
      // What is paid to a loan is a repayment on its summary and its receipt.
      kind: other.account.account_type === 'Loan' ? 'repayment' : kind,
      other_id: other.account.account_id,
      other_number: other.account.account_number,
      from_other: kind === 'repayment' && account.account_type === 'Loan',
    }),
  };
  return instructions.summarise(instruction);
}

/** Returns what the person typed for the other account, or the number that they chose of those shown beside it. */
function readOther(fields: URLSearchParams): string {
  const [typed = '', chosen = '', before] = ['other_number', 'chosen', 'found_for'].map((name) =>
    fields.get(name)?.trim(),
  );
  return ((typed === before || typed === '') && chosen) || typed;
}

/**
 * Returns the other account: by its number, or the only possible one that the search finds. Otherwise returns those of
 * which the person must choose, or why there is none.
 */
async function findOther(
  visit: PageRequest,
  kind: CounterKind,
  account: Account,
): Promise<{ account: Account } | { wrong: string } | { found: FoundAccounts }> {
  const q = readOther(visit.fields);
  if (q !== '' && !accountNumber.test(q)) {
    const { rows = [], isCut = false } = (await findAccounts(visit, q)) ?? {};
    const possible = rows.filter((row) => isPossible(kind, account, row.account));
    const [only] = possible;
    if (possible.length > 1) return { found: { rows: possible, isCut } };
    if (rows.length === 0) return { wrong: `No account was found for “${q}”. Check the number or the name.` };
    if (!only)
      return {
        wrong: `“${q}” has no other active account in ${account.currency} for this.${kind === 'transfer' ? ' For a loan, use Loan repayment.' : ''}`,
      };
    return { account: only.account };
  }
  const found = await findCounterpart(visit.api, q, account);
  if ('wrong' in found) return found;
  const { account: other } = found;
  const number = other.account_number;
  const isLoan = other.account_type === 'Loan';
  if (kind === 'repayment' && account.account_type !== 'Loan' && !isLoan)
    return { wrong: `Account ${number} is not a loan: use a transfer.` };
  if (kind === 'repayment' && account.account_type === 'Loan' && isLoan)
    return { wrong: `Account ${number} is a loan: no money can be taken from it.` };
  return found;
}

const confirmation: Confirmation<Instruction> = {
  address: `${counterUrl}/summary`,
  page: { title: 'Counter', scope: null },
  schema: instructionSchema,
  purpose: 'counter',
  home: next('To the counter'),
  leave: html`<a href="${counterUrl}">Next customer</a>`,
  caution: 'Do not enter it again and do not hand out money.',
  listFacts: ({ kind, amount, currency, account_number, other_number }) => [
    ['What', kinds[kind].title],
    ['Amount', html`<strong class="balance">${amountText(amount, currency)}</strong>`],
    ['Account', account_number],
    ['Other account', other_number],
  ],
  async summary(visit, instruction, sealed) {
    const before = await findPosting(visit, instruction);
    if (before?.status === 'Completed') return showPosted(instruction.kind, before.hit);
    const { kind, amount, currency, effective_date } = instruction;
    const asked = { action: 'post_above' as const, amount, currency, effective_date };
    const [parties, till, announced] = await Promise.all([
      readParties(visit, instruction),
      tillFor(visit, kind),
      announce(visit, asked, `${confirms[kind]} ${amountText(amount, currency)}`),
    ]);
    return {
      title: `${kinds[kind].title}: is this right?`,
      content: summary(visit, sealed, instruction, { ...parties, till }, announced),
    };
  },
  toRequest,
  done(data, { now }, isReplayed) {
    const posting = data as Transaction | Transfer;
    // The second click of a double click is not worth a message.
    const isOld = isReplayed && now - Date.parse(posting.created_at) >= firstLookMs;
    return { redirectTo: `${counterUrl}/receipts/${idOfPosting(posting)}${isOld ? '?again' : ''}` };
  },
  refused,
};

/** A summary that is opened again after this time, by Back for example, may have been confirmed. */
const firstLookMs = 2_000;

const showPosted = (kind: CounterKind, hit: SearchHit): PageResult => ({
  title: `${kinds[kind].title}: already posted`,
  content: alreadyPosted(hit),
});

/** Returns what became of an earlier confirmation of this summary, as far as the person may see it. */
async function findPosting(
  { api, person, now }: PageRequest,
  { entered_at = 0, idempotency_key }: Instruction,
): Promise<{ hit: SearchHit; status: Transaction['status'] } | undefined> {
  if (now - entered_at < firstLookMs || !person.scopes.has('transactions:read')) return undefined;
  const hits = (await known(search(api, idempotency_key))) ?? [];
  const own = hits.filter(({ matched }) => matched === 'idempotency_key');
  const hit = own.find(({ kind }) => kind === 'transfer') ?? own.find(({ kind }) => kind === 'transaction');
  if (hit === undefined) return undefined;
  const path = hit.kind === 'transfer' ? '/transfers' : '/transactions';
  const posting = await known(api.get<Transaction | Transfer>(`${path}/${hit.id}`));
  return posting && { hit, status: posting.data.status };
}

async function readParties(visit: PageRequest, { account_id, other_id }: Instruction) {
  const other = other_id === undefined ? undefined : readOwnedAccount(visit, other_id);
  return { own: await readOwnedAccount(visit, account_id), other: await other };
}

/** Shows the form with the reason of the refusal. It has a new key, because the refusal is stored under the old one. */
async function refused(
  visit: PageRequest,
  instruction: Instruction,
  { status, problem }: ApiRefused,
): Promise<PageResult> {
  const { kind } = instruction;
  const { own, other } = await readParties(visit, instruction);
  const invalid = (problem.errors ?? []).filter(({ field }) =>
    ['reference', 'description', 'effective_date'].includes(field),
  );
  const badDay = valueDateRefusals[problem.code];
  const wrong: Wrong = {
    message: `It was refused, and nothing was moved. ${refusalText(problem.code, moneyDirection(instruction, { account: own.account, other: other?.account }))}`,
    fields: {
      ...Object.fromEntries(invalid.map(({ field, message }) => [field, message])),
      ...(badDay !== undefined && { effective_date: badDay }),
    },
  };
  const shown = await showForm(visit, kind, Promise.resolve(own.account), valuesOf(instruction), wrong);
  return { ...shown, title: kinds[kind].title, status };
}

/** The maximum number of clients whose accounts are shown. */
const maxClients = 10;

const accountNumber = /^[a-z]{3}-\d+$/i;

interface Found extends FoundAccounts {
  rows: Owned[];
  /** As far as the person may read them. */
  clients: readonly Client[];
  hasClient: boolean;
  /** Postings match. */
  hasPosting: boolean;
}

/** The accounts with this number or these digits, and those of clients with this phone number, e-mail address, or name. */
async function findAccounts(visit: PageRequest, q: string): Promise<Found | undefined> {
  const answer = await search(visit.api, accountNumber.test(q) ? q.toUpperCase() : q);
  if (answer === undefined) return undefined;
  const clients = answer.filter(({ kind }) => kind === 'client').map(({ id }) => id);
  const shown = clients.slice(0, maxClients);
  const [owners, ofClients, ofAccounts] = await Promise.all([
    readClients(
      visit,
      shown.map((client_id) => ({ client_id })),
    ),
    accountsOwnedBy(visit, shown),
    Promise.all(answer.filter(({ kind }) => kind === 'account').map(({ id }) => readOwnedAccount(visit, id))),
  ]);
  // The best match first, as the search has them.
  const found = shown.flatMap((id) =>
    ofClients.filter(({ client_id }) => client_id === id).map((account) => ({ account, owner: owners.get(id) })),
  );
  const rows = [...new Map([...ofAccounts, ...found].map((row) => [row.account.account_id, row])).values()];
  const hasPosting = answer.some(({ kind }) => kind === 'transaction' || kind === 'transfer');
  return {
    rows,
    isCut: clients.length > maxClients,
    clients: [...owners.values()],
    hasClient: clients.length > 0,
    hasPosting,
  };
}

/** Finds the customer's accounts: one leads to its form, several to a choice. */
async function startCounter(visit: PageRequest): Promise<PageResult> {
  const { person, query } = visit;
  const q = query.get('q')?.trim() ?? '';
  if (q === '') return { content: startForm(q) };
  const found = await findAccounts(visit, q);
  if (found === undefined)
    return {
      status: 400,
      content: html`${startForm(q)}
${notice('error', 'This cannot be searched for. Enter an account number, a phone number or a name.')}`,
    };
  const { rows, isCut, clients, hasClient, hasPosting } = found;
  const [only] = rows;
  const [kind] = rows.length === 1 && only ? kindsFor(only.account, person.scopes) : [];
  if (only && kind) return { redirectTo: `${counterUrl}/${only.account.account_id}/${kind}` };
  // Such as a receipt number or a reference, which the search of the header shows.
  if (rows.length === 0 && !hasClient && hasPosting)
    return { redirectTo: `/admin/ui/find?${new URLSearchParams({ q })}` };
  if (rows.length === 0 && hasClient) return { content: html`${startForm(q, true)}${withoutAccount(clients, person)}` };
  if (rows.length === 0)
    return {
      content: html`${startForm(q)}<p role="status">No customer or account was found for “${q}”. Check the number, or enter the beginning of the name.</p>`,
    };
  const more = isCut && html`<p class="quiet">More customers match: enter more of the name.</p>`;
  return { content: html`${startForm(q, true)}${choiceTable(rows, person, await readReasons(visit, rows))}${more}` };
}

/** Why accounts are not Active, by their ids: of those of one customer, who asks. */
async function readReasons({ api }: PageRequest, rows: readonly Owned[]): Promise<ReadonlyMap<string, string>> {
  const reasons = new Map<string, string>();
  if (new Set(rows.map(({ account }) => account.client_id)).size > 1) return reasons;
  const ids = rows.flatMap(({ account }) => (account.status === 'Active' ? [] : [account.account_id]));
  await inTurns(ids, async (id) => {
    const latest = await known(api.get<StatusTransition[]>(`/accounts/${id}/status-transitions?limit=1`));
    const [change] = latest?.data ?? [];
    if (change) reasons.set(id, whyText(change));
  });
  return reasons;
}

/** Returns undefined if the text cannot be searched for. */
async function search(api: PageRequest['api'], q: string): Promise<SearchHit[] | undefined> {
  try {
    return (await api.get<SearchHit[]>(`/admin/search?${new URLSearchParams({ q })}`)).data;
  } catch (error) {
    if (error instanceof ApiRefused && error.status === 400) return undefined;
    throw error;
  }
}

async function ofTransaction(visit: PageRequest, id: string): Promise<PageResult> {
  const { data: posting } = await visit.api.get<Transaction>(`/transactions/${encodeURIComponent(id)}`);
  const account = await readAccount(visit, posting.account_id);
  const title = transactionTitle(posting);
  if (posting.status !== 'Completed')
    return notDone(title, posting, posting.direction === 'debit' ? { from: account } : { to: account });
  const [owner, balance, isOwn] = await Promise.all([
    readHolder(visit, account),
    balanceAfter(visit.api, account.account_id, id, posting.created_at),
    isPostedBy(visit, visit.actor, posting),
  ]);
  return done(visit, {
    posting,
    id,
    title,
    owner,
    account,
    other: undefined,
    payee: undefined,
    balance,
    available: availableNow(visit, posting, account, balance),
    owed: undefined,
    isOwn,
    till: isOwn && isOverCounter(posting) ? await tillAt(visit, posting.created_at) : undefined,
  });
}

async function ofTransfer(visit: PageRequest, id: string): Promise<PageResult> {
  const { data: posting } = await visit.api.get<Transfer>(`/transfers/${encodeURIComponent(id)}`);
  const [account, other] = await Promise.all([
    readAccount(visit, posting.from_account_id),
    readAccount(visit, posting.to_account_id),
  ]);
  const title = other.account_type === 'Loan' ? 'Loan repayment' : 'Transfer';
  if (posting.status !== 'Completed') return notDone(title, posting, { from: account, to: other });
  // A person who pays another client's loan must not see the amount still owed.
  const isOwnLoan = other.account_type === 'Loan' && other.client_id === account.client_id;
  const [owner, payee, balance, owed, isOwn] = await Promise.all([
    readHolder(visit, account),
    readHolder(visit, other),
    balanceAfter(visit.api, account.account_id, debitLegId(id), posting.created_at),
    isOwnLoan ? balanceAfter(visit.api, other.account_id, creditLegId(id), posting.created_at) : undefined,
    isPostedBy(visit, visit.actor, { ...account, transaction_id: debitLegId(id), created_at: posting.created_at }),
  ]);
  const available = availableNow(visit, posting, account, balance);
  return done(visit, {
    posting,
    id,
    title,
    owner,
    account,
    other,
    payee,
    balance,
    available,
    owed,
    isOwn,
    till: undefined,
  });
}

/** Of a reversal it is not known: that depends on who posted what it reverses. */
function isOverCounter(posting: Transaction): boolean {
  const { transaction_type: type, batch_id, reverses_transaction_id } = posting;
  const isCash = type === 'Deposit' || type === 'Withdrawal';
  return isCash && batch_id === undefined && reverses_transaction_id === undefined && !isOpeningBalance(posting);
}

const done = async (visit: PageRequest, parts: ReceiptParts): Promise<PageResult> => ({
  title: `${parts.title}: ${amountText(parts.posting.amount, parts.posting.currency)}`,
  content: html`${visit.query.has('again') && notice('info', 'Posted before; nothing was posted again.')}${receipt({ ...parts, maker: await readMaker(visit, parts.id) }, visit.person.name)}`,
});

function notDone(
  title: string,
  { status, failure_code = '' }: Transaction | Transfer,
  parties: { from?: Account; to?: Account },
): PageResult {
  if (status === 'Pending')
    return {
      title: 'Not known yet',
      content: html`${notice('info', 'The bank has not decided yet. Do not enter it again; open this page again in a moment.')}${next('Next customer')}`,
    };
  return {
    title: `${title}: refused`,
    content: html`${notice('error', `It was refused, and nothing was moved. ${refusalText(failure_code, parties)}`)}${next('Next customer')}`,
  };
}

/** What is held cannot be taken. How much was held when an earlier posting was made is not known. */
function availableNow(
  { now }: PageRequest,
  { created_at }: Transaction | Transfer,
  account: Account,
  balance: string | undefined,
): string | undefined {
  const minor = (decimal: string) => minorOf(decimal, account.currency);
  if (bankDay(Date.parse(created_at)) !== bankDay(now)) return undefined;
  if (account.account_type === 'Loan' || balance === undefined || minor(balance) !== minor(account.balance))
    return undefined;
  const available = availableBalance(account);
  return minor(available) === minor(balance) ? undefined : available;
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
