import { describe, expect, it } from 'vitest';
import type { Answer, Api, RestAccount, RestTransaction, RestTransfer } from '../support/client.ts';
import { useBank } from '../support/world.ts';

/**
 * A model of the contract's rules, written apart from the ledger, beside the real bank: a thousand
 * operations drawn from a fixed seed must have the same outcome in both, refusal codes included,
 * and leave the same balances.
 */
const world = useBank({ gateways: 2, ledgers: 2 });

const max = 10n ** 15n - 1n;

interface Account {
  id: string;
  isLoan: boolean;
  currency: string;
  status: string;
  balance: bigint;
}

interface Leg {
  id: string;
  account: Account;
  direction: 'credit' | 'debit';
}

/** A booked operation: one leg per customer's account. Reversals and refused ones cannot be reversed. */
interface Operation {
  legs: Leg[];
  amount: bigint;
  canBeReversed: boolean;
  isReversed: boolean;
}

/** mulberry32: the same numbers for the same seed. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 4294967296) * below);
  };
}

const decimal = (minor: bigint) => Number(`${minor / 100n}.${String(minor % 100n).padStart(2, '0')}`);

/** What a posting of these legs is refused for: all about the first, who pays, before anything about the second. */
function refusalOf(legs: Omit<Leg, 'id'>[], amount: bigint): string | undefined {
  for (const { account, direction } of legs) {
    if (account.status !== 'Active') return 'inactive_account';
    if (direction === 'credit' && account.balance + amount > max) return 'balance_limit_exceeded';
    if (direction === 'debit' && account.balance < amount)
      return account.isLoan ? 'amount_exceeds_outstanding' : 'insufficient_funds';
  }
  return undefined;
}

function book(legs: Omit<Leg, 'id'>[], amount: bigint): void {
  for (const { account, direction } of legs) account.balance += direction === 'credit' ? amount : -amount;
}

class Model {
  readonly operations: Operation[] = [];
  readonly accounts: Account[];

  constructor(accounts: Account[]) {
    this.accounts = accounts;
  }

  async cash(
    api: Api,
    account: Account,
    type: 'Deposit' | 'Withdrawal',
    amount: bigint,
    currency: string | undefined,
  ): Promise<void> {
    const legs = [{ account, direction: type === 'Deposit' ? ('credit' as const) : ('debit' as const) }];
    const otherCurrency = currency !== undefined && currency !== account.currency;
    const expected = account.isLoan
      ? 'invalid_account_type'
      : account.status !== 'Active'
        ? 'inactive_account'
        : otherCurrency
          ? 'currency_mismatch'
          : refusalOf(legs, amount);
    const answer = await api.post('/transactions', {
      account_id: account.id,
      transaction_type: type,
      amount: decimal(amount),
      currency,
    });
    if (this.isRefused(answer, expected)) return;
    book(legs, amount);
    this.operations.push({
      legs: legs.map((leg) => ({ ...leg, id: (answer.body as RestTransaction).transaction_id })),
      amount,
      canBeReversed: true,
      isReversed: false,
    });
  }

  async transfer(api: Api, from: Account, to: Account, amount: bigint): Promise<void> {
    const legs: Omit<Leg, 'id'>[] = [
      { account: from, direction: 'debit' },
      { account: to, direction: to.isLoan ? 'debit' : 'credit' },
    ];
    const cannotPay = from.isLoan ? 'invalid_account_type' : refusalOf(legs.slice(0, 1), amount);
    const inOtherCurrency = to.status === 'Active' && from.currency !== to.currency ? 'currency_mismatch' : undefined;
    const expected = cannotPay ?? inOtherCurrency ?? refusalOf(legs.slice(1), amount);
    const answer = await api.post('/transfers', {
      from_account_id: from.id,
      to_account_id: to.id,
      amount: decimal(amount),
    });
    if (this.isRefused(answer, expected)) return;
    book(legs, amount);
    const shown = (
      await api.get(`/transactions?transfer_id=${answer.data<RestTransfer>().transfer_id}`)
    ).list<RestTransaction>();
    const ids = legs.map(
      ({ account }) => shown.find(({ account_id }) => account_id === account.id)?.transaction_id ?? '',
    );
    this.operations.push({
      legs: legs.map((leg, i) => ({ ...leg, id: ids[i] ?? '' })),
      amount,
      canBeReversed: true,
      isReversed: false,
    });
  }

