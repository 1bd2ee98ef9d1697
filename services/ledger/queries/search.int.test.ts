import { expect, it } from 'vitest';
import { creditLegId, formatId, idBits } from '#libs/contracts/ids.ts';
import { receiptNumber } from '#libs/contracts/receipts.ts';
import type { SearchHit } from '#libs/contracts/search.ts';
import { freshRequestId } from '#libs/service/fresh-ids.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { listTransactions } from './lists.ts';

const ledger = useLedger();

async function search(q: string): Promise<SearchHit[]> {
  const reply = await ledger.ask({ name: 'search_postings', data: { q } });
  if (!reply.ok) throw new Error(JSON.stringify(reply));
  return reply.data as SearchHit[];
}

it('finds postings by their ids, reference, Idempotency-Key, and request id', async () => {
  const [from, to] = [await ledger.open('Savings', '100'), await ledger.open('Checking', '0')];
  const [bits, moved] = [freshBits(), freshBits()];
  const named = { reference: 'INV-7', external_id: 'ORDER-7', idempotency_key: 'key 7', request_id: 'request-7' };
  await ledger.book([
    ledger.cash('Deposit', from, '5', named, bits),
    ledger.transfer(from, to, '2.50', { idempotency_key: 'key 8' }, moved),
  ]);
  const deposit = {
    kind: 'transaction',
    id: formatId('transaction', bits),
    title: 'Deposit 5.00 USD',
    subtitle: `Completed, credit on ${from}`,
  };
  expect(await search(deposit.id)).toMatchObject([{ ...deposit, matched: 'id' }]);
  for (const [q, matched] of [
    ['INV-7', 'reference'],
    ['inv-7', 'reference'],
    ['Inv-7', 'reference'],
    ['ORDER-7', 'external_id'],
    ['key 7', 'idempotency_key'],
    ['request-7', 'request_id'],
    [formatId('operation', bits), 'operation_id'],
    [receiptNumber(deposit.id), 'receipt_number'],
    [receiptNumber(deposit.id).toLowerCase().replace('-', ' '), 'receipt_number'],
  ] as const)
    expect(await search(q), q).toMatchObject([{ ...deposit, matched }]);
  const [transaction, transfer] = [formatId('transaction', moved), formatId('transfer', moved)];
  const both = [transaction, creditLegId(transfer), transfer].sort();
  for (const q of [transfer, formatId('operation', moved), 'key 8'])
    expect((await search(q)).map(({ id }) => id).sort(), q).toEqual(both);
  expect((await search(receiptNumber(transfer))).map(({ id }) => id).sort()).toEqual([transaction, transfer].sort());
  expect((await search(transaction)).map(({ id }) => id).sort()).toEqual([transaction, transfer].sort());
  expect((await search(transfer)).find(({ kind }) => kind === 'transfer')).toMatchObject({
    title: 'Transfer 2.50 USD',
    subtitle: `Completed, from ${from} to ${to}`,
  });
  for (const q of [
    'INV',
    'order-7',
    'key',
    formatId('transaction', freshBits()),
    `${idBits(transfer)}`,
    "x' or 1=1 --",
  ])
    expect(await search(q), q).toEqual([]);
});

it('searches for a request id at the time in it, then among the newest, and returns at most twenty', async () => {
  // contract: envelope-37
  const [of, repeated, early] = ['2020-01-01T00:00:05Z', '2020-01-01T09:00:00Z', '2020-01-01T00:01:00Z'].map((time) =>
    freshRequestId(Date.parse(time)),
  ) as [string, string, string];
  const account_id = await ledger.open('Savings', '0');
  // The second and the third id are those of callers: what they posted has another time.
  await ledger.owner.query(
    `insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, reference, created_at)
     select md5('t' || n)::uuid, md5('t' || n)::uuid, $1::uuid, 'Deposit', 'credit', 1, 'USD', 'Completed', 'test', case n when 6 then $2 when 119990 then $3 when 7200 then $4 else 'old-' || n end, 'SALARY', timestamptz '2020-01-01Z' + n * interval '1 second' from generate_series(1, 120000) n`,
    [account_id.slice(4), of, repeated, early],
  );
  // So many in the period of one id that a search does not scan them all.
  const [among, beyond] = [freshRequestId(Date.parse('2019-01-01Z')), freshRequestId(Date.parse('2019-01-01Z'))];
  await ledger.owner.query(
    `insert into transactions (transaction_id, operation_id, account_id, transaction_type, direction, amount_minor, currency, status, actor, request_id, created_at)
     select md5('m' || n)::uuid, md5('m' || n)::uuid, $1::uuid, 'Deposit', 'credit', 1, 'USD', 'Completed', 'test', case n when 20000 then $2 when 20001 then $3 else 'many' end, timestamptz '2019-01-01Z' + n * interval '1 millisecond' from generate_series(1, 20001) n`,
    [account_id.slice(4), among, beyond],
  );
  await ledger.owner.query('analyze transactions');
  expect(await search('SALARY')).toHaveLength(20);
  expect(await search('old-119999')).toHaveLength(1);
  expect(await search('old-5')).toEqual([]);
  expect(await search(of)).toMatchObject([{ matched: 'request_id', created_at: '2020-01-01T00:00:06.000Z' }]);
  expect(await search(repeated)).toMatchObject([{ matched: 'request_id', created_at: '2020-01-02T09:19:50.000Z' }]);
  expect(await search(among)).toHaveLength(1);
  expect(await search(beyond)).toEqual([]);
  const page = { limit: 10, order: 'desc', after: undefined } as const;
  const listed = async (filters: object, scanned: number) =>
    (await listTransactions(ledger.reads, { ...page, ...filters }, undefined, scanned)) ?? { items: [] };
  const found = { items: [{ created_at: '2020-01-01T00:00:06.000Z' }], complete: true };
  expect(await listed({ request_id: of }, 50)).toMatchObject(found);
  expect((await listed({ request_id: of }, 50)).items).toHaveLength(1);
  expect((await listed({ request_id: repeated }, 50)).items).toMatchObject([
    { created_at: '2020-01-02T09:19:50.000Z' },
  ]);
  expect(await listed({ request_id: early }, 50)).toMatchObject({ items: [], complete: false, next: {} });
  const later = { from: '2020-01-01T01:59:00.000Z', to: '2020-01-01T02:01:00.000Z' };
  expect((await listed({ request_id: early, ...later }, 200)).items).toHaveLength(1);
  expect(await listed({ request_id: of, ...later }, 200)).toMatchObject({ items: [], complete: true });
  expect(await listed({ request_id: 'old-7' }, 50)).toMatchObject({ items: [], complete: false });
  const around = { from: '2020-01-01T00:00:00.000Z', to: '2020-01-01T00:00:20.000Z' };
  expect(await listed({ request_id: 'old-7', ...around }, 50)).toMatchObject({
    items: [{ created_at: '2020-01-01T00:00:07.000Z' }],
    complete: true,
  });
});
