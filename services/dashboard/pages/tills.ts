import type { FastifyInstance } from 'fastify';
import type { Approval } from '#libs/contracts/approvals.ts';
import { clientName } from '#libs/contracts/clients.ts';
import { fromMinor, isCurrency, plainMoney } from '#libs/contracts/money.ts';
import type { StaffDay } from '#libs/contracts/staff-days.ts';
import type { Till, TillBalance, TillSums } from '#libs/contracts/tills.ts';
import { amountText, bankCurrency, moneyText, timeText } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused, known } from '../api.ts';
import { type ActorNames, actorText, readActorNames, showActor } from '../html/actors.ts';
import { jsonNumber, minorOf, type TypedAmount, typedLimit } from '../html/amounts.ts';
import {
  addFormPage,
  enteredIdempotencyKey,
  type Field,
  showFields,
  showForm,
  type Wrong,
  WrongInput,
} from '../html/forms.ts';
import { addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import { addListPage, type List, type Sorting, withChosen, withQuery } from '../html/lists.ts';
import {
  countText,
  emptyState,
  type Fact,
  facts,
  notice,
  numeric,
  showTime,
  table,
  toned,
  totalText,
} from '../html/show.ts';
import { bringsCash, clientsOf, type Money, moneyOf, readSubjects, type Subjects } from './approval-subjects.ts';
import { summarize } from './approvals.ts';

/** Tills: opened and closed with a count, printed, and listed. */

export const tillsUrl = '/admin/ui/tills';
const scope = 'transactions:write';

export function addTills(app: FastifyInstance): void {
  addListPage(app, tillsUrl, { title: 'Tills', scope: null }, tillList, [
    'till_id',
    { title: 'person', value: ({ person, actor }) => person ?? actorText(actor) },
    'opened_at',
    'closed_at',
    { title: 'currency', value: ({ line }) => line?.currency },
    ...(['opening', 'cash_in', 'cash_out', 'expected', 'counted', 'difference'] as const).map((field) => ({
      title: field,
      value: ({ line }: TillLine) => line && line[field] && plainMoney(line[field], line.currency),
    })),
    'reason',
  ]);
  addFormPage(app, `${tillsUrl}/open`, { title: 'Open your till', scope }, { draw: drawOpening, take: open });
  addPage(app, `${tillsUrl}/:till_id`, { title: 'Till', scope: null }, async (visit) => {
    const till = await readTill(visit);
    const [names, moved] = await Promise.all([
      readActorNames(visit, [till], 'actor', 'closed_by'),
      readMovedBetween(visit, till),
    ]);
    return { title: `Till of ${actorText(till.actor, names)}`, content: tillPage(visit, till, names, moved) };
  });
  addFormPage(app, `${tillsUrl}/:till_id/close`, { title: 'Close a till', scope }, { draw: drawClosing, take: close });
}

/** Returns the person's open till; null: none is open; undefined: it is not known now. */
async function readOpenTill({ api, actor }: PageRequest): Promise<Till | null | undefined> {
  const tills = await known(api.get<Till[]>(`/tills?${new URLSearchParams({ actor, status: 'Open', limit: '1' })}`));
  return tills && (tills.data[0] ?? null);
}

/** Returns the till that the person opened last, which alone may be open. */
const readLast = ({ api, actor }: PageRequest) =>
  api.get<Till[]>(`/tills?${new URLSearchParams({ actor, limit: '1' })}`);

/** Says in which of the person's tills is what they posted in cash at this time; undefined: it is not known. */
export async function tillAt({ api, actor }: PageRequest, at: string): Promise<string | undefined> {
  const tills = await known(api.get<Till[]>(`/tills?${new URLSearchParams({ actor, limit: String(mostTills) })}`));
  const its = tills?.data.find(({ opened_at, closed_at }) => opened_at <= at && (closed_at === null || at < closed_at));
  // Of earlier tills than those that were read, nothing is known.
  const isKnown = tills && (tills.next === undefined || tills.data.some(({ opened_at }) => opened_at <= at));
  return its ? `opened ${timeText(its.opened_at)}` : isKnown ? 'none' : undefined;
}

/** Says before cash is posted that it will be in no till, if the person has none that is open. Once it is open, they are here again. */
export async function warnOfClosedTill(visit: PageRequest): Promise<Html> {
  // A page that answers a form cannot be opened again.
  const to =
    visit.fields.size === 0 ? new URLSearchParams({ to: withQuery(visit.path, visit.query) }) : new URLSearchParams();
  return html`${(await readOpenTill(visit)) === null && notice('warning', html`<strong>Your till is closed: this cash will be in no till.</strong> <a href="${withQuery(`${tillsUrl}/open`, to)}">Count and open it</a>`)}`;
}

/** Returns the page of the dashboard from which the person came to open the till. */
function safeReturn({ query, fields }: PageRequest): string | undefined {
  const to = fields.get('to') ?? query.get('to') ?? '';
  // Dots can lead out of the dashboard again, also encoded ones.
  const isInside = /^\/admin\/ui\/[!-[\]-~]*$/.test(to) && new URL(to, 'http://here').pathname.startsWith('/admin/ui/');
  return isInside ? to : undefined;
}

const readTill = async ({ api, id }: PageRequest): Promise<Till> => (await api.get<Till>(`/tills/${id}`)).data;

/** The most tills of a person among which the one before is sought. */
const mostTills = 100;

interface Moved {
  currency: string;
  /** What was counted when the till was opened, minus what was counted when the person's last one was closed. */
  difference: string;
}

/**
 * Returns where the count with which a till was opened is not that with which the person's one before was closed. Both are
 * recorded. It is shown only afterwards: whoever counts must not know what is expected.
 */
async function readMovedBetween({ api }: PageRequest, till: Till): Promise<Moved[]> {
  const theirs = new URLSearchParams({ actor: till.actor, limit: String(mostTills) });
  const tills = (await known(api.get<Till[]>(`/tills?${theirs}`)))?.data ?? [];
  const here = tills.findIndex(({ till_id }) => till_id === till.till_id);
  const before = here < 0 ? undefined : tills[here + 1];
  if (before === undefined) return [];
  const currencies = new Set([...before.balances, ...till.opening].map(({ currency }) => currency));
  return [...currencies].sort().flatMap((currency) => {
    const counted = minorOf(till.opening.find((one) => one.currency === currency)?.amount ?? '0', currency);
    const left = minorOf(before.balances.find((one) => one.currency === currency)?.counted ?? '0', currency);
    return counted === left ? [] : [{ currency, difference: fromMinor(counted - left, currency) }];
  });
}

/** Says on the first page whether the person's till is open, with the link to close it, or to open one. Who decides about others and never had a till needs none. */
export async function showYourTill(visit: PageRequest): Promise<Html> {
  const last = (await known(readLast(visit)))?.data;
  if (last === undefined || (last.length === 0 && visit.person.scopes.has('approvals:write'))) return html``;
  const till = last.find(({ status }) => status === 'Open');
  const all = html`<a href="${tillsUrl}?${new URLSearchParams({ actor: visit.actor }).toString()}">your tills</a>`;
  const state = till
    ? html`${toned('good', 'done', 'Open')} <span class="quiet">since ${showTime(till.opened_at)}</span>`
    : toned('wait', 'waiting', 'Closed');
  const next = till
    ? html`<a href="${tillsUrl}/${till.till_id}/close">Count and close it</a>`
    : html`<a href="${tillsUrl}/open">Count and open it</a>`;
  return html`<div class="tile"><span class="tile-title">Your till</span> <p>${state}</p> <p>${next}, ${all}</p></div>`;
}

/** Fields have the currency in their names. */
const prefix = 'counted_';
const currenciesIn = (values: URLSearchParams) =>
  [...values.keys()].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));

