import type { BatchSummary } from '#libs/contracts/batches.ts';
import { askedBy } from '#libs/contracts/event-fields.ts';
import type { EventData } from '#libs/contracts/events.ts';
import { commandKey, idBits } from '#libs/contracts/ids.ts';
import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Queries } from '#libs/postgres/pool.ts';
import { batchColumns, type ListedBatch, prefixed, selectListedBatches, toBatchSummary } from '../rows.ts';
import { describePlace, type EventAudit, eventRules, getPublished, noteCopy, readEvents } from './event-checks.ts';
import { differences } from './expected-events.ts';

type BatchEvent = EventData<'corebanking.batch.completed.v1'>;

/** The key under which what is not of one account is counted. */
export const wholeBank = '';

/** Checks events of callers' batches: each tells what the items of its batch came to, when all are decided. */
export async function checkBatches(messages: ReceivedMessage[], audit: EventAudit): Promise<void> {
  const read = readEvents<BatchEvent>('batches', messages, audit);
  if (read.length === 0) return;
  const ids = read.map(({ data }) => data.batch.batch_id);
  const [before, batches] = [await readSummaries(audit.snapshot, ids), await readSummaries(audit.pool, ids)];
  for (const { message, data } of read) {
    const isFirst = noteCopy(message, audit);
    const { batch_id } = data.batch;
    const found = batches.get(batch_id);
    if (found === undefined || found.status === 'Pending') {
      audit.find(eventRules.committed, { ...describePlace(message), batch_id });
      continue;
    }
    const { actor, counts, bound_client_id, ...batch } = found;
    const { completed, failed } = counts;
    const attributes = { key: batch_id, ce_id: idBits(batch_id), ce_type: 'corebanking.batch.completed.v1' };
    const expected = {
      batch: { ...batch, counts: { completed, failed } },
      client_id: bound_client_id,
      ...askedBy({ actor }),
    };
    const wrong = differences(message, data, { attributes, data: expected }, audit.isResent);
    if (wrong.length > 0)
      audit.find(eventRules.same, { ...describePlace(message), batch_id, differs_in: wrong.join(', ') });
    const published = getPublished(wholeBank, audit);
    if (isFirst && (before.get(batch_id)?.status ?? 'Pending') !== 'Pending')
      published.batches = (published.batches ?? 0n) + 1n;
  }
}

/** Returns the existing batches among these, by id, with the client to which the caller is bound. */
async function readSummaries(
  queries: Queries,
  ids: readonly string[],
): Promise<Map<string, BatchSummary & { bound_client_id: string | null }>> {
  const { rows } = await queries.query<ListedBatch>(
    selectListedBatches(`(select ${batchColumns} from batches where command_id = any($1::uuid[]))`),
    [ids.map(commandKey)],
  );
  return new Map(
    rows.map((row) => {
      const bound_client_id = row.bound_client_id && prefixed('cli', row.bound_client_id);
      return [prefixed('bat', row.batch_id), { ...toBatchSummary(row), bound_client_id }];
    }),
  );
}

/** Returns the number of batches of which everything is decided. */
export async function countDecidedBatches(snapshot: Queries): Promise<bigint> {
  const { rows } = await snapshot.query<{ decided: bigint }>({
    text: `select count(*) as decided from (${selectListedBatches('batches')}) b where not ok
      or item_count = (select coalesce(sum((i->>'completed')::int + (i->>'failed')::int), 0) from json_array_elements(items) i)`,
    query_timeout: 3_600_000,
  });
  return rows[0]?.decided ?? 0n;
}
