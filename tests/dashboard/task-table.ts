import type { Locator, Page } from 'playwright-core';
import { afterAll, describe, expect, it } from 'vitest';
import type { Client } from '#libs/contracts/clients.ts';
import type { Dashboard } from '../support/browser.ts';
import type { RestAccount, RestTransaction } from '../support/client.ts';
import { staffToken } from '../support/staff.ts';
import { eventually } from '../support/world.ts';
import { type } from './typing.ts';

/** A customer at the counter, whom `other` pays and is paid by. */
interface Made {
  client: Client;
  account: RestAccount;
  other: RestAccount;
  loan: RestAccount;
  /** The name of the owner of `other`. */
  name: string;
}

/** A person who counts the keys and clicks. Each action can lead to a page, which is awaited. */
interface Hand {
  page: Page;
  keys(keys: string[], next?: string): Promise<void>;
  click(target: Locator, next?: string): Promise<void>;
}

interface Task {
  task: string;
  /** The most clicks and keys. Fewer are welcome. */
  most: readonly [clicks: number, keys: number];
  user?: 'officer' | 'manager' | 'auditor';
  /** Makes what the task needs, and returns the page where it begins. */
  at: (made: Made) => string | Promise<string>;
  does: (hand: Hand, made: Made) => Promise<void>;
  /** The balance of the account then, if the task changes it; it begins with 1000. */
  balance?: number;
}

/**
 * The tasks of a clerk's day, with their clicks and keys: none may need more than when they were first counted. With
 * TASK_TABLE=1 they are printed with the seconds that each took. The bank must be one in which reversals need a second
 * person, and deposits of 1,500 KES do not.
 */
