import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { customersAmong, customersShown } from '#libs/contracts/staff-days.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { dayAt, dayLimit } from '../domain/calendar.ts';
import { isOverCounterSql } from '../domain/records.ts';
import { prefixed } from '../rows.ts';
import { isCash, isIn } from './statistics.ts';

/**
 * The postings of a person without items of batches, which have an index (transactions_by_person). An operation is counted by its
 * first transaction.
 */
const own = "actor = $1 and actor like 'jwt:%' and batch_id is null and transaction_id = operation_id";

/** JSON would round sums, so they are texts. */
const sumAndCount = (name: string, condition: string) =>
  `coalesce(sum(amount_minor) filter (where ${condition}), 0)::text as ${name}, count(*) filter (where ${condition}) as ${name}_count`;

const statement = `with day as materialized (
    select currency, amount_minor, status, transaction_type, reverses_transaction_id, ${isCash} and ${isOverCounterSql('transactions')} as is_cash from transactions
    where ${own} and created_at >= $2 and created_at < $3
  ), totals as (
    select currency, ${sumAndCount('cash_in', `is_cash and ${isIn}`)}, ${sumAndCount('cash_out', `is_cash and not ${isIn}`)},
      ${sumAndCount('transferred', 'not is_cash')}
    from day where status = 'Completed' group by currency
  ), customers as (
    select client_id, (array_agg(account_id order by r.created_at desc))[1] as account_id, max(r.created_at) as served_at
    from (select account_id, created_at, status from transactions where ${own} order by created_at desc, transaction_id desc limit ${customersAmong}) r
      join accounts using (account_id)
    where r.status = 'Completed' group by client_id order by served_at desc, client_id limit ${customersShown}
  )
  select coalesce((select json_agg(t order by currency) from totals t), '[]') as totals,
    (select count(*) from day where status = 'Failed') as refused,
    (select coalesce(sum(item_count), 0) from batches where actor = $1 and actor like 'jwt:%' and created_at >= $2 and created_at < $3) as batch_items,
    coalesce((select json_agg(c order by served_at desc, client_id) from (select client_id, account_id, to_char(served_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as served_at from customers) c), '[]') as customers`;

type Kind = 'cash_in' | 'cash_out' | 'transferred';
interface DayRow {
  totals: ({ currency: string } & Record<Kind, string> & Record<`${Kind}_count`, number>)[];
  refused: bigint;
  batch_items: bigint;
  customers: { client_id: string; account_id: string; served_at: string }[];
}

/** Returns what a person has posted on a day of the bank. `now`: ISO 8601 UTC. */
export async function getStaffDay(
  pool: Pool,
  { actor, on }: MessageData<'get_staff_day'>,
  now: string,
): Promise<MessageResult<'get_staff_day'>> {
  const day = on ?? dayAt(now);
  const { rows } = await pool.query<DayRow>(statement, [actor, dayLimit(day), dayLimit(day, 1)]);
  const [{ totals, refused, batch_items, customers }] = rows as [DayRow];
  return {
    actor,
    on: day,
    totals: totals.map(({ currency, cash_in, cash_out, transferred, ...counts }) => {
      const text = (minor: bigint) => fromMinor(minor, currency);
      const [into, out] = [BigInt(cash_in), BigInt(cash_out)];
      const sums = { cash_in: text(into), cash_out: text(out), net_cash: text(into - out) };
      return { currency, ...counts, ...sums, transferred: text(BigInt(transferred)) };
    }),
    refused: Number(refused),
    batch_items: Number(batch_items),
    customers: customers.map(({ client_id, account_id, served_at }) => ({
      client_id: prefixed('cli', client_id),
      account_id: prefixed('acc', account_id),
      served_at,
    })),
  };
}
