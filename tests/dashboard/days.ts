import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { DayClosing } from '#libs/contracts/days.ts';
import { bankDay } from '#libs/service/formats.ts';
import { type Dashboard, expectFine, look, plain } from '../support/browser.ts';
import { mainText, personAt, ways } from './typing.ts';

/** Tests value dates, closed days, and limits of accounts, where one person may do all of it alone. */
export function testDays({ world, ui, as }: Dashboard): void {
  const { api } = world;
  const ago = (days: number) => bankDay(Date.now() - days * 86_400_000);

  describe('a value date', () => {
    it.each(ways)(
      'is given at the counter, and shown wherever it differs, by $hand on a $size',
      async ({ hand, size }) => {
        const account = await api.newAccount({ initial_deposit: 100 });
        const { page, complaints } = await as('manager', size);
        const { enter, send } = personAt(page, hand);
        await page.goto(ui(`/counter/${account.account_id}/deposit`));
        await enter(page.getByLabel('Amount in USD'), '25');
        await page.getByLabel('Value date').fill(ago(40));
        await expectFine(page, 'counter-value-date');
        await send(page.getByRole('button', { name: 'Continue' }));
        await page.getByRole('button', { name: /^Deposit/ }).waitFor();
        await expectFine(page, 'counter-value-date-summary');
        await send(page.getByRole('button', { name: /^Deposit/ }));
        await page.waitForURL('**/counter/receipts/**');
        expect(await mainText(page)).toContain(`Value date ${ago(40)}`);
        const id = page.url().split('/').at(-1) ?? '';
        for (const path of [
          `/transactions/${id}`,
          ...['', '/statement', '/entries', '/transactions'].map((part) => `/accounts/${account.account_id}${part}`),
        ]) {
          await page.goto(ui(path));
          expect(await mainText(page), path).toMatch(new RegExp(`value date ${ago(40)}`, 'i'));
        }
        // The other postings are of today.
        expect((await mainText(page)).match(/value date/gi)).toHaveLength(1);
        expect(complaints).toEqual([]);
      },
    );

    it('that the bank refuses is reported at its field', async () => {
      const account = await api.newAccount();
      const { page, complaints } = await as('manager');
      await page.goto(ui(`/counter/${account.account_id}/deposit`));
      await page.getByLabel('Amount in USD').fill('1');
      await page.getByLabel('Value date').fill(ago(200));
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('button', { name: /^Deposit/ }).click();
      await page.locator('#effective_date-reason', { hasText: 'it is too early' }).waitFor();
      await expectFine(page, 'counter-value-date-refused');
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });
  });

  describe('the limits of an account', () => {
    it.each(ways)('are changed with amounts as people type them, by $hand on a $size', async ({ hand, size }) => {
      const account = await api.newAccount({ initial_deposit: 5000 });
      const { page, complaints } = await as('manager', size);
      const { enter, press, send } = personAt(page, hand);
      await page.goto(ui(`/accounts/${account.account_id}`));
      await press(page.getByRole('link', { name: 'Limits', exact: true }));
      await enter(page.getByLabel('Most per posting, in USD'), 'much');
      await send(page.getByRole('button', { name: 'Change the limits' }));
      await page.getByText('This is not an amount.').waitFor();
      await expectFine(page, 'limits-refused');
      await enter(page.getByLabel('Most per posting, in USD'), '1,500');
      await enter(page.getByLabel('Least that stays available, in USD'), '0');
      await send(page.getByRole('button', { name: 'Change the limits' }));
      await page.getByText('The limits were changed.').waitFor();
      await expectFine(page, 'limits');
      expect((await api.get(`/accounts/${account.account_id}/limits`)).data()).toMatchObject({
        per_transaction: 1500,
        minimum_balance: 0,
      });
      await page.goto(ui(`/accounts/${account.account_id}`));
      expect(await mainText(page)).toContain('At most per posting 1500.00 USD');
      await expectFine(page, 'account-with-limits');
      await page.goto(ui(`/counter/${account.account_id}/withdrawal`));
      await enter(page.getByLabel('Amount in USD'), '1501');
      await send(page.getByRole('button', { name: 'Continue' }));
      await send(page.getByRole('button', { name: /^Pay out/ }));
      await page.getByText(`A limit of account ${account.account_number} does not allow this.`).waitFor();
      await page.goto(ui(`/accounts/${account.account_id}/limits`));
      await page.getByLabel('Most per posting, in USD').fill('');
      await send(page.getByRole('button', { name: 'Change the limits' }));
      await page.getByText('The limits were changed.').waitFor();
      expect((await api.get(`/accounts/${account.account_id}/limits`)).data()).not.toHaveProperty('per_transaction');
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });
  });

  describe('a day of the books', () => {
    it('is closed after a preview, shown with its totals, printed, and downloaded', async () => {
      const account = await api.newAccount({ initial_deposit: 100 });
      await api.post('/transactions', {
        account_id: account.account_id,
        transaction_type: 'Deposit',
        amount: 12.5,
        effective_date: ago(2),
      });
      const { page, complaints } = await as('manager');
      await page.goto(ui('/books'));
      await page.getByRole('link', { name: 'Days', exact: true }).click();
      await page.getByText('No day has been closed yet').waitFor();
      await expectFine(page, 'days-none');
      await page.goto(ui(`/books/days/${ago(2)}/closing`));
      const row = page.getByRole('region', { name: `Books of ${ago(2)}` }).getByRole('row', { name: 'USD' });
      expect(plain(await row.innerText())).toMatch(/USD\s+\d/);
      await expectFine(page, 'day-closing');
      await page.getByRole('checkbox').check();
      await page.getByRole('button', { name: 'Close the day' }).click();
      await page.getByText('The day was closed.').waitFor();
      await expectFine(page, 'day-closed');
      const closing = (await api.get(`/admin/day-closings/${ago(2)}`)).data<DayClosing>();
      await page.getByText(closing.hash, { exact: true }).waitFor();
      const saved = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Download its accounts as CSV' }).click();
      const file = await saved;
      expect(file.suggestedFilename()).toBe(`day-${ago(2)}.csv`);
      const text = readFileSync(await file.path(), 'utf8');
      expect(text).toContain(`${account.account_number},USD,liability,0.00,12.50,12.50,1,`);
      await page.emulateMedia({ media: 'print' });
      await look(page, 'day-closed-print');
      expect(await page.getByRole('button', { name: 'Print' }).isVisible()).toBe(false);
      await page.getByText(closing.hash, { exact: true }).waitFor();
      await page.emulateMedia({ media: 'screen' });
      await page.getByRole('link', { name: 'Calendar' }).click();
      await page.getByRole('button', { name: `Close ${ago(1)}` }).waitFor();
      await expectFine(page, 'days');
      await page.goto(ui(`/books/days/${ago(2)}/closing`));
      await page.getByText('The day is closed already.').waitFor();
      expect(complaints.filter((message) => !message.includes('400'))).toEqual([]);
    });

    it('is closed without scripts, too', async () => {
      const { page, context } = await as('manager');
      await context.route('**/*.js', (route) => route.abort());
      await page.goto(ui(`/books/days/${ago(1)}/closing`));
      await page.getByRole('link', { name: `Books of ${ago(1)}` }).waitFor();
      await page.getByRole('checkbox').check();
      await page.getByRole('button', { name: 'Close the day' }).click();
      await page.getByText('The day was closed.').waitFor();
      await page.goto(ui('/books/days'));
      await page.getByText('Every day that has ended is closed.').waitFor();
    });

    it('is seen, and not closed, by an auditor', async () => {
      const { page, complaints } = await as('auditor');
      await page.goto(ui(`/books/days?month=${ago(1).slice(0, 7)}`));
      expect(await page.getByRole('button', { name: /^Close / }).count()).toBe(0);
      await page.locator(`time[datetime="${ago(1)}"]`).click();
      await page.getByRole('heading', { level: 1, name: `Closed day ${ago(1)}` }).waitFor();
      expect(complaints).toEqual([]);
    });
  });
}
