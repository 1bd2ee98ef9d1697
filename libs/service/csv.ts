import { pipeline, Readable } from 'node:stream';
import { parse } from 'csv-parse';

/** Reads and writes CSV (RFC 4180), as spreadsheets and other systems write it. */

export interface CsvRecord {
  /** The line on which the record begins, from 1. */
  line: number;
  fields: string[];
  /**
   * Set if the record has a formula, or more or fewer values than the first one, even empty ones, or a value without a
   * name. It is then unknown which value belongs to which name: `1,500.75` without quotes is two values.
   */
  fault?: string;
}

/** What prevents the whole file from being read. */
export class CsvError extends Error {
  override name = 'CsvError';
  readonly line: number;
  readonly what: string;

  constructor(line: number, what: string) {
    super(`line ${line}: ${what}`);
    [this.line, this.what] = [line, what];
  }
}

/** In the order of preference if a first line contains equally many of them. */
const separators = [',', ';', '\t', '|'];
/** Without this limit an unclosed quotation mark would make the rest of the file one value. */
const longestRecord = 65_536;
const lineEnd = /\r\n|\r|\n/;

/**
 * Returns the records of a file; the first one contains the names. The separator is a comma, semicolon, tab, or `|`:
 * the one that the file names in a first line `sep=;`, as spreadsheets do, or the most frequent one of the first line.
 * Records without any value are skipped, and so are columns without a name and blanks around values that are not in
 * quotation marks. At most one chunk and one record are in memory. Throws a CsvError with the line if the file is not
 * CSV or exceeds a limit.
 */
export async function* csvRecords(
  text: AsyncIterable<string> | Iterable<string>,
  limits: { bytes?: number; rows?: number } = {},
): AsyncGenerator<CsvRecord, void> {
  const { rows = Infinity } = limits;
  const { first, chunks } = await beginning(text, limits.bytes ?? Infinity);
  const { separator, begins } = detectSeparator(first);
  let names: string[] | undefined;
  let [next, count] = [1, -1];
  const toRecord = (values: string[]): CsvRecord | undefined => {
    const line = next;
    // The parser counts a CRLF within quotation marks as two lines.
    next += values.reduce((lines, value) => lines + value.split(lineEnd).length - 1, 1);
    if (line < begins || values.every((value) => value.trim() === '')) return undefined;
    if (++count > rows) throw new CsvError(line, `is more than the ${rows} rows that a file may have`);
    names ??= values;
    const named = values.filter((_, at) => names?.[at] !== '');
    if (values.length !== names.length)
      return {
        line,
        fields: values,
        fault: `has ${values.length} values, but the first line has ${names.length} names`,
      };
    const isLost = values.some((value, at) => value !== '' && names?.[at] === '');
    const fault = isLost ? 'has a value in a column without a name' : values.some(isFormula) ? formula : undefined;
    return { line, fields: named, ...(fault !== undefined && { fault }) };
  };
  const parser = parse({
    delimiter: separator,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    trim: true,
    max_record_size: longestRecord,
    // Its type does not provide for another type of records.
    on_record: (values: string[]) => toRecord(values) as never,
  });
  // An error of the file is thrown by the iteration.
  pipeline(Readable.from(chunks), parser, () => undefined);
  try {
    yield* parser as AsyncIterable<CsvRecord>;
  } catch (error) {
    const { code = '', field } = error as { code?: string; field?: unknown };
    const beginsFormula = code === 'INVALID_OPENING_QUOTE' && String(field).trim() === '=';
    throw new CsvError(next, beginsFormula ? formula : (faults[code] ?? rethrown(error)));
  }
}

/** Spreadsheets keep the zeros in front of a number in this way. */
const isFormula = (value: string): boolean => /^="[^"]*"$/.test(value);
const formula = 'has a formula such as ="SAV-1" in place of a value: save the values themselves';
const within = 'has a quotation mark within a value, or text behind a closing one';
const faults: Record<string, string> = {
  CSV_QUOTE_NOT_CLOSED: 'has a quotation mark that is not closed',
  CSV_MAX_RECORD_SIZE: `is longer than ${longestRecord} bytes: is a quotation mark not closed?`,
  INVALID_OPENING_QUOTE: within,
  CSV_INVALID_CLOSING_QUOTE: within,
  CSV_NON_TRIMABLE_CHAR_AFTER_CLOSING_QUOTE: within,
};

