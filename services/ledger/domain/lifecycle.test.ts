import { describe, expect, it } from 'vitest';
import { accountEtag } from '#libs/contracts/etag.ts';
import { formatId } from '#libs/contracts/ids.ts';
import { fromMinor } from '#libs/contracts/money.ts';
import {
  cash,
  idIn,
  now,
  opening,
  replyCode,
  replyMessage,
  statusChange,
  testAccount,
  testBits,
  testBooks,
} from '../test/test-kit.ts';
import { decide } from './posting.ts';

describe('opening', () => {
  it('without an amount opens the account, posts nothing, and needs no slot', () => {
    const books = {
      ...testBooks([]),
      system: () => {
        throw new Error('no cash moves');
      },
    };
    const decision = decide(opening(7, 'Savings', '0'), books);
    expect(decision.reply).toEqual({
      ok: true,
      data: { account_id: formatId('account', testBits(7)), status: 'Active', status_version: 1, balance: '0.00' },
    });
    expect([decision.transactions, decision.entries, books.moved.size]).toEqual([[], [], 0]);
    expect(decision.opened).toEqual({ ...testAccount(7, 'Savings'), out_day: '2026-01-02' });
    expect(decision.keep).toEqual(decision.reply);
  });

  it('posts the initial deposit as a separate Deposit, also if the account is opened Inactive or Frozen', () => {
    // contract: accounts-8
    const books = testBooks([]);
    const decision = decide(opening(7, 'Current', '12.34', 'USD', 'Frozen'), books);
    expect(decision.transactions).toMatchObject([
      {
        account_id: formatId('account', testBits(7)),
        transaction_type: 'Deposit',
        direction: 'credit',
        amount_minor: 1234n,
        description: 'Initial deposit',
        reference: null,
        status: 'Completed',
        counterparty_account_id: null,
      },
    ]);
    expect(decision.reply).toMatchObject({ ok: true, data: { status: 'Frozen', balance: '12.34' } });
    expect(decision.entries.map((e) => [e.direction, e.side])).toEqual([
      ['credit', 'CR'],
      ['credit', 'DR'],
      ['debit', 'CR'],
      ['credit', 'DR'],
    ]);
    expect([books.system('Teller', 'USD').balance_minor, books.system('Vault', 'USD').balance_minor]).toEqual([
      0n,
      1234n,
    ]);
  });

  it('opens only one account per number, within a batch and across batches, and stores the refusal', () => {
    const books = testBooks([]);
    decide(opening(7, 'Savings', '5'), books);
    const sameNumber = opening(8, 'Savings', '5');
    if (sameNumber.name === 'open_ledger_account') sameNumber.data.account_number = 'SAV-0000000007';
    const refused = decide(sameNumber, books);
    expect(replyCode(refused)).toBe('duplicate_account_number');
    expect(replyMessage(refused)).toMatch(/^Duplicate Account Number: .*SAV-0000000007/);
    expect([refused.keep, refused.opened, refused.entries]).toEqual([refused.reply, undefined, []]);
    const taken = testBooks([]);
    taken.takenNumbers.add('SAV-0000000009');
    expect(replyCode(decide(opening(9, 'Savings', '5'), taken))).toBe('duplicate_account_number');
  });

  it('never opens an existing account, even with another number', () => {
    const account = testAccount(7, 'Savings', 'USD', 'Active', 500n);
    const books = testBooks([account]);
    expect(replyCode(decide(opening(7, 'Savings', '5'), books))).toBe('duplicate_account_number');
    expect(books.accounts.get(account.account_id)).toBe(account);
    expect(account.balance_minor).toBe(500n);
  });

  it('throws for an amount that the gateway should have refused', () => {
    expect(() => decide(opening(7, 'Savings', '1.234'), testBooks([]))).toThrow('1.234 USD');
  });

  it('lets later commands of the batch use the account', () => {
    const books = testBooks([]);
    const { opened } = decide(opening(7, 'Savings', '5'), books);
    expect(replyCode(decide(cash('Withdrawal', testAccount(7, 'Savings'), '5'), books))).toBe('done');
    expect(opened?.balance_minor).toBe(0n);
  });
});

