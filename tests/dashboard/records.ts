import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Statement } from '#libs/contracts/resources.ts';
import { type Dashboard, expectFine, heading, look, plain } from '../support/browser.ts';
import { newKey, type RestAccount, type RestClient, type RestTransaction, type RestTransfer, type RestTransition } from '../support/client.ts';
import { together } from '../support/world.ts';

/** Clients, accounts, transactions and the box that finds them. */
export function testRecords({ world, ui, as }: Dashboard): void {
  const { api } = world;
  let client: RestClient;
  let account: RestAccount;
  let deposit: RestTransaction;
  let transfer: RestTransfer;
  const key = newKey();

  beforeAll(async () => {
    client = await api.client({ first_name: 'Hedda', last_name: 'Høpper', contact_number: '+4799000001' });
    account = await api.account(client.client_id, { initial_deposit: 100 });
    const answer = await api.post('/transactions', { account_id: account.account_id, transaction_type: 'Deposit', amount: 1234.5, reference: 'INVOICE 77', description: '=1+1' }, { 'idempotency-key': key, 'x-request-id': 'the very request' });
    deposit = answer.body as RestTransaction;
    transfer = await api.transfer(account.account_id, (await api.newAccount()).account_id, 2.5);
  });

  async function find(page: Page, q: string): Promise<void> {
    await page.getByRole('searchbox', { name: 'Find anything' }).fill(q);
    await page.keyboard.press('Enter');
  }

  describe('the box that finds', () => {
    it('leads from whatever somebody has in hand to its page', async () => {
      const { page, complaints } = await as('admin');
      await page.goto(ui(''));
      const cases: [string, string][] = [
        ['hedda hø', `/clients/${client.client_id}`], ['+47 9900 0001', `/clients/${client.client_id}`], [account.account_number, `/accounts/${account.account_id}`],
        ['INVOICE 77', `/transactions/${deposit.transaction_id}`], [key, `/transactions/${deposit.transaction_id}`], [deposit.transaction_id, `/transactions/${deposit.transaction_id}`], [transfer.transfer_id, `/transfers/${transfer.transfer_id}`],
      ];
      for (const [q, path] of cases) {
        await find(page, q);
        await page.waitForURL(ui(path));
      }
      await find(page, transfer.transfer_id.replace('trf_', 'opr_'));
      await page.getByRole('link', { name: /^Transfer/ }).first().waitFor();
      await find(page, 'nothing is called so');
      await page.getByText('Nothing was found').waitFor();
      expect(complaints).toEqual([]);
    });
  });

  describe('a transaction', () => {
    it('opens as a timeline: request, command, both sides, events', async () => {
      const { page, complaints } = await as('auditor');
      await page.goto(ui(`/transactions/${deposit.transaction_id}`));
      expect(plain(await heading(page))).toBe('Deposit 1234.50 USD');
      for (const title of ['Request', 'Command', 'Entries', 'Events']) await page.getByRole('heading', { level: 3, name: title }).waitFor();
      await page.getByText('the very request').waitFor();
      const kinds = await page.getByRole('region', { name: 'Entries of the operation' }).locator('tbody td:nth-child(2)').allInnerTexts();
      expect(kinds).toEqual(['Vault', 'Teller', 'Teller', 'Savings']);
      await page.getByText('corebanking.transaction.completed.v1').waitFor();
      await page.goto(ui(`/transfers/${transfer.transfer_id}`));
      await page.getByRole('heading', { level: 3, name: 'Events' }).waitFor();
      expect(await page.getByRole('link', { name: account.account_number }).first().getAttribute('href')).toBe(`/admin/ui/accounts/${account.account_id}`);
      expect(complaints).toEqual([]);
      const officer = await as('officer');
      await officer.page.goto(ui(`/transactions/${deposit.transaction_id}`));
      await officer.page.getByText('for those who may read the audit').waitFor();
    });
  });

  describe('the back office', () => {
    it('opens a client and an account, and changes a phone number', async () => {
      const { page, complaints } = await as('officer');
      await page.goto(ui('/clients'));
      await page.getByRole('button', { name: 'Open a Retail client' }).click();
      await page.getByLabel('First name').fill('Ada');
      await page.getByLabel('Last name').fill('Lovelace');
      await page.getByLabel('E-mail').fill('ada@bank.example');
      await page.getByLabel('Phone', { exact: false }).first().fill('12');
      await page.getByRole('button', { name: 'Open the client' }).click();
      await page.getByText('must be a phone number').first().waitFor();
      expect(await page.getByLabel('First name').inputValue()).toBe('Ada');
      await expectFine(page, 'client-form-wrong');
      await page.getByLabel('Phone', { exact: false }).first().fill('+254 700 000 777');
      await page.getByRole('button', { name: 'Open the client' }).click();
      await page.getByText('It is saved.').waitFor();
      expect(await heading(page)).toBe('Ada Lovelace');

      await page.getByRole('button', { name: 'Change contact' }).click();
      await page.getByLabel('Address').fill('12 St James’s Square');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('12 St James’s Square').waitFor();

      await page.getByRole('button', { name: 'Open an account' }).click();
      await page.getByLabel('Currency').fill('usd');
      await page.getByLabel('First deposit').fill('1250.75');
      await page.getByRole('button', { name: 'Open the account' }).click();
      await page.getByText('It is done.').waitFor();
      expect(plain(await page.locator('.balance').innerText())).toBe('1250.75 USD');
      await page.getByRole('link', { name: 'Ada Lovelace' }).waitFor();
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });

    it('a form that is sent twice at once opens one account', async () => {
      const { page, context } = await as('officer');
      const { client_id } = await api.client();
      await page.goto(ui(`/accounts/new?client_id=${client_id}`));
      const fields = Object.fromEntries(await page.evaluate<[string, string][]>("[...new FormData(document.querySelector('main form'))]"));
      const send = () => context.request.post(ui('/accounts/new'), { form: { ...fields, currency: 'USD', initial_deposit: '10' } });
      const [first, second] = await Promise.all([send(), send()]);
      expect(first.url()).toBe(second.url());
      expect((await api.get(`/accounts?client_id=${client_id}`)).list()).toHaveLength(1);
    });

    it('freezes and unfreezes with reason and note, deactivates and activates, and the history says who', async () => {
      const { page, complaints } = await as('officer');
      const { account_id } = await api.newAccount({ initial_deposit: 5 });
      await page.goto(ui(`/accounts/${account_id}`));
      await page.getByRole('button', { name: 'Freeze' }).click();
      await page.getByLabel('Reason').selectOption('legal');
      await page.getByLabel('Note').fill('Court order 12/26');
      await page.getByRole('checkbox').check();
      await page.getByRole('button', { name: 'Freeze the account' }).click();
      await page.getByText('It is done.').waitFor();
      const row = page.getByRole('row', { name: /Active → Frozen legal Court order/ });
      expect(await row.innerText()).toContain('officer');
      expect(await row.locator('[title^="jwt:"]').count()).toBe(1);
      await look(page, 'account-frozen');
      for (const [change, history] of [['Unfreeze', 'Frozen → Active'], ['Deactivate', 'Active → Inactive'], ['Activate', 'Inactive → Active']] as const) {
        await page.getByRole('button', { name: change, exact: true }).click();
        await page.getByRole('checkbox').check();
        await page.getByRole('button', { name: `${change} the account` }).click();
        await page.getByRole('row', { name: new RegExp(history) }).waitFor();
      }
      expect((await api.get(`/accounts/${account_id}/status-transitions`)).list<RestTransition>()).toHaveLength(4);
      expect(complaints).toEqual([]);
    });
  });

  describe('lists', () => {
    it('are filtered, turned around, paged, sorted and taken along', async () => {
      const { page, context, complaints } = await as('auditor');
      const many = await api.newAccount({ initial_deposit: 1000 });
      await together(52, (n) => api.transact(many.account_id, 'Deposit', n + 1));
      await page.goto(ui(`/accounts/${many.account_id}/transactions`));
      const rows = () => page.locator('tbody tr').count();
      expect(await rows()).toBe(50);
      await page.getByRole('link', { name: 'Next page' }).click();
      await page.getByRole('link', { name: 'First page' }).waitFor();
      expect(await rows()).toBe(3);
      await page.getByRole('link', { name: 'When' }).click();
      await page.locator('th[aria-sort="ascending"]').waitFor();
      expect(plain(await page.locator('tbody tr').first().innerText())).toContain('1000.00');

      const amounts = async () => (await page.locator('tbody td:nth-child(5)').allInnerTexts()).map((text) => Number.parseFloat(plain(text)));
      const shown = await amounts();
      await page.getByRole('button', { name: 'In', exact: true }).focus();
      await page.keyboard.press('Enter');
      await page.getByText('Sorted by In, ascending: the rows of this page only.').waitFor();
      expect(await amounts()).toEqual(shown.toSorted((a, b) => a - b));
      await page.keyboard.press('Enter');
      expect(await amounts()).toEqual(shown.toSorted((a, b) => b - a));
      expect(await page.locator('th[aria-sort]').allInnerTexts()).toEqual([expect.stringContaining('In')]);
      await expectFine(page, 'transactions-sorted');

      await page.getByText('Filter and order').click();
      await page.getByLabel('Amount from').fill('52');
      await page.getByRole('button', { name: 'Filter', exact: true }).click();
      await page.waitForURL('**min_amount=52**');
      expect(await rows()).toBe(2);
      const file = await context.request.get(ui(`/accounts/${many.account_id}/transactions.csv`));
      expect((await file.text()).trimEnd().split('\r\n')).toHaveLength(54);
      expect((await (await context.request.get(ui(`/accounts/${account.account_id}/transactions.csv`))).text())).toContain(",INVOICE 77,'=1+1,");
      expect(complaints).toEqual([]);
    });

    it('a statement adds up, and prints without what is for the screen', async () => {
      const { page, complaints } = await as('auditor');
      await page.goto(ui(`/accounts/${account.account_id}/statement`));
      const { closing_balance } = (await api.get(`/accounts/${account.account_id}/statement`)).data<Statement>();
      expect(plain(await page.locator('dl.facts').innerText())).toContain(`${Number(closing_balance).toFixed(2)} USD`);
      expect(await page.locator('dl.facts').innerText()).toContain('Hedda Høpper');
      expect(await page.locator('tbody tr').count()).toBe(3);
      await page.getByRole('button', { name: 'Print' }).waitFor();
      await page.emulateMedia({ media: 'print' });
      await look(page, 'statement-printed');
      expect(await page.getByRole('navigation').count()).toBe(0);
      expect(await page.getByRole('button').count()).toBe(0);
      expect(complaints).toEqual([]);
    });
  });
}
