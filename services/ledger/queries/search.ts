import { creditLegId, debitLegId, formatId, idBits, isId } from '#libs/contracts/ids.ts';
import { bitsOfReceipt } from '#libs/contracts/receipts.ts';
import { maxHits, type SearchHit } from '#libs/contracts/search.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { periodOfRequest } from '#libs/service/fresh-ids.ts';
import { isOfTransfer, type TransactionRecord, toTransaction } from '../domain/records.ts';
import { readTransactions, toTransactionRecord, transactionColumns } from '../rows.ts';

/** Searches transactions and transfers for staff, by any text that a user may have. */

/**
 * The number of transactions to scan for a request id or a reference in any case: the newest, or those of a time. An index
 * would make every posting slower.
 */
const scanned = 20_000;

type Matched = Pick<SearchHit, 'matched'>;
type Found = Matched & { record: TransactionRecord };

async function byText(pool: Pool, q: string, given: string): Promise<Found[]> {
  const { rows } = await pool.query<TransactionRecord & Matched>(
    `(select 'reference' as matched, ${transactionColumns} from transactions where reference = any($2) order by created_at desc, transaction_id desc limit ${maxHits})
     union all (select 'external_id', ${transactionColumns} from transactions where external_id = any($3) order by created_at desc, transaction_id desc limit ${maxHits})
     union all (select 'idempotency_key', ${transactionColumns} from transactions where idempotency_key = $1 limit ${maxHits})`,
    [q, [...new Set([q, q.toUpperCase(), q.toLowerCase()])], [...new Set([given, q])]],
  );
  return rows.map(toFound);
}

/** Telephone and account numbers, for which people search most. Their case is that of the index. */
const isNumber = (q: string): boolean => /^\+?[\d ()-]{4,20}$/.test(q);

/** Searches by request id, first at the time that it may contain, and by references in mixed case. */
async function byScan(pool: Pool, q: string): Promise<Found[]> {
  const period = periodOfRequest(q);
  // The bank's own ids are accepted soon after their time, so the first of the period are scanned.
  const found = period ? await scan(pool, q, 'asc', period) : [];
  return found.length > 0 ? found : scan(pool, q, 'desc');
}

async function scan(
  pool: Pool,
  q: string,
  order: 'asc' | 'desc',
  { from, to } = { from: '-infinity', to: 'infinity' },
): Promise<Found[]> {
  const { rows } = await pool.query<TransactionRecord & Matched>(
    `select case when request_id = $1 then 'request_id' else 'reference' end as matched, recent.* from (select ${transactionColumns} from transactions where created_at >= $2 and created_at < $3 order by created_at ${order}, transaction_id ${order} limit ${scanned}) recent
     where request_id = $1 or lower(reference) = lower($1) limit ${maxHits}`,
    [q, from, to],
  );
  return rows.map(toFound);
}

function toFound({ matched, ...row }: TransactionRecord & Matched): Found {
  return { matched, record: toTransactionRecord(row) };
}

async function byId(pool: Pool, q: string): Promise<Found[]> {
  const legs = isId('transaction', q)
    ? [q]
    : isId('transfer', q) || isId('operation', q)
      ? [debitLegId(q), creditLegId(q)]
      : [];
  if (legs.length === 0) return [];
  const isOurs = ({ transaction_id, operation_id }: TransactionRecord): boolean =>
    q.startsWith('txn_') ? transaction_id === q : idBits(operation_id) === idBits(q);
  const records = (await readTransactions(pool, legs)).filter(isOurs);
  return records.map((record) => ({ matched: q.startsWith('opr_') ? 'operation_id' : 'id', record }));
}

/** Searches by receipt number, in the index of ids. */
async function byReceipt(pool: Pool, q: string): Promise<Found[]> {
  const range = bitsOfReceipt(q);
  if (range === undefined) return [];
  const { rows } = await pool.query<TransactionRecord & Matched>({
    name: 'search_receipt',
    text: `select 'receipt_number' as matched, ${transactionColumns} from transactions
      where id_key(transaction_id) between id_key($1::uuid) and id_key($2::uuid) limit ${maxHits}`,
    values: [range.first, range.last],
  });
  return rows.map(toFound);
}

/**
 * Returns at most `maxHits` transactions and `maxHits` transfers. For a transfer id it returns the transfer and
 * its transactions.
 */
export async function searchPostings(pool: Pool, given: string): Promise<SearchHit[]> {
  const q = given.trim();
  let found = await byId(pool, q);
  if (found.length === 0) found = await byReceipt(pool, q);
  if (found.length === 0) found = await byText(pool, q, given);
  if (found.length === 0 && !isNumber(q)) found = await byScan(pool, q);
  const hits = new Map<string, SearchHit>();
  for (const each of found) for (const hit of toHits(each)) if (!hits.has(hit.id)) hits.set(hit.id, hit);
  return [...Map.groupBy(hits.values(), ({ kind }) => kind).values()].flatMap((kind) => kind.slice(0, maxHits));
}

function toHits({ record, matched }: Found): SearchHit[] {
  const { transaction_type, amount, currency, status } = toTransaction(record);
  const { transaction_id, operation_id, direction, created_at, reverses_transaction_id } = record;
  const money = `${amount} ${currency ?? ''}`.trim();
  const title = `${reverses_transaction_id === null ? transaction_type : `Reversal of ${transaction_type}`} ${money}`;
  const transaction: SearchHit = {
    kind: 'transaction',
    id: transaction_id,
    title,
    subtitle: `${status}, ${direction} on ${record.account_id}`,
    matched,
    created_at,
  };
  if (!isOfTransfer(record)) return [transaction];
  const isSource = idBits(transaction_id) === idBits(operation_id);
  const [from, to] = isSource
    ? [record.account_id, record.counterparty_account_id]
    : [record.counterparty_account_id, record.account_id];
  const id = formatId('transfer', idBits(operation_id));
  return [
    transaction,
    {
      kind: 'transfer',
      id,
      title,
      subtitle: `${status}, ${reverses_transaction_id === null ? `from ${from} to ${to}` : `between ${from} and ${to}`}`,
      matched,
      created_at,
    },
  ];
}
