import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { approvalActions } from '#libs/contracts/approvals.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { bankDay } from '#libs/service/formats.ts';
import { ids, ok, refused, samples } from '../../gateway/test/test-app.ts';
import { type Answers, answering, issuer, testDashboard } from '../test/test-dashboard.ts';

/** The first page without a browser: today's figures, and that a missing part does not affect the others. */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Answers = {};

beforeAll(async () => {
  made = await testDashboard(answering(() => answers));
});
afterAll(() => made.app.close());

const total = {
  currency: 'KES',
  operations: 3,
  refused: 2,
  money_in: '1500.00',
  money_out: '20.50',
  transferred: '0.00',
};
const totals = (complete: boolean) =>
  ok({
    from: samples.client.created_at,
    to: samples.client.created_at,
    complete,
    counted_from: samples.client.created_at,
    totals: [total],
  });
const visibleText = (body: string) => body.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');

describe('the day', () => {
  it('is shown by currency, with links to postings, to people with the scopes', async () => {
    answers = { get_posting_totals: totals(true), list_day_closings: ok({ items: [] }) };
    const { body } = await made.signedIn('books:read transactions:read').get('/admin/ui/today');
    expect(visibleText(body)).toContain('KES 3 1 500.00 20.50 0.00 2');
    const day = new Date().toISOString().slice(0, 10);
    expect(body).toContain(`href="/admin/ui/transactions?currency=KES&amp;from_day=${day}&amp;status=Failed"`);
    expect((await made.signedIn('books:read').get('/admin/ui/today')).body).not.toContain('transactions?currency');
    expect(body).not.toContain('too many postings to count');
    answers['get_posting_totals'] = totals(false);
    expect((await made.signedIn('books:read').get('/admin/ui/today')).body).toContain('too many postings to count');
  });

  it('shows for each part without a response that it is unknown', async () => {
    answers = {};
    const { statusCode, body } = await made.signedIn('books:read approvals:write').get('/admin/ui/today');
    expect(statusCode).toBe(200);
    expect(visibleText(body)).toMatch(/Approvals not known .* Services ledger, accounts, webhooks not answering/);
    expect(body).toContain('What was posted cannot be shown now');
  });

  it.each([
    ['create_key', undefined, undefined],
    [
      'none',
      'one branch <b>',
      'API key, Large posting, Erasure of a client, Contact of a client, Webhook, Closing of a day, Limits of an account, Earlier value date. Reason: one branch &lt;b&gt;',
    ],
    ['all', undefined, undefined],
  ])(
    'with FOUR_EYES=%s says what one person may do alone, and why; so does the page of operations',
    async (named, offReason, said) => {
      // contract: four-eyes-6
      const actions = new Set(approvalActions.filter((action) => named === 'all' || named === action));
      const bank = await testDashboard(() => 'no_reply', {
        fourEyes: { actions, offReason, keys: false, limits: new Map(), timeZone: 'UTC' },
      });
      try {
        for (const page of ['today', 'operations']) {
          const { body } = await bank.signedIn('books:read').get(`/admin/ui/${page}`);
          if (said === undefined) expect(body).not.toContain('No second person');
          else expect(body).toContain(said);
        }
      } finally {
        await bank.app.close();
      }
    },
  );

  it('has tiles for tills with a difference, ended days that are open, and failing webhooks, if there are some', async () => {
    let [tills_different, webhooks_failing, closed] = [0, 0, bankDay(Date.now() - 86_400_000)];
    const outbox = { rows: 0, oldest_age_ms: 0 };
    const closing = {
      closed_at: samples.client.created_at,
      closed_by: 'key:k',
      totals: [],
      accounts_sha256: 'ab'.repeat(32),
      previous_hash: '0'.repeat(64),
      hash: 'ab'.repeat(32),
    };
    const bank = await testDashboard(({ name }) => {
      if (name === 'get_ledger_operations') return ok({ outbox, last_verification: null, tills_different });
      if (name === 'get_webhooks_operations') return ok({ outbox, webhooks_failing });
      return name === 'list_day_closings'
        ? ok({ items: [{ ...closing, date: closed }] })
        : refused('internal_error', 'no');
    });
    try {
      const shown = async () => visibleText((await bank.signedIn('books:read').get('/admin/ui/today')).body);
      expect(await shown()).not.toMatch(/with a difference|not closed|failing/);
      [tills_different, webhooks_failing, closed] = [1, 2, bankDay(Date.now() - 8 * 86_400_000)];
      expect(await shown()).toMatch(
        /Tills 1 with a difference closed in the last 24 hours Days 7 not closed .* Webhooks 2 failing/,
      );
    } finally {
      await bank.app.close();
    }
  });

  it('is on the first page only of people with books:read', async () => {
    expect((await made.signedIn('books:read').get('/admin/ui')).body).toContain('hx-get="/admin/ui/today"');
    const { body } = await made.signedIn('clients:read').get('/admin/ui');
    expect(body).not.toContain('/admin/ui/today');
    expect(body).toContain('<h3><a href="/admin/ui/clients">Clients</a></h3>');
    expect((await made.signedIn('clients:read').get('/admin/ui/today')).statusCode).toBe(403);
  });
});

