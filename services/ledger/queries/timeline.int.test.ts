import { expect, it } from 'vitest';
import { creditLegId, formatId, idBits, openingTransactionId } from '#libs/contracts/ids.ts';
import { type Timeline, timelineSchema } from '#libs/contracts/timeline.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { batchesStatement, messagesStatement, operationStatement } from './timeline.ts';

const ledger = useLedger();

async function timeline(transaction_id: string): Promise<Timeline> {
  const reply = await ledger.ask({ name: 'get_timeline', data: { transaction_id } });
  if (!reply.ok) throw new Error(JSON.stringify(reply));
  return timelineSchema.strict().parse(reply.data);
}
const sides = ({ entries }: Timeline) =>
  entries.map(({ account_type, side, amount }) => `${account_type} ${side} ${amount}`);

it('shows a deposit from its request to its events, with both sides of Teller and Vault', async () => {
  const account_id = await ledger.open('Savings', '100');
  const bits = freshBits();
  const batch = [1, 2, 3].map(() => ledger.cash('Deposit', account_id, '1'));
  await ledger.book(
    [
      ...batch,
      ledger.cash('Deposit', account_id, '25', { request_id: 'req-t', actor: 'key:t', idempotency_key: 'once' }, bits),
    ],
    3,
  );
  const told = await timeline(formatId('transaction', bits));
  expect(told.transaction).toMatchObject({
    transaction_id: formatId('transaction', bits),
    amount: '25.00',
    status: 'Completed',
  });
  expect(told.request).toEqual({
    request_id: 'req-t',
    actor: 'key:t',
    idempotency_key: 'once',
    accepted_at: told.transaction.created_at,
  });
  expect(told.command).toMatchObject({
    name: 'create_transaction',
    id: formatId('transaction', bits),
    topic: 'ledger.commands',
  });
  expect(sides(told)).toEqual(['Vault DR 25.00', 'Teller DR 25.00', 'Teller CR 25.00', 'Savings CR 25.00']);
  for (const { operation_id, created_at } of told.entries)
    expect([operation_id, created_at]).toEqual([formatId('operation', bits), told.booked_at]);
  expect(told.events).toMatchObject([
    {
      ce_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      type: 'corebanking.transaction.completed.v1',
      topic: 'transactions',
      key: account_id,
      state: 'waiting',
      published_at: null,
    },
    { type: 'corebanking.balance.v1', topic: 'balances', key: account_id, state: 'waiting' },
  ]);
  expect(told.events[0]?.ce_id.replaceAll('-', '')).toBe(bits);
});

it('shows transfers, loans, reversals, openings, and refusals', async () => {
  const [from, to, loan] = [
    await ledger.open('Savings', '100'),
    await ledger.open('Checking', '0'),
    await ledger.open('Loan', '40'),
  ];
  const [moved, paid, undone, refused] = [freshBits(), freshBits(), freshBits(), freshBits()];
  await ledger.book([
    ledger.transfer(from, to, '10', {}, moved),
    ledger.transfer(from, loan, '5', {}, paid),
    ledger.cash('Withdrawal', to, '9999', {}, refused),
  ]);
  const transfer = await timeline(creditLegId(formatId('transfer', moved)));
  expect(transfer.command).toMatchObject({ name: 'create_transfer', id: formatId('transfer', moved) });
  expect(sides(transfer).sort()).toEqual(['Checking CR 10.00', 'Savings DR 10.00']);
  expect(transfer.events.map(({ type }) => type)).toEqual(
    expect.arrayContaining([
      'corebanking.transfer.completed.v1',
      'corebanking.transaction.completed.v1',
      'corebanking.balance.v1',
    ]),
  );
  expect(sides(await timeline(formatId('transaction', paid))).sort()).toEqual(['Loan CR 5.00', 'Savings DR 5.00']);
  await ledger.book([ledger.reversal(formatId('transaction', moved), {}, undone)]);
  expect(await timeline(formatId('transaction', undone))).toMatchObject({
    command: { name: 'reverse_transaction', id: formatId('transaction', undone) },
    transaction: { reverses_transaction_id: formatId('transaction', moved) },
  });
  expect((await timeline(formatId('transaction', moved))).transaction.reversed_by_transaction_id).toBe(
    formatId('transaction', undone),
  );
  expect(sides(await timeline(openingTransactionId(loan)))).toHaveLength(4);
  expect((await timeline(openingTransactionId(loan))).command).toMatchObject({ name: 'open_ledger_account', id: loan });
  const [batch_id, item] = [formatId('batch', freshBits()), freshBits()];
  await ledger.book([ledger.cash('Deposit', to, '1', { batch_id }, item)]);
  expect(await timeline(formatId('transaction', item))).toMatchObject({
    command: { name: 'create_batch', id: batch_id, topic: 'ledger.batches' },
    transaction: { batch_id },
  });
  const failed = await timeline(formatId('transaction', refused));
  expect(failed).toMatchObject({
    booked_at: null,
    entries: [],
    transaction: { status: 'Failed', failure_code: 'insufficient_funds' },
    events: [{ type: 'corebanking.transaction.failed.v1', state: 'waiting' }],
  });
  const [nowhere, tooPrecise] = [freshBits(), freshBits()];
  const unknown = formatId('account', freshBits());
  await ledger.book([
    ledger.cash('Deposit', unknown, '1', {}, nowhere),
    ledger.cash('Deposit', to, '1.001', {}, tooPrecise),
  ]);
  expect((await timeline(formatId('transaction', nowhere))).events).toMatchObject([
    { type: 'corebanking.transaction.account_not_found.v1', topic: 'transactions', key: unknown, state: 'waiting' },
  ]);
  expect((await timeline(formatId('transaction', tooPrecise))).events).toEqual([]);
  for (const id of [formatId('transaction', freshBits()), 'txn_x'])
    expect(await ledger.ask({ name: 'get_timeline', data: { transaction_id: id } })).toMatchObject({
      ok: false,
      refusal: { code: 'transaction_not_found' },
    });
});

