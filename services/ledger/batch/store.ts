import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { rowArray } from '#libs/postgres/arrays.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import type { BatchRecord } from '../domain/batches.ts';
import { bankZone, requireZone } from '../domain/calendar.ts';
import { systemAccountNumber, systemPrefix } from '../domain/chart.ts';
import type { ClosedDay } from '../domain/days.ts';
import type { AccountState, EntryRecord, TransactionRecord } from '../domain/records.ts';
import {
  accountColumns,
  batchColumns,
  closingLock,
  entryColumns,
  entryTypes,
  systemAccountId,
  toAccountState,
  transactionColumns,
  transactionTypes,
  uuids,
} from '../rows.ts';

/** The ledger's SQL for writing, one function per statement. Ids are stored as their 128 bits, without prefix. */

/**
 * Locks the customer accounts among `ids` in id order, so that batches cannot deadlock. Slots of Teller and
 * Vault are skipped even if a caller names them: they are locked after all customer accounts, and only by their
 * own writer. Before them it shares the lock of closings, so what is read afterwards is wholly before a closing or after it.
 */
export async function lockAccounts(client: Queries, ids: string[]): Promise<AccountState[]> {
  const { rows } = await client.query<AccountState>({
    name: 'lock_accounts',
    // The condition on the lock is evaluated once, before any row is read.
    text: `select ${accountColumns} from accounts where (select pg_advisory_xact_lock_shared(${closingLock})::text) is not null
      and account_id = any($1::uuid[]) and client_id is not null order by account_id for no key update`,
    values: [uuids(ids)],
  });
  return rows.map(toAccountState);
}

/** Takes the lock of closings alone, for a batch that closes a day: waits for postings under way, and holds up others. */
export async function lockClosing(client: Queries): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1)', [closingLock]);
}

/**
 * Locks one writer's existing slots of Teller and Vault in id order, for these currencies and those of the
 * given accounts (an account's currency never changes). Returns them by account number.
 */
export async function lockSystemAccounts(
  client: Queries,
  cashAccounts: string[],
  currencies: string[],
  slot: number,
): Promise<Map<string, AccountState>> {
  if (cashAccounts.length + currencies.length === 0) return new Map();
  const { rows } = await client.query<AccountState>({
    name: 'lock_system_accounts',
    text: `select ${accountColumns} from accounts where account_number = any(array(
        select prefix || '-' || currency || '/' || $4::int
        from unnest($3::text[]) as prefix, (select currency from accounts where account_id = any($1::uuid[]) union select unnest($2::text[])) as cash
      )) order by account_id for no key update`,
    values: [uuids(cashAccounts), currencies, Object.values(systemPrefix), slot],
  });
  return new Map(rows.map((row) => [row.account_number, toAccountState(row)]));
}

/** Creates one writer's slots of Teller and Vault in these currencies. */
export async function createSystemAccounts(client: Queries, currencies: string[], slot: number): Promise<void> {
  const wanted = currencies.flatMap((currency) =>
    (['Teller', 'Vault'] as const).map((kind) => ({
      kind,
      currency,
      number: systemAccountNumber(kind, currency, slot),
    })),
  );
  await client.query(
    `insert into accounts (account_id, account_number, account_type, currency, status, created_at)
     select account_id, account_number, account_type, currency, 'Active', now()
     from unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as slot (account_id, account_number, account_type, currency)
     order by account_id on conflict do nothing`,
    [
      uuids(wanted.map((w) => systemAccountId(w.number))),
      wanted.map((w) => w.number),
      wanted.map((w) => w.kind),
      wanted.map((w) => w.currency),
    ],
  );
}

/** Returns which of these account numbers are taken. */
export async function readTakenNumbers(client: Queries, numbers: string[]): Promise<Set<string>> {
  if (numbers.length === 0) return new Set();
  const { rows } = await client.query<{ account_number: string }>(
    'select account_number from accounts where account_number = any($1::text[])',
    [numbers],
  );
  return new Set(rows.map((row) => row.account_number));
}

/**
 * Returns the database's time (ISO 8601 UTC), the last closed day, and which of these transactions exist (equality as in
 * readTransactions). Throws if the days of the books are closed in another zone than this process has.
 */
export async function readClockAndKnownIds(
  client: Queries,
  ids: string[],
): Promise<{ now: string; closed: string | null; known: string[] }> {
  const { rows } = await client.query<{ now: string; closed: [string, string] | null; known: string[] | null }>({
    name: 'look',
    text: `select clock_timestamp() as now, (select array[date::text, time_zone] from closed_days order by date desc limit 1) as closed, (select array_agg(transaction_id) from transactions
      where id_key(transaction_id) = any(array(select id_key(id) from unnest($1::uuid[]) as id))) as known`,
    values: [uuids(ids)],
  });
  const [closed, zone] = rows[0]?.closed ?? [null];
  requireZone(zone);
  return { now: rows[0]?.now ?? '', closed, known: rows[0]?.known ?? [] };
}

