import { hash } from 'node:crypto';
import { type BatchHead, type BatchSummary, batchStatus } from '#libs/contracts/batches.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { idBits } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { pickNames } from '#libs/contracts/names.ts';
import type { Till } from '#libs/contracts/tills.ts';
import type { Columns } from '#libs/postgres/arrays.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import type { BatchRecord } from './domain/batches.ts';
import type { AccountState, EntryRecord, HoldState, TransactionRecord } from './domain/records.ts';

/** Converts rows of the tables to records, for writing (batch/), reading (queries/), and verification (verify/). */

/** Converts a uuid to an id with that prefix. */
export function prefixed(prefix: string, uuid: string): string {
  return `${prefix}_${uuid.replaceAll('-', '')}`;
}

/** Returns the uuids of ids, for a parameter such as `$1::uuid[]`. A uuid is returned as it is. */
export function uuids(ids: readonly (string | null)[]): (string | null)[] {
  return ids.map((id) => (id === null || id.includes('-') ? id : idBits(id)));
}

/**
 * Returns the id of a system account, derived from its number, so that every writer uses the same row without a
 * lookup.
 */
export function systemAccountId(accountNumber: string): string {
  return `acc_${hash('sha256', `system account ${accountNumber}`).slice(0, 32)}`;
}

/** The attributes of the types transaction_row, written_entry, and written_hold (migrations), in their order. */
export const transactionTypes: Columns<TransactionRecord> = [
  ['transaction_id', 'uuid'],
  ['operation_id', 'uuid'],
  ['account_id', 'uuid'],
  ['counterparty_account_id', 'uuid'],
  ['transaction_type', 'text'],
  ['direction', 'text'],
  ['amount_minor', 'int8'],
  ['amount_text', 'text'],
  ['currency', 'text'],
  ['description', 'text'],
  ['reference', 'text'],
  ['status', 'text'],
  ['failure_code', 'text'],
  ['failure_message', 'text'],
  ['failure_account_id', 'uuid'],
  ['reverses_transaction_id', 'uuid'],
  ['idempotency_key', 'text'],
  ['fingerprint', 'uuid'],
  ['actor', 'text'],
  ['request_id', 'text'],
  ['created_at', 'timestamptz'],
  ['external_id', 'text'],
  ['metadata', 'json'],
  ['hold_id', 'uuid'],
  ['batch_id', 'uuid'],
  ['metadata_client_id', 'uuid'],
  ['effective_date', 'date'],
];
export const entryTypes: Columns<EntryRecord> = [
  ['account_id', 'uuid'],
  ['sequence', 'int8'],
  ['operation_id', 'uuid'],
  ['transaction_id', 'uuid'],
  ['direction', 'text'],
  ['side', 'text'],
  ['amount_minor', 'int8'],
  ['currency', 'text'],
  ['balance_after_minor', 'int8'],
  ['created_at', 'timestamptz'],
];
export const holdTypes: Columns<HoldState> = [
  ['hold_id', 'uuid'],
  ['account_id', 'uuid'],
  ['amount_minor', 'int8'],
  ['captured_minor', 'int8'],
  ['currency', 'text'],
  ['status', 'text'],
  ['description', 'text'],
  ['reference', 'text'],
  ['actor', 'text'],
  ['request_id', 'text'],
  ['external_id', 'text'],
  ['metadata', 'json'],
  ['expires_at', 'timestamptz'],
  ['created_at', 'timestamptz'],
  ['updated_at', 'timestamptz'],
];
const names = <T>(columns: Columns<T>): string => columns.map(([name]) => name).join(', ');
export const transactionColumns = names(transactionTypes);
export const entryColumns = names(entryTypes);
export const holdColumns = names(holdTypes);
export const batchColumns =
  'command_id, batch_id, mode, item_count, actor, bound_client_id, created_at, external_id, metadata';

/** What the items of a batch came to, by currency; null: the currency was not known. */
export type BatchItems = { currency: string | null; completed: number; failed: number; minor: string }[];

/** Returns BatchItems of the batch `b`. An item is counted by its first transaction. One without any is not decided yet. */
export const itemsOfBatch = `select coalesce(json_agg(i), '[]') as items from (
    select currency, count(*) filter (where status = 'Completed') as completed, count(*) filter (where status = 'Failed') as failed,
      coalesce(sum(amount_minor) filter (where status = 'Completed'), 0)::text as minor
    from transactions t where t.batch_id = b.batch_id and t.transaction_id = t.operation_id group by currency order by currency
  ) i`;

