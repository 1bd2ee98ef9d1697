import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { approvalActions } from '#libs/contracts/approvals.ts';
import type { ReplyBody } from '#libs/contracts/envelope.ts';
import { ok, samples } from '../../gateway/test/test-app.ts';
import { testDashboard } from '../test/test-dashboard.ts';

/** The first page without a browser: today's figures, and that a missing part does not affect the others. */
let made: Awaited<ReturnType<typeof testDashboard>>;
let answers: Record<string, ReplyBody | 'no_reply'> = {};

beforeAll(async () => {
  made = await testDashboard(({ name }) => answers[name] ?? 'no_reply');
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
    answers = { get_posting_totals: totals(true) };
    const { body } = await made.signedIn('books:read transactions:read').get('/admin/ui/today');
    expect(visibleText(body)).toContain('KES 3 1 500.00 20.50 0.00 2');
    const day = new Date().toISOString().slice(0, 10);
    expect(body).toContain(`href="/admin/ui/transactions?currency=KES&amp;from_day=${day}&amp;status=Failed"`);
    expect((await made.signedIn('books:read').get('/admin/ui/today')).body).not.toContain('transactions?currency');
    expect(body).not.toContain('too many postings to count');
    answers = { get_posting_totals: totals(false) };
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

  it('is on the first page only of people with books:read', async () => {
    expect((await made.signedIn('books:read').get('/admin/ui')).body).toContain('hx-get="/admin/ui/today"');
    expect((await made.signedIn('clients:read').get('/admin/ui')).body).not.toContain('/admin/ui/today');
    expect((await made.signedIn('clients:read').get('/admin/ui/today')).statusCode).toBe(403);
  });
});
