import { openingTransactionId } from '#libs/contracts/ids.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import type { Cluster } from './cluster.ts';
import type { EventLog } from './event-log.ts';
import { type Attempt, type Journal, type Operation, openedAccount, type Read } from './journal.ts';
import type { Row } from './row.ts';

/** The evidence for the checks of one row. `t0`: the time at which the row began (performance.now). */
export interface Evidence {
  row: Row;
  t0: number;
  /** The time at which the fault began, and the time by which everything must be normal again (performance.now). */
  fault: { from: number; until: number };
  /** The factor for time limits. */
  slowness: number;
  cluster: Cluster;
  journal: Journal;
  events: EventLog;
  pool: Pool;
  /** Operations that were sent in this row, including repeated earlier ones. */
  operations: Operation[];
  /** The responses to them in this row. */
  attempts: { operation: Operation; attempt: Attempt }[];
  reads: Read[];
  /** Customers' balances at the end of the previous row, in minor units. */
  before: Map<string, number>;
  /** The customers' balances after all activity of this row has ended. */
  after: Map<string, number>;
  /** The ledger's rows for these operations, and all rows posted since t0. */
  transactions: LedgerTransaction[];
}

export interface LedgerTransaction {
  transaction_id: string;
  operation_id: string;
  account_id: string;
  direction: 'debit' | 'credit';
  amount_minor: bigint;
  status: 'Completed' | 'Failed';
  failure_code: string | null;
  idempotency_key: string | null;
}

const columns =
  't.transaction_id, t.operation_id, t.account_id, t.direction, t.amount_minor, t.status, t.failure_code, t.idempotency_key';

/**
 * Returns all rows posted since a moment of database time, and every transaction with one of these operations' keys.
 * The first deposit of an opening has no key; its id is known, and it is assigned the key of the opening.
 */
export async function readTransactions(
  pool: Pool,
  since: string,
  operations: Operation[],
): Promise<LedgerTransaction[]> {
  const opened = new Map<string, string>();
  for (const operation of operations) {
    const account = openedAccount(operation);
    if (account !== undefined) opened.set(openingTransactionId(account), operation.key);
  }
  const booked = `with booked as materialized (select distinct transaction_id from v_entries where created_at >= $1)
    select ${columns} from v_transactions t where t.transaction_id in (select transaction_id from booked) or t.idempotency_key = any($2) or t.transaction_id = any($3)`;
  const { rows } = await pool.query<LedgerTransaction>(booked, [
    since,
    operations.map(({ key }) => key),
    [...opened.keys()],
  ]);
  return rows.map((row) => ({
    ...row,
    idempotency_key: row.idempotency_key ?? opened.get(row.transaction_id) ?? null,
  }));
}

/** Returns every customer's balance in minor units, which fit into numbers here. */
export async function readBalances(pool: Pool): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ account_id: string; balance_minor: bigint }>(
    'select account_id, balance_minor from v_accounts where client_id is not null',
  );
  return new Map(rows.map(({ account_id, balance_minor }) => [account_id, Number(balance_minor)]));
}

export async function databaseTime(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ now: string }>('select clock_timestamp() as now');
  return rows[0]?.now ?? '';
}
