import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { type ErrorCode, refusal } from '#libs/contracts/errors.ts';
import { creditLegId, debitLegId, isId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageName, MessageResult } from '#libs/contracts/messages.ts';
import { currencies, currencyDigits, fromMinor, maxMinor } from '#libs/contracts/money.ts';
import { cutPage } from '#libs/contracts/page.ts';
import type { Entry, Transaction, Transfer } from '#libs/contracts/resources.ts';
import { uuidArray } from '#libs/postgres/arrays.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { systemAccountNumber } from './chart.ts';
import { type EntryRecord, toEntry, toTransaction, toTransfer } from './records.ts';
import { prefixed, recordOf, systemAccountId, transactionColumns, type TransactionRow } from './store.ts';

/** Reads. Each is one statement, so that it sees one moment; lists are keyset pages, newest first. */
export type QueryName = Extract<
  MessageName,
  | 'get_ledger_accounts'
  | 'get_balance_by_number'
  | 'list_transactions'
  | 'get_transaction'
  | 'list_transfers'
  | 'get_transfer'
  | 'list_entries'
  | 'get_trial_balance'
  | 'get_system_accounts'
>;

export type Query = { [N in QueryName]: { name: N; data: MessageData<N>; context: MessageContext } }[QueryName];

/** Answers a query; throws only where the database does. */
export async function answerQuery(pool: Pool, query: Query): Promise<ReplyBody> {
  const bound = query.context.bound_client_id;
  switch (query.name) {
    case 'get_ledger_accounts':
      return done(await getLedgerAccounts(pool, query.data.account_ids));
    case 'get_balance_by_number':
      return found(await getBalanceByNumber(pool, query.data.account_number, bound), 'account_not_found', `account number ${query.data.account_number} not found`);
    case 'list_transactions':
      return done(await listTransactions(pool, query.data, bound));
    case 'get_transaction':
      return found(await getTransaction(pool, query.data.transaction_id, query.context), 'transaction_not_found', `transaction ${query.data.transaction_id} not found`);
    case 'list_transfers':
      return done(await listTransfers(pool, query.data, bound));
    case 'get_transfer':
      return found(await getTransfer(pool, query.data.transfer_id, query.context), 'transfer_not_found', `transfer ${query.data.transfer_id} not found`);
    case 'list_entries':
      return found(await listEntries(pool, query.data, bound), 'account_not_found', `account ${query.data.account_id} not found`);
    case 'get_trial_balance':
      return done(await getTrialBalance(pool));
    case 'get_system_accounts':
      return done(await getSystemAccounts(pool));
  }
}

function done(data: unknown): ReplyBody {
  return { ok: true, data };
}

function found(data: unknown, code: ErrorCode, message: string): ReplyBody {
  return data === undefined ? { ok: false, refusal: refusal(code, message) } : { ok: true, data };
}

/** Collects conditions and their parameters. */
class Where {
  readonly conditions: string[] = [];
  readonly values: unknown[] = [];
  /** `condition` with `?` for the parameter. */
  add(condition: string, value: unknown): this {
    this.values.push(value);
    this.conditions.push(condition.replaceAll('?', `$${this.values.length}`));
    return this;
  }
  parameter(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }
  toString(): string {
    return this.conditions.length === 0 ? 'true' : this.conditions.join(' and ');
  }
}

interface AccountView {
  account_id: string;
  account_number: string;
  currency: string;
  status: 'Active' | 'Inactive' | 'Frozen';
  balance_minor: bigint;
}

/** Balance and status of the accounts that exist among these, customers' only. */
export async function getLedgerAccounts(pool: Pool, accountIds: string[]): Promise<MessageResult<'get_ledger_accounts'>> {
  const { rows } = await pool.query<AccountView>({
    name: 'get_ledger_accounts',
    text: 'select account_id, account_number, currency, status, balance_minor from accounts where account_id = any($1::uuid[]) and client_id is not null',
    values: [uuidArray(accountIds.filter((id) => isId('account', id)))],
  });
  return rows.map(({ balance_minor, account_id, ...rest }) => ({ ...rest, account_id: prefixed('acc', account_id), balance: fromMinor(balance_minor, rest.currency) }));
}

