import { z } from 'zod';
import type { Account } from '#libs/contracts/accounts.ts';
import type { Batch, BatchSummary, ItemResult } from '#libs/contracts/batches.ts';
import { isCurrency } from '#libs/contracts/money.ts';
import { amountText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { type ActorNames, showActor } from '../html/actors.ts';
import { sumText, typedAmount } from '../html/amounts.ts';
import { type CsvColumn, csvHead, csvRows } from '../html/csv.ts';
import { confirmation, once, problem, reason, showField, type Wrong } from '../html/forms.ts';
import type { PageRequest } from '../html/frame.ts';
import { csrfField, type Person } from '../html/layout.ts';
import { pager, type Sorting, withQuery } from '../html/lists.ts';
import {
  emptyState,
  facts,
  idLink,
  notice,
  numeric,
  parts,
  pill,
  showTime,
  table,
  technical,
  toned,
  totalText,
} from '../html/show.ts';
import {
  type Checked,
  explainLine,
  type OmittedLine,
  type Payment,
  paymentKind,
  type RefusedLine,
} from './batch-check.ts';
import { columns, maxPayments, whyColumn } from './batch-file.ts';
import { confirmForm } from './confirmation.ts';
import { explainRefusal, idOfPosting } from './counter-instructions.ts';

/** The pages of batches. */

export const batchesUrl = '/admin/ui/counter/batches';
const previewUrl = `${batchesUrl}/preview`;
const sendUrl = `${batchesUrl}/sending`;

const example = `from,to,amount,reference,description
CHK-0000000001,SAV-0000000002,1500,,Wages of November
CHK-0000000001,SAV-0000000003,"1,250.50",,Wages of November
,SAV-0000000002,200,slip 7,Cash paid in`;

export function startPage(person: Person, values: URLSearchParams, wrong: Wrong): Html {
  const { attributes, text } = reason(wrong, 'file');
  const isAtomic = values.get('mode') === 'atomic';
  return html`<p>Many payments at once, from a file. You first see every payment and every error. Nothing is posted before you confirm.</p>
<form class="narrow" method="post" action="${previewUrl}" enctype="multipart/form-data">${csrfField(person.csrf)}${once()}${problem(wrong)}
<label>File of payments (CSV) <input type="file" name="file" accept=".csv,text/csv" required autofocus${attributes}>${text}</label>
<label><input type="checkbox" name="mode" value="atomic"${isAtomic && html` checked`}> Post nothing at all if one payment is refused (${String(maxPayments / 2)} payments at most)</label>
<div class="actions"><button>Check the payments</button></div>
</form>
<details${wrong.fields?.['file'] !== undefined && html` open`}><summary>Format of the file</summary>
<p>A table of your spreadsheet, saved as CSV. The first line names the columns: ${columns.join(', ')}; the amount is required, and from, to, or both.
With both it is a transfer or a loan repayment. With only to, cash is paid in; with only from, cash is paid out. A reference is for cash only.
${maxPayments} payments at most.</p>
<pre class="payload" tabindex="0" aria-label="Example of a file">${example}</pre></details>
<h2>Files that were sent</h2>
<details${wrong.fields?.['batch'] !== undefined && html` open`}><summary>Find one by its number</summary><form class="narrow" method="get" action="${batchesUrl}">${showField({ name: 'batch', label: 'Number of a batch', isRequired: true, maxLength: 40, placeholder: 'bat_…', hint: 'Shown on the page of the batch, and on every payment of it.' }, values, wrong)}
<div class="actions"><button class="secondary">Show</button></div></form></details>`;
}

/** The owners' names by account id, if they are few enough to be read. */
export type Names = ReadonlyMap<string, string>;

/** The number of payments of each kind, and their total. */
function sums(payments: readonly Payment[]): Html {
  const groups = Map.groupBy(payments, (payment) => `${paymentKind(payment)} ${payment.currency}`);
  return facts(
    [...groups.values()].map((rows) => {
      const [{ currency }] = rows as [Payment, ...Payment[]];
      const total = rows.reduce((sum, { amount }) => sumText(sum, amount, currency, 1n), '0');
      return [
        `${paymentKind(rows[0] as Payment)}s`,
        html`${String(rows.length)}, together <strong>${amountText(total, currency)}</strong>`,
      ] as const;
    }),
  );
}

export interface PreviewParts {
  file: string;
  isAtomic: boolean;
  checked: Checked;
  names: Names;
  /** The sealed payments, if there is something to send. */
  sealed: string | undefined;
  before: SentBefore;
}

/** The batches with the same content, and the names of those who sent them. */
export interface SentBefore {
  batches: readonly BatchSummary[];
  actors: ActorNames;
}

export function preview(visit: PageRequest, { file, isAtomic, checked, names, sealed, before }: PreviewParts): Html {
  const { payments, refused, repeated, unapproved } = checked;
  const said = isAtomic
    ? 'This file cannot be sent, because nothing is to be posted if a payment is refused. Correct the file and upload it again.'
    : 'These lines are omitted. Correct them and upload them later in a separate file.';
  const sendable = unapproved.length > 0 ? 0 : payments.length;
  return html`${facts([
    ['File', file],
    ['Can be sent', `${sendable} ${sendable === 1 ? 'payment' : 'payments'}`],
    ['Cannot be sent', refused.length > 0 && html`<strong>${String(refused.length)}</strong>${sumOfRefused(refused)}`],
    ['If a payment is refused', isAtomic ? 'nothing is posted' : 'the others are posted'],
  ])}
${refused.length > 0 && notice('error', html`<strong>${String(refused.length)} of ${String(refused.length + payments.length)} lines cannot be sent.</strong> ${said} ${download(file, refused)}`)}
${unapproved.length > 0 && notice('error', html`<strong>This file needs the approval of a second person, and a file cannot wait for one.</strong> ${unapproved.join(' ')} Take payments out until the rest fits, or let a colleague send them; or enter them by themselves, at the counter.`)}
${
  sealed !== undefined &&
  html`<h2>What is sent</h2>${sums(payments)}
${confirmForm(visit, { action: sendUrl, sealed, button: `Send ${payments.length} ${payments.length === 1 ? 'payment' : 'payments'}`, leave: html`<a href="${batchesUrl}">Cancel</a>`, fields: doubts(before, repeated) })}`
}
${refused.length > 0 && html`<h2>What cannot be sent</h2>${refusedTable(refused, names)}`}
${sealed !== undefined && html`<h2>The payments</h2>${paymentTable(payments, names)}`}
${sealed === undefined && html`<p><a role="button" autofocus href="${batchesUrl}">Upload another file</a></p>`}`;
}

/** A link to the refused lines as a file with the reasons, which can be corrected and uploaded. */
function download(file: string, rows: readonly RefusedLine[]): Html {
  const fields: CsvColumn<RefusedLine>[] = [
    ...columns.map((title) => ({ title, value: ({ line }: RefusedLine) => line[title] })),
    { title: whyColumn, value: ({ reason: why }) => why },
  ];
  const text = encodeURIComponent(`${csvHead(fields, false)}${csvRows(fields, rows)}`);
  return html`<a href="data:text/csv;charset=utf-8,${text}" download="omitted-${file.replace(/\.csv$/i, '')}.csv">Download them with the reasons</a>`;
}

/** The amount of a refused line if the counter can read it. */
function readAmount({ line, from, to }: RefusedLine): { amount: string; currency: string } | undefined {
  const currency = (from ?? to)?.currency;
  const read = currency === undefined ? undefined : typedAmount(line.amount, currency);
  return currency !== undefined && read && 'amount' in read ? { amount: read.amount, currency } : undefined;
}

/** What is lacking: the sum by currency, if every amount can be read. */
function sumOfRefused(rows: readonly RefusedLine[]): Html | false {
  const read = rows.map(readAmount);
  const sum = read.every((amount) => amount !== undefined) && totalText(read);
  return sum !== false && sum !== '' && html`, together <strong>${sum}</strong>`;
}

/** An account of a line, with its owner. */
const place = (account: Account | undefined, typed: string, names: Names): Html =>
  html`<span class="whole">${account?.account_number ?? (typed.slice(0, 40) || 'Cash')}</span>${account && names.has(account.account_id) && html`<br><span class="long">${names.get(account.account_id)}</span>`}`;

function refusedTable(rows: readonly RefusedLine[], names: Names = new Map()): Html {
  return table<RefusedLine>(
    'Refused lines',
    [
      numeric('Line', ({ line }) => String(line.line)),
      { title: 'Why', show: ({ reason: why }) => html`<strong class="text">${why}</strong>` },
      { title: 'From', show: ({ line, from }) => place(from, line.from, names) },
      { title: 'To', show: ({ line, to }) => place(to, line.to, names) },
      numeric('Amount', (row) => {
        const read = readAmount(row);
        return read ? amountText(read.amount, read.currency) : row.line.amount.slice(0, 40);
      }),
      { title: 'Description', show: ({ line }) => html`<span class="text">${line.description.slice(0, 255)}</span>` },
    ],
    rows,
    '',
  );
}

function paymentTable(rows: readonly Payment[], names: Names): Html {
  return table<Payment>(
    'Payments',
    [
      numeric('Line', ({ line }) => String(line.line)),
      { title: 'What', show: paymentKind },
      { title: 'From', show: ({ from }) => place(from, '', names) },
      { title: 'To', show: ({ to }) => place(to, '', names) },
      numeric('Amount', ({ amount, currency }) => amountText(amount, currency)),
      { title: 'Reference', show: ({ line }) => html`<span class="long">${line.reference}</span>` },
      { title: 'Description', show: ({ line }) => html`<span class="text">${line.description}</span>` },
    ],
    rows,
    '',
  );
}

/** Says what was perhaps not intended, and asks for a tick. */
function doubts({ batches, actors }: SentBefore, repeated: readonly number[]): Html | undefined {
  if (batches.length + repeated.length === 0) return undefined;
  const sent = batches.map(
    (batch) =>
      html`<li><a href="${batchesUrl}/${batch.batch_id}">${showFileName(batch)}</a>, ${showTime(batch.created_at)} by ${showActor(batch.actor, actors)}: ${String(batch.counts.completed)} posted, ${sumsText(batch) || 'nothing yet'}</li>`,
  );
  return notice(
    'warning',
    html`
${batches.length > 0 && html`<p><strong>A file with the same content was sent before:</strong></p><ul>${sent}</ul>`}
${repeated.length > 0 && html`<p><strong>The same payment is in the file more than once:</strong> see line ${repeated.slice(0, 20).join(', ')}${repeated.length > 20 && html` and ${String(repeated.length - 20)} more`}.</p>`}
${confirmation(batches.length > 0 ? 'Pay everything in this file once more' : 'Pay it more than once', {}, true)}`,
    true,
  );
}

/** Shown instead of sending what the person has to confirm first. */
export function askAgain(
  visit: PageRequest,
  { file, sealed, before, repeated }: Pick<PreviewParts, 'file' | 'before'> & { sealed: string; repeated: number[] },
): Html {
  const leave = html`<a href="${batchesUrl}">Do not send</a>`;
  return html`<p>Nothing of ${file} was posted yet.</p>
${confirmForm(visit, { action: sendUrl, sealed, button: 'Send', leave, fields: doubts(before, repeated) })}`;
}

const showFileName = ({ metadata, external_id }: BatchSummary): string =>
  metadata?.['file_name'] ?? external_id ?? 'by a program, without a name';

/** Lines that were not sent, in one text of the metadata: number, from, to, amount, currency, code of the refusal. */
const omittedSchema = z.array(z.tuple([z.number(), z.string(), z.string(), z.string(), z.string(), z.string()]));
const mostTexts = 12;
const longestText = 500;

/**
 * Returns what the metadata of a batch says of lines that were not sent with it: their numbers, and as many of them as it can
 * have. Events show it, also to those who may not see accounts, so balances, and what is no account number, amount, or
 * currency, and may be a name, are left out. Pure.
 */
export function toOmitted(refused: readonly OmittedLine[]): Record<string, string> {
  if (refused.length === 0) return {};
  const numbers = refused.map(({ line }) => line.line).join(', ');
  const place = (text: string) => (/^[A-Z]{3}-\d{1,20}$/.test(text) ? text : '');
  const texts: string[] = [];
  for (const { line, code, currency: own } of refused) {
    const typed = line.currency.toUpperCase();
    const currency = isCurrency(typed) ? typed : typed === '' ? (own ?? '') : '';
    const amount = keptAmount(line.amount, currency || (own ?? ''));
    const row = JSON.stringify([line.line, place(line.from), place(line.to), amount, currency, code]);
    const last = texts.at(-1);
    const isFull = last === undefined || last.length + row.length + 1 > longestText;
    if (isFull && texts.length === mostTexts) break;
    if (isFull) texts.push(`[${row}]`);
    else texts[texts.length - 1] = `${last.slice(0, -1)},${row}]`;
  }
  return {
    omitted: String(refused.length),
    omitted_lines:
      numbers.length <= longestText ? numbers : `${numbers.slice(0, numbers.lastIndexOf(',', 490))} and more`,
    ...Object.fromEntries(texts.map((text, i) => [`omitted_${i + 1}`, text])),
  };
}

/** Returns the amount as the counter reads it; what it cannot read, only if it consists of digits and their marks. */
function keptAmount(typed: string, currency: string): string {
  const read = isCurrency(currency) ? typedAmount(typed, currency) : undefined;
  if (read && 'amount' in read) return read.amount;
  return /^[-+\d.,' ]{1,30}$/.test(typed) ? typed : '';
}

const omittedIn = ({ metadata }: BatchSummary): { count: number; lines: string } => ({
  count: Number.parseInt(metadata?.['omitted'] ?? '0', 10) || 0,
  lines: metadata?.['omitted_lines'] ?? '',
});

/** Returns the results of a batch and the lines of its file that were never sent, in the order of the file. Pure. */
export function resultRows({ results, metadata }: Pick<Batch, 'results' | 'metadata'>): ResultRow[] {
  const never = keptLines(metadata).map(
    ([line, from, to, amount, currency, code]): ResultRow => ({
      ...{ line: String(line), status: 'Never sent', kind: '', from, to, amount, currency, reason: explainLine(code) },
      ...{ reference: '', description: '', id: undefined },
    }),
  );
  const sent = results.map(resultRow);
  return never.length === 0 ? sent : [...sent, ...never].sort((one, other) => Number(one.line) - Number(other.line));
}

const keptLines = (metadata: Batch['metadata']) =>
  Object.entries(metadata ?? {}).flatMap(([name, text]) =>
    /^omitted_\d+$/.test(name) ? (omittedSchema.safeParse(parsed(text)).data ?? []) : [],
  );

/** Says how many lines were never sent and are not among the rows, if there are any: the metadata cannot have all. Pure. */
export function sayNotKept(batch: BatchSummary): string | undefined {
  const count = omittedIn(batch).count - keptLines(batch.metadata).length;
  if (count <= 0) return undefined;
  return `${count} more ${count === 1 ? 'line is' : 'lines are'} not kept: see your file.`;
}

/** Any program can write the metadata of its batches. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const sumsText = ({ totals }: BatchSummary): string =>
  totals.map(({ amount, currency }) => amountText(amount, currency)).join(', ');

/** The list of batches. `isFiltered`: there may be others. */
export function batchTable(rows: readonly BatchSummary[], names: ActorNames, sort: Sorting, isFiltered: boolean): Html {
  return table<BatchSummary>(
    'Files that were sent',
    [
      { title: 'Sent', show: ({ created_at }) => showTime(created_at), sort },
      {
        title: 'File',
        show: (row) =>
          html`<a class="long" href="${batchesUrl}/${row.batch_id}">${showFileName(row)}</a>${omittedIn(row).count > 0 && html`<br><span class="quiet">${String(omittedIn(row).count)} lines never sent</span>`}`,
      },
      { title: 'Sent by', show: ({ actor }) => showActor(actor, names) },
      { title: 'State', show: ({ status }) => pill(status, states[status]) },
      numeric('Posted', ({ counts }) => String(counts.completed)),
      numeric('Refused', ({ counts }) => String(counts.failed)),
      numeric('Total', sumsText),
    ],
    rows,
    isFiltered
      ? emptyState('No file matches.', { href: batchesUrl, text: 'Clear the filters' })
      : 'No file was sent yet.',
  );
}

const states = { Completed: 'done', Pending: 'not known yet', Refused: 'refused' } as const;

/** Shown while the outcome is unknown. */
export function unknownBatch(visit: PageRequest, file: string, sealed: string): Html {
  return html`${notice(
    'warning',
    html`The bank has not confirmed yet whether the payments of ${file} were posted.
<strong>Do not upload the file again.</strong> Ask again here: however often you ask, each payment is posted at most once.`,
    true,
  )}
${confirmForm(visit, { action: sendUrl, sealed, button: 'Ask again', leave: html``, fields: html`<input type="hidden" name="confirmed" value="yes">` })}`;
}

/** Shown if the whole file was refused. */
export function refusedBatch(rows: readonly RefusedLine[], text: string): Html {
  return html`${notice('error', html`<strong>The file was refused, and nothing was posted.</strong> ${text}`)}
${rows.length > 0 && refusedTable(rows)}
<p><a role="button" autofocus href="${batchesUrl}">Upload another file</a></p>`;
}

/** A row of the results, for every kind of payment. */
export interface ResultRow {
  /** The line in the file, or the position of the item in a batch that a program has sent. */
  line: string;
  status: ItemResult['status'] | 'Never sent';
  kind: string;
  /** Ids of accounts; of a line that was never sent, numbers as they were typed. */
  from: string | undefined;
  to: string | undefined;
  amount: string;
  currency: string | null;
  reference: string;
  description: string;
  reason: string;
  id: string | undefined;
}

/** Returns the row of an item. Pure. */
function resultRow({ index, status, transaction, transfer, error }: ItemResult): ResultRow {
  const posting = transfer ?? transaction;
  const isDeposit = transaction?.transaction_type === 'Deposit';
  return {
    line: posting?.metadata?.['line'] ?? String(Number(index) + 1),
    status,
    kind: transaction?.transaction_type ?? (transfer ? 'Transfer' : ''),
    from: transfer?.from_account_id ?? (isDeposit ? undefined : transaction?.account_id),
    to: transfer?.to_account_id ?? (isDeposit ? transaction.account_id : undefined),
    amount: posting?.amount ?? '',
    currency: posting?.currency ?? null,
    reference: transaction?.reference ?? '',
    description: posting?.description ?? '',
    reason: error === undefined ? '' : explainRefusal(error.code),
    id: posting && idOfPosting(posting),
  };
}

export interface BatchPage {
  batch: Batch;
  /** The rows of this page. */
  rows: readonly ResultRow[];
  accounts: ReadonlyMap<string, Account>;
  names: Names;
  /** The name of who sent it. */
  actors: ActorNames;
  /** Only those with this status. */
  only: ResultRow['status'] | undefined;
  /** The cursor of the next page. */
  next: string | undefined;
}

export const resultWords = {
  Completed: 'Posted',
  Failed: 'Refused',
  Pending: 'Not known yet',
  'Never sent': 'Never sent',
} as const;

/** The parts of the results, by the parameter `only`. */
export const resultParts: readonly (readonly [only: string, status: ResultRow['status'] | undefined])[] = [
  ['', undefined],
  ['refused', 'Failed'],
  ['never-sent', 'Never sent'],
];

/** The results of a batch. The page refreshes itself while some are pending. */
export function batchPage(visit: PageRequest, page: BatchPage): Html {
  const { batch, actors, only, next } = page;
  const { batch_id, counts, results, status } = batch;
  const url = `${batchesUrl}/${batch_id}`;
  const done = Number(counts.completed) + Number(counts.failed);
  const isPending = status === 'Pending';
  const omitted = omittedIn(batch);
  const notKept = only === 'Failed' ? undefined : sayNotKept(batch);
  return html`<div id="batch"${isPending && html` hx-get="${withQuery(visit.path, visit.query)}" hx-trigger="every 2s" hx-select="#batch" hx-swap="outerHTML"`}>
${
  isPending
    ? html`${notice('info', html`${String(done)} of ${String(results.length)} payments are decided. The page updates itself; do not upload the file again.`)}
<progress value="${String(done)}" max="${String(results.length)}" aria-label="Payments that are decided"></progress>`
    : Number(counts.failed) + omitted.count === 0
      ? notice('success', 'All payments were posted.')
      : notice(
          'warning',
          html`${Number(counts.failed) > 0 && html`<strong>${counts.failed} of ${String(results.length)} payments were refused.</strong> The reasons are below and in the file of results. `}${omitted.count > 0 && html`<strong>${String(counts.completed)} of ${String(results.length + omitted.count)} payments in the file were posted; ${String(omitted.count)} lines were never sent:</strong> ${omitted.lines}.`}`,
        )
}
${facts([
  ['Posted', String(counts.completed)],
  ['Refused', String(counts.failed)],
  ['Not known yet', isPending && String(counts.pending)],
  ['Never sent', omitted.count > 0 && String(omitted.count)],
  ['Total posted', html`<strong>${sumsText(batch)}</strong>`],
  ['If a payment is refused', batch.mode === 'atomic' ? 'nothing is posted' : 'the others are posted'],
  ['File', batch.metadata?.['file_name']],
  ['Sent', html`${showTime(batch.created_at)} by ${showActor(batch.actor, actors)}`],
])}${technical([['Number of the batch', html`<code>${batch_id}</code>`]])}
<p class="actions"><a role="button" href="${url}/results.csv">Results as CSV</a> <a href="${url}/results.csv?sep=yes">for Excel</a> <a data-next href="${batchesUrl}">Upload another file</a></p>
${parts(
  'Payments',
  resultParts
    .filter(([, one]) => one !== 'Never sent' || omitted.count > 0)
    .map(([part, one]) => ({
      href: part === '' ? url : `${url}?only=${part}`,
      text: one === undefined ? 'All' : resultWords[one],
      isHere: one === only,
    })),
)}
${notKept !== undefined && html`<p>${notKept}</p>`}${resultTable(page)}
${pager(visit.path, visit.query, next)}</div>`;
}

/** What was typed for a line that was never sent may be no amount. */
const amountIn = ({ status, amount, currency }: ResultRow): string =>
  status === 'Never sent' ? `${amount} ${currency ?? ''}`.trim() : amount === '' ? '' : amountText(amount, currency);

function resultTable({ rows, accounts, names }: BatchPage): Html {
  const place = (id: string | undefined) =>
    id === undefined
      ? 'Cash'
      : html`<span class="name">${idLink(id, accounts.get(id)?.account_number ?? html`<code class="long">${id}</code>`)}</span>${names.has(id) && html`<br><span class="long">${names.get(id)}</span>`}`;
  return table<ResultRow>(
    'Payments',
    [
      numeric('Line', ({ line }) => line),
      {
        title: 'Status',
        show: ({ status, id }) =>
          status === 'Never sent'
            ? toned('wait', 'warning', status)
            : pill(status, id === undefined ? resultWords[status] : idLink(id, resultWords[status])),
      },
      { title: 'Why', show: ({ reason: why }) => html`<span class="text">${why}</span>` },
      { title: 'What', show: ({ kind }) => kind },
      { title: 'From', show: ({ from, kind }) => (kind === '' ? (from ?? '') : place(from)) },
      { title: 'To', show: ({ to, kind }) => (kind === '' ? (to ?? '') : place(to)) },
      numeric('Amount', amountIn),
      { title: 'Description', show: ({ description }) => html`<span class="text">${description}</span>` },
    ],
    rows,
    'There is none.',
  );
}