/** A row of `batches`, whose ids are uuids, with the counts of its items. */
export type ListedBatch = BatchRecord & { ok: boolean; items: BatchItems };

export function toBatchHead({ batch_id, mode, actor, created_at, bound_client_id, ...names }: BatchRecord): BatchHead {
  const metadata_client_id = bound_client_id && names.metadata && prefixed('cli', bound_client_id);
  return {
    batch_id: prefixed('bat', batch_id),
    mode,
    actor,
    created_at,
    ...pickNames({ ...names, metadata_client_id }),
  };
}

/** Selects the rows of `from`, which has the columns of batches, as ListedBatch. */
export const selectListedBatches = (from: string): string =>
  `select b.*, (c.outcome->>'ok')::boolean as ok, items.items
    from ${from} b join commands c using (command_id) cross join lateral (${itemsOfBatch}) items`;

export function toBatchSummary({ ok, items, item_count, ...row }: ListedBatch): BatchSummary {
  const sum = (kind: 'completed' | 'failed') => items.reduce((total, item) => total + item[kind], 0);
  const [completed, failed] = [sum('completed'), ok ? sum('failed') : item_count];
  const counts = { completed, failed, pending: item_count - completed - failed };
  const totals = items.flatMap(({ currency, completed: count, minor }) =>
    currency === null || count === 0 ? [] : [{ currency, amount: fromMinor(BigInt(minor), currency) }],
  );
  return { ...toBatchHead({ item_count, ...row }), status: ok ? batchStatus(counts) : 'Refused', counts, totals };
}

/**
 * The columns of entries `e` of this source, with their value dates. That of most is the day of their posting, and has no
 * row (migrations).
 */
export function selectEntries(from: string, more = ''): string {
  return `select ${qualifyColumns('e', entryColumns)}, d.effective_date${more} from ${from} left join dated_entries d on d.account_id = e.account_id and d.sequence = e.sequence`;
}

/** An id below all others, after which the first page begins. */
export const firstId = '0'.repeat(32);

/** The advisory lock that postings hold together, and the closing of a day alone, until they are committed. */
export const closingLock = 7_241_865_002;
/** The advisory lock of the session that calculates closed days. */
export const closerLock = 7_241_865_003;

/** SQL for a stored decimal in minor units: it has all decimal places of its currency. */
export const minorSql = (decimal: string): string => `replace(${decimal}, '.', '')::numeric`;

/** Returns these columns of the table with that alias. */
export function qualifyColumns(alias: string, columns: string): string {
  return columns.replaceAll(/\w+/g, `${alias}.$&`);
}

/** Converts a row of `transactions`, whose ids are uuids. */
export function toTransactionRecord(row: TransactionRecord): TransactionRecord {
  return {
    ...row,
    transaction_id: prefixed('txn', row.transaction_id),
    operation_id: prefixed('opr', row.operation_id),
    account_id: prefixed('acc', row.account_id),
    counterparty_account_id: row.counterparty_account_id && prefixed('acc', row.counterparty_account_id),
    failure_account_id: row.failure_account_id && prefixed('acc', row.failure_account_id),
    reverses_transaction_id: row.reverses_transaction_id && prefixed('txn', row.reverses_transaction_id),
    hold_id: row.hold_id && prefixed('hld', row.hold_id),
    fingerprint: row.fingerprint?.replaceAll('-', '') ?? null,
    batch_id: row.batch_id && prefixed('bat', row.batch_id),
    metadata_client_id: row.metadata_client_id && prefixed('cli', row.metadata_client_id),
  };
}

/** Converts a row of `entries`, whose ids are uuids. */
export function toEntryRecord(row: EntryRecord): EntryRecord {
  return {
    ...row,
    account_id: prefixed('acc', row.account_id),
    operation_id: prefixed('opr', row.operation_id),
    transaction_id: prefixed('txn', row.transaction_id),
  };
}

export const accountColumns =
  'account_id, account_number, client_id, account_type, currency, status, status_version, balance_minor, last_sequence, last_posted_at, held_minor, active_holds, hold_expires_at, hold_version, minimum_balance_minor, per_transaction_minor, per_day_out_minor, out_day, out_minor';

/** Converts a row of `accounts`, whose ids are uuids. */
export function toAccountState(row: AccountState): AccountState {
  return {
    ...row,
    account_id: prefixed('acc', row.account_id),
    client_id: row.client_id && prefixed('cli', row.client_id),
  };
}

