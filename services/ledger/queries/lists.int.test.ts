import { beforeAll, expect, it } from 'vitest';
import { formatId, idBits } from '#libs/contracts/ids.ts';
import type { MessageData } from '#libs/contracts/messages.ts';
import { useLedger } from '../test/harness.ts';
import { listTransactions, listTransfers } from './lists.ts';

/**
 * Lists without an index scan a limited number of rows, state whether that was all, and continue
 * from there.
 */
const ledger = useLedger();
let account_id: string;
beforeAll(async () => {
  const other = await ledger.open('Checking', '0');
  account_id = await ledger.open('Savings', '0');
  // 32 rows in this order: 1 … 10, the two sides of a transfer of 7, 11 … 30.
  for (let i = 1; i <= 30; i++)
    await ledger.book([
      ledger.cash('Deposit', account_id, String(i)),
      ...(i === 10 ? [ledger.transfer(account_id, other, '7')] : []),
    ]);
});

type Filters = Partial<MessageData<'list_transactions'>>;
const list = async (filters: Filters, searched?: number) =>
  (await listTransactions(ledger.reads, { limit: 10, order: 'desc', ...filters }, undefined, searched)) ?? {
    items: [],
  };
const amounts = ({ items }: { items: { amount: string }[] }) => items.map(({ amount }) => Number(amount));

it('a page for which all rows were scanned is complete; after a full page the next one continues', async () => {
  expect(await list({ max_amount: '2' })).toMatchObject({
    items: [{ amount: '2.00' }, { amount: '1.00' }],
    complete: true,
  });
  const first = await list({ min_amount: '20', limit: 9 });
  expect([amounts(first), first.complete]).toEqual([[30, 29, 28, 27, 26, 25, 24, 23, 22], true]);
  expect(amounts(await list({ min_amount: '20', limit: 9, after: first.next }))).toEqual([21, 20]);
});

it('scans at most the limit of rows per page, and all pages together find all rows, each once', async () => {
  // contract: permission-36
  let after: Filters['after'];
  const pages: [number[], boolean | undefined][] = [];
  do {
    const page = await list({ max_amount: '12', after }, 8);
    pages.push([amounts(page), page.complete]);
    after = page.next;
  } while (after);
  expect(pages.map(([, isComplete]) => isComplete)).toEqual([false, false, false, true]);
  expect(pages.slice(0, 2).map(([found]) => found)).toEqual([[], []]);
  expect(pages.flatMap(([found]) => found).toSorted((a, b) => a - b)).toEqual([
    1, 2, 3, 4, 5, 6, 7, 7, 7, 8, 9, 10, 11, 12,
  ]);
});

it('transfers are searched among all transactions; a list with an index is always complete', async () => {
  expect(await listTransfers(ledger.reads, { limit: 10, order: 'desc' }, undefined, 8)).toMatchObject({
    items: [],
    complete: false,
  });
  expect(await listTransfers(ledger.reads, { limit: 10, order: 'desc' }, undefined)).toMatchObject({
    items: [{ amount: '7.00' }],
    complete: true,
  });
  for (const filters of [
    {},
    { account_id, max_amount: '2' },
    { reference: 'x' },
    { from: '2020-01-01T00:00:00.000Z' },
    { status: 'Failed' as const },
  ])
    expect((await list(filters, 8)).complete, JSON.stringify(filters)).toBeUndefined();
});

it('filters by currency and caller', async () => {
  const euros = await ledger.open('Savings', '0', 'EUR');
  await ledger.book([ledger.cash('Deposit', euros, '3', { actor: 'key:teller' })]);
  expect(amounts(await list({ currency: 'EUR' }))).toEqual([3]);
  expect(amounts(await list({ actor: 'key:teller', currency: 'EUR' }))).toEqual([3]);
  expect(amounts(await list({ actor: 'key:teller', currency: 'USD' }))).toEqual([]);
});

it('the transaction_type of a refused payment matches the filter as its caller sees it', async () => {
  const [payer, loan] = [await ledger.open('Savings', '50'), await ledger.open('Loan', '5')];
  await ledger.book([ledger.transfer(payer, loan, '6')]);
  const { rows } = await ledger.owner.query<{ client_id: string }>(
    'select client_id from accounts where account_id = $1',
    [idBits(payer)],
  );
  const owner = formatId('client', (rows[0]?.client_id ?? '').replaceAll('-', ''));
  const typesIn = async (transaction_type: 'Transfer' | 'Loan Payment', bound?: string) => {
    const filters = { account_id: payer, status: 'Failed' as const, transaction_type };
    const page = await listTransactions(ledger.reads, { limit: 10, order: 'desc', ...filters }, bound);
    return page?.items.map((item) => [item.transaction_type, item.failure_code]);
  };
  expect(await typesIn('Loan Payment')).toEqual([['Loan Payment', 'amount_exceeds_outstanding']]);
  expect(await typesIn('Transfer')).toEqual([]);
  expect(await typesIn('Loan Payment', owner)).toEqual([]);
  expect(await typesIn('Transfer', owner)).toEqual([['Transfer', 'destination_refused']]);
});

it('an id that differs from that of a transfer only in its last byte finds nothing', async () => {
  const [transfer_id = ''] = (await list({ transaction_type: 'Transfer' })).items.map((item) => item.transfer_id);
  expect((await list({ transfer_id })).items).toHaveLength(2);
  const last = transfer_id.slice(-2) === '00' ? '01' : '00';
  expect((await list({ transfer_id: transfer_id.slice(0, -2) + last })).items).toEqual([]);
});

it('balances are returned only to callers who may see the account', async () => {
  const owner = formatId('client', 'a'.repeat(32));
  const balances = async (bound_client_id?: string) => {
    const reply = await ledger.ask(
      { name: 'get_ledger_accounts', data: { account_ids: [account_id] } },
      { bound_client_id },
    );
    return reply.ok && (reply.data as unknown[]).length;
  };
  expect([await balances(), await balances(owner)]).toEqual([1, 0]);
});
