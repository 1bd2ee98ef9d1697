import type { EntryLine, Statement } from '#libs/contracts/statements.ts';
import {
  amountText,
  bankAddress,
  bankDay,
  bankName,
  dayEndingAt,
  dayText,
  moneyText,
  movedWords,
  movementTitle,
  startOfDay,
  timeText,
  zoneText,
} from '#libs/service/formats.ts';
import { type Html, html, trusted } from '#libs/service/html.ts';

/** All data that is printed. */
export interface PrintedStatement {
  /** It contains all entries of the period. */
  statement: Statement;
  /** The lines of name and address, or none if the caller may not see them. */
  holder: readonly string[];
  /** The names of the owners of other accounts by account ids, as far as the caller may see them. */
  payees: ReadonlyMap<string, string>;
  /** ISO 8601. */
  created_at: string;
}

/**
 * The style of the page. The browser's fonts write every script. The heads of the columns are repeated and pages are
 * numbered (CSS Paged Media 3, margin boxes), where the browser supports it.
 */
export const stylesheet = `
@page { size: A4; margin: 16mm 14mm 20mm; @bottom-right { content: "Page " counter(page) " of " counter(pages); font: 8pt sans-serif; } }
body { max-width: 182mm; margin: 10mm auto; font: 10pt/1.4 system-ui, sans-serif; color: #111; background: #fff; }
h1 { font-size: 14pt; } .bank { font-size: 16pt; font-weight: 600; }
address { font-style: normal; white-space: pre-line; } .holder { margin: 10mm 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 6mm; } dt { font-weight: 600; } dd { margin: 0; }
table { width: 100%; border-collapse: collapse; } th { text-align: start; border-bottom: 1px solid #555; }
th, td { padding: 1mm 1.5mm; vertical-align: top; overflow-wrap: anywhere; }
tr { break-inside: avoid; } tbody tr { border-bottom: 1px solid #ddd; } .sum td { font-weight: 600; }
.amount { text-align: end; white-space: nowrap; font-variant-numeric: tabular-nums; } time { white-space: nowrap; }
small { display: block; color: #444; }
@media print { body { margin: 0; max-width: none; } thead { display: table-header-group; } }
`;

/**
 * Returns the statement as a self-contained page: letterhead, balances, and one row per entry, in the bank's formats of
 * amounts and times. Text of any script and direction keeps to its own cell.
 */
export function printedStatement({ statement, holder, payees, created_at }: PrintedStatement): string {
  const { account_number, currency, opening_balance, closing_balance, credit_total, debit_total } = statement;
  const money = (decimal: string) => amountText(decimal, currency);
  const { debit, credit } = movedWords(account_number);
  const facts: [name: string, value: string][] = [
    ['Account', `${account_number}, ${currency}`],
    ['Period', periodText(statement)],
    ['Times', zoneText()],
    ['Issued', timeText(created_at)],
    ['Opening balance', money(opening_balance)],
    [credit.title, money(credit_total)],
    [debit.title, money(debit_total)],
    ['Closing balance', money(closing_balance)],
  ];
  return `<!doctype html>\n${
    html`<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Statement of account ${account_number} – ${bankName()}</title>
<style>${trusted(stylesheet)}</style>
</head>
<body>
<header><div class="bank">${bankName()}</div><address>${bankAddress().join('\n')}</address></header>
${holder.length > 0 && html`<address class="holder" dir="auto">${holder.join('\n')}</address>`}
<h1>Account statement</h1>
<dl>${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
<table>
<thead><tr><th>Posted</th><th>Details</th><th class="amount">${debit.title}</th><th class="amount">${credit.title}</th><th class="amount">Balance</th></tr></thead>
<tbody>
${sumRow('Opening balance', opening_balance, currency)}
${statement.entries.map((entry) => entryRow(entry, account_number, payees))}
${sumRow('Closing balance', closing_balance, currency)}
</tbody>
</table>
</body>
</html>`.text
  }\n`;
}

function sumRow(name: string, balance: string, currency: string): Html {
  return html`<tr class="sum"><td></td><td>${name}</td><td></td><td></td><td class="amount">${moneyText(balance, currency)}</td></tr>\n`;
}

function entryRow(entry: EntryLine, accountNumber: string, payees: PrintedStatement['payees']): Html {
  const {
    counterparty_account_id: otherId = '',
    counterparty_account_number,
    description,
    reference,
    currency,
  } = entry;
  const other = [payees.get(otherId), counterparty_account_number].filter((text) => text !== undefined).join(', ');
  const amount = (direction: EntryLine['direction']) =>
    entry.direction === direction && moneyText(entry.amount, currency);
  return html`<tr><td><time datetime="${entry.created_at}">${timeText(entry.created_at)}</time></td>
<td>${movementTitle(entry, accountNumber)} <bdi>${other}</bdi>${entry.reversed_by_transaction_id !== undefined && html`<small>Reversed</small>`}${description && html`<small dir="auto">${description}</small>`}${reference && html`<small>Reference <bdi>${reference}</bdi></small>`}${isDated(entry) && html`<small>Value date ${dayText(entry.effective_date ?? '')}</small>`}</td>
<td class="amount">${amount('debit')}</td><td class="amount">${amount('credit')}</td><td class="amount">${moneyText(entry.balance_after, currency)}</td></tr>
`;
}

/** The value date is printed if it is not the day of the posting. */
function isDated({ effective_date: day, created_at }: EntryLine): boolean {
  return day !== undefined && day !== bankDay(Date.parse(created_at));
}

/** Whole days are named; other times are as they are. */
function periodText({ from, to, effective_from: first, effective_to: last }: Statement): string {
  if ((first ?? last) !== undefined)
    return `value dates ${first === undefined ? '' : `from ${dayText(first)} `}${last === undefined ? 'until now' : `to ${dayText(last)}`}`;
  const begins = from === null || from === startOfDay(bankDay(Date.parse(from)));
  const lastDay = to === null ? undefined : dayEndingAt(to);
  if (begins && lastDay !== undefined)
    return `${from === null ? 'from the opening of the account' : `from ${dayText(bankDay(Date.parse(from)))}`} to ${dayText(lastDay)}`;
  const begin = from === null ? 'from the opening of the account' : `from ${timeText(from)}`;
  return `${begin} until ${to === null ? 'now' : timeText(to)}`;
}
