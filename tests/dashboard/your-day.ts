import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine, heading } from '../support/browser.ts';
import { mainText, personAt, ways } from './typing.ts';

/** Tests the first page of who works at the counter, and their till. */
export function testYourDay({ world, ui, as }: Dashboard): void {
  const { api } = world;

  describe('the day of a clerk', () => {
    it.each(ways)(
      'begins and ends with a count, and has what was posted between them, by $hand on a $size',
      async ({ hand, size }) => {
        const client = await api.client({ first_name: `Day${hand}${size}`, last_name: 'Customer' });
        const account = await api.account(client.client_id, { currency: 'KWD', initial_deposit: 100 });
        const { page, complaints } = await as('officer', size);
        const { enter, press, send } = personAt(page, hand);
        await page.goto(ui(''));
        // The search has the focus: the first keys of the day go into it.
        await page.getByLabel('Customer').and(page.locator(':focus')).waitFor();
        await page.keyboard.type(account.account_number);
        await page.keyboard.press('Enter');
        await page.waitForURL(ui(`/counter/${account.account_id}/deposit`));

        await page.goto(ui(''));
        await expectFine(page, 'home-clerk');
        await press(page.getByRole('link', { name: 'count and open it' }));
        await page.waitForURL(ui('/tills/open'));
        // Those of the person's last till are there already.
        const known = await page.getByLabel(/^Counted, in/).all();
        for (const field of known) await enter(field, '5,000.5');
        const others = page.getByLabel(/^(Counted|Other currencies)/).last();
        await enter(others, '5,000');
        await send(page.getByRole('button', { name: 'Open the till' }));
        await page.getByText('In “5,000” there is no currency, such as KES.').waitFor();
        await expectFine(page, 'till-open-wrong');
        await enter(others, known.length > 0 ? '' : '5,000.5 KWD');
        await send(page.getByRole('button', { name: 'Open the till' }));
        await page.getByText('Your till is open.').waitFor();

        await page.goto(ui(`/counter/${account.account_id}/withdrawal`));
        await enter(page.getByLabel('Amount in KWD'), '20.25');
        await send(page.getByRole('button', { name: 'Continue' }));
        await send(page.getByRole('button', { name: /^Pay out 20/ }));
        await page.waitForURL('**/counter/receipts/txn_*');

        await page.goto(ui(''));
        await page
          .getByText(/Net cash in KWD/)
          .first()
          .waitFor();
        expect(await mainText(page)).toMatch(/Net cash in KWD −[\d.]+ In 0.000, 0 postings Out [\d.]+, \d+ postings?/);
        await page.getByRole('link', { name: `Day${hand}${size} Customer` }).waitFor();
        await press(page.getByRole('link', { name: 'count and close it' }));
        await page.waitForURL('**/tills/til_*/close');
        await enter(page.getByLabel('Counted, in KWD'), '4980');
        for (const field of await page.getByLabel(/^Counted, in (?!KWD)/).all()) await enter(field, '0');
        await send(page.getByRole('button', { name: 'Close the till' }));
        await page.getByText('There is a difference in KWD.').waitFor();
        // Whoever counts again does not see what is expected.
        expect(await mainText(page)).not.toMatch(/4980.25/);
        await expectFine(page, 'till-difference');
        await enter(page.getByLabel('Reason for the difference'), 'a coin fell down');
        await press(page.getByRole('button', { name: 'Close the till' }));
        await page.getByText('Your till is closed.').waitFor();
        expect(await heading(page)).toBe('Till of Olivia Officer');
        expect(await mainText(page)).toMatch(
          /Reason a coin fell down .*KWD 5000.500 0.000 0 postings 20.250 1 posting 4980.250 4980.000 −0.250/,
        );
        await expectFine(page, 'till-closed');
        const managers = await as('manager', size);
        await managers.page.goto(ui('/tills'));
        const row = managers.page.getByRole('row', { name: 'a coin fell down' }).filter({ hasText: 'KWD' }).first();
        expect((await row.innerText()).replaceAll('\u00a0', ' ')).toMatch(
          /Olivia Officer[\s\S]*KWD[\s\S]*20\.250[\s\S]*−0\.250/,
        );
        await expectFine(managers.page, 'tills');
        // Of the two forms that were refused.
        const unexpected = complaints.filter((complaint) => !complaint.includes('status of 400'));
        expect([...unexpected, ...managers.complaints]).toEqual([]);
      },
      180_000,
    );
  });
}
