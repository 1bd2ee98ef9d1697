import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { DASHBOARD_CLIENT } from '../../tools/local/bank.ts';
import { describeInBrowser, expectFine, plain, useDashboard } from '../support/browser.ts';
import { staffEnv, staffToken } from '../support/staff.ts';
import { useBank } from '../support/world.ts';
import { testGuide } from './guide.ts';
import { testTaskTable } from './task-table.ts';
import { personAt, ways } from './typing.ts';

/**
 * Tests four eyes in the dashboard, as two people use it. It has its own bank, in which everything needs an approval.
 */
describeInBrowser('approvals in the dashboard', () => {
  const env = {
    ...staffEnv,
    FOUR_EYES: 'all',
    FOUR_EYES_LIMITS: 'USD:1000 KES:1000000',
    BANK_TIME_ZONE: 'Africa/Nairobi',
  };
  const clients = `${staffEnv.JWT_WHOLE_BANK_CLIENTS},${DASHBOARD_CLIENT}`;
  const world = useBank({ dashboards: 1, env: { ...env, JWT_WHOLE_BANK_CLIENTS: clients } });
  const dashboard = useDashboard(world);
  const { ui, as } = dashboard;

  /** Opens the only pending approval, found by the count in the navigation. */
  async function openWaiting(page: Page, count: number): Promise<void> {
    await page.goto(ui(''));
    // Beside it may be how many of the person's own requests were decided.
    await page.getByRole('link', { name: new RegExp(`^Approvals ${count}\\b`) }).click();
    await page.locator('tbody :focus').waitFor();
    await page.keyboard.press('Enter');
  }

  describe('unfreezing', () => {
    it('is Waiting, shows a second person the state before and after, and is done when it is approved', async () => {
      const { account_id } = await world.api.newAccount();
      await world.api.setStatus(account_id, 'Frozen', 'fraud');
      const officer = await as('officer');
      await officer.page.goto(ui(`/accounts/${account_id}/unfreezing`));
      await officer.page.getByLabel('Why it may be used again').fill('the owner <b>called</b>');
      await officer.page.getByRole('checkbox').check();
      await officer.page.getByRole('button', { name: 'Ask for approval' }).click();
      await officer.page.getByText('Waiting for approval.').waitFor();
      await expectFine(officer.page, 'approval-own');
      expect(await officer.page.getByRole('button', { name: 'Approve' }).count()).toBe(0);

      const manager = await as('manager');
      await openWaiting(manager.page, 1);
      await manager.page.getByRole('cell', { name: 'Frozen', exact: true }).waitFor();
      await manager.page.getByRole('cell', { name: 'Active', exact: true }).waitFor();
      await manager.page.getByText('the owner <b>called</b>', { exact: true }).first().waitFor();
      await manager.page.getByRole('row', { name: 'Reason fraud' }).waitFor();
      // The officer has signed in with a name, which their ID token proved.
      await manager.page.getByText('Olivia Officer', { exact: true }).waitFor();
      const asked = manager.page.locator('dd time').first();
      expect(await asked.getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d GMT\+3$/);
      await expectFine(manager.page, 'approval');
      await manager.page.getByRole('button', { name: 'Reject' }).click();
      await manager.page.locator('textarea:invalid:focus').waitFor();
      await manager.page.getByLabel('Reason').fill('spoke to the owner');
      await manager.page.getByRole('button', { name: 'Approve' }).click();
      await manager.page.getByText('It has been done.').waitFor();
      await manager.page.goto(ui('/approvals/all?status=Approved'));
      await expectFine(manager.page, 'approvals');
      expect((await world.api.get(`/accounts/${account_id}`)).data()).toMatchObject({ status: 'Active' });
      await officer.page.reload();
      await officer.page.getByText('spoke to the owner').waitFor();
      expect([...officer.complaints, ...manager.complaints].filter((text) => !text.includes('400'))).toEqual([]);
    });
  });

  describe('requests in the list', () => {
    it('are opened and decided one after the other by keyboard, with amount, customer, asker, and age beside them', async () => {
      const client = await world.api.client({ first_name: 'Wanjiru', last_name: 'Kamau' });
      const account = await world.api.newAccount({ client_id: client.client_id, initial_deposit: 10 });
      const teller = world.api.withToken(staffToken(world.bank, 'teller'));
      for (const amount of [2500, 3500])
        await teller.post('/transactions', { account_id: account.account_id, transaction_type: 'Deposit', amount });
      const { page, complaints } = await as('manager');
      await page.goto(ui('/approvals'));
      const row = page.getByRole('row', { name: 'Wanjiru Kamau' });
      // Where the menu is closed, the count is on the bar of a phone, and on the menu's button.
      const small = (await as('manager', 'phone')).page;
      await small.goto(ui('/approvals'));
      await small.getByRole('link', { name: /^Approvals 2\b/ }).waitFor();
      await small.setViewportSize({ width: 800, height: 900 });
      await small.locator('.menu > summary', { hasText: /Menu\s*2/ }).waitFor();
      expect(plain((await row.allInnerTexts()).join(' '))).toMatch(/2500\.00 USD.*teller.*0 min.*3500\.00 USD/s);
      await page.locator('tbody :focus').waitFor();
      await page.keyboard.press('Enter');
      await page.getByText('2 510.00 USD').waitFor();
      await page.locator('textarea:focus').waitFor();
      await page.keyboard.type('no receipt');
      for (const key of ['Tab', 'Tab', 'Enter']) await page.keyboard.press(key);
      await page.getByText('It was rejected').waitFor();
      expect(await page.locator(':focus').innerText()).toBe('Next request (1 waits)');
      await page.keyboard.press('Enter');
      await page.getByText('3 510.00 USD').waitFor();
      await page.locator('textarea:focus').waitFor();
      for (const key of ['Tab', 'Enter']) await page.keyboard.press(key);
      await page.getByText('It has been done.').waitFor();
      await expectFine(page, 'approvals-decided');
      await page.goto(ui('/approvals'));
      expect(await row.count()).toBe(0);
      await expect.poll(() => world.api.balance(account.account_id), { timeout: 20_000 }).toBe(3510);
      expect(complaints).toEqual([]);
    });
  });

  describe('a large deposit', () => {
    it.each(ways)(
      'shows the balance before and after, and is not posted if it is rejected, by $hand on a $size',
      async ({ hand, size }) => {
        const account = await world.api.newAccount({ initial_deposit: 250.5 });
        const teller = world.api.withToken(staffToken(world.bank, 'teller'));
        const asked = await teller.post('/transactions', {
          account_id: account.account_id,
          transaction_type: 'Deposit',
          amount: 1500,
        });
        expect(asked.status).toBe(202);
        const { page, complaints } = await as('manager', size);
        const { enter, press } = personAt(page, hand);
        await openWaiting(page, 1);
        const row = page.getByRole('row', { name: account.account_number });
        expect(plain(await row.innerText())).toMatch(/250\.50 USD\s+1750\.50 USD/);
        const reject = page.getByRole('button', { name: 'Reject' });
        const box = await reject.boundingBox();
        // On a desk the decision needs no scrolling.
        if (size === 'desk') expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(900);
        await enter(page.getByLabel('Reason'), 'no receipt');
        await press(reject);
        await page.getByText('It was rejected').waitFor();
        expect(await page.locator(':focus').innerText()).toBe('To the approvals');
        expect(await world.api.balance(account.account_id)).toBe(250.5);
        expect(complaints).toEqual([]);
      },
    );
  });

  describe('a large withdrawal at the counter', () => {
    it.each(ways)(
      'is posted only when a second person has approved it, by $hand on a $size',
      async ({ hand, size }) => {
        const account = await world.api.newAccount({ initial_deposit: 5000 });
        const { page, complaints } = await as('officer', size);
        const { enter, send } = personAt(page, hand);
        await page.goto(ui(`/counter/${account.account_id}/withdrawal`));
        await enter(page.getByLabel('Amount in USD'), '2,000');
        await send(page.getByRole('button', { name: 'Continue' }));
        await page.getByText('The rule: every posting above').waitFor();
        await expectFine(page, 'counter-summary-approval');
        await send(page.getByRole('button', { name: 'Ask for approval' }));
        await page.getByText('Waiting for approval.').waitFor();
        expect(await world.api.balance(account.account_id)).toBe(5000);
        const manager = await as('manager', size);
        await manager.page.goto(page.url());
        await personAt(manager.page, hand).press(manager.page.getByRole('button', { name: 'Approve' }));
        await manager.page.getByText('It has been done.').waitFor();
        expect(await world.api.balance(account.account_id)).toBe(3000);
        expect([...complaints, ...manager.complaints]).toEqual([]);
      },
    );
  });

  describe('what the summary at the counter promises', () => {
    it('happens: below, at, and above the limit of a day, and in a currency without one', async () => {
      const [dollars, euros] = [await world.api.newAccount(), await world.api.newAccount({ currency: 'EUR' })];
      const { page, complaints } = await as('officer');
      for (const [account, amount, rule] of [
        [dollars, '600', undefined],
        [dollars, '400.01', 'one person alone posts at most 1000.00 USD a day, and you have posted 600.00 USD today'],
        [dollars, '400', undefined],
        [dollars, '0.01', 'one person alone posts at most 1000.00 USD a day, and you have posted 1000.00 USD today'],
        [dollars, '1000.01', 'every posting above 1000.00 USD'],
        [euros, '1', 'every posting in EUR'],
      ] as const) {
        await page.goto(ui(`/counter/${account.account_id}/deposit`));
        await page.getByLabel('Amount in').fill(amount);
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { level: 1, name: 'Deposit: is this right?' }).waitFor();
        const said = /The rule: (.*)\.$/m.exec(plain(await page.locator('main').innerText()))?.[1];
        expect([amount, said]).toEqual([amount, rule]);
        const button = rule === undefined ? /^Deposit/ : 'Ask for approval';
        await page.getByRole('button', { name: button }).click();
        await page.waitForURL(rule === undefined ? '**/counter/receipts/txn_*' : '**/approvals/apr_*');
        if (rule === undefined) continue;
        const [id] = /apr_\w+/.exec(page.url()) ?? [];
        const rejecter = world.api.withToken(staffToken(world.bank, 'rejecter'));
        const rejected = await rejecter.post(`/admin/approvals/${id}/rejection`, { reason: 'x' });
        expect(rejected.status).toBe(200);
      }
      expect(await world.api.balance(dollars.account_id)).toBe(1000);
      expect(complaints).toEqual([]);
    });
  });

  describe('a reversal and an erasure', () => {
    it('are Waiting, are listed for their requester, and are done once when they are approved', async () => {
      const account = await world.api.newAccount({ initial_deposit: 100 });
      const { transaction_id } = await world.api.transact(account.account_id, 'Deposit', 7);
      const officer = await as('officer');
      await officer.page.goto(ui(`/transactions/${transaction_id}`));
      await officer.page.getByRole('button', { name: 'Reverse' }).click();
      await officer.page.getByLabel('Reason').fill('typed <twice>');
      await officer.page.keyboard.press('Enter');
      await officer.page.getByRole('button', { name: 'Ask for approval' }).click();
      await officer.page.getByText('Waiting for approval.').waitFor();
      const row = officer.page.getByRole('row', { name: account.account_number });
      expect(plain(await row.innerText())).toMatch(/107\.00 USD\s+100\.00 USD/);
      await officer.page.goto(ui('/approvals'));
      await officer.page.waitForURL(ui('/approvals/mine'));
      await officer.page.getByRole('row', { name: /Reversal/ }).waitFor();
      await expectFine(officer.page, 'approvals-mine');

      const manager = await as('manager');
      await openWaiting(manager.page, 1);
      await manager.page.getByText('typed <twice>').first().waitFor();
      await expectFine(manager.page, 'approval-reversal');
      await manager.page.getByRole('button', { name: 'Approve' }).dblclick();
      await manager.page.getByText('It has been done.').waitFor();
      await manager.page.getByText('It has been done.').locator('..').getByRole('link').first().click();
      await manager.page.getByRole('link', { name: 'an earlier transaction' }).waitFor();
      // The audit has it soon.
      await expect
        .poll(
          async () => {
            await manager.page.reload();
            return plain(await manager.page.locator('main').innerText());
          },
          { timeout: 20_000 },
        )
        .toMatch(/Entered by\s+Olivia Officer\s+Approved by\s+Mary Manager, the request/);
      expect(await world.api.balance(account.account_id)).toBe(100);

      const client = await world.api.client({ first_name: 'Forget', last_name: 'Me' });
      await manager.page.goto(ui(`/clients/${client.client_id}/erasure`));
      await manager.page.getByRole('checkbox').check();
      await manager.page.getByRole('button', { name: 'Continue' }).click();
      await manager.page.getByRole('button', { name: 'Ask for approval' }).click();
      await manager.page.getByText('Waiting for approval.').waitFor();
      const admin = await as('admin');
      await openWaiting(admin.page, 1);
      await expectFine(admin.page, 'approval-erasure');
      await admin.page.getByRole('button', { name: 'Approve' }).click();
      await admin.page.getByText('It has been done.').waitFor();
      await admin.page.goto(ui(`/clients/${client.client_id}`));
      await admin.page.getByText('This client was erased').waitFor();
      expect([...officer.complaints, ...manager.complaints, ...admin.complaints]).toEqual([]);
    });
  });

  describe('an API key that may write', () => {
    it('is shown once, to its requester, after it was approved', async () => {
      const admin = await as('admin');
      await admin.page.goto(ui('/api-keys/new'));
      await admin.page.getByLabel('Name').fill('Partner');
      await admin.page.getByRole('radio', { name: /^test/ }).check();
      await admin.page.getByRole('checkbox', { name: /^transfers:write/ }).check();
      await admin.page.getByRole('button', { name: 'Ask for approval' }).click();
      await admin.page.getByText('Waiting for approval.').waitFor();
      const manager = await as('manager');
      await openWaiting(manager.page, 1);
      await manager.page.getByRole('button', { name: 'Approve' }).click();
      await manager.page.getByText('It has been done.').waitFor();
      expect(await manager.page.content()).not.toContain('cbk_');
      const request = admin.page.url();
      await admin.page.reload();
      const shown = admin.page.getByLabel('API key', { exact: true });
      const secret = await shown.inputValue();
      expect((await world.api.withKey(secret).get('/')).status).toBe(200);
      await expectFine(admin.page, 'approval-key');
      await admin.page.reload();
      expect(await shown.inputValue()).toBe(secret);
      await admin.page.getByRole('button', { name: 'I have copied it' }).click();
      await admin.page.getByRole('heading', { name: 'Partner' }).waitFor();
      await admin.page.goto(request);
      await admin.page.getByText('It has been done.').waitFor();
      expect(await admin.page.content()).not.toContain(secret);
      expect([...admin.complaints, ...manager.complaints]).toEqual([]);
    });
  });

  // Before the next one closes the day that the guide closes.
  testGuide(dashboard);

  describe('an earlier value date, higher limits, and the closing of a day', () => {
    const ago = (days: number) => new Date(Date.now() + 3 * 3_600_000 - days * 86_400_000).toISOString().slice(0, 10);

    it('wait for a second person, who sees the day with the requests that its closing makes impossible', async () => {
      const account = await world.api.newAccount({ initial_deposit: 100 });
      await world.api.send('PUT', `/accounts/${account.account_id}/limits`, { body: { per_day_out: 50 } });
      const manager = await as('manager');
      const { page } = manager;
      await page.goto(ui(`/counter/${account.account_id}/deposit`));
      await page.getByLabel('Amount in USD').fill('12');
      await page.getByLabel('Value date').fill(ago(3));
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByText('The rule: every value date before today.').waitFor();
      await page.getByRole('button', { name: 'Ask for approval' }).click();
      await page.getByText('Waiting for approval.').waitFor();
      const dated = page.url();

      await page.goto(ui(`/accounts/${account.account_id}/limits`));
      await page.getByLabel('Most out per day, in USD').fill('75.50');
      await page.getByRole('button', { name: 'Change the limits' }).click();
      await page.getByText('The rule: every change of limits that allows more.').waitFor();
      await expectFine(page, 'limits-approval');
      await page.getByRole('button', { name: 'Ask for approval' }).click();
      await page.getByText('Waiting for approval.').waitFor();
      const raised = page.url();

      await page.goto(ui('/books/days'));
      await page.getByRole('button', { name: `Close ${ago(1)}` }).click();
      await page.getByRole('checkbox').check();
      await page.getByText('1 request with a value date up to this day waits').waitFor();
      await expectFine(page, 'day-closing-affected');
      await page.getByRole('button', { name: 'Ask for approval' }).click();
      await page.getByText('Waiting for approval.').waitFor();
      const closing = page.url();

      const admin = await as('admin');
      await admin.page.goto(closing);
      await admin.page.getByText('1 request with a value date up to this day waits').waitFor();
      await admin.page.getByRole('region', { name: `Books of ${ago(1)}` }).waitFor();
      await expectFine(admin.page, 'approval-day');
      for (const url of [dated, raised, closing]) {
        await admin.page.goto(url);
        if (url === raised) {
          const row = admin.page.getByRole('row', { name: 'At most out per day' });
          expect(plain(await row.innerText())).toMatch(/50\.00 USD\s+75\.50 USD/);
          await expectFine(admin.page, 'approval-limits');
        }
        await admin.page.getByRole('button', { name: 'Approve' }).click();
        await admin.page.getByText('It has been done.').waitFor();
      }
      await admin.page.getByRole('link', { name: ago(1), exact: true }).click();
      await admin.page.getByRole('heading', { level: 1, name: `Closed day ${ago(1)}` }).waitFor();
      expect((await world.api.get(`/accounts/${account.account_id}/limits`)).data()).toMatchObject({
        per_day_out: 75.5,
      });
      expect(await world.api.balance(account.account_id)).toBe(112);
      expect([...manager.complaints, ...admin.complaints]).toEqual([]);
    });
  });

  testTaskTable(dashboard);
});
