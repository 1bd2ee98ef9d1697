import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { invalidField } from '#libs/contracts/errors.ts';
import type { Position } from '#libs/contracts/message-fields.ts';
import type { Pool } from './pool.ts';

/** Reads lists by page. Each page is a range of an index, so page 10,000 costs as much as page 1. */

/** Collects the conditions of a statement and their parameters. */
export class Where {
  readonly conditions: string[];
  readonly values: unknown[] = [];

  /** Starts with conditions that have no parameters. */
  constructor(...conditions: string[]) {
    this.conditions = conditions;
  }

  /** Adds a condition with `?` for its parameter. */
  add(condition: string, value: unknown): this {
    this.conditions.push(condition.replaceAll('?', this.parameter(value)));
    return this;
  }

  /** Adds column = value for each defined value. */
  equal(values: Record<string, unknown>): this {
    for (const [column, value] of Object.entries(values)) if (value !== undefined) this.add(`${column} = ?`, value);
    return this;
  }

  /** Adds from (inclusive) and to (exclusive) for those that are defined. */
  between(column: string, from: string | undefined, to: string | undefined): this {
    if (from !== undefined) this.add(`${column} >= ?`, from);
    if (to !== undefined) this.add(`${column} < ?`, to);
    return this;
  }

  parameter(value: unknown): string {
    return `$${this.values.push(value)}`;
  }

  toString(): string {
    return this.conditions.length === 0 ? 'true' : this.conditions.join(' and ');
  }
}

export interface PageRequest {
  limit: number;
  order: 'asc' | 'desc';
  after?: Position | undefined;
}

/** `next` is the position after which the next page starts. It is absent on the last page. */
export interface Page<Item> {
  items: Item[];
  next?: Position;
}

/** How a page shows its rows. */
export interface View<Row, Item> {
  item(row: Row): Item;
  position(row: Row): Position;
  /** The bytes that the gateway adds to each item. */
  extraBytes?: number;
}

/** A list ordered by columns that have a common index and are unique together. */
export interface List<Row, Item> extends View<Row, Item> {
  order: string[];
  /** Returns the values of a position for these columns, or undefined if the position does not belong to this list. */
  values(after: Position): unknown[] | undefined;
  select(where: Where, order: string, limit: string): string;
}

/** Reads one page. Returns undefined for a position of another list. */
export async function readPage<Row extends object, Item>(
  pool: Pool,
  where: Where,
  list: List<Row, Item>,
  { limit, order, after }: PageRequest,
): Promise<Page<Item> | undefined> {
  const values = after && list.values(after);
  if (after && !values) return undefined;
  if (values)
    where.conditions.push(
      `(${list.order.join(', ')}) ${order === 'asc' ? '>' : '<'} (${values.map((value) => where.parameter(value)).join(', ')})`,
    );
  const columns = list.order.map((column) => `${column} ${order}`).join(', ');
  const statement = list.select(where, columns, where.parameter(limit + 1));
  return cutPage((await pool.query<Row>(statement, where.values)).rows, limit, list);
}

/**
 * A page ends at its limit or at 1 MiB of JSON, whichever comes first (contract: lists-3). 4 KiB are reserved for the
 * JSON around the items.
 */
export const pageBytes = 1024 * 1024 - 4096;

/** Makes a page from rows of which one more than the limit was read. It contains at least one item. */
export function cutPage<Row, Item>(
  rows: Row[],
  limit: number,
  { item: toItem, position, extraBytes = 0 }: View<Row, Item>,
): Page<Item> {
  const items: Item[] = [];
  let bytes = 0;
  for (const row of rows.slice(0, limit)) {
    const item = toItem(row);
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1 + extraBytes;
    if (bytes > pageBytes && items.length > 0) break;
    items.push(item);
  }
  const last = rows[items.length - 1];
  return items.length < rows.length && last !== undefined ? { items, next: position(last) } : { items };
}

export const invalidCursor = refused(invalidField('cursor', 'cursor is not one of this list', 'invalid_cursor'));

/** Returns the reply to a list query. */
export function listed(page: Page<unknown> | undefined): ReplyBody {
  return page ? { ok: true, data: page } : invalidCursor;
}

export interface TableList<Row, Item> extends Omit<List<Row, Item>, 'select'> {
  from: string;
  columns: string;
  /** Conditions without parameters. */
  fixed?: string;
  /** Column = value for each defined value. */
  filters: Record<string, unknown>;
  /** Conditions with `?` for their values; those without a value are omitted. */
  more?: [condition: string, value: string | readonly string[] | undefined][];
  /** A range of the first order column, from (inclusive) to (exclusive). */
  range?: { column: string; from: string | undefined; to: string | undefined };
}

/** Reads one page of a table, and returns the reply to its list query. */
export async function listTable<Row extends object, Item>(
  pool: Pool,
  list: TableList<Row, Item>,
  request: PageRequest,
): Promise<ReplyBody> {
  const { from, columns, fixed = 'true', filters, more = [], range } = list;
  const where = new Where(fixed).equal(filters);
  for (const [condition, value] of more) if (value !== undefined) where.add(condition, value);
  if (range) where.between(range.column, range.from, range.to);
  const select: List<Row, Item>['select'] = (conditions, order, limit) =>
    `select ${columns} from ${from} where ${conditions} order by ${order} limit ${limit}`;
  return listed(await readPage(pool, where, { ...list, select }, request));
}

/** Orders a list by a time and an id. */
export function byTime<Row extends object>(time: keyof Row & string, id: keyof Row & string) {
  return {
    order: [time as string, id as string],
    values: ({ at, id: value }: Position) => (isTime(at) && value.length <= 64 ? [at, value] : undefined),
    position: (row: Row): Position => ({ at: String(row[time]), id: String(row[id]) }),
  };
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Reports whether the text is a position's time. */
export function isTime(at: string): boolean {
  return isoTime.test(at) && !Number.isNaN(Date.parse(at));
}
