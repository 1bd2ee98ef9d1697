import { createHash, randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from '#libs/postgres/pool.ts';

/** The input of a contender's route. Ids are uuids, amounts are in minor units. */
export interface Posting {
  caller: string;
  idempotencyKey: string;
  operationId: string;
  accountId: string;
  /** The receiver of a transfer; undefined for a deposit. */
  toAccountId: string | undefined;
  minor: number;
}

/**
 * Posts durably. Resolves with undefined, or with the reason if the posting was refused or is a repeat. Rejects on a
 * fault.
 */
export type Post = (posting: Posting) => Promise<string | undefined>;

/** A refusal: rolls the transaction back. */
class Refusal extends Error {}

interface Account {
  account_id: string;
  account_number: string;
  status: string;
  currency: string;
  balance_minor: bigint;
  last_sequence: bigint;
}

const refusals = new Set(['account_not_found', 'inactive_account', 'currency_mismatch', 'insufficient_funds']);

/** Posts with one function call per request. */
export function byFunction(pool: Pool): Post {
  return async (posting) => {
    const { caller, idempotencyKey, operationId, accountId, toAccountId, minor } = posting;
    const shared = [caller, idempotencyKey, hashPosting(posting), operationId, accountId];
    try {
      const { rows } = await pool.query<{ reason: string | null }>(
        toAccountId === undefined
          ? {
              name: 'deposit',
              text: 'select deposit($1, $2, $3, $4, $5, $6, $7) as reason',
              values: [...shared, minor, serializeEvent(posting)],
            }
          : {
              name: 'transfer',
              text: 'select transfer($1, $2, $3, $4, $5, $6, $7, $8) as reason',
              values: [...shared, toAccountId, minor, serializeEvent(posting)],
            },
      );
      return rows[0]?.reason ?? undefined;
    } catch (error) {
      if (error instanceof Error && refusals.has(error.message)) return error.message;
      throw error;
    }
  };
}

/** Posts with one transaction of single named statements per request. */
export function byStatements(pool: Pool): Post {
  return async (posting) => {
    const client = await pool.connect();
    try {
      await client.query('begin');
      const reason = await (posting.toAccountId === undefined
        ? deposit(client, posting)
        : transfer(client, posting, posting.toAccountId));
      await client.query('commit');
      return reason;
    } catch (error) {
      await client.query('rollback');
      if (error instanceof Refusal) return error.message;
      throw error;
    } finally {
      client.release();
    }
  };
}

async function transfer(client: PoolClient, posting: Posting, toAccountId: string): Promise<string | undefined> {
  const known = await claim(client, posting);
  if (known !== undefined) return known;
  const { operationId, accountId, minor } = posting;
  const accounts = await lock(client, [accountId, toAccountId]);
  const from = accounts.get(accountId);
  const to = accounts.get(toAccountId);
  if (!from || !to) throw new Refusal('account_not_found');
  if (from.status !== 'Active' || to.status !== 'Active') throw new Refusal('inactive_account');
  if (from.currency !== to.currency) throw new Refusal('currency_mismatch');
  const amount = BigInt(minor);
  if (from.balance_minor < amount) throw new Refusal('insufficient_funds');
  await client.query({
    name: 'transfer_transactions',
    text: `insert into transactions (transaction_id, operation_id, account_id, counterparty_account_id, transaction_type, direction, amount_minor, currency, status)
      values ($1, $2, $3, $4, 'Transfer', 'debit', $5, $6, 'Completed'), ($7, $2, $4, $3, 'Transfer', 'credit', $5, $6, 'Completed')`,
    values: [randomUUID(), operationId, accountId, toAccountId, minor, from.currency, randomUUID()],
  });
  await client.query({
    name: 'transfer_entries',
    text: `insert into entries (account_id, sequence, operation_id, direction, amount_minor, balance_after_minor)
      values ($1, $2, $3, 'debit', $4, $5), ($6, $7, $3, 'credit', $4, $8)`,
    values: [
      accountId,
      from.last_sequence + 1n,
      operationId,
      minor,
      from.balance_minor - amount,
      toAccountId,
      to.last_sequence + 1n,
      to.balance_minor + amount,
    ],
  });
  await move(client, accountId, -minor, 1);
  await move(client, toAccountId, minor, 1);
  await publish(client, 'transfers', posting);
  return undefined;
}

/** Posts a deposit of cash, with the same entries as in the bank: customer, Teller in, Teller out, Vault. */
async function deposit(client: PoolClient, posting: Posting): Promise<string | undefined> {
  const known = await claim(client, posting);
  if (known !== undefined) return known;
  const { operationId, accountId, minor } = posting;
  const accounts = [...(await lock(client, [accountId, tellerId, vaultId])).values()];
  const [customer, teller, vault] = [accountId, tellerId, vaultId].map((id) =>
    accounts.find(({ account_id }) => account_id === id),
  );
  if (!customer || !teller || !vault) throw new Refusal('account_not_found');
  if (customer.status !== 'Active') throw new Refusal('inactive_account');
  const amount = BigInt(minor);
  await client.query({
    name: 'deposit_transaction',
    text: `insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status)
      values ($1, $2, $3, 'Deposit', 'credit', $4, $5, 'Completed')`,
    values: [randomUUID(), operationId, accountId, minor, customer.currency],
  });
  await client.query({
    name: 'deposit_entries',
    text: `insert into entries (account_id, sequence, operation_id, direction, amount_minor, balance_after_minor)
      values ($1, $2, $3, 'credit', $4, $5), ($6, $7, $3, 'credit', $4, $8), ($6, $7 + 1, $3, 'debit', $4, $9), ($10, $11, $3, 'credit', $4, $12)`,
    values: [
      accountId,
      customer.last_sequence + 1n,
      operationId,
      minor,
      customer.balance_minor + amount,
      tellerId,
      teller.last_sequence + 1n,
      teller.balance_minor + amount,
      teller.balance_minor,
      vaultId,
      vault.last_sequence + 1n,
      vault.balance_minor + amount,
    ],
  });
  await move(client, accountId, minor, 1);
  await move(client, tellerId, 0, 2);
  await move(client, vaultId, minor, 1);
  await publish(client, 'transactions', posting);
  return undefined;
}

/** The accounts of every contender, with enough money that no transfer is refused. Their ids are 1 to this number. */
export const accountCount = 1_000;

/** The only Teller and Vault, of USD: account_number TLR-USD and VLT-USD. */
export const tellerId = 'ffffffff-ffff-4fff-8fff-fffffffffff0';
export const vaultId = 'ffffffff-ffff-4fff-8fff-fffffffffff1';

/** Stores the Idempotency-Key. Reports whether it was used before. */
async function claim(client: PoolClient, posting: Posting): Promise<string | undefined> {
  const { rowCount } = await client.query({
    name: 'claim',
    text: 'insert into idempotency_keys (caller, key, fingerprint, operation_id) values ($1, $2, $3, $4) on conflict do nothing',
    values: [posting.caller, posting.idempotencyKey, hashPosting(posting), posting.operationId],
  });
  if (rowCount === 1) return undefined;
  const { rows } = await client.query<{ fingerprint: string }>(
    'select fingerprint from idempotency_keys where caller = $1 and key = $2',
    [posting.caller, posting.idempotencyKey],
  );
  return rows[0]?.fingerprint === hashPosting(posting) ? 'replayed' : 'idempotency_key_reused';
}

async function lock(client: PoolClient, ids: string[]): Promise<Map<string, Account>> {
  const { rows } = await client.query<Account>({
    name: 'lock',
    text: 'select account_id, account_number, status, currency, balance_minor, last_sequence from accounts where account_id = any($1::uuid[]) order by account_id for no key update',
    values: [ids],
  });
  return new Map(rows.map((row) => [row.account_id, row]));
}

async function move(client: PoolClient, accountId: string, minor: number, entries: number): Promise<void> {
  await client.query({
    name: 'move',
    text: 'update accounts set balance_minor = balance_minor + $2, last_sequence = last_sequence + $3 where account_id = $1',
    values: [accountId, minor, entries],
  });
}

async function publish(client: PoolClient, topic: string, posting: Posting): Promise<void> {
  await client.query({
    name: 'publish',
    text: 'insert into outbox (topic, key, payload) values ($1, $2, $3)',
    values: [topic, posting.accountId, serializeEvent(posting)],
  });
}

function serializeEvent({ operationId, accountId, toAccountId, minor }: Posting): string {
  return JSON.stringify({
    operation_id: operationId,
    account_id: accountId,
    to_account_id: toAccountId,
    amount_minor: minor,
    currency: 'USD',
    status: 'Completed',
  });
}

function hashPosting({ accountId, toAccountId, minor }: Posting): string {
  return createHash('sha256')
    .update(`${accountId}|${toAccountId ?? ''}|${minor}`)
    .digest('hex')
    .slice(0, 32);
}
