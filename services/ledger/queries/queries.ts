import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { type ErrorCode, refusal } from '#libs/contracts/errors.ts';
import { isId } from '#libs/contracts/ids.ts';
import type { MessageData, MessageName, MessageOn, MessageResult } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { listed } from '#libs/postgres/keyset.ts';
import { outboxStats } from '#libs/postgres/outbox/relay-read.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { readTime } from '#libs/postgres/time.ts';
import { readLastVerification } from '#libs/service/verifications.ts';
import { bankZone } from '../domain/calendar.ts';
import { systemAccountNumber } from '../domain/chart.ts';
import { prefixed, systemAccountId, uuids } from '../rows.ts';
import { availableMinor } from './available.ts';
import { getAccountBalance } from './balance.ts';
import { listBatches } from './batches.ts';
import { getBatch, getTransaction, getTransfer, unknown } from './by-id.ts';
import { getCashDays } from './cash-days.ts';
import { getAccountDays } from './daily.ts';
import { getDayClosing, getTrialBalance, listBalances, listDayClosings, listDayLines } from './days.ts';
import { checkErasure } from './erasable.ts';
import { getHold, listHolds } from './holds.ts';
import { getAccountLimits } from './limits.ts';
import { bits, listEntries, listTransactions, listTransfers } from './lists.ts';
import { searchPostings } from './search.ts';
import { getStaffDay } from './staff-days.ts';
import { getStatement } from './statement.ts';
import { getPostingStatistics, getPostingTotals } from './statistics.ts';
import { getTill, listTills } from './tills.ts';
import { getTimeline } from './timeline.ts';

type Handler<N extends MessageName> = (pool: Pool, data: MessageData<N>, context: MessageContext) => Promise<ReplyBody>;

/** One handler per query. Each runs one statement, so that it sees one snapshot, and throws only if the database fails. */
const queryHandlers = {
  get_time: async (pool) => done({ time: new Date(await readTime(pool)).toISOString(), time_zone: bankZone() }),
  get_ledger_accounts: async (pool, data, context) => done((await getLedgerAccounts(pool, [{ data, context }]))[0]),
  get_balance_by_number: async (pool, { account_number: number }, { bound_client_id }) =>
    found(
      await getBalanceByNumber(pool, number, bound_client_id),
      'account_not_found',
      `account number ${number} not found`,
    ),
  list_transactions: async (pool, data, { bound_client_id }) =>
    listed(await listTransactions(pool, data, bound_client_id)),
  get_transaction: (pool, { transaction_id }, context) => getTransaction(pool, transaction_id, context),
  list_transfers: async (pool, data, { bound_client_id }) => listed(await listTransfers(pool, data, bound_client_id)),
  get_transfer: (pool, { transfer_id }, context) => getTransfer(pool, transfer_id, context),
  get_hold: async (pool, { hold_id }, { bound_client_id }) => {
    const hold = await getHold(pool, hold_id, bound_client_id);
    return hold ? done(hold) : unknown(pool, hold_id, 'hold');
  },
  list_holds: (pool, data, { bound_client_id }) => listHolds(pool, data, bound_client_id),
  get_batch: (pool, { batch_id }, context) => getBatch(pool, batch_id, context),
  list_batches: async (pool, data, { bound_client_id }) => listed(await listBatches(pool, data, bound_client_id)),
  get_account_limits: async (pool, { account_id }) =>
    found(await getAccountLimits(pool, account_id), 'account_not_found', `account_id ${account_id}: account not found`),
  list_posted: async (pool, _data, { actor }) => done(await listPosted(pool, actor)),
  list_entries: (pool, data, { bound_client_id }) => listEntries(pool, data, bound_client_id),
  get_account_balance: (pool, data, { bound_client_id }) => getAccountBalance(pool, data, bound_client_id),
  get_account_days: (pool, data, { bound_client_id }) => getAccountDays(pool, data, bound_client_id),
  get_statement: (pool, data, { bound_client_id }) => getStatement(pool, data, bound_client_id),
  search_postings: async (pool, { q }) => done(await searchPostings(pool, q)),
  get_ledger_operations: async (pool) => done(await getOperations(pool)),
  get_posting_statistics: (pool, data, { time }) => getPostingStatistics(pool, data, time),
  get_posting_totals: (pool, data, { time }) => getPostingTotals(pool, data, time),
  get_cash_days: async (pool, data, { time }) => done(await getCashDays(pool, data, time)),
  get_staff_day: async (pool, data, { time }) => done(await getStaffDay(pool, data, time)),
  get_till: (pool, { till_id }) => getTill(pool, till_id),
  list_tills: (pool, data) => listTills(pool, data),
  get_timeline: async (pool, { transaction_id: id }) =>
    found(await getTimeline(pool, id), 'transaction_not_found', `transaction ${id} not found`),
  check_erasure: (pool, data) => checkErasure(pool, data),
  get_trial_balance: (pool, data) => getTrialBalance(pool, data),
  list_balances: (pool, data) => listBalances(pool, data),
  list_day_closings: (pool, data) => listDayClosings(pool, data),
  get_day_closing: (pool, data) => getDayClosing(pool, data),
  list_day_lines: (pool, data) => listDayLines(pool, data),
  get_system_accounts: async (pool) => done(await getSystemAccounts(pool)),
} satisfies { [N in Exclude<MessageOn<'ledger.queries'>, 'verify_books'>]: Handler<N> };

