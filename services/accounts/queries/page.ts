import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import type { Position } from '#libs/contracts/messages.ts';
import { cutPage } from '#libs/contracts/page.ts';
import type { Pool } from '#libs/postgres/pool.ts';

export interface PageRequest {
  limit: number;
  order: 'asc' | 'desc';
  after?: Position | undefined;
}

export interface PageSource<Row, Item> {
  from: string;
  columns: string;
  /** Conditions without parameters. */
  fixed?: string;
  /** Column = value; undefined ones are left out. */
  filters: Record<string, string | undefined>;
  /** The first column of the order, from (inclusive) and to (exclusive). */
  range?: { column: string; from: string | undefined; to: string | undefined };
  /** The columns of the order, and the values of a position for them; undefined where the position is none of this list. */
  order: string[];
  values(after: Position): unknown[] | undefined;
  position(row: Row): Position;
  item(row: Row): Item;
  /** Bytes that the gateway adds to each item. */
  extraBytes?: number;
}

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Order and positions of lists by (created_at, id). */
export function byCreation<Row extends { created_at: string }>(id: keyof Row & string) {
  return byTime<Row>('created_at', id);
}

/** Order and positions of lists by a time and an id. */
export function byTime<Row extends object>(time: keyof Row & string, id: keyof Row & string) {
  return {
    order: [time as string, id as string],
    values: ({ at, id: value }: Position) => (isoTime.test(at) && !Number.isNaN(Date.parse(at)) && value.length <= 64 ? [at, value] : undefined),
    position: (row: Row): Position => ({ at: String(row[time]), id: String(row[id]) }),
  };
}

/**
 * One page, read as a range of an index: page 10,000 costs what page 1 costs. Undefined for a position of another list.
 */
export async function readPage<Row extends object, Item>(pool: Pool, source: PageSource<Row, Item>, request: PageRequest): Promise<{ items: Item[]; next?: Position } | undefined> {
  const parameters: unknown[] = [];
  const parameter = (value: unknown) => `$${parameters.push(value)}`;
  const conditions = source.fixed === undefined ? [] : [source.fixed];
  for (const [column, value] of Object.entries(source.filters)) {
    if (value !== undefined) conditions.push(`${column} = ${parameter(value)}`);
  }
  const { column = '', from, to } = source.range ?? {};
  if (from !== undefined) conditions.push(`${column} >= ${parameter(from)}`);
  if (to !== undefined) conditions.push(`${column} < ${parameter(to)}`);
  if (request.after) {
    const values = source.values(request.after);
    if (!values) return undefined;
    conditions.push(`(${source.order.join(', ')}) ${request.order === 'asc' ? '>' : '<'} (${values.map(parameter).join(', ')})`);
  }
  const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : '';
  const order = source.order.map((column) => `${column} ${request.order}`).join(', ');
  const limit = parameter(request.limit + 1);
  const result = await pool.query<Row>(`select ${source.columns} from ${source.from} ${where} order by ${order} limit ${limit}`, parameters);
  return cutPage(result.rows, request.limit, source.item, source.position, source.extraBytes);
}

const badCursor: ReplyBody = { ok: false, refusal: refusal('invalid_cursor', 'the cursor is not one of this list') };

/** The reply that a page is. */
export function listed(page: object | undefined): ReplyBody {
  return page ? { ok: true, data: page } : badCursor;
}
