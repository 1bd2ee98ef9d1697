import { beforeAll, expect, it } from 'vitest';
import { unknownRepeat } from '#libs/contracts/errors.ts';
import { formatId, idBits } from '#libs/contracts/ids.ts';
import { type BatchCommand, batchCommand } from '../domain/batches.ts';
import type { Command } from '../domain/decision.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';

/** Before a gateway asks for an approval, it looks for the outcome of a request that this one repeats. */
const ledger = useLedger();
let from: string;
let to: string;
beforeAll(async () => {
  [from, to] = [await ledger.open('Savings', '100'), await ledger.open('Checking', '0')];
});

const repeatOnly = (command: Command): Command =>
  ({ ...command, context: { ...command.context, repeat_only: 'true' } }) as Command;
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();

function placing(account_id: string, hold_id: string): Command {
  const data = {
    hold_id,
    account_id,
    amount: '10',
    currency: null,
    description: null,
    reference: null,
    expires_at: inAnHour(),
  };
  return { name: 'place_hold', data, context: ledger.testContext(idBits(hold_id), { message_id: hold_id }) };
}
/** The first captures a part in cash, the second the rest to an account. */
function capture(hold_id: string, to_account_id: string | null = null, bits = freshBits()): Command {
  const data = {
    transaction_id: formatId('transaction', bits),
    hold_id,
    amount: to_account_id === null ? '4' : null,
    to_account_id,
    final: to_account_id !== null,
    description: null,
  };
  return { name: 'capture_hold', data, context: ledger.testContext(bits) };
}
function release(hold_id: string, bits = freshBits()): Command {
  return { name: 'release_hold', data: { hold_id }, context: ledger.testContext(bits, { message_id: `cmd_${bits}` }) };
}
/** A batch of deposits. */
function batch(
  mode: 'independent' | 'atomic',
  batch_id: string,
  deposits: [account: string, amount: string][],
): BatchCommand {
  const items = deposits.map(([account_id, amount]) => ({
    transaction: {
      account_id,
      transaction_type: 'Deposit' as const,
      amount,
      currency: null,
      description: null,
      reference: null,
    },
  }));
  const context = ledger.testContext(idBits(batch_id), {
    message_id: batch_id,
    fingerprint: 'f'.repeat(32),
  });
  return batchCommand({ batch_id, mode, items }, context);
}

const readRows = async (): Promise<unknown> =>
  (
    await ledger.owner.query(
      'select (select count(*) from transactions) as transactions, (select count(*) from commands) as commands, (select count(*) from entries) as entries',
    )
  ).rows[0];

it('a stored outcome is returned; an unknown command posts and stores nothing, and can be executed afterwards', async () => {
  const known = [
    ledger.cash('Deposit', from, '5'),
    ledger.transfer(from, to, '1'),
    ledger.cash('Withdrawal', to, '1000'),
  ];
  const replies = await ledger.book(known);
  expect(replies.map(({ ok }) => ok)).toEqual([true, true, false]);
  expect(await ledger.book(known.map(repeatOnly))).toEqual(replies.map((reply) => ({ ...reply, replayed: true })));
  const deposit = known[0]?.name === 'create_transaction' ? known[0].data.transaction_id : '';
  const unknown = [
    ledger.cash('Deposit', from, '5'),
    ledger.transfer(from, to, '1'),
    ledger.reversal(deposit),
    ledger.cash('Deposit', `acc_${freshBits()}`, '5'),
  ];
  const before = await readRows();
  expect(await ledger.book(unknown.map(repeatOnly))).toEqual(
    unknown.map(() => ({ ok: false, refusal: unknownRepeat })),
  );
  expect(await readRows()).toEqual(before);
  expect((await ledger.book(unknown)).map(({ ok }) => ok)).toEqual([true, true, true, false]);
});

it('within one batch, a repeat sees earlier decisions', async () => {
  const command = ledger.cash('Deposit', from, '7');
  const [none, first, again] = await ledger.book([repeatOnly(command), command, repeatOnly(command)]);
  expect([none, again]).toEqual([
    { ok: false, refusal: unknownRepeat },
    { ...first, replayed: true },
  ]);
});

it('the stored outcome of each step of a hold is returned, and an unknown step changes nothing', async () => {
  const account = await ledger.open('Savings', '100');
  const [held, released, other] = [
    formatId('hold', freshBits()),
    formatId('hold', freshBits()),
    formatId('hold', freshBits()),
  ];
  const known = [
    placing(account, held),
    placing(account, released),
    capture(held),
    capture(held, to),
    capture(held),
    release(released),
    release(released),
  ];
  const replies = await ledger.book(known);
  expect(replies.map(({ ok }) => ok)).toEqual([true, true, true, true, false, true, false]);
  const before = await readRows();
  expect(await ledger.book(known.map(repeatOnly))).toEqual(replies.map((reply) => ({ ...reply, replayed: true })));
  const [active] = await ledger.book([placing(account, other)]);
  expect(active).toMatchObject({ ok: true });
  const unknown = [placing(account, formatId('hold', freshBits())), capture(other), capture(other, to), release(other)];
  expect(await ledger.book(unknown.map(repeatOnly))).toEqual(
    unknown.map(() => ({ ok: false, refusal: unknownRepeat })),
  );
  expect(await ledger.ask({ name: 'get_hold', data: { hold_id: other } })).toEqual(active);
  expect(await readRows()).toEqual({ ...(before as object), commands: (before as { commands: bigint }).commands + 1n });
});

it.each(['independent', 'atomic'] as const)(
  'of a batch, %s: the stored outcome is returned, and an unknown one posts nothing',
  async (mode) => {
    const command = batch(mode, formatId('batch', freshBits()), [
      [from, '5'],
      [to, '7'],
    ]);
    const before = await readRows();
    expect(await ledger.book([repeatOnly(command)])).toEqual([{ ok: false, refusal: unknownRepeat }]);
    expect(await readRows()).toEqual(before);
    const [decided] = await ledger.book([command]);
    expect(decided).toMatchObject({ ok: true, data: { results: [{ status: 'Completed' }, { status: 'Completed' }] } });
    const booked = await readRows();
    expect(await ledger.book([repeatOnly(command)])).toMatchObject([{ ok: true, data: decided?.ok && decided.data }]);
    expect(await readRows()).toEqual(booked);
  },
);

it('a refused atomic batch is refused again identically', async () => {
  const command = batch('atomic', formatId('batch', freshBits()), [
    [from, '5'],
    [`acc_${freshBits()}`, '7'],
  ]);
  const [refused] = await ledger.book([command]);
  expect(refused).toMatchObject({ ok: false, refusal: { code: 'batch_refused' } });
  expect(await ledger.book([repeatOnly(command)])).toEqual([{ ...refused, replayed: true }]);
});

it('after part of a batch is decided, the rest is decided once under the same id', async () => {
  const whole = batch('independent', formatId('batch', freshBits()), [
    [from, '5'],
    [to, '7'],
  ]);
  const [first, second] = whole.items.map((item) => ({ ...whole, items: [item] })) as [BatchCommand, BatchCommand];
  await ledger.book([first]);
  const [asked] = await ledger.book([repeatOnly(second)]);
  expect(asked).toMatchObject({ ok: true, data: { results: [{ index: 1, status: 'Completed' }] } });
  const booked = await readRows();
  expect(await ledger.book([repeatOnly(first), repeatOnly(second), second])).toMatchObject([
    { ok: true, replayed: true },
    { ok: true, replayed: true, data: asked?.ok && asked.data },
    { ok: true, replayed: true },
  ]);
  expect(await readRows()).toEqual(booked);
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});
