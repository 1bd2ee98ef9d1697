import type { Position } from '#libs/contracts/messages.ts';
import type { Page } from '#libs/contracts/page.ts';
import { isTime, type List, type PageRequest, readPage as readKeysetPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';

export interface PageSource<Row, Item> extends Omit<List<Row, Item>, 'select'> {
  from: string;
  columns: string;
  /** Conditions without parameters. */
  fixed?: string;
  /** Column = value; undefined ones are left out. */
  filters: Record<string, string | undefined>;
  /** The first column of the order, from (inclusive) and to (exclusive). */
  range?: { column: string; from: string | undefined; to: string | undefined };
}

/** Order and positions of lists by (created_at, id). */
export function byCreation<Row extends { created_at: string }>(id: keyof Row & string) {
  return byTime<Row>('created_at', id);
}

/** Order and positions of lists by a time and an id. */
export function byTime<Row extends object>(time: keyof Row & string, id: keyof Row & string) {
  return {
    order: [time as string, id as string],
    values: ({ at, id: value }: Position) => (isTime(at) && value.length <= 64 ? [at, value] : undefined),
    position: (row: Row): Position => ({ at: String(row[time]), id: String(row[id]) }),
  };
}

/** One page of a list of one table. Undefined for a position of another list. */
export function readPage<Row extends object, Item>(pool: Pool, source: PageSource<Row, Item>, request: PageRequest): Promise<Page<Item> | undefined> {
  const where = new Where();
  if (source.fixed !== undefined) where.conditions.push(source.fixed);
  for (const [column, value] of Object.entries(source.filters)) {
    if (value !== undefined) where.add(`${column} = ?`, value);
  }
  const { column = '', from, to } = source.range ?? {};
  if (from !== undefined) where.add(`${column} >= ?`, from);
  if (to !== undefined) where.add(`${column} < ?`, to);
  const select: List<Row, Item>['select'] = (conditions, order, limit) => `select ${source.columns} from ${source.from} where ${conditions} order by ${order} limit ${limit}`;
  return readKeysetPage(pool, where, { ...source, select }, request);
}
