import type { FastifyInstance } from 'fastify';
import type { StatusTransition } from '#libs/contracts/account-status.ts';
import { type Account, accountStatus, accountType } from '#libs/contracts/accounts.ts';
import { type Client, clientName } from '#libs/contracts/clients.ts';
import { isId } from '#libs/contracts/ids.ts';
import { currencies, isCurrency, plainMoney } from '#libs/contracts/money.ts';
import type { SearchHit } from '#libs/contracts/search.ts';
import type { EntryLine } from '#libs/contracts/statements.ts';
import { amountText, bankCurrency, transactionTitle } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused, known } from '../api.ts';
import { type ActorNames, readActorNames, showActor } from '../html/actors.ts';
import { type TypedAmount, typedAmount } from '../html/amounts.ts';
import type { CsvColumn } from '../html/csv.ts';
import {
  addFormPage,
  checkConfirmed,
  enteredIdempotencyKey,
  enteredIn,
  type Wrong,
  WrongInput,
  waitingFor,
} from '../html/forms.ts';
import { addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { addListPage, externalId, type List } from '../html/lists.ts';
import { hasAny } from '../html/navigation.ts';
import { readAccount, readClients, readHolder, readOwnedAccount } from '../html/owners.ts';
import { desk, idText, notice, showTime } from '../html/show.ts';
import { accountDays, addAccountDays } from './account-days.ts';
import {
  accountHeading,
  accountLine,
  accountParts,
  accountSide,
  accountTable,
  addPart,
  changes,
  entryTable,
  historyTable,
  movementTable,
  type OwnedAccount,
  openingForm,
  type StatusChange,
  statusChanges,
  statusForm,
  whyText,
} from './account-views.ts';
import { counterScopes, counterUrl } from './counter-views.ts';
import { holdsOn } from './holds.ts';
import { limitsOn } from './limits.ts';
import { auditLink } from './made-by.ts';
import { announce } from './needs-approval.ts';
import { showNotes } from './notes.ts';
import { addParties, type WithParties } from './parties.ts';
import { addTask } from './tasks.ts';
import { warnOfClosedTill } from './tills.ts';
import { ofAccount, transactionColumns } from './transactions.ts';

const url = '/admin/ui/accounts';

type Listed = Account & { customer?: string };

const accountList = (visit: PageRequest): List<Listed> => ({
  path: '/accounts',
  above: () =>
    html`${visit.person.scopes.has('accounts:write') && html`<p><a role="button" href="${url}/new">Open an account</a></p>`}`,
  show: async (rows, sort) => accountTable(rows, sort, await readClients(visit, rows)),
  async complete(rows) {
    const clients = await readClients(visit, rows);
    return rows.map((row) => {
      const client = clients.get(row.client_id);
      return client ? { ...row, customer: clientName(client) } : row;
    });
  },
  filters: [
    { name: 'account_type', label: 'Type', options: accountType.options, isMain: true },
    { name: 'status', label: 'Status', options: accountStatus.options, isMain: true },
    { name: 'currency', label: 'Currency', options: currencies, isMain: true },
    externalId,
    { name: 'client_id', label: 'Client', fromLink: (id) => html`Of the client ${idText(id)} only.` },
  ],
});
const columns: CsvColumn<Listed>[] = [
  'account_number',
  'customer',
  'account_type',
  'status',
  { title: 'balance', value: (row) => plainMoney(row.balance, row.currency) },
  'currency',
  'created_at',
  'account_id',
  'client_id',
];

/** Adds the pages of accounts: the list, opening, one account with its lists, and changes of status. */
export function addAccounts(app: FastifyInstance, secrets: readonly string[]): void {
  addListPage(app, url, { title: 'Accounts', scope: 'accounts:read' }, accountList, columns);
  const opening = { title: 'Open an account', scope: 'accounts:write' } as const;
  const task = addTask(app, { name: 'opening', ...opening, done: openedPage, warn: warnOfClosedTill }, secrets);
  addFormPage(app, `${url}/new`, opening, {
    draw: (visit, sent, wrong) => drawOpening(visit, task.getValues(visit, sent), wrong),
    take: (visit) => open(visit, task),
  });
  addPage(app, `${url}/:account_id`, { title: 'Account', scope: 'accounts:read' }, showAccount);
  addAccountDays(app);
  addPart(app, '/transactions', { title: 'Transactions', scope: 'transactions:read' }, ofAccount, transactionColumns);
  const entries = (visit: PageRequest): List<WithParties<EntryLine>> => ({
    path: `/accounts/${visit.id}/entries`,
    show: entryTable,
    complete: addParties(visit),
  });
  addPart(app, '/entries', { title: 'Entries', scope: 'transactions:read' }, entries, entryColumns);
  const history = (visit: PageRequest): List<StatusTransition> => ({
    path: `/accounts/${visit.id}/status-transitions`,
    show: async (rows, sort) => historyTable(rows, await readActorNames(visit, rows, 'actor'), sort),
  });
  const historyColumns = ['created_at', 'from_status', 'to_status', 'reason', 'note', 'actor'] as const;
  addPart(app, '/history', { title: 'Status history', scope: 'accounts:read' }, history, historyColumns);
  for (const change of statusChanges) addStatusChange(app, change);
}

const latest = 10;

/** The message after the redirect of a form. A first deposit has a receipt. */
function saved(account: Account, said: string | null, { scopes }: Person, movements: EntryLine[] = []): Html | false {
  const done = said === 'opened' ? 'opened' : changes[said as StatusChange]?.done;
  const [first] = said === 'opened' && movements.length === 1 ? movements : [];
  const receipt = first && html` <a href="${counterUrl}/receipts/${first.transaction_id}">Receipt</a>`;
  const next =
    said !== 'opened' && hasAny(scopes, counterScopes) && html` <a data-next href="${counterUrl}">Next customer</a>`;
  return done !== undefined && notice('success', html`Account ${account.account_number} ${done}.${receipt}${next}`);
}

/** On a wide screen, properties and actions are on the left and postings on the right. */
async function showAccount(visit: PageRequest) {
  const { api, person, query } = visit;
  // Only what depends on another answer waits for it.
  const reading = readAccount(visit, visit.id);
  const readMovements = async () =>
    addParties<EntryLine>(visit)((await api.get<EntryLine[]>(`/accounts/${visit.id}/entries?limit=${latest}`)).data);
  const readHistory = async () => {
    const history = await api.get<StatusTransition[]>(`/accounts/${visit.id}/status-transitions?limit=${latest}`);
    return { history, names: await readActorNames(visit, history.data, 'actor') };
  };
  const [account, owner, named, { history, names }, holds, notes, limits] = await Promise.all([
    reading,
    reading.then((its) => readHolder(visit, its)),
    person.scopes.has('transactions:read') ? readMovements() : undefined,
    readHistory(),
    holdsOn(visit, reading),
    showNotes(visit, 'accounts', visit.id),
    limitsOn(visit, reading),
  ]);
  const id = account.account_id;
  return {
    title: `Account ${account.account_number}`,
    heading: accountHeading({ account, owner }),
    content: html`${accountLine(account)}${accountParts(id, '', person)}${saved(account, query.get('saved'), person, named)}${frozen(account, history.data[0], names)}${desk(
      'The account',
      accountSide({ account, owner, lastChange: history.data[0], limits }, person, query.get('saved') === 'opened'),
      html`${named && html`${accountDays(id)}<h2>Latest movements</h2>${movementTable(named, account.account_number)}<p class="actions"><a href="${url}/${id}/transactions">All transactions, refused ones too</a> <a href="${url}/${id}/statement">Statement</a></p>`}
${holds}
${notes}
<h2>Status history</h2>${historyTable(history.data, names)}${history.next !== undefined && html`<p><a href="${url}/${id}/history">Whole history</a></p>`}${auditLink(id, person)}`,
    )}`,
  };
}

/** A frozen account must not be overlooked. */
function frozen({ status }: Account, last: StatusTransition | undefined, names: ActorNames): Html {
  if (status !== 'Frozen') return html``;
  if (last?.to_status !== 'Frozen') return notice('warning', 'This account is frozen.');
  return notice(
    'warning',
    html`<strong>Frozen</strong> since ${showTime(last.created_at)}${last.actor !== undefined && html` by ${showActor(last.actor, names)}`}: ${whyText(last)}`,
  );
}

const moved = (title: string, direction: EntryLine['direction']): CsvColumn<EntryLine> => ({
  title,
  value: (row) => (row.direction === direction ? plainMoney(row.amount, row.currency) : ''),
});
export const entryColumns: CsvColumn<WithParties<EntryLine>>[] = [
  'sequence',
  'created_at',
  'effective_date',
  { title: 'transaction_type', value: transactionTitle },
  'description',
  'reference',
  { title: 'account_number', value: ({ own }) => own?.account_number },
  { title: 'customer', value: ({ own }) => own?.customer },
  'counterparty_account_number',
  { title: 'counterparty', value: ({ other }) => other?.customer },
  moved('out', 'debit'),
  moved('in', 'credit'),
  'currency',
  { title: 'balance_after', value: (row) => plainMoney(row.balance_after, row.currency) },
  'transaction_id',
  'reverses_transaction_id',
  'reversed_by_transaction_id',
  'operation_id',
  'entry_id',
];

/** `found`: the clients of whom the person must choose. */
async function drawOpening(
  visit: PageRequest,
  entered: URLSearchParams,
  wrong: Wrong,
  found: readonly Client[] = [],
): Promise<Html> {
  const values = entered.size > 0 ? entered : new URLSearchParams({ client_id: visit.query.get('client_id') ?? '' });
  const holder = await readClient(visit, values.get('client_id') ?? '');
  const shown = new URLSearchParams(values);
  // What was typed to look again is shown where it is typed first.
  if (found.length === 0 && values.get('other_words')) shown.set('client_id', values.get('other_words') ?? '');
  if (!shown.has('currency')) shown.set('currency', (await usualCurrency(visit, holder)) ?? bankCurrency() ?? '');
  return openingForm(visit, { holder, found }, shown, wrong);
}

/** Returns the currency of all accounts of the client, as far as the latest show it. */
async function usualCurrency({ api, person }: PageRequest, holder: Client | undefined): Promise<string | undefined> {
  if (!holder || !person.scopes.has('accounts:read')) return undefined;
  const query = new URLSearchParams({ client_id: holder.client_id, limit: '20' });
  const accounts = await known(api.get<Account[]>(`/accounts?${query}`));
  const [usual, ...others] = new Set(accounts?.data.map(({ currency }) => currency));
  return others.length === 0 ? usual : undefined;
}

/** Returns the id of the client: as entered, or of the only one that the search finds; otherwise all that it finds. */
async function findClient(visit: PageRequest, typed: string): Promise<{ client_id: string } | { found: Client[] }> {
  if (isId('client', typed)) return { client_id: typed };
  const hits =
    typed === ''
      ? undefined
      : await unlessWrong(visit.api.get<SearchHit[]>(`/admin/search?${new URLSearchParams({ q: typed })}`));
  const ids = hits?.data.flatMap(({ kind, id }) => (kind === 'client' ? [{ client_id: id }] : [])) ?? [];
  const [only] = ids;
  return only && ids.length === 1 ? only : { found: [...(await readClients(visit, ids)).values()] };
}

/** Returns undefined if the API says that what was typed cannot be looked for. */
async function unlessWrong<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiRefused && error.status === 400) return undefined;
    throw error;
  }
}