const countField = (currency: string): Field => ({
  name: `${prefix}${currency}`,
  label: `Counted, in ${currency}`,
  inputMode: 'decimal',
  isRequired: true,
  maxLength: 40,
});
const othersField = (isOnly: boolean): Field => ({
  name: 'others',
  label: isOnly ? 'Counted' : 'Other currencies',
  isRequired: isOnly,
  maxLength: 500,
  hint: isOnly ? 'For example 5,000 KES. Several currencies: 5,000 KES; 200 USD.' : 'For example 200 USD; 5,000 JPY.',
});

/** Returns what was counted by currency. Throws WrongInput with every reason. */
function readCounts(fields: URLSearchParams) {
  const wrong: Record<string, string> = {};
  const counted: { currency: string; amount: unknown }[] = [];
  const add = (name: string, currency: string, typed: string) => {
    const amount: TypedAmount = typedLimit(typed, currency) ?? { wrong: 'Enter what you counted, or 0.' };
    if ('wrong' in amount) wrong[name] = amount.wrong;
    else if (counted.some((one) => one.currency === currency)) wrong[name] = `${currency} is there twice.`;
    else counted.push({ currency, amount: jsonNumber(amount.amount) });
  };
  for (const currency of currenciesIn(fields).filter(isCurrency))
    add(`${prefix}${currency}`, currency, fields.get(`${prefix}${currency}`) ?? '');
  for (const part of (fields.get('others') ?? '').split(/[;\n]/).filter((text) => text.trim() !== '')) {
    const code = /(?<![A-Za-z])[A-Za-z]{3}(?![A-Za-z])/.exec(part)?.[0] ?? '';
    const currency = code.toUpperCase();
    if (isCurrency(currency)) add('others', currency, part.replace(code, ''));
    else wrong['others'] = `In “${part.trim()}” there is no currency, such as KES.`;
  }
  if (Object.keys(wrong).length === 0 && counted.length === 0) wrong['others'] = 'Enter what you counted.';
  if (Object.keys(wrong).length > 0) throw new WrongInput(wrong);
  return counted;
}