async function getBalanceByNumber(pool: Pool, accountNumber: string, bound: string | undefined): Promise<MessageResult<'get_balance_by_number'> | undefined> {
  if (accountNumber.includes('\0')) return undefined;
  const { rows } = await pool.query<AccountView>({
    name: 'get_balance_by_number',
    text: `select account_id, account_number, currency, balance_minor from accounts
      where account_number = $1 and client_id is not null and ($2::uuid is null or client_id = $2)`,
    values: [accountNumber, bound === undefined ? null : bits(bound)],
  });
  const [row] = rows;
  return row && { account_id: prefixed('acc', row.account_id), account_number: row.account_number, balance: fromMinor(row.balance_minor, row.currency), currency: row.currency };
}

/** A uuid of ours, or one that nothing has. */
function bits(id: string): string {
  const hex = id.slice(-32);
  return /^[0-9a-f]{32}$/.test(hex) ? hex : '0'.repeat(32);
}

type Page = { limit: number; order: 'asc' | 'desc'; after?: { at: string; id: string } | undefined };

/** What is older (newer, ascending) than the position, by (created_at, transaction_id). */
function addPosition(where: Where, { after, order }: Page): void {
  if (after === undefined) return;
  const at = where.parameter(after.at);
  const id = where.parameter(bits(after.id));
  where.conditions.push(`(t.created_at, t.transaction_id) ${order === 'desc' ? '<' : '>'} (${at}::timestamptz, ${id}::uuid)`);
}

const reversedBy = `(select r.transaction_id from transactions r where id_key(r.reverses_transaction_id) = id_key(t.transaction_id)
  and r.reverses_transaction_id is not null and r.status = 'Completed') as reversed_by`;

type ListedRow = TransactionRow & { reversed_by: string | null };

const listedColumns = transactionColumns
  .split(', ')
  .map((column) => `t.${column}`)
  .join(', ');

/**
 * A keyset page of transactions. With `accounts` each account's part is read from its own index and then merged, so that
 * the page costs the same wherever it lies.
 */
async function readPage(pool: Pool, where: Where, page: Page, accounts: string[] | undefined): Promise<ListedRow[]> {
  addPosition(where, page);
  const order = `created_at ${page.order}, transaction_id ${page.order}`;
  const limit = where.parameter(page.limit + 1);
  const inner = (condition: string) => `select ${listedColumns} from transactions t where ${condition} order by t.${order.replace(', ', ', t.')} limit ${limit}`;
  const rows =
    accounts === undefined
      ? inner(`${where}`)
      : `select t.* from unnest(${where.parameter(uuidArray(accounts))}::uuid[]) as own (account_id) cross join lateral (${inner(`t.account_id = own.account_id and ${where}`)}) t order by ${order} limit ${limit}`;
  const { rows: result } = await pool.query<ListedRow>(`select t.*, ${reversedBy} from (${rows}) t order by ${order}`, where.values);
  return result;
}

/** The accounts that a list is confined to; undefined where it is not. */
async function confinedTo(pool: Pool, accountId: string | undefined, bound: string | undefined): Promise<string[] | undefined> {
  if (accountId !== undefined && !isId('account', accountId)) return [];
  if (bound === undefined) return accountId === undefined ? undefined : [accountId];
  const { rows } = await pool.query<{ account_id: string }>('select account_id from accounts where client_id = $1 and ($2::uuid is null or account_id = $2)', [
    bits(bound),
    accountId === undefined ? null : bits(accountId),
  ]);
  return rows.map((row) => row.account_id);
}

/** Minor units of a decimal for a currency with so many digits, rounded up or down. */
function threshold(decimal: string, digits: number, up: boolean): bigint {
  const [whole = '0', fraction = ''] = decimal.split('.');
  const minor = BigInt(whole + fraction.slice(0, digits).padEnd(digits, '0')) + (up && /[1-9]/.test(fraction.slice(digits)) ? 1n : 0n);
  return minor > maxMinor ? maxMinor + 1n : minor;
}

const currenciesBy = (digits: number) => currencies.filter((code) => currencyDigits(code) === digits);

function addAmount(where: Where, comparison: '>=' | '<=', decimal: string | undefined): void {
  if (decimal === undefined) return;
  const cases = [0, 3, 4].map((digits) => `when t.currency = any(${where.parameter(currenciesBy(digits))}::text[]) then ${where.parameter(threshold(decimal, digits, comparison === '>='))}::int8`);
  where.conditions.push(`t.amount_minor ${comparison} case ${cases.join(' ')} else ${where.parameter(threshold(decimal, 2, comparison === '>='))}::int8 end`);
}