/** Returns the client if the person may read it. The API reports an unknown one, and the message is shown at the field. */
async function readClient({ api, person }: PageRequest, id: string): Promise<Client | undefined> {
  if (id === '' || !person.scopes.has('clients:read')) return undefined;
  return (await known(api.get<Client>(`/clients/${encodeURIComponent(id)}`)))?.data;
}

const openedPage = (data: unknown) => ({ redirectTo: `${url}/${(data as Account).account_id}?saved=opened` });

async function open(visit: PageRequest, task: ReturnType<typeof addTask>): Promise<PageResult> {
  const {
    initial_deposit = '',
    currency: typed = '',
    client_id = '',
    other_words: whose = client_id,
    ...others
  } = enteredIn([...opened, 'other_words'], visit.fields);
  const client = await findClient(visit, whose);
  if ('found' in client && client.found.length > 0)
    return { status: 400, content: await drawOpening(visit, visit.fields, severalMatch, client.found) };
  if ('found' in client)
    throw new WrongInput({ client_id: `No client was found for “${whose}”. Check the number or the name.` });
  const rest: Record<string, string> = { ...others, ...client };
  const currency = typed.toUpperCase();
  const deposit = parseDeposit(initial_deposit, currency);
  if ('wrong' in deposit) throw new WrongInput({ initial_deposit: deposit.wrong });
  // Without a summary, a typing error would be posted.
  if ('amount' in deposit) {
    const holder = await readClient(visit, client.client_id);
    const isLoan = rest['account_type'] === 'Loan';
    return task.summarise(visit, {
      path: '/accounts',
      body: { ...rest, currency, initial_deposit: deposit.amount },
      facts: [
        ['Customer', holder && clientName(holder)],
        ['Type', rest['account_type']],
        [isLoan ? 'Lent, and paid out in cash' : 'First deposit, in cash', amountText(deposit.amount, currency)],
      ],
      changes: [],
      button: 'Open the account',
      form: `${url}/new`,
      entered: { ...enteredIn(opened, visit.fields), ...client },
      asked: { action: 'post_above', amount: deposit.amount, currency },
    });
  }
  const { data } = await visit.api.post<Account>('/accounts', { ...rest, currency }, enteredIdempotencyKey(visit));
  return waitingFor(data) ?? openedPage(data);
}

