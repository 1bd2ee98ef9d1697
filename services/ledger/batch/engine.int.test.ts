import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AccountType } from '#libs/contracts/accounts.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { formatId, idBits } from '#libs/contracts/ids.ts';
import { migrate } from '#libs/postgres/migrate.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { createTestDatabase, silent, type TestDatabase } from '#libs/postgres/test/test-database.ts';
import type { Command } from '../domain/decision.ts';
import { answerQuery, type Query } from '../queries/queries.ts';
import { ledgerSchema, migrations } from '../schema.ts';
import * as kit from '../test/test-kit.ts';
import { reversal, testContext, transfer } from '../test/test-kit.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { runBatch } from './engine.ts';

let database: TestDatabase;
let owner: Pool;
let one: Pool;
let two: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  const role = `${database.name}_ledger`;
  await migrate({ ...migrations, owner_url: database.url, role, role_password: 'test-password' }, silent);
  const url = new URL(database.url);
  url.username = role;
  url.password = 'test-password';
  const pool = (target: string, name: string) =>
    createPool(
      // Some tests queue a hundred batches at once.
      { url: target, application_name: name, schema: ledgerSchema, max: 4, connection_timeout_ms: 30_000 },
      silent,
    );
  owner = pool(database.url, 'owner');
  one = pool(url.href, 'ledger one');
  two = pool(url.href, 'ledger two');
});

afterAll(async () => {
  await Promise.all([owner, one, two].map((pool) => pool?.end()));
  await database?.drop();
});

const fresh = () => `${randomBytes(15).toString('hex')}00`;

function opening(type: AccountType, amount: string, currency = 'USD'): { command: Command; id: string } {
  const bits = fresh();
  const id = formatId('account', bits);
  const data = {
    account_id: id,
    client_id: formatId('client', fresh()),
    account_number: `N-${bits}`,
    account_type: type,
    currency,
    status: 'Active' as const,
    initial_deposit: amount,
  };
  return { id, command: { name: 'open_ledger_account', data, context: testContext(bits, { message_id: id }) } };
}
/** Texts with what SQL arrays quote. */
const cash: typeof kit.cash = (type, account, amount, rest, bits = fresh()) =>
  kit.cash(type, account, amount, { description: 'd"\\', ...rest }, bits);

const codes = (replies: ReplyBody[]) =>
  replies.map((reply) => (reply.ok ? (reply.replayed ? 'replayed' : 'done') : reply.refusal.code));

async function open(type: AccountType, amount: string, currency = 'USD'): Promise<string> {
  const { id, command } = opening(type, amount, currency);
  const { replies } = await runBatch(one, [command], 0);
  expect(codes(replies)).toEqual(['done']);
  return id;
}

async function balance(id: string): Promise<string> {
  const reply = await answerQuery(one, {
    name: 'get_ledger_accounts',
    data: { account_ids: [id] },
    context: testContext(fresh()),
  });
  return reply.ok ? ((reply.data as { balance: string }[])[0]?.balance ?? 'none') : 'error';
}

