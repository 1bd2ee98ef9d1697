import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { idBits } from '#libs/contracts/ids.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { createPool, type Pool, type Queries } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import { mayBePoison } from '#libs/service/poison.ts';
import type { Command } from '../domain/decision.ts';
import type { AccountState } from '../domain/records.ts';
import { getLedgerAccounts } from '../queries/queries.ts';
import { systemAccountId } from '../rows.ts';
import { ledgerSchema, migrations } from '../schema.ts';
import { cash, opening, testAccount, transfer } from '../test/test-kit.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { runBatch } from './engine.ts';

/**
 * Tests the statements of a batch while another connection holds its locks. Every interleaving is forced; none
 * depends on timing.
 */
let database: TestDatabase;
let owner: Pool;
let one: Pool;
let two: Pool;
/** Reads rows in physical order, without an index. */
let scanning: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(
    { ...migrations, owner_url: database.url, role: `${database.name}_ledger`, role_password: 'test-password' },
    silent,
  );
  const pool = (name: string, options: Record<string, string> = {}) =>
    createPool(
      {
        url: database.url,
        application_name: name,
        schema: ledgerSchema,
        max: 4,
        connection_timeout_ms: 30_000,
        lock_timeout_ms: 30_000,
        statement_timeout_ms: 30_000,
        idle_in_transaction_session_timeout_ms: 60_000,
        options,
      },
      silent,
    );
  [owner, one, two] = [pool('owner'), pool('one'), pool('two')];
  scanning = pool('scanning', { enable_indexscan: 'off', enable_bitmapscan: 'off', enable_indexonlyscan: 'off' });
});

afterAll(async () => {
  expect(await verifyBooks(owner)).toEqual([]);
  await Promise.all([owner, one, two, scanning].map((pool) => pool?.end()));
  await database?.drop();
});

let next = 1;
async function open(amount: string, n = next++): Promise<AccountState> {
  await book([opening(n, 'Savings', amount)]);
  return testAccount(n, 'Savings');
}

/** The results of the commands. */
async function book(commands: Command[], pool = one): Promise<string[]> {
  const { replies } = await runBatch(pool, commands, 0);
  return replies.map((reply) => (reply.ok ? (reply.replayed ? 'replayed' : 'done') : reply.refusal.code));
}

async function balance({ account_id }: AccountState, pool = one): Promise<string | undefined> {
  const query = { data: { account_ids: [account_id] }, context: {} };
  return (await getLedgerAccounts(pool, [query]))[0]?.[0]?.balance;
}

/** Returns true as soon as this many transactions wait for a lock, and false after a time limit. */
async function areWaiting(count: number): Promise<boolean> {
  for (let i = 0; i < 200; i++) {
    const { rowCount } = await owner.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (rowCount === count) return true;
    await sleep(20);
  }
  return false;
}

/**
 * Begins a batch while another connection holds the account's row and acts; `release` commits that
 * connection and lets the batch continue.
 */
async function whileHeld(
  account: AccountState,
  commands: Command[],
  { act = async (_: Queries): Promise<unknown> => undefined, pool = one } = {},
) {
  const holder = await owner.connect();
  await holder.query('begin');
  await holder.query('select from accounts where account_id = $1 for no key update', [idBits(account.account_id)]);
  await act(holder);
  const batch = book(commands, pool);
  batch.catch(() => undefined);
  return {
    batch,
    isWaiting: await areWaiting(1),
    async release() {
      await holder.query('commit');
      holder.release();
    },
  };
}

