import type { Till } from '#libs/contracts/tills.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { addCash, type TillState } from './domain/tills.ts';
import { prefixed, uuids } from './rows.ts';

/** What tills have taken and paid, for closing and for reading them. */

interface CashRow {
  till_id: string;
  currency: string;
  direction: 'in' | 'out';
  /** numeric */
  minor: string;
  count: bigint;
}

/** Returns by currency what these sums say of the till. Pure. */
export function cashOf({ till_id }: Pick<Till, 'till_id'>, sums: readonly CashRow[]): TillState['cash'] {
  const state = { cash: new Map() as TillState['cash'] };
  for (const { currency, direction, minor, count } of sums.filter((sum) => sum.till_id === till_id))
    addCash(state, currency, direction, BigInt(minor), Number(count));
  return state.cash;
}

/** Returns what these tills have taken and paid; of no tills, without a query. */
export async function readCash(client: Pick<Queries, 'query'>, ids: readonly string[]): Promise<CashRow[]> {
  if (ids.length === 0) return [];
  const { rows } = await client.query<CashRow>(
    `select till_id, currency, direction, sum(amount_minor) as minor, count(*) as count from till_postings
     where till_id = any($1::uuid[]) group by till_id, currency, direction`,
    [uuids([...ids])],
  );
  return rows.map((row) => ({ ...row, till_id: prefixed('til', row.till_id) }));
}
