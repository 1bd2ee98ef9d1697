import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Dashboard, heading, plain } from '../support/browser.ts';
import type { RestAccount, RestClient } from '../support/client.ts';
import { eventually } from '../support/world.ts';
import { mainText, type } from './typing.ts';

const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/staff.md'), 'utf8');

/** Names in the guide that other tests see on a page, with the file of each. */
const seenElsewhere: Record<string, string> = {
  'Your form': 'sign-in.ts',
  'Not known yet': '../../services/dashboard/pages/counter.test.ts',
  'Ask again': '../../services/dashboard/pages/counter.test.ts',
  'Active, failing': '../../services/dashboard/pages/secrets.test.ts',
};

/**
 * Follows docs/guides/staff.md from its first sentence to its last, as the people for whom it is written. Each of its
 * sections and numbered steps has a test with its name, and each name that it gives in italics is seen on a page.
 */
export function testGuide({ world, ui, as }: Dashboard): void {
  const { api } = world;
  const followed: string[] = [];
  let seen = '';
  /** Reads the page, with what screen readers say. */
  const see = async (page: Page) => {
    const labels = await page.evaluate<string[]>(
      "[...document.querySelectorAll('[aria-label]')].map((e) => e.ariaLabel)",
    );
    const text = [await page.locator('body').innerText(), ...labels].join(' ');
    seen += ` ${text.replace(/\s+/g, ' ')}`;
    return plain(text).replace(/\s+/g, ' ');
  };
  const follow = (part: string, does: () => Promise<void>) => {
    followed.push(part);
    it(part, does);
  };
  const button = (page: Page, name: string | RegExp) => page.locator('main').getByRole('button', { name });
  const link = (page: Page, name: string | RegExp) => page.locator('main').getByRole('link', { name });
  const openSection = (page: Page, name: string) =>
    page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name, exact: true }).click();

  let customer: { client: RestClient; account: RestAccount; other: RestAccount };
  const kes = { currency: 'KES' };
  async function createCustomer() {
    const client = await api.client({
      first_name: 'Wanjiku',
      last_name: 'Guided',
      email: 'wanjiku@guided.example',
      contact_number: '+254722111222',
    });
    const account = await api.account(client.client_id, { ...kes, initial_deposit: 5000 });
    const recipient = await api.client({ first_name: 'Kiprono', last_name: 'Receiver' });
    return { client, account, other: await api.account(recipient.client_id, kes) };
  }
  const receipts: { number: string; url: string }[] = [];

  describe('the guide for staff', () => {
    beforeAll(async () => {
      customer = await createCustomer();
    });

    follow('Home', async () => {
      const { page } = await as('officer');
      await page.goto(ui(''));
      await page.getByLabel('Customer').and(page.locator(':focus')).waitFor();
      await page.getByRole('heading', { name: 'Your day' }).waitFor();
      const own = await see(page);
      for (const words of ['Net cash', 'Your till', 'Your requests', 'Your last customers'])
        expect(own).toContain(words);
      const manager = await as('manager');
      await manager.page.goto(ui(''));
      await manager.page.getByRole('heading', { name: 'Posted today' }).waitFor();
      await manager.page.getByRole('heading', { name: 'Cash by day' }).waitFor();
      await manager.page.getByRole('link', { name: '30 days' }).waitFor();
    });

    follow('Your till', async () => {
      const { page } = await as('officer');
      await page.goto(ui(''));
      await link(page, 'Count and open it').waitFor();
      await see(page);
      await link(page, 'Count and open it').click();
      await page
        .getByLabel(/^(Counted|Other currencies)/)
        .last()
        .fill('5,000 KES; 200 USD');
      await button(page, 'Open the till').click();
      await page.getByText('Your till is open.').waitFor();
      await page.goto(ui(`/counter/${customer.account.account_id}/withdrawal`));
      await type(page, '100', 'Enter');
      await button(page, /^Pay out/).click();
      await page.waitForURL('**/receipts/*');
      await page.goto(ui(''));
      await link(page, 'Count and close it').waitFor();
      await see(page);
      await link(page, 'Count and close it').click();
      await page.getByLabel('Counted, in KES').fill('4890');
      await page.getByLabel('Counted, in USD').fill('200');
      await button(page, 'Close the till').click();
      await page.getByText('There is a difference in KES.').waitFor();
      await page.getByLabel('Reason for the difference').fill('a note is lost');
      await button(page, 'Close the till').click();
      await page.getByText('Your till is closed.').waitFor();
      await button(page, 'Print').waitFor();
      await see(page);
      // The next one begins with more than was left.
      await page.goto(ui('/tills/open'));
      await page.getByLabel('Counted, in KES').fill('4900');
      await page.getByLabel('Counted, in USD').fill('200');
      await button(page, 'Open the till').click();
      expect(await mainText(page)).toMatch(/Since the last closing.*10\.00 KES/);
      await page.goto(ui(''));
      await link(page, 'your tills').click();
      await page.getByRole('row', { name: 'a note is lost' }).first().waitFor();
      const manager = await as('manager');
      await manager.page.goto(ui(''));
      await openSection(manager.page, 'Tills');
      await manager.page.getByRole('row', { name: 'Olivia Officer' }).first().waitFor();
      await see(manager.page);
    });

    follow('Search', async () => {
      const company = (
        await api.post('/clients', {
          client_type: 'Corporate',
          company_name: 'Guided Tea Estates',
          registration_number: 'PVT-GUIDE1',
          external_id: 'CRM-GUIDE',
          contact_number: '+254722000333',
          email: 'guided@tea.example',
        })
      ).data<RestClient>();
      const { account, client } = customer;
      const deposit = await api.transact(account.account_id, 'Deposit', 10, { reference: 'guided slip 7' });
      const { page } = await as('admin');
      const of = `/clients/${company.client_id}`;
      const at = `/accounts/${account.account_id}`;
      for (const [q, path] of [
        ['guided estates', of],
        [client.email, `/clients/${client.client_id}`],
        ['pvt-guide1', of],
        [client.contact_number, `/clients/${client.client_id}`],
        [account.account_number, at],
        [account.account_number.replace(/\D/g, ''), at],
        ['CRM-GUIDE', of],
        ['guided slip 7', `/transactions/${deposit.transaction_id}`],
        ['1500 KES', '/transactions?currency=KES&min_amount=1500.00&max_amount=1500.00'],
        ['VLT-KES', '/books#VLT-KES'],
        [deposit.transaction_id, `/transactions/${deposit.transaction_id}`],
      ] as const) {
        await page.goto(ui('/accounts'));
        await page.keyboard.press('/');
        await page.keyboard.type(q);
        await page.keyboard.press('Enter');
        await page.waitForURL(ui(path));
      }
    });

    follow('A session', async () => {
      const { page } = await as('officer');
      await page.goto(ui(''));
      const { idleMs, warnMs } = await page.evaluate<Record<string, string>>(
        "({ ...document.getElementById('session-end').dataset })",
      );
      expect([idleMs, warnMs].map((ms) => Math.ceil(Number(ms) / 60_000))).toEqual([30, 5]);
    });

    follow('Notes', async () => {
      const { page } = await as('officer');
      await page.goto(ui(`/clients/${customer.client.client_id}`));
      await page.getByLabel('New note').fill('Speaks Kikuyu');
      await button(page, 'Add the note').click();
      const note = page.locator('.notes li', { hasText: 'Speaks Kikuyu' });
      await note.waitFor();
      expect(await note.locator('button, a[href*="note"]').count()).toBe(0);
    });

    follow('Roles', async () => {
      const { client, account } = customer;
      const offers = async (user: Parameters<typeof as>[0]) => {
        const { page } = await as(user);
        const all: string[] = [];
        for (const path of [`/clients/${client.client_id}`, `/accounts/${account.account_id}`, '/books']) {
          await page.goto(ui(path));
          all.push(
            ...(await page
              .locator('nav[aria-label="Sections"] a, main :is(button, [role="button"], [href$="/erasure"])')
              .allInnerTexts()),
          );
        }
        return [
          'Counter',
          'Deposit',
          'Open an account',
          'Correct names or contact',
          'Audit',
          'Check every entry now',
          'API keys',
          'Erase this client',
        ].filter((name) => all.some((text) => text.trim() === name));
      };
      const officer = ['Counter', 'Deposit', 'Open an account', 'Correct names or contact'];
      const auditor = ['Audit', 'Check every entry now'];
      expect(await offers('officer')).toEqual(officer);
      expect(await offers('auditor')).toEqual(auditor);
      expect(await offers('admin')).toEqual(expect.arrayContaining([...officer, ...auditor, 'API keys']));
      expect(await offers('manager')).toEqual(expect.arrayContaining(['Erase this client']));
    });

    follow('The counter', async () => {
      const { page } = await as('officer');
      await page.goto(ui(`/accounts/${customer.account.account_id}`));
      for (const name of ['Deposit', 'Withdraw', 'Transfer']) await button(page, name).waitFor();
      await button(page, 'Deposit').click();
      await page.locator('[name=amount]:focus').waitFor();
      for (const [digit, kind] of [
        ['2', 'withdrawal'],
        ['3', 'transfer'],
        ['4', 'repayment'],
        ['1', 'deposit'],
      ] as const) {
        await page.keyboard.press(`Alt+${digit}`);
        await page.waitForURL(`**/${kind}`);
        await page.locator('main :focus').waitFor();
      }
    });

    follow('Find the account', async () => {
      const { account, client } = customer;
      await api.post(`/accounts/${account.account_id}/notes`, { note: 'Asks for small notes' });
      const { page } = await as('officer');
      await page.goto(ui(''));
      await openSection(page, 'Counter');
      for (const words of [
        account.account_number,
        account.account_number.replace(/\D/g, ''),
        client.contact_number,
        client.email,
        'wanjiku guided',
      ]) {
        await page.goto(ui('/counter'));
        await type(page, words, 'Enter');
        await page.waitForURL('**/deposit');
        const text = await mainText(page);
        for (const shown of ['Wanjiku Guided', 'Status Active', 'Asks for small notes']) expect(text).toContain(shown);
        expect(text).toMatch(/Available [\d.]+ KES/);
      }
      await page.goto(ui(`/accounts/new`));
      expect(await mainText(page)).toContain('Client Phone number, e-mail address, or words of a name.');
    });

    follow('Enter the amount', async () => {
      const { page } = await as('officer');
      const { account } = customer;
      for (const [typed, read] of [
        ['1500', '1500.00'],
        ['1,500', '1500.00'],
        ['1 500,50', '1500.50'],
        ['1.500,50', '1500.50'],
        ['KES 1,500', '1500.00'],
      ] as const) {
        await page.goto(ui(`/counter/${account.account_id}/deposit`));
        await type(page, typed, 'Enter');
        await page.getByRole('heading', { name: 'Deposit: is this right?' }).waitFor();
        expect(await mainText(page)).toContain(`Amount ${read} KES`);
      }
      await page.goto(ui(`/counter/${account.account_id}/deposit`));
      await type(page, '1.500', 'Enter');
      await page.getByText('Is this 1500, or 1.50?').waitFor();
    });

    follow('Check the summary', async () => {
      const { page } = await as('officer');
      const { account, other } = customer;
      await page.goto(ui(`/counter/${account.account_id}/transfer`));
      await type(page, 'kiprono receiver', 'Tab', '40', 'Enter');
      await page.getByRole('heading', { name: 'Transfer: is this right?' }).waitFor();
      expect(await mainText(page)).toMatch(
        new RegExp(
          `${account.account_number}.*Wanjiku Guided Available now [\\d.]+ KES Available after [\\d.]+ KES.*${other.account_number}.*Kiprono Receiver`,
        ),
      );
      await type(page, 'Enter');
      await page.waitForURL('**/receipts/trf_*');
      await page.goto(ui(`/counter/${account.account_id}/deposit`));
      await type(page, '1000001', 'Enter');
      await page.getByText('The rule: every posting above').waitFor();
      await see(page);
      const before = await api.balance(account.account_id);
      await type(page, 'Enter');
      await page.getByText('Waiting for approval.').waitFor();
      expect(await api.balance(account.account_id)).toBe(before);
    });

    follow('Print the receipt', async () => {
      const { page } = await as('officer');
      await page.goto(ui(`/counter/${customer.account.account_id}/deposit`));
      await type(page, '70', 'Enter');
      await page.getByRole('heading', { name: 'Deposit: is this right?' }).waitFor();
      await type(page, 'Enter');
      await page.waitForURL('**/receipts/txn_*');
      const [number = ''] = /[0-9A-Z]{5}-[0-9A-Z]{5}/.exec(await see(page)) ?? [];
      receipts.push({ number, url: page.url() });
      await page.emulateMedia({ media: 'print' });
      const copies = await page.locator('.receipt:visible').allInnerTexts();
      expect(copies.map((copy) => /\bTill\s+opened/.test(copy))).toEqual([false, true]);
      await page.emulateMedia({ media: 'screen' });
      await page.goto(ui('/accounts'));
      await page.keyboard.press('/');
      await page.keyboard.type(number);
      await page.keyboard.press('Enter');
      await page.waitForURL(receipts[0]?.url ?? '');
    });

    follow('Statements', async () => {
      const { page, context } = await as('officer');
      await page.goto(ui(`/accounts/${customer.account.account_id}`));
      await page.locator('.parts').getByRole('link', { name: 'Statement' }).click();
      await page.getByText('For accounting software').click();
      await see(page);
      const [printed] = await Promise.all([context.waitForEvent('page'), button(page, 'Print').click()]);
      await printed.getByRole('heading', { name: 'Account statement' }).waitFor();
      const file = async (name: string, role: 'button' | 'link') => {
        const [download] = await Promise.all([
          page.waitForEvent('download'),
          page.locator('main').getByRole(role, { name }).click(),
        ]);
        return readFileSync(await download.path(), 'utf8');
      };
      expect(await file('Download CSV', 'button')).toMatch(/^\uFEFF?"?sequence/);
      expect(await file('for Excel', 'link')).toMatch(/^\uFEFF?sep=/);
      expect(await file('Get camt.053', 'button')).toContain('camt.053');
    });

    follow('Days and limits', async () => {
      const { page } = await as('manager');
      const { account } = customer;
      await page.goto(ui(''));
      await openSection(page, 'Books');
      await see(page);
      await link(page, 'Days').first().click();
      await page.locator('.calendar').waitFor();
      await see(page);
      await button(page, /^Close /).click();
      await page.getByRole('region', { name: /^Books of / }).waitFor();
      await page
        .getByText(/wait|posted with/)
        .first()
        .waitFor();
      await page.goto(ui(`/counter/${account.account_id}/deposit`));
      await page.getByLabel('Value date').waitFor();
      await see(page);
      await page.goto(ui(`/accounts/${account.account_id}`));
      await page.locator('.parts').getByRole('link', { name: 'Limits' }).click();
      await page.getByText('Empty: no limit.').first().waitFor();
      await see(page);
      const frozen = await api.newAccount(kes);
      await api.setStatus(frozen.account_id, 'Frozen', 'fraud');
      await page.goto(ui(`/accounts/${frozen.account_id}`));
      await see(page);
      await button(page, 'Unfreeze').click();
      expect(await page.getByLabel('Why it may be used again').getAttribute('required')).not.toBeNull();
    });

    follow('Reversals, holds, and erasures', async () => {
      const { account, client } = customer;
      const { page } = await as('officer');
      const { transaction_id } = await api.transact(account.account_id, 'Deposit', 25);
      await page.goto(ui(`/transactions/${transaction_id}`));
      await button(page, 'Reverse').click();
      await type(page, 'entered twice', 'Enter');
      await page.getByRole('heading', { name: 'Reversal: is this right?' }).waitFor();
      await see(page);
      await api.post(`/accounts/${account.account_id}/holds`, { amount: 30 });
      await page.goto(ui(`/accounts/${account.account_id}`));
      await page.getByRole('region', { name: 'Holds' }).getByRole('link').first().click();
      await button(page, 'Release').waitFor();
      await see(page);
      await button(page, 'Release').click();
      await button(page, /^Release/).click();
      await page.getByText('The hold was released.').waitFor();
      const manager = await as('manager');
      await manager.page.goto(ui(`/clients/${client.client_id}`));
      await link(manager.page, 'Erase this client').click();
      await manager.page.getByRole('heading', { name: 'Erase Wanjiku Guided' }).waitFor();
      await see(manager.page);
    });

    follow('Payment files', async () => {
      const { account, other } = customer;
      const { page } = await as('officer');
      await page.goto(ui('/counter'));
      await see(page);
      await link(page, /^Many payments at once/).click();
      const lines = [
        'from;to;amount;currency;reference;description',
        `${account.account_number};${other.account_number};"1;5";;;`,
        `${account.account_number};${other.account_number};15;KES;;November`,
        `;${account.account_number};7;;slip 4;`,
        `${account.account_number};;8;;;`,
        `${account.account_number};${other.account_number};9;USD;;`,
        `${account.account_number};${other.account_number};15;KES;;November`,
      ];
      const file = { name: 'guide.csv', mimeType: 'text/csv', buffer: Buffer.from(lines.join('\n')) };
      const check = async () => {
        await page.goto(ui('/counter/batches'));
        await page.getByLabel('File of payments').setInputFiles(file);
        await see(page);
        await button(page, 'Check the payments').click();
        await button(page, /^Send/).waitFor();
      };
      await check();
      const text = await see(page);
      for (const words of [
        'Can be sent 4 payments Cannot be sent 2',
        'Kiprono Receiver',
        'Transfers 2, together 30.00 KES',
      ])
        expect(text).toContain(words);
      // A payment is in the file twice.
      await page.locator('main').getByRole('checkbox').check();
      await button(page, /^Send/).click();
      await page.waitForURL('**/batches/bat_*');
      await page.getByText('4 of 6 payments in the file were posted; 2 lines were never sent:').waitFor();
      await check();
      await page
        .getByText(/same content/)
        .first()
        .waitFor();
      await page.goto(ui('/counter/batches'));
      await page.locator('main').getByLabel('From (day)').waitFor();
      await page.locator('main').getByLabel('Sent by').waitFor();
      await page.getByRole('row', { name: 'guide.csv' }).first().waitFor();
    });

    follow('Approvals', async () => {
      const { page } = await as('manager');
      await page.goto(ui(''));
      await page
        .getByRole('navigation', { name: 'Sections' })
        .getByRole('link', { name: /^Approvals/ })
        .click();
      await see(page);
      await page.getByRole('row', { name: 'Wanjiku Guided' }).getByRole('link').first().click();
      const text = await mainText(page);
      for (const words of ['What would change', 'Asks for small notes', 'Olivia Officer'])
        expect(text).toContain(words);
      expect(await page.getByLabel('Reason').getAttribute('required')).not.toBeNull();
      await button(page, 'Approve').click();
      await page.getByText('It has been done.').waitFor();
      const officer = await as('officer');
      await officer.page.goto(ui(''));
      await officer.page.locator('#waiting-approvals .count.info').waitFor();
      await officer.page.goto(ui('/approvals/mine'));
      await officer.page.goto(ui(''));
      await officer.page.locator('#waiting-approvals').waitFor({ state: 'attached' });
      expect(await officer.page.locator('#waiting-approvals .count.info').count()).toBe(0);
      await officer.page.goto(ui(`/transactions?account_id=${customer.account.account_id}&transaction_type=Deposit`));
      expect(plain(await officer.page.locator('tbody').innerText())).toContain('1000001.00');
    });

    follow('Audit, keys, and webhooks', async () => {
      const { page } = await as('admin');
      await page.goto(ui(''));
      await openSection(page, 'Audit');
      await see(page);
      await page.locator('main').getByLabel('Who').fill('olivia');
      await page.locator('main').getByLabel('Customer or account').fill(customer.account.account_number);
      await page.keyboard.press('Enter');
      await page.waitForURL(/subject=acc_.*actor=jwt|actor=jwt.*subject=acc_/);
      await eventually(async () => {
        await page.reload();
        return (await page.locator('tbody tr').count()) > 0;
      });
      expect(await page.locator('tbody').innerText()).toContain('Olivia Officer');
      await openSection(page, 'Operations');
      await page.getByText(/The last hour/).waitFor();
      await see(page);
      await page.goto(ui('/webhooks/new'));
      await page.getByLabel('Receiver').waitFor();
      await page.goto(ui('/api-keys/new'));
      await page.getByLabel('Name').fill('Guided payer');
      await page.getByRole('checkbox', { name: /^transfers:write/ }).check();
      await button(page, 'Ask for approval').click();
      await page.getByText('Waiting for approval.').waitFor();
      const approver = (await as('manager')).page;
      await approver.goto(page.url());
      await button(approver, 'Approve').click();
      await approver.getByText('It has been done.').waitFor();
      await page.reload();
      const secret = page.getByLabel('API key', { exact: true });
      const shown = await secret.inputValue();
      await page.reload();
      expect(await secret.inputValue()).toBe(shown);
      await see(page);
      await button(page, 'I have copied it').click();
      await button(page, 'I have copied it').waitFor({ state: 'detached' });
      expect(await heading(page)).toBe('Guided payer');
      expect(await page.content()).not.toContain(shown);
    });

    it('has a test of each part, and gives no name that no page shows', () => {
      const parts = [...guide.matchAll(/^(?:## |\d+\. \*\*|\*\*)([^*\n]+)/gm)].map(([, part = '']) => part.trim());
      expect(new Set(parts).difference(new Set(followed))).toEqual(new Set());
      const italics = guide.replaceAll(/\*\*[^*]+\*\*/g, '').matchAll(/\*([^*]+)\*/g);
      const names = [...italics].map(([, name = '']) => name.replace(/\s+/g, ' '));
      expect(names.length).toBeGreaterThan(30);
      const elsewhere = (name: string) => {
        const file = seenElsewhere[name];
        return file !== undefined && readFileSync(join(import.meta.dirname, file), 'utf8').includes(name);
      };
      const text = seen.toLowerCase();
      expect(names.filter((name) => !text.includes(name.toLowerCase()) && !elsewhere(name))).toEqual([]);
    });
  });
}