describe('a batch', () => {
  it('posts openings, deposits, transfers, loans, and reversals in one transaction, with their events', async () => {
    const a = opening('Savings', '100');
    const b = opening('Checking', '0');
    const loan = opening('Loan', '40');
    const moved = fresh();
    const { replies } = await runBatch(
      one,
      [
        a.command,
        b.command,
        loan.command,
        cash('Deposit', b.id, '10.5'),
        transfer(a.id, b.id, '25', {}, moved),
        transfer(b.id, loan.id, '5'),
        cash('Withdrawal', a.id, '1000'),
        reversal(formatId('transaction', moved)),
      ],
      3,
    );
    expect(codes(replies)).toEqual(['done', 'done', 'done', 'done', 'done', 'done', 'insufficient_funds', 'done']);
    expect([await balance(a.id), await balance(b.id), await balance(loan.id)]).toEqual(['100.00', '5.50', '35.00']);
    // 2 openings + deposit + 2 × (2 legs + transfer) + failed + 2 reversing legs and their transfer, 3 balances
    const events = await readOutbox(owner);
    expect(events).toHaveLength(2 + 1 + 6 + 1 + 3 + 3);
    const audits = (await owner.query<{ record: string }>('select record from audit_outbox')).rows.map(({ record }) =>
      JSON.parse(record),
    );
    expect(audits).toMatchObject([{ action: 'reverse_transaction', outcome: 'success' }]);
    expect(events.filter(({ topic }) => topic === 'balances')).toHaveLength(3);
    expect(await verifyBooks(owner)).toEqual([]);
  });

  it('recognizes a repeat in the same batch, in a later one, and under another account', async () => {
    const [a, b] = [await open('Savings', '0'), await open('Savings', '0')];
    const bits = fresh();
    const deposit = cash('Deposit', a, '7', { fingerprint: '1'.repeat(32) }, bits);
    expect(codes((await runBatch(one, [deposit, deposit], 0)).replies)).toEqual(['done', 'replayed']);
    expect(codes((await runBatch(two, [deposit], 1)).replies)).toEqual(['replayed']);
    const other = cash('Deposit', b, '7', { fingerprint: '2'.repeat(32) }, `${bits.slice(0, 30)}ab`);
    expect(codes((await runBatch(two, [other], 1)).replies)).toEqual(['idempotency_key_reused']);
    expect([await balance(a), await balance(b)]).toEqual(['7.00', '0.00']);
  });

  it('lets one of two ledgers with the same command win', async () => {
    const [a, b] = [await open('Savings', '50'), await open('Savings', '50')];
    const bits = Array.from({ length: 20 }, fresh);
    const commands = () => bits.map((id, i) => (i % 2 ? transfer(a, b, '1', {}, id) : transfer(b, a, '1', {}, id)));
    const unknownTwice = fresh(); // there is nothing to lock, so only the unique index detects the duplicate
    const rivals = await Promise.all(
      [one, two, one, two].map((pool, slot) =>
        runBatch(
          pool,
          [
            ...commands(),
            cash('Deposit', a, '1', {}, unknownTwice),
            cash('Deposit', b, '2', {}, `${unknownTwice.slice(0, 30)}7f`),
          ],
          slot,
        ),
      ),
    );
    const done = rivals.flatMap(({ replies }) => codes(replies)).filter((code) => code === 'done');
    expect(done.length).toBe(21);
    const { rows } = await owner.query(
      'select count(*)::int as n from transactions where id_key(transaction_id) = any(array(select id_key(id) from unnest($1::uuid[]) id))',
      [[...bits, unknownTwice]],
    );
    expect(rows[0]).toEqual({ n: 21 });
    expect(await verifyBooks(owner)).toEqual([]);
  });

  it('stores the refusal for an unknown account: the command delivered again after its opening moves no money', async () => {
    const rich = await open('Savings', '100');
    const later = opening('Savings', '100');
    const bits = Array.from({ length: 3 }, fresh) as [string, string, string];
    const commands = [
      cash('Deposit', later.id, '60', {}, bits[0]),
      transfer(rich, later.id, '60', {}, bits[1]),
      transfer(later.id, rich, '60', {}, bits[2]),
    ];
    expect(codes((await runBatch(one, commands, 0)).replies)).toEqual(Array(3).fill('account_not_found'));
    await runBatch(one, [later.command], 0);
    const again = (await runBatch(two, commands, 1)).replies;
    expect(again).toMatchObject(Array(3).fill({ ok: false, replayed: true, refusal: { code: 'account_not_found' } }));
    expect([await balance(rich), await balance(later.id)]).toEqual(['100.00', '100.00']);
    const ask = (query: object) => answerQuery(one, { ...query, context: testContext(fresh()) } as Query);
    const failed = {
      ok: true,
      data: { status: 'Failed', failure_code: 'account_not_found', amount: '60', currency: null },
    };
    expect(
      await ask({ name: 'get_transaction', data: { transaction_id: formatId('transaction', bits[0]) } }),
    ).toMatchObject({ ...failed, data: { ...failed.data, account_id: later.id } });
    for (const id of bits.slice(1))
      expect(await ask({ name: 'get_transfer', data: { transfer_id: formatId('transfer', id) } })).toMatchObject(
        failed,
      );
    for (const account_id of [undefined, rich, later.id]) {
      for (const name of ['list_transactions', 'list_transfers']) {
        const page = await ask({ name, data: { account_id, limit: 500, order: 'desc' } });
        expect(JSON.stringify(page)).not.toContain('account_not_found');
      }
    }
    expect(await verifyBooks(owner)).toEqual([]);
  });

  it('posts one of two concurrent reversals, although one does not know the original yet', async () => {
    const a = await open('Savings', '100');
    const bits = fresh();
    const undo = reversal(formatId('transaction', bits));
    expect(codes((await runBatch(one, [undo], 0)).replies)).toEqual(['transaction_not_found']);
    await runBatch(one, [cash('Withdrawal', a, '10', {}, bits)], 0);
    expect(codes((await runBatch(two, [undo], 1)).replies)).toEqual(['transaction_not_found']);
    expect(await balance(a)).toBe('90.00');
    const race = Array.from({ length: 30 }, () => {
      const [id, reversing] = [fresh(), reversal(fresh())];
      if (reversing.name === 'reverse_transaction')
        reversing.data.reverses_transaction_id = formatId('transaction', id);
      return { withdrawal: cash('Withdrawal', a, '1', {}, id), reversing };
    });
    const outcomes = await Promise.all(
      race.map(async ({ withdrawal, reversing }) => {
        const [, ...rivals] = await Promise.all([
          runBatch(one, [withdrawal], 0),
          runBatch(one, [reversing], 0),
          runBatch(two, [reversing], 1),
        ]);
        const [first, second] = rivals.map(({ replies: [reply] }) => (reply?.ok ? 'done' : reply?.refusal.code));
        return first === second;
      }),
    );
    expect(outcomes).toEqual(race.map(() => true));
    expect(await verifyBooks(owner)).toEqual([]);
  });

  it('lets exactly 50 of 100 concurrent withdrawals of 10 from 500 succeed', async () => {
    const a = await open('Savings', '500');
    const batches = Array.from({ length: 20 }, (_, i) =>
      runBatch(
        i % 2 ? one : two,
        Array.from({ length: 5 }, () => cash('Withdrawal', a, '10')),
        i % 2,
      ),
    );
    const all = (await Promise.all(batches)).flatMap(({ replies }) => codes(replies));
    expect(all.filter((code) => code === 'done')).toHaveLength(50);
    expect(all.filter((code) => code === 'insufficient_funds')).toHaveLength(50);
    expect(await balance(a)).toBe('0.00');
    expect(await verifyBooks(owner)).toEqual([]);
  });

  it('commits nothing if its connection is cut during the transaction', async () => {
    // contract: accounts-7, double-entry-1, idempotency-8
    const a = await open('Savings', '0');
    const cut = setInterval(
      () =>
        void owner.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'ledger two' and datname = current_database()",
        ),
      3,
    );
    const ids = Array.from({ length: 200 }, fresh);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        runBatch(
          two,
          ids.slice(i * 10, i * 10 + 10).map((id) => cash('Deposit', a, '1', {}, id)),
          1,
        ),
      ),
    );
    clearInterval(cut);
    expect(outcomes.some((o) => o.status === 'rejected')).toBe(true);
    for (let i = 0; i < 20; i++)
      await runBatch(
        one,
        ids.slice(i * 10, i * 10 + 10).map((id) => cash('Deposit', a, '1', {}, id)),
        0,
      );
    expect(await balance(a)).toBe('200.00');
    expect(await verifyBooks(owner)).toEqual([]);
  });
});

