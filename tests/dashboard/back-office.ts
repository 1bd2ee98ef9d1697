import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, heading, look, plain } from '../support/browser.ts';
import type { RestTransition } from '../support/client.ts';
import { mainText, personAt, ways } from './typing.ts';

export function testBackOffice({ world, ui, as }: Dashboard): void {
  describe('the back office', () => {
    it.each(ways)(
      'creates a client, opens an account, and changes an address, by $hand on a $size',
      async ({ hand, size }) => {
        const { page, complaints } = await as('officer', size);
        const { choose, enter, press, send } = personAt(page, hand);
        const field = (label: string) => page.locator('main').getByLabel(label).first();
        const creates = page.getByRole('button', { name: 'Create the client' });
        await page.goto(ui('/clients'));
        await press(page.getByRole('button', { name: 'Create a Retail client' }));
        await page.locator('[name=first_name]:focus').waitFor();
        await enter(field('First name'), `Augusta ${hand}`);
        await enter(field('Last name'), `Byron ${size}`);
        await enter(field('E-mail'), `ada.${hand}.${size}@bank.example`);
        await enter(field('Phone'), '12');
        await send(creates);
        await page.getByText('must be a phone number').first().waitFor();
        await page.locator('[name=contact_number]:focus').waitFor();
        expect(await field('First name').inputValue()).toBe(`Augusta ${hand}`);
        await expectFine(page, 'client-form-wrong');
        await enter(field('Phone'), `+2546${String(Date.now()).slice(-8)}`);
        await send(creates);
        await page.getByText('The client was created.').waitFor();
        expect(await heading(page)).toBe(`Augusta ${hand} Byron ${size}`);

        // On a desk the next step needs one key.
        const next = page.locator('main :focus');
        if (size === 'desk') expect(await next.innerText()).toBe('Open an account');
        await press(page.getByRole('button', { name: 'Correct names or contact' }));
        await enter(field('Address'), '12 St James’s Square');
        await press(page.getByRole('button', { name: 'Save' }));
        await page.getByText('12 St James’s Square').waitFor();

        await press(page.getByRole('button', { name: 'Open an account' }));
        // The bank's accounts are in several currencies, or in this one.
        await choose(field('Currency'), 'USD');
        await enter(field('First deposit'), '1250.75');
        await send(page.getByRole('button', { name: 'Open the account' }));
        await page.getByRole('heading', { level: 1, name: 'Open an account: is this right?' }).waitFor();
        expect(await mainText(page)).toContain('First deposit, in cash 1250.75 USD');
        await send(page.getByRole('button', { name: 'Open the account' }));
        await page.getByText(/^Account SAV-\d+ opened\./).waitFor();
        const receipt = await page.getByRole('link', { name: 'Receipt' }).getAttribute('href');
        expect(receipt).toMatch(/\/counter\/receipts\/txn_/);
        expect(plain(await page.locator('.figure').innerText())).toMatch(/1250\.75 USD/);
        if (size === 'desk') expect(await next.innerText()).toBe('Deposit');
        await page.getByRole('link', { name: /^Augusta/ }).waitFor();
        expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
      },
    );

    it('a form that is sent twice concurrently opens one account', async () => {
      const { page, context } = await as('officer');
      const { client_id } = await world.api.client();
      await page.goto(ui(`/accounts/new?client_id=${client_id}`));
      const fields = Object.fromEntries(
        await page.evaluate<[string, string][]>("[...new FormData(document.querySelector('main form'))]"),
      );
      const send = () => context.request.post(ui('/accounts/new'), { form: { ...fields, currency: 'USD' } });
      const [first, second] = await Promise.all([send(), send()]);
      expect(first.url()).toBe(second.url());
      expect((await world.api.get(`/accounts?client_id=${client_id}`)).list()).toHaveLength(1);
    });

    it.each(ways)(
      'freezes and unfreezes with reason and note, deactivates and activates, by $hand on a $size',
      async ({ hand, size }) => {
        const { page, complaints } = await as('officer', size);
        const { choose, enter, press, tick } = personAt(page, hand);
        const { account_id, account_number } = await world.api.newAccount({ initial_deposit: 5 });
        await page.goto(ui(`/accounts/${account_id}`));
        await press(page.locator('summary', { hasText: 'More' }));
        await press(page.getByRole('link', { name: 'Freeze' }));
        await page.getByText(`Freeze account ${account_number} of `).waitFor();
        expect(await heading(page)).toBe(`Freeze account ${account_number}`);
        await choose(page.getByLabel('Reason'), 'legal');
        await enter(page.getByLabel('Note'), 'Court order 12/26');
        await tick(page.getByRole('checkbox'));
        await press(page.getByRole('button', { name: 'Freeze the account' }));
        await page.getByText(`Account ${account_number} frozen.`).waitFor();
        const facts = page.getByRole('region', { name: 'The account' });
        expect(await facts.innerText()).toMatch(/Reason\s+legal: Court order 12\/26/);
        const row = page.getByRole('row', { name: /Active → Frozen.*legal.*Court order/ });
        expect(await row.innerText()).toContain('Olivia Officer');
        expect(await row.locator('[title^="jwt:"]').count()).toBe(1);
        await look(page, 'account-frozen');
        for (const [change, history] of [
          ['Unfreeze', 'Frozen → Active'],
          ['Deactivate', 'Active → Inactive'],
          ['Activate', 'Inactive → Active'],
        ] as const) {
          // Where nothing else can be done, they are not behind More.
          if (change === 'Deactivate') await press(page.locator('summary', { hasText: 'More' }));
          const role = change === 'Deactivate' ? 'link' : 'button';
          await press(page.getByRole(role, { name: change, exact: true }));
          if (change === 'Unfreeze') await enter(page.getByLabel('Why it may be used again'), 'Order lifted');
          await tick(page.getByRole('checkbox'));
          await press(page.getByRole('button', { name: `${change} the account` }));
          await page.getByRole('row', { name: new RegExp(history) }).waitFor();
        }
        expect((await world.api.get(`/accounts/${account_id}/status-transitions`)).list<RestTransition>()).toHaveLength(
          4,
        );
        expect(complaints).toEqual([]);
      },
    );
  });
}
