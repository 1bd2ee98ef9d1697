import { describe, expect, it } from 'vitest';
import type { AuditRecord } from '#libs/contracts/audit.ts';
import type { MessageContext, ReplyBody } from '#libs/contracts/envelope.ts';
import { formatId, openingTransactionId } from '#libs/contracts/ids.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import type { Till } from '#libs/contracts/tills.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { batchCommand } from '../domain/batches.ts';
import type { Command } from '../domain/decision.ts';
import { ledgerSchema } from '../schema.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { opening } from '../test/test-kit.ts';
import { verifyBooks } from '../verify/verify-books.ts';
import { runBatch } from './engine.ts';

const ledger = useLedger();

const person = () => `jwt:https://issuer.example|${freshBits()}`;
type Counted = Record<string, string>;
const toCounts = (counted: Counted) => Object.entries(counted).map(([currency, amount]) => ({ currency, amount }));

function openingOf(actor: string, counted: Counted, bits = freshBits()): Command {
  const till_id = formatId('till', bits);
  const data = { till_id, counted: toCounts(counted) };
  return { name: 'open_till', data, context: ledger.testContext(bits, { message_id: till_id, actor }) };
}
function closing(
  actor: string,
  till_id: string,
  counted: Counted,
  reason: string | null = null,
  bits = freshBits(),
): Command {
  const data = { till_id, counted: toCounts(counted), reason };
  return { name: 'close_till', data, context: ledger.testContext(bits, { message_id: `cmd_${bits}`, actor }) };
}
function batchOf(actor: string, account_id: string, amount: string): Command {
  const bits = freshBits();
  const batch_id = formatId('batch', bits);
  const transaction = {
    account_id,
    transaction_type: 'Deposit' as const,
    amount,
    currency: null,
    description: null,
    reference: null,
  };
  return batchCommand(
    { batch_id, mode: 'independent', items: [{ transaction }] },
    ledger.testContext(bits, { message_id: batch_id, fingerprint: bits, actor }),
  );
}
const codes = (replies: ReplyBody[]) => replies.map((reply) => (reply.ok ? 'done' : reply.refusal.code));
const till = (reply: ReplyBody | undefined): Till => {
  if (!reply?.ok) throw new Error(JSON.stringify(reply));
  return reply.data as Till;
};
async function openFor(actor: string, counted: Counted): Promise<string> {
  return till((await ledger.book([openingOf(actor, counted)]))[0]).till_id;
}
const by = (actor: string, rest: Partial<MessageContext> = {}) => ({ actor, ...rest });
const inTills = async (actor: string) =>
  (
    await ledger.owner.query<{ till_id: string | null; direction: string; amount_minor: bigint }>(
      `select till_id, p.direction, t.amount_minor from transactions t left join till_postings p using (transaction_id)
       where actor = $1 and t.transaction_id = t.operation_id and status = 'Completed' order by t.created_at`,
      [actor],
    )
  ).rows;

