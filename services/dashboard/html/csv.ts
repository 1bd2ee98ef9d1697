import { sheetTime, zoneName } from '#libs/service/formats.ts';
import type { Api } from '../api.ts';

/** Writes lists as CSV (RFC 4180), for spreadsheets. */

/** A field of the row under its own name, or a computed column. A field with a time is in the bank's time zone. */
export type CsvColumn<Row> = (keyof Row & string) | { title: string; value: (row: Row) => string | null | undefined };

export interface Export<Row> {
  /** The path of the API's list, and its filters. */
  path: string;
  parameters: URLSearchParams;
  columns: readonly CsvColumn<Row>[];
  /** Returns the rows, if the response is not a list. */
  getRows?: (data: unknown) => readonly Row[];
  /** Adds to the rows of a page what people know them by. */
  complete?: ((rows: readonly Row[]) => Promise<readonly Row[]>) | undefined;
  /** True if the first line tells the separator, for spreadsheets that expect another one. */
  hasSeparator?: boolean;
}

/** The maximum number of rows in a file. */
export const maxRows = 50_000;
const pageSize = 500;

/**
 * Streams a list as CSV, one page of the API at a time, so that it is never in memory as a whole.
 * Fetches the first page before it returns, and throws if the API refuses it. If the file is
 * incomplete, because it is too long or the API refused a later page, its last line says so.
 */
export async function exportCsv<Row>(
  api: Pick<Api, 'get'>,
  {
    path,
    parameters,
    columns,
    getRows = (data) => data as readonly Row[],
    complete = async (rows) => rows,
    hasSeparator = false,
  }: Export<Row>,
): Promise<AsyncIterable<string>> {
  const page = async (cursor?: string) => {
    const asked = new URLSearchParams(parameters);
    asked.set('limit', String(pageSize));
    asked.delete('cursor');
    if (cursor !== undefined) asked.set('cursor', cursor);
    const { data, next } = await api.get<unknown>(`${path}?${asked}`);
    return { rows: await complete(getRows(data)), next };
  };
  const first = await page();
  return (async function* (): AsyncGenerator<string, void> {
    yield csvHead(columns, hasSeparator);
    let { rows, next } = first;
    let written = 0;
    for (;;) {
      yield csvRows(columns, rows);
      written += rows.length;
      if (next === undefined) return;
      if (written >= maxRows) {
        yield csvLine([`Stopped after ${written} rows, but there are more. Use narrower filters.`]);
        return;
      }
      try {
        ({ rows, next } = await page(next));
      } catch {
        yield csvLine([`Stopped after ${written} rows, because the bank did not respond. Download the file again.`]);
        return;
      }
    }
  })();
}

const isTime = (name: string): boolean => name.endsWith('_at');

/** `hasSeparator`: for spreadsheets that in many countries expect semicolons. Other programs read that line as a row. */
export function csvHead<Row>(columns: readonly CsvColumn<Row>[], hasSeparator: boolean): string {
  const title = (name: string) => (isTime(name) ? `${name} (${zoneName()})` : name);
  const titles = columns.map((column) => (typeof column === 'string' ? title(column) : column.title));
  return `\ufeff${hasSeparator ? 'sep=,\r\n' : ''}${csvLine(titles)}`;
}

export function csvRows<Row>(columns: readonly CsvColumn<Row>[], rows: readonly Row[]): string {
  return rows.map((row) => csvLine(columns.map((column) => cellText(row, column)))).join('');
}

function cellText<Row>(row: Row, column: CsvColumn<Row>): string | null | undefined {
  if (typeof column !== 'string') return column.value(row);
  const value: unknown = row[column];
  if (isTime(column) && typeof value === 'string') return sheetTime(value);
  return value === null || value === undefined ? undefined : Array.isArray(value) ? value.join(' ') : String(value);
}

/** Returns one line with every field in quotes. */
export function csvLine(values: readonly (string | null | undefined)[]): string {
  return `${values.map((value) => `"${harmless(value ?? '').replaceAll('"', '""')}"`).join(',')}\r\n`;
}

/**
 * Characters that begin a formula at the start of a cell, including their full-width forms. A tab, a line feed,
 * or a semicolon may start another cell.
 */
const formula = /(^|[;\t\r\n])([^\S\r\n]*[=+\-@＝＋－＠])|^(?=[\t\r])/g;

/**
 * Puts an apostrophe in front of a text if a spreadsheet would interpret a part of it as a formula. Plain
 * numbers and telephone numbers are not changed.
 */
function harmless(text: string): string {
  if (/^(-?\d+(\.\d+)?|\+\d+)$/.test(text)) return text;
  return text.replace(
    formula,
    (_found, before: string | undefined = '', begun: string | undefined = '') => `${before}'${begun}`,
  );
}

/** Returns the text as it was before a file of ours was written. */
export const unguarded = (text: string): string =>
  text.replace(
    /(^|[;\t\r\n])'(?=[^\S\r\n]*[=+\-@＝＋－＠])|^'(?=[\t\r])/g,
    (_found, before: string | undefined = '') => before,
  );
