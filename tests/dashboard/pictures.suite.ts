import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Account } from '#libs/contracts/accounts.ts';
import type { Transaction } from '#libs/contracts/transactions.ts';
import { look, looksOfPages, useDashboard } from '../support/browser.ts';
import { useBank } from '../support/world.ts';

const root = join(import.meta.dirname, '../..');

/**
 * `npm run pictures` renews the pictures of docs/dashboard from a bank with the data of `npm run bank -- seed`. With
 * SCREENSHOTS, it also stores every page there, in both sizes and themes.
 */
describe('pictures of the dashboard', () => {
  const env = {
    BANK_NAME: 'Bank of Nyeri',
    BANK_ACCENT: '#0b6b4f',
    BANK_LOCALE: 'en-KE',
    BANK_TIME_ZONE: 'Africa/Nairobi',
  };
  const world = useBank({ dashboards: 1, webhooks: 1, env });
  const { ui, as } = useDashboard(world);
  let example: { account: Account; transaction: Transaction };

  beforeAll(async () => {
    await promisify(execFile)(
      process.execPath,
      [join(root, 'cli/bank.mjs'), 'seed', '--clients', '120', '--days', '30', '--seed', '7'],
      { env: { ...process.env, BANK_URL: world.bank.base_urls[0], BANK_API_KEY: world.bank.api_key } },
    );
    // One whose picture shows something.
    const accounts = (await world.api.get('/accounts?limit=50&currency=KES&account_type=Checking')).list<Account>();
    const days = await Promise.all(
      accounts.map(async ({ account_id }) => {
        const { days } = (await world.api.get(`/accounts/${account_id}/days`)).data<{ days: unknown[] }>();
        return days.length;
      }),
    );
    const account = accounts[days.indexOf(Math.max(...days))] as Account;
    const of = `/transactions?account_id=${account.account_id}&transaction_type=Transfer&status=Completed&limit=1`;
    const [transaction] = (await world.api.get(of)).list<Transaction>();
    example = { account, transaction: transaction as Transaction };
  });

  it('are renewed', async () => {
    const { account, transaction } = example;
    for (const [name, user, path] of [
      ['home', 'manager', ''],
      ['account', 'officer', `/accounts/${account.account_id}`],
      ['transaction', 'auditor', `/transactions/${transaction.transaction_id}`],
      ['api-keys', 'admin', '/api-keys/new?preset=payments'],
    ] as const) {
      const { page, complaints } = await as(user);
      await page.goto(ui(path), { waitUntil: 'networkidle' });
      await page.screenshot({ path: join(root, `docs/dashboard/${name}.png`) });
      expect(complaints).toEqual([]);
    }
  });

  it.runIf(process.env['SCREENSHOTS'])('of every page are stored', async () => {
    const { account, transaction } = example;
    const of = `/accounts/${account.account_id}`;
    const pages = {
      officer: [
        ['home', ''],
        ['counter', '/counter'],
        ['deposit', `/counter/${account.account_id}/deposit`],
        ['transfer', `/counter/${account.account_id}/transfer`],
        ['receipt', `/counter/receipts/trf_${transaction.transaction_id.slice(4)}`],
        ['files', '/counter/batches'],
        ['clients', '/clients'],
        ['client', `/clients/${account.client_id}`],
        ['client-new', '/clients/new'],
        ['accounts', '/accounts'],
        ['account', of],
        ['account-new', `/accounts/new?client_id=${account.client_id}`],
        ['account-transactions', `${of}/transactions`],
        ['statement', `${of}/statement`],
        ['limits', `${of}/limits`],
        ['freezing', `${of}/freezing`],
        ['transactions', '/transactions'],
        ['transaction', `/transactions/${transaction.transaction_id}`],
        ['tills', '/tills'],
        ['till-open', '/tills/open'],
        ['approvals-mine', '/approvals/mine'],
        ['found', '/find?q=wanjiku'],
        ['found-nothing', '/find?q=zzzyx'],
      ],
      manager: [
        ['home', ''],
        ['approvals', '/approvals'],
        ['days', '/books/days'],
      ],
      auditor: [
        ['audit', '/audit'],
        ['books', '/books'],
        ['transaction', `/transactions/${transaction.transaction_id}`],
      ],
      admin: [
        ['operations', '/operations'],
        ['webhooks', '/webhooks'],
        ['webhook-new', '/webhooks/new'],
        ['api-keys', '/api-keys'],
        ['api-key-new', '/api-keys/new'],
        ['not-found', '/nothing'],
      ],
    } as const;
    for (const [user, list] of Object.entries(pages))
      for (const [size, colorScheme] of looksOfPages) {
        const { page } = await as(user as keyof typeof pages, size);
        await page.emulateMedia({ colorScheme });
        for (const [name, path] of list) {
          await page.goto(ui(path), { waitUntil: 'networkidle' });
          await look(page, `${user}-${name}-${size}-${colorScheme}`);
        }
      }
  });

  it.runIf(process.env['SCREENSHOTS'])('of a till, and of what is printed, are stored', async () => {
    const { account, transaction } = example;
    const of = `/accounts/${account.account_id}`;
    const { page } = await as('officer');
    await page.goto(ui('/tills/open'));
    await page.getByLabel('Counted').fill('5000 KES');
    await page.getByRole('button', { name: 'Open the till' }).click();
    await page.getByText('Your till is open.').waitFor();
    await look(page, 'officer-till-opened-desk-light');
    await page.goto(`${page.url().split('?')[0]}/close`);
    await page.getByLabel('Counted, in KES').fill('4900');
    await page.getByLabel('Reason for the difference').fill('a note is lost');
    await page.getByRole('button', { name: 'Close the till' }).click();
    await page.getByText('Your till is closed.').waitFor();
    await look(page, 'officer-till-closed-desk-light');
    const till = new URL(page.url()).pathname.replace('/admin/ui', '');
    await page.setViewportSize({ width: 794, height: 1123 });
    await page.emulateMedia({ media: 'print' });
    for (const [name, path] of [
      ['till', till],
      ['receipt', `/counter/receipts/trf_${transaction.transaction_id.slice(4)}`],
      ['statement', `${of}/statement`],
      ['statement-printed', `${of}/statement.html`],
    ] as const) {
      await page.goto(ui(path), { waitUntil: 'networkidle' });
      await look(page, `paper-${name}`);
    }
  });
});