describe('a till', () => {
  it('takes what its person posts in cash between the two counts, and keeps the figures of its closing', async () => {
    // contract: tills-6, tills-7, tills-9
    const [ada, bob] = [person(), person()];
    const [a, y] = [await ledger.open('Savings', '1000'), await ledger.open('Savings', '5000', 'JPY')];
    const wrong = freshBits();
    await ledger.book([ledger.cash('Deposit', a, '99', by(ada)), ledger.cash('Deposit', a, '7', by(ada), wrong)]);
    const till_id = await openFor(ada, { USD: '100', KWD: '1.5' });
    expect(
      codes(
        await ledger.book([
          ledger.cash('Deposit', a, '50.25', by(ada)),
          ledger.cash('Withdrawal', a, '20', by(ada)),
          ledger.cash('Withdrawal', y, '300', by(ada)),
          ledger.cash('Withdrawal', y, '9000000', by(ada)),
          ledger.cash('Deposit', a, '1000', by(bob)),
          batchOf(ada, a, '2000'),
          ledger.transfer(a, await ledger.open('Savings', '0'), '5', by(ada)),
          ledger.reversal(`txn_${wrong}`, by(ada)),
        ]),
      ),
    ).toEqual(['done', 'done', 'done', 'insufficient_funds', 'done', 'done', 'done', 'done']);
    const [lacking] = await ledger.book([closing(ada, till_id, { USD: '123.25' })]);
    expect(lacking).toMatchObject({
      refusal: { code: 'till_not_counted', message: 'counted lacks JPY, KWD', details: { currencies: ['JPY', 'KWD'] } },
    });
    const counted = { USD: '123.2', KWD: '1.500', JPY: '0' };
    const [different] = await ledger.book([closing(ada, till_id, counted)]);
    // Whoever counts again must not know what is expected.
    expect(different).toEqual({
      ok: false,
      refusal: {
        code: 'till_difference',
        message: 'counted is not what is expected in JPY, USD: count again, or give a reason',
        details: { currencies: ['JPY', 'USD'] },
      },
    });
    const closed = till((await ledger.book([closing(ada, till_id, counted, 'the yen were bought')]))[0]);
    expect(closed).toMatchObject({
      till_id,
      actor: ada,
      status: 'Closed',
      opening: [
        { currency: 'KWD', amount: '1.500' },
        { currency: 'USD', amount: '100.00' },
      ],
      reason: 'the yen were bought',
      balances: [
        {
          currency: 'JPY',
          opening: '0',
          cash_in: '0',
          cash_in_count: 0,
          cash_out: '300',
          cash_out_count: 1,
          expected: '-300',
          counted: '0',
          difference: '300',
        },
        {
          currency: 'KWD',
          opening: '1.500',
          cash_in: '0.000',
          expected: '1.500',
          counted: '1.500',
          difference: '0.000',
        },
        {
          currency: 'USD',
          opening: '100.00',
          cash_in: '50.25',
          cash_in_count: 1,
          cash_out: '27.00',
          cash_out_count: 2,
          expected: '123.25',
          counted: '123.20',
          difference: '-0.05',
        },
      ],
    });
    await ledger.book([ledger.cash('Deposit', a, '3', by(ada))]);
    const read = await ledger.ask({ name: 'get_till', data: { till_id } });
    expect(read).toEqual({ ok: true, data: closed });
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });

  it('records each count, also one that was refused, with the difference, and a refusal stands', async () => {
    // contract: tills-9, tills-11, idempotency-10
    const ada = person();
    const a = await ledger.open('Savings', '0');
    const till_id = await openFor(ada, { USD: '100' });
    const first = closing(ada, till_id, { USD: '130' });
    const lacking = closing(ada, till_id, { KWD: '1' });
    const refused = await ledger.book([lacking, first]);
    expect(codes(refused)).toEqual(['till_not_counted', 'till_difference']);
    // The message is delivered again when the same counts would close the till.
    await ledger.book([ledger.cash('Deposit', a, '30', by(ada))]);
    expect(await ledger.book([lacking, first])).toEqual(refused.map((reply) => ({ ...reply, replayed: true })));
    expect(codes(await ledger.book([closing(ada, till_id, { USD: '130' })]))).toEqual(['done']);
    const { rows } = await ledger.owner.query<{ record: AuditRecord }>(
      "select record::json from audit_outbox where record::json->>'resource_id' = $1 and record::json->>'action' = 'close_till' order by ctid",
      [till_id],
    );
    const counted = [{ currency: 'USD', amount: '130' }];
    expect(rows.map(({ record }) => record)).toMatchObject([
      { outcome: 'till_not_counted', details: { counted: [{ currency: 'KWD', amount: '1' }] } },
      { outcome: 'till_difference', details: { counted, differences: [{ currency: 'USD', difference: '30.00' }] } },
      { outcome: 'success', details: { counted, differences: [] } },
    ]);
  });

  it('takes no balance of a migration, and no reversal of what was no cash', async () => {
    // contract: tills-3, tills-6
    const ada = person();
    const a = await ledger.open('Savings', '1000');
    const [migrated, ofKey, own] = [freshBits(), freshBits(), freshBits()];
    const account_id = formatId('account', migrated);
    const moved = opening(1, 'Savings', '500');
    const data = { ...moved.data, account_id, account_number: `N-${migrated}`, migrated: true };
    await ledger.book([batchOf(ada, a, '20'), ledger.cash('Deposit', a, '30', by('key:key_1'), ofKey)]);
    const { rows } = await ledger.owner.query<{ item: string }>(
      "select replace(transaction_id::text, '-', '') as item from transactions where actor = $1",
      [ada],
    );
    const [item] = rows.map((row) => row.item);
    const till_id = await openFor(ada, { USD: '0' });
    const replies = await ledger.book([
      { ...moved, data, context: ledger.testContext(migrated, { message_id: account_id, ...by(ada) }) } as Command,
      ledger.cash('Deposit', a, '7', by(ada), own),
      ledger.reversal(`txn_${item}`, by(ada)),
      ledger.reversal(`txn_${ofKey}`, by(ada)),
      ledger.reversal(openingTransactionId(account_id), by(ada)),
      ledger.reversal(`txn_${own}`, by(ada)),
    ]);
    expect(codes(replies)).toEqual(Array<string>(6).fill('done'));
    const [closed] = await ledger.book([closing(ada, till_id, { USD: '0' })]);
    expect(till(closed).balances).toMatchObject([
      { cash_in: '7.00', cash_in_count: 1, cash_out: '7.00', cash_out_count: 1, difference: '0.00' },
    ]);
    const day = await ledger.ask({ name: 'get_staff_day', data: { actor: ada } });
    expect(day).toMatchObject({
      data: {
        totals: [{ cash_in: '7.00', cash_out: '7.00', transferred: '1050.00', transferred_count: 4 }],
      },
    });
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });

  it('of a person is one: another is refused, also at once, and in the same batch', async () => {
    // contract: tills-5
    const ada = person();
    const replies = await Promise.all(
      Array.from({ length: 6 }, (_, slot) => ledger.book([openingOf(ada, { USD: '1' })], slot)),
    );
    expect(codes(replies.flat()).toSorted()).toEqual(['done', ...Array<string>(5).fill('till_open')]);
    const open = till(replies.flat().find(({ ok }) => ok));
    const refused = replies.flat().find(({ ok }) => !ok);
    expect(refused).toMatchObject({
      refusal: { message: `till ${open.till_id} is open: close it first`, details: { till_id: open.till_id } },
    });
    const [first, second] = [freshBits(), freshBits()];
    const bob = person();
    const a = await ledger.open('Savings', '0');
    const all = [
      openingOf(bob, { USD: '1' }, first),
      openingOf(bob, { USD: '1' }),
      ledger.cash('Deposit', a, '10', by(bob)),
      closing(bob, `til_${first}`, { USD: '11' }),
      ledger.cash('Deposit', a, '20', by(bob)),
      openingOf(bob, { USD: '2' }, second),
      ledger.cash('Deposit', a, '40', by(bob)),
      closing(bob, `til_${first}`, { USD: '11' }),
    ];
    expect(codes(await ledger.book(all))).toEqual([
      'done',
      'till_open',
      'done',
      'done',
      'done',
      'done',
      'done',
      'till_closed',
    ]);
    const [last] = await ledger.book([closing(bob, `til_${second}`, { USD: '42' })]);
    expect(till(last).balances).toMatchObject([{ cash_in: '40.00', difference: '0.00' }]);
    expect((await inTills(bob)).filter(({ till_id }) => till_id === null)).toMatchObject([{ amount_minor: 2000n }]);
  });

  it('is closed once by its own person, and a repeat gets the same reply', async () => {
    // contract: tills-8, idempotency-10
    const [ada, bob] = [person(), person()];
    const till_id = await openFor(ada, { USD: '1' });
    const bits = freshBits();
    const close = closing(ada, till_id, { USD: '1' }, null, bits);
    const foreign = await ledger.book([
      closing(bob, till_id, { USD: '1' }),
      closing(bob, `til_${freshBits()}`, { USD: '1' }),
    ]);
    expect(codes(foreign)).toEqual(['till_not_found', 'till_not_found']);
    const [done] = await ledger.book([close]);
    const [again] = await ledger.book([close]);
    expect(again).toEqual({ ...done, replayed: true });
    expect(codes(await ledger.book([closing(ada, till_id, { USD: '1' })]))).toEqual(['till_closed']);
    const late = closing(ada, await openFor(ada, { USD: '1' }), { USD: '1' });
    const [refused] = await ledger.book([
      { ...late, context: { ...late.context, deadline: '2020-01-01T00:00:00.000Z' } } as Command,
    ]);
    expect(refused).toMatchObject({ refusal: { code: 'deadline_exceeded' } });
  });

  it('is closed by another person who may, with a reason, and not before it was opened if the clock is set back', async () => {
    // contract: tills-8
    const [ada, eve] = [person(), person()];
    const till_id = await openFor(ada, { USD: '1' });
    await openFor(eve, { USD: '9' });
    const byEve = (reason: string | null): Command => {
      const command = closing(eve, till_id, { USD: '1' }, reason);
      return { ...command, data: { ...command.data, of_others: true } } as Command;
    };
    await ledger.owner.query("update tills set opened_at = now() + interval '1 hour' where till_id = $1", [
      till_id.slice(4),
    ]);
    const [without, closed] = await ledger.book([byEve(null), byEve('ada is ill')]);
    expect(without).toMatchObject({
      refusal: { code: 'validation_failed', message: 'reason is required to close the till of another person' },
    });
    const { closed_at, opened_at, ...rest } = till(closed);
    expect(rest).toMatchObject({ actor: ada, closed_by: eve, reason: 'ada is ill', status: 'Closed' });
    expect(closed_at).toBe(opened_at);
    expect(await ledger.ask({ name: 'get_till', data: { till_id } })).toEqual({ ok: true, data: till(closed) });
    expect(codes(await ledger.book([openingOf(eve, { USD: '1' }), openingOf(ada, { USD: '1' })]))).toEqual([
      'till_open',
      'done',
    ]);
  });

  it('refuses decimals that the currency does not have, and amounts that are too large', async () => {
    // contract: tills-5
    const replies = await ledger.book([
      openingOf(person(), { JPY: '1.5' }),
      openingOf(person(), { USD: '99999999999999.99' }),
    ]);
    expect(replies).toMatchObject([
      { refusal: { code: 'invalid_amount_precision', message: 'counted.amount has more decimal places than JPY has' } },
      { refusal: { code: 'amount_too_large' } },
    ]);
  });

  it('has each of the postings that are decided while it is open, and no other, whatever is posted when it is closed', async () => {
    // contract: tills-7
    const ada = person();
    const accounts = await Promise.all(Array.from({ length: 6 }, () => ledger.open('Savings', '1000')));
    const pool = createPool(
      { url: ledger.serviceUrl, application_name: 'writers', schema: ledgerSchema, max: 8 },
      silent,
    );
    const book = async (commands: Command[], slot: number) => (await runBatch(pool, commands, slot)).replies;
    const closed: Till[] = [];
    try {
      let isOver = false;
      const clerk = (async () => {
        for (let round = 0; round < 12; round++) {
          const { till_id } = till((await book([openingOf(ada, { USD: '0' })], 7))[0]);
          // Some rounds close while nothing has been posted yet.
          for (let i = 0; i < round % 4; i++)
            await book([ledger.transfer(accounts[0] as string, accounts[1] as string, '0.01', by(ada))], 7);
          closed.push(till((await book([closing(ada, till_id, { USD: '0' }, 'test')], 7))[0]));
        }
        isOver = true;
      })();
      const posters = accounts.map(async (account, slot) => {
        for (let i = 1; !isOver; i++) {
          const amount = fromMinor(BigInt(i), 'USD');
          await book(
            [ledger.cash('Deposit', account, amount, by(ada)), ledger.cash('Withdrawal', account, '0.01', by(ada))],
            slot,
          );
        }
      });
      await Promise.all([clerk, ...posters]);
    } finally {
      await pool.end();
    }
    const postings = (await inTills(ada)).filter(({ direction }) => direction !== null);
    const posted = Map.groupBy(postings, ({ till_id }) => `til_${String(till_id).replaceAll('-', '')}`);
    let counted = 0;
    for (const { till_id, balances } of closed) {
      const rows = posted.get(till_id) ?? [];
      const [usd] = balances;
      const sum = (kind: string) =>
        rows.filter(({ direction }) => direction === kind).reduce((total, row) => total + row.amount_minor, 0n);
      expect([toMinor(usd?.cash_in ?? '', 'USD'), toMinor(usd?.cash_out ?? '', 'USD')]).toEqual([
        sum('in'),
        sum('out'),
      ]);
      counted += (usd?.cash_in_count ?? 0) + (usd?.cash_out_count ?? 0);
    }
    expect(counted).toBe(postings.length);
    expect(counted).toBeGreaterThan(50);
    expect(await verifyBooks(ledger.owner)).toEqual([]);
  });

  it('is not changed any more, nor deleted, by the service, and has at most one place for a posting', async () => {
    const ada = person();
    const a = await ledger.open('Savings', '0');
    const till_id = (await openFor(ada, { USD: '0' })).slice(4);
    await ledger.book([ledger.cash('Deposit', a, '1', by(ada)), closing(ada, `til_${till_id}`, { USD: '1' })]);
    const run = (statement: string) => ledger.writes.query(statement);
    await expect(run(`update tills set reason = 'x' where till_id = '${till_id}'`)).rejects.toThrow(/is closed/);
    await expect(run(`update tills set opening = '[]' where till_id = '${till_id}'`)).rejects.toThrow(
      /permission denied/,
    );
    await expect(run(`delete from tills`)).rejects.toThrow(/permission denied/);
    await expect(run(`delete from till_postings`)).rejects.toThrow(/permission denied/);
    await expect(
      run(`insert into till_postings select till_id, transaction_id, 'USD', 'in', 1 from till_postings`),
    ).rejects.toThrow(/till_postings/);
  });
});