/** The fields of these currencies, and one for others. */
const countFields = (currencies: Iterable<string>): Field[] => {
  const known = [...new Set(currencies)].sort();
  return [...known.map(countField), othersField(known.length === 0)];
};

async function drawOpening(visit: PageRequest, values: URLSearchParams, wrong: Wrong): Promise<PageResult> {
  const open = await readOpenTill(visit);
  const to = safeReturn(visit);
  if (open) return { redirectTo: to ?? `${tillsUrl}/${open.till_id}?already` };
  const last = await known(readLast(visit));
  const counted = (last?.data ?? []).flatMap(({ opening }) => opening.map(({ currency }) => currency));
  const currencies = counted.length > 0 ? counted : [bankCurrency() ?? ''].filter((currency) => currency !== '');
  const form = showForm(
    visit,
    { wrong: ofApi(wrong), button: 'Open the till', cancel: '/admin/ui' },
    html`${to !== undefined && html`<input type="hidden" name="to" value="${to}">`}${showFields(countFields([...currencies, ...currenciesIn(values)]), values, ofApi(wrong))}`,
  );
  return {
    content: html`<p>Count the cash that you begin with. From then on, deposits and withdrawals that you post are in your till.</p>${form}`,
  };
}

/** The API calls all counts `counted`. */
const ofApi = ({ message, fields = {} }: Wrong): Wrong => {
  const { counted, ...others } = fields;
  return counted === undefined ? { message, fields } : { message: counted, fields: others };
};

async function open(visit: PageRequest): Promise<PageResult> {
  const counted = readCounts(visit.fields);
  const { data } = await visit.api.post<Till>('/tills', { counted }, enteredIdempotencyKey(visit));
  return { redirectTo: safeReturn(visit) ?? `${tillsUrl}/${data.till_id}?opened` };
}

