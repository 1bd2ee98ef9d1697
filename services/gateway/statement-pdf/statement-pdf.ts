import PDFDocument from 'pdfkit';
import type { EntryLine, Statement } from '#libs/contracts/resources.ts';
import { type Style, TextWriter } from './written-text.ts';

/** The name and address of the bank, as printed on its letters. */
export interface Letterhead {
  name: string;
  /** The lines of the address. */
  address: string[];
  /** IANA name of the zone in which times are printed. */
  timeZone: string;
}

/** All data that is printed. */
export interface PrintedStatement {
  /** It contains all entries of the period. */
  statement: Statement;
  /** The lines of name and address, or none if the caller may not see them. */
  holder: string[];
  letterhead: Letterhead;
  /** ISO 8601. */
  created_at: string;
}

const margin = 40;
const page = { width: 595, height: 842 };
const width = page.width - 2 * margin;
const bottom = page.height - 60;
const text: Style = { size: 8 };
const strong: Style = { size: 8, bold: true };
const lineHeight = 11;

/** The columns are wide enough for amounts of 15 digits. */
const columns = {
  booked: { x: margin, width: 72 },
  details: { x: margin + 76, width: 176 },
  debit: { x: margin + 256, width: 84 },
  credit: { x: margin + 342, width: 84 },
  balance: { x: margin + 428, width: width - 428 },
};
type Column = keyof typeof columns;

/**
 * Returns the statement as a PDF file: letterhead, balances, one row per entry, and on every page its number and the
 * number of pages.
 */
export async function statementPdf({ statement, holder, letterhead, created_at }: PrintedStatement): Promise<Buffer> {
  const title = `Statement of account ${statement.account_number}`;
  const doc = new PDFDocument({
    size: [page.width, page.height],
    margin: 0,
    autoFirstPage: false,
    // The number of pages is known only after the last one.
    bufferPages: true,
    lang: 'en',
    info: { Title: title, Author: letterhead.name, CreationDate: new Date(created_at) },
  });
  const chunks: Buffer[] = [];
  doc.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise<void>((resolve, reject) => doc.on('end', resolve).on('error', reject));
  const sheet = new Sheet(doc);
  const time = timeIn(letterhead.timeZone);
  const money = (decimal: string): string => `${grouped(decimal)} ${statement.currency}`;
  head(sheet, letterhead, holder);
  facts(sheet, [
    ['Account', `${statement.account_number}, ${statement.currency}`],
    ['Period', periodText(statement, time)],
    ['Times', letterhead.timeZone],
    ['Issued', time(created_at)],
    ['Opening balance', money(statement.opening_balance)],
    ['Credits', money(statement.credit_total)],
    ['Debits', money(statement.debit_total)],
    ['Closing balance', money(statement.closing_balance)],
  ]);
  sheet.onNewPage = () => tableHead(sheet);
  tableHead(sheet);
  balanceRow(sheet, 'Opening balance', statement.opening_balance);
  for (const entry of statement.entries) entryRow(sheet, entry, time);
  balanceRow(sheet, 'Closing balance', statement.closing_balance);
  if (sheet.writer.anyMissing) sheet.paragraph('\uFFFD stands for characters that cannot be printed here.', text);
  footers(sheet, `${letterhead.name} · ${title}`);
  doc.end();
  await ended;
  return Buffer.concat(chunks);
}

/** The position of the next line. A new page is added when a page is full. */
class Sheet {
  readonly doc: InstanceType<typeof PDFDocument>;
  readonly writer: TextWriter;
  y = 0;
  /** Called at the top of each page except the first. */
  onNewPage: () => void = () => undefined;

  constructor(doc: InstanceType<typeof PDFDocument>) {
    this.doc = doc;
    this.writer = new TextWriter(doc);
    this.#newPage();
  }