type QueryName = keyof typeof queryHandlers;
export type Query = { [N in QueryName]: { name: N; data: MessageData<N>; context: MessageContext } }[QueryName];

export function answerQuery(pool: Pool, { name, data, context }: Query): Promise<ReplyBody> {
  return (queryHandlers[name] as Handler<MessageName>)(pool, data, context);
}

function done(data: unknown): ReplyBody {
  return { ok: true, data };
}

function found(data: unknown, code: ErrorCode, message: string): ReplyBody {
  return data === undefined ? refused(refusal(code, message)) : { ok: true, data };
}

interface AccountView {
  account_id: string;
  account_number: string;
  currency: string;
  status: 'Active' | 'Inactive' | 'Frozen';
  balance_minor: bigint;
}

export interface AccountsQuery {
  data: MessageData<'get_ledger_accounts'>;
  context: Pick<MessageContext, 'bound_client_id'>;
}

/** Returns, for each of these queries, balance and status of the accounts among its ids that its caller may see. */
export async function getLedgerAccounts(
  pool: Pool,
  queries: readonly AccountsQuery[],
): Promise<MessageResult<'get_ledger_accounts'>[]> {
  const ids = new Set(queries.flatMap(({ data }) => data.account_ids.filter((id) => isId('account', id))));
  const { rows } = await pool.query<
    AccountView & { client_id: string; available_minor: bigint; status_version: number }
  >({
    name: 'get_ledger_accounts',
    text: `select account_id, client_id, account_number, currency, status, status_version, balance_minor, ${availableMinor} as available_minor
      from accounts a where account_id = any($1::uuid[]) and client_id is not null`,
    values: [uuids([...ids])],
  });
  const known = rows.map(({ client_id, balance_minor, available_minor, account_id, ...rest }) => ({
    owner: prefixed('cli', client_id),
    account: {
      ...rest,
      account_id: prefixed('acc', account_id),
      balance: fromMinor(balance_minor, rest.currency),
      available_balance: fromMinor(available_minor, rest.currency),
    },
  }));
  const byId = new Map(known.map((one) => [one.account.account_id, one]));
  return queries.map(({ data, context: { bound_client_id: bound } }) =>
    data.account_ids.flatMap((id) => {
      const found = byId.get(id);
      return found && (bound === undefined || bound === found.owner) ? [found.account] : [];
    }),
  );
}

async function getBalanceByNumber(
  pool: Pool,
  accountNumber: string,
  bound: string | undefined,
): Promise<MessageResult<'get_balance_by_number'> | undefined> {
  if (accountNumber.includes('\0')) return undefined;
  const { rows } = await pool.query<AccountView>({
    name: 'get_balance_by_number',
    text: `select account_id, account_number, currency, balance_minor from accounts
      where account_number = $1 and client_id is not null and ($2::uuid is null or client_id = $2)`,
    values: [accountNumber, bits('client', bound)],
  });
  const [row] = rows;
  return (
    row && {
      account_id: prefixed('acc', row.account_id),
      account_number: row.account_number,
      balance: fromMinor(row.balance_minor, row.currency),
      currency: row.currency,
    }
  );
}

/** Returns what this person posted without approval on their latest day in each currency. */
async function listPosted(pool: Pool, actor: string): Promise<MessageResult<'list_posted'>> {
  const { rows } = await pool.query<{ currency: string; day: string; amount_minor: string }>({
    name: 'list_posted',
    text: 'select currency, day::text, amount_minor::text from posted_without_approval where actor = $1 order by currency',
    values: [actor],
  });
  return rows.map(({ currency, day, amount_minor }) => ({
    currency,
    day,
    amount: fromMinor(BigInt(amount_minor), currency),
  }));
}

async function getOperations(pool: Pool): Promise<MessageResult<'get_ledger_operations'>> {
  const [outbox, last_verification, { rows }] = await Promise.all([
    outboxStats(pool),
    readLastVerification(pool),
    // A till is not open for a month, and there is an index by its opening.
    pool.query<{ different: number }>(
      `select count(*)::int as different from tills
       where opened_at > now() - interval '31 days' and closed_at > now() - interval '24 hours'
         and exists (select from json_array_elements(balances) b where (b->>'difference')::numeric <> 0)`,
    ),
  ]);
  return { outbox, last_verification, tills_different: rows[0]?.different ?? 0 };
}

/** Returns Teller and Vault of each currency as the sum of their slots. */
async function getSystemAccounts(pool: Pool): Promise<MessageResult<'get_system_accounts'>> {
  const { rows } = await pool.query<{
    account_id: string;
    account_number: string;
    account_type: 'Teller' | 'Vault';
    currency: string;
    balance_minor: bigint;
  }>(
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
      slots: slots.map((slot) => ({
        account_id: prefixed('acc', slot.account_id),
        account_number: slot.account_number,
        balance: fromMinor(slot.balance_minor, currency),
      })),
    };
  });
}