/** The currencies that were not counted, or in which what was counted is not what is expected. */
interface Objection {
  lacking?: string[];
  different?: string[];
}

async function drawClosing(
  visit: PageRequest,
  values: URLSearchParams,
  wrong: Wrong,
  { lacking = [], different = [] }: Objection = {},
): Promise<PageResult> {
  const till = await readTill(visit);
  if (till.closed_at !== null) return { redirectTo: `${tillsUrl}/${till.till_id}` };
  const day = await known(visit.api.get<StaffDay>(`/admin/staff-day?${new URLSearchParams({ actor: till.actor })}`));
  const moved = (day?.data.totals ?? []).filter(
    (total) => Number(total.cash_in_count) + Number(total.cash_out_count) > 0,
  );
  const all = [...till.opening, ...moved].map(({ currency }) => currency);
  const isOwn = till.actor === visit.actor;
  const apart = isOwn ? showApart(await readUndecided(visit)) : notice('warning', othersApart);
  const reasonField: Field = {
    name: 'reason',
    label: isOwn ? 'Reason for the difference' : 'Why another person closes it, and reason for a difference',
    type: 'textarea',
    isRequired: different.length > 0 || !isOwn,
    maxLength: 500,
    ...(different.length === 0 && isOwn && { hint: 'Only if there is one.' }),
  };
  const form = showForm(
    visit,
    { wrong: ofApi(wrong), button: 'Close the till', cancel: `${tillsUrl}/${till.till_id}` },
    html`${showFields([...countFields([...all, ...lacking, ...currenciesIn(values)]), reasonField], values, ofApi(wrong))}`,
  );
  return {
    content: html`<p>Count the cash that you have now. The till was opened ${showTime(till.opened_at)} with ${till.opening.map(({ currency, amount }) => amountText(amount, currency)).join(', ')}.</p>
${apart}${different.length > 0 && notice('warning', html`<strong>There is a difference</strong> in ${different.join(', ')}. Count again, or say why and close the till. Your first count is recorded in the audit.`, true)}
${lacking.length > 0 && notice('warning', `Count ${lacking.join(', ')}, too; 0 if there is nothing.`, true)}${form}`,
  };
}

/** What becomes of cash that was taken for a request, once a second person approves it. */
const later =
  'it will be in the till that its person has open when a second person approves it; if none is open, in no till';

const othersApart = html`<strong>Ask whose till it is for cash that was taken and waits for an approval.</strong> It is not known here. Keep it apart, and do not count it: ${later}.`;

interface Undecided extends Approval {
  customer: string;
  money: Money | undefined;
}

function showApart(apart: readonly Undecided[] | undefined): Html | false {
  if (apart === undefined)
    return notice(
      'warning',
      html`<strong>It cannot be read now which cash waits for an approval.</strong> Keep it apart, and do not count it: ${later}.`,
    );
  const [back, taken] = [apart.filter(isReversal), apart.filter((one) => !isReversal(one))];
  const list = (rows: readonly Undecided[]) =>
    html`<ul>${rows.map(({ summary, customer, requested_at }) => html`<li>${customer !== '' && `${customer}: `}${summary}, asked ${showTime(requested_at)}</li>`)}</ul>`;
  // A sum without one of them would be too small.
  const isSumKnown = taken.every(({ money }) => money !== undefined && totalText([money]) !== '');
  const sum = isSumKnown ? totalText(taken.flatMap(({ money }) => money ?? [])) : '';
  return html`${taken.length > 0 && notice('warning', html`<strong>Keep ${sum === '' ? 'this cash' : sum} apart, and do not count it:</strong> ${later}.${list(taken)}`)}
${back.length > 0 && notice('warning', html`<strong>If the customer has given this cash back, keep it apart, too:</strong> ${later}. If not, nothing is to be done.${list(back)}`)}`;
}

const isReversal = ({ request }: Approval): boolean => request.operation === 'reverse_transaction';

