import { describe, expect, it } from 'vitest';
import { scopes } from '#libs/contracts/scopes.ts';
import { type Dashboard, expectFine, signIn } from '../support/browser.ts';

export function testPages({ world, ui, as, open }: Dashboard): void {
  const { api } = world;

  describe('every page', () => {
    /** Checks the pages that no other test has checked. */
    async function expectAllFine(paths: Record<string, string>): Promise<void> {
      const { page, complaints } = await as('admin');
      for (const [name, path] of Object.entries(paths)) {
        await page.goto(ui(path));
        await expectFine(page, name);
      }
      // The browser logs the expected 404 to its console.
      expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
    }

    it('of the records is accessible, reports no errors, and is no wider than the window, on a desk and on a phone, in the light and the dark theme', async () => {
      const client = await api.client({ first_name: 'Grace' });
      const account = await api.account(client.client_id, { initial_deposit: 100 });
      const { account_id: other } = await api.account(client.client_id);
      const { transfer_id } = await api.transfer(account.account_id, other, 2.5);
      const { transaction_id } = await api.transact(account.account_id, 'Deposit', 1234.5);
      const of = `/accounts/${account.account_id}`;
      await expectAllFine({
        clients: '/clients',
        client: `/clients/${client.client_id}`,
        contact: `/clients/${client.client_id}/contact`,
        accounts: '/accounts',
        account: of,
        entries: `${of}/entries`,
        history: `${of}/history`,
        statement: `${of}/statement`,
        'account-new': '/accounts/new',
        'account-holds': `${of}/holds`,
        'reversal-form': `/transactions/${transaction_id}/reversal`,
        'client-erasure': `/clients/${client.client_id}/erasure`,
        'batches-start': '/counter/batches',
        freezing: `${of}/freezing`,
        transaction: `/transactions/${transaction_id}`,
        transfer: `/transfers/${transfer_id}`,
        find: '/find?q=Grace',
      });
    });

    it('of administration is, too', async () => {
      await api.post('/admin/api-keys', { name: 'Partner bank, nightly statements', scopes: [...scopes] });
      await expectAllFine({
        home: '',
        keys: '/api-keys',
        'approvals-waiting': '/approvals',
        'approvals-own': '/approvals/mine',
        'approvals-all': '/approvals/all',
        audit: '/audit',
        operations: '/operations',
        'not-found': '/nothing',
      });
    });

    it('a first visit, from the sign-in to home, loads at most 90 KB, and a page after it less than 15 KB', async () => {
      const { page, context } = await open();
      const devTools = await context.newCDPSession(page);
      await devTools.send('Network.enable');
      let bytes = 0;
      devTools.on('Network.loadingFinished', ({ encodedDataLength }) => {
        bytes += encodedDataLength;
      });
      await signIn(page, world.bank.dashboard_urls[0] ?? '', 'officer');
      await page.waitForLoadState('networkidle');
      expect(bytes).toBeGreaterThan(20_000);
      expect(bytes).toBeLessThan(90 * 1024);
      bytes = 0;
      await page.goto(ui('/clients'), { waitUntil: 'networkidle' });
      expect(bytes).toBeLessThan(15 * 1024);
    });

    it('a row opens what it shows, and a form that waits for its answer says so', async () => {
      const client = await api.client({ first_name: 'Rowena' });
      const { account_id, account_number } = await api.account(client.client_id);
      const { page, complaints } = await as('officer');
      await page.goto(ui(`/clients/${client.client_id}`));
      await page.getByRole('row', { name: account_number }).getByText('Savings').click();
      await page.waitForURL(`**/accounts/${account_id}`);
      // The answer comes once the button is busy.
      const busy = new Promise<string>((resolve) => page.exposeFunction('sayBusy', resolve));
      await page.evaluate(`new MutationObserver(([{ target }]) => target.disabled && sayBusy(target.textContent))
        .observe(document.querySelector('.find button'), { attributes: true, attributeFilter: ['disabled'] })`);
      await page.route('**/find?*', async (route) => {
        await busy;
        await route.continue();
      });
      await page.getByRole('searchbox').fill('Rowena');
      await page.getByRole('button', { name: 'Find' }).click({ noWaitAfter: true });
      expect(await busy).toBe('Find');
      await page.waitForURL((url) => !url.pathname.includes('/accounts/'));
      expect(complaints).toEqual([]);
    });

    it('works without scripts', async () => {
      const { context, page } = await as('admin');
      await context.route('**/*.js', (route) => route.abort());
      await page.goto(ui('/books'));
      await page.getByRole('link', { name: 'Postings over time' }).click();
      await page.getByText('The numbers').waitFor();
      await page.getByRole('searchbox').fill('Grace');
      await page.keyboard.press('Enter');
      await page.waitForURL('**/admin/ui/**');
      await page.getByText('Grace').first().waitFor();
    });
  });
}
