import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { creditLegId, debitLegId, type IdKind, idBits, isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { currencies, currencyDigits, maxMinor } from '#libs/contracts/money.ts';
import { searchedRows } from '#libs/contracts/searches.ts';
import type { EntryLine } from '#libs/contracts/statements.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { isTime, type List, listed, type Page, type PageRequest, readPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { periodOfRequest } from '#libs/service/fresh-ids.ts';
import { dayBounds, dayLimit, dayTimes } from '../domain/calendar.ts';
import { isListed, type TransactionRecord, toTransaction, toTransfer, withoutReason } from '../domain/records.ts';
import { entryColumns, prefixed, qualifyColumns, toTransactionRecord, transactionColumns, uuids } from '../rows.ts';
import { type DayRange, type LineRow, selectDays, selectLines, selectReversal, toLine } from './lines.ts';
import { placeTimes } from './posting-time.ts';

/** Lists in keyset pages, newest first, so that page 10,000 costs as much as page 1. */

/** Returns the uuid of an id of that kind, or a uuid that does not exist if it is malformed; null for undefined. */
export function bits(kind: IdKind, id: string | undefined): string | null {
  if (id === undefined) return null;
  return isId(kind, id) ? idBits(id) : '0'.repeat(32);
}

export function accountNotFound(accountId: string): ReplyBody {
  return refused(refusal('account_not_found', `account ${accountId} not found`));
}

/** Lists rows of one account. An account that is hidden from the caller is unknown. */
export async function listOfAccount<Row extends object, Item>(
  pool: Pool,
  list: List<Row, Item>,
  { account_id, ...page }: PageRequest & { account_id: string },
  bound: string | undefined,
  where = new Where(),
): Promise<ReplyBody> {
  const account = bits('account', account_id);
  const owned = await pool.query(
    'select from accounts where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)',
    [account, bits('client', bound)],
  );
  if (owned.rowCount === 0) return accountNotFound(account_id);
  return listed(await readPage(pool, where.equal({ account_id: account }), list, page));
}

/**
 * SQL that links a transaction and its operation to their reversals, or to what they reverse, and to the owner
 * of the counterparty account if that account is the reason for a refusal.
 */
export const linked = `${selectReversal('transaction_id')} as reversed_by, ${selectReversal('operation_id')} as reversed_operation,
  (select o.operation_id from transactions o where id_key(o.transaction_id) = id_key(t.reverses_transaction_id)) as reverses_operation,
  (select c.client_id from accounts c where c.account_id = t.failure_account_id) as refusing_client`;

export type ListedRow = TransactionRecord & {
  reversed_by: string | null;
  reversed_operation: string | null;
  reverses_operation: string | null;
  refusing_client: string | null;
};
export type FoundRow = ListedRow & { exact: boolean };

export const listedColumns = qualifyColumns('t', transactionColumns);

/** The rows of a list: `within` uses an index, `accounts` restricts the accounts, and `only` filters further. */
interface Selection {
  accounts: string[] | undefined;
  within: Where;
  only: Where;
  /** The number of rows to scan for a page if no index serves `only`. */
  searched: number;
}

export type SearchedPage<Item> = Page<Item> & { complete?: boolean };

const toPosition = (row: Pick<ListedRow, 'created_at' | 'transaction_id'>) => ({
  at: row.created_at,
  id: prefixed('txn', row.transaction_id),
});

/**
 * Reads a page of transactions. With `accounts`, each account's part is read from its own index and then
 * merged, so that every page costs the same. A search scans the next `searched` rows; if they end before the
 * page is full, the page is incomplete, and the next one continues from there.
 */
async function readPostings<Item>(
  pool: Pool,
  { accounts, within, only, searched }: Selection,
  page: PageRequest,
  item: (row: ListedRow) => Item,
): Promise<SearchedPage<Item> | undefined> {
  const isSearch = accounts === undefined && only.conditions.length > 0;
  let end = { text: '', values: [] as unknown[] };
  const list: List<ListedRow, Item> = {
    order: ['t.created_at', 't.transaction_id'],
    values: ({ at, id }) => (isTime(at) && isId('transaction', id) ? [at, bits('transaction', id)] : undefined),
    position: toPosition,
    item,
    select(where, order, limit) {
      const range = `${where}`;
      // This statement has no parameter for the limit.
      end = {
        text: `select t.created_at, t.transaction_id from transactions t where ${range} order by ${order} offset ${searched - 1} limit 2`,
        values: where.values.slice(0, -1),
      };
      const filter = `${only}`.replace(/\$(\d+)/g, (_, n: string) => where.parameter(only.values[Number(n) - 1]));
      const inner = (condition: string, most = limit) =>
        `select ${listedColumns} from transactions t where ${condition} order by ${order} limit ${most}`;
      const rows =
        accounts === undefined
          ? `select t.* from (${inner(range, isSearch ? String(searched) : limit)}) t where ${filter} order by ${order} limit ${limit}`
          : `select t.* from unnest(${where.parameter(uuids(accounts))}::uuid[]) as own (account_id) cross join lateral (${inner(`t.account_id = own.account_id and ${range} and ${filter}`)}) t order by ${order} limit ${limit}`;
      return `select t.*, ${linked} from (${rows}) t order by ${order}`;
    },
  };
  const found = await readPage(pool, within, list, page);
  if (!found || !isSearch) return found;
  const [last, further] = found.next === undefined ? (await pool.query<ListedRow>(end)).rows : [];
  return last && further ? { ...found, next: toPosition(last), complete: false } : { ...found, complete: true };
}

/** Returns the accounts to which a list is restricted, or undefined. */
async function confinedTo(
  pool: Pool,
  accountId: string | undefined,
  bound: string | undefined,
): Promise<string[] | undefined> {
  if (accountId !== undefined && !isId('account', accountId)) return [];
  if (bound === undefined) return accountId === undefined ? undefined : [accountId];
  const { rows } = await pool.query<{ account_id: string }>(
    'select account_id from accounts where client_id = $1 and ($2::uuid is null or account_id = $2)',
    [bits('client', bound), bits('account', accountId)],
  );
  return rows.map((row) => row.account_id);
}

/** Converts a decimal to minor units of a currency with `digits` decimal places, rounded up or down. */
function threshold(decimal: string, digits: number, up: boolean): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.');
  const minor =
    BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0')) +
    (up && /[1-9]/.test(fraction.slice(digits)) ? 1n : 0n);
  return minor > maxMinor ? maxMinor + 1n : minor;
}

