import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, heading, look, plain } from '../support/browser.ts';
import type { RestTransition } from '../support/client.ts';

export function testBackOffice({ world, ui, as }: Dashboard): void {
  describe('the back office', () => {
    it('opens a client and an account, and changes a phone number', async () => {
      const { page, complaints } = await as('officer');
      await page.goto(ui('/clients'));
      await page.getByRole('button', { name: 'Open a Retail client' }).click();
      await page.getByLabel('First name').fill('Augusta');
      await page.getByLabel('Last name').fill('Byron');
      await page.getByLabel('E-mail').fill('ada@bank.example');
      await page.getByLabel('Phone', { exact: false }).first().fill('12');
      await page.getByRole('button', { name: 'Open the client' }).click();
      await page.getByText('must be a phone number').first().waitFor();
      expect(await page.getByLabel('First name').inputValue()).toBe('Augusta');
      await expectFine(page, 'client-form-wrong');
      await page.getByLabel('Phone', { exact: false }).first().fill('+254 700 000 777');
      await page.getByRole('button', { name: 'Open the client' }).click();
      await page.getByText('The client is opened.').waitFor();
      expect(await heading(page)).toBe('Augusta Byron');

      await page.getByRole('button', { name: 'Correct names or contact' }).click();
      await page.getByLabel('Address').fill('12 St James’s Square');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('12 St James’s Square').waitFor();

      await page.getByRole('button', { name: 'Open an account' }).click();
      await page.getByLabel('Currency').fill('usd');
      await page.getByLabel('First deposit').fill('1250.75');
      await page.getByRole('button', { name: 'Open the account' }).click();
      await page.getByText(/^Account SAV-\d+ opened\.$/).waitFor();
      expect(plain(await page.locator('.balance').innerText())).toBe('1250.75 USD');
      await page.getByRole('link', { name: 'Augusta Byron' }).waitFor();
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });

    it('a form that is sent twice at once opens one account', async () => {
      const { page, context } = await as('officer');
      const { client_id } = await world.api.client();
      await page.goto(ui(`/accounts/new?client_id=${client_id}`));
      const fields = Object.fromEntries(
        await page.evaluate<[string, string][]>("[...new FormData(document.querySelector('main form'))]"),
      );
      const send = () =>
        context.request.post(ui('/accounts/new'), { form: { ...fields, currency: 'USD', initial_deposit: '10' } });
      const [first, second] = await Promise.all([send(), send()]);
      expect(first.url()).toBe(second.url());
      expect((await world.api.get(`/accounts?client_id=${client_id}`)).list()).toHaveLength(1);
    });

    it('freezes and unfreezes with reason and note, deactivates and activates, and the history says who', async () => {
      const { page, complaints } = await as('officer');
      const { account_id, account_number } = await world.api.newAccount({ initial_deposit: 5 });
      await page.goto(ui(`/accounts/${account_id}`));
      await page.getByRole('button', { name: 'Freeze' }).click();
      await page.getByText(`Freeze account ${account_number} of `).waitFor();
      await page.getByLabel('Reason').selectOption('legal');
      await page.getByLabel('Note').fill('Court order 12/26');
      await page.getByRole('checkbox').check();
      await page.getByRole('button', { name: 'Freeze the account' }).click();
      await page.getByText(`Account ${account_number} frozen.`).waitFor();
      const row = page.getByRole('row', { name: /Active → Frozen legal Court order/ });
      expect(await row.innerText()).toContain('officer');
      expect(await row.locator('[title^="jwt:"]').count()).toBe(1);
      await look(page, 'account-frozen');
      for (const [change, history] of [
        ['Unfreeze', 'Frozen → Active'],
        ['Deactivate', 'Active → Inactive'],
        ['Activate', 'Inactive → Active'],
      ] as const) {
        await page.getByRole('button', { name: change, exact: true }).click();
        await page.getByRole('checkbox').check();
        await page.getByRole('button', { name: `${change} the account` }).click();
        await page.getByRole('row', { name: new RegExp(history) }).waitFor();
      }
      expect((await world.api.get(`/accounts/${account_id}/status-transitions`)).list<RestTransition>()).toHaveLength(
        4,
      );
      expect(complaints).toEqual([]);
    });
  });
}
