import { currencyDigits, isCurrency } from '#libs/contracts/money.ts';
import { html } from './html.ts';
import type { Html } from './html.ts';

/** How values look on pages. */

/** A moment, to the second, in UTC; a dash for none. */
export function timeOf(iso: string | null): Html {
  return iso === null ? html`<span class="quiet">–</span>` : html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}

/** An amount with all digits of its currency and blanks between thousands; exact, whatever its size. */
export function moneyText(decimal: string, currency: string): string {
  const [whole = '', fraction = ''] = decimal.replace(/^-/, '').split('.');
  const digits = isCurrency(currency) ? currencyDigits(currency) : fraction.length;
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, '\u00a0');
  return `${decimal.startsWith('-') ? '−' : ''}${grouped}${digits > 0 ? `.${fraction.padEnd(digits, '0')}` : ''}`;
}

export interface Column<Row> {
  title: string;
  show: (row: Row) => Html | string;
  isNumber?: boolean;
}

/** A table that scrolls by itself where it is wider than the screen; `empty` is said when it has no rows. */
export function table<Row>(caption: string, columns: readonly Column<Row>[], rows: readonly Row[], empty: string): Html {
  if (rows.length === 0) return html`<p role="status">${empty}</p>`;
  const align = ({ isNumber }: Column<Row>) => isNumber === true && html` class="number"`;
  // On a narrow screen each row is a list, and says the titles itself.
  const cell = (column: Column<Row>, row: Row) => html`<td data-title="${column.title}"${align(column)}><div>${column.show(row)}</div></td>`;
  return html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table class="striped">
<thead><tr>${columns.map((column) => html`<th scope="col"${align(column)}>${column.title}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${columns.map((column) => cell(column, row))}</tr>`)}</tbody>
</table></div>`;
}

/** Links to the first and the next page of a list, which keep its filters. */
export function pager(path: string, query: URLSearchParams, next: string | undefined): Html {
  const link = (cursor: string | undefined) => {
    const parameters = new URLSearchParams(query);
    parameters.delete('cursor');
    if (cursor !== undefined) parameters.set('cursor', cursor);
    const text = parameters.toString();
    return text === '' ? path : `${path}?${text}`;
  };
  const isFirst = !query.has('cursor');
  if (isFirst && next === undefined) return html``;
  return html`<nav class="actions" aria-label="Pages">${!isFirst && html`<a href="${link(undefined)}">First page</a>`}${next !== undefined && html`<a href="${link(next)}" rel="next">Next page</a>`}</nav>`;
}