async function listTransactions(pool: Pool, filters: MessageData<'list_transactions'>, bound: string | undefined): Promise<MessageResult<'list_transactions'>> {
  const accounts = await confinedTo(pool, filters.account_id, bound);
  if (accounts?.length === 0 || filters.status === 'Pending' || (filters.transfer_id !== undefined && !isId('transfer', filters.transfer_id))) return { items: [] };
  const where = new Where();
  if (filters.transaction_type !== undefined) where.add('t.transaction_type = ?', filters.transaction_type);
  // Written out, so that the partial index of failed ones can serve.
  if (filters.status !== undefined) where.conditions.push(filters.status === 'Failed' ? "t.status = 'Failed'" : "t.status = 'Completed'");
  if (filters.reference !== undefined) where.add('t.reference = ?', filters.reference);
  if (filters.idempotency_key !== undefined) where.add('t.idempotency_key = ?', filters.idempotency_key);
  if (filters.from !== undefined) where.add('t.created_at >= ?::timestamptz', filters.from);
  if (filters.to !== undefined) where.add('t.created_at < ?::timestamptz', filters.to);
  addAmount(where, '>=', filters.min_amount);
  addAmount(where, '<=', filters.max_amount);
  if (filters.transfer_id !== undefined) {
    const legs = [debitLegId(filters.transfer_id), creditLegId(filters.transfer_id)];
    where.add('id_key(t.transaction_id) = any(array(select id_key(id) from unnest(?::uuid[]) as id)) and t.reverses_transaction_id is null', uuidArray(legs));
    where.conditions.push("t.transaction_type in ('Transfer', 'Loan Payment')");
  }
  const rows = await readPage(pool, where, filters, accounts);
  return cutPage(rows, filters.limit, toListed, (row) => ({ at: row.created_at, id: prefixed('txn', row.transaction_id) }));
}

function toListed(row: ListedRow): Transaction {
  const { reversed_by, ...rest } = row;
  return toTransaction(recordOf(rest), reversed_by === null ? undefined : prefixed('txn', reversed_by));
}

/** A Transfer is the Transaction on its source; refused ones are shown by their own id only. */
async function listTransfers(pool: Pool, filters: MessageData<'list_transfers'>, bound: string | undefined): Promise<MessageResult<'list_transfers'>> {
  const accounts = await confinedTo(pool, filters.account_id, bound);
  if (accounts?.length === 0) return { items: [] };
  const where = new Where();
  where.conditions.push("t.transaction_type in ('Transfer', 'Loan Payment') and t.reverses_transaction_id is null and t.status = 'Completed'");
  // Every transfer once: by its source, or, seen from one account, by the leg on that account.
  if (accounts === undefined) where.conditions.push('t.transaction_id = t.operation_id');
  else where.add('(t.transaction_id = t.operation_id or t.counterparty_account_id <> all(?::uuid[]))', uuidArray(accounts));
  if (filters.from !== undefined) where.add('t.created_at >= ?::timestamptz', filters.from);
  if (filters.to !== undefined) where.add('t.created_at < ?::timestamptz', filters.to);
  const rows = await readPage(pool, where, filters, accounts);
  return cutPage(rows, filters.limit, toTransferSeen, (row) => ({ at: row.created_at, id: prefixed('txn', row.transaction_id) }));
}

/** The Transfer behind either of its legs. */
function toTransferSeen(row: ListedRow): Transfer {
  const { reversed_by: _, ...rest } = row;
  const record = recordOf(rest);
  if (row.transaction_id === row.operation_id || record.counterparty_account_id === null) return toTransfer(record);
  return toTransfer({ ...record, account_id: record.counterparty_account_id, counterparty_account_id: record.account_id });
}

/**
 * One transaction by its exact id. A bound caller sees those of its own accounts, and what became of its own requests on
 * accounts that were none of its own: after a 202 it must not be told 404.
 */
async function readOne(pool: Pool, transactionId: string, { bound_client_id, actor }: MessageContext): Promise<ListedRow | undefined> {
  const { rows } = await pool.query<ListedRow>({
    name: 'get_transaction',
    text: `select ${listedColumns}, ${reversedBy} from transactions t
      where id_key(t.transaction_id) = id_key($1::uuid) and t.transaction_id = $1::uuid
        and ($2::uuid is null or (t.actor = $3 and t.status = 'Failed') or exists (select from accounts a where a.account_id = t.account_id and a.client_id = $2))`,
    values: [bits(transactionId), bound_client_id === undefined ? null : bits(bound_client_id), actor],
  });
  return rows[0];
}

