import type { FastifyInstance } from 'fastify';
import { type Client, clientName } from '#libs/contracts/clients.ts';
import type { EntryLine, Statement } from '#libs/contracts/statements.ts';
import { plusDays } from '#libs/contracts/times.ts';
import { amountText, bankDay, dayText, endOfDay, movedWords, startOfDay, zoneText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import type { Api } from '../api.ts';
import { exportCsv } from '../html/csv.ts';
import { addApiPage, addDownload, addPage, type PageRequest } from '../html/frame.ts';
import { readOwnedAccount } from '../html/owners.ts';
import { desk, facts, notice, showTime } from '../html/show.ts';
import { accountHeading, accountLine, accountParts, movementTable } from './account-views.ts';
import { entryColumns } from './accounts.ts';
import { showAddress } from './client-views.ts';
import { addParties, type WithParties } from './parties.ts';

/** The maximum number of entries on the page. A statement with more can be downloaded as CSV. */
const maxEntries = 2_000;
const pageSize = 500;

interface Period {
  from_day: string;
  to_day: string;
}

/** The statement of an account for a period of days, on one page that prints well. */
export function addStatement(app: FastifyInstance): void {
  const url = '/admin/ui/accounts/:account_id/statement';
  const page = { title: 'Statement', scope: 'transactions:read' } as const;
  addPage(app, url, page, async (visit) => {
    const period = periodIn(visit);
    const readEntries = async () => {
      const found = await read(visit.api, statementPath(visit), period);
      return { ...found, entries: await addParties<EntryLine>(visit)(found.statement.entries) };
    };
    const [owned, { statement, isCut, entries }] = await Promise.all([
      visit.person.scopes.has('accounts:read') ? readOwnedAccount(visit, visit.id) : undefined,
      readEntries(),
    ]);
    const here = `/admin/ui/accounts/${statement.account_id}/statement`;
    return {
      title: `Statement of account ${statement.account_number}`,
      ...(owned && { heading: accountHeading(owned) }),
      content: html`${owned && accountLine(owned.account)}${accountParts(statement.account_id, '/statement', visit.person)}<div class="toolbar">${periodForm(here, period, bankDay(visit.now))}${copies(here, statement, period)}</div>${camtForm(here, period, bankDay(visit.now))}
${document({ ...statement, entries }, period, owned?.owner)}${isCut && notice('warning', html`These are the first ${statement.entries.length} of ${statement.entry_count} entries; the totals are those of all. Take the CSV for every entry, or a shorter period.`)}
<p class="quiet">Made ${showTime(new Date(visit.now).toISOString())}. Days and times are ${zoneText()}.</p>`,
    };
  });
  addApiPage(app, `${url}.html`, page, (visit) => {
    const { from_day, to_day } = periodIn(visit);
    const period = new URLSearchParams({ from: startOfDay(from_day), to: endOfDay(to_day) });
    return visit.api.getPage(`${statementPath(visit)}?${period}`);
  });
  addApiPage(app, `${url}.xml`, page, (visit) => {
    const on = visit.query.get('on') ?? '';
    return visit.api.getFile(`${statementPath(visit)}?${new URLSearchParams({ on })}`, 'application/xml');
  });
  addDownload(app, `${url}.csv`, page, (visit) =>
    exportCsv<WithParties<EntryLine>>(visit.api, {
      path: statementPath(visit),
      parameters: statementParameters(periodIn(visit)),
      columns: entryColumns,
      getRows: (data) => (data as Statement).entries,
      complete: addParties(visit),
      hasSeparator: visit.query.has('sep'),
    }),
  );
}

const statementPath = ({ id }: PageRequest) => `/accounts/${id}/statement`;

/** The requested days; by default, this month up to today. */
function periodIn({ query, now }: PageRequest): Period {
  const today = bankDay(now);
  return { from_day: query.get('from_day') || `${today.slice(0, 8)}01`, to_day: query.get('to_day') || today };
}

function statementParameters({ from_day, to_day }: Period): URLSearchParams {
  return new URLSearchParams({ from: startOfDay(from_day), to: endOfDay(to_day), limit: String(pageSize) });
}

async function read(api: Api, path: string, period: Period): Promise<{ statement: Statement; isCut: boolean }> {
  const parameters = statementParameters(period);
  const first = await api.get<Statement>(`${path}?${parameters}`);
  const entries = [...first.data.entries];
  let { next } = first;
  while (next !== undefined && entries.length < maxEntries) {
    parameters.set('cursor', next);
    const page = await api.get<Statement>(`${path}?${parameters}`);
    entries.push(...page.data.entries);
    ({ next } = page);
  }
  return { statement: { ...first.data, entries }, isCut: next !== undefined };
}

/** The periods that customers ask for most. */
function usualPeriods(today: string): [title: string, Period][] {
  const [year = 0, month = 0, day = 0] = today.split('-').map(Number);
  const dayAt = (...at: [year: number, month: number, day: number]) =>
    new Date(Date.UTC(...at)).toISOString().slice(0, 10);
  return [
    ['This month', { from_day: dayAt(year, month - 1, 1), to_day: today }],
    ['Last month', { from_day: dayAt(year, month - 2, 1), to_day: dayAt(year, month - 1, 0) }],
    ['Last 90 days', { from_day: dayAt(year, month - 1, day - 89), to_day: today }],
    ['This year', { from_day: dayAt(year, 0, 1), to_day: today }],
    ['Last year', { from_day: dayAt(year - 1, 0, 1), to_day: dayAt(year - 1, 11, 31) }],
  ];
}

const periodQuery = (period: Period): string => new URLSearchParams({ ...period }).toString();

function periodForm(here: string, { from_day, to_day }: Period, today: string): Html {
  const link = ([title, period]: [string, Period]) => {
    const isShown = period.from_day === from_day && period.to_day === to_day;
    return html`<a href="${here}?${periodQuery(period)}"${isShown && html` aria-current="true"`}>${title}</a> `;
  };
  return html`<nav class="actions" aria-label="Period">${usualPeriods(today).map(link)}</nav>
<form method="get" action="${here}" class="filters"><label>From (day) <input type="date" name="from_day" value="${from_day}" required></label>
<label>To (day) <input type="date" name="to_day" value="${to_day}" required></label><p class="actions"><button class="secondary">Show</button></p></form>`;
}

/** The statement for paper, and as a file that is named after the account and the period. */
function copies(here: string, { account_number }: Statement, period: Period): Html {
  const name = `statement-${account_number}-${period.from_day}-${period.to_day}`;
  return html`<p class="actions"><a role="button" data-next href="${here}.html?${periodQuery(period)}" target="_blank">Print</a> <a role="button" class="secondary" href="${here}.csv?${periodQuery(period)}" download="${name}.csv">Download CSV</a> <a href="${here}.csv?${periodQuery(period)}&sep=yes" download="${name}.csv">for Excel</a></p>`;
}

/** A day for accounting software: the last one of the period, if it has ended. */
function camtForm(here: string, { to_day }: Period, today: string): Html {
  const yesterday = plusDays(today, -1);
  return html`<details><summary>For accounting software</summary><form method="get" action="${here}.xml" class="filters"><label>Day, for accounting <input type="date" name="on" value="${to_day < today ? to_day : yesterday}" max="${yesterday}" required></label>
<p class="actions"><button class="secondary">Get camt.053</button></p></form></details>`;
}

function document(
  statement: Statement & { entries: readonly WithParties<EntryLine>[] },
  { from_day, to_day }: Period,
  holder: Client | undefined,
): Html {
  const money = (amount: string) => amountText(amount, statement.currency);
  const { debit, credit } = movedWords(statement.account_number);
  const sums = facts([
    ['Client', holder && clientName(holder)],
    ['Address', holder && showAddress(holder)],
    ['Period', `${dayText(from_day)} to ${dayText(to_day)}`],
    ['Opening balance', money(statement.opening_balance)],
    [debit.title, money(statement.debit_total)],
    [credit.title, money(statement.credit_total)],
    ['Closing balance', html`<strong>${money(statement.closing_balance)}</strong>`],
    ['Entries', String(statement.entry_count)],
  ]);
  const movements = movementTable(
    statement.entries,
    statement.account_number,
    'Movements',
    'Nothing was posted in this period.',
  );
  return desk('The statement', sums, movements);
}
