import type { FastifyInstance } from 'fastify';
import type { Client, Entry, Statement } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { Api } from '../api.ts';
import { csvOf } from '../html/csv.ts';
import { dayOf, endOf, momentOf, zoneText } from '../html/formats.ts';
import type { Visit } from '../html/frame.ts';
import { addDownload, addFile, addPage } from '../html/frame.ts';
import { facts, moneyText, timeOf } from '../html/show.ts';
import { accountParts, movementTable } from './account-views.ts';
import { accountOf, entryColumns, holderOf } from './accounts.ts';
import { nameOf } from './client-views.ts';

/** Entries on one page to print; a statement with more is taken as CSV. */
const maxEntries = 2_000;
const pageSize = 500;

interface Period {
  from_day: string;
  to_day: string;
}

/** The statement of an account for a period of days, on one page that prints well. */
export function addStatement(app: FastifyInstance, { now }: { now: () => number }): void {
  const url = '/admin/ui/accounts/:account_id/statement';
  const page = { title: 'Statement', scope: 'transactions:read' } as const;
  addPage(app, url, page, async (visit) => {
    const period = periodIn(visit.query, now());
    const { statement, isCut } = await read(visit.api, pathOf(visit), period);
    const holder = visit.person.scopes.has('accounts:read') ? await holderOf(visit, await accountOf(visit)) : undefined;
    const here = `/admin/ui/accounts/${statement.account_id}/statement`;
    return {
      title: `Statement of account ${statement.account_number}`,
      content: html`${accountParts(statement.account_id, '/statement', visit.person)}${periodForm(here, period)}
${document(statement, period, holder)}${isCut && html`<p class="notice wrong" role="status">These are the first ${statement.entries.length} of ${statement.entry_count} entries; the totals are those of all. Take the CSV for every entry, or a shorter period.</p>`}
<p class="quiet">Made ${timeOf(new Date(now()).toISOString())}. Days and times are ${zoneText()}.</p>
<p class="actions"><button type="button" data-print hidden>Print</button> <a href="${here}.pdf?${new URLSearchParams({ ...period }).toString()}">PDF</a> <a href="${here}.csv?${new URLSearchParams({ ...period }).toString()}">All entries as CSV</a></p>`,
    };
  });
  addFile(app, `${url}.pdf`, page, 'application/pdf', (visit) => {
    const { from, to } = Object.fromEntries(parametersOf(periodIn(visit.query, now())));
    return visit.api.getFile(
      `${pathOf(visit)}?${new URLSearchParams({ from: String(from), to: String(to) })}`,
      'application/pdf',
    );
  });
  addDownload(app, `${url}.csv`, page, (visit) =>
    csvOf<Entry>(visit.api, {
      path: pathOf(visit),
      parameters: parametersOf(periodIn(visit.query, now())),
      columns: entryColumns,
      rowsOf: (data) => (data as Statement).entries,
    }),
  );
}

const pathOf = ({ params }: Visit) => `/accounts/${encodeURIComponent(params['account_id'] ?? '')}/statement`;

/** The requested days; by default, this month up to today. */
function periodIn(query: URLSearchParams, now: number): Period {
  const today = dayOf(now);
  return { from_day: query.get('from_day') || `${today.slice(0, 8)}01`, to_day: query.get('to_day') || today };
}

function parametersOf({ from_day, to_day }: Period): URLSearchParams {
  return new URLSearchParams({ from: momentOf(from_day), to: endOf(to_day), limit: String(pageSize) });
}

async function read(api: Api, path: string, period: Period): Promise<{ statement: Statement; isCut: boolean }> {
  const parameters = parametersOf(period);
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

function periodForm(here: string, { from_day, to_day }: Period): Html {
  return html`<form method="get" action="${here}" class="filters"><label>From (day) <input type="date" name="from_day" value="${from_day}" required></label>
<label>To (day) <input type="date" name="to_day" value="${to_day}" required></label><p class="actions"><button>Show</button></p></form>`;
}

function document(statement: Statement, { from_day, to_day }: Period, holder: Client | undefined): Html {
  const money = (amount: string) => `${moneyText(amount, statement.currency)} ${statement.currency}`;
  return html`${facts([
    ['Client', holder && nameOf(holder)],
    ['Address', holder?.address],
    ['Period', `${from_day} to ${to_day}`],
    ['Opening balance', money(statement.opening_balance)],
    ['Paid out', money(statement.debit_total)],
    ['Paid in', money(statement.credit_total)],
    ['Closing balance', html`<strong>${money(statement.closing_balance)}</strong>`],
    ['Entries', String(statement.entry_count)],
  ])}${movementTable(statement.entries, 'Movements')}`;
}
