import { type BatchHead, type BatchSummary, batchStatus } from '#libs/contracts/batches.ts';
import { commandKey, isId } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import { pickNames } from '#libs/contracts/names.ts';
import { isTime, type List, type Page, readPage, Where } from '#libs/postgres/keyset.ts';
import type { Pool, Queries } from '#libs/postgres/pool.ts';
import type { BatchRecord } from '../domain/batches.ts';
import { type BatchItems, batchColumns, itemsOfBatch, prefixed } from '../rows.ts';
import { bits } from './lists.ts';

/** A row of `batches`, whose ids are uuids, with the counts of its items. */
type ListedBatch = BatchRecord & { ok: boolean; items: BatchItems };

export function toBatchHead({ batch_id, mode, actor, created_at, bound_client_id, ...names }: BatchRecord): BatchHead {
  const metadata_client_id = bound_client_id && names.metadata && prefixed('cli', bound_client_id);
  return {
    batch_id: prefixed('bat', batch_id),
    mode,
    actor,
    created_at,
    ...pickNames({ ...names, metadata_client_id }),
  };
}

/** Lists batches, newest first. A bound caller sees those of its own client. */
export function listBatches(
  pool: Pool,
  { external_id, ...page }: MessageData<'list_batches'>,
  bound: string | undefined,
): Promise<Page<BatchSummary> | undefined> {
  const where = new Where().equal({ external_id, bound_client_id: bits('client', bound) ?? undefined });
  return readPage(pool, where, batches, page);
}

const batches: List<ListedBatch, BatchSummary> = {
  order: ['created_at', 'batch_id'],
  values: ({ at, id }) => (isTime(at) && isId('batch', id) ? [at, bits('batch', id)] : undefined),
  position: (row) => ({ at: row.created_at, id: prefixed('bat', row.batch_id) }),
  item: toBatchSummary,
  select: (where, order, limit) =>
    `${selectSummaries(`(select ${batchColumns} from batches where ${where} order by ${order} limit ${limit})`)} order by ${order}`,
};

/** Selects the rows of `from`, which has the columns of batches, as ListedBatch. */
export const selectSummaries = (from: string): string =>
  `select b.*, (c.outcome->>'ok')::boolean as ok, items.items
    from ${from} b join commands c using (command_id) cross join lateral (${itemsOfBatch}) items`;

/** Returns the existing batches among these, by id, with the client to which the caller is bound. */
export async function readSummaries(
  queries: Queries,
  ids: readonly string[],
): Promise<Map<string, BatchSummary & { bound_client_id: string | null }>> {
  const { rows } = await queries.query<ListedBatch>(
    selectSummaries(`(select ${batchColumns} from batches where command_id = any($1::uuid[]))`),
    [ids.map(commandKey)],
  );
  return new Map(
    rows.map((row) => {
      const bound_client_id = row.bound_client_id && prefixed('cli', row.bound_client_id);
      return [prefixed('bat', row.batch_id), { ...toBatchSummary(row), bound_client_id }];
    }),
  );
}

function toBatchSummary({ ok, items, item_count, ...row }: ListedBatch): BatchSummary {
  const sum = (kind: 'completed' | 'failed') => items.reduce((total, item) => total + item[kind], 0);
  const [completed, failed] = [sum('completed'), ok ? sum('failed') : item_count];
  const counts = { completed, failed, pending: item_count - completed - failed };
  const totals = items.flatMap(({ currency, completed: count, minor }) =>
    currency === null || count === 0 ? [] : [{ currency, amount: fromMinor(BigInt(minor), currency) }],
  );
  return { ...toBatchHead({ item_count, ...row }), status: ok ? batchStatus(counts) : 'Refused', counts, totals };
}