it('tills are listed by person and state, page by page', async () => {
  // contract: tills-10
  const ada = person();
  const ids: string[] = [];
  for (const amount of ['1', '2', '3']) {
    const till_id = await openFor(ada, { USD: amount });
    ids.unshift(till_id);
    if (amount !== '3') await ledger.book([closing(ada, till_id, { USD: amount })]);
  }
  const different = async () => {
    const { data } = (await ledger.ask({ name: 'get_ledger_operations', data: {} })) as { data: unknown };
    return (data as { tills_different: number }).tills_different;
  };
  const before = await different();
  const bob = person();
  await ledger.book([closing(bob, await openFor(bob, { USD: '1' }), { USD: '0' }, 'lost')]);
  expect(await different()).toBe(before + 1);
  const list = async (more: object) => {
    const reply = await ledger.ask({
      name: 'list_tills',
      data: { actor: ada, limit: 2, order: 'desc', ...more },
    } as never);
    if (!reply.ok) throw new Error(JSON.stringify(reply));
    const { items, next } = reply.data as { items: Till[]; next?: { at: string; id: string } };
    return { ids: items.map(({ till_id }) => till_id), next, so_far: items.map((one) => one.so_far) };
  };
  const a = await ledger.open('Savings', '0');
  const yen = await ledger.open('Savings', '100', 'JPY');
  await ledger.book([ledger.cash('Deposit', a, '5', by(ada)), ledger.cash('Withdrawal', yen, '7', by(ada))]);
  const first = await list({});
  const taken = { opening: '0', cash_in: '0', cash_in_count: 0, cash_out: '7', cash_out_count: 1, expected: '-7' };
  const usd = { opening: '3.00', cash_in: '5.00', cash_in_count: 1, cash_out: '0.00', cash_out_count: 0 };
  expect(first.so_far).toEqual([
    [
      { currency: 'JPY', ...taken },
      { currency: 'USD', ...usd, expected: '8.00' },
    ],
    undefined,
  ]);
  expect(await ledger.ask({ name: 'get_till', data: { till_id: ids[0] ?? '' } })).toMatchObject({
    data: { so_far: [{ currency: 'JPY' }, { currency: 'USD' }] },
  });
  expect(first.ids).toEqual(ids.slice(0, 2));
  expect((await list({ after: first.next })).ids).toEqual(ids.slice(2));
  expect((await list({ status: 'Open' })).ids).toEqual(ids.slice(0, 1));
  expect((await list({ status: 'Closed' })).ids).toEqual(ids.slice(1));
  expect((await list({ actor: person() })).ids).toEqual([]);
});
