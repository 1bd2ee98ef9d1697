import { extractText, getDocumentProxy } from 'unpdf';
import { expect, test } from 'vitest';
import type { EntryLine } from '#libs/contracts/resources.ts';
import { grouped, type PrintedStatement, statementPdf } from './statement-pdf.ts';

const letterhead = { name: 'Bank of Nairobi', address: ['1 Kenyatta Avenue', 'Nairobi'], timeZone: 'Africa/Nairobi' };

function entry(sequence: number, fields: Partial<EntryLine> = {}): EntryLine {
  return {
    entry_id: `ent_${sequence}`,
    operation_id: 'opr_1',
    transaction_id: 'txn_1',
    account_id: 'acc_1',
    sequence,
    direction: 'credit',
    side: 'CR',
    amount: '10.00',
    currency: 'KES',
    balance_after: `${sequence * 10}.00`,
    created_at: '2026-01-02T22:04:05.678Z',
    transaction_type: 'Deposit',
    description: null,
    reference: null,
    ...fields,
  };
}

function printed(entries: EntryLine[], fields: Partial<PrintedStatement> = {}): PrintedStatement {
  return {
    statement: {
      account_id: 'acc_1',
      account_number: 'SAV-1234567897',
      currency: 'KES',
      from: '2025-12-31T21:00:00.000Z',
      to: null,
      opening_balance: '1234567.50',
      closing_balance: '7654321.25',
      debit_total: '1.00',
      credit_total: '2.00',
      entry_count: entries.length,
      entries,
    },
    holder: [],
    letterhead,
    created_at: '2026-02-03T04:05:06.789Z',
    ...fields,
  };
}

/** Returns the text of each page. */
async function pagesOf(given: PrintedStatement): Promise<string[]> {
  const { text } = await extractText(await getDocumentProxy(new Uint8Array(await statementPdf(given))));
  return text;
}

test('shows the letterhead, the holder, the period in the bank’s time zone, and the balances', async () => {
  const [first = ''] = await pagesOf(printed([], { holder: ['Ada Lovelace', '12 St James Square'] }));
  for (const part of [
    'Bank of Nairobi',
    '1 Kenyatta Avenue',
    'Ada Lovelace',
    '12 St James Square',
    'SAV-1234567897, KES',
    'from 2026-01-01 00:00 until now',
    'Africa/Nairobi',
    '2026-02-03 07:05',
    'Opening balance 1,234,567.50 KES',
    'Closing balance 7,654,321.25 KES',
    'Credits 2.00 KES',
    'Debits 1.00 KES',
    'Page 1 of 1',
  ])
    expect(first).toContain(part);
});

test('every line is complete, for any number of lines, and every page has its number', async () => {
  const entries = Array.from({ length: 200 }, (_, i) =>
    entry(i + 1, {
      direction: i % 2 === 0 ? 'credit' : 'debit',
      transaction_type: 'Transfer',
      description: `Rent of month ${i + 1}, with more words than one line of its column has room for`,
      reference: `R-${i + 1}`,
      counterparty_account_number: `CHK-${1_000_000_000 + i}`,
    }),
  );
  const pages = await pagesOf(printed(entries));
  expect(pages.length).toBeGreaterThan(5);
  pages.forEach((page, i) => {
    expect(page).toContain(`Page ${i + 1} of ${pages.length}`);
    expect(page).toContain('Booked Details Debit Credit Balance');
  });
  const text = pages.join(' ').replace(/\s+/g, ' ');
  for (const [i] of entries.entries()) {
    expect(text).toContain(`Transfer CHK-${1_000_000_000 + i}`);
    expect(text).toContain(`Reference R-${i + 1} `);
    expect(text).toContain(`Rent of month ${i + 1}, with more words than one`);
    expect(text).toContain(grouped(`${(i + 1) * 10}.00`));
  }
  expect(text.match(/2026-01-03 01:04/g)).toHaveLength(200);
});

test('supports names of every script with a font; names without one are marked', async () => {
  const names = ['Ζωή Παπαδοπούλου', 'Наталья Ёлкина', 'अनुष्का पटेल', 'Nguyễn Thị Ánh'];
  const [first = ''] = await pagesOf(printed(names.map((description, i) => entry(i + 1, { description }))));
  const shown = first.normalize('NFC');
  for (const name of names) expect(shown.replace(/\s/g, '')).toContain(name.replace(/\s/g, ''));
  expect(shown).not.toContain('\uFFFD');
  const [other = ''] = await pagesOf(printed([entry(1, { description: '田中さん' })]));
  expect(other).toContain('\uFFFD\uFFFD\uFFFD\uFFFD');
  expect(other).toContain('stands for characters that cannot be printed here');
});

test('Arabic is written from right to left, with numbers and Latin words within it from left to right', async () => {
  const [first = ''] = await pagesOf(
    printed([entry(1, { description: 'محمد علي 2026 Nile (فرع)' })], { holder: ['فاطمة الزهراء'] }),
  );
  const text = first.normalize('NFKC').replace(/\s/g, '');
  // The file contains the letters in reading order.
  for (const part of ['محمد', 'علي', '2026', 'Nile', 'فرع', 'فاطمة', 'الزهراء']) expect(text).toContain(part);
});

test('digits of Arabic script are written from left to right, within Arabic text and alone', async () => {
  const descriptions = ['شارع النيل ١٢٫٣', 'Room ۴۵', '٦٧'];
  const file = await statementPdf(printed(descriptions.map((description, i) => entry(i + 1, { description }))));
  const { items } = await (await (await getDocumentProxy(new Uint8Array(file))).getPage(1)).getTextContent();
  const digits = (items as { str: string; transform: number[] }[])
    .filter(({ str }) => /[\u0660-\u066c\u06f0-\u06f9]/.test(str))
    .sort((a, b) => (b.transform[5] ?? 0) - (a.transform[5] ?? 0) || (a.transform[4] ?? 0) - (b.transform[4] ?? 0));
  expect(digits.map(({ str }) => str).join('')).toBe('١٢٫٣۴۵٦٧');
});

test('amounts have groups of three digits', () => {
  expect(['1', '1000', '999999999999.999', '0.1234', '1234567.50'].map(grouped)).toEqual([
    '1',
    '1,000',
    '999,999,999,999.999',
    '0.1234',
    '1,234,567.50',
  ]);
});
