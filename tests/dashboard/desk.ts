import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, plain } from '../support/browser.ts';
import type { Records } from './records.ts';
import { personAt, type, ways } from './typing.ts';

/** Tests the pages that staff use all day: lists that name people, and the page of an account. */
export function testDesk({ world, ui, as }: Dashboard, records: () => Records): void {
  const { api } = world;

  describe('the list of accounts', () => {
    it.each(ways)('names the owners, and is filtered by $hand on a $size', async ({ hand, size }) => {
      const { client, account } = records();
      const { page, complaints } = await as('officer', size);
      const { choose, press, send } = personAt(page, hand);
      await page.goto(ui(`/accounts?client_id=${client.client_id}`));
      const row = page.getByRole('row', { name: account.account_number });
      expect(await row.getByRole('link', { name: 'Hedda Høpper' }).getAttribute('href')).toBe(
        `/admin/ui/clients/${client.client_id}`,
      );
      await choose(page.locator('main').getByLabel('Status'), 'Frozen');
      await send(page.getByRole('button', { name: 'Filter', exact: true }));
      await page.waitForURL('**status=Frozen**');
      await page.getByText('No account matches.').waitFor();
      expect(new URL(page.url()).searchParams.get('client_id')).toBe(client.client_id);
      await press(
        page
          .getByRole('listitem')
          .filter({ hasText: 'Of the client' })
          .getByRole('link', { name: 'Remove this filter' }),
      );
      await page.waitForURL('**/accounts?status=Frozen**');
      expect(complaints).toEqual([]);
    });
  });

  describe('a list on a phone', () => {
    it.each(['/accounts', '/transactions', '/clients', '/audit'])('%s is read by many rows at once', async (path) => {
      const { page, complaints } = await as(path === '/audit' ? 'auditor' : 'officer', 'phone');
      await page.goto(ui(path));
      const rows = await page.locator('tbody tr').all();
      const boxes = await Promise.all(rows.map((row) => row.boundingBox()));
      expect(Math.max(...boxes.map((box) => box?.height ?? 0))).toBeLessThan(160);
      const leading = await Promise.all(
        (await rows[0]?.locator('.leading').all())?.map((cell) => cell.boundingBox()) ?? [],
      );
      expect(new Set(leading.map((box) => box?.y)).size).toBe(1);
      await expectFine(page, `list-phone${path.replace('/', '-')}`);
      expect(complaints).toEqual([]);
    });
  });

  describe('the page of an account', () => {
    it('has facts and actions on one side, movements with the running balance on the other, and a button that copies the id', async () => {
      const client = await api.client({ first_name: 'Wilhelmina-Alexandra', last_name: 'Fitz'.repeat(12) });
      const account = await api.account(client.client_id, { initial_deposit: 100 });
      const other = await api.account(client.client_id);
      await api.transfer(account.account_id, other.account_id, 2.5);
      const { page, complaints } = await as('officer');
      await page.goto(ui(`/accounts/${account.account_id}`));
      const movements = page.getByRole('region', { name: 'Latest movements' }).locator('tbody tr');
      expect(plain(await movements.nth(0).innerText())).toMatch(
        new RegExp(`Transfer to Wilhelmina-Alexandra (Fitz){12}, ${other.account_number}\\s[^]*\\s2\\.50\\s+97\\.50`),
      );
      expect(plain(await movements.nth(1).innerText())).toMatch(/Deposit\s+Initial deposit\s[^]*\s100\.00\s+100\.00/);
      const left = await page.getByRole('region', { name: 'The account' }).boundingBox();
      const right = await movements.first().boundingBox();
      expect(right?.x ?? 0).toBeGreaterThan((left?.x ?? 0) + (left?.width ?? 0));
      await page.locator('summary', { hasText: 'For technicians' }).click();
      await page.getByRole('button', { name: 'Copy the id' }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(account.account_id);
      await expectFine(page, 'account-desk');
      await page.goto(ui(`/accounts/${account.account_id}/entries`));
      const [latest] = (await api.get(`/accounts/${account.account_id}/entries`)).list<{ transaction_id: string }>();
      const entry = page.locator('tbody tr').first();
      await entry.getByRole('button', { name: 'Copy the id' }).click();
      await entry.getByRole('button', { name: 'Copied' }).waitFor();
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(latest?.transaction_id);
      await page.goto(ui(`/accounts/${account.account_id}/freezing`));
      await page.getByText(`Freeze account ${account.account_number} of Wilhelmina-Alexandra`).waitFor();
      await expectFine(page, 'freezing-desk');
      expect(complaints).toEqual([]);
    });
  });

  describe('the first page', () => {
    it('shows the day’s figures, each with a link, and is not refreshed while it is hidden', async () => {
      const account = await api.newAccount({ initial_deposit: 1234.5, currency: 'TZS' });
      await api.transact(account.account_id, 'Withdrawal', 34.5);
      await api.post('/transactions', {
        account_id: account.account_id,
        transaction_type: 'Withdrawal',
        amount: 999_999,
      });
      const { page, complaints } = await as('manager');
      await page.goto(ui(''));
      const row = page.getByRole('row', { name: 'TZS' });
      await row.waitFor();
      expect(plain(await row.innerText()).split(/\s+/)).toEqual(['TZS', '2', '1234.50', '34.50', '0.00', '1']);
      for (const tile of [
        /^Approvals/,
        /^Postings waiting \d/,
        /^Dead letters \d/,
        /^The books/,
        /^Services all answer ledger, accounts, webhooks/,
      ])
        await page.locator('.tile').filter({ hasText: tile }).waitFor();
      await page.locator('#waiting-approvals').waitFor({ state: 'attached' });
      expect(await page.title()).toBe('Home – Core Banking');
      await expectFine(page, 'home-today');

      const pretend = (hidden: boolean) =>
        page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${hidden}, configurable: true })`);
      await pretend(true);
      const asked: string[] = [];
      page.on('request', (request) => void (request.url().endsWith('/today') && asked.push(request.url())));
      await page.evaluate("htmx.trigger('#today', 'refresh')");
      await pretend(false);
      expect(asked).toEqual([]);
      const answered = page.waitForResponse('**/admin/ui/today');
      await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
      await answered;
      await row.getByRole('link', { name: '1', exact: true }).click();
      await page.waitForURL('**/transactions?currency=TZS**status=Failed**');
      await page.getByText('There is not enough money in the account.').waitFor();
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });
  });

  describe('searching with only the keyboard', () => {
    it('leads from / to a page by common identifiers, and by arrow keys to one of several hits', async () => {
      const { client, account, deposit } = records();
      const sister = await api.client({
        first_name: 'Hilda Hedda',
        last_name: 'Høpper',
        email: 'hilda@sisters.example',
        contact_number: '+254711222333',
      });
      await api.post('/transactions', {
        account_id: (await api.account(sister.client_id)).account_id,
        transaction_type: 'Deposit',
        amount: 77_001.25,
      });
      const { page, complaints } = await as('auditor');
      await page.goto(ui(''));
      const find = async (q: string) => {
        await page.keyboard.press('/');
        await page.keyboard.type(q);
        await page.keyboard.press('Enter');
      };
      for (const [q, path] of [
        ['hilda@SISTERS.example', `/clients/${sister.client_id}`],
        [account.account_number.replace(/\D/g, ''), `/accounts/${account.account_id}`],
        ['0711 222 333', `/clients/${sister.client_id}`],
        ['invoice 77', `/transactions/${deposit.transaction_id}`],
      ] as const) {
        await find(q);
        await page.waitForURL(ui(path));
      }
      await find('vlt-usd');
      await page.waitForURL('**/books#VLT-USD');
      await find('77,001.25 usd');
      await page.waitForURL('**/transactions?currency=USD**');
      expect(await page.locator('tbody tr').count()).toBe(1);
      await find('hopper');
      await page.getByRole('heading', { level: 1, name: 'Found for' }).waitFor();
      await expectFine(page, 'find-several');
      await page.locator('[data-hit]:focus').waitFor();
      await page.keyboard.press('ArrowDown');
      const second = await page.locator('[data-hit]:focus').getAttribute('href');
      expect([client.client_id, sister.client_id].map((id) => `/admin/ui/clients/${id}`)).toContain(second);
      await page.keyboard.press('Enter');
      await page.waitForURL(`**${second}`);
      expect(complaints).toEqual([]);
    });
  });

  describe('the key /', () => {
    it('leads to the search box from every control except a field for text, in which it is typed', async () => {
      const { client, account } = records();
      const { page, complaints } = await as('officer');
      const box = page.getByRole('searchbox', { name: 'Find anything' });
      const focusAfterSlash = async (path: string, control: Locator) => {
        await page.goto(ui(path));
        await control.focus();
        await page.keyboard.press('/');
        return box.evaluate((element) => element === element.ownerDocument.activeElement);
      };
      const main = page.locator('main');
      for (const [path, control] of [
        ['/accounts', main.getByRole('link').first()],
        ['/accounts', main.getByLabel('Status')],
        ['/accounts', main.getByRole('button', { name: 'Filter', exact: true })],
        [`/accounts/${account.account_id}/freezing`, main.getByRole('checkbox')],
      ] as const)
        expect(await focusAfterSlash(path, control)).toBe(true);
      for (const [path, control] of [
        ['/clients', main.getByLabel('Words of the name')],
        [`/clients/${client.client_id}`, main.getByLabel('New note')],
      ] as const) {
        expect(await focusAfterSlash(path, control)).toBe(false);
        expect(await control.inputValue()).toBe('/');
      }
      expect(complaints).toEqual([]);
    });
  });

  describe('the transactions of the whole bank', () => {
    it('name the customer, and are filtered by keyboard to those that the user has entered', async () => {
      const { page, complaints } = await as('officer');
      const account = await api.newAccount({ initial_deposit: 10 });
      await page.goto(ui(`/counter/${account.account_id}/deposit`));
      await type(page, '3,25', 'Enter');
      await page.getByRole('button', { name: /^Deposit/ }).click();
      await page.waitForURL('**/counter/receipts/**');
      await page.goto(ui('/transactions'));
      await page.locator('main').getByLabel('Entered by').focus();
      await page.keyboard.type('Me');
      await page.locator('summary', { hasText: 'More filters' }).focus();
      await page.keyboard.press('Enter');
      await page.locator('main').getByLabel('Amount from').focus();
      await page.keyboard.type('3.25');
      await page.keyboard.press('Enter');
      await page.waitForURL('**min_amount=3.25**');
      const row = page.getByRole('row', { name: account.account_number });
      expect(plain(await row.innerText())).toMatch(/Deposit\s+Cash\s+Ada Lovelace\s+\S+\s+3\.25\s+Posted/);
      await expectFine(page, 'transactions');
      expect(complaints).toEqual([]);
    });
  });
}
