import type { Pool } from '#libs/postgres/pool.ts';

/** Returns the n-th generated account, from 0 on, as SQL. Ids are distributed like random ones, and can be computed. */
const accountSql = (n: string) => `md5('account ' || (${n}))::uuid`;
const systemId = (name: string) => `md5('system ${name}')::uuid`;
const chunk = 500_000;
/** The amount of each account's opening deposit and of each transfer, in minor units. */
const openingMinor = 1_000_000_000;
const transferMinor = 100;

export interface DataSize {
  accounts: number;
  /** The number of entries: one per opening, two per transfer. */
  transactions: number;
}

/**
 * Fills the ledger's tables with a history of 30 days, as the ledger would have written it: opening
 * deposits through the Vault, then rounds of transfers in which every account pays once and
 * receives once. The tables' own triggers check every entry. Indexes are built and statistics
 * collected afterwards. The pool must be a superuser's.
 */
export async function generateData(
  pool: Pool,
  { accounts, transactions }: DataSize,
  say: (line: string) => void,
): Promise<DataSize> {
  const rounds = Math.max(1, Math.round((transactions - accounts) / (2 * accounts)));
  const transfers = rounds * accounts;
  const step = async (title: string, work: () => Promise<unknown>) => {
    const begun = performance.now();
    await work();
    say(`  ${title}: ${((performance.now() - begun) / 1000).toFixed(0)} s`);
  };
  // Accounts are inserted with their final balances, because chunks of transfers are not in order
  // per account.
  await pool.query('alter table entries disable trigger entries_posted');
  const restore = await dropIndexes(pool);
  await step(`${accounts} accounts`, () =>
    pool.query(`
    insert into accounts (account_id, account_number, client_id, account_type, currency, status, balance_minor, last_sequence, debits_minor, last_posted_at, created_at)
    select ${accountSql('n')}, 'GEN-' || n, md5('client ' || n)::uuid, 'Current', 'USD', 'Active', ${openingMinor}, 1 + 2 * ${rounds}, ${rounds} * ${transferMinor}, now(), now() - interval '31 days'
    from generate_series(0, ${accounts - 1}) n
    union all select ${systemId('vault')}, 'VLT-USD/generated', null, 'Vault', 'USD', 'Active', ${openingMinor}::int8 * ${accounts}, ${accounts}, ${openingMinor}::int8 * ${accounts}, now() - interval '30 days', now() - interval '31 days'`),
  );
  await step(`${accounts} openings`, () => inChunks(accounts, (from, to) => insertOpenings(pool, from, to)));
  await step(`${transfers} transfers`, () =>
    inChunks(transfers, (from, to) => insertTransfers(pool, from, to, accounts, transfers)),
  );
  await pool.query('alter table entries enable always trigger entries_posted');
  await step('indexes', restore);
  await step('vacuum analyze', () => pool.query('vacuum (analyze) accounts, transactions, entries'));
  return { accounts, transactions: accounts + 2 * transfers };
}

async function inChunks(count: number, work: (from: number, to: number) => Promise<void>): Promise<void> {
  for (let from = 0; from < count; from += chunk) await work(from, Math.min(count, from + chunk) - 1);
}

async function insertOpenings(pool: Pool, from: number, to: number): Promise<void> {
  const booked = "now() - interval '30 days'";
  await pool.query(`
    with o as (select n, md5('opening ' || n)::uuid as id from generate_series(${from}, ${to}) n), t as (
      insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, created_at)
      select id, id, ${accountSql('n')}, 'Deposit', 'credit', ${openingMinor}, 'USD', 'Completed', 'bench', 'bench', ${booked} from o)
    insert into entries (account_id, sequence, operation_id, transaction_id, direction, side, amount_minor, currency, balance_after_minor, created_at)
    select ${accountSql('n')}, 1, id, id, 'credit', 'CR', ${openingMinor}, 'USD', ${openingMinor}, ${booked} from o
    union all select ${systemId('vault')}, n + 1, id, id, 'credit', 'DR', ${openingMinor}, 'USD', ${openingMinor}::int8 * (n + 1), ${booked} from o`);
}

/**
 * In round r, account a pays the account that is r + 1 positions further: first it pays (sequence 2 + 2 r), then it
 * receives.
 */
async function insertTransfers(
  pool: Pool,
  from: number,
  to: number,
  accounts: number,
  transfers: number,
): Promise<void> {
  const booked = `now() - interval '30 days' * (1 - n::float8 / ${transfers})`;
  await pool.query(`
    with o as (
      select md5('transfer ' || n)::uuid as id, md5('credit ' || n)::uuid as credit_id, ${accountSql(`n % ${accounts}`)} as payer,
        ${accountSql(`(n % ${accounts} + n / ${accounts} + 1) % ${accounts}`)} as payee, (n / ${accounts})::int8 as round, ${booked} as at
      from generate_series(${from}, ${to}) n
    ), legs as (
      select id, id as transaction_id, payer as account_id, payee as other_id, 'debit' as direction, 'DR' as side, 2 + 2 * round as sequence, ${openingMinor - transferMinor} as after, at from o
      union all select id, credit_id, payee, payer, 'credit', 'CR', 3 + 2 * round, ${openingMinor}, at from o
    ), t as (
      insert into transactions (transaction_id, operation_id, account_id, counterparty_account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, created_at)
      select transaction_id, id, account_id, other_id, 'Transfer', direction, ${transferMinor}, 'USD', 'Completed', 'bench', 'bench', at from legs)
    insert into entries (account_id, sequence, operation_id, transaction_id, direction, side, amount_minor, currency, balance_after_minor, created_at)
    select account_id, sequence, id, transaction_id, direction, side, ${transferMinor}, 'USD', after, at from legs`);
}

/** Drops the indexes, which would be updated row by row. Returns a function that builds them again. */
async function dropIndexes(pool: Pool): Promise<() => Promise<void>> {
  const { rows } = await pool.query<{ name: string; definition: string; key: string | null }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition, pg_get_constraintdef(c.oid) as key
     from pg_index i left join pg_constraint c on c.conindid = i.indexrelid where i.indrelid in ('transactions'::regclass, 'entries'::regclass)`,
  );
  for (const { name, key } of rows)
    await pool.query(key === null ? `drop index ${name}` : `alter table entries drop constraint ${name}`);
  return async () => {
    await pool.query("set maintenance_work_mem = '512MB'");
    for (const { name, definition, key } of rows)
      await pool.query(key === null ? definition : `alter table entries add constraint ${name} ${key}`);
  };
}
