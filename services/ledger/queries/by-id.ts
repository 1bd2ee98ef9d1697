import { buildBatch, type ItemResult } from '#libs/contracts/batches.ts';
import { type MessageContext, type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { deadLettered, refusal } from '#libs/contracts/errors.ts';
import {
  approvalKey,
  commandKey,
  creditLegId,
  debitLegId,
  formatId,
  idKey,
  isId,
  itemBits,
} from '#libs/contracts/ids.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type BatchRecord, toItemResult } from '../domain/batches.ts';
import { isOfTransfer, isTransferLeg, type TransactionRecord } from '../domain/records.ts';
import {
  batchColumns,
  fromUndecided,
  prefixed,
  qualifyColumns,
  readOutcomes,
  readTransactions,
  toBatchHead,
} from '../rows.ts';
import { bits, type FoundRow, linked, listedColumns, toListed, toTransferSeen } from './lists.ts';

/** Reads a transaction, a transfer, or a batch by its id. */

/**
 * Reads a transaction by id, whose last byte may differ (`exact` reports that). A bound caller sees
 * transactions on its own accounts, and the outcomes of its own requests on other accounts, because those must
 * not be unknown after a 202.
 */
async function readOne(
  pool: Pool,
  transactionId: string,
  { bound_client_id, actor }: MessageContext,
): Promise<FoundRow | undefined> {
  const { rows } = await pool.query<FoundRow>({
    name: 'get_transaction',
    text: `select ${listedColumns}, ${linked}, t.transaction_id = $1::uuid as exact from transactions t
      where id_key(t.transaction_id) = id_key($1::uuid)
        and ($2::uuid is null or (t.actor = $3 and t.status = 'Failed') or exists (select from accounts a where a.account_id = t.account_id and a.client_id = $2))`,
    values: [bits('transaction', transactionId), bits('client', bound_client_id), actor],
  });
  return rows[0];
}

/**
 * The id belongs to a request whose Idempotency-Key had been used with another account. The request received a
 * 202 because this was not yet known, and this refusal is its outcome.
 */
const keyReused = refused(
  refusal('idempotency_key_reused', 'the Idempotency-Key of this request was used for another request'),
);

export async function getTransaction(pool: Pool, id: string, context: MessageContext): Promise<ReplyBody> {
  const row = isId('transaction', id) ? await readOne(pool, id, context) : undefined;
  if (row && !row.exact && row.idempotency_key !== null) return keyReused;
  return row?.exact ? { ok: true, data: toListed(row, context.bound_client_id) } : unknown(pool, id, 'transaction');
}

export async function getTransfer(pool: Pool, id: string, context: MessageContext): Promise<ReplyBody> {
  // The owner of the destination may also see the transfer.
  const row = isId('transfer', id)
    ? ((await readOne(pool, debitLegId(id), context)) ?? (await readOne(pool, creditLegId(id), context)))
    : undefined;
  const isTransfer = row && isOfTransfer(row);
  if (isTransfer && !row.exact && row.idempotency_key !== null) return keyReused;
  return isTransfer && row.exact
    ? { ok: true, data: toTransferSeen(row, context.bound_client_id) }
    : unknown(pool, id, 'transfer');
}

/**
 * Returns a batch as far as it is decided. Its row contains the number of items, whose ids are derived from the
 * batch id. A batch of which nothing was decided is unknown here; a query sent behind the commands of its bucket
 * finds it decided or dead-lettered.
 */
export async function getBatch(pool: Pool, batchId: string, { bound_client_id }: MessageContext): Promise<ReplyBody> {
  const { rows } = await pool.query<BatchRecord & { outcome: ReplyBody }>({
    name: 'get_batch',
    text: `select ${qualifyColumns('b', batchColumns)}, c.outcome from batches b join commands c using (command_id) where b.command_id = $1`,
    values: [isId('batch', batchId) ? commandKey(batchId) : null],
  });
  const [row] = rows;
  if (!row) return unknown(pool, batchId, 'batch');
  const { outcome, item_count, bound_client_id: owner } = row;
  if (bound_client_id !== undefined && (owner === null || prefixed('cli', owner) !== bound_client_id))
    return notFound(batchId, 'batch');
  const head = toBatchHead(row);
  if (head.batch_id !== batchId) return keyReused;
  if (!outcome.ok) return refused(outcome.refusal);
  const ids = Array.from({ length: item_count }, (_, index) => formatId('transaction', itemBits(batchId, index)));
  const records = new Map((await readTransactions(pool, ids)).map((record) => [idKey(record.transaction_id), record]));
  return {
    ok: true,
    data: buildBatch(
      head,
      ids.map((id, index) => toResult(index, records.get(idKey(id)))),
    ),
  };
}

function toResult(index: number, record: TransactionRecord | undefined): ItemResult {
  return record === undefined
    ? { index, status: 'Pending' }
    : toItemResult(index, isTransferLeg(record) ? 'create_transfer' : 'create_transaction', record);
}

/**
 * The request that waits may have received a 202 or 504 before this was known, so that nobody requested an approval. Only
 * its repeat does.
 */
const toRequestApproval =
  'a second person must approve this, and nothing was executed: unless an approval of it was requested, send the request again, with the same Idempotency-Key if it had one';

type Kind = 'transaction' | 'transfer' | 'batch' | 'hold' | 'till';

/**
 * Returns the reply for an id under which the caller sees nothing: there was no such command, or it was refused, or it
 * waits for an approval, or it was dead-lettered and is undecided, or it concerns others.
 */
export async function unknown(pool: Pool, id: string, kind: Kind): Promise<ReplyBody> {
  if (!isId(kind, id)) return notFound(id, kind);
  const waiting = (await readOutcomes(pool, [approvalKey(id)])).get(approvalKey(id));
  if (waiting) return refused(refusal('approval_required', toRequestApproval));
  const { rows } = await pool.query<{ is_dead: boolean; is_decided: boolean }>({
    name: 'unknown',
    text: `select exists (select ${fromUndecided} and d.command_id = $1::uuid) as is_dead,
      exists (select from transactions where id_key(transaction_id) = id_key($1::uuid))
        or exists (select from commands where command_id = $2::uuid) as is_decided`,
    values: [bits(kind, id), commandKey(id)],
  });
  const [row] = rows;
  if (row?.is_dead) return refused(deadLettered(id));
  return row?.is_decided ? notFound(id, kind) : { ...notFound(id, kind), unseen: true };
}

function notFound(id: string, kind: Kind): ReplyBody & { ok: false } {
  return refused(refusal(`${kind}_not_found`, `${kind} ${id} not found`));
}
