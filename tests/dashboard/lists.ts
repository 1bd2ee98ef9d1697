import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Statement } from '#libs/contracts/statements.ts';
import { type Dashboard, expectFine, look, plain } from '../support/browser.ts';
import { together } from '../support/world.ts';
import type { Records } from './records.ts';

export function testLists({ world, ui, as }: Dashboard, records: () => Records): void {
  describe('lists', () => {
    it('are filtered, reversed, paged, and downloaded', async () => {
      const { page, context, complaints } = await as('auditor');
      const { account } = records();
      const many = await world.api.newAccount({ initial_deposit: 1000 });
      await together(52, (n) => world.api.transact(many.account_id, 'Deposit', n + 1));
      await page.goto(ui(`/accounts/${many.account_id}/transactions`));
      const rows = () => page.locator('tbody tr').count();
      expect(await rows()).toBe(50);
      await page.getByRole('link', { name: 'Next page' }).click();
      await page.getByRole('link', { name: 'First page' }).waitFor();
      expect(await rows()).toBe(3);
      await page.getByRole('link', { name: 'When' }).click();
      await page.locator('th[aria-sort="ascending"]').waitFor();
      expect(plain(await page.locator('tbody tr').first().innerText())).toContain('1000.00');

      await expectFine(page, 'transactions-reversed');

      await page.locator('summary', { hasText: 'More filters' }).click();
      await page.getByLabel('Amount from').fill('52');
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await page.waitForURL('**min_amount=52**');
      expect(await rows()).toBe(2);
      await page.getByRole('list', { name: 'Filters that are set' }).getByText('Amount from: 52').waitFor();
      const file = await context.request.get(ui(`/accounts/${many.account_id}/transactions.csv`));
      expect((await file.text()).trimEnd().split('\r\n')).toHaveLength(54);
      expect(
        await (await context.request.get(ui(`/accounts/${account.account_id}/transactions.csv`))).text(),
      ).toContain(`,"INVOICE 77","'=1+1",`);
      expect(complaints).toEqual([]);
    });

    it('show every column beside a long name and a long word, on a desk, on a phone, and on paper', async () => {
      const client = await world.api.post('/clients', {
        client_type: 'Corporate',
        company_name: 'W'.repeat(200),
        registration_number: 'C-1842',
        email: 'long@example.org',
        contact_number: '+254700000842',
      });
      const { client_id } = client.data<{ client_id: string }>();
      const { account_id } = await world.api.account(client_id);
      await world.api.transact(account_id, 'Deposit', 12.5, { description: 'W'.repeat(200) });
      const { page } = await as('auditor');
      for (const path of ['/clients', '/accounts', `/accounts/${account_id}/statement`])
        for (const [media, width] of [
          ['screen', 1440],
          ['screen', 375],
          ['print', 680],
        ] as const) {
          await page.setViewportSize({ width, height: 900 });
          await page.emulateMedia({ media });
          await page.goto(ui(path));
          const last = await page
            .getByRole('row')
            .filter({ hasText: 'WWW' })
            .locator('td:visible')
            .last()
            .boundingBox();
          expect(last).not.toBeNull();
          expect((last?.x ?? width) + (last?.width ?? 0), `${path} ${media} ${width}`).toBeLessThanOrEqual(width);
        }
    });

    it('say on a phone whether money came in or went out', async () => {
      const { account_id } = await world.api.newAccount({ initial_deposit: 100 });
      await world.api.transact(account_id, 'Withdrawal', 30);
      const { page } = await as('auditor', 'phone');
      for (const [path, list] of [
        ['', 'Latest movements'],
        ['/transactions', 'Transactions'],
      ]) {
        await page.goto(ui(`/accounts/${account_id}${path}`));
        const shown = await page.evaluate<string[]>(`[...document.querySelectorAll(
          '[aria-label="${list}"] td.leading.number > div')].map((cell) =>
            getComputedStyle(cell, '::before').content + ' ' + cell.textContent)`);
        expect(shown.map(plain), path).toEqual(['"−" 30.00', '"+" 100.00']);
      }
    });
  });
}

export function testStatement({ world, ui, as }: Dashboard, records: () => Records): void {
  describe('a statement', () => {
    it('adds up, and is printed on a page of its own', async () => {
      const { page, context, complaints } = await as('auditor');
      const { account } = records();
      await page.goto(ui(`/accounts/${account.account_id}/statement`));
      const { closing_balance } = (await world.api.get(`/accounts/${account.account_id}/statement`)).data<Statement>();
      expect(plain(await page.locator('dl.facts').innerText())).toContain(`${Number(closing_balance).toFixed(2)} USD`);
      expect(await page.locator('dl.facts').innerText()).toContain('Hedda Høpper');
      expect(await page.locator('tbody tr').count()).toBe(3);
      const today = new Date().toISOString().slice(0, 10);
      expect(await page.getByRole('button', { name: 'CSV' }).getAttribute('download')).toBe(
        `statement-${account.account_number}-${today.slice(0, 8)}01-${today}.csv`,
      );
      const [printed] = await Promise.all([
        context.waitForEvent('page'),
        page.getByRole('button', { name: 'Print' }).click(),
      ]);
      await printed.getByRole('heading', { name: 'Account statement' }).waitFor();
      expect(plain(await printed.locator('dl').innerText())).toContain(`${Number(closing_balance).toFixed(2)} USD`);
      expect(await printed.locator('.holder').innerText()).toContain('Hedda Høpper');
      expect(await printed.locator('tbody tr').count()).toBe(5);
      // The style of the page applies only if its own policy allows it.
      const align = await printed.evaluate("getComputedStyle(document.querySelector('td.amount')).textAlign");
      expect(align).toBe('end');
      await printed.emulateMedia({ media: 'print' });
      await look(printed, 'statement-printed');
      await printed.close();
      await page.getByText('For accounting software').click();
      const get = page.getByRole('button', { name: 'Get camt.053' });
      await page.clock.install();
      const [download] = await Promise.all([page.waitForEvent('download'), get.click()]);
      // The answer is a file, so nothing else would say that the form was answered.
      await page.clock.runFor(1_000);
      expect(await get.isEnabled()).toBe(true);
      const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
      expect(download.suggestedFilename()).toBe(`statement-${account.account_number}-${yesterday}.xml`);
      expect(readFileSync(await download.path(), 'utf8')).toContain(`<Id>${account.account_number}-${yesterday}</Id>`);
      await page.getByRole('link', { name: 'Last year' }).click();
      await page.getByText('Nothing was posted in this period.').waitFor();
      expect(await page.locator('main [aria-current="true"]').innerText()).toBe('Last year');
      const year = new Date().getUTCFullYear() - 1;
      expect(await page.locator('dl.facts').innerText()).toContain(`${year}-01-01 to ${year}-12-31`);
      expect(complaints).toEqual([]);
    });
  });
}
