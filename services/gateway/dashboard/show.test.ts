import { describe, expect, it } from 'vitest';
import { moneyText, pager, table, timeOf } from './show.ts';

describe('what pages show', () => {
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

  it('a time is shown to the second, with its exact moment for machines; none as a dash', () => {
    expect(timeOf('2026-01-02T03:04:05.678Z').text).toBe('<time datetime="2026-01-02T03:04:05.678Z">2026-01-02 03:04:05</time>');
    expect(timeOf(null).text).toContain('–');
  });

  it('a table without rows says so', () => {
    expect(table('Keys', [{ title: 'Name', show: (row: string) => row }], [], 'There are none.').text).toBe('<p role="status">There are none.</p>');
    expect(table('Keys', [{ title: 'Name', show: (row: string) => row }], ['<a>'], '').text).toContain('<td data-title="Name"><div>&lt;a&gt;</div></td>');
  });

  it('the pager keeps filters and names the next page', () => {
    expect(pager('/p', new URLSearchParams(), undefined).text).toBe('');
    expect(pager('/p', new URLSearchParams('a=1'), 'n').text).toContain('href="/p?a=1&amp;cursor=n"');
    expect(pager('/p', new URLSearchParams('a=1&cursor=x'), undefined).text).toContain('href="/p?a=1"');
  });
});