describe('constraints of the database', () => {
  const refused = (sql: string, values: unknown[] = []) =>
    owner.query(sql, values).then(
      () => 'accepted',
      (error: { constraint?: string; code?: string }) => error.constraint ?? error.code,
    );

  it('reject changing or deleting posted rows, even by the owner', async () => {
    // contract: transactions-29
    await open('Savings', '1');
    for (const table of ['entries', 'transactions']) {
      expect(await refused(`update ${table} set created_at = created_at + interval '1 second'`)).toBe('23001');
      expect(await refused(`delete from ${table}`)).toBe('23001');
      expect(await refused(`truncate ${table}`)).toBe('23001');
    }
  });

  it('reject an unbalanced operation, a negative customer balance, and entries that contradict the account', async () => {
    const id = idBits(await open('Savings', '1'));
    const entry = (side: string, direction: string, amount: number) =>
      refused(`insert into entries values ($1, 2, $2, $2, $3, $4, $5, 'USD', 99, now())`, [
        id,
        fresh(),
        direction,
        side,
        amount,
      ]);
    expect(await entry('CR', 'credit', 5)).toBe('entries_balance');
    expect(await refused('update accounts set balance_minor = -1 where account_id = $1', [id])).toBe(
      'customer_balance_not_negative',
    );
  });

  it('change balances only by entries that continue the account, even for the role of the service', async () => {
    const [a, b] = [idBits(await open('Savings', '10')), idBits(await open('Checking', '0'))];
    const insert = (changed: object = {}) => {
      const debit = { sequence: 2, side: 'DR', currency: 'USD', after: 900, at: 'now', ...changed };
      const operation = fresh();
      return refused(
        `insert into entries values ($1, $3, $4, $4, 'debit', $5, 100, $6, $7, $9::timestamptz), ($2, 1, $4, $8, 'credit', 'CR', 100, $6, 100, now())`,
        [a, b, debit.sequence, operation, debit.side, debit.currency, debit.after, fresh(), debit.at],
      );
    };
    const wrong = [{ sequence: 3 }, { after: 901 }, { currency: 'KES' }, { at: new Date(Date.now() - 60_000) }];
    for (const changed of wrong) expect([changed, await insert(changed)]).toEqual([changed, 'entries_follow_account']);
    expect(await insert({ side: 'CR' })).toBe('entries_balance');
    expect(await insert()).toBe('accepted');
    const { rows } = await owner.query(
      'select balance_minor, last_sequence from accounts where account_id = any($1) order by balance_minor desc',
      [[a, b]],
    );
    expect(rows).toEqual([
      { balance_minor: 900n, last_sequence: 2n },
      { balance_minor: 100n, last_sequence: 1n },
    ]);
  });

  it('accept a deposit after the clock was set back, at the time of the account’s last posting', async () => {
    const id = await open('Savings', '10', 'CHF');
    const { rows } = await owner.query<{ last: string }>(
      "update accounts set last_posted_at = last_posted_at + interval '1 hour' where account_id = $1 returning last_posted_at as last",
      [idBits(id)],
    );
    expect(codes((await runBatch(one, [cash('Deposit', id, '1'), cash('Withdrawal', id, '2')], 0)).replies)).toEqual([
      'done',
      'done',
    ]);
    const posted = await owner.query<{ created_at: string }>(
      'select distinct created_at from entries where account_id = $1 and sequence > 1',
      [idBits(id)],
    );
    expect(posted.rows).toEqual([{ created_at: rows[0]?.last }]);
  });

  it('reject entries of one statement whose times decrease', async () => {
    // contract: envelope-14
    const id = idBits(await open('Savings', '10'));
    const entries = (first: string, second: string) =>
      refused(
        `insert into entries select $1, 2 + n, $2, $3, case n when 0 then 'debit' else 'credit' end, case n when 0 then 'DR' else 'CR' end, 100,
           'USD', 900 + n * 100, now() + case n when 0 then $4 else $5 end::interval from generate_series(0, 1) as n`,
        [id, fresh(), fresh(), first, second],
      );
    expect(await entries('2 s', '1 s')).toBe('entries_follow_account');
    expect(await entries('1 s', '2 s')).toBe('accepted');
  });
});

