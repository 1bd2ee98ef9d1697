import type { Position } from '#libs/contracts/messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';

/** A page ends at its limit or at 1 MiB of JSON, whichever is first; 4 KiB are left for what surrounds the items. */
export const pageBytes = 1024 * 1024 - 4096;

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
  return {
    order: ['created_at', id],
    values: ({ at, id: value }: Position) => (isoTime.test(at) && !Number.isNaN(Date.parse(at)) && value.length <= 64 ? [at, value] : undefined),
    position: (row: Row): Position => ({ at: row.created_at, id: String(row[id]) }),
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
  if (request.after) {
    const values = source.values(request.after);
    if (!values) return undefined;
    conditions.push(`(${source.order.join(', ')}) ${request.order === 'asc' ? '>' : '<'} (${values.map(parameter).join(', ')})`);
  }
  const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : '';
  const order = source.order.map((column) => `${column} ${request.order}`).join(', ');
  const limit = parameter(request.limit + 1);
  const result = await pool.query<Row>(`select ${source.columns} from ${source.from} ${where} order by ${order} limit ${limit}`, parameters);
  return cut(result.rows, source, request.limit);
}

/** The first rows up to limit and pageBytes, at least one; a position where there are more. */
function cut<Row extends object, Item>(rows: Row[], source: PageSource<Row, Item>, limit: number): { items: Item[]; next?: Position } {
  const items: Item[] = [];
  let bytes = 0;
  for (const row of rows.slice(0, limit)) {
    const item = source.item(row);
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1 + (source.extraBytes ?? 0);
    if (items.length > 0 && bytes > pageBytes) break;
    items.push(item);
  }
  const last = rows[items.length - 1];
  return last && rows.length > items.length ? { items, next: source.position(last) } : { items };
}
