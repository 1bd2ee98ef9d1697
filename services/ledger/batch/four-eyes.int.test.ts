import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshBits, type LedgerHarness, startLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';

let ledger: LedgerHarness;
let account: string;
beforeAll(async () => {
  ledger = await startLedger();
  account = await ledger.open('Savings', '1000');
});
afterAll(() => ledger?.stop());

const four_eyes = JSON.stringify({ actions: ['post_above', 'reverse'], limits: { USD: '100' }, day: '2026-01-02' });
const replyCodes = async (commands: Parameters<LedgerHarness['book']>[0], slot = 0) =>
  (await ledger.book(commands, slot)).map((reply) => (reply.ok ? 'done' : reply.refusal.code));
const posted = async (actor: string) =>
  (
    await ledger.owner.query<{ posted: string }>(
      'select currency, day::text, amount_minor::text as posted from posted_without_approval where actor = $1',
      [actor],
    )
  ).rows;

test('concurrent postings of one person, by several writers, cannot exceed the limit together', async () => {
  // contract: four-eyes-4
  const person = { actor: 'jwt:i|alice', four_eyes };
  const accounts = await Promise.all(Array.from({ length: 12 }, () => ledger.open('Savings', '0')));
  const codes = await Promise.all(
    accounts.map((id, slot) =>
      replyCodes([ledger.cash('Deposit', id, '10', person), ledger.cash('Deposit', id, '10', person)], slot),
    ),
  );
  expect(codes.flat().toSorted()).toEqual([
    ...Array.from({ length: 14 }, () => 'approval_required'),
    ...Array.from({ length: 10 }, () => 'done'),
  ]);
  expect(await posted(person.actor)).toEqual([{ currency: 'USD', day: '2026-01-02', posted: '10000' }]);
});

test('a posting that waits is known by its id until it is approved, and is then executed once', async () => {
  // contract: four-eyes-17, idempotency-17
  const person = { actor: 'jwt:i|bob', four_eyes, fingerprint: 'f'.repeat(32) };
  const bits = freshBits();
  const large = (rest: object) => ledger.cash('Deposit', account, '500', { ...person, ...rest }, bits);
  expect(await replyCodes([large({}), large({})])).toEqual(['approval_required', 'approval_required']);
  const wide = JSON.stringify({ actions: ['post_above'], limits: { USD: '1000' }, day: '2026-01-03' });
  expect(await replyCodes([large({ four_eyes: wide })])).toEqual(['approval_required']);
  expect(await replyCodes([large({ four_eyes: wide, fingerprint: 'e'.repeat(32) })])).toEqual([
    'idempotency_key_reused',
  ]);
  const read = () => ledger.ask({ name: 'get_transaction', data: { transaction_id: `txn_${bits}` } });
  expect(await read()).toMatchObject({
    ok: false,
    refusal: { code: 'approval_required', message: expect.stringContaining('send the request again') },
  });
  const approved = { four_eyes: undefined, approved_by: 'jwt:i|carol' };
  expect(await replyCodes([large(approved), large(approved)])).toEqual(['done', 'done']);
  expect(await replyCodes([large({})])).toEqual(['done']);
  expect(await read()).toMatchObject({ ok: true, data: { amount: '500.00', status: 'Completed' } });
  expect(await posted(person.actor)).toEqual([]);
});

test('a reversal that waits is executed once, when it is approved', async () => {
  const [reply] = await ledger.book([ledger.cash('Deposit', account, '5')]);
  const id = reply?.ok ? (reply.data as { transaction_id: string }).transaction_id : '';
  const command = ledger.reversal(id);
  const asked = { ...command, context: { ...command.context, actor: 'jwt:i|dan', four_eyes } } as typeof command;
  expect(await replyCodes([asked])).toEqual(['approval_required']);
  expect(await replyCodes([command])).toEqual(['done']);
  expect(await replyCodes([asked])).toEqual(['done']);
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});
