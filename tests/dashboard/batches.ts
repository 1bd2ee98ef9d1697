import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { type Dashboard, expectFine } from '../support/browser.ts';
import type { RestTransaction } from '../support/client.ts';
import { mainText, personAt, ways } from './typing.ts';

/** Files of payments: checked, sent, followed, and their results downloaded. */
export function testBatches({ world, ui, as }: Dashboard): void {
  const { api } = world;

  async function newAccount(first_name: string, initial_deposit: number) {
    const client = await api.client({ first_name, last_name: 'Payroll' });
    return api.account(client.client_id, { initial_deposit });
  }
  const csv = (name: string, text: string, encoding: BufferEncoding = 'utf8') => ({
    name,
    mimeType: 'text/csv',
    buffer: Buffer.from(text, encoding),
  });
  const choose = (page: Page, file: ReturnType<typeof csv>) => page.getByLabel('File of payments').setInputFiles(file);
  const readTransactions = async (account_id: string) =>
    (await api.get(`/transactions?account_id=${account_id}`)).list<RestTransaction>();

  describe('a batch', () => {
    it.each(ways)(
      'is shown with every refused line, sent once, and followed to its results, by $hand on a $size',
      async ({ hand, size }) => {
        const payer = await newAccount('Employer', 1000);
        const [ada, bob] = [await newAccount('Ada', 0), await newAccount('Bob', 0)];
        const frozen = await newAccount('Cold', 0);
        await api.setStatus(frozen.account_id, 'Frozen', 'fraud');
        const file = csv(
          'wages.csv',
          [
            'From;To;Amount;Reference;Description',
            `${payer.account_number};${ada.account_number};600,50;;Löhne <November>`,
            `${payer.account_number};${bob.account_number.toLowerCase()};300;;"Wages; November"`,
            `${payer.account_number};SAV-404;5;;`,
            `${payer.account_number};${frozen.account_number};5;;`,
            `${payer.account_number};${bob.account_number};150;;`,
            `;${bob.account_number};20;slip 1;=1+1`,
            `;${bob.account_number};1.500;;`,
            `;${bob.account_number};1;500.75;;`,
          ].join('\r\n'),
          'latin1',
        );
        const { page, context, complaints } = await as('officer', size);
        const { press } = personAt(page, hand);
        await page.goto(ui('/counter'));
        await press(page.getByRole('link', { name: 'Many payments at once' }));
        await page.waitForURL(ui('/counter/batches'));
        await expectFine(page, 'batches');
        await choose(page, file);
        await press(page.getByRole('button', { name: 'Check the payments' }));
        await page.getByRole('heading', { level: 1, name: 'Payments of wages.csv: is this right?' }).waitFor();
        const text = await mainText(page);
        for (const words of [
          'Can be sent 3 payments Cannot be sent 5',
          'There is no account SAV-404. Check the number.',
          `Account ${frozen.account_number} is Frozen`,
          'The payments above leave too little money in the account.',
          'Is this 1500, or 1.50?',
          'The line has 6 values, but the first line has 5 names.',
          'Transfers 2, together 900.50 USD',
          'Deposits 1, together 20.00 USD',
          'Ada Payroll',
          'Löhne <November>',
        ])
          expect(text).toContain(words);
        await expectFine(page, 'batch-preview');
        const saved = page.waitForEvent('download');
        await press(page.getByRole('link', { name: 'Download them with the reasons' }));
        expect((await saved).suggestedFilename()).toBe('omitted-wages.csv');
        expect(await readTransactions(ada.account_id)).toEqual([]);
        const sent = Object.fromEntries(
          await page.evaluate<[string, string][]>("[...new FormData(document.querySelector('main form'))]"),
        );
        await press(page.getByRole('button', { name: 'Send 3 payments' }));
        await page.waitForURL('**/admin/ui/counter/batches/bat_*');
        await page.getByText('3 of 8 payments in the file were posted; 5 lines were never sent:').waitFor();
        expect(await mainText(page)).toMatch(/2 Posted .*Transfer .*600.50 USD/);
        await expectFine(page, 'batch');
        const url = page.url();
        await page.reload();
        // A browser sends the form like this when a user goes back and sends it again.
        const again = await context.request.post(ui('/counter/batches/sending'), { form: sent });
        expect(again.url()).toBe(url);
        expect([
          await api.balance(payer.account_id),
          await api.balance(ada.account_id),
          await api.balance(bob.account_id),
        ]).toEqual([99.5, 600.5, 320]);
        const results = await (await context.request.get(`${url}/results.csv`)).text();
        const lines = results.trimEnd().split('\r\n');
        // One line of names, three payments, and the five lines that were not sent.
        expect(lines).toHaveLength(9);
        expect(lines[1]).toContain(
          `"2","Posted","","Transfer","${payer.account_number}","${ada.account_number}","600.50","USD","","Löhne <November>"`,
        );
        expect(lines[3]).toContain('"4","Never sent"');
        expect(lines[6]).toContain(
          `"7","Posted","","Deposit","","${bob.account_number}","20.00","USD","slip 1","'=1+1"`,
        );
        const [posted] = await readTransactions(ada.account_id);
        await page.goto(ui(`/transactions/${posted?.transaction_id}`));
        await page.getByRole('link', { name: 'the payments with which it was sent' }).click();
        await page.waitForURL(url);
        expect(complaints).toEqual([]);
      },
    );

    it('that was sent by somebody else is in the list, and sent again only with a tick, by keyboard', async () => {
      const [payer, payee] = [await newAccount('Twice', 100), await newAccount('Paid', 0)];
      const file = csv('twice.csv', `from,to,amount\n${payer.account_number},${payee.account_number},10\n`);
      const check = async (page: Page) => {
        await page.goto(ui('/counter/batches'));
        await choose(page, file);
        await page.getByRole('button', { name: 'Check the payments' }).click();
        await page.getByRole('button', { name: 'Send 1 payment' }).waitFor();
      };
      const [first, second] = [await as('officer'), await as('manager')];
      await check(second.page);
      await check(first.page);
      await first.page.getByRole('button', { name: 'Send 1 payment' }).click();
      await first.page.getByText('All payments were posted.').waitFor();
      const url = first.page.url();
      // The manager has looked at the file before the officer sent it.
      await second.page.getByRole('button', { name: 'Send 1 payment' }).click();
      await second.page.getByText('A file with the same content was sent before').waitFor();
      await expectFine(second.page, 'batch-again');
      expect(await api.balance(payee.account_id)).toBe(10);
      await check(second.page);
      expect(await mainText(second.page)).toMatch(/twice\.csv, .* by Olivia Officer: 1 posted, 10\.00 USD/);
      await second.page.getByLabel('Pay everything in this file once more').press('Space');
      await second.page.getByRole('button', { name: 'Send 1 payment' }).press('Enter');
      await second.page.getByText('All payments were posted.').waitFor();
      await second.page.reload();
      expect(await api.balance(payee.account_id)).toBe(20);
      await second.page.goto(ui('/counter/batches'));
      await second.page
        .getByRole('row', { name: /twice\.csv Olivia Officer Done 1 0 10\.00 USD/ })
        .getByRole('link', { name: 'twice.csv' })
        .click();
      await second.page.waitForURL(url);
      expect(await mainText(second.page)).toMatch(/File twice\.csv Sent .* by Olivia Officer/);
      expect([...first.complaints, ...second.complaints].filter((text) => !text.includes('409'))).toEqual([]);
    });

    it('shows which payment was refused after the check, and why, by mouse', async () => {
      const payer = await newAccount('Late', 100);
      const payee = await newAccount('Payee', 0);
      const line = `${payer.account_number},${payee.account_number}`;
      const { page, complaints } = await as('officer');
      for (const [isAtomic, says] of [
        [false, '1 of 2 payments were refused.'],
        [true, 'The file was refused, and nothing was posted.'],
      ] as const) {
        await page.goto(ui('/counter/batches'));
        await choose(page, csv('late.csv', `from,to,amount\n${line},10\n${line},${isAtomic ? '30.00' : '30'}\n`));
        await page.getByLabel('Post nothing at all').setChecked(isAtomic);
        await page.getByRole('button', { name: 'Check the payments' }).click();
        await page.getByRole('button', { name: 'Send 2 payments' }).waitFor();
        // Another user withdraws the money in the meantime.
        const taken = (await api.balance(payer.account_id)) - 35;
        await api.transact(payer.account_id, 'Withdrawal', taken);
        await page.getByRole('button', { name: 'Send 2 payments' }).dblclick();
        await page.getByText(says).waitFor();
        await page.getByText('There is not enough money in the account.').first().waitFor();
        await expectFine(page, isAtomic ? 'batch-refused' : 'batch-partly-refused');
        await api.transact(payer.account_id, 'Deposit', 100);
      }
      expect((await readTransactions(payee.account_id)).filter(({ status }) => status === 'Completed')).toHaveLength(1);
      expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
    });

    it('of a thousand payments is sent in the same way, and shown in pages', async () => {
      const payer = await newAccount('Thousand', 2000);
      const payee = await newAccount('Many', 0);
      const line = `${payer.account_number},${payee.account_number},1.25,${'d'.repeat(200)}\n`;
      const { page, context, complaints } = await as('officer');
      await page.goto(ui('/counter/batches'));
      await choose(page, csv('many.csv', `from,to,amount,description\n${line.repeat(1000)}`));
      await page.getByRole('button', { name: 'Check the payments' }).click();
      await page.getByText('The same payment is in the file more than once').waitFor({ timeout: 60_000 });
      await page.getByLabel('Pay it more than once').check();
      await page.getByRole('button', { name: 'Send 1000 payments' }).click();
      await page.getByText('All payments were posted.').waitFor({ timeout: 60_000 });
      // The link comes after the table, of which a browser shows the first rows while it receives the rest.
      const next = page.getByRole('link', { name: 'Next page' });
      await next.waitFor();
      expect(await page.locator('tbody tr').count()).toBe(50);
      await next.click();
      await page.getByRole('row', { name: /^52 Posted/ }).waitFor();
      expect([await api.balance(payer.account_id), await api.balance(payee.account_id)]).toEqual([750, 1250]);
      const results = await context.request.get(`${page.url().split('?')[0]}/results.csv`);
      expect((await results.text()).trimEnd().split('\r\n')).toHaveLength(1001);
      expect(complaints).toEqual([]);
    });

    it.each([
      ['nothing.csv', 'from,to,amount\n', 'There is no payment in the file.'],
      ['heads.csv', 'from,iban,amount\nSAV-1,x,5', 'The first line has an unknown column: “iban”.'],
      ['quotes.csv', 'from,to,amount\n"SAV-1,SAV-2,5', 'a quotation mark that is not closed'],
      ['hostile.csv', 'sep=1\r\nfrom,to,amount\r\nSAV-1,SAV-2,5\r\n', 'line 1: names the separator “1”'],
    ])('%s is not taken, and the page says why', async (name, text, says) => {
      const { page } = await as('officer');
      await page.goto(ui('/counter/batches'));
      await choose(page, csv(name, text));
      await page.getByRole('button', { name: 'Check the payments' }).click();
      await page.getByText(says).waitFor();
      await expectFine(page, `batch-${name}`);
    });

    it('is not available without the permission to move money', async () => {
      const { page } = await as('auditor');
      await page.goto(ui('/counter/batches'));
      await page.getByRole('heading', { level: 1, name: 'You may not do this' }).waitFor();
    });
  });
}
