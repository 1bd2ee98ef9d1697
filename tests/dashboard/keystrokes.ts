import { describe, expect, it } from 'vitest';
import type { Dashboard } from '../support/browser.ts';
import type { RestAccount } from '../support/client.ts';
import { type } from './typing.ts';

/** The keys of a clerk's most frequent tasks, each without a click. Fewer are welcome. */
export function testKeystrokes({ world, ui, as }: Dashboard): void {
  const { api } = world;

  interface Made {
    account: RestAccount;
    other: RestAccount;
    loan: RestAccount;
    name: string;
  }
  interface Case {
    task: string;
    most: number;
    at: (made: Made) => string;
    /** The keys on each page, and the page to which they lead. */
    pages: (made: Made) => [keys: string[], next: string][];
    /** The balance of the account then; it begins with 1000. */
    balance: number;
  }
  const digits = ({ account_number }: RestAccount) => account_number.replace(/^\w+-/, '');
  const summary = '**/counter/summary*';
  const receipt = '**/counter/receipts/*';
  const cases: Case[] = [
    {
      task: 'a deposit of 1,500 by account number, to the next customer',
      most: 18,
      at: () => '/counter',
      pages: ({ account }) => [
        [[digits(account), 'Enter'], '**/deposit'],
        [['1500', 'Enter'], summary],
        [['Enter'], receipt],
        [['Enter'], '**/counter'],
      ],
      balance: 2500,
    },
    {
      task: 'a withdrawal from the open form',
      most: 5,
      at: ({ account }) => `/counter/${account.account_id}/withdrawal`,
      pages: () => [
        [['500', 'Enter'], summary],
        [['Enter'], receipt],
      ],
      balance: 500,
    },
    {
      task: 'a transfer by number',
      most: 20,
      at: ({ account }) => `/counter/${account.account_id}/transfer`,
      pages: ({ other }) => [
        [[digits(other), 'Tab', '250', 'Enter'], summary],
        [['Enter'], receipt],
      ],
      balance: 750,
    },
    {
      task: 'a transfer by name',
      most: 20,
      at: ({ account }) => `/counter/${account.account_id}/transfer`,
      pages: ({ name }) => [
        [[name, 'Tab', '250', 'Enter'], summary],
        [['Enter'], receipt],
      ],
      balance: 750,
    },
    {
      task: 'a loan repayment',
      most: 22,
      at: ({ account }) => `/counter/${account.account_id}/repayment`,
      pages: () => [
        [['120', 'Enter'], summary],
        [['Enter'], receipt],
      ],
      balance: 880,
    },
    {
      task: 'an account for a client who has one',
      most: 6,
      at: ({ account }) => `/accounts/new?client_id=${account.client_id}`,
      pages: () => [[['Enter'], '**/accounts/acc_*']],
      balance: 1000,
    },
  ];

  describe('keys without clicks', () => {
    it.each(cases)('$task: at most $most', async ({ most, at, pages, balance }) => {
      const name = `Keys${Math.random().toString(36).slice(2, 8)}`;
      const account = await api.newAccount({ initial_deposit: 1000 });
      const loan = await api.account(account.client_id, { account_type: 'Loan', initial_deposit: 300 });
      const recipient = await api.client({ first_name: name, last_name: 'Payee' });
      const made = { account, loan, name, other: await api.account(recipient.client_id) };
      const { page, complaints } = await as('officer');
      await page.goto(ui(at(made)));
      let count = 0;
      for (const [keys, next] of pages(made)) {
        await type(page, ...keys);
        await page.waitForURL(next);
        count += keys.reduce((sum, key) => sum + (/^(Tab|Enter)$/.test(key) ? 1 : key.length), 0);
      }
      expect(count).toBeLessThanOrEqual(most);
      expect(await api.balance(account.account_id)).toBe(balance);
      expect(complaints).toEqual([]);
    });
  });
}
