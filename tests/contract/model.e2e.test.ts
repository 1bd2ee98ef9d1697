import { describe, expect, it } from 'vitest';
import type { Batch } from '#libs/contracts/batches.ts';
import { type Answer, type Api, newKey, type RestAccount, type RestTransaction } from '../support/client.ts';
import { useSharedBank } from '../support/world.ts';

/**
 * Compares the real bank with a model of the contract's rules that shares no code with the ledger:
 * a thousand random operations with a fixed seed, including holds and batches, must have the same
 * outcomes and refusal codes in both and leave the same balances.
 */
const world = useSharedBank();

const max = 10n ** 15n - 1n;

interface Account {
  id: string;
  isLoan: boolean;
  currency: string;
  status: string;
  balance: bigint;
  /** The sum of its active holds. */
  held: bigint;
}

interface Move {
  account: Account;
  direction: 'credit' | 'debit';
}

interface Leg extends Move {
  id: string;
}

/** A transaction or transfer, requested alone or as an item of a batch. */
interface Posting {
  kind: 'transaction' | 'transfer';
  body: object;
  moves: Move[];
  amount: bigint;
  refusal: () => string | undefined;
}

interface Hold {
  id: string;
  account: Account;
  /** 0 once the hold is no longer Active. */
  left: bigint;
}

/**
 * A posted operation: one leg per customer account. Reversals and refused operations cannot be
 * reversed.
 */
interface Operation {
  legs: Leg[];
  amount: bigint;
  canBeReversed: boolean;
  isReversed: boolean;
}

/** Returns random numbers that are the same for the same seed (mulberry32). */
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

/**
 * Returns the refusal of an operation with these moves. All rules for the paying account precede those for the other.
 */
function expectedRefusal(moves: Move[], amount: bigint): string | undefined {
  for (const { account, direction } of moves) {
    if (account.status !== 'Active') return 'inactive_account';
    if (direction === 'credit' && account.balance + amount > max) return 'balance_limit_exceeded';
    if (direction === 'debit' && account.balance - account.held < amount)
      return account.isLoan ? 'amount_exceeds_outstanding' : 'insufficient_funds';
  }
  return undefined;
}

/** Returns the refusal of a deposit, a withdrawal, or a hold. */
function refusalOn(move: Move, amount: bigint, currency: string | undefined): string | undefined {
  const { account } = move;
  if (account.isLoan) return 'invalid_account_type';
  if (account.status === 'Active' && (currency ?? account.currency) !== account.currency) return 'currency_mismatch';
  return expectedRefusal([move], amount);
}

function book(moves: Move[], amount: bigint): void {
  for (const { account, direction } of moves) account.balance += direction === 'credit' ? amount : -amount;
}

function cash(
  account: Account,
  transaction_type: 'Deposit' | 'Withdrawal',
  amount: bigint,
  currency: string | undefined,
): Posting {
  const move: Move = { account, direction: transaction_type === 'Deposit' ? 'credit' : 'debit' };
  return {
    kind: 'transaction',
    body: { account_id: account.id, transaction_type, amount: decimal(amount), currency },
    moves: [move],
    amount,
    refusal: () => refusalOn(move, amount, currency),
  };
}

function transfer(from: Account, to: Account, amount: bigint): Posting {
  const [source, destination]: [Move, Move] = [
    { account: from, direction: 'debit' },
    { account: to, direction: to.isLoan ? 'debit' : 'credit' },
  ];
  return {
    kind: 'transfer',
    body: { from_account_id: from.id, to_account_id: to.id, amount: decimal(amount) },
    moves: [source, destination],
    amount,
    refusal: () => {
      if (from === to) return 'same_account';
      if (from.isLoan) return 'invalid_account_type';
      const cannotPay = expectedRefusal([source], amount);
      if (cannotPay) return cannotPay;
      return to.status === 'Active' && from.currency !== to.currency
        ? 'currency_mismatch'
        : expectedRefusal([destination], amount);
    },
  };
}

type Made = Partial<Pick<RestTransaction, 'transaction_id' | 'transfer_id'>>;

class Model {
  readonly operations: Operation[] = [];
  readonly holds: Hold[] = [];
  readonly accounts: Account[];

  constructor(accounts: Account[]) {
    this.accounts = accounts;
  }

  async post(api: Api, posting: Posting): Promise<void> {
    const expected = posting.refusal();
    const answer = await api.post(posting.kind === 'transfer' ? '/transfers' : '/transactions', posting.body);
    if (this.isRefused(answer, expected)) return;
    book(posting.moves, posting.amount);
    const { transaction_id, data } = answer.body as Made & { data?: Made };
    await this.remember(api, posting, { transaction_id, ...data });
  }

  /** In independent mode all postings are of one account, because only then their order is defined. */
  async batch(api: Api, mode: 'independent' | 'atomic', postings: Posting[]): Promise<void> {
    const balances = this.accounts.map(({ balance }) => balance);
    const expected = postings.map(({ moves, amount, refusal }) => {
      const code = refusal();
      if (code === undefined) book(moves, amount);
      return code;
    });
    const items = postings.map(({ kind, body }) => ({ [kind]: body }));
    const answer = await api.once(newKey(), '/batches', { mode, items });
    const refused = expected.flatMap((code, i) => (code ? [[`items[${i}].${postings[i]?.kind}`, code]] : []));
    if (mode === 'atomic' && refused.length > 0) {
      for (const [i, account] of this.accounts.entries()) account.balance = balances[i] as bigint;
      expect(answer.error.errors?.map(({ field, code }) => [field, code])).toEqual(refused);
      return;
    }
    const { results } = answer.data<Batch>();
    expect(results.map(({ status, error }) => error?.code ?? status)).toEqual(
      expected.map((code) => code ?? 'Completed'),
    );
    for (const [i, { error, ...made }] of results.entries())
      if (!error) await this.remember(api, postings[i] as Posting, { ...made.transaction, ...made.transfer });
  }

