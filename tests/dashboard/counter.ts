import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, heading, look, plain } from '../support/browser.ts';
import type { RestTransaction } from '../support/client.ts';
import { mainText, personAt, ways } from './typing.ts';

/** Tests the pages for bank staff at the counter. */
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
    it.each(ways)(
      'posts a deposit once, from the account number to the receipt, also after reloads, by $hand on a $size',
      async ({ hand, size }) => {
        const name = `Depa${hand}${size}`;
        const { client, account } = await newCustomer(name, 100);
        await api.post(`/clients/${client.client_id}/notes`, { note: 'Ask for <her> card' });
        const { page, complaints } = await as('officer', size);
        const { enter, send } = personAt(page, hand);
        const [amount, next] = [page.getByLabel('Amount in USD'), page.getByRole('button', { name: 'Continue' })];
        for (const text of [name, account.account_number.toLowerCase()]) {
          await page.goto(ui('/counter'));
          await expectFine(page, 'counter');
          await enter(page.getByLabel('Customer'), text);
          await send(page.getByRole('button', { name: 'Show' }));
          await page.waitForURL(ui(`/counter/${account.account_id}/deposit`));
        }
        await page.waitForURL(ui(`/counter/${account.account_id}/deposit`));
        expect(await mainText(page)).toMatch(
          new RegExp(
            `Customer ${name} Counter Account ${account.account_number}, Savings Status Active Available 100.00 USD Notes on the customer Ask for <her> card`,
          ),
        );
        await expectFine(page, 'counter-form');

        await enter(amount, '1.500');
        await send(next);
        await page.getByText('Is this 1500, or 1.50?').waitFor();
        await expectFine(page, 'counter-form-wrong');
        await enter(amount, '1 500,50');
        await enter(page.getByLabel('Reference'), 'slip 7');
        await send(next);
        await page.getByRole('heading', { level: 1, name: 'Deposit: is this right?' }).waitFor();
        await page.reload();
        expect(await mainText(page)).toMatch(
          /From Cash Amount 1500.50 USD To .*Counter Available now 100.00 USD Available after 1600.50 USD Reference slip 7/,
        );
        await expectFine(page, 'counter-summary');
        expect(await posted(account.account_id, 'Deposit')).toHaveLength(1);

        await send(page.getByRole('button', { name: /^Deposit 1/ }));
        await page.waitForURL('**/counter/receipts/txn_*');
        expect(plain(await heading(page))).toBe('Deposit: 1500.50 USD');
        expect(await mainText(page)).toMatch(
          /In words One thousand five hundred and 50\/100 USD Customer Depa\w+ Counter .*Balance after 1600.50 USD Reference slip 7 .*Teller /,
        );
        await expectFine(page, 'counter-receipt');
        await api.transact(account.account_id, 'Deposit', 3);
        await page.reload();
        expect(await mainText(page)).toContain('Balance after 1600.50 USD');
        expect((await posted(account.account_id, 'Deposit')).map(({ amount }) => amount).sort()).toEqual([
          100, 1500.5, 3,
        ]);
        await page.emulateMedia({ media: 'print' });
        // There are two copies, each with the bank's name and a line for the signature.
        expect(await page.locator('.receipt:visible').allInnerTexts()).toEqual(
          [
            ['Customer’s', 'bank'],
            ['Bank’s', 'customer'],
          ].map(([copy, signer]) =>
            expect.stringMatching(
              new RegExp(
                `^Core Banking, ${copy} copy\\s+Trial: not for real money\\s+Deposit\\s[\\s\\S]*Signature of the ${signer}$`,
              ),
            ),
          ),
        );
        expect(await page.locator('h1:visible, .bar:visible').count()).toBe(0);
        await look(page, 'counter-receipt-print');
        await page.emulateMedia({ media: 'screen' });
        // The number that is read out finds the receipt, whatever its case.
        const [number = ''] = /[0-9A-Z]{5}-[0-9A-Z]{5}/.exec(await mainText(page)) ?? [];
        const receipt = page.url();
        await page.goto(ui(`/find?q=${number.toLowerCase().replace('-', '')}`));
        await page.waitForURL(receipt);
        // The emulation has hidden the link that had the focus.
        await page.reload();
        await send(page.getByRole('button', { name: 'Next customer' }));
        await page.waitForURL(ui('/counter'));
        expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
      },
    );

    it('a double click posts once, and going back shows that it was posted', async () => {
      const { account } = await newCustomer('Twice', 100);
      const { page, complaints } = await as('officer');
      await page.goto(ui(`/accounts/${account.account_id}`));
      await page.getByRole('button', { name: 'Withdraw' }).click();
      await page.getByLabel('Amount in USD').fill('40');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('button', { name: /Pay out/ }).dblclick();
      await page.waitForURL('**/counter/receipts/txn_*');
      const first = page.url();
      // Going back at once shows the summary, which posts nothing a second time.
      await page.waitForTimeout(2_000);
      await page.goBack();
      await page.getByText('Already posted at').waitFor();
      await expectFine(page, 'counter-posted-before');
      await page.getByRole('link', { name: 'Receipt' }).click();
      await page.waitForURL('**/counter/receipts/txn_*');
      expect(page.url()).toBe(first);
      expect(await mainText(page)).toContain('Balance after 60.00 USD');
      expect(await posted(account.account_id, 'Withdrawal')).toHaveLength(1);
      expect(await api.balance(account.account_id)).toBe(60);
      expect(complaints).toEqual([]);
    });

    it.each(ways)(
      'explains why a withdrawal is refused, and accepts a smaller one immediately, by $hand on a $size',
      async ({ hand, size }) => {
        const { account } = await newCustomer('Poor', 10);
        const { page, complaints } = await as('officer', size);
        const { enter, press, send } = personAt(page, hand);
        const [amount, next] = [page.getByLabel('Amount in USD'), page.getByRole('button', { name: 'Continue' })];
        const payOut = page.getByRole('button', { name: /^Pay out/ });
        await page.goto(ui(`/accounts/${account.account_id}`));
        await press(page.getByRole('button', { name: 'Withdraw' }));
        await enter(amount, '25');
        await send(next);
        await page.getByText('There is not enough money in account').waitFor();
        await expectFine(page, 'counter-summary-short');
        await press(payOut);
        await page.getByText('It was refused, and nothing was moved.').waitFor();
        expect(await mainText(page)).toContain(
          `There is not enough money in account ${account.account_number}: 10.00 USD can be taken from it.`,
        );
        expect(await mainText(page)).not.toMatch(/insufficient|funds|code/i);
        await expectFine(page, 'counter-refused');
        await enter(amount, '7');
        await send(next);
        await page.getByRole('heading', { level: 1, name: 'Withdrawal: is this right?' }).waitFor();
        await send(payOut);
        await page.waitForURL('**/counter/receipts/txn_*');
        expect(await mainText(page)).toContain('Balance after 3.00 USD');
        expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
      },
    );

    it.each(ways)(
      'transfers, and repays a loan, from the customer’s account, by $hand on a $size',
      async ({ hand, size }) => {
        const name = `Mova${hand}${size}`;
        const { client, account } = await newCustomer(name, 500);
        const recipient = `Reca${hand}${size}`;
        const { account: other } = await newCustomer(recipient, 1);
        await newCustomer(`Also${hand}${size}`, 1);
        const loan = await api.account(client.client_id, { account_type: 'Loan', initial_deposit: 300 });
        const { page, complaints } = await as('officer', size);
        const { enter, press, send } = personAt(page, hand);
        const [amount, next] = [page.getByLabel('Amount in USD'), page.getByRole('button', { name: 'Continue' })];
        await page.goto(ui('/counter'));
        await enter(page.getByLabel('Customer'), name);
        await send(page.getByRole('button', { name: 'Show' }));
        await page.getByRole('link', { name: loan.account_number }).waitFor();
        await page.locator('[data-hit]:focus').waitFor();
        await page.keyboard.press('ArrowDown');
        expect(await page.locator(':focus').innerText()).toBe(loan.account_number);
        await expectFine(page, 'counter-choice');
        await page.goto(ui(`/clients/${client.client_id}`));
        await press(page.getByRole('button', { name: 'To the counter' }));
        await press(page.getByRole('link', { name: account.account_number }));
        await press(page.getByRole('link', { name: 'Transfer', exact: true }));
        await enter(page.getByLabel('To account'), 'Counter');
        await enter(amount, '1,00');
        await send(next);
        await page.getByText('Several accounts match.').waitFor();
        await page.locator('[name=chosen]:focus').waitFor();
        await expectFine(page, 'counter-form-several');
        // Enter takes the one that has the focus.
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { level: 1, name: 'Transfer: is this right?' }).waitFor();
        await page.goBack();
        await enter(page.getByLabel('To account'), recipient);
        await enter(amount, '1,00');
        await enter(page.getByLabel('Description'), 'rent');
        await send(next);
        await page.getByRole('heading', { level: 1, name: 'Transfer: is this right?' }).waitFor();
        expect(await mainText(page)).toContain(`${recipient} Counter`);
        await expectFine(page, 'counter-summary-transfer');
        await send(page.getByRole('button', { name: /^Transfer/ }));
        await page.waitForURL('**/counter/receipts/trf_*');
        expect(await mainText(page)).toMatch(
          new RegExp(
            `From account ${account.account_number} To account ${other.account_number}, ${recipient} Counter Balance after 499.00 USD`,
          ),
        );
        await expectFine(page, 'counter-receipt-transfer');
        await page.goto(ui(`/counter/${account.account_id}/deposit`));
        await page.locator('[name=amount]:focus').waitFor();
        await page.keyboard.press('Alt+4');
        await page.waitForURL(ui(`/counter/${account.account_id}/repayment`));
        expect(await page.locator('[name=other_number]').inputValue()).toBe(loan.account_number);
        await enter(amount, '120');
        await send(next);
        await page.getByRole('heading', { level: 1, name: 'Loan repayment: is this right?' }).waitFor();
        await send(page.getByRole('button', { name: /^Repay 1/ }));
        await page.waitForURL('**/counter/receipts/trf_*');
        expect(await mainText(page)).toContain('Balance after 379.00 USD Still owed after 180.00 USD');
        expect(await api.balance(other.account_id)).toBe(2);
        expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
      },
    );

    it('is empty without the permission to move money', async () => {
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