it('shows when events were published, or that this is unknown after the outbox was purged', async () => {
  const account_id = await ledger.open('Savings', '1');
  const bits = freshBits();
  const nowhere = freshBits();
  await ledger.book([
    ledger.cash('Deposit', account_id, '1', {}, bits),
    ledger.cash('Deposit', formatId('account', freshBits()), '1', {}, nowhere),
  ]);
  await ledger.owner.query('update outbox_batches set published_at = clock_timestamp() where published_at is null');
  expect((await timeline(formatId('transaction', bits))).events[0]).toMatchObject({
    state: 'published',
    published_at: expect.stringMatching(/Z$/),
  });
  await ledger.owner.query('delete from outbox');
  await ledger.owner.query('delete from outbox_batches');
  expect((await timeline(formatId('transaction', bits))).events).toMatchObject([
    { state: 'not_kept', type: 'corebanking.transaction.completed.v1', topic: 'transactions', recorded_at: null },
  ]);
  expect((await timeline(formatId('transaction', nowhere))).events).toMatchObject([
    { state: 'not_kept', type: 'corebanking.transaction.account_not_found.v1' },
  ]);
});

it('uses only indexes, among many entries and their events', async () => {
  const account_id = await ledger.open('Savings', '1');
  const bits = freshBits();
  for (let n = 0; n < 14; n++)
    await ledger.book([
      ...Array.from({ length: 500 }, () => ledger.cash('Deposit', account_id, '1')),
      ...(n === 7 ? [ledger.cash('Deposit', account_id, '2', {}, bits)] : []),
    ]);
  for (let n = 0; n < 400; n++) await ledger.book([ledger.cash('Deposit', account_id, '1')]);
  for (const table of ['entries', 'outbox', 'outbox_batches']) await ledger.owner.query(`analyze ${table}`);
  const { booked_at, entries, events } = await timeline(formatId('transaction', bits));
  expect([entries.length, events.length]).toEqual([4, 2]);
  const at = Date.parse(booked_at ?? '');
  const uuids = `{${idBits(account_id)}}`;
  const queries = [
    [operationStatement, [uuids, 'USD', booked_at, bits]],
    [batchesStatement, [new Date(at - 100).toISOString(), new Date(at + 1).toISOString()]],
    [messagesStatement, [1, 20]],
  ] as const;
  for (const [statement, values] of queries) {
    const plan = await ledger.owner.query(`explain (analyze, buffers, format json) ${statement}`, [...values]);
    const root = plan.rows[0]['QUERY PLAN'][0].Plan;
    expect(JSON.stringify(root)).not.toMatch(/"Node Type":"Seq Scan"[^}]*"Relation Name":"(entries|outbox)"/);
    expect(root['Shared Hit Blocks'] + root['Shared Read Blocks']).toBeLessThan(2_500);
  }
}, 120_000);
