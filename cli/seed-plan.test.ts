import { expect, test } from 'vitest';
import { createPlan } from './seed-plan.ts';

const options = { clients: 200, days: 90, seed: 7 };
const plan = createPlan(options);
const steps = plan.chains.flat();

test('the seed determines everything', () => {
  expect(createPlan(options)).toEqual(plan);
  expect(createPlan({ ...options, seed: 8 })).not.toEqual(plan);
});

test('the bank is realistic: all account types, salaries, rents, groceries, loans, freezes, and refusals', () => {
  expect(plan.clients).toHaveLength(200);
  expect(new Set(plan.accounts.map(({ account_type }) => account_type))).toEqual(
    new Set(['Current', 'Checking', 'Savings', 'Loan']),
  );
  const count = (holds: (step: (typeof steps)[number]) => boolean) => steps.filter(holds).length;
  for (const what of ['Salary', 'Rent', 'Groceries', 'Loan instalment', 'Electricity', 'Cheque returned'])
    expect(
      count((step) => 'description' in step && step.description?.startsWith(what) === true),
      what,
    ).toBeGreaterThan(10);
  expect(count((step) => step.kind === 'status' && step.status === 'Frozen')).toBeGreaterThan(
    count((step) => step.kind === 'status' && step.status === 'Active'),
  );
  expect(count((step) => step.kind === 'hold' && step.captured !== undefined)).toBeGreaterThan(10);
  expect(count((step) => step.kind === 'hold' && step.captured === undefined)).toBeGreaterThan(3);
  expect(count((step) => step.kind === 'batch')).toBeGreaterThan(5);
  expect(count((step) => step.kind === 'limits')).toBeGreaterThan(1);
  expect(count((step) => step.kind === 'transaction' && (step.daysAgo ?? 0) >= 2)).toBeGreaterThan(5);
  expect(new Set(plan.accounts.map(({ external_id }) => external_id)).size).toBe(plan.accounts.length);
  expect(new Set(plan.clients.map(({ external_id }) => external_id)).size).toBe(plan.clients.length);
  expect(steps.length).toBeGreaterThan(5000);
});

test.each([options, { clients: 5, days: 3650, seed: 1 }, { clients: 30, days: 1, seed: 9999 }])(
  'only intended refusals lack funds, and no loan is overpaid: %o',
  (given) => {
    const { accounts, chains } = createPlan(given);
    const balances = accounts.map(({ initial_deposit = 0 }) => Math.round(initial_deposit * 100));
    const move = (account: number, amount: number) => {
      const balance = (balances[account] ?? 0) + Math.round(amount * 100);
      if (balance < 0) return false;
      balances[account] = balance;
      return true;
    };
    const wrong = chains.flat().filter((step) => {
      if (step.kind === 'status' || step.kind === 'limits') return false;
      // Money of holds that are never captured is not available.
      if (step.kind === 'hold')
        return (
          !move(step.account, -(step.captured?.amount ?? step.amount)) ||
          !move(step.captured?.to ?? 0, step.captured?.amount ?? 0)
        );
      if (step.kind === 'batch')
        return step.items.some(({ to, amount }) => !move(step.from, -amount) || !move(to, amount));
      if (step.kind === 'transfer')
        return (
          !move(step.from, -step.amount) ||
          !move(step.to, accounts[step.to]?.account_type === 'Loan' ? -step.amount : step.amount)
        );
      if (step.refused === 'inactive_account') return false;
      return (
        move(step.account, step.transaction_type === 'Deposit' ? step.amount : -step.amount) !==
        (step.refused === undefined)
      );
    });
    expect(wrong).toEqual([]);
  },
);