  async reverse(api: Api, operation: Operation, leg: Leg): Promise<void> {
    const turned = operation.legs.toReversed().map(({ account, direction }) => ({
      account,
      direction: direction === 'credit' ? ('debit' as const) : ('credit' as const),
    }));
    const expected = !operation.canBeReversed
      ? 'not_reversible'
      : operation.isReversed
        ? 'already_reversed'
        : refusalOf(turned, operation.amount);
    const answer = await api.post(`/transactions/${leg.id}/reversal`, { reason: 'model' });
    if (this.isRefused(answer, expected)) return;
    book(turned, operation.amount);
    operation.isReversed = true;
    const reversal = answer.data<RestTransaction>();
    expect(reversal).toMatchObject({
      account_id: leg.account.id,
      direction: leg.direction === 'credit' ? 'debit' : 'credit',
      amount: decimal(operation.amount),
    });
    this.operations.push({
      legs: [{ id: reversal.transaction_id, account: leg.account, direction: reversal.direction }],
      amount: operation.amount,
      canBeReversed: false,
      isReversed: false,
    });
  }

  async setStatus(api: Api, account: Account, status: string): Promise<void> {
    await api.setStatus(account.id, status, 'other');
    account.status = status;
  }

  private isRefused(answer: Answer, expected: string | undefined): boolean {
    expect(
      { status: answer.status, code: expected === undefined ? undefined : answer.error.code },
      answer.text,
    ).toEqual({ status: expected === undefined ? 201 : 400, code: expected });
    const failed = expected === 'insufficient_funds' ? answer.error.details?.['transaction_id'] : undefined;
    if (failed !== undefined)
      this.operations.push({
        legs: [{ id: failed, account: this.accounts[0] as Account, direction: 'debit' }],
        amount: 0n,
        canBeReversed: false,
        isReversed: false,
      });
    return expected !== undefined;
  }
}

async function openAccounts(): Promise<Account[]> {
  const { client_id } = await world.api.client();
  const wanted = [
    ['Savings', 'USD', 500],
    ['Current', 'USD', 0],
    ['Checking', 'USD', 9_999_999_999_990],
    ['Savings', 'EUR', 100],
    ['Loan', 'USD', 300],
    ['Loan', 'EUR', 50],
  ] as const;
  const opened: Account[] = [];
  for (const [account_type, currency, initial_deposit] of wanted) {
    const { account_id } = await world.api.account(client_id, { account_type, currency, initial_deposit });
    opened.push({
      id: account_id,
      isLoan: account_type === 'Loan',
      currency,
      status: 'Active',
      balance: BigInt(initial_deposit) * 100n,
    });
  }
  return opened;
}

describe('The bank and a model of it agree', () => {
  it.each([1, 2, 3])('on what becomes of random operations, seed %i', async (seed) => {
    const below = random(seed);
    const model = new Model(await openAccounts());
    const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
    const amount = () => BigInt(pick([1 + below(500), 1 + below(20_000), 1 + below(200_000)]));
    const noLoans = model.accounts.filter(({ isLoan }) => !isLoan);
    for (let i = 0; i < 330; i++) {
      const api = world.gateway(below(2));
      const account = pick([...model.accounts, ...noLoans]);
      const currency = pick([undefined, account.currency, account.currency, 'EUR']);
      const kind = below(100);
      if (kind < 22) await model.cash(api, account, 'Deposit', amount(), currency);
      else if (kind < 42) await model.cash(api, account, 'Withdrawal', amount(), currency);
      else if (kind < 70)
        await model.transfer(api, account, pick(model.accounts.filter((other) => other !== account)), amount());
      else if (kind < 92 && model.operations.length > 0) {
        const operation = pick(model.operations);
        await model.reverse(api, operation, pick(operation.legs));
      } else if (kind >= 92) {
        const closed = model.accounts.find(({ status }) => status !== 'Active');
        await model.setStatus(api, closed ?? account, closed ? 'Active' : pick(['Inactive', 'Frozen']));
      }
    }
    for (const { id, balance, status } of model.accounts) {
      expect((await world.api.get(`/accounts/${id}`)).data<RestAccount>()).toMatchObject({
        balance: decimal(balance),
        status,
      });
      const [newest] = await world.api.entries(id);
      expect(newest?.balance_after ?? 0).toBe(decimal(balance));
    }
    await world.expectBooksInOrder();
  });
});
