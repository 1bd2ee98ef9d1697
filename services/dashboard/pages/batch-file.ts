import { setImmediate as otherRequests } from 'node:timers/promises';
import { CsvError, csvRecords } from '#libs/service/csv.ts';
import { unguarded } from '../html/csv.ts';

/** Reads a file of payments. */

export const maxPayments = 1000;
const maxBytes = 512 * 1024;

export const columns = ['from', 'to', 'amount', 'currency', 'reference', 'description'] as const;
type Column = (typeof columns)[number];
/** A column of the file of omitted lines, which can be corrected and uploaded again. It is not read. */
export const whyColumn = 'why';

/** One line of the file: the values of its columns, its number, and why it cannot be read if it cannot. */
export type FileLine = Record<Column, string> & { line: number; fault?: string | undefined };

/** Returns the lines with payments, or what is wrong with the whole file. */
export async function linesIn(text: string): Promise<{ lines: FileLine[] } | { wrong: string }> {
  const lines: FileLine[] = [];
  let names: string[] | undefined;
  try {
    for await (const { line, fields, fault } of csvRecords(splitPieces(text), { bytes: maxBytes, rows: maxPayments })) {
      if (names === undefined) {
        names = fields.map((name) => name.toLowerCase().replace(/ account$/, ''));
        const wrong = headWrong(names);
        if (wrong !== undefined) return { wrong };
      } else lines.push({ ...toColumns(names, fields), line, fault });
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return { wrong: `The file cannot be read: ${error.message}. Correct it, or divide it into several files.` };
  }
  if (names === undefined) return { wrong: 'The file is empty.' };
  return lines.length === 0 ? { wrong: 'There is no payment in the file.' } : { lines };
}

/** Other requests run between the pieces, because a large file takes a while. */
async function* splitPieces(text: string): AsyncGenerator<string, void> {
  for (const [piece] of text.matchAll(/[^]{1,8192}/gu)) {
    await otherRequests();
    yield piece;
  }
}

function headWrong(names: string[]): string | undefined {
  const wanted = `Columns are: ${columns.join(', ')}. The amount is required, and from, to, or both.`;
  const unknown = names.find((name) => name !== whyColumn && !(columns as readonly string[]).includes(name));
  if (unknown !== undefined) return `The first line has an unknown column: “${unknown.slice(0, 40)}”. ${wanted}`;
  if (!names.includes('amount') || !(names.includes('from') || names.includes('to')))
    return `The first line must name the columns. ${wanted}`;
  return new Set(names).size < names.length ? 'A column is named twice in the first line.' : undefined;
}

function toColumns(names: string[], fields: string[]): Record<Column, string> {
  // The file of omitted lines is ours: its texts must not come back with what guards a spreadsheet.
  const read = names.includes(whyColumn) ? unguarded : (text: string) => text;
  const values = columns.map((name) => [name, read(fields[names.indexOf(name)] ?? '').trim()]);
  const { from, to, ...rest } = Object.fromEntries(values) as Record<Column, string>;
  return { from: from.toUpperCase(), to: to.toUpperCase(), ...rest };
}