  #newPage(): void {
    this.doc.addPage();
    this.y = margin + lineHeight;
  }

  /** Starts a new page unless so many lines fit on this one. */
  reserve(lines: number): void {
    if (this.y + (lines - 1) * lineHeight <= bottom) return;
    this.#newPage();
    this.onNewPage();
  }

  /** Writes as much of the text as fits on one line. */
  line(content: string, x: number, y: number, width: number, style: Style): void {
    const [line] = this.writer.lines(content, width, style);
    if (line) this.writer.write(line, x, y, width, style);
  }

  paragraph(content: string, style: Style, height = lineHeight): void {
    for (const line of this.writer.lines(content, width, style)) {
      this.reserve(1);
      this.writer.write(line, margin, this.y, width, style);
      this.y += height;
    }
  }

  /** Writes a row of cells. The longest cell determines its height. */
  row(cells: Partial<Record<Column, string>>, style: Style): void {
    const written = (Object.entries(cells) as [Column, string][]).map(([column, content]) => ({
      box: columns[column],
      style: { ...style, align: column === 'booked' || column === 'details' ? ('left' as const) : ('right' as const) },
      lines: this.writer.lines(content, columns[column].width, style),
    }));
    const height = Math.max(...written.map(({ lines }) => lines.length));
    this.reserve(height);
    for (const { box, style: own, lines } of written)
      for (const [i, line] of lines.entries()) this.writer.write(line, box.x, this.y + i * lineHeight, box.width, own);
    this.y += height * lineHeight + 3;
  }

  rule(): void {
    const y = this.y - lineHeight + 2;
    this.doc
      .moveTo(margin, y)
      .lineTo(margin + width, y)
      .lineWidth(0.5)
      .stroke('#888888')
      .fillColor('black');
  }
}

function head(sheet: Sheet, { name, address }: Letterhead, holder: string[]): void {
  sheet.paragraph(name, { size: 14, bold: true }, 18);
  for (const line of address) sheet.paragraph(line, text);
  sheet.y += 14;
  for (const line of holder) sheet.paragraph(line, { size: 10 }, 14);
  sheet.y += 14;
  sheet.paragraph('Account statement', { size: 12, bold: true }, 18);
}

function facts(sheet: Sheet, rows: [string, string][]): void {
  for (const [name, value] of rows) {
    sheet.reserve(1);
    sheet.line(name, margin, sheet.y, 100, strong);
    for (const line of sheet.writer.lines(value, width - 104, text)) {
      sheet.writer.write(line, margin + 104, sheet.y, width - 104, text);
      sheet.y += lineHeight;
    }
  }
  sheet.y += lineHeight;
}

function tableHead(sheet: Sheet): void {
  sheet.row({ booked: 'Booked', details: 'Details', debit: 'Debit', credit: 'Credit', balance: 'Balance' }, strong);
  sheet.rule();
  sheet.y += 3;
}

function balanceRow(sheet: Sheet, name: string, balance: string): void {
  sheet.row({ details: name, balance: grouped(balance) }, strong);
}

function entryRow(sheet: Sheet, entry: EntryLine, time: (iso: string) => string): void {
  const { transaction_type, counterparty_account_number: counterparty, description, reference } = entry;
  const details = [
    counterparty === undefined ? transaction_type : `${transaction_type} ${counterparty}`,
    ...(description ? [description] : []),
    ...(reference ? [`Reference ${reference}`] : []),
  ];
  sheet.row(
    {
      booked: time(entry.created_at),
      details: details.join('\n'),
      [entry.direction]: grouped(entry.amount),
      balance: grouped(entry.balance_after),
    },
    text,
  );
}

function footers(sheet: Sheet, name: string): void {
  const { count } = sheet.doc.bufferedPageRange();
  for (let number = 1; number <= count; number++) {
    sheet.doc.switchToPage(number - 1);
    const y = page.height - margin;
    sheet.line(name, margin, y, width - 80, text);
    sheet.line(`Page ${number} of ${count}`, margin + width - 80, y, 80, { ...text, align: 'right' });
  }
}

function periodText({ from, to }: Statement, time: (iso: string) => string): string {
  const begin = from === null ? 'from the opening of the account' : `from ${time(from)}`;
  return `${begin} ${to === null ? 'until now' : `to before ${time(to)}`}`;
}

/** Returns a function that formats date and time of day in that zone. */
function timeIn(timeZone: string): (iso: string) => string {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  return (iso) => format.format(new Date(iso));
}

/** Formats 1234567.50 as 1,234,567.50. Pure. */
export function grouped(decimal: string): string {
  return decimal.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',');
}
