import { expect, test } from 'vitest';
import type { LimitName } from '#libs/contracts/limits.ts';
import type { Command } from '../domain/decision.ts';
import { freshBits, useLedger } from '../test/harness.ts';
import { verifyBooks } from '../verify/verify-books.ts';

const ledger = useLedger();

function limiting(account_id: string, limits: Partial<Record<LimitName, string>>): Command {
  const bits = freshBits();
  const context = ledger.testContext(bits, { message_id: `cmd_${bits}` });
  return { name: 'set_account_limits', data: { account_id, ...limits }, context };
}
const book = async (commands: Command[], slot = 0) =>
  (await ledger.book(commands, slot)).map((reply) => (reply.ok ? 'done' : reply.refusal.code));
const stored = async (account: string) =>
  (
    await ledger.owner.query(
      'select per_day_out_minor, out_day is not null as counted, out_minor from accounts where account_id = $1::uuid',
      [account.slice(4)],
    )
  ).rows[0];

test('what left the account before the limit was set counts, in the same batch too; reversals do not', async () => {
  // contract: limits-8, limits-10
  const [a, b] = [await ledger.open('Savings', '1000'), await ledger.open('Savings', '0')];
  const bits = freshBits();
  expect(await book([ledger.cash('Withdrawal', a, '10'), ledger.transfer(a, b, '20')])).toEqual(['done', 'done']);
  expect(await book([ledger.cash('Deposit', a, '30', {}, bits)])).toEqual(['done']);
  expect(await book([ledger.reversal(`txn_${bits}`)])).toEqual(['done']);
  expect(
    await book([
      ledger.cash('Withdrawal', a, '5'),
      limiting(a, { per_day_out: '40' }),
      ledger.cash('Withdrawal', a, '5.01'),
      ledger.cash('Withdrawal', a, '5'),
      ledger.cash('Withdrawal', a, '0.01'),
    ]),
  ).toEqual(['done', 'done', 'limit_exceeded', 'done', 'limit_exceeded']);
  expect(await stored(a)).toEqual({ per_day_out_minor: 4_000n, counted: true, out_minor: 4_000n });
  expect(await ledger.ask({ name: 'get_account_limits', data: { account_id: a } })).toEqual({
    ok: true,
    data: { account_id: a, currency: 'USD', per_day_out: '40.00', out_today: '40.00' },
  });
  expect(await book([limiting(a, {}), ledger.cash('Withdrawal', a, '100')])).toEqual(['done', 'done']);
  expect(await stored(a)).toEqual({ per_day_out_minor: null, counted: false, out_minor: 0n });
  expect(await book([limiting(a, { per_day_out: '140.01' }), ledger.transfer(a, b, '0.02')])).toEqual([
    'done',
    'limit_exceeded',
  ]);
  expect(await book([ledger.transfer(a, b, '0.01')])).toEqual(['done']);
  expect(await verifyBooks(ledger.owner)).toEqual([]);
});

test('writers at once cannot exceed a limit per day together', async () => {
  // contract: limits-8
  const [a, b] = [await ledger.open('Savings', '1000'), await ledger.open('Savings', '0')];
  expect(await book([limiting(a, { per_day_out: '100' })])).toEqual(['done']);
  const codes = await Promise.all(
    Array.from({ length: 12 }, (_, slot) =>
      book([ledger.transfer(a, b, '15'), ledger.cash('Withdrawal', a, '5')], slot),
    ),
  );
  const done = (index: number) => codes.filter((pair) => pair[index] === 'done').length;
  expect(done(0) * 15 + done(1) * 5).toBeLessThanOrEqual(100);
  expect((await stored(a))?.['out_minor']).toBe(BigInt(done(0) * 1_500 + done(1) * 500));
});

test('the database refuses a limit below 0, and a limit per day that is not counted', async () => {
  const a = (await ledger.open('Savings', '1')).slice(4);
  const update = (set: string) => ledger.owner.query(`update accounts set ${set} where account_id = '${a}'`);
  await expect(update('minimum_balance_minor = -1')).rejects.toThrow(/check/);
  await expect(update('per_day_out_minor = 1')).rejects.toThrow(/limits_per_day_are_counted/);
});