function rethrown(error: unknown): never {
  throw error;
}

/** Returns the text without blanks in front and without what is in quotation marks. */
const unquoted = (text: string): string => text.trimStart().replaceAll(/"[^"]*(?:"|$)/g, '');

/** Reads the file up to its first line that is not blank. Returns that part, and all chunks. */
async function beginning(text: AsyncIterable<string> | Iterable<string>, maxBytes: number) {
  const source = Readable.from(text)[Symbol.asyncIterator]() as AsyncIterator<string>;
  let [first, bytes] = ['', 0];
  const read = async () => {
    const { done, value = '' } = await source.next();
    bytes += Buffer.byteLength(value);
    if (bytes > maxBytes) throw new CsvError(1, `begins a file of more than ${maxBytes} bytes`);
    return done ? undefined : value;
  };
  for (let chunk = await read(); chunk !== undefined; chunk = await read()) {
    first += chunk;
    if (lineEnd.test(unquoted(first)) || first.length > longestRecord) break;
  }
  async function* chunks(): AsyncGenerator<string, void> {
    yield first;
    for (let chunk = await read(); chunk !== undefined; chunk = await read()) yield chunk;
  }
  return { first, chunks: chunks() };
}

/** Returns the separator, and the line on which the first record may begin. */
function detectSeparator(first: string): { separator: string; begins: number } {
  const named = /^"?sep=([^"\r\n]*)"?(?:\r|\n|$)/i.exec(first)?.[1];
  if (named !== undefined) {
    if (separators.includes(named)) return { separator: named, begins: 2 };
    throw new CsvError(1, `names the separator “${named.slice(0, 10)}”, but only , ; | and a tab separate values`);
  }
  const [line = ''] = unquoted(first).split(lineEnd);
  const times = (mark: string) => line.split(mark).length;
  return { separator: separators.reduce((best, mark) => (times(mark) > times(best) ? mark : best)), begins: 1 };
}

const detectEncoding = ([one, two]: Uint8Array): string => {
  if (one === 0xff && two === 0xfe) return 'utf-16le';
  return one === 0xfe && two === 0xff ? 'utf-16be' : 'utf-8';
};

/** Decodes a file as spreadsheets save it: UTF-8, UTF-16 with a byte order mark, otherwise windows-1252. Pure. */
export function fileText(bytes: Uint8Array): string {
  try {
    return new TextDecoder(detectEncoding(bytes), { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/**
 * Decodes a file of any size in UTF-8, or UTF-16 with a byte order mark. Throws a CsvError for any other encoding,
 * because names in a wrong one could not be corrected later.
 */
export async function* decodeText(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  let decoder: InstanceType<typeof TextDecoder> | undefined;
  let [line, encoding] = [1, ''];
  const decoded = (chunk: Uint8Array, stream: boolean): string => {
    if (decoder === undefined) encoding = detectEncoding(chunk);
    decoder ??= new TextDecoder(encoding, { fatal: true });
    try {
      const text = decoder.decode(chunk, { stream });
      line += text.split('\n').length - 1;
      return text;
    } catch {
      throw new CsvError(line, `is not ${encoding.toUpperCase()}, here or within the next 64 KiB`);
    }
  };
  for await (const chunk of chunks) yield decoded(chunk, true);
  yield decoded(new Uint8Array(), false);
}

/** Returns one record with its line feed. csvRecords reads it as the same values. */
export function csvLine(fields: readonly string[]): string {
  const quoted = (text: string) =>
    /["\r\n\t,;|]|^\s|\s$/.test(text) || fields.length === 1 ? `"${text.replaceAll('"', '""')}"` : text;
  return `${fields.map(quoted).join(',')}\n`;
}