async function getTransaction(pool: Pool, transactionId: string, context: MessageContext): Promise<Transaction | undefined> {
  const row = isId('transaction', transactionId) ? await readOne(pool, transactionId, context) : undefined;
  return row && toListed(row);
}

async function getTransfer(pool: Pool, transferId: string, context: MessageContext): Promise<Transfer | undefined> {
  if (!isId('transfer', transferId)) return undefined;
  // The destination's owner may look at it too.
  const row = (await readOne(pool, debitLegId(transferId), context)) ?? (await readOne(pool, creditLegId(transferId), context));
  const isTransfer = row && (row.transaction_type === 'Transfer' || row.transaction_type === 'Loan Payment') && row.reverses_transaction_id === null;
  return isTransfer ? toTransferSeen(row) : undefined;
}

interface EntryRow extends EntryRecord {
  created_at: string;
}

/** By sequence, newest first; undefined where the account is unknown to the caller. */
async function listEntries(pool: Pool, { account_id, limit, order, after }: MessageData<'list_entries'>, bound: string | undefined): Promise<{ items: Entry[] } | undefined> {
  const owner = await pool.query('select from accounts where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)', [
    bits(isId('account', account_id) ? account_id : ''),
    bound === undefined ? null : bits(bound),
  ]);
  if (owner.rowCount === 0) return undefined;
  const { rows } = await pool.query<EntryRow>(
    `select account_id, sequence, operation_id, transaction_id, direction, side, amount_minor, currency, balance_after_minor, created_at
     from entries where account_id = $1 and ($2::int8 is null or sequence ${order === 'desc' ? '<' : '>'} $2) order by sequence ${order} limit $3`,
    [bits(account_id), after === undefined || !/^\d{1,18}$/.test(after.id) ? null : after.id, limit + 1],
  );
  const toRecord = (row: EntryRow) =>
    toEntry({ ...row, account_id: prefixed('acc', row.account_id), operation_id: prefixed('opr', row.operation_id), transaction_id: prefixed('txn', row.transaction_id) });
  return cutPage(rows, limit, toRecord, (row) => ({ at: row.created_at, id: String(row.sequence) }));
}

/** Totals of all entries, and of all balances by class, in one snapshot. */
async function getTrialBalance(pool: Pool): Promise<MessageResult<'get_trial_balance'>> {
  const { rows } = await pool.query<Record<'debit' | 'credit' | 'assets' | 'liabilities' | 'currency', string>>(
    `with totals as (
       select currency, coalesce(sum(amount_minor) filter (where side = 'DR'), 0) as debit, coalesce(sum(amount_minor) filter (where side = 'CR'), 0) as credit
       from entries group by currency
     ), balances as (
       select currency, coalesce(sum(balance_minor) filter (where class = 'asset'), 0) as assets,
         coalesce(sum(balance_minor) filter (where class = 'liability'), 0) as liabilities
       from accounts group by currency
     )
     select currency, coalesce(debit, 0) as debit, coalesce(credit, 0) as credit, assets, liabilities from balances left join totals using (currency) order by currency`,
  );
  return rows.map(({ currency, debit, credit, assets, liabilities }) => ({
    currency,
    debit_total: fromMinor(BigInt(debit), currency),
    credit_total: fromMinor(BigInt(credit), currency),
    assets: fromMinor(BigInt(assets), currency),
    liabilities: fromMinor(BigInt(liabilities), currency),
    difference: fromMinor(BigInt(assets) - BigInt(liabilities), currency),
  }));
}

/** Teller and Vault of each currency as the sum of their slots. */
async function getSystemAccounts(pool: Pool): Promise<MessageResult<'get_system_accounts'>> {
  const { rows } = await pool.query<{ account_id: string; account_number: string; account_type: 'Teller' | 'Vault'; currency: string; balance_minor: bigint }>(
    'select account_id, account_number, account_type, currency, balance_minor from accounts where client_id is null order by currency, account_type, length(account_number), account_number',
  );
  const groups = Map.groupBy(rows, (row) => systemAccountNumber(row.account_type, row.currency));
  return [...groups].map(([account_number, slots]) => {
    const [{ account_type, currency }] = slots as [(typeof slots)[number]];
    const total = slots.reduce((sum, slot) => sum + slot.balance_minor, 0n);
    return {
      account_id: systemAccountId(account_number),
      account_number,
      kind: account_type,
      currency,
      balance: fromMinor(total, currency),
      slots: slots.map((slot) => ({ account_id: prefixed('acc', slot.account_id), account_number: slot.account_number, balance: fromMinor(slot.balance_minor, currency) })),
    };
  });
}
