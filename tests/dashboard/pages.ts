import { describe, expect, it } from 'vitest';
import { scopes } from '#libs/contracts/scopes.ts';
import { type Dashboard, expectFine } from '../support/browser.ts';

export function testPages({ world, ui, as }: Dashboard): void {
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

    it('loads at most 90 KB at the first visit, and most pages less than 10 KB after it', async () => {
      const { page } = await as('officer');
      const cdp = await page.context().newCDPSession(page);
      await cdp.send('Network.enable');
      let bytes = 0;
      cdp.on('Network.loadingFinished', ({ encodedDataLength }) => {
        bytes += encodedDataLength;
      });
      await page.goto(ui('/counter'), { waitUntil: 'networkidle' });
      expect(bytes).toBeGreaterThan(20_000);
      expect(bytes).toBeLessThan(90 * 1024);
      bytes = 0;
      await page.getByRole('link', { name: 'Clients' }).first().click();
      await page.waitForLoadState('networkidle');
      expect(bytes).toBeLessThan(10 * 1024);
    });

    it('a row opens what it shows, and a form that waits for its answer says so', async () => {
      const client = await api.client({ first_name: 'Rowena' });
      const { account_id, account_number } = await api.account(client.client_id);
      const { page, complaints } = await as('officer');
      await page.goto(ui(`/clients/${client.client_id}`));
      await page.getByRole('row', { name: account_number }).getByText('Savings').click();
      await page.waitForURL(`**/accounts/${account_id}`);
      let answer = (): void => undefined;
      const answered = new Promise<void>((resolve) => {
        answer = resolve;
      });
      await page.route('**/find?*', async (route) => {
        await answered;
        await route.continue();
      });
      await page.getByRole('searchbox').fill('Rowena');
      const sent = page.getByRole('button', { name: 'Find' }).click({ noWaitAfter: true });
      await page.locator('button[aria-busy="true"]:disabled', { hasText: 'Find' }).waitFor();
      answer();
      await sent;
      await page.waitForURL('**/clients/**');
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
