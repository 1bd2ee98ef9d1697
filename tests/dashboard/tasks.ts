import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, heading, look, plain } from '../support/browser.ts';
import type { RestTransaction } from '../support/client.ts';
import { mainText, personAt, type, ways } from './typing.ts';

/**
 * Tests the tasks of staff other than the counter: reversals, holds, and erasures, with only the keyboard, and with the
 * mouse.
 */
export function testTasks({ world, ui, as }: Dashboard): void {
  const { api } = world;

  async function newCustomer(first_name: string, initial_deposit: number) {
    const client = await api.client({ first_name, last_name: 'Tasks' });
    return { client, account: await api.account(client.client_id, { initial_deposit }) };
  }
  const question = (title: string) => ({ name: `${title}: is this right?`, level: 1 }) as const;

  describe('a reversal', () => {
    it.each(ways)(
      'shows its effect first, is done once, and is linked in both directions, by $hand on a $size',
      async ({ hand, size }) => {
        const { account } = await newCustomer('Undo', 100);
        const { transaction_id } = await api.transact(account.account_id, 'Deposit', 25);
        const { page, complaints } = await as('officer', size);
        const { enter, press, send } = personAt(page, hand);
        await page.goto(ui(`/transactions/${transaction_id}`));
        await press(page.getByRole('button', { name: 'Reverse' }));
        await page.waitForURL(ui(`/transactions/${transaction_id}/reversal`));
        expect(await mainText(page)).toContain(
          `${account.account_number}, Undo Tasks: available 125.00 USD 100.00 USD`,
        );
        await expectFine(page, 'reversal');
        await page.reload();
        await enter(page.getByLabel('Reason'), 'entered twice');
        await send(page.getByRole('button', { name: 'Continue' }));
        await page.getByRole('heading', question('Reversal')).waitFor();
        await expectFine(page, 'reversal-summary');
        await page.reload();
        expect(await api.balance(account.account_id)).toBe(125);
        await send(page.getByRole('button', { name: 'Reverse this Deposit' }));
        await page.getByText('The reversal was posted.').waitFor();
        expect(plain(await heading(page))).toBe('Reversal of Deposit 25.00 USD');
        await expectFine(page, 'reversal-done');
        const made = page.url().split('/').at(-1)?.split('?')[0] ?? '';
        await page.reload();
        expect(await api.balance(account.account_id)).toBe(100);
        for (const part of ['', '/statement', '/transactions']) {
          await page.goto(ui(`/accounts/${account.account_id}${part}`));
          for (const text of ['Reversal of Deposit', 'entered twice']) expect(await mainText(page)).toContain(text);
          expect(await page.getByRole('link', { name: 'reversed', exact: true }).getAttribute('href')).toContain(made);
          if (size === 'desk') await look(page, `reversed${part.replace('/', '-')}`);
        }
        await page.goto(ui(`/transactions/${made}`));
        await press(page.getByRole('link', { name: 'an earlier transaction' }));
        await page.waitForURL(ui(`/transactions/${transaction_id}`));
        const later = page.getByRole('link', { name: 'a later transaction' });
        expect(await later.getAttribute('href')).toBe(`/admin/ui/transactions/${made}`);
        expect(await page.getByRole('button', { name: 'Reverse' }).count()).toBe(0);
        expect(complaints).toEqual([]);
      },
    );

    it('of a transfer, by mouse with a double click, reverses both sides once; a second confirmation after going back has no effect', async () => {
      const { account } = await newCustomer('Payer', 100);
      const { account: other } = await newCustomer('Payee', 1);
      const { transfer_id } = await api.transfer(account.account_id, other.account_id, 40);
      const { page, complaints } = await as('officer');
      await page.goto(ui(`/transfers/${transfer_id}`));
      await page.getByRole('button', { name: 'Reverse' }).click();
      await page.getByLabel('Reason').fill('wrong payee');
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('button', { name: 'Reverse this Transfer' }).dblclick();
      await page.getByText('The reversal was posted.').waitFor();
      const done = page.url();
      await page.goBack();
      await page.getByRole('button', { name: 'Reverse this Transfer' }).click();
      await page.getByText('The reversal was posted.').waitFor();
      expect(page.url()).toBe(done);
      expect([await api.balance(account.account_id), await api.balance(other.account_id)]).toEqual([100, 1]);
      await page.goto(ui(`/transfers/${transfer_id}`));
      await page.getByText('Reversed by').waitFor();
      // When entered again, it is refused, and the message names the existing reversal.
      await page.goto(ui(`/transactions/${await findLeg(transfer_id)}/reversal`));
      await page.getByText('It was already reversed.').waitFor();
      expect(complaints).toEqual([]);
    });
  });

  const findLeg = async (transfer_id: string) =>
    (await api.get(`/transactions?transfer_id=${transfer_id}`)).list<RestTransaction>()[0]?.transaction_id;

  describe('a hold', () => {
    it.each(ways)('is released after a summary, by $hand on a $size', async ({ hand, size }) => {
      const { account } = await newCustomer('Holda', 100);
      await api.post(`/accounts/${account.account_id}/holds`, { amount: 30.5 });
      const { page, complaints } = await as('officer', size);
      const { press, send } = personAt(page, hand);
      await page.goto(ui(`/accounts/${account.account_id}`));
      await expectFine(page, 'account-with-hold');
      await press(page.getByRole('region', { name: 'Holds' }).getByRole('link').first());
      await page.getByRole('heading', { level: 1, name: 'Hold of 30.50 USD' }).waitFor();
      await expectFine(page, 'hold');
      await press(page.getByRole('button', { name: 'Release' }));
      await page.getByRole('heading', question('Release a hold')).waitFor();
      expect(await mainText(page)).toContain('available 69.50 USD 100.00 USD');
      await expectFine(page, 'release-summary');
      await page.reload();
      await send(page.getByRole('button', { name: /^Release/ }));
      await page.getByText('The hold was released.').waitFor();
      expect(
        (await api.get(`/accounts/${account.account_id}`)).data<{ available_balance: number }>().available_balance,
      ).toBe(100);
      await page.goto(ui(`/accounts/${account.account_id}/holds`));
      await expectFine(page, 'holds');
      expect(complaints).toEqual([]);
    });
  });

  it('reversals also work without scripts', async () => {
    const { account } = await newCustomer('Plain', 100);
    const { transaction_id } = await api.transact(account.account_id, 'Deposit', 25);
    const { page, context } = await as('officer');
    await context.route('**/*.js', (route) => route.abort());
    await page.goto(ui(`/transactions/${transaction_id}/reversal`));
    await type(page, 'entered twice', 'Enter');
    await page.getByRole('button', { name: 'Reverse this Deposit' }).click();
    await page.getByText('The reversal was posted.').waitFor();
    expect(await api.balance(account.account_id)).toBe(100);
  });

  describe('an erasure', () => {
    it.each(ways)('erases a client after a confirmation and a summary, by $hand on a $size', async ({ hand, size }) => {
      const client = await api.client({ first_name: 'Forget', last_name: 'Me' });
      const { page, complaints } = await as('manager', size);
      const { press, send, tick } = personAt(page, hand);
      await page.goto(ui(`/clients/${client.client_id}`));
      await press(page.getByRole('link', { name: 'Erase this client' }));
      await page.getByRole('heading', { level: 1, name: 'Erase Forget Me' }).waitFor();
      await expectFine(page, 'erasure');
      await tick(page.getByRole('checkbox'));
      await send(page.getByRole('button', { name: 'Continue' }));
      await page.getByRole('heading', question('Erase a client')).waitFor();
      await expectFine(page, 'erasure-summary');
      await page.reload();
      await send(page.getByRole('button', { name: 'Erase this client permanently' }));
      await page.getByRole('heading', { level: 1, name: 'The client was erased' }).waitFor();
      await expectFine(page, 'erasure-done');
      await press(page.getByRole('link', { name: 'Remaining data of the client' }));
      await page.getByText('This client was erased').waitFor();
      expect(await mainText(page)).not.toContain('Forget');
      await expectFine(page, 'client-erased');
      expect(complaints).toEqual([]);
    });

    it('of a client with money is refused, with instructions', async () => {
      const { page, complaints } = await as('manager');
      const { client: rich } = await newCustomer('Rich', 5);
      await page.goto(ui(`/clients/${rich.client_id}`));
      await page.getByRole('link', { name: 'Erase this client' }).click();
      await page.getByRole('checkbox').check();
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.getByRole('button', { name: 'Erase this client permanently' }).click();
      await page.getByText('prevent it').waitFor();
      await expectFine(page, 'erasure-refused');
      expect((await api.get(`/clients/${rich.client_id}`)).data()).not.toHaveProperty('erased_at');
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });
  });
}