describe('cash by day', () => {
  const row = { currency: 'KES', money_in: '1500.00', money_out: '20.50' };
  const cash = (complete = true) =>
    ok({
      from: '2026-01-01',
      to: '2026-01-14',
      complete,
      counted_from: complete ? '2026-01-01' : '2026-01-10',
      days: [
        { ...row, date: '2026-01-10' },
        { ...row, date: '2026-01-14', money_in: '0.00', money_out: '0.01' },
      ],
    });

  /** Of its own, because the gateway soon stops to ask services that have not answered. */
  async function shown(reply: ReplyBody | undefined, path = '') {
    const bank = await testDashboard(({ name }) => (name === 'get_cash_days' && reply ? reply : 'no_reply'));
    try {
      return (await bank.signedIn('books:read').get(`/admin/ui/cash-days${path}`)).body;
    } finally {
      await bank.app.close();
    }
  }

  it('is drawn by currency with today marked, without styles, and is a table too', async () => {
    const body = await shown(cash());
    expect(body).toMatch(/<p class="scale">1.500\.00<\/p>\s*<svg [^>]* aria-label="Cash in and out in KES by day/);
    expect(
      [...body.matchAll(/<rect class="(in|out)" [^>]* height="(\d+)"\/>/g)]
        .filter(([, , size]) => size !== '0')
        .map(([, kind, size]) => [kind, size]),
    ).toEqual([
      ['in', '120'],
      ['out', '1'],
      ['out', '1'],
    ]);
    expect(body.match(/<g class="last">/g)).toHaveLength(1);
    expect(visibleText(body)).toContain(' 1 2 3 4 5 6 7 8 9 10 11 12 13 Today ');
    expect(body).not.toContain('style=');
    expect(visibleText(body)).toContain('2026-01-14 , today 0.00 0.01 2026-01-13 0.00 0.00');
    expect(body).toContain('href="/admin/ui/cash-days?days=30"');
  });

  it('says which days are not counted yet, and what is not known', async () => {
    const body = await shown(cash(false), '?days=30');
    expect(body).toContain('Days before 2026-01-10 are still being counted.');
    expect(body).toContain('hx-get="/admin/ui/cash-days?days=30"');
    answers = {};
    expect((await made.signedIn('books:read').get('/admin/ui/cash-days')).body).toContain(
      'cash of the last days cannot be shown',
    );
  });
});

describe('the day of the person', () => {
  // The gateway soon stops to ask services that have not answered.
  beforeAll(async () => {
    await made.app.close();
    made = await testDashboard(answering(() => answers));
  });

  const asked = {
    approval_id: `apr_${'a'.repeat(32)}`,
    action: 'post_above',
    summary: 'Deposit of 1500.00 KES <b>',
    request: {
      operation: 'create_transaction',
      method: 'POST',
      path: '/transactions',
      body: { amount: '1500.00', account_id: ids.account },
    },
    requested_by: `jwt:${issuer}|ada`,
    requested_at: samples.client.created_at,
    expires_at: samples.client.created_at,
    status: 'Rejected',
    decided_by: `jwt:${issuer}|bob`,
    decided_at: samples.client.created_at,
    reason: 'no receipt <i>',
  };
  const day = {
    actor: `jwt:${issuer}|ada`,
    on: '2026-01-02',
    totals: [
      {
        currency: 'KES',
        cash_in: '4500.00',
        cash_in_count: 3,
        cash_out: '5000.50',
        cash_out_count: 1,
        net_cash: '-500.50',
        transferred: '0.00',
        transferred_count: 0,
      },
    ],
    refused: 2,
    batch_items: 12,
    customers: [{ client_id: ids.client, account_id: ids.account, served_at: samples.client.created_at }],
  };
  const till = {
    till_id: `til_${'b'.repeat(32)}`,
    actor: `jwt:${issuer}|ada`,
    status: 'Open',
    opened_at: samples.client.created_at,
    opening: [{ currency: 'KES', amount: '5000.00' }],
    closed_at: null,
    balances: [],
    reason: null,
    closed_by: null,
  };
  const clerk = 'transactions:write transactions:read clients:read accounts:read';

  it('has requests that wait as work, not as a fault, with an icon beside the colour', async () => {
    let items: object[] = [];
    const bank = await testDashboard(({ name }) => (name === 'list_approvals' ? ok({ items }) : 'no_reply'));
    try {
      for (const tone of ['good', 'wait']) {
        const { body } = await bank.signedIn('books:read approvals:write').get('/admin/ui/today');
        expect(body).toMatch(
          new RegExp(`Approvals</span> <strong class="status ${tone}"><svg[^>]*>.*</svg>${items.length}<`),
        );
        items = [asked];
      }
    } finally {
      await bank.app.close();
    }
  });

  it('is the first page of who works at the counter, under the search, which has the focus', async () => {
    answers = {
      get_staff_day: ok(day),
      list_tills: ok({ items: [till] }),
      list_approvals: ({ status }) => ok({ items: status === 'Waiting' ? [] : [asked] }),
      list_clients: ok({ items: [samples.client] }),
      list_accounts: ok({ items: [samples.master] }),
      get_ledger_accounts: ok([samples.ledger]),
    };
    const home = (await made.signedIn(clerk).get('/admin/ui')).body;
    expect(home).toContain('hx-get="/admin/ui/your-day" hx-trigger="load"');
    expect(home).not.toContain('Go to');
    const { body } = await made.signedIn(clerk).get('/admin/ui/your-day');
    expect(home).toMatch(
      /<form class="narrow" method="get" action="\/admin\/ui\/counter">\s*<label>Customer <input type="search" name="q" value="" required autofocus/,
    );
    const text = visibleText(body);
    expect(text).toContain(
      'Net cash in KES −500.50 In 4 500.00, 3 postings Out 5 000.50, 1 posting Between accounts 0.00, 0 postings',
    );
    expect(text).toContain('2 refused ; 12 payments from files, which are not in these sums.');
    expect(body).toContain(`href="/admin/ui/approvals/${asked.approval_id}"`);
    // With the customer, as on the list of requests.
    expect(text).toMatch(/Deposit of 1 500.00 KES &lt;b&gt; x no receipt &lt;i&gt; Rejected/);
    expect(text).toMatch(/Your till Open since .* Count and close it , your tills Your requests All decided 2 refused/);
    // It may be older than any number of others.
    answers['list_approvals'] = ({ status }) =>
      ok({ items: status === 'Waiting' ? [{ ...asked, status: 'Waiting' }] : [asked] });
    expect(visibleText((await made.signedIn(clerk).get('/admin/ui/your-day')).body)).toContain(
      'Your requests 1 waiting for a second person',
    );
    const approved = { ...asked, status: 'Approved', outcome: { status: 'success', data: samples.transaction } };
    answers['list_approvals'] = ok({ items: [approved] });
    const link = `<a href="/admin/ui/counter/receipts/${ids.transaction}">Receipt</a>`;
    expect((await made.signedIn(clerk).get('/admin/ui/your-day')).body).toContain(link);
    expect(body).toContain(`<a href="/admin/ui/clients/${ids.client}">`);
    const from = new Date().toISOString().slice(0, 10);
    const filters = new URLSearchParams({ actor: day.actor, from_day: from, status: 'Failed' });
    expect(body).toContain(`/admin/ui/transactions?${filters.toString().replaceAll('&', '&amp;')}`);
    expect(body).toContain(`<a href="/admin/ui/tills/${till.till_id}/close">Count and close it</a>`);
  });

  it('counts one payment from a file in the singular', async () => {
    answers = { get_staff_day: ok({ ...day, batch_items: 1 }), list_tills: ok({ items: [] }) };
    const { body } = await made.signedIn(clerk).get('/admin/ui/your-day');
    expect(visibleText(body)).toContain('1 payment from a file, which is not in these sums.');
  });

  it('shows what it knows, and no names or links without the scopes', async () => {
    answers = { get_staff_day: ok(day), list_tills: ok({ items: [] }), list_approvals: ok({ items: [] }) };
    const { body } = await made.signedIn('transfers:write').get('/admin/ui/your-day');
    expect(body).not.toMatch(/href="\/admin\/ui\/(transactions|clients)/);
    expect(body).toContain('None of your actions needed a second person.');
    answers = {};
    const unknown = await made.signedIn(clerk).get('/admin/ui/your-day');
    expect([unknown.statusCode, unknown.body.includes('What you posted cannot be shown now')]).toEqual([200, true]);
    const nothing = { ...day, totals: [], refused: 0, batch_items: 0, customers: [] };
    answers = { get_staff_day: ok(nothing), list_tills: ok({ items: [] }) };
    const empty = (await made.signedIn(clerk).get('/admin/ui/your-day')).body;
    expect(empty).toContain('You have posted nothing today.');
    expect(empty).toContain('<a href="/admin/ui/tills/open">Count and open it</a>');
    // Who decides about others, and never had a till, needs none.
    expect((await made.signedIn(`${clerk} approvals:write`).get('/admin/ui/your-day')).body).not.toContain('Your till');
  });
});