/**
 * Returns the person's requests that wait for an approval and for which cash may have been taken, with their summaries in
 * words; undefined: they are not known now.
 */
async function readUndecided(visit: PageRequest): Promise<Undecided[] | undefined> {
  const waiting = await known(visit.api.get<Approval[]>('/admin/approvals?requested_by=me&status=Waiting&limit=100'));
  if (waiting === undefined) return undefined;
  const subjects = await readSubjects(visit, waiting.data);
  return waiting.data
    .filter((approval) => isCashIn(approval, subjects))
    .map((approval) => ({
      ...approval,
      summary: summarize(approval, subjects),
      customer: clientsOf(approval, subjects).map(clientName).join(' → '),
      money: moneyOf(approval, subjects),
    }));
}

/** Whoever may not read what would be reversed is told of every reversal. */
function isCashIn(approval: Approval, { originals }: Subjects): boolean {
  const { operation, path } = approval.request;
  if (operation !== 'reverse_transaction') return bringsCash(approval);
  const original = originals.get(/txn_[0-9a-f]{32}/.exec(path)?.[0] ?? '');
  return original === undefined || ('transaction_type' in original && original.transaction_type === 'Withdrawal');
}

async function close(visit: PageRequest): Promise<PageResult> {
  const counted = readCounts(visit.fields);
  const reason = visit.fields.get('reason')?.trim() ?? '';
  try {
    const body = { counted, ...(reason !== '' && { reason }) };
    await visit.api.post(`/tills/${visit.id}/closing`, body, enteredIdempotencyKey(visit));
    return { redirectTo: `${tillsUrl}/${visit.id}?closed` };
  } catch (error) {
    if (!(error instanceof ApiRefused)) throw error;
    const { code, details } = error.problem;
    if (code !== 'till_difference' && code !== 'till_not_counted') throw error;
    const { currencies } = details as { currencies: string[] };
    const objection = code === 'till_difference' ? { different: currencies } : { lacking: currencies };
    return { ...(await drawClosing(visit, visit.fields, {}, objection)), status: 400 };
  }
}

/** The figures of a currency; those that are not known, before a till is closed, are missing. */
type Figures = TillSums & Partial<Pick<TillBalance, 'counted' | 'difference'>>;
/** A till in a list: one row for each of its currencies. `person`: the name of whose it is, in a file. */
type TillLine = Till & { line?: Partial<Figures> & Pick<Figures, 'currency'>; person?: string };

/** A drawer cannot hold less than nothing: the cash came from elsewhere, or was not paid out. */
const amountIn = (
  line: TillLine['line'],
  field: 'opening' | 'cash_in' | 'cash_out' | 'expected' | 'counted',
): Html | string => {
  const amount = line?.[field];
  if (line === undefined || amount === undefined) return '';
  const text = moneyText(amount, line.currency);
  return amount.startsWith('-') ? toned('bad', 'warning', text) : text;
};

/** Returns the rows of these tills. What its own person may not know of an open till is missing. */
const toLines = (tills: readonly Till[]): TillLine[] =>
  tills.flatMap((till) => {
    const opened = till.opening.map(({ currency, amount }) => ({ currency, opening: amount }));
    const lines: TillLine['line'][] = till.closed_at === null ? (till.so_far ?? opened) : till.balances;
    return lines.length === 0 ? [till] : lines.map((line) => ({ ...till, line }));
  });

const isNone = (difference: string): boolean => !/[1-9]/.test(difference);

const showDifference = ({ difference, currency }: Pick<TillBalance, 'difference' | 'currency'>): Html =>
  isNone(difference)
    ? toned('good', 'done', moneyText(difference, currency))
    : toned('bad', 'warning', `${difference.startsWith('-') ? '' : '+'}${moneyText(difference, currency)}`);

