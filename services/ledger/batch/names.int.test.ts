import { beforeAll, expect, it } from 'vitest';
import { creditLegId, debitLegId, formatId, idBits } from '#libs/contracts/ids.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import type { Transfer } from '#libs/contracts/transfers.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import type { Command } from '../domain/decision.ts';
import { listTransactions, listTransfers } from '../queries/lists.ts';
import { freshBits, useLedger } from '../test/harness.ts';

/** Tests the contract for external_id and metadata in the ledger. */
const ledger = useLedger();
let from: string;
let to: string;
beforeAll(async () => {
  from = await ledger.open('Savings', '100');
  to = await ledger.open('Checking', '0');
});

const names = { external_id: 'order 1', metadata: { z: 'last first', a: '"quoted" \\ ü' } };
const page = { limit: 10, order: 'desc' as const };

function named(command: Command, given: object = names): Command {
  return { ...command, data: { ...command.data, ...given } } as Command;
}

async function get<T>(name: 'get_transaction' | 'get_transfer', id: string): Promise<T> {
  const reply = await ledger.ask({
    name,
    data: name === 'get_transfer' ? { transfer_id: id } : { transaction_id: id },
  } as never);
  return (reply.ok ? reply.data : reply) as T;
}

it('both legs of a transfer have external_id and metadata, in reads, events, and the view; a repeat returns them', async () => {
  const bits = freshBits();
  const command = named(ledger.transfer(from, to, '1', {}, bits));
  const [reply] = await ledger.book([command]);
  expect(reply).toMatchObject({ ok: true, data: names });
  const [again] = await ledger.book([command]);
  expect(JSON.stringify(again)).toBe(JSON.stringify({ ...reply, replayed: true }));
  const transfer_id = formatId('transfer', bits);
  expect(await get<Transfer>('get_transfer', transfer_id)).toMatchObject(names);
  for (const id of [debitLegId(transfer_id), creditLegId(transfer_id)])
    expect(await get<Transaction>('get_transaction', id)).toMatchObject(names);
  const told = (await readOutbox(ledger.owner)).filter(
    ({ payload }) => payload?.includes(bits.slice(1, 30)) && payload.includes('order 1'),
  );
  expect(told.map(({ topic }) => topic).sort()).toEqual(['transactions', 'transactions', 'transfers']);
  const { rows } = await ledger.reads.query(
    "select external_id, metadata->>'a' as a from v_transactions where transfer_id = $1",
    [transfer_id],
  );
  expect(rows).toEqual([
    { external_id: 'order 1', a: names.metadata.a },
    { external_id: 'order 1', a: names.metadata.a },
  ]);
});

it('neither is stored, returned, or published if it was not given', async () => {
  // contract: names-3
  const bits = freshBits();
  const [reply] = await ledger.book([ledger.cash('Deposit', from, '1', {}, bits)]);
  const { rows } = await ledger.owner.query(
    'select external_id, metadata from transactions where transaction_id = $1',
    [bits],
  );
  expect(rows).toEqual([{ external_id: null, metadata: null }]);
  const told = (await readOutbox(ledger.owner)).filter(({ payload }) => payload?.includes(bits));
  for (const text of [JSON.stringify(reply), ...told.map(({ payload }) => payload ?? '')])
    expect(text).not.toMatch(/external_id|metadata/);
  const index = await ledger.owner.query(
    "select pg_get_indexdef('transactions_by_external_id'::regclass) as definition",
  );
  expect(index.rows[0]?.definition).toContain('WHERE (external_id IS NOT NULL)');
});

it('a stored refusal has both; a reversal has its own', async () => {
  const [failed] = await ledger.book([named(ledger.transfer(from, to, '1000000', {}, freshBits()))]);
  const id = failed && !failed.ok ? String(failed.refusal.details?.['transaction_id']) : '';
  expect(await get<Transaction>('get_transaction', id)).toMatchObject({ status: 'Failed', ...names });
  const original = freshBits();
  const [plain, own] = [freshBits(), freshBits()];
  await ledger.book([
    named(ledger.transfer(from, to, '1', {}, original)),
    named(ledger.cash('Deposit', from, '1', {}, own)),
  ]);
  const [silent] = await ledger.book([ledger.reversal(formatId('transaction', own), {}, plain)]);
  expect(JSON.stringify(silent)).not.toMatch(/external_id|metadata/);
  const bits = freshBits();
  const [reversal] = await ledger.book([
    named(ledger.reversal(formatId('transaction', original), {}, bits), {
      external_id: 'undo 1',
      metadata: { why: 'x' },
    }),
  ]);
  expect(reversal).toMatchObject({ ok: true, data: { external_id: 'undo 1', metadata: { why: 'x' } } });
  const undone = await listTransactions(ledger.reads, { ...page, external_id: 'undo 1' }, undefined);
  expect(undone?.items.map(({ account_id }) => account_id).sort()).toEqual([from, to].sort());
});

