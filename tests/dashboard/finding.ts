import { describe, expect, it } from 'vitest';
import { type Dashboard, heading, plain } from '../support/browser.ts';
import type { Records } from './records.ts';
import { personAt, ways } from './typing.ts';

export function testFinding({ ui, as }: Dashboard, records: () => Records): void {
  describe('the search box', () => {
    it.each(ways)(
      'leads from identifiers of every kind to their pages, by $hand on a $size',
      async ({ hand, size }) => {
        const { client, account, deposit, transfer, key } = records();
        const { page, complaints } = await as('admin', size);
        const { enter, send } = personAt(page, hand);
        const find = async (q: string) => {
          await enter(page.getByRole('searchbox', { name: 'Find anything' }), q);
          await send(page.getByRole('button', { name: 'Find' }));
        };
        await page.goto(ui(''));
        // Each search leads to a page other than the previous one, so the address shows that the page has changed.
        const cases: [string, string][] = [
          ['hedda hø', `/clients/${client.client_id}`],
          ['INVOICE 77', `/transactions/${deposit.transaction_id}`],
          ['+47 9900 0001', `/clients/${client.client_id}`],
          [key, `/transactions/${deposit.transaction_id}`],
          [account.account_number, `/accounts/${account.account_id}`],
          [deposit.transaction_id, `/transactions/${deposit.transaction_id}`],
          [transfer.transfer_id, `/transfers/${transfer.transfer_id}`],
        ];
        for (const [q, path] of cases) {
          await find(q);
          await page.waitForURL(ui(path));
        }
        await find(transfer.transfer_id.replace('trf_', 'opr_'));
        await page.waitForURL('**/find?q=opr_**');
        await page
          .getByRole('link', { name: /^Transfer/ })
          .first()
          .waitFor();
        await find('nothing is called so');
        await page.getByText('Nothing was found').waitFor();
        expect(complaints).toEqual([]);
      },
    );
  });
}

export function testTransaction({ ui, as }: Dashboard, records: () => Records): void {
  describe('a transaction', () => {
    it('is shown as a timeline: request, command, both sides, events', async () => {
      const { account, deposit, transfer } = records();
      const { page, complaints } = await as('auditor');
      await page.goto(ui(`/transactions/${deposit.transaction_id}`));
      expect(plain(await heading(page))).toBe('Deposit 1234.50 USD');
      for (const title of ['Request', 'Command', 'Entries', 'Events'])
        await page.getByRole('heading', { level: 3, name: title }).waitFor();
      await page.getByText('the very request').waitFor();
      const kinds = await page
        .getByRole('region', { name: 'Entries of the operation' })
        .locator('tbody td:nth-child(2)')
        .allInnerTexts();
      expect(kinds).toEqual(['Vault', 'Teller', 'Teller', 'Savings']);
      await page.getByText('corebanking.transaction.completed.v1').waitFor();
      await page.goto(ui(`/transfers/${transfer.transfer_id}`));
      await page.getByRole('heading', { level: 3, name: 'Events' }).waitFor();
      expect(await page.getByRole('link', { name: account.account_number }).first().getAttribute('href')).toBe(
        `/admin/ui/accounts/${account.account_id}`,
      );
      expect(complaints).toEqual([]);
    });

    it('names the customer, and its receipt can be printed again', async () => {
      const { client, account, deposit, transfer } = records();
      const { page, complaints } = await as('officer');
      for (const [path, title] of [
        [`/transactions/${deposit.transaction_id}`, 'Deposit: 1234.50 USD'],
        [`/transfers/${transfer.transfer_id}`, 'Transfer: 2.50 USD'],
      ] as const) {
        await page.goto(ui(path));
        expect(await page.getByRole('heading', { name: 'Timeline' }).count()).toBe(0);
        await page.locator('.movement').getByRole('link', { name: account.account_number }).waitFor();
        expect(await page.getByRole('link', { name: 'Hedda Høpper' }).getAttribute('href')).toBe(
          `/admin/ui/clients/${client.client_id}`,
        );
        await page.getByRole('button', { name: 'Receipt' }).click();
        await page.getByRole('button', { name: 'Print' }).waitFor();
        expect(plain(await heading(page))).toBe(title);
      }
      expect(complaints).toEqual([]);
    });
  });
}