describe('lists', () => {
  it('page by keyset, newest first, with any filter', async () => {
    const [a, b] = [await open('Savings', '1000'), await open('Savings', '0')];
    await runBatch(
      one,
      Array.from({ length: 25 }, (_, i) => transfer(a, b, `${i + 1}`)),
      0,
    );
    const seen: string[] = [];
    let after: { at: string; id: string } | undefined;
    do {
      const reply = await answerQuery(one, {
        name: 'list_transactions',
        data: { account_id: b, limit: 10, order: 'desc', after, min_amount: '5', max_amount: '20.999' },
        context: testContext(fresh()),
      });
      if (!reply.ok) throw new Error('refused');
      const page = reply.data as {
        items: { transaction_id: string; created_at: string; transfer_id: string }[];
        next?: { at: string; id: string };
      };
      seen.push(...page.items.map((t) => t.transaction_id));
      after = page.next;
    } while (after);
    expect(new Set(seen).size).toBe(16);
    const transfers = await answerQuery(one, {
      name: 'list_transfers',
      data: { account_id: a, limit: 500, order: 'asc' },
      context: testContext(fresh()),
    });
    expect(transfers.ok && (transfers.data as { items: unknown[] }).items.length).toBe(25);
    const entries = await answerQuery(one, {
      name: 'list_entries',
      data: { account_id: a, limit: 5, order: 'desc' },
      context: testContext(fresh()),
    });
    expect(entries.ok && (entries.data as { items: { sequence: number }[] }).items.map((e) => e.sequence)).toEqual([
      26, 25, 24, 23, 22,
    ]);
  });
});