it('external_id is a filter, not unique, and makes a list fast', async () => {
  const account_id = await ledger.open('Savings', '0');
  await ledger.book([
    named(ledger.cash('Deposit', account_id, '5'), { external_id: 'twice' }),
    named(ledger.cash('Deposit', account_id, '6'), { external_id: 'twice' }),
    named(ledger.transfer(from, account_id, '7'), { external_id: 'twice' }),
  ]);
  const found = await listTransactions(ledger.reads, { ...page, external_id: 'twice' }, undefined);
  expect(found?.items.map(({ amount }) => amount).sort()).toEqual(['5.00', '6.00', '7.00', '7.00']);
  const transfers = await listTransfers(ledger.reads, { ...page, external_id: 'twice' }, undefined);
  expect([transfers?.items.map(({ amount }) => amount), transfers?.complete]).toEqual([['7.00'], undefined]);
  const seen = await listTransfers(ledger.reads, { ...page, external_id: 'twice', account_id }, undefined);
  expect(seen?.items).toMatchObject([{ from_account_id: from, to_account_id: account_id }]);
  for (const external_id of ['Twice', 'twic', ' twice'])
    expect(await listTransactions(ledger.reads, { ...page, external_id }, undefined)).toEqual({ items: [] });
  const { rows } = await ledger.reads.query(
    "explain (costs off) select * from transactions where external_id = 'twice' order by created_at desc, transaction_id desc limit 10",
  );
  expect(JSON.stringify(rows)).toContain('transactions_by_external_id');
});

it('metadata is a filter, exact and all of several, of an account or a scan; a bound caller finds only its own', async () => {
  // contract: names-11, transactions-17
  const [payer, payee] = [await ledger.open('Savings', '50'), await ledger.open('Checking', '0')];
  const { rows } = await ledger.owner.query<{ client_id: string }>(
    'select client_id from accounts where account_id = $1',
    [idBits(payer)],
  );
  const client = formatId('client', (rows[0]?.client_id ?? '').replaceAll('-', ''));
  const order = { order: '17', 'crm.id': 'Ä "x"' };
  const own = { bound_client_id: client, time: new Date(Date.now() + 1000).toISOString() };
  await ledger.book([
    named(ledger.cash('Deposit', payer, '1'), { metadata: order }),
    named(ledger.cash('Deposit', payer, '2'), { metadata: { order: '17 ' } }),
    named(ledger.cash('Deposit', payer, '3'), {}),
    named(ledger.transfer(payer, payee, '4'), { metadata: { order: '17' } }),
    named(ledger.transfer(payer, payee, '5', own), { metadata: { order: '17', risk: 'low' } }),
  ]);
  const find = async (filters: object, bound?: string, searched?: number) => {
    const [transactions, transfers] = await Promise.all(
      [listTransactions, listTransfers].map((list) => list(ledger.reads, { ...page, ...filters }, bound, searched)),
    );
    const amounts = (items: { amount: string }[] = []) => items.map(({ amount }) => Number(amount)).sort();
    return [amounts(transactions?.items), amounts(transfers?.items), transactions?.complete];
  };
  const account_id = payer;
  expect(await find({ account_id, metadata: { order: '17' } })).toEqual([[1, 4, 5], [4, 5], undefined]);
  expect(await find({ account_id, metadata: order })).toEqual([[1], [], undefined]);
  expect(await find({ account_id, metadata: { order: '17', risk: 'low' } })).toEqual([[5], [5], undefined]);
  expect(await find({ account_id, metadata: { order: '1' } })).toEqual([[], [], undefined]);
  const period = { from: '2020-01-01T00:00:00.000Z', metadata: { order: '17' } };
  expect(await find(period)).toEqual([[1, 4, 4, 5, 5], [4, 5], true]);
  expect(await find(period, undefined, 2)).toEqual([[5, 5], [5], false]);
  for (const filters of [{ account_id }, { from: period.from }])
    expect(await find({ ...filters, metadata: { order: '17' } }, client)).toEqual([[5], [5], undefined]);

  const counterparty_account_id = payee;
  const withPayee = async (filters: object, bound?: string) => {
    const found = await listTransactions(ledger.reads, { ...page, ...filters }, bound);
    return [found?.items.map(({ amount }) => Number(amount)).sort(), found?.complete];
  };
  for (const bound of [undefined, client])
    expect(await withPayee({ account_id, counterparty_account_id }, bound)).toEqual([[4, 5], undefined]);
  expect(await withPayee({ counterparty_account_id })).toEqual([[4, 5], true]);
  expect(await withPayee({ account_id, counterparty_account_id: 'x' })).toEqual([[], undefined]);
});
