import { describe, expect, it } from 'vitest';
import { accountStatus } from '#libs/contracts/accounts.ts';
import { apiKeySchema } from '#libs/contracts/api-keys.ts';
import { approvalStatus } from '#libs/contracts/approvals.ts';
import { batchSummarySchema } from '#libs/contracts/batches.ts';
import { deadLetterState } from '#libs/contracts/dead-letters.ts';
import { holdStatus } from '#libs/contracts/holds.ts';
import { plainMoney } from '#libs/contracts/money.ts';
import { transactionStatus } from '#libs/contracts/transactions.ts';
import { deliveryStatus, webhookSchema } from '#libs/contracts/webhooks.ts';
import { moneyText, setBankFormats } from '#libs/service/formats.ts';
import { html } from '#libs/service/html.ts';
import { chartPoints, toDays } from '../pages/books.ts';
import { renderPage } from './layout.ts';
import { pager } from './lists.ts';
import {
  emptyState,
  idLink,
  idTextLink,
  notice,
  pill,
  resourceLink,
  resourcePage,
  showSecond,
  showTime,
  table,
} from './show.ts';
import { statuses } from './statuses.ts';

describe('a trial', () => {
  const page = () => renderPage({ title: 'Sign in', content: html`` });
  it('is named on every page', () => {
    setBankFormats({ timeZone: 'UTC', locale: undefined, trial: true });
    expect(page()).toContain('<small class="pill wait" title="Not for real money">Trial</small>');
    setBankFormats({ timeZone: 'UTC', locale: undefined });
    expect(page()).not.toContain('Trial');
  });
});