/** What a till was opened with, took and paid; once it is closed, with what was counted. */
function figures(rows: readonly Figures[]): Html {
  const count = (title: string, field: 'cash_in' | 'cash_out') =>
    numeric<Figures>(
      title,
      (row) =>
        html`${moneyText(row[field], row.currency)} <span class="quiet whole">${countText(row[`${field}_count`])}</span>`,
    );
  const money = (title: string, field: 'opening' | 'expected' | 'counted') =>
    numeric<Figures>(title, (row) => amountIn(row, field));
  return table<Figures>(
    'Till',
    [
      { title: 'Currency', show: ({ currency }) => html`<strong>${currency}</strong>` },
      money('Opened with', 'opening'),
      count('In', 'cash_in'),
      count('Out', 'cash_out'),
      money('Expected', 'expected'),
      money('Counted', 'counted'),
      numeric('Difference', ({ difference, currency }) =>
        difference === undefined ? '' : showDifference({ difference, currency }),
      ),
    ],
    rows,
    '',
  );
}

function tillPage({ query, actor, person }: PageRequest, till: Till, names: ActorNames, moved: readonly Moved[]): Html {
  const { till_id, opened_at, opening, closed_at, closed_by, balances, so_far, reason } = till;
  const mayClose = person.scopes.has(scope) && (till.actor === actor || person.scopes.has('books:read'));
  const times: Fact[] = [
    ['Person', showActor(till.actor, names)],
    ['Opened', showTime(opened_at)],
    ['Closed', closed_at !== null && showTime(closed_at)],
    ['Status', closed_at === null && toned('info', 'going', 'Open')],
    ['Opened with', opening.map(({ currency, amount }) => amountText(amount, currency)).join(', ')],
    ['Closed by', closed_by !== null && closed_by !== till.actor && showActor(closed_by, names)],
    ['Reason', reason],
    [
      'Since the last closing',
      moved.length > 0 &&
        html`${moved.map((row) => html`${showDifference(row)} ${row.currency}<br>`)}<span class="quiet">counted at this opening, and not at the closing before</span>`,
    ],
  ];
  return html`${query.has('already') && notice('info', 'Your till is open already. Count and close it before you open another.')}${query.has('opened') && notice('success', 'Your till is open.')}${query.has('closed') && notice('success', 'Your till is closed.')}<article class="narrow">${facts(times)}</article>${
    closed_at === null
      ? html`${so_far ? figures(so_far) : html`<p>What it should contain is calculated when it is closed.</p>`}${mayClose && html`<p class="actions">${query.has('opened') ? html`<a role="button" data-next href="/admin/ui/counter">To the counter</a> <a href="${tillsUrl}/${till_id}/close">Count and close</a>` : html`<a role="button" data-next href="${tillsUrl}/${till_id}/close">Count and close</a>`}</p>`}`
      : html`${figures(balances)}<div class="paper"><p class="signature">Signature of the teller</p><p class="signature">Signature of the supervisor</p></div><p class="actions"><button type="button" class="secondary" data-print${query.has('closed') && html` data-next`} hidden>Print</button> <a href="${tillsUrl}">Tills</a></p>`
  }`;
}

/** The latest tills, and the latest that are open: their persons can be chosen, and the cash of the open ones is added up. */
const mostListed = 500;