export async function insertAccounts(client: Queries, accounts: AccountState[], now: string): Promise<void> {
  await client.query(
    `insert into accounts (account_id, account_number, client_id, account_type, currency, status, status_version, created_at)
     select a.*, $8::timestamptz from unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::int4[]) as a order by 1`,
    [
      uuids(accounts.map((a) => a.account_id)),
      accounts.map((a) => a.account_number),
      uuids(accounts.map((a) => a.client_id)),
      accounts.map((a) => a.account_type),
      accounts.map((a) => a.currency),
      accounts.map((a) => a.status),
      accounts.map((a) => a.status_version),
      now,
    ],
  );
}

export async function updateStatuses(client: Queries, accounts: AccountState[]): Promise<void> {
  await client.query(
    `update accounts a set status = s.status, status_version = s.status_version
     from unnest($1::uuid[], $2::text[], $3::int4[]) as s (account_id, status, status_version) where a.account_id = s.account_id`,
    [uuids(accounts.map((a) => a.account_id)), accounts.map((a) => a.status), accounts.map((a) => a.status_version)],
  );
}

export async function insertClosedDays(client: Queries, days: ClosedDay[]): Promise<void> {
  await client.query(
    'insert into closed_days (date, closed_at, closed_by, time_zone) select *, $4 from unnest($1::date[], $2::timestamptz[], $3::text[])',
    [
      days.map(({ date }) => date),
      days.map(({ closed_at }) => closed_at),
      days.map(({ closed_by }) => closed_by),
      bankZone(),
    ],
  );
}

export interface KeptOutcome {
  command_id: string;
  name: string;
  fingerprint: string | null;
  outcome: ReplyBody;
}

export async function insertOutcomes(client: Queries, kept: KeptOutcome[]): Promise<void> {
  await client.query(
    `insert into commands (command_id, name, fingerprint, outcome)
     select c.id, c.name, c.fingerprint, c.outcome::json from unnest($1::uuid[], $2::text[], $3::uuid[], $4::text[]) as c (id, name, fingerprint, outcome) order by 1`,
    [
      uuids(kept.map((k) => k.command_id)),
      kept.map((k) => k.name),
      uuids(kept.map((k) => k.fingerprint)),
      kept.map((k) => JSON.stringify(k.outcome)),
    ],
  );
}

/** Writes what is stored of callers' batches, after their outcomes. */
export async function insertBatches(client: Queries, batches: BatchRecord[]): Promise<void> {
  await client.query(
    `insert into batches (${batchColumns})
     select b.command_id, b.batch_id, b.mode, b.item_count, b.actor, b.bound_client_id, b.created_at, b.external_id, b.metadata::json
     from unnest($1::uuid[], $2::uuid[], $3::text[], $4::int4[], $5::text[], $6::uuid[], $7::timestamptz[], $8::text[], $9::text[]) as b (${batchColumns}) order by 1`,
    [
      uuids(batches.map((b) => b.command_id)),
      uuids(batches.map((b) => b.batch_id)),
      batches.map((b) => b.mode),
      batches.map((b) => b.item_count),
      batches.map((b) => b.actor),
      uuids(batches.map((b) => b.bound_client_id)),
      batches.map((b) => b.created_at),
      batches.map((b) => b.external_id),
      batches.map((b) => b.metadata && JSON.stringify(b.metadata)),
    ],
  );
}

/** Writes the value dates of those entries whose value date is not the day of their posting. */
export async function insertDatedEntries(client: Queries, entries: EntryRecord[]): Promise<void> {
  const dated = entries.filter(({ effective_date }) => effective_date !== null);
  if (dated.length === 0) return;
  await client.query(
    'insert into dated_entries (account_id, sequence, effective_date) select * from unnest($1::uuid[], $2::int8[], $3::date[])',
    [
      uuids(dated.map((entry) => entry.account_id)),
      dated.map((entry) => entry.sequence),
      dated.map((entry) => entry.effective_date),
    ],
  );
}

/**
 * Writes the transactions and entries of a batch with one statement. A trigger updates the balances of the
 * accounts, and rejects entries that contradict them.
 */
export async function writeBatch(
  client: Queries,
  transactions: TransactionRecord[],
  entries: EntryRecord[],
): Promise<void> {
  await client.query({
    name: 'write_batch',
    text: `with written_transactions as (
        insert into transactions (${transactionColumns}) select ${transactionColumns} from unnest($1::transaction_row[])
      ) insert into entries (${entryColumns}) select ${entryColumns} from unnest($2::written_entry[])`,
    values: [rowArray(transactions, transactionTypes), rowArray(entries, entryTypes)],
  });
}
