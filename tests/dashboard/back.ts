import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { type Dashboard, heading } from '../support/browser.ts';
import type { RestAccount, RestClient } from '../support/client.ts';

/** Reloading the answer to a form, or going back to it, shows a page, and never asks to send the form again. */
export function testBack({ world, ui, as }: Dashboard): void {
  const { api } = world;

  interface Case {
    name: string;
    user?: 'officer' | 'admin' | 'manager';
    /** The page with the form. */
    at: (made: { account: RestAccount; client: RestClient; transaction_id: string }) => string;
    send: (page: Page) => Promise<void>;
    /** On the answer. */
    says: string;
    /** The title of the page after reloading it. */
    then: RegExp;
  }
  const press = (name: string | RegExp) => (page: Page) => page.getByRole('button', { name }).click();
  const file = (text: string) => ({ name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from(text) });
  const upload = (text: string) => async (page: Page) => {
    await page.getByLabel('File of payments').setInputFiles(file(text));
    await page.getByRole('button', { name: 'Check the payments' }).click();
  };
  const cases: Case[] = [
    {
      name: 'a form of the counter with a wrong amount',
      at: ({ account }) => `/counter/${account.account_id}/deposit`,
      async send(page) {
        await page.getByLabel('Amount in USD').fill('1.500');
        await page.keyboard.press('Enter');
      },
      says: 'Is this 1500, or 1.50?',
      then: /^Deposit$/,
    },
    {
      name: 'a withdrawal that was refused',
      at: ({ account }) => `/counter/${account.account_id}/withdrawal`,
      async send(page) {
        await page.getByLabel('Amount in USD').fill('500');
        await page.keyboard.press('Enter');
        await page.getByRole('button', { name: /^Pay out/ }).click();
      },
      says: 'It was refused, and nothing was moved.',
      then: /is this right/,
    },
    {
      name: 'a file that was checked',
      at: () => '/counter/batches',
      send: upload('from,to,amount\n,CHK-1,5\n'),
      says: 'What cannot be sent',
      then: /^Payments from a file$/,
    },
    {
      name: 'a file without payments',
      at: () => '/counter/batches',
      send: upload('a\n'),
      says: 'File of payments',
      then: /^Payments from a file$/,
    },
    {
      name: 'a client who may exist already',
      at: () => '/clients/new',
      async send(page) {
        for (const [label, text] of [
          ['First name', 'Back'],
          ['Last name', 'Again'],
          ['E-mail', 'a@b.cc'],
          ['Phone', '+254700000001'],
        ] as const)
          await page.getByLabel(label).first().fill(text);
        await press('Create the client')(page);
      },
      says: 'This client may already exist.',
      then: /^Create a Retail client$/,
    },
    {
      name: 'an account with an amount that can be read in two ways',
      at: ({ client }) => `/accounts/new?client_id=${client.client_id}`,
      async send(page) {
        await page.getByLabel('First deposit').fill('1.500');
        await page.getByLabel('Currency').first().selectOption('USD');
        await press('Open the account')(page);
      },
      says: 'Is this 1500, or 1.50?',
      then: /^Open an account$/,
    },
    {
      name: 'limits that are no amounts',
      user: 'admin',
      at: ({ account }) => `/accounts/${account.account_id}/limits`,
      async send(page) {
        await page.getByLabel('Most per posting, in USD').fill('x');
        await press('Change the limits')(page);
      },
      says: 'One entry is not valid',
      then: /^Back Again$/,
    },
    {
      name: 'a reversal that was refused',
      at: ({ transaction_id }) => `/transactions/${transaction_id}/reversal`,
      async send(page) {
        await page.getByLabel('Reason').fill('twice');
        await page.keyboard.press('Enter');
        await press(/^Reverse this/)(page);
      },
      says: 'It was refused, and nothing was done.',
      then: /is this right/,
    },
  ];

  describe('going back after', () => {
    it.each(cases)('$name', async ({ user = 'officer', at, send, says, then }) => {
      const client = await api.client({ first_name: 'Back', last_name: 'Again' });
      const account = await api.account(client.client_id, { initial_deposit: 100 });
      const { transaction_id } = await api.transact(account.account_id, 'Deposit', 50);
      // The money of the deposit has left, so it cannot be reversed.
      await api.transact(account.account_id, 'Withdrawal', 120);
      const { page } = await as(user);
      const sent: string[] = [];
      page.on('request', (request) => void (request.method() === 'POST' && sent.push(request.url())));
      await page.goto(ui(at({ account, client, transaction_id })));
      await send(page);
      await page.getByText(says).first().waitFor();
      const posts = sent.length;
      await page.reload();
      expect(await heading(page)).toMatch(then);
      await page.goBack();
      await page.goForward();
      expect(await heading(page)).toMatch(then);
      await page.goto(ui('/approvals/mine'));
      await page.goBack();
      expect(await heading(page)).toMatch(then);
      expect(sent).toHaveLength(posts);
    });
  });
}
