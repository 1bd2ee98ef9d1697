import { describe, expect, it } from 'vitest';
import type { SystemAccount } from '#libs/contracts/books.ts';
import { type Dashboard, expectFine, plain } from '../support/browser.ts';
import { eventually } from '../support/world.ts';

export function testBooks({ world, ui, as }: Dashboard): void {
  describe('the books', () => {
    it('balance, with every digit of the Vault, and are verified on demand', async () => {
      await world.api.newAccount({ initial_deposit: 1000.25 });
      const { page, complaints } = await as('auditor');
      await page.goto(ui(''));
      await page.getByRole('link', { name: 'Books', exact: true }).first().click();
      await page.getByText('The books balance').waitFor();
      const vault = (await world.api.get('/admin/system-accounts'))
        .list<SystemAccount>()
        .find(({ account_number }) => account_number === 'VLT-USD');
      expect(plain(await page.getByRole('row', { name: /VLT-USD/ }).innerText())).toContain(
        Number(vault?.balance).toFixed(2),
      );
      await page.getByRole('button', { name: 'Check every entry now' }).click();
      await eventually(async () => {
        await page.goto(ui('/books'));
        return await page.getByText('All rules that were checked are satisfied.').isVisible();
      });
      await expectFine(page, 'books-verified');
      expect(complaints).toEqual([]);
    });

    it('are refreshed automatically; after a sign-out, the refresh leads to the sign-in page', async () => {
      const { page, context, complaints } = await as('auditor');
      await page.goto(ui('/books'));
      await world.api.newAccount({ currency: 'KES', initial_deposit: 7 });
      await page.evaluate("htmx.trigger('#books', 'refresh')");
      await page.getByRole('row', { name: /VLT-KES Vault 7.00/ }).waitFor();
      await context.clearCookies();
      await page.evaluate("htmx.trigger('#books', 'refresh')");
      await page.waitForURL('**/admin/login?ended');
      await page.getByText('Your session has ended').waitFor();
      expect(complaints).toEqual([]);
    });

    it('show charts of postings and amounts over time, with their numbers', async () => {
      const { page, complaints } = await as('auditor');
      await page.goto(ui('/books'));
      const drawn = page.locator('#postings svg[role="img"]');
      await drawn.last().waitFor();
      expect(await drawn.count()).toBe(2);
      expect(await drawn.locator('rect.in:not([height="0.0"])').count()).toBeGreaterThan(1);
      await page.getByLabel('Period').selectOption('minute');
      await page.getByRole('button', { name: 'Show' }).click();
      await page.waitForURL('**/books/postings?**unit=minute');
      await drawn.last().waitFor();
      expect(
        await page.getByRole('region', { name: 'Postings over time' }).locator('tbody tr').count(),
      ).toBeGreaterThan(0);
      await expectFine(page, 'postings');
      expect(complaints).toEqual([]);
    });
  });
}