const currenciesBy = (digits: number) => currencies.filter((code) => currencyDigits(code) === digits);

/** Adds the condition that the value date is in these days. `alias`: of the rows, with a `.`. */
function addDayRange(
  where: Where,
  alias: string,
  {
    effective_from: from,
    effective_to: to,
  }: { effective_from?: string | undefined; effective_to?: string | undefined },
): void {
  const add = (day: string, comparison: '>=' | '<=', limit: string, ofTime: '>=' | '<') =>
    where.conditions.push(
      `case when ${alias}effective_date is null then ${alias}created_at ${ofTime} ${where.parameter(limit)}::timestamptz else ${alias}effective_date ${comparison} ${where.parameter(day)}::date end`,
    );
  if (from !== undefined) add(from, '>=', dayLimit(from), '>=');
  if (to !== undefined) add(to, '<=', dayLimit(to, 1), '<');
}

/** Adds the condition that the metadata has these values. A bound caller finds only metadata of its own. */
function addMetadata(
  where: Where,
  metadata: Record<string, string> | null | undefined,
  bound: string | undefined,
): void {
  if (metadata && bound !== undefined) where.add('t.metadata_client_id = ?', bits('client', bound));
  for (const [key, value] of Object.entries(metadata ?? {}))
    where.conditions.push(`t.metadata ->> ${where.parameter(key)}::text = ${where.parameter(value)}`);
}

