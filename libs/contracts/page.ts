import type { ReplyBody } from './envelope.ts';
import { refusal } from './errors.ts';
import type { Position } from './messages.ts';

/** A page ends at its limit or at 1 MiB of JSON, whichever is first (contract: Lists); 4 KiB are left for what surrounds the items. */
export const pageBytes = 1024 * 1024 - 4096;

export interface Page<Item> {
  items: Item[];
  next?: Position;
}

export const invalidCursor: ReplyBody = { ok: false, refusal: refusal('invalid_cursor', 'the cursor is not one of this list') };

/** The reply to a list: its page; undefined for a position of another list. */
export function listed(page: Page<unknown> | undefined): ReplyBody {
  return page ? { ok: true, data: page } : invalidCursor;
}

/**
 * Cuts a page out of rows that were read with one more than the limit. `next` is the position after which the following
 * page goes on; absent on the last page. A page holds at least one item. `extraBytes`: what is added to each item later.
 */
export function cutPage<Row, Item>(
  rows: Row[],
  limit: number,
  toItem: (row: Row) => Item,
  positionOf: (row: Row) => Position,
  extraBytes = 0,
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
  return items.length < rows.length && last !== undefined ? { items, next: positionOf(last) } : { items };
}