async function tillList(visit: PageRequest): Promise<List<TillLine>> {
  const { person, query, api } = visit;
  const isOfAll = person.scopes.has('books:read');
  const read = (status: string) =>
    isOfAll ? known(api.get<Till[]>(`/tills?limit=${mostListed}${status}`)) : undefined;
  const [latest, open] = await Promise.all([read(''), read('&status=Open')]);
  const all = [...(open?.data ?? []), ...(latest?.data ?? [])];
  const names = await readActorNames(visit, all, 'actor');
  const persons = [...new Set(all.map(({ actor }) => actor))];
  const filters = [
    ...(isOfAll
      ? [
          {
            name: 'actor',
            label: 'Person',
            options: withChosen(
              persons.map((one) => [one, actorText(one, names)] as const),
              query.get('actor'),
              actorText,
            ),
          },
        ]
      : []),
    { name: 'status', label: 'Status', options: ['Open', 'Closed'] },
  ];
  const empty = (isFiltered: boolean) =>
    isFiltered
      ? emptyState('No till matches.', { href: tillsUrl, text: 'Clear the filters' })
      : emptyState(
          'No till has been opened yet.',
          person.scopes.has(scope) && { href: `${tillsUrl}/open`, text: 'Count and open yours' },
        );
  return {
    path: '/tills',
    filters,
    above: () => html`${isOfAll && showOpen(open, names)}`,
    show: async (rows, sort, isFiltered) =>
      tillTable(rows, await readActorNames(visit, rows, 'actor', 'closed_by'), sort, empty(isFiltered)),
    async complete(rows) {
      const names = await readActorNames(visit, rows, 'actor');
      return toLines(rows).map((row) => ({ ...row, person: actorText(row.actor, names) }));
    },
    note: 'A till has the deposits and withdrawals that its person posted while it was open; payments from files are in none.',
  };
}

/** What should be in the tills that are open, without the person's own. */
function showOpen(open: { data: readonly Till[]; next?: string | undefined } | undefined, names: ActorNames): Html {
  if (open === undefined) return html`<p>What should be in the tills that are open is not known now.</p>`;
  const others = open.data.filter(({ so_far }) => so_far);
  const sums = others.flatMap(({ actor, so_far = [] }) =>
    so_far.map(({ expected: amount, currency }) => ({ actor, amount, currency })),
  );
  const [below, held] = [sums.filter(isBelow), sums.filter((sum) => !isBelow(sum))];
  const total = totalText(held);
  const ownOpen = others.length < open.data.length && ', other than yours';
  const count = String(others.length);
  const which =
    open.next !== undefined
      ? `the ${count} tills that were opened last and are open`
      : others.length === 1
        ? 'the till that is open'
        : `the ${count} tills that are open`;
  return html`${total !== '' && html`<p>Should be in ${which}${ownOpen}: <strong>${total}</strong></p>`}
${below.map(({ actor, amount, currency }) => notice('warning', html`<strong>The till of ${showActor(actor, names)} has paid out ${amountText(amount.slice(1), currency)} more than it had.</strong> Cash came from elsewhere, or was not handed out. It is not in the sum.`))}`;
}

const isBelow = ({ amount }: { amount: string }): boolean => amount.startsWith('-');

const tillTable = (tills: readonly Till[], names: ActorNames, sort: Sorting, empty: Html): Html => {
  const money = (title: string, field: Parameters<typeof amountIn>[1]) =>
    numeric<TillLine>(title, ({ line }) => amountIn(line, field));
  return table<TillLine>(
    'Tills',
    [
      {
        title: 'Opened',
        sort,
        show: ({ till_id, opened_at }) => html`<a href="${tillsUrl}/${till_id}">${showTime(opened_at)}</a>`,
      },
      { title: 'Person', show: ({ actor }) => showActor(actor, names) },
      {
        title: 'Closed',
        show: ({ actor, closed_at, closed_by }) =>
          closed_at === null
            ? toned('info', 'going', 'Open')
            : html`${showTime(closed_at)}${closed_by !== null && closed_by !== actor && html`<br><span class="quiet">by ${showActor(closed_by, names)}</span>`}`,
      },
      { title: 'Currency', show: ({ line }) => line?.currency ?? '' },
      money('Opened with', 'opening'),
      money('In', 'cash_in'),
      money('Out', 'cash_out'),
      money('Expected', 'expected'),
      money('Counted', 'counted'),
      {
        ...numeric<TillLine>('Difference', ({ line }) =>
          line?.difference === undefined
            ? ''
            : showDifference({ difference: line.difference, currency: line.currency }),
        ),
        isLeading: true,
      },
      { title: 'Reason', show: ({ reason }) => html`<span class="long">${reason ?? ''}</span>` },
    ],
    toLines(tills),
    empty,
  );
};
