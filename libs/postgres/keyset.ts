import type { Position } from '#libs/contracts/messages.ts';
import { cutPage, type Page } from '#libs/contracts/page.ts';
import type { Pool } from './pool.ts';

/** Collects the conditions of a statement and their parameters. */
export class Where {
  readonly conditions: string[] = [];
  readonly values: unknown[] = [];

  /** `condition` with `?` for the parameter. */
  add(condition: string, value: unknown): this {
    this.conditions.push(condition.replaceAll('?', this.parameter(value)));
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

/** A list, ordered by columns that have an index together and no two equal rows. */
export interface List<Row, Item> {
  order: string[];
  /** The values of a position for these columns; undefined where the position is none of this list. */
  values(after: Position): unknown[] | undefined;
  position(row: Row): Position;
  item(row: Row): Item;
  select(where: Where, order: string, limit: string): string;
  /** Bytes that the gateway adds to each item. */
  extraBytes?: number;
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** True for the time of a position. */
export function isTime(at: string): boolean {
  return isoTime.test(at) && !Number.isNaN(Date.parse(at));
}

/** One page, read as a range of the index: page 10,000 costs what page 1 costs. Undefined for a position of another list. */
export async function readPage<Row extends object, Item>(pool: Pool, where: Where, list: List<Row, Item>, { limit, order, after }: PageRequest): Promise<Page<Item> | undefined> {
  if (after) {
    const values = list.values(after);
    if (!values) return undefined;
    where.conditions.push(`(${list.order.join(', ')}) ${order === 'asc' ? '>' : '<'} (${values.map((value) => where.parameter(value)).join(', ')})`);
  }
  const columns = list.order.map((column) => `${column} ${order}`).join(', ');
  const statement = list.select(where, columns, where.parameter(limit + 1));
  const { rows } = await pool.query<Row>(statement, where.values);
  return cutPage(rows, limit, list.item, list.position, list.extraBytes);
}