describe('status', () => {
  it('decides from, to, no change, and version', () => {
    const account = testAccount(1, 'Savings');
    const books = testBooks([account]);
    expect(decide(statusChange(account, 'Active'), books).reply).toMatchObject({
      data: { changed: false, status_version: 1 },
    });
    const frozen = statusChange(account, 'Frozen');
    expect(decide(frozen, books).reply).toMatchObject({
      data: { changed: true, from_status: 'Active', to_status: 'Frozen', status_version: 2 },
    });
    expect(decide(statusChange(account, 'Active'), books).reply).toMatchObject({
      data: { changed: true, status_version: 3 },
    });
    // A repeat of the freeze does not freeze again.
    expect(decide(frozen, books).reply).toMatchObject({ replayed: true, data: { status_version: 2 } });
    expect(account.status).toBe('Active');
  });

  it('replies with the balance and the time; only a change is written', () => {
    const account = testAccount(1, 'Savings', 'USD', 'Active', 1050n);
    const books = testBooks([account]);
    const noChange = decide(statusChange(account, 'Active'), books);
    expect(noChange.statusChanged).toBeUndefined();
    expect(noChange.keep).toEqual(noChange.reply);
    const changed = decide(statusChange(account, 'Inactive'), books);
    expect(changed.reply).toEqual({
      ok: true,
      data: {
        account_id: account.account_id,
        from_status: 'Active',
        to_status: 'Inactive',
        changed: true,
        status_version: 2,
        balance: '10.50',
        available_balance: '10.50',
        changed_at: now,
      },
    });
    expect([changed.statusChanged, changed.keep]).toEqual([account, changed.reply]);
    expect([changed.transactions, changed.entries]).toEqual([[], []]);
  });

  it('with If-Match is refused, and the refusal stored, for another balance, hold, or status version', () => {
    // contract: accounts-16
    const account = testAccount(1, 'Savings', 'USD', 'Active', 1050n);
    const books = testBooks([account]);
    const change = (status: 'Active' | 'Inactive' | 'Frozen', seen: string) => {
      const command = statusChange(account, status);
      if (command.name === 'change_ledger_account_status') command.data.if_match = [`"x"`, seen];
      return decide(command, books);
    };
    const tag = () => {
      const balance = fromMinor(account.balance_minor, 'USD');
      const available_balance = fromMinor(account.balance_minor - account.held_minor, 'USD');
      return accountEtag({ status: account.status, balance, available_balance }, account.status_version);
    };
    const stale = tag();
    for (const step of [
      () => void (account.balance_minor += 1n),
      () => void (account.held_minor += 1n),
      () => void decide(statusChange(account, 'Frozen'), books),
      () => void decide(statusChange(account, 'Active'), books),
    ]) {
      step();
      const status = account.status === 'Active' ? 'Inactive' : 'Active';
      const refused = change(status, stale);
      expect([replyCode(refused), refused.keep, refused.statusChanged]).toEqual([
        'version_mismatch',
        refused.reply,
        undefined,
      ]);
      expect(replyMessage(refused)).toContain(account.account_id);
    }
    expect(replyCode(change('Active', stale))).toBe('done');
    expect([replyCode(change('Inactive', tag())), account.status]).toEqual(['done', 'Inactive']);
  });

  it('of a missing account, Teller, or Vault returns account_not_found, which is stored', () => {
    const books = testBooks([]);
    const vault = books.system('Vault', 'USD');
    books.accounts.set(vault.account_id, vault);
    for (const account of [testAccount(9, 'Savings'), vault]) {
      const decision = decide(statusChange(account, 'Frozen'), books);
      expect([replyCode(decision), decision.keep, decision.statusChanged]).toEqual([
        'account_not_found',
        decision.reply,
        undefined,
      ]);
      expect(replyMessage(decision)).toContain(account.account_id);
    }
    expect(vault.status).toBe('Active');
  });

  it('out of Frozen is refused, and stored, if it needs an approval; other changes are allowed', () => {
    const account = testAccount(1, 'Savings', 'USD', 'Frozen');
    const books = testBooks([account]);
    const keeping = (status: 'Active' | 'Inactive' | 'Frozen') => {
      const four_eyes = JSON.stringify({ actions: ['unfreeze'], limits: {}, day: '2026-01-02' });
      return decide(statusChange(account, status, undefined, { four_eyes }), books);
    };
    for (const status of ['Active', 'Inactive'] as const) {
      const refused = keeping(status);
      expect([replyCode(refused), refused.keep, refused.statusChanged, account.status]).toEqual([
        'approval_required',
        refused.reply,
        undefined,
        'Frozen',
      ]);
    }
    expect(replyCode(keeping('Frozen'))).toBe('done');
    expect(replyCode(decide(statusChange(account, 'Inactive'), books))).toBe('done');
    expect([replyCode(keeping('Active')), account.status]).toEqual(['done', 'Active']);
  });

  it('Inactive and Frozen refuse postings, already in the same batch; Active allows them again', () => {
    const account = testAccount(1, 'Savings', 'USD', 'Active', 100n);
    const books = testBooks([account]);
    for (const status of ['Inactive', 'Frozen'] as const) {
      decide(statusChange(account, status), books);
      for (const type of ['Deposit', 'Withdrawal'] as const) {
        const refused = decide(cash(type, account, '1'), books);
        expect(replyCode(refused)).toBe('inactive_account');
        expect(replyMessage(refused)).toMatch(new RegExp(`^Inactive Account: .*${account.account_id}.*${status}`));
      }
    }
    decide(statusChange(account, 'Active'), books);
    expect(idIn(decide(cash('Withdrawal', account, '1'), books))).toMatch(/^txn_/);
  });
});
