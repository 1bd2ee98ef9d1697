import type { Position } from '#libs/contracts/messages.ts';
import {
  isTime,
  type List,
  type Page,
  type PageRequest,
  readPage as readKeysetPage,
  Where,
} from '#libs/postgres/keyset.ts';
import type { Pool } from '#libs/postgres/pool.ts';

export interface PageSource<Row, Item> extends Omit<List<Row, Item>, 'select'> {
  from: string;
  columns: string;
  /** Conditions without parameters. */
  fixed?: string;
  /** Column = value, for each defined value. */
  filters: Record<string, string | undefined>;
  /** Conditions with `?` for their values; those without a value are omitted. */
  more?: [condition: string, value: string | undefined][];
  /** A range of the first order column, from (inclusive) to (exclusive). */
  range?: { column: string; from: string | undefined; to: string | undefined };
}

/** Orders a list by (created_at, id). */
export function byCreation<Row extends { created_at: string }>(id: keyof Row & string) {
  return byTime<Row>('created_at', id);
}

/** Orders a list by a time and an id. */
export function byTime<Row extends object>(time: keyof Row & string, id: keyof Row & string) {
  return {
    order: [time as string, id as string],
    values: ({ at, id: value }: Position) => (isTime(at) && value.length <= 64 ? [at, value] : undefined),
    position: (row: Row): Position => ({ at: String(row[time]), id: String(row[id]) }),
  };
}

/** Reads one page of a table. Returns undefined for a position of another list. */
export function readPage<Row extends object, Item>(
  pool: Pool,
  source: PageSource<Row, Item>,
  request: PageRequest,
): Promise<Page<Item> | undefined> {
  const { from, columns, fixed = 'true', filters, more = [], range } = source;
  const where = new Where(fixed).equal(filters);
  for (const [condition, value] of more) if (value !== undefined) where.add(condition, value);
  if (range) where.between(range.column, range.from, range.to);
  const select: List<Row, Item>['select'] = (conditions, order, limit) =>
    `select ${columns} from ${from} where ${conditions} order by ${order} limit ${limit}`;
  return readKeysetPage(pool, where, { ...source, select }, request);
}