  async place(api: Api, account: Account, amount: bigint, currency: string | undefined): Promise<void> {
    const expected = refusalOn({ account, direction: 'debit' }, amount, currency);
    const answer = await api.post(`/accounts/${account.id}/holds`, { amount: decimal(amount), currency });
    if (this.isRefused(answer, expected)) return;
    account.held += amount;
    this.holds.push({ id: answer.data<{ hold_id: string }>().hold_id, account, left: amount });
  }

  async capture(api: Api, hold: Hold, part: bigint | undefined, to: Account | undefined, final: boolean) {
    const { account, left } = hold;
    const amount = part ?? left;
    const posting = to ? transfer(account, to, amount) : cash(account, 'Withdrawal', amount, undefined);
    account.held -= left;
    const other = account.held;
    account.held += left - amount;
    const expected = left === 0n ? 'hold_not_active' : amount > left ? 'amount_exceeds_hold' : posting.refusal();
    const answer = await api.post(`/holds/${hold.id}/capture`, {
      amount: part && decimal(part),
      to_account_id: to?.id,
      final,
    });
    const isRefused = this.isRefused(answer, expected);
    hold.left = isRefused ? left : final ? 0n : left - amount;
    account.held = other + hold.left;
    if (isRefused) return;
    book(posting.moves, amount);
    const { transaction, transfer: made } = answer.data<{ transaction?: Made; transfer?: Made }>();
    await this.remember(api, posting, { ...transaction, ...made });
  }

  async release(api: Api, hold: Hold): Promise<void> {
    const answer = await api.post(`/holds/${hold.id}/release`);
    if (this.isRefused(answer, hold.left === 0n ? 'hold_not_active' : undefined, 200)) return;
    hold.account.held -= hold.left;
    hold.left = 0n;
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
        : expectedRefusal(turned, operation.amount);
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

  private async remember(api: Api, { moves, amount }: Posting, made: Made): Promise<void> {
    const shown = made.transfer_id
      ? (await api.get(`/transactions?transfer_id=${made.transfer_id}`)).list<RestTransaction>()
      : [];
    const idOn = ({ id }: Account) =>
      shown.find(({ account_id }) => account_id === id)?.transaction_id ?? made.transaction_id ?? '';
    const legs = moves.map((move) => ({ ...move, id: idOn(move.account) }));
    this.operations.push({ legs, amount, canBeReversed: true, isReversed: false });
  }

  private isRefused(answer: Answer, expected: string | undefined, success = 201): boolean {
    expect(
      { status: answer.status, code: expected === undefined ? undefined : answer.error.code },
      answer.text,
    ).toEqual({ status: expected === undefined ? success : 400, code: expected });
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
      held: 0n,
    });
  }
  return opened;
}

describe('The bank and a model of it agree', () => {
  it.each([1, 2, 3])('on the outcomes of random operations with seed %i', { timeout: 180_000 }, async (seed) => {
    const below = random(seed);
    const model = new Model(await openAccounts());
    const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
    const amount = () => BigInt(pick([1 + below(500), 1 + below(20_000), 1 + below(200_000)]));
    const noLoans = model.accounts.filter(({ isLoan }) => !isLoan);
    for (let i = 0; i < 330; i++) {
      const api = world.gateway(below(2));
      const account = pick([...model.accounts, ...noLoans]);
      const currency = pick([undefined, account.currency, account.currency, 'EUR']);
      const other = pick(model.accounts);
      const posting = (from = account): Posting =>
        below(2) === 0
          ? transfer(from, pick(model.accounts), amount())
          : cash(from, pick(['Deposit', 'Withdrawal']), amount(), currency);
      const kind = below(100);
      if (kind < 18) await model.post(api, cash(account, 'Deposit', amount(), currency));
      else if (kind < 32) await model.post(api, cash(account, 'Withdrawal', amount(), currency));
      else if (kind < 50) await model.post(api, transfer(account, other, amount()));
      else if (kind < 54)
        await model.batch(
          api,
          'independent',
          Array.from({ length: 4 }, () => posting()),
        );
      else if (kind < 60)
        await model.batch(
          api,
          'atomic',
          Array.from({ length: 1 + below(4) }, () => posting(pick(noLoans))),
        );
      else if (kind < 68) await model.place(api, account, amount(), currency);
      else if (kind < 78 && model.holds.length > 0)
        await model.capture(
          api,
          pick(model.holds),
          pick([undefined, amount()]),
          pick([undefined, other]),
          below(2) === 0,
        );
      else if (kind < 80 && model.holds.length > 0) await model.release(api, pick(model.holds));
      else if (kind < 94 && model.operations.length > 0) {
        const operation = pick(model.operations);
        await model.reverse(api, operation, pick(operation.legs));
      } else if (kind >= 94) {
        const closed = model.accounts.find(({ status }) => status !== 'Active');
        await model.setStatus(api, closed ?? account, closed ? 'Active' : pick(['Inactive', 'Frozen']));
      }
    }
    for (const { id, balance, held, status } of model.accounts) {
      expect((await world.api.get(`/accounts/${id}`)).data<RestAccount>()).toMatchObject({
        balance: decimal(balance),
        available_balance: decimal(balance - held),
        status,
      });
      const [newest] = await world.api.entries(id);
      expect(newest?.balance_after ?? 0).toBe(decimal(balance));
    }
    await world.expectBooksInOrder();
  });
});
