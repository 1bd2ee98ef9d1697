import { setTimeout as sleep } from 'node:timers/promises';
import { type ReplyBody, refused } from '#libs/contracts/envelope.ts';
import { refusal } from '#libs/contracts/errors.ts';
import { idBits, idOf, siblingBits } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { prefixed, uuids } from '../rows.ts';

type Step = MessageData<'erase_ledger_texts'>;
export type Erase = (step: Step) => Promise<ReplyBody>;

const pageSize = 500;
const maxNamed = 100;
/** Most erasures finish within this time. Otherwise the step is sent again. */
const waitMs = 1_000;
/** If this process stops, the next request restarts the run. */
const maxRuns = 100;

/**
 * Returns the ledger's step of an erasure (services/accounts/erasure). It checks that none of the client's accounts
 * must be kept, and replaces the texts of their transactions page by page, each page in its own transaction. A row is
 * replaced once, even if the step is repeated. While the erasure is running, the outcome is service_unavailable, which
 * does not end the saga.
 */
export function createErase(pool: Pool): Erase {
  /** Running erasures, and finished ones whose outcome has not been requested. */
  const runs = new Map<string, Promise<ReplyBody>>();
  const start = (name: string, step: Step): Promise<ReplyBody> => {
    const run = eraseTexts(pool, step);
    run.catch(() => undefined);
    runs.set(name, run);
    if (runs.size > maxRuns) runs.delete(runs.keys().next().value ?? '');
    return run;
  };
  return async (step) => {
    const name = JSON.stringify(step);
    const run = runs.get(name) ?? start(name, step);
    try {
      const outcome = await Promise.race([run, sleep(waitMs)]);
      if (!outcome) return underWay;
      runs.delete(name);
      return outcome;
    } catch (error) {
      runs.delete(name);
      throw error;
    }
  };
}

const underWay = refused(refusal('service_unavailable', 'the erasure is under way'));

async function eraseTexts(pool: Pool, { client_id, kept_since }: Step): Promise<ReplyBody> {
  const accounts = await readAccounts(pool, client_id);
  const kept = accounts.flatMap((account) => keptAccount(account, kept_since));
  if (kept.length > 0) {
    const message = `client ${client_id} cannot be erased: ${kept.length} of their accounts must be kept`;
    return refused(refusal('erasure_refused', message, { details: { accounts: kept.slice(0, maxNamed) } }));
  }
  let transactions = 0;
  await pool.query('select erase_batch_texts($1)', [idBits(client_id)]);
  for (const { account_id } of accounts) transactions += await eraseAccount(pool, account_id);
  return { ok: true, data: { transactions } };
}

interface AccountRow {
  account_id: string;
  status: string;
  balance_minor: bigint;
  /** The time at which the account was opened or last posted to. */
  used_at: string;
}

async function readAccounts(pool: Pool, clientId: string): Promise<AccountRow[]> {
  const { rows } = await pool.query<AccountRow>(
    `select account_id, status, balance_minor, greatest(a.created_at,
       (select created_at from entries e where e.account_id = a.account_id and e.sequence = a.last_sequence)) as used_at
     from accounts a where client_id = $1 order by account_id`,
    [idBits(clientId)],
  );
  return rows;
}

function keptAccount({ account_id, status, balance_minor, used_at }: AccountRow, keptSince: string) {
  const reasons = [
    ...(status === 'Inactive' ? [] : ['not_inactive']),
    ...(balance_minor === 0n ? [] : ['has_money']),
    ...(used_at > keptSince ? ['within_retention'] : []),
  ];
  return reasons.length === 0 ? [] : [{ account_id: prefixed('acc', account_id), reasons }];
}

interface TransactionPlace {
  transaction_id: string;
  counterparty_account_id: string | null;
  created_at: string;
}

/**
 * Erases the texts of an account's holds and transactions, including the other legs of its transfers. Returns
 * the number of transactions.
 */
async function eraseAccount(pool: Pool, accountId: string): Promise<number> {
  let erased = 0;
  await pool.query('select erase_hold_texts($1)', [accountId]);
  for (let last: TransactionPlace | undefined; ; ) {
    const { rows }: { rows: TransactionPlace[] } = await pool.query<TransactionPlace>(
      `select transaction_id, counterparty_account_id, created_at from transactions
       where account_id = $1 and (created_at, transaction_id) > ($2, $3) order by created_at, transaction_id limit $4`,
      [
        accountId,
        last?.created_at ?? '-infinity',
        last?.transaction_id ?? '00000000-0000-0000-0000-000000000000',
        pageSize,
      ],
    );
    const ids = rows.flatMap(({ transaction_id, counterparty_account_id }) => {
      const bits = idBits(prefixed('txn', transaction_id));
      return counterparty_account_id === null ? [bits] : [bits, siblingBits(bits)];
    });
    if (ids.length > 0) {
      const { rows: changed } = await pool.query<{ count: number }>('select erase_texts($1, $2::uuid[]) as count', [
        accountId,
        uuids(ids.map((bits) => idOf('transaction', bits))),
      ]);
      erased += changed[0]?.count ?? 0;
    }
    last = rows.at(-1);
    if (rows.length < pageSize) return erased;
  }
}
