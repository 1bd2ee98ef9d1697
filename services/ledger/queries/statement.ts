import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { invalidField } from '#libs/contracts/errors.ts';
import type { MessageData, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { cutPage, invalidCursor } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { entryColumns, prefixed } from '../rows.ts';
import { type LineRow, selectLines, toLine } from './lines.ts';
import { accountNotFound, bits } from './lists.ts';
import { awaitPostings, placed } from './posting-time.ts';

/** The maximum number of entries of a period, because its totals are calculated for every page. */
const maxEntries = 100_000;

interface Period {
  account_id: string;
  account_number: string;
  currency: string;
  /** The sequences of the period: from `first` (inclusive) to `beyond` (exclusive). */
  first: bigint;
  beyond: bigint;
  opening_minor: bigint;
  closing_minor: bigint;
  /** As text, because the SQL type is numeric. Unused if the period has more than `maxEntries`. */
  debit_minor: string;
  credit_minor: string;
}

/** Returns the account and the totals of a period, without its entries. */
export const periodStatement = `with recursive account as (
    select account_id, account_number, currency, last_sequence from accounts where account_id = $1 and client_id is not null and ($2::uuid is null or client_id = $2)
  ), wanted as (
    select account_id, time from account, (values ($3::timestamptz), ($4::timestamptz)) as bounds (time)
  ), ${placed}, period as (
    select account_id, first, greatest(first, least(coalesce($5::int8, beyond), last_sequence + 1)) as beyond from (
      select account_id, last_sequence, (select sequence from placed where time = $3 limit 1) as first, (select sequence from placed where time = $4 limit 1) as beyond from account
    ) found
  )
  select account_id, account_number, currency, first, beyond, debit_minor, credit_minor,
    coalesce((select balance_after_minor from entries e where e.account_id = $1 and sequence = first - 1), 0) as opening_minor,
    coalesce((select balance_after_minor from entries e where e.account_id = $1 and sequence = beyond - 1), 0) as closing_minor
  from account join period using (account_id) cross join lateral (
    select coalesce(sum(amount_minor) filter (where direction = 'debit'), 0) as debit_minor, coalesce(sum(amount_minor) filter (where direction = 'credit'), 0) as credit_minor
    from entries e where e.account_id = $1 and sequence >= first and sequence < beyond and beyond - first <= ${maxEntries}
  ) totals`;

const entriesStatement = selectLines(
  `select ${entryColumns} from entries where account_id = $1 and sequence >= $2 and sequence < $3 order by sequence limit $4`,
  'sequence',
);

/**
 * The last sequence shown, and the end of the period that the first page found, so that postings between two pages
 * change neither totals nor entries.
 */
const place = /^(\d{1,18})\.(\d{1,18})$/;

/**
 * Returns a statement of an account for a period of posting times. Opening balance + credits - debits = closing
 * balance, even if clocks were wrong, because all of them are derived from the same sequences. Entries never
 * change, so both statements see the same ones.
 */
export async function getStatement(
  pool: Pool,
  { account_id, from, to, limit, after }: MessageData<'get_statement'>,
  bound: string | undefined,
): Promise<ReplyBody> {
  const [, shown, end] = after === undefined ? [] : (place.exec(after.id) ?? []);
  if (after !== undefined && shown === undefined) return invalidCursor;
  const [account, client] = [bits('account', account_id), bits('client', bound)];
  await awaitPostings(pool, account, client, [from, to]);
  const values = [account, client, from ?? '-infinity', to ?? 'infinity', end ?? null];
  const {
    rows: [period],
  } = await pool.query<Period>(periodStatement, values);
  if (!period) return accountNotFound(account_id);
  const { currency, first, beyond, debit_minor, credit_minor } = period;
  const count = beyond - first;
  if (count > maxEntries)
    return refused(invalidField('from', `the period has ${count} entries: choose one of at most ${maxEntries}`));
  const begin = shown === undefined ? first : BigInt(shown) + 1n;
  const { rows } = await pool.query<LineRow>(entriesStatement, [account, begin, beyond, limit + 1]);
  const { items, next } = cutPage(rows, limit, {
    item: (row) => toLine(row, bound),
    position: (row) => ({ at: row.created_at, id: `${row.sequence}.${beyond}` }),
  });
  const item = {
    account_id: prefixed('acc', period.account_id),
    account_number: period.account_number,
    currency,
    from: from ?? null,
    to: to ?? null,
    opening_balance: fromMinor(period.opening_minor, currency),
    closing_balance: fromMinor(period.closing_minor, currency),
    debit_total: fromMinor(BigInt(debit_minor), currency),
    credit_total: fromMinor(BigInt(credit_minor), currency),
    entry_count: Number(count),
    entries: items,
  };
  const data: MessageResult<'get_statement'> = next === undefined ? { item } : { item, next };
  return { ok: true, data };
}
