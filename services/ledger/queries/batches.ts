import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { commandKey, idBits, idKey, idOf, isId, itemBits } from '#libs/contracts/ids.ts';
import { batchOf, type ItemResult } from '#libs/contracts/resources.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type KeptBatch, resultOf } from '../domain/batches.ts';
import { isTransferLeg, type TransactionRecord } from '../domain/records.ts';
import { readTransactions } from '../rows.ts';

/**
 * Returns a batch as far as it is decided. Its row contains the number of items, whose ids are derived from the
 * batch id. A batch of which nothing was decided is unknown here; a query sent behind the commands of its bucket
 * finds it decided or dead-lettered.
 */
export async function getBatch(pool: Pool, batchId: string, { bound_client_id }: MessageContext): Promise<ReplyBody> {
  if (!isId('batch', batchId)) return notFound(batchId);
  const { rows } = await pool.query<{ outcome: (ReplyBody & { batch: KeptBatch }) | null; dead: boolean }>({
    name: 'get_batch',
    text: `select (select outcome from commands where command_id = $1 and name = 'create_batch') as outcome,
      exists (select from dead_lettered_commands where command_id = $2) as dead`,
    values: [commandKey(batchId), idBits(batchId)],
  });
  const [{ outcome, dead }] = rows as [(typeof rows)[number]];
  if (!outcome) return dead ? deadLettered(batchId) : notFound(batchId);
  const { batch_id, mode, count, bound_client_id: owner } = outcome.batch;
  if (bound_client_id !== undefined && owner !== bound_client_id) return notFound(batchId);
  if (batch_id !== batchId)
    return {
      ok: false,
      refusal: refusal('idempotency_key_reused', 'the Idempotency-Key of this request was used for another request'),
    };
  if (!outcome.ok) return { ok: false, refusal: outcome.refusal };
  const ids = Array.from({ length: count }, (_, index) => idOf('transaction', itemBits(batch_id, index)));
  const records = new Map((await readTransactions(pool, ids)).map((record) => [idKey(record.transaction_id), record]));
  return {
    ok: true,
    data: batchOf(
      batch_id,
      mode,
      ids.map((id, index) => itemOf(index, records.get(idKey(id)))),
    ),
  };
}

function itemOf(index: number, record: TransactionRecord | undefined): ItemResult {
  return record === undefined
    ? { index, status: 'Pending' }
    : resultOf(index, isTransferLeg(record) ? 'create_transfer' : 'create_transaction', record);
}

function notFound(batchId: string): ReplyBody {
  return { ok: false, refusal: refusal('batch_not_found', `batch ${batchId} not found`) };
}

function deadLettered(batchId: string): ReplyBody {
  return {
    ok: false,
    refusal: refusal(
      'service_unavailable',
      `the outcome of ${batchId} is not known yet: its command was dead-lettered, and an operator must redrive or drop it`,
    ),
  };
}