const severalMatch: Wrong = {
  fields: { client_id: 'Several clients match, perhaps more than these. Choose one, or look for another.' },
};

const opened = ['client_id', 'account_type', 'currency', 'initial_deposit'];

/**
 * Parses an optional amount as people type it. It can be checked only if the currency exists,
 * because the currency determines the number of decimals.
 */
function parseDeposit(typed: string, currency: string): TypedAmount | object {
  return typed === '' || /^0+([.,]0*)?$/.test(typed) || !isCurrency(currency) ? {} : typedAmount(typed, currency);
}

async function owned(visit: PageRequest, change: StatusChange): Promise<OwnedAccount> {
  const [its, changed] = await Promise.all([
    readOwnedAccount(visit, visit.id),
    change === 'unfreezing'
      ? visit.api.get<StatusTransition[]>(`/accounts/${visit.id}/status-transitions?limit=1`)
      : undefined,
  ]);
  return { ...its, lastChange: changed?.data[0] };
}

function addStatusChange(app: FastifyInstance, change: StatusChange): void {
  const { verb, status } = changes[change];
  const page = { title: `${verb} an account`, scope: 'accounts:status' } as const;
  addFormPage(app, `${url}/:account_id/${change}`, page, {
    async draw(visit, values, wrong) {
      const its = await owned(visit, change);
      return {
        title: `${verb} account ${its.account.account_number}`,
        content: statusForm(
          visit,
          its,
          change,
          await announce(visit, change === 'unfreezing' ? { action: 'unfreeze' } : undefined, `${verb} the account`),
          values,
          wrong,
        ),
      };
    },
    async take(visit) {
      checkConfirmed(visit);
      const entered = enteredIn(['reason', 'note'], visit.fields);
      // Why it was frozen is known; why it is safe now is not.
      if (change === 'unfreezing' && entered.note === undefined) throw new WrongInput({ note: 'Say why.' });
      const body = { status, ...entered };
      const path = `/accounts/${visit.id}/status-transitions`;
      const { data } = await visit.api.post<Account>(path, body, enteredIdempotencyKey(visit));
      return waitingFor(data) ?? { redirectTo: `${url}/${visit.id}?saved=${change}` };
    },
  });
}
