/** Parses a file of payments saved by a spreadsheet. Pure. */

export const maxPayments = 1000;
/** The maximum size of the text of a file. */
const maxCharacters = 256 * 1024;

export const columns = ['from', 'to', 'amount', 'currency', 'reference', 'description'] as const;
type Column = (typeof columns)[number];

/** One line of the file: the trimmed values of its columns, and its number. */
export type FileLine = Record<Column, string> & { line: number };

/** Returns the lines with payments, without blank lines, or what is wrong with the whole file. */
export function linesIn(text: string): { lines: FileLine[] } | { wrong: string } {
  if (text.length > maxCharacters) return { wrong: 'The file is too large. Divide it into several files.' };
  const named = /^sep=(.)\r?\n/i.exec(text);
  const body = named ? text.slice(named[0].length) : text;
  const separator = named?.[1] ?? separatorOf(body);
  const records = recordsOf(body, separator, named ? 2 : 1);
  if (records === undefined)
    return { wrong: 'The file cannot be read: a quotation mark is not closed. Save it as CSV again.' };
  const [head, ...rest] = records.filter(({ fields }) => fields.some((field) => field !== ''));
  const names = (head?.fields ?? []).map((name) => name.toLowerCase().replace(/ account$/, ''));
  const unknown = names.filter((name) => name !== '' && !columns.includes(name as Column));
  if (unknown.length > 0 || !names.includes('amount') || !(names.includes('from') || names.includes('to')))
    return { wrong: headWrong(unknown) };
  if (new Set(names).size < names.length) return { wrong: 'A column is named twice in the first line.' };
  if (rest.length === 0) return { wrong: 'There is no payment in the file.' };
  if (rest.length > maxPayments)
    return {
      wrong: `The file has ${rest.length} payments; at most ${maxPayments} are accepted at once. Divide it into several files.`,
    };
  const lines = rest.map(({ line, fields }) => {
    const value = (name: Column) => fields[names.indexOf(name)] ?? '';
    const values = Object.fromEntries(columns.map((name) => [name, value(name)])) as Record<Column, string>;
    return { ...values, from: values.from.toUpperCase(), to: values.to.toUpperCase(), line };
  });
  return { lines };
}

function headWrong(unknown: readonly string[]): string {
  const what =
    unknown.length > 0
      ? `The first line has an unknown column: “${unknown[0]?.slice(0, 40)}”.`
      : 'The first line must name the columns.';
  return `${what} Columns are: ${columns.join(', ')}. The amount is required, and from, to, or both.`;
}

/** Spreadsheets in many countries write semicolons. */
function separatorOf(text: string): string {
  const [head = ''] = /\S.*/.exec(text) ?? [];
  const count = (mark: string) => head.split(mark).length;
  return [',', ';', '\t'].reduce((best, mark) => (count(mark) > count(best) ? mark : best));
}

/** Returns records with the line in which each begins, or undefined if a quotation mark is not closed. */
function recordsOf(text: string, separator: string, first: number): { line: number; fields: string[] }[] | undefined {
  const mark = separator === '\t' ? '\\t' : `\\${separator}`;
  const field = new RegExp(`(?:[ ]*"([^"]*(?:""[^"]*)*)"[ ]*|([^"${mark}\\r\\n]*))(${mark}|\\r?\\n|$)`, 'y');
  const records: { line: number; fields: string[] }[] = [];
  let [line, record] = [first, { line: first, fields: [] as string[] }];
  while (field.lastIndex < text.length) {
    const found = field.exec(text);
    if (!found) return undefined;
    const [all, quoted, plain = '', end] = found;
    record.fields.push((quoted?.replaceAll('""', '"') ?? plain).trim());
    line += all.split('\n').length - 1;
    if (end === separator && field.lastIndex < text.length) continue;
    records.push(record);
    record = { line, fields: [] };
  }
  return records;
}