export function testTaskTable({ world, ui, as, open }: Dashboard): void {
  const { api } = world;
  const digits = ({ account_number }: RestAccount) => account_number.replace(/^\w+-/, '');
  const summary = '**/counter/summary*';
  const receipt = '**/counter/receipts/*';
  const counter = ({ account }: Made, kind: string) => `/counter/${account.account_id}/${kind}`;
  const main = ({ page }: Hand) => page.locator('main');

  /** Asks for a second person, in another's name; returns the page of the request. */
  async function ask({ account }: Made): Promise<string> {
    const teller = api.withToken(staffToken(world.bank, 'teller'));
    const body = { account_id: account.account_id, transaction_type: 'Deposit', amount: 2_000_000 };
    const asked = (await teller.post('/transactions', body)).data<{ approval_id: string }>();
    return `/approvals/${asked.approval_id}`;
  }

  const opening = (first: string, keys: string[]): Task => ({
    task: `an account with ${first}, from the page of its client`,
    most: [5, 13],
    at: ({ client }) => `/clients/${client.client_id}`,
    async does(hand) {
      await hand.click(main(hand).getByRole('button', { name: 'Open an account' }), '**/accounts/new*');
      // Cash is confirmed on a summary.
      const hasSummary = keys.length > 1;
      if (hasSummary) await hand.keys(keys, '**/summary/*');
      await hand.keys(hasSummary ? ['Enter'] : keys, '**/accounts/acc_*');
    },
  });

  const tasks: Task[] = [
    {
      task: 'register a retail client: names, e-mail, phone',
      most: [1, 80],
      at: () => '/clients',
      async does(hand) {
        await hand.click(main(hand).getByRole('button', { name: 'Create a Retail client' }), '**/clients/new*');
        const number = String(Math.floor(Math.random() * 1e8)).padStart(8, '0');
        const fields = ['Achieng', 'Odhiambo', `a.odhiambo.${number}@ke.example`, `+2547${number}`];
        await hand.keys([...fields.flatMap((text) => [text, 'Tab']).slice(0, -1), 'Enter'], '**/clients/cli_*');
      },
    },
    opening('no money', ['Enter']),
    opening('1,500 KES in cash', ['Tab', 'Tab', '1500', 'Enter']),
    opening('a loan of 5,000 KES', ['L', 'Tab', 'Tab', '5000', 'Enter']),
    {
      task: 'a deposit of 1,500 by account number, to the next customer',
      most: [0, 18],
      at: () => '/counter',
      async does({ keys }, { account }) {
        await keys([digits(account), 'Enter'], '**/deposit');
        await keys(['1500', 'Enter'], summary);
        await keys(['Enter'], receipt);
        await keys(['Enter'], '**/counter');
      },
      balance: 2500,
    },
    {
      task: 'a withdrawal from the open form',
      most: [0, 5],
      at: (made) => counter(made, 'withdrawal'),
      async does({ keys }) {
        await keys(['500', 'Enter'], summary);
        await keys(['Enter'], receipt);
      },
      balance: 500,
    },
    ...(['by number', 'by name'] as const).map(
      (how): Task => ({
        task: `a transfer ${how}, from the open form`,
        most: [0, 20],
        at: (made) => counter(made, 'transfer'),
        async does({ keys }, { other, name }) {
          await keys([how === 'by name' ? name : digits(other), 'Tab', '250', 'Enter'], summary);
          await keys(['Enter'], receipt);
        },
        balance: 750,
      }),
    ),
    {
      task: 'a loan repayment, from the form of the payer',
      most: [1, 22],
      at: (made) => counter(made, 'repayment'),
      async does({ keys }) {
        await keys(['120', 'Enter'], summary);
        await keys(['Enter'], receipt);
      },
      balance: 880,
    },
    {
      task: 'a hold is released, from its page',
      most: [1, 1],
      async at({ account }) {
        const hold = await api.post(`/accounts/${account.account_id}/holds`, { amount: 30 });
        return `/holds/${hold.data<{ hold_id: string }>().hold_id}`;
      },
      async does(hand) {
        await hand.click(main(hand).getByRole('button', { name: 'Release' }), '**/summary/*');
        await hand.keys(['Enter'], '**released');
      },
    },
    {
      task: 'an account is frozen, with a note of twelve letters',
      most: [5, 19],
      at: ({ account }) => `/accounts/${account.account_id}`,
      async does(hand) {
        await hand.click(main(hand).locator('summary', { hasText: 'More' }));
        await hand.click(main(hand).getByRole('link', { name: 'Freeze' }), '**/freezing');
        await hand.keys(['f', 'Tab', 'card is gone', 'Tab', 'Space', 'Enter'], '**saved=freezing');
      },
    },
    {
      task: 'a reversal is asked for, with its reason',
      most: [2, 16],
      async at({ account }) {
        const of = `/transactions?account_id=${account.account_id}`;
        const [deposit] = (await api.get(of)).list<RestTransaction>();
        return `/transactions/${deposit?.transaction_id}`;
      },
      async does(hand) {
        await hand.click(main(hand).getByRole('button', { name: 'Reverse' }), '**/reversal');
        await hand.keys(['Wrong customer', 'Enter'], '**/summary/*');
        await hand.keys(['Enter'], '**/approvals/apr_*');
      },
    },
    {
      task: 'a request is approved, from its page',
      most: [2, 0],
      user: 'manager',
      at: ask,
      async does(hand) {
        await hand.click(main(hand).getByRole('button', { name: 'Approve' }));
        await hand.page.getByText('It has been done.').waitFor();
      },
      balance: 2_001_000,
    },
    {
      task: 'a request is rejected, with its reason',
      most: [1, 18],
      user: 'manager',
      at: ask,
      async does(hand) {
        await hand.keys(['the slip is wrong']);
        await hand.click(main(hand).getByRole('button', { name: 'Reject' }));
        await hand.page.getByText('It was rejected').waitFor();
      },
    },
    {
      task: 'a payments file, once it is chosen',
      most: [3, 1],
      at: () => '/counter/batches',
      async does(hand, { account, other }) {
        const lines = ['from,to,amount', `${account.account_number},${other.account_number},40`];
        const file = {
          name: `${account.account_number}.csv`,
          mimeType: 'text/csv',
          buffer: Buffer.from(lines.join('\n')),
        };
        await main(hand).getByLabel('File of payments').setInputFiles(file);
        await hand.click(main(hand).getByRole('button', { name: 'Check the payments' }));
        await main(hand).getByRole('button', { name: 'Send 1 payment' }).waitFor();
        await hand.keys(['Enter'], '**/batches/bat_*');
        await hand.page.getByText('All payments were posted.').waitFor();
      },
      balance: 960,
    },
    {
      task: 'a statement for paper, from the page of the account',
      most: [2, 0],
      at: ({ account }) => `/accounts/${account.account_id}`,
      async does(hand) {
        await hand.click(hand.page.locator('.parts').getByRole('link', { name: 'Statement' }), '**/statement');
        const opened = hand.page.context().waitForEvent('page');
        await hand.click(main(hand).getByRole('button', { name: 'Print' }));
        await (await opened).getByRole('heading', { name: 'Account statement' }).waitFor();
      },
    },
    {
      task: 'every entry is checked',
      most: [1, 0],
      user: 'auditor',
      at: () => '/books',
      async does(hand) {
        await hand.click(main(hand).getByRole('button', { name: 'Check every entry now' }));
        await eventually(async () => {
          await hand.page.goto(ui('/books'));
          return hand.page.getByText('All rules that were checked are satisfied.').isVisible();
        });
      },
    },
  ];

  interface Row {
    task: string;
    clicks: number;
    keys: number;
    seconds: number;
  }
  const rows: Row[] = [];

  /** Does a task, and counts. */
  async function count(page: Page, task: string, does: (hand: Hand) => Promise<void>): Promise<Row> {
    const row = { task, clicks: 0, keys: 0, seconds: 0 };
    const startedMs = performance.now();
    const reach = async (next: string | undefined) => void (next !== undefined && (await page.waitForURL(next)));
    await does({
      page,
      async keys(keys, next) {
        row.keys += keys.reduce((sum, key) => sum + (/^(Tab|Enter|Space)$/.test(key) ? 1 : key.length), 0);
        await type(page, ...keys);
        await reach(next);
      },
      async click(target, next) {
        row.clicks += 1;
        await target.click();
        await reach(next);
      },
    });
    row.seconds = (performance.now() - startedMs) / 1000;
    rows.push(row);
    return row;
  }

  describe('clicks and keys of the tasks of a day', () => {
    it.each(tasks)('$task: at most $most', async ({ task, most, user = 'officer', at, does, balance = 1000 }) => {
      const name = `Keys${Math.random().toString(36).slice(2, 8)}`;
      const client = await api.client({ first_name: 'Amina', last_name: name });
      const kes = { currency: 'KES' };
      const account = await api.account(client.client_id, { ...kes, initial_deposit: 1000 });
      const loan = await api.account(client.client_id, { ...kes, account_type: 'Loan', initial_deposit: 300 });
      const recipient = await api.client({ first_name: `${name}x`, last_name: 'Payee' });
      const made = { account, client, loan, name: `${name}x`, other: await api.account(recipient.client_id, kes) };
      const { page, complaints } = await as(user);
      await page.goto(ui(await at(made)));
      const { clicks, keys } = await count(page, task, (hand) => does(hand, made));
      expect(clicks).toBeLessThanOrEqual(most[0]);
      expect(keys).toBeLessThanOrEqual(most[1]);
      const left = await api.balance(account.account_id);
      expect(left).toBe(balance);
      expect(complaints).toEqual([]);
    });

    it('a sign-in: no click, and at most 9 keys beside the password', async () => {
      const { page, complaints } = await open();
      await page.goto(`${world.bank.dashboard_urls[0]}/admin`);
      const { clicks, keys } = await count(page, 'a sign-in, beside the password', async (hand) => {
        await hand.keys(['auditor', 'Tab']);
        await page.keyboard.type(process.env['TEST_USER_PASSWORD'] ?? '');
        await hand.keys(['Enter'], '**/admin/ui**');
      });
      expect([clicks, keys]).toEqual([0, 9]);
      expect(complaints).toEqual([]);
    });
  });

  afterAll(() => {
    if (process.env['TASK_TABLE'] !== '1') return;
    const lines = rows.map(
      ({ task, clicks, keys, seconds }) => `| ${task} | ${clicks} | ${keys} | ${seconds.toFixed(1)} |`,
    );
    console.log(['| task | clicks | keys | s |', '|---|---|---|---|', ...lines].join('\n'));
  });
}