/** Converts a row of `holds`, whose ids are uuids. */
export function toHoldState(row: HoldState): HoldState {
  return { ...row, hold_id: prefixed('hld', row.hold_id), account_id: prefixed('acc', row.account_id) };
}

/**
 * Reads the transactions among `ids`, compared by their first 120 bits. It sees what was committed before it
 * started.
 */
export async function readTransactions(client: Queries, ids: string[]): Promise<TransactionRecord[]> {
  if (ids.length === 0) return [];
  const { rows } = await client.query<TransactionRecord>({
    name: 'read_transactions',
    text: `select ${transactionColumns} from transactions where id_key(transaction_id) = any(array(select id_key(id) from unnest($1::uuid[]) as id))`,
    values: [uuids(ids)],
  });
  return rows.map(toTransactionRecord);
}

/** Maps the reversed ones among `ids` to their reversals. */
export async function readReversals(client: Queries, ids: string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query<{ original: string; reversal: string }>({
    name: 'read_reversals',
    text: `select reverses_transaction_id as original, transaction_id as reversal from transactions
      where id_key(reverses_transaction_id) = any(array(select id_key(id) from unnest($1::uuid[]) as id))
        and reverses_transaction_id is not null and status = 'Completed'`,
    values: [uuids(ids)],
  });
  return new Map(rows.map((row) => [prefixed('txn', row.original), prefixed('txn', row.reversal)]));
}

/** The dead-lettered commands `d` that have left no reply since. */
export const fromUndecided =
  'from dead_lettered_commands d where not exists (select from commands c where c.command_id = d.decided_as)';

/**
 * Returns those of `ids` whose commands were dead-lettered and left no reply since. Those of which there is a
 * transaction by now are included.
 */
export async function readDeadLettered(client: Queries, ids: string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const { rows } = await client.query<{ command_id: string }>(
    `select d.command_id ${fromUndecided} and d.command_id = any($1::uuid[])`,
    [uuids(ids)],
  );
  const found = new Set(rows.map(({ command_id }) => command_id.replaceAll('-', '')));
  return new Set(ids.filter((id) => found.has(idBits(id))));
}

/** Returns stored replies by commandKey: of reversals, captures, and what leaves no transaction. */
export async function readOutcomes(
  client: Queries,
  ids: string[],
): Promise<Map<string, { fingerprint: string | null; outcome: ReplyBody }>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query<{ command_id: string; fingerprint: string | null; outcome: ReplyBody }>(
    'select command_id, fingerprint, outcome from commands where command_id = any($1::uuid[])',
    [uuids(ids)],
  );
  return new Map(
    rows.map((row) => [
      row.command_id.replaceAll('-', ''),
      { outcome: row.outcome, fingerprint: row.fingerprint?.replaceAll('-', '') ?? null },
    ]),
  );
}

/**
 * Common table expressions (for `with recursive`) that return, as `placed (account_id, time, sequence)`, for
 * each row of `wanted (account_id, time)` the account's first sequence posted at or after that time, or the one
 * after its last if there is none. Sequences have no gaps, and the database refuses posting times of an account
 * that decrease. A binary search therefore needs about twenty primary-key
 * lookups, and no posting maintains an index by time.
 */
export const placed = `halved (account_id, time, low, high) as (
    select w.account_id, w.time, 1::int8, a.last_sequence + 1 from wanted w join accounts a using (account_id)
    union all
    select h.account_id, h.time, case when e.created_at < h.time then h.middle + 1 else h.low end, case when e.created_at < h.time then h.high else h.middle end
    from (select account_id, time, low, high, (low + high) / 2 as middle from halved where low < high) h
      cross join lateral (select created_at from entries where account_id = h.account_id and sequence = h.middle limit 1) e
  ), placed as (
    select account_id, time, low as sequence from halved where low = high
  )`;

export const tillColumns = 'till_id, actor, opened_at, opening, closed_at, balances, reason, closed_by';
/** A row of `tills`. */
export type TillRow = Omit<Till, 'status'>;

export function toTill(row: TillRow): Till {
  const { till_id, actor, opened_at, opening, closed_at, balances, reason, closed_by } = row;
  const status = closed_at === null ? 'Open' : 'Closed';
  return {
    till_id: prefixed('til', till_id),
    actor,
    status,
    opened_at,
    opening,
    closed_at,
    balances,
    reason,
    closed_by,
  };
}
