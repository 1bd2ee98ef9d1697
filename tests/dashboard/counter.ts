import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, heading, look, plain } from '../support/browser.ts';
import type { RestTransaction } from '../support/client.ts';
import { mainText, type } from './typing.ts';

/** Bank staff at the counter, by keyboard alone but for the double click. */
export function testCounter({ world, ui, as }: Dashboard): void {
  const { api } = world;

  async function newCustomer(first_name: string, initial_deposit: number) {
    const client = await api.client({ first_name, last_name: 'Counter' });
    return { client, account: await api.account(client.client_id, { initial_deposit }) };
  }

  const posted = async (account_id: string, transaction_type: string) =>
    (
      await api.get(`/transactions?account_id=${account_id}&transaction_type=${encodeURIComponent(transaction_type)}`)
    ).list<RestTransaction>();

  describe('the counter', () => {
    it('takes a deposit from the number to the receipt and the next customer, once for all reloads', async () => {
      const { client, account } = await newCustomer('Depa', 100);
      const { page, complaints } = await as('officer');
      await page.goto(ui('/counter'));
      await expectFine(page, 'counter');
      await type(page, 'Depa', 'Enter');
      await page.waitForURL(ui(`/counter/${account.account_id}/deposit`));
      await page.goto(ui('/counter'));
      await type(page, account.account_number.toLowerCase(), 'Enter');
      await page.waitForURL(ui(`/counter/${account.account_id}/deposit`));
      expect(await mainText(page)).toMatch(
        new RegExp(
          `Customer Depa Counter Account ${account.account_number}, Savings Status Active Available 100.00 USD`,
        ),
      );
      await expectFine(page, 'counter-form');

      await type(page, '1.500', 'Enter');
      await page.getByText('Is this 1500, or 1.50?').waitFor();
      await expectFine(page, 'counter-form-wrong');
      await page.keyboard.press('ControlOrMeta+A');
      await type(page, '1 500,50', 'Tab', 'slip 7', 'Enter');
      await page.getByRole('heading', { level: 1, name: 'Deposit: is this right?' }).waitFor();
      await page.reload();
      expect(await mainText(page)).toMatch(
        /Amount 1500.50 USD From Cash .*Depa Counter Available now 100.00 USD Available then 1600.50 USD Reference slip 7/,
      );
      await expectFine(page, 'counter-summary');
      expect(await posted(account.account_id, 'Deposit')).toHaveLength(1);

      await type(page, 'Enter');
      await page.waitForURL('**/counter/receipts/txn_*');
      expect(plain(await heading(page))).toBe('Deposit: 1500.50 USD');
      expect(await mainText(page)).toMatch(/Customer Depa Counter .*Balance after 1600.50 USD Reference slip 7/);
      await expectFine(page, 'counter-receipt');
      await api.transact(account.account_id, 'Deposit', 3);
      await page.reload();
      expect(await mainText(page)).toContain('Balance after 1600.50 USD');
      expect((await posted(account.account_id, 'Deposit')).map(({ amount }) => amount).sort()).toEqual([
        100, 1500.5, 3,
      ]);
      await page.emulateMedia({ media: 'print' });
      expect(await page.locator('.receipt:visible').count()).toBe(2);
      await look(page, 'counter-receipt-print');
      await page.emulateMedia({ media: 'screen' });
      // The emulation has hidden the link that had the focus.
      await page.reload();
      await type(page, 'Enter');
      await page.waitForURL(ui('/counter'));
      await page.goto(ui(`/clients/${client.client_id}`));
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });

    it('a double click, and going back to confirm again, post once', async () => {
      const { account } = await newCustomer('Twice', 100);
      const { page, complaints } = await as('officer');
      await page.goto(ui(`/accounts/${account.account_id}`));
      await page.getByRole('button', { name: 'Withdraw' }).click();
      await page.getByLabel('Amount in USD').fill('40');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('button', { name: /Pay out/ }).dblclick();
      await page.waitForURL('**/counter/receipts/txn_*');
      const first = page.url();
      await page.goBack();
      await page.getByRole('button', { name: /Pay out/ }).click();
      await page.waitForURL('**/counter/receipts/txn_*');
      expect(page.url()).toBe(first);
      expect(await mainText(page)).toContain('Balance after 60.00 USD');
      expect(await posted(account.account_id, 'Withdrawal')).toHaveLength(1);
      expect(await api.balance(account.account_id)).toBe(60);
      expect(complaints).toEqual([]);
    });

    it('says in words why a withdrawal is refused, and takes a smaller one at once', async () => {
      const { account } = await newCustomer('Poor', 10);
      const { page, complaints } = await as('officer');
      await page.goto(ui(`/counter/${account.account_id}/withdrawal`));
      await type(page, '25', 'Enter');
      await page.getByText('There is not enough money in account').waitFor();
      await expectFine(page, 'counter-summary-short');
      await type(page, 'Enter');
      await page.getByText('It was refused, and nothing was moved.').waitFor();
      expect(await mainText(page)).toContain(
        `There is not enough money in account ${account.account_number}: 10.00 USD can be taken from it.`,
      );
      expect(await mainText(page)).not.toMatch(/insufficient|funds|code/i);
      await expectFine(page, 'counter-refused');
      await page.keyboard.press('ControlOrMeta+A');
      await type(page, '7', 'Enter');
      await page.getByRole('heading', { level: 1, name: 'Withdrawal: is this right?' }).waitFor();
      await type(page, 'Enter');
      await page.waitForURL('**/counter/receipts/txn_*');
      expect(await mainText(page)).toContain('Balance after 3.00 USD');
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });

    it('transfers, and repays a loan, from the customer’s account', async () => {
      const { client, account } = await newCustomer('Mova', 500);
      const { account: other } = await newCustomer('Recipient', 1);
      const loan = await api.account(client.client_id, { account_type: 'Loan', initial_deposit: 300 });
      const { page, complaints } = await as('officer');
      await page.goto(ui('/counter'));
      await type(page, 'Mova', 'Enter');
      await page.getByRole('link', { name: loan.account_number }).waitFor();
      await expectFine(page, 'counter-choice');
      await page.goto(ui(`/counter/${account.account_id}/transfer`));
      await type(page, other.account_number, 'Tab', '1,00', 'Tab', 'rent', 'Enter');
      await page.getByRole('heading', { level: 1, name: 'Transfer: is this right?' }).waitFor();
      expect(await mainText(page)).toContain('Recipient Counter');
      await expectFine(page, 'counter-summary-transfer');
      await type(page, 'Enter');
      await page.waitForURL('**/counter/receipts/trf_*');
      expect(await mainText(page)).toMatch(
        new RegExp(
          `From account ${account.account_number} To account ${other.account_number} Balance after 499.00 USD`,
        ),
      );
      await expectFine(page, 'counter-receipt-transfer');
      await page.goto(ui(`/counter/${account.account_id}/repayment`));
      await type(page, loan.account_number, 'Tab', '120', 'Enter');
      await page.getByRole('heading', { level: 1, name: 'Loan repayment: is this right?' }).waitFor();
      await type(page, 'Enter');
      await page.waitForURL('**/counter/receipts/trf_*');
      expect(await mainText(page)).toContain('Balance after 379.00 USD Still owed after 180.00 USD');
      expect(await api.balance(other.account_id)).toBe(2);
      expect(complaints).toEqual([]);
    });

    it('has nothing for whoever may not move money', async () => {
      const { account } = await newCustomer('Seen', 1);
      const { page } = await as('auditor');
      await page.goto(ui(`/accounts/${account.account_id}`));
      expect(await page.getByRole('button', { name: 'Deposit' }).count()).toBe(0);
      expect(await page.getByRole('link', { name: 'Counter', exact: true }).count()).toBe(0);
      await page.goto(ui(`/counter/${account.account_id}/deposit`));
      expect(await heading(page)).toBe('You may not do this');
    });
  });
}