function addAmount(where: Where, comparison: '>=' | '<=', decimal: string | undefined): void {
  if (decimal === undefined) return;
  const cases = [0, 3, 4].map(
    (digits) =>
      `when t.currency = any(${where.parameter(currenciesBy(digits))}::text[]) then ${where.parameter(threshold(decimal, digits, comparison === '>='))}::int8`,
  );
  where.conditions.push(
    `t.amount_minor ${comparison} case ${cases.join(' ')} else ${where.parameter(threshold(decimal, 2, comparison === '>='))}::int8 end`,
  );
}

const shown = isListed('t.failure_code');

/** Written as a literal, so that the partial index of failed transactions can be used. */
function addStatus(where: Where, status: string | undefined): void {
  if (status !== undefined)
    where.conditions.push(status === 'Failed' ? "t.status = 'Failed'" : "t.status = 'Completed'");
}

/** Lists transactions, newest first. */
export async function listTransactions(
  pool: Pool,
  filters: MessageData<'list_transactions'>,
  bound: string | undefined,
  searched = searchedRows,
): Promise<SearchedPage<Transaction> | undefined> {
  const accounts = await confinedTo(pool, filters.account_id, bound);
  if (
    accounts?.length === 0 ||
    filters.status === 'Pending' ||
    (filters.transfer_id !== undefined && !isId('transfer', filters.transfer_id)) ||
    (filters.counterparty_account_id !== undefined && !isId('account', filters.counterparty_account_id))
  )
    return { items: [] };
  const { transaction_type, currency, actor, reference, idempotency_key, external_id, request_id, from, to, status } =
    filters;
  const period = (from ?? to) === undefined ? periodOfRequest(request_id ?? '') : undefined;
  if (period) {
    const found = await listTransactions(pool, { ...filters, ...period }, bound, searched);
    if (found?.items.length !== 0) return found;
  }
  const within = new Where(shown)
    .equal({ 't.reference': reference, 't.idempotency_key': idempotency_key, 't.external_id': external_id })
    .between('t.created_at', from, to);
  const only = new Where().equal({
    't.currency': currency,
    't.actor': actor,
    't.request_id': request_id,
    't.counterparty_account_id': bits('account', filters.counterparty_account_id) ?? undefined,
  });
  if (transaction_type !== undefined) only.add(`${shownType(only, bound)} = ?`, transaction_type);
  addStatus(status === 'Failed' ? within : only, status);
  addAmount(only, '>=', filters.min_amount);
  addAmount(only, '<=', filters.max_amount);
  addDayRange(only, 't.', filters);
  addMetadata(only, filters.metadata, bound);
  if (filters.transfer_id !== undefined) {
    const legs = [debitLegId(filters.transfer_id), creditLegId(filters.transfer_id)];
    // The first condition has an index; the second compares the bucket too.
    within.add('id_key(t.transaction_id) = any(array(select id_key(id) from unnest(?::uuid[]) as id))', uuids(legs));
    within.add('t.transaction_id = any(?::uuid[])', uuids(legs));
    within.conditions.push("t.transaction_type in ('Transfer', 'Loan Payment')");
  }
  return readPostings(pool, { accounts, within, only, searched }, filters, (row) => toListed(row, bound));
}

/** SQL of the transaction_type that the caller sees (withoutReason). */
function shownType(where: Where, bound: string | undefined): string {
  if (bound === undefined) return 't.transaction_type';
  return `case when t.reverses_transaction_id is null and exists (select from accounts c
    where c.account_id = t.failure_account_id and c.client_id <> ${where.parameter(bits('client', bound))}) then 'Transfer' else t.transaction_type end`;
}

/**
 * Converts a row to what its caller may see. Customers do not see why staff reversed a transaction, nor why
 * another client's account could not accept a payment.
 */
function shownTo(bound: string | undefined, row: ListedRow): TransactionRecord {
  const { reversed_by: _, reversed_operation: __, reverses_operation: ___, refusing_client, ...rest } = row;
  const record = toTransactionRecord(rest);
  if (bound === undefined) return record;
  const shown = record.reverses_transaction_id === null ? record : { ...record, description: null };
  return refusing_client === null || prefixed('cli', refusing_client) === bound ? shown : withoutReason(shown);
}

