import type { Queries } from '#libs/postgres/pool.ts';
import type { AccountState } from '../domain/records.ts';
import { placed, prefixed, uuids } from '../rows.ts';

/** SQL of the limits of accounts. It is not executed for a batch that neither sets limits nor posts on accounts with one per day. */

/** More than any limit, so that the sum can be stored whatever has left an account without one. */
const mostCounted = 10n ** 18n;

/**
 * Returns what has left these accounts since `from`, without reversals. The accounts are locked, so the entries are read in
 * order and not looked up one by one. No command is decided a day after it was accepted.
 */
export async function readOut(client: Queries, ids: string[], from: string): Promise<Map<string, bigint>> {
  const { rows } = await client.query<{ account_id: string; out_minor: bigint }>(
    `with recursive wanted as (select account_id, $2::timestamptz as time from unnest($1::uuid[]) as account_id), ${placed}
     select p.account_id, least(coalesce(sum(e.amount_minor), 0), ${mostCounted})::int8 as out_minor
     from placed p left join entries e on e.account_id = p.account_id and e.sequence >= p.sequence and e.direction = 'debit'
       and e.transaction_id not in (select transaction_id from transactions where account_id = any($1::uuid[])
         and created_at >= $2::timestamptz - interval '1 day' and reverses_transaction_id is not null)
     group by p.account_id`,
    [uuids([...new Set(ids)]), from],
  );
  return new Map(rows.map((row) => [prefixed('acc', row.account_id), row.out_minor]));
}

/** Writes the limits of accounts. What leaves an account without a limit per day is not counted. */
export async function writeLimits(client: Queries, accounts: AccountState[]): Promise<void> {
  if (accounts.length === 0) return;
  await client.query(
    `update accounts a set minimum_balance_minor = l.least, per_transaction_minor = l.once, per_day_out_minor = l.daily,
       out_day = case when l.daily is not null then l.day end, out_minor = case when l.daily is null then 0 else l.out end
     from unnest($1::uuid[], $2::int8[], $3::int8[], $4::int8[], $5::date[], $6::int8[]) as l (account_id, least, once, daily, day, out)
     where a.account_id = l.account_id`,
    [
      uuids(accounts.map((a) => a.account_id)),
      accounts.map((a) => a.minimum_balance_minor),
      accounts.map((a) => a.per_transaction_minor),
      accounts.map((a) => a.per_day_out_minor),
      accounts.map((a) => a.out_day),
      accounts.map((a) => a.out_minor),
    ],
  );
}
