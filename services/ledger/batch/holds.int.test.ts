import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import type { Hold } from '#libs/contracts/holds.ts';
import { formatId, idBits } from '#libs/contracts/ids.ts';
import { unpackEvents } from '#libs/postgres/outbox/outbox-messages.ts';
import { createPool, type Pool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import type { Command } from '../domain/decision.ts';
import { ledgerSchema } from '../schema.ts';
import { freshBits, startLedger, useLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { runBatch } from './engine.ts';
import { sweepHolds } from './hold-sweeper.ts';

const ledger = useLedger();
/** Two ledgers with the rights of the service's role. */
let one: Pool;
let two: Pool;

beforeAll(async () => {
  const connect = (name: string) =>
    createPool(
      { url: ledger.serviceUrl, application_name: name, schema: ledgerSchema, max: 8, connection_timeout_ms: 30_000 },
      silent,
    );
  [one, two] = [connect('one'), connect('two')];
});
afterAll(async () => {
  await Promise.all([one.end(), two.end()]);
});

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
const holdId = () => formatId('hold', freshBits());
function placing(
  account_id: string,
  amount: string,
  hold_id = holdId(),
  expires_at = inMs(60_000),
  rest: Partial<MessageContext> = {},
): Command {
  const data = { hold_id, account_id, amount, currency: null, description: 'Hotel', reference: 'AUTH-7', expires_at };
  return { name: 'place_hold', data, context: ledger.testContext(idBits(hold_id), { message_id: hold_id, ...rest }) };
}
function capture(
  hold_id: string,
  rest: { amount?: string; to_account_id?: string; final?: boolean } = {},
  bits = freshBits(),
): Command {
  const { amount = null, to_account_id = null, final = true } = rest;
  return {
    name: 'capture_hold',
    data: { transaction_id: formatId('transaction', bits), hold_id, amount, to_account_id, final, description: null },
    context: ledger.testContext(bits),
  };
}
function release(hold_id: string, bits = freshBits()): Command {
  return { name: 'release_hold', data: { hold_id }, context: ledger.testContext(bits, { message_id: `cmd_${bits}` }) };
}

const codes = (replies: ReplyBody[]) =>
  replies.map((reply) => (reply.ok ? (reply.replayed ? 'replayed' : 'done') : reply.refusal.code));
const book = async (commands: Command[], pool = one, slot = 0) => codes((await runBatch(pool, commands, slot)).replies);

async function figures(account_id: string): Promise<[string, string]> {
  const reply = await ledger.ask({ name: 'get_ledger_accounts', data: { account_ids: [account_id] } });
  const [account] = reply.ok ? (reply.data as { balance: string; available_balance: string }[]) : [];
  return [account?.balance ?? '', account?.available_balance ?? ''];
}
async function readHold(hold_id: string, context: Partial<MessageContext> = {}): Promise<Hold> {
  const reply = await ledger.ask({ name: 'get_hold', data: { hold_id } }, context);
  if (!reply.ok) throw new Error(reply.refusal.code);
  return reply.data as Hold;
}
async function events(account_id: string, topic: 'holds' | 'balances') {
  const { rows } = await ledger.owner.query<{ records: Buffer }>(
    'select records from outbox join outbox_batches using (batch_id) order by batch_id',
  );
  return rows
    .flatMap(({ records }) => unpackEvents(records))
    .filter((event) => event.topic === topic && event.key === account_id)
    .map(({ id, type, headers, payload }) => ({
      id,
      type,
      request: headers?.['request-id'],
      ...(JSON.parse(payload ?? '') as {
        hold: Hold;
        hold_version: number;
        available_balance: string;
        sequence: number;
      }),
    }));
}

/** Books the commands on a connection of their own. Returns its statements, with the number of rows that each returned. */
async function seenBy(commands: Command[]): Promise<{ text: string; rows: number }[]> {
  const seen: Promise<{ text: string; rows: number }>[] = [];
  const pool = createPool(
    { url: ledger.serviceUrl, application_name: 'counting', schema: ledgerSchema, max: 1 },
    silent,
  );
  const client = await pool.connect();
  const query = client.query.bind(client) as (...args: unknown[]) => Promise<{ rows?: unknown[] }>;
  Object.assign(client, {
    query: (statement: string | { text: string }, ...rest: unknown[]) => {
      const result = query(statement, ...rest);
      const text = typeof statement === 'string' ? statement : statement.text;
      seen.push(result.then(({ rows }) => ({ text, rows: rows?.length ?? 0 })));
      return result;
    },
  });
  client.release();
  expect(codes((await runBatch(pool, commands, 0)).replies)).toEqual(commands.map(() => 'done'));
  await pool.end();
  return (await Promise.all(seen)).filter(({ text }) => !text.startsWith('set'));
}
const rowsOfHolds = async (commands: Command[]) =>
  (await seenBy(commands)).filter(({ text }) => /^select hold_id, /.test(text)).map(({ rows }) => rows);

describe('a batch', () => {
  it('places, captures, and releases holds in one transaction, each of which sees the previous ones, with their events', async () => {
    const [a, b] = [await ledger.open('Savings', '100'), await ledger.open('Checking', '0')];
    const [first, second] = [holdId(), holdId()];
    expect(
      await book([
        ledger.cash('Deposit', a, '20'),
        placing(a, '70', first),
        placing(a, '50', second),
        ledger.cash('Withdrawal', a, '0.01'),
        placing(a, '1'),
        capture(first, { amount: '30', final: false }),
        capture(first, { to_account_id: b }),
        release(second),
        ledger.cash('Withdrawal', a, '50'),
        capture(second),
      ]),
    ).toEqual([
      'done',
      'done',
      'done',
      'insufficient_funds',
      'insufficient_funds',
      'done',
      'done',
      'done',
      'done',
      'hold_not_active',
    ]);
    expect([await figures(a), await figures(b)]).toEqual([
      ['0.00', '0.00'],
      ['40.00', '40.00'],
    ]);
    expect([await readHold(first), await readHold(second)]).toMatchObject([
      { status: 'Captured', captured_amount: '70.00' },
      { status: 'Released', captured_amount: '0.00' },
    ]);
    expect(
      (await events(a, 'holds')).map(({ type, hold, hold_version, request }) => [
        type,
        hold.hold_id,
        hold_version,
        request,
      ]),
    ).toEqual([
      ['corebanking.hold.placed.v1', first, 1, 'req-1'],
      ['corebanking.hold.placed.v1', second, 2, 'req-1'],
      ['corebanking.hold.captured.v1', first, 3, 'req-1'],
      ['corebanking.hold.captured.v1', first, 4, 'req-1'],
      ['corebanking.hold.released.v1', second, 5, 'req-1'],
    ]);
    expect(await events(b, 'holds')).toEqual([]);
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });

  it('continues with earlier holds, and includes the available balance in balances', async () => {
    const a = await ledger.open('Savings', '100');
    const id = holdId();
    await book([placing(a, '60', id)]);
    expect([await figures(a), await book([ledger.cash('Withdrawal', a, '40.01')])]).toEqual([
      ['100.00', '40.00'],
      ['insufficient_funds'],
    ]);
    expect(await book([capture(id, { amount: '10', final: false })], two, 1)).toEqual(['done']);
    expect(await book([release(id)])).toEqual(['done']);
    expect(
      (await events(a, 'balances')).map(({ available_balance, sequence, hold_version }) => [
        available_balance,
        sequence,
        hold_version,
      ]),
    ).toEqual([
      ['100.00', 1, 0],
      ['40.00', 1, 1],
      ['40.00', 2, 2],
      ['90.00', 2, 3],
    ]);
    const ids = [...(await events(a, 'balances')), ...(await events(a, 'holds'))].map((event) => event.id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });

  it('recognizes repeats in the same and in later batches, and other requests under the same key', async () => {
    const a = await ledger.open('Savings', '100');
    const id = holdId();
    const place = placing(a, '60', id, inMs(60_000), { fingerprint: '1'.repeat(32) });
    const [part, end] = [capture(id, { amount: '10', final: false }), release(id)];
    expect(await book([place, place, part, part, end, end])).toEqual([
      'done',
      'replayed',
      'done',
      'replayed',
      'done',
      'replayed',
    ]);
    expect(await book([place, part, end], two, 1)).toEqual(['replayed', 'replayed', 'replayed']);
    expect(
      await book([{ ...place, context: { ...place.context, fingerprint: '2'.repeat(32) } } as Command], two, 1),
    ).toEqual(['idempotency_key_reused']);
    const refused = [
      placing(a, '999'),
      capture(id),
      capture(holdId()),
      release(holdId()),
      placing(formatId('account', freshBits()), '1'),
    ];
    const first = (await runBatch(one, refused, 0)).replies;
    expect(codes(first)).toEqual([
      'insufficient_funds',
      'hold_not_active',
      'hold_not_found',
      'hold_not_found',
      'account_not_found',
    ]);
    expect((await runBatch(two, refused, 1)).replies).toEqual(first.map((reply) => ({ ...reply, replayed: true })));
    expect(await figures(a)).toEqual(['90.00', '90.00']);
  });

  it('lets one of two ledgers with the same command win, whether the account is known or not', async () => {
    const a = await ledger.open('Savings', '100');
    const id = holdId();
    const commands = [
      placing(a, '1', id),
      capture(id, { amount: '0.50', final: false }),
      release(id),
      placing(formatId('account', freshBits()), '1'),
      release(holdId()),
    ];
    const rivals = await Promise.all([one, two, one, two].map((pool, slot) => runBatch(pool, commands, slot)));
    for (const i of commands.keys())
      expect(rivals.filter(({ replies }) => replies[i]?.replayed !== true).length, `command ${i}`).toBe(1);
    expect(await figures(a)).toEqual(['99.50', '99.50']);
  });

  it('never takes held money, even with many concurrent batches of two ledgers', async () => {
    const [a, b] = [await ledger.open('Savings', '100'), await ledger.open('Savings', '0')];
    const ids = Array.from({ length: 6 }, holdId);
    const rounds = Array.from({ length: 40 }, (_, i) => {
      const id = ids[i % ids.length] ?? '';
      return i < ids.length
        ? [placing(a, '10', id)]
        : [
            ledger.cash('Withdrawal', a, '7'),
            ledger.transfer(a, b, '5'),
            ledger.transfer(b, a, '5'),
            i % 2 ? capture(id, { amount: '3', final: false, to_account_id: b }) : placing(a, '4'),
          ];
    });
    await Promise.all(rounds.map((commands, i) => runBatch(i % 2 ? one : two, commands, i % 2)));
    expect(await verifyBooks(ledger.owner)).toEqual([]);
    const { rows } = await ledger.owner.query(
      'select balance_minor >= held_minor as covered, held_minor > 0 as holds from accounts where account_id = $1',
      [idBits(a)],
    );
    expect(rows).toEqual([{ covered: true, holds: true }]);
  });
});

describe('an expired hold', () => {
  it('does not count from its expiry on, in reads and decisions, swept or not; the next decision records it', async () => {
    // contract: holds-15
    const a = await ledger.open('Savings', '100');
    const [short, long] = [holdId(), holdId()];
    const expires_at = inMs(3000);
    expect(
      await book([placing(a, '60', short, expires_at), placing(a, '30', long), ledger.cash('Withdrawal', a, '11')]),
    ).toEqual(['done', 'done', 'insufficient_funds']);
    expect(await figures(a)).toEqual(['100.00', '10.00']);
    await sleep(Date.parse(expires_at) - Date.now() + 50);
    expect(await figures(a)).toEqual(['100.00', '70.00']);
    expect(await readHold(short)).toMatchObject({ status: 'Expired', updated_at: expires_at });
    const listed = async (status: Hold['status']) => {
      const reply = await ledger.ask({ name: 'list_holds', data: { account_id: a, status, limit: 10, order: 'desc' } });
      return reply.ok ? (reply.data as { items: Hold[] }).items.map(({ hold_id }) => hold_id) : reply.refusal.code;
    };
    const seen = [await listed('Active'), await listed('Expired')];
    expect(seen).toEqual([[long], [short]]);
    expect(await book([capture(short), ledger.cash('Withdrawal', a, '70'), ledger.cash('Withdrawal', a, '1')])).toEqual(
      ['hold_not_active', 'done', 'insufficient_funds'],
    );
    expect([await listed('Active'), await listed('Expired')]).toEqual(seen);
    expect(await readHold(short)).toMatchObject({ status: 'Expired', updated_at: expires_at });
    expect((await events(a, 'holds')).at(-1)).toMatchObject({
      type: 'corebanking.hold.expired.v1',
      request: undefined,
      hold_version: 3,
      hold: { hold_id: short },
    });
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });

  it.each([2, -2])(
    'is not decided, nor anything else, while the clocks of host and database are %i hours apart',
    async (hours) => {
      // contract: idempotency-14
      const a = await ledger.open('Savings', '100');
      const hold = holdId();
      const expires_at = inMs(500);
      await book([placing(a, '10', hold, expires_at)]);
      await sleep(Date.parse(expires_at) - Date.now() + 50);
      const deposit = ledger.cash('Deposit', a, '1');
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3_600_000 });
      try {
        await expect(sweepHolds(one)).rejects.toThrow(/clock is more than 5 s/);
        await expect(book([deposit])).rejects.toThrow(/clock/);
      } finally {
        vi.useRealTimers();
      }
      const readStatus = async () =>
        (await ledger.owner.query('select status from holds where hold_id = $1', [idBits(hold)])).rows[0]?.status;
      expect(await readStatus()).toBe('Active');
      expect(await book([deposit])).toEqual(['done']);
      expect(await readStatus()).toBe('Expired');
    },
  );

  it('is recorded by the sweeper once if nothing else uses the account, however many processes sweep', async () => {
    const accounts = await Promise.all(Array.from({ length: 3 }, () => ledger.open('Savings', '100')));
    const expires_at = inMs(2500);
    await book(
      accounts.flatMap((a) => [
        placing(a, '10', holdId(), expires_at),
        placing(a, '20', holdId(), expires_at),
        placing(a, '5'),
      ]),
    );
    await sleep(Date.parse(expires_at) - Date.now() + 50);
    // Holds are counted, not accounts, so that a sweep that has not seen all of them is followed by the next one.
    expect(Math.max(...(await Promise.all([sweepHolds(one), sweepHolds(two), sweepHolds(one)])))).toBe(6);
    expect(await sweepHolds(one)).toBe(0);
    for (const a of accounts) {
      expect((await events(a, 'holds')).map(({ type }) => type.split('.')[2])).toEqual([
        'placed',
        'placed',
        'placed',
        'expired',
        'expired',
      ]);
      expect((await events(a, 'balances')).at(-1)).toMatchObject({ available_balance: '95.00', hold_version: 5 });
    }
    const { rows } = await ledger.owner.query(
      'select distinct held_minor from accounts where account_id = any($1::uuid[])',
      [accounts.map(idBits)],
    );
    expect(rows).toEqual([{ held_minor: 500n }]);
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });
});

describe('many holds', () => {
  /** Places holds of 0.01, written by the owner, because a thousand commands for each would take long. */
  async function placeMany(accounts: string[], count: number, expires_at: string): Promise<void> {
    await ledger.owner.query(
      `insert into holds (hold_id, account_id, amount_minor, captured_minor, currency, status, actor, request_id, expires_at, created_at, updated_at)
       select gen_random_uuid(), account_id, 1, 0, 'USD', 'Active', 'a', 'r', $3, now(), now()
       from unnest($1::uuid[]) as account_id, generate_series(1, $2::int)`,
      [accounts.map(idBits), count, expires_at],
    );
    await ledger.owner.query(
      `update accounts a set held_minor = h.held, active_holds = h.count, hold_expires_at = h.first_end, hold_version = h.count
       from (select account_id, sum(amount_minor) as held, count(*) as count, min(expires_at) as first_end from holds where status = 'Active' group by account_id) h
       where a.account_id = h.account_id and a.account_id = any($1::uuid[])`,
      [accounts.map(idBits)],
    );
    await ledger.owner.query('analyze holds');
  }
  const statuses = async (accounts: string[]) => {
    const { rows } = await ledger.owner.query(
      'select status, count(*)::int as holds from holds where account_id = any($1::uuid[]) group by status order by status',
      [accounts.map(idBits)],
    );
    return rows;
  };

  it('are not read when one of them expires: only that one, and the next expiry', async () => {
    const a = await ledger.open('Savings', '100');
    const [first, second] = [inMs(1000), inMs(50_000)];
    await placeMany([a], 800, inMs(60_000));
    expect(await book([placing(a, '1', holdId(), first), placing(a, '2', holdId(), second)])).toEqual(['done', 'done']);
    await sleep(Date.parse(first) - Date.now() + 50);
    const rows = await rowsOfHolds([ledger.cash('Withdrawal', a, '90')]);
    expect(rows).toEqual([1]);
    const { rows: kept } = await ledger.owner.query(
      'select active_holds, held_minor, hold_expires_at from accounts where account_id = $1',
      [idBits(a)],
    );
    expect(kept).toEqual([{ active_holds: 801n, held_minor: 1000n, hold_expires_at: second }]);
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });

  it('are at most 1,000 Active ones, in one batch and in many, for the database too; one that ends makes room', async () => {
    // contract: holds-6
    const a = await ledger.open('Savings', '100');
    const [short, last] = [inMs(2000), holdId()];
    await placeMany([a], 997, inMs(60_000));
    expect(
      await book([placing(a, '0.01', holdId(), short), placing(a, '0.01'), placing(a, '0.01', last), placing(a, '99')]),
    ).toEqual(['done', 'done', 'done', 'too_many_holds']);
    expect(await book([placing(a, '0.01')])).toEqual(['too_many_holds']);
    expect(await book([release(last), placing(a, '0.01'), placing(a, '0.01')])).toEqual([
      'done',
      'done',
      'too_many_holds',
    ]);
    await expect(
      ledger.owner.query('update accounts set active_holds = 1001 where account_id = $1', [idBits(a)]),
    ).rejects.toMatchObject({ constraint: 'customer_balance_covers_holds' });
    await sleep(Date.parse(short) - Date.now() + 50);
    expect(await book([placing(a, '0.01'), placing(a, '0.01')])).toEqual(['done', 'too_many_holds']);
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });

  it('that are due on many accounts are recorded by short transactions, and count for no command meanwhile', async () => {
    const accounts = await Promise.all(Array.from({ length: 7 }, () => ledger.open('Savings', '100')));
    const due = inMs(-1000);
    await placeMany(accounts, 1000, due);
    const before = await ledger.owner.query<{ last: bigint }>('select max(batch_id) as last from outbox_batches');
    const [commands] = await Promise.all([
      book(
        accounts.map((a) => ledger.cash('Withdrawal', a, '100')),
        two,
        1,
      ),
      sweepHolds(one),
      sweepHolds(two),
    ]);
    expect(commands).toEqual(accounts.map(() => 'done'));
    expect(await statuses(accounts)).toEqual([{ status: 'Expired', holds: 7000 }]);
    const { rows } = await ledger.owner.query<{ records: Buffer }>('select records from outbox where batch_id > $1', [
      before.rows[0]?.last,
    ]);
    const expired = rows.map(
      ({ records }) => unpackEvents(records).filter(({ type }) => type === 'corebanking.hold.expired.v1').length,
    );
    expect([expired.reduce((sum, n) => sum + n, 0), Math.max(...expired)]).toEqual([7000, 2000]);
    for (const a of accounts) {
      const versions = (await events(a, 'holds')).map(({ hold_version }) => hold_version);
      expect(versions.sort((x, y) => x - y)).toEqual(Array.from({ length: 1000 }, (_, i) => 1001 + i));
    }
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });
});

describe('reads', () => {
  it('list the holds of an account newest first, by page, and show them only to their owner', async () => {
    const a = await ledger.open('Savings', '100');
    const ids = Array.from({ length: 5 }, holdId);
    for (const [i, id] of ids.entries())
      await book([placing(a, '1', id, inMs(60_000), { time: inMs(1_000 * (i - ids.length)) })]);
    const { rows } = await ledger.owner.query<{ client_id: string }>(
      'select client_id from v_accounts where account_id = $1',
      [a],
    );
    const owner = rows[0]?.client_id ?? '';
    const seen: string[] = [];
    for (let after: { at: string; id: string } | undefined, more = true; more; ) {
      const reply = await ledger.ask(
        { name: 'list_holds', data: { account_id: a, limit: 2, order: 'desc', after } },
        { bound_client_id: owner },
      );
      if (!reply.ok) throw new Error(reply.refusal.code);
      const page = reply.data as { items: Hold[]; next?: { at: string; id: string } };
      seen.push(...page.items.map(({ hold_id }) => hold_id));
      after = page.next;
      more = after !== undefined;
    }
    expect(seen).toEqual(ids.toReversed());
    const other = { bound_client_id: formatId('client', freshBits()) };
    expect([
      (await readHold(ids[0] ?? '', { bound_client_id: owner })).account_id,
      await readHold(ids[0] ?? '', other).catch(String),
    ]).toEqual([a, 'Error: hold_not_found']);
    expect(
      await ledger.ask({ name: 'list_holds', data: { account_id: a, limit: 2, order: 'desc' } }, other),
    ).toMatchObject({ refusal: { code: 'account_not_found' } });
    expect(
      await ledger.ask({
        name: 'list_holds',
        data: { account_id: a, limit: 2, order: 'desc', after: { at: 'x', id: 'y' } },
      }),
    ).toMatchObject({ refusal: { code: 'invalid_cursor' } });
  });
});

describe('the database', () => {
  it("rejects a customer's balance below the held amount in every statement", async () => {
    const a = await ledger.open('Savings', '100');
    await book([placing(a, '60')]);
    const refused = (change: string) =>
      ledger.owner.query(`update accounts set ${change} where account_id = $1`, [idBits(a)]).then(
        () => 'accepted',
        (error: { constraint?: string }) => error.constraint,
      );
    const changes = [
      'balance_minor = 5999',
      'held_minor = 10001',
      'held_minor = -1',
      'held_minor = 0',
      'hold_expires_at = null',
    ];
    expect(await Promise.all(changes.map(refused))).toEqual(changes.map(() => 'customer_balance_covers_holds'));
  });

  it('needs no additional rows or index entries for a posting without hold, batch, and external_id', async () => {
    // contract: holds-17, names-10
    const plain = await startLedger();
    try {
      const [from, to] = [await plain.open('Savings', '100'), await plain.open('Checking', '0')];
      await plain.book([
        plain.cash('Deposit', from, '5'),
        plain.cash('Withdrawal', from, '5'),
        plain.transfer(from, to, '1'),
      ]);
      await plain.owner.query('analyze');
      const { rows } = await plain.owner.query<{ name: string; rows: number }>(
        `select relname as name, reltuples::int as rows from pg_class
         where relnamespace = 'ledger'::regnamespace and relkind in ('r', 'i') and reltuples > 0 order by 1`,
      );
      const counted = Object.fromEntries(rows.map((row) => [row.name, row.rows]));
      expect(counted).toMatchObject({ transactions: 5, transactions_id_key: 5, entries: 14 });
      const indexes = rows.filter(({ name }) => /^(transactions|entries|holds)_/.test(name)).map(({ name }) => name);
      expect(indexes).toEqual([
        'entries_pkey',
        'transactions_by_account',
        'transactions_by_time',
        'transactions_id_key',
      ]);
      expect(Object.keys(counted).filter((name) => /hold|external|^batch/.test(name))).toEqual([]);
    } finally {
      await plain.stop();
    }
  });

  it('adds no work for holds to a posting if there are none, or none expires', async () => {
    // contract: holds-17
    const [plain, held] = [await ledger.open('Savings', '1000'), await ledger.open('Savings', '1000')];
    const statements = async (commands: Command[]) => (await seenBy(commands)).map(({ text }) => text);
    const postings = (account: string) => [
      ledger.cash('Withdrawal', account, '1'),
      ledger.transfer(account, plain === account ? held : plain, '1'),
      ledger.cash('Deposit', account, '1'),
    ];
    await book(postings(plain));
    const before = await statements(postings(plain));
    await book([placing(held, '100')]);
    const after = [await statements(postings(plain)), await statements(postings(held))];
    expect(before.filter((text) => text.includes('insert into transactions'))).toHaveLength(1);
    expect(before.filter((text) => /\bholds\b/.test(text))).toEqual([]);
    expect(after).toEqual([before, before]);
  });
});