/** Converts a row to a transaction with its reversal. */
export function toListed(row: ListedRow, bound: string | undefined): Transaction {
  return toTransaction(shownTo(bound, row), row.reversed_by === null ? undefined : prefixed('txn', row.reversed_by));
}

/** Lists transfers. A transfer is the transaction on its source. */
export async function listTransfers(
  pool: Pool,
  filters: MessageData<'list_transfers'>,
  bound: string | undefined,
  searched = searchedRows,
): Promise<SearchedPage<Transfer> | undefined> {
  const accounts = await confinedTo(pool, filters.account_id, bound);
  if (accounts?.length === 0 || filters.status === 'Pending') return { items: [] };
  const { external_id, status } = filters;
  const within = new Where(shown)
    .equal({ 't.external_id': external_id })
    .between('t.created_at', filters.from, filters.to);
  const only = new Where();
  // An external_id has an index, so no search is needed.
  const legs = external_id === undefined ? only : within;
  legs.conditions.push("t.transaction_type in ('Transfer', 'Loan Payment')");
  addStatus(status === 'Failed' ? within : legs, status);
  addDayRange(legs, 't.', filters);
  addMetadata(legs, filters.metadata, bound);
  // Returns every transfer once: by its source, or for one account by the leg on that account.
  if (accounts === undefined) legs.conditions.push('t.transaction_id = t.operation_id');
  else legs.add('(t.transaction_id = t.operation_id or t.counterparty_account_id <> all(?::uuid[]))', uuids(accounts));
  return readPostings(pool, { accounts, within, only, searched }, filters, (row) => toTransferSeen(row, bound));
}

/**
 * Converts either leg to its transfer. The source leg of a transfer has the operation's bits. The source leg of
 * a reversal is the one that does not reverse the original source leg, because source and destination are
 * exchanged.
 */
export function toTransferSeen(row: ListedRow, bound: string | undefined): Transfer {
  const { reversed_operation, reverses_operation } = row;
  const record = shownTo(bound, row);
  const isOnSource =
    reverses_operation === null
      ? row.transaction_id === row.operation_id
      : row.reverses_transaction_id !== reverses_operation;
  const links = { reverses: toOperationId(reverses_operation), reversed_by: toOperationId(reversed_operation) };
  if (isOnSource || record.counterparty_account_id === null) return toTransfer(record, links);
  return toTransfer(
    { ...record, account_id: record.counterparty_account_id, counterparty_account_id: record.account_id },
    links,
  );
}

const toOperationId = (uuid: string | null): string | undefined => (uuid === null ? undefined : prefixed('opr', uuid));

/** Lists entries by sequence. */
export async function listEntries(
  pool: Pool,
  request: MessageData<'list_entries'>,
  bound: string | undefined,
): Promise<ReplyBody> {
  const { account_id, effective_from: from, effective_to: to } = request;
  const list = entriesFor(bound);
  if ((from ?? to) === undefined) return listOfAccount(pool, list, request, bound);
  const [begin = '-infinity', end = 'infinity'] = dayTimes(from, to);
  const [first = 1n, beyond = 1n] = await placeTimes(pool, bits('account', account_id), [begin, end]);
  const days = dayBounds(from, to);
  const select: List<LineRow, EntryLine>['select'] = (where, order, limit) => {
    const [fromDay, toDay, ...range] = [...days, first, beyond].map((value) => where.parameter(value));
    const [firstSequence, beyondSequence] = range;
    const part = { from: fromDay, to: toDay, first: firstSequence, beyond: beyondSequence } as DayRange;
    return selectLines(selectDays(`${where}`, part, order, limit), order);
  };
  return listOfAccount(pool, { ...list, select }, request, bound);
}

const entriesFor = (bound: string | undefined): List<LineRow, EntryLine> => ({
  order: ['sequence'],
  values: ({ id }) => (/^\d{1,18}$/.test(id) ? [id] : undefined),
  position: (row) => ({ at: row.created_at, id: String(row.sequence) }),
  item: (row) => toLine(row, bound),
  select: (where, order, limit) =>
    selectLines(`select ${entryColumns} from entries where ${where} order by ${order} limit ${limit}`, order),
});