describe('a batch', () => {
  it('waits for the holder of the account lock and decides on the committed state', async () => {
    const a = await open('50');
    const setStatus = (db: Queries, status: string) =>
      db.query('update accounts set status = $2 where account_id = $1', [idBits(a.account_id), status]);
    const freeze = (holder: Queries) => setStatus(holder, 'Frozen');
    const { batch, isWaiting, release } = await whileHeld(a, [cash('Withdrawal', a, '1'), cash('Deposit', a, '1')], {
      act: freeze,
    });
    await release();
    expect([isWaiting, await batch]).toEqual([true, ['inactive_account', 'inactive_account']]);
    expect(await balance(a)).toBe('50.00');
    // No command made this change, which verify-books would find.
    await setStatus(owner, 'Active');
  });

  it('uses the time at which it got the account lock, not the time at which it requested it', async () => {
    const a = await open('50');
    const { batch, isWaiting, release } = await whileHeld(a, [cash('Withdrawal', a, '1')]);
    const { rows } = await owner.query<{ time: string }>(
      "select clock_timestamp() + interval '5 milliseconds' as time, pg_sleep(0.01)",
    );
    await release();
    expect([isWaiting, await batch]).toEqual([true, ['done']]);
    const { rows: entries } = await owner.query<{ created_at: string }>(
      'select created_at from v_entries where account_id = $1 order by sequence',
      [a.account_id],
    );
    expect(Date.parse(entries.at(-1)?.created_at ?? '')).toBeGreaterThan(Date.parse(rows[0]?.time ?? ''));
  });

  it('recognizes a command that another ledger commits while it waits for the account', async () => {
    const a = await open('50');
    const command = cash('Withdrawal', a, '1');
    const { batch, isWaiting, release } = await whileHeld(a, [command]);
    const rival = book([command], two);
    const isRivalWaiting = await areWaiting(2);
    await release();
    expect([isWaiting, isRivalWaiting, (await Promise.all([batch, rival])).flat().sort()]).toEqual([
      true,
      true,
      ['done', 'replayed'],
    ]);
    expect(await balance(a)).toBe('49.00');
  });

  it('recognizes a command that another ledger commits under another account after both have looked for it', async () => {
    const [a, b, id] = [await open('50'), await open('50'), 5_000];
    await owner.query(`create function pause() returns trigger language plpgsql as $$ begin
        if current_setting('application_name') = 'two' then perform pg_advisory_xact_lock(1); end if; return null; end $$;
      create trigger pause before insert on transactions for each statement execute function pause()`);
    const holder = await owner.connect();
    await holder.query('begin; select pg_advisory_xact_lock(1)');
    const late = runBatch(two, [cash('Withdrawal', a, '1', { fingerprint: '1'.repeat(32) }, id)], 1);
    const isWaiting = await areWaiting(1);
    const first = await book([cash('Withdrawal', b, '2', { fingerprint: '2'.repeat(32) }, id)]);
    await holder.query('commit');
    holder.release();
    const [reply] = (await late).replies;
    await owner.query('drop trigger pause on transactions; drop function pause()');
    expect([isWaiting, first, reply]).toEqual([
      true,
      ['done'],
      expect.objectContaining({ ok: false, refusal: expect.objectContaining({ code: 'idempotency_key_reused' }) }),
    ]);
    expect([await balance(a), await balance(b)]).toEqual(['50.00', '48.00']);
  });

  it('a lock timeout is retryable: the error is that of the lock, not of the statements after it', async () => {
    const a = await open('50');
    const impatient = createPool(
      { url: database.url, application_name: 'impatient', schema: ledgerSchema, max: 1, lock_timeout_ms: 2_000 },
      silent,
    );
    const { batch, isWaiting, release } = await whileHeld(a, [cash('Withdrawal', a, '1')], { pool: impatient });
    const error = await batch.catch((reason: unknown) => reason);
    await release();
    await impatient.end();
    expect([isWaiting, error, mayBePoison(error)]).toEqual([true, expect.objectContaining({ code: '55P03' }), false]);
    expect(await balance(a)).toBe('50.00');
  });

  it('locks accounts in id order: while it waits for the first, it has locked no other', async () => {
    const [high, low] = [await open('50', 9000), await open('0', 8000)];
    const { batch, isWaiting, release } = await whileHeld(low, [transfer(high, low, '1')], { pool: scanning });
    const free = await owner.query('select from accounts where account_id = $1 for no key update skip locked', [
      idBits(high.account_id),
    ]);
    await release();
    expect([isWaiting, free.rowCount, await batch]).toEqual([true, 1, ['done']]);
  });

  it('never locks a slot of Teller or Vault named as an account, which is unknown', async () => {
    const slots = [0, 1].map((slot) =>
      ['TLR', 'VLT'].map((prefix) => ({
        ...testAccount(0, 'Savings'),
        account_id: systemAccountId(`${prefix}-USD/${slot}`),
      })),
    );
    const [a, b] = [await open('100'), await open('100')];
    for (const slot of [0, 1]) await runBatch(one, [cash('Deposit', a, '1')], slot);
    const rounds = Array.from({ length: 40 }, () =>
      [a, b].map((account, slot) => {
        const others = slots[1 - slot] ?? [];
        return [
          cash('Deposit', account, '1'),
          ...others.map((named) => transfer(account, named, '1')),
          ...others.map((named) => cash('Deposit', named, '1')),
        ];
      }),
    );
    // Each writer names the other's slots. If they were locked as accounts, before its own, the
    // writers would deadlock.
    const decided = await Promise.allSettled(
      rounds.flatMap((batches) => batches.map((commands, slot) => runBatch(slot === 0 ? one : two, commands, slot))),
    );
    const codes = decided.map((each) =>
      each.status === 'fulfilled'
        ? each.value.replies.map((reply) => (reply.ok ? 'done' : reply.refusal.code))
        : [String(each.reason)],
    );
    expect(codes).toEqual(decided.map(() => ['done', ...Array.from({ length: 4 }, () => 'account_not_found')]));
    const vault = slots[0]?.[1] as AccountState;
    const { batch, isWaiting, release } = await whileHeld(vault, [transfer(a, vault, '1')]);
    await release();
    expect([isWaiting, await batch]).toEqual([false, ['account_not_found']]);
  }, 60_000);

  it('is visible to every read that begins after its reply, on any connection', async () => {
    const a = await open('0');
    for (let n = 1; n <= 10; n++) {
      await book([cash('Deposit', a, '1')], n % 2 ? one : two);
      for (const pool of [one, two, owner]) expect(await balance(a, pool)).toBe(`${n}.00`);
    }
  });

  it('publishes no event of a rolled-back transaction', async () => {
    const a = await open('50');
    const command = cash('Withdrawal', a, '1');
    const events = async () =>
      (await readOutbox(owner)).filter(({ topic, key }) => topic === 'transactions' && key === a.account_id).length;
    await owner.query(`create function lose() returns trigger language plpgsql as $$ begin raise exception 'lost at commit'; end $$;
      create constraint trigger lose after insert on transactions deferrable initially deferred for each row execute function lose()`);
    await expect(book([command])).rejects.toThrow('lost at commit');
    await owner.query('drop trigger lose on transactions; drop function lose()');
    expect([await events(), await balance(a)]).toEqual([1, '50.00']);
    expect(await book([command])).toEqual(['done']);
    expect([await events(), await balance(a)]).toEqual([2, '49.00']);
  });
});
