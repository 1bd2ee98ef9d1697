/** Reads and writes CSV (RFC 4180, UTF-8) record by record. */
export interface CsvRecord {
  /** The line on which the record begins, from 1. */
  line: number;
  fields: string[];
}

export class CsvError extends Error {
  override name = 'CsvError';

  constructor(line: number, what: string) {
    super(`line ${line}: ${what}`);
  }
}

/** Without this limit an unclosed quote would make the rest of the file one field. */
const longestRecord = 65_536;
const field = /"([^"]*(?:""[^"]*)*)"(?=,|$)|[^",]*(?=,|$)/y;

/**
 * Returns the records of a file. At most one chunk and one record are in memory. Empty lines are skipped. Throws a
 * CsvError with the line if the file is not valid CSV or UTF-8.
 */
export async function* csvRecords(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<CsvRecord, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  let record: string | undefined;
  let [line, begun] = [0, 1];
  const decoded = (chunk?: Uint8Array): string => {
    try {
      return rest + (chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true }));
    } catch {
      throw new CsvError(line + 1, 'is not UTF-8, here or within the next 64 KiB');
    }
  };
  function* taken(lines: string[]): Generator<CsvRecord, void> {
    for (const text of lines) {
      line++;
      record = record === undefined ? text : `${record}\n${text}`;
      if (record.length > longestRecord)
        throw new CsvError(begun, `is longer than ${longestRecord} characters: is a quote not closed?`);
      // A line feed between quotes belongs to the field.
      if (record.includes('"') && record.split('"').length % 2 === 0) continue;
      const whole = record.endsWith('\r') ? record.slice(0, -1) : record;
      if (whole !== '') yield { line: begun, fields: fieldsOf(whole, begun) };
      record = undefined;
      begun = line + 1;
    }
  }
  for await (const chunk of chunks) {
    const lines = decoded(chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > longestRecord) throw new CsvError(line + 1, `is longer than ${longestRecord} characters`);
    yield* taken(lines);
  }
  rest = decoded();
  if (rest !== '') yield* taken([rest]);
  if (record !== undefined) throw new CsvError(begun, 'has a quote that is not closed');
}

function fieldsOf(record: string, line: number): string[] {
  if (!record.includes('"')) return record.split(',');
  const fields: string[] = [];
  for (field.lastIndex = 0; ; field.lastIndex++) {
    const found = field.exec(record);
    if (!found) throw new CsvError(line, 'has a quote within a field, or text behind a closing quote');
    fields.push(found[1] === undefined ? found[0] : found[1].replaceAll('""', '"'));
    if (field.lastIndex === record.length) return fields;
  }
}

/** Returns one record with its line feed. csvRecords reads it as the same fields. */
export function csvLine(fields: readonly string[]): string {
  return `${fields.map((text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(',')}\n`;
}