describe('formats of pages', () => {
  it.each([
    ['0', 'USD', '0.00'],
    ['10.5', 'USD', '10.50'],
    ['-1234567.5', 'USD', '−1\u00a0234\u00a0567.50'],
    ['1000', 'JPY', '1\u00a0000'],
    ['1.5', 'KWD', '1.500'],
    ['12345678901234567890.25', 'EUR', '12\u00a0345\u00a0678\u00a0901\u00a0234\u00a0567\u00a0890.25'],
  ])('%s %s is shown as %s', (decimal, currency, shown) => {
    expect(moneyText(decimal, currency)).toBe(shown);
  });

  it('a time is shown to the minute, with its exact value for machines; a missing one as a dash', () => {
    expect(showTime('2026-01-02T03:04:05.678Z').text).toBe(
      '<time datetime="2026-01-02T03:04:05.678Z" title="2026-01-02 03:04:05 UTC">2026-01-02 03:04</time>',
    );
    expect(showSecond('2026-01-02T03:04:05.678Z').text).toContain('>2026-01-02 03:04:05</time>');
    expect(showTime(null).text).toContain('–');
  });

  it.each([
    ['Waiting', 'wait'],
    ['Captured', 'good'],
    ['Completed', 'good'],
    ['Pending', 'info'],
    ['Frozen', 'bad'],
    ['Rejected', 'bad'],
    ['Disabled', 'bad'],
    ['Released', 'plain'],
  ] as const)('the status %s is shown as %s, with an icon that screen readers leave out', (status, tone) => {
    expect(pill(status).text).toMatch(
      new RegExp(`^<span class="pill ${tone}"><svg class="icon"[^>]* aria-hidden="true">[^]*</svg>${status}</span>$`),
    );
  });

  it('every status of the API has a tone', () => {
    const ofApi = [
      accountStatus.options,
      apiKeySchema.shape.status.options,
      approvalStatus.options,
      batchSummarySchema.shape.status.options,
      deadLetterState.options,
      deliveryStatus.options,
      holdStatus.options,
      transactionStatus.options,
      webhookSchema.shape.status.options,
    ].flat();
    expect(ofApi.filter((status) => !(status in statuses))).toEqual([]);
  });

  it('an error is said at once, every other message in its turn', () => {
    expect(notice('error', '<b>').text).toMatch(
      /^<div class="notice error" role="alert"><svg[^]*<div>&lt;b&gt;<\/div><\/div>$/,
    );
    expect(notice('warning', 'x', true).text).toContain('role="alert"');
    for (const kind of ['success', 'info', 'warning'] as const)
      expect(notice(kind, 'x').text).toContain(`class="notice ${kind}" role="status"`);
  });

  it('where nothing is, the page says why, and what to do', () => {
    expect(emptyState('None yet.', { href: '/new', text: 'Open one' }).text).toBe(
      '<div class="empty"><p role="status">None yet.</p><p><a role="button" class="secondary" href="/new">Open one</a></p></div>',
    );
    expect(emptyState('None yet.', false).text).not.toContain('button');
  });

  it('a table without rows says that it is empty', () => {
    expect(table('Keys', [{ title: 'Name', show: (row: string) => row }], [], 'There are none.').text).toBe(
      '<div class="empty"><p role="status">There are none.</p></div>',
    );
    expect(table('Keys', [{ title: 'Name', show: (row: string) => row }], ['<a>'], '').text).toContain(
      '<td data-title="Name" class="leading"><div>&lt;a&gt;</div></td>',
    );
  });

  it.each([
    [['Hedda', 'Savings', '', '5.00'], 'number', ['Hedda', '5.00']],
    [['Hedda', 'Savings', '4.00', '5.00'], 'number', ['Hedda', '4.00']],
    [['Hedda', '', 'Active', 'x'], 'text', ['Hedda']],
  ] as const)('the card of %j, the last two a %s, begins with %j', (row, kind, leading) => {
    const columns = row.map((_, index) => ({
      title: 'x',
      isNumber: kind === 'number' && index > 1,
      show: (cells: typeof row) => cells[index] ?? '',
    }));
    const shown = table('Cards', columns, [row], '').text.matchAll(/leading"><div>(.*?)<\/div>/g);
    expect([...shown].map(([, text]) => text)).toEqual(leading);
  });

  it('a card begins with the column that leads, unless it is empty', () => {
    const columns = [
      { title: 'Opened', show: () => 'today' },
      { title: 'In', isNumber: true, show: () => '4.00' },
      { title: 'Difference', isNumber: true, isLeading: true, show: (row: string) => row },
    ];
    const shown = table('Tills', columns, ['-1.00', ''], '').text.matchAll(/leading"><div>(.*?)<\/div>/g);
    expect([...shown].map(([, text]) => text)).toEqual(['today', '-1.00', 'today', '4.00']);
  });

  it('the column by which a list is ordered says so and has the link that reverses it', () => {
    const columns = [
      { title: 'When', sort: { direction: 'descending', href: '?order=asc' } as const, show: () => 'x' },
      { title: 'Who', show: () => '' },
    ];
    const { text } = table('Rows', columns, ['a', 'b'], '');
    expect(text).toContain('<th scope="col" aria-sort="descending"><a href="?order=asc">When');
    expect(text).toContain('<th scope="col">Who</th>');
    expect(text).toContain('<td data-title="Who" data-blank>');
  });

  it('the pager keeps filters and links to the next page', () => {
    expect(pager('/p', new URLSearchParams(), undefined).text).toBe('');
    expect(pager('/p', new URLSearchParams('a=1'), 'n').text).toContain('href="/p?a=1&amp;cursor=n"');
    expect(pager('/p', new URLSearchParams('a=1&cursor=x'), undefined).text).toContain('href="/p?a=1"');
  });

  it.each([
    ['-5', 'USD', '-5.00'],
    ['0.1', 'KWD', '0.100'],
    ['7', 'JPY', '7'],
    ['1.25', null, '1.25'],
  ])('%s %s is %s for machines', (decimal, currency, written) => {
    expect(plainMoney(decimal, currency)).toBe(written);
  });

  it('an id links to the page of its resource, if there is one', () => {
    const bits = 'a'.repeat(32);
    const paths = ['clients/cli', 'accounts/acc', 'transactions/txn', 'transfers/trf', 'api-keys/key'];
    expect(paths.map((path) => resourcePage(`${path.slice(-3)}_${bits}`))).toEqual(
      paths.map((path) => `/admin/ui/${path}_${bits}`),
    );
    expect(resourcePage(`ses_${bits}`)).toBeUndefined();
    expect(resourceLink(`key_${bits}`, new Set(['keys:manage'])).text).toMatch(
      /^<a href="\/admin\/ui\/api-keys\/key_a+"><code/,
    );
    expect(resourceLink(`key_${bits}`, new Set(['audit:read'])).text).toMatch(/^<code/);
    expect(idTextLink(`txn_${bits}`).text).toMatch(
      /^<a href="\/admin\/ui\/transactions\/txn_a+"><code class="id" .*>txn_aaaa<span>a+<\/span>aaaa<\/code><\/a> <button .*data-copy-text="txn_a+"/,
    );
    expect(idLink('acc_"><b>').text).toBe('<code>acc_&quot;&gt;&lt;b&gt;</code>');
  });

  it('days are those of the bank, also where a day has 23 hours', () => {
    setBankFormats({ timeZone: 'Europe/Berlin', locale: undefined });
    const hour = (start: string, amount: string) => ({ start, operations: 1, amount });
    const buckets = toDays({
      currency: 'USD',
      buckets: [
        hour('2026-03-28T22:00:00.000Z', '0.10'),
        hour('2026-03-28T23:00:00.000Z', '0.20'),
        hour('2026-03-29T21:00:00.000Z', '0.30'),
        hour('2026-03-29T22:00:00.000Z', '0.40'),
      ],
    });
    expect(buckets.map(({ start, operations, amount }) => [start, operations, amount])).toEqual([
      ['2026-03-27T23:00:00.000Z', 1, '0.10'],
      ['2026-03-28T23:00:00.000Z', 2, '0.50'],
      ['2026-03-29T22:00:00.000Z', 1, '0.40'],
    ]);
    const period = {
      from: '2026-03-27T23:00:00.000Z',
      to: '2026-03-30T10:00:00.000Z',
      complete: true,
      counted_from: '',
    };
    const points = chartPoints({ ...period, currency: 'USD', unit: 'day', buckets });
    expect(points.map(({ amount }) => amount)).toEqual([10n, 50n, 40n]);
    setBankFormats({ timeZone: 'UTC', locale: undefined });
  });

  it('a day can sum up to more than one operation can have', () => {
    const buckets = toDays({
      currency: 'USD',
      buckets: [
        { start: '2026-01-02T10:00:00.000Z', operations: 9, amount: '10000000000000.00' },
        { start: '2026-01-02T11:00:00.000Z', operations: 1, amount: '0.01' },
      ],
    });
    expect(buckets).toEqual([{ start: '2026-01-02T00:00:00.000Z', operations: 10, amount: '10000000000000.01' }]);
  });

  it('the chart has a point for every hour, 0 if nothing was posted', () => {
    const period = {
      currency: 'USD',
      unit: 'hour',
      from: '2026-01-02T03:30:00.000Z',
      to: '2026-01-02T06:00:00.000Z',
      complete: true,
      counted_from: '',
    } as const;
    expect(
      chartPoints({ ...period, buckets: [{ start: '2026-01-02T04:00:00.000Z', operations: 2, amount: '12.5' }] }),
    ).toEqual([
      { start: '2026-01-02T03:00:00.000Z', operations: 0n, amount: 0n },
      { start: '2026-01-02T04:00:00.000Z', operations: 2n, amount: 1250n },
      { start: '2026-01-02T05:00:00.000Z', operations: 0n, amount: 0n },
    ]);
  });
});
