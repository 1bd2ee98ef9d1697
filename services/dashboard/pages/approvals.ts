import type { FastifyInstance } from 'fastify';
import { type Approval, approvalActions, approvalLifetimeMs, approvalStatus } from '#libs/contracts/approvals.ts';
import { clientName } from '#libs/contracts/clients.ts';
import { plainMoney } from '#libs/contracts/money.ts';
import { isPerson } from '#libs/contracts/staff-days.ts';
import { amountText, bankName } from '#libs/service/formats.ts';
import { type Html, html } from '#libs/service/html.ts';
import { ApiRefused, known } from '../api.ts';
import { type ActorNames, actorText, readActorNames, showActor } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import { addFormPage, enteredIdempotencyKey, enteredIn, once, problem, showField, type Wrong } from '../html/forms.ts';
import { addPage, type PageRequest, type PageResult } from '../html/frame.ts';
import { csrfField, type Person } from '../html/layout.ts';
import { addListPage, type List, type Sorting } from '../html/lists.ts';
import { hasAny } from '../html/navigation.ts';
import {
  changeTable,
  desk,
  emptyState,
  type Fact,
  facts,
  fieldWords,
  idLink,
  idText,
  notice,
  numeric,
  parts,
  pill,
  resourcePage,
  showAge,
  showFullTime,
  showTime,
  table,
  tags,
  toned,
} from '../html/show.ts';
import type { Looked } from '../session/looked.ts';
import { type Effects, findEffects, readOwnPostings } from './approval-effects.ts';
import {
  accountsOf,
  amountOf,
  bringsCash,
  clientsOf,
  type Money,
  moneyOf,
  readSubjects,
  reversedText,
  type Subjects,
  showSubject,
  withAmounts,
  withNumbers,
} from './approval-subjects.ts';
import { actionWords } from './approval-words.ts';
import { counterScopes, counterUrl } from './counter-views.ts';
import { daysUrl, showMeaning } from './days.ts';
import { notesAbout } from './notes.ts';
import { showMarks } from './scope-words.ts';
import { showSecret } from './secrets.ts';

export const approvalsUrl = '/admin/ui/approvals';
const path = '/admin/approvals';
const everybody = { scope: null } as const;

type Shows = Pick<List<Approval>, 'fixed' | 'filters' | 'note' | 'oldestFirst'> & {
  url: string;
  title: string;
  tab: string;
};

const own = `${approvalsUrl}/mine`;
const all = `${approvalsUrl}/all`;
const lists: readonly Shows[] = [
  {
    url: approvalsUrl,
    title: 'Approvals waiting for me',
    tab: 'Waiting for me',
    fixed: { status: 'Waiting', requested_by: 'others' },
    oldestFirst: true,
    note: 'Requests of others that you can decide. A request that nobody decides within 24 hours expires. The arrow keys lead from request to request, and Enter opens one.',
  },
  {
    url: own,
    title: 'Approvals asked by me',
    tab: 'Asked by me',
    fixed: { requested_by: 'me' },
    filters: [{ name: 'status', label: 'Status', options: approvalStatus.options }],
    note: 'Somebody else decides about your requests. A request that nobody decides within 24 hours expires; it can be made again.',
  },
  {
    url: all,
    title: 'All approvals',
    tab: 'All',
    filters: [
      { name: 'status', label: 'Status', options: approvalStatus.options },
      {
        name: 'action',
        label: 'Action',
        options: approvalActions.map((action) => [action, actionWords[action]] as const),
      },
    ],
    note: 'Requests that you can decide or could have decided, and your own requests; for auditors, all of the bank.',
  },
];

/** Adds the pages of approvals: the lists, one approval, and its decision. */
export function addApprovals(app: FastifyInstance): void {
  for (const list of lists) addList(app, list);
  addPage(app, `${approvalsUrl}/count`, { title: 'Approvals', ...everybody }, async (visit) => ({
    content: await showCount(visit),
  }));
  const page = { title: 'Approval', ...everybody };
  addFormPage(app, `${approvalsUrl}/:approval_id`, page, { draw, take: decide }, 'approvals:write');
}

async function decide(visit: PageRequest): Promise<PageResult> {
  const decision = visit.fields.get('decision') === 'approval' ? 'approval' : 'rejection';
  // Each of the two buttons sends a separate request.
  const key = enteredIdempotencyKey(visit);
  const body = enteredIn(['reason'], visit.fields);
  const page = `${approvalsUrl}/${visit.id}`;
  try {
    await visit.api.post(`${path}/${visit.id}/${decision}`, body, key && `${key}-${decision}`);
    return { redirectTo: page };
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status < 500) throw error;
    // The bank did not confirm the decision. The page shows the state of the approval.
    return { redirectTo: `${page}?unknown` };
  }
}

function addList(app: FastifyInstance, { url, title, tab: _tab, ...list }: Shows): void {
  const approvalList = (visit: PageRequest): List<Listed> => ({
    ...list,
    path,
    pageSize: 25,
    // No request waits for a person who may not decide. Such a person sees only their own requests, an auditor all.
    above() {
      const { scopes } = visit.person;
      const mayDecide = scopes.has('approvals:write');
      const mayAudit = scopes.has('audit:read') && scopes.has('clients:read');
      const open = lists.filter((one) => one.url === own || mayDecide || (one.url === all && mayAudit));
      if (!open.some((one) => one.url === url)) return { redirectTo: mayAudit ? all : own };
      return parts(
        'Approvals',
        open.map(({ url: href, tab }) => ({ href, text: tab, isHere: href === url })),
      );
    },
    async complete(rows) {
      const subjects = await readSubjects(visit, rows);
      return rows.map((row) => ({
        ...row,
        summary: summarize(row, subjects),
        customer: customersOf(row, subjects),
        money: moneyOf(row, subjects),
        done:
          row.outcome &&
          (row.outcome.status === 'success' ? 'Done' : `Refused: ${withNumbers(row.outcome.message, subjects)}`),
      }));
    },
    async show(rows, sorting) {
      const [subjects, names] = await Promise.all([readSubjects(visit, rows), readNames(visit, rows)]);
      const isQueue = url === approvalsUrl;
      const ownPostings = isQueue ? await readOwnPostings(visit, rows, subjects) : new Set<string>();
      return approvalTable(visit, rows, { subjects, names, ownPostings }, sorting, isQueue);
    },
  });
  addListPage(app, url, { title, ...everybody }, approvalList, columns);
}

type Listed = Approval & { customer?: string; money?: Money | undefined; done?: string | undefined };

const columns: CsvColumn<Listed>[] = [
  'approval_id',
  { title: 'action', value: ({ action }) => actionWords[action] },
  'summary',
  'customer',
  { title: 'amount', value: ({ money }) => money && plainMoney(money.amount, money.currency) },
  { title: 'currency', value: ({ money }) => money?.currency },
  { title: 'requested_by', value: ({ requested_by }) => actorText(requested_by) },
  'requested_by_name',
  'requested_at',
  'expires_at',
  'status',
  { title: 'outcome', value: ({ done }) => done },
  { title: 'decided_by', value: ({ decided_by }) => decided_by && actorText(decided_by) },
  'decided_by_name',
  'decided_at',
  'reason',
];

/** The API names the persons of an approval, and keys are asked for. */
async function readNames(visit: PageRequest, rows: readonly Approval[]): Promise<ActorNames> {
  const who = rows.flatMap((row) => [
    { actor: row.requested_by, name: row.requested_by_name },
    { actor: row.decided_by, name: row.decided_by_name },
  ]);
  const keys = await readActorNames(
    visit,
    who.filter(({ actor }) => actor !== null && !isPerson(actor)),
    'actor',
  );
  return new Map([...keys, ...who.flatMap(({ actor, name }) => (actor && name ? [[actor, name] as const] : []))]);
}

async function draw(visit: PageRequest, _fields: URLSearchParams, wrong: Wrong): Promise<PageResult> {
  const { data: approval } = await visit.api.get<ShownApproval>(`${path}/${visit.id}`);
  // The API shows it once: the page that it leads to keeps it until it is copied.
  const made = approval.outcome?.status === 'success' ? (approval.outcome.data as { key_id?: string } | null) : null;
  if (approval.api_key !== undefined && made?.key_id !== undefined)
    return showSecret(visit, made.key_id, approval.api_key);
  const isWaiting = approval.status === 'Waiting';
  const mayDecide = visit.person.scopes.has('approvals:write');
  const [subjects, names, effects, day, waiting] = await Promise.all([
    readSubjects(visit, [approval]),
    readNames(visit, [approval]),
    findEffects(visit, approval),
    isWaiting && showDay(visit, approval),
    isWaiting || !mayDecide ? undefined : known(readWaiting(visit)),
  ]);
  const notes = isWaiting && (await showNotes(visit, approval, subjects));
  const content = approvalPage(
    visit,
    approval,
    { subjects, names, effects, day, notes, waiting: waiting ?? [] },
    wrong,
  );
  const summary = summarize(approval, subjects);
  const amount = amountOf(approval, subjects);
  const heading = html`${actionWords[approval.action]}${amount !== undefined && `, ${amount}`}`;
  return { title: summary, heading, content: html`<p class="under">${summary}</p>${content}` };
}

/** The latest notes about the customers and on the accounts, which the person who asked has seen too. */
async function showNotes(visit: PageRequest, approval: Approval, subjects: Subjects): Promise<Html> {
  const clients = await Promise.all(
    clientsOf(approval, subjects).map((client) => notesAbout(visit, 'clients', client.client_id, clientName(client))),
  );
  const accounts = await Promise.all(
    accountsOf(approval, subjects).map(({ account_id, account_number }) =>
      notesAbout(visit, 'accounts', account_id, account_number),
    ),
  );
  return html`${clients}${accounts}`;
}

/** For the closing of a day: what it means, and the books of the day if the person may see them. */
const showDay = (visit: PageRequest, { request: { operation, body } }: Approval): Promise<Html> | false =>
  operation === 'close_day' && showMeaning(visit, String(body['date']));

const mostCounted = 20;

/** Returns the oldest requests that wait for this person. */
const readWaiting = async ({ api }: Pick<PageRequest, 'api'>): Promise<Approval[]> =>
  (await api.get<Approval[]>(`${path}?status=Waiting&requested_by=others&limit=${mostCounted}&order=asc`)).data;

const countText = ({ length }: readonly unknown[]): string => `${length}${length === mostCounted ? '+' : ''}`;

/** Returns how many are waiting for this person, with a + if there are more. */
export const countWaiting = async (visit: Pick<PageRequest, 'api'>): Promise<string> =>
  countText(await readWaiting(visit));

/**
 * Returns how many of the person's requests were decided, or have expired, since they last looked at them; of the last 24 hours if
 * that is unknown. A request is decided within 24 hours or expires, so no earlier one counts.
 */
async function countDecided({ api, lookedMs, now }: PageRequest): Promise<string> {
  const { data } = await api.get<Approval[]>(`${path}?requested_by=me&limit=${mostCounted}`);
  const sinceMs = lookedMs ?? now - approvalLifetimeMs;
  // Nobody has decided an expired one.
  const decided = data.filter(({ status, decided_at, expires_at }) => {
    const at = status === 'Expired' ? expires_at : decided_at;
    return at !== null && Date.parse(at) > sinceMs;
  });
  return countText(decided);
}

/** Remembers that the person has looked at their own requests. */
export function noteLooking(app: FastifyInstance, looked: Looked): void {
  app.addHook('onSend', async ({ routeOptions, visit }, reply) => {
    if (routeOptions.url === own && visit && reply.statusCode === 200) looked.write(reply, visit.actor, visit.now);
  });
}

/** The numbers in the navigation, which loads them. One that cannot be read is omitted. */
async function showCount(visit: PageRequest): Promise<Html> {
  const [waiting = '0', decided = '0'] = await Promise.all([
    visit.person.scopes.has('approvals:write') ? known(countWaiting(visit)) : '0',
    known(countDecided(visit)),
  ]);
  return html`<span id="waiting-approvals">${waiting !== '0' && html`<strong class="count">${waiting}</strong>`}${decided !== '0' && html` <strong class="count info" title="${decided} decided">${decided}<span> decided</span></strong>`}</span>`;
}

type ShownApproval = Approval & { api_key?: string };

/** Says in one sentence what was asked for. */
export const summarize = (approval: Approval, subjects: Subjects): string =>
  reversedText(approval, subjects) ?? withNumbers(withAmounts(approval.summary, approval.action), subjects);

const customersOf = (row: Approval, subjects: Subjects): string => clientsOf(row, subjects).map(clientName).join(' → ');

interface Read {
  subjects: Subjects;
  names: ActorNames;
}

/** The status; of a request that was approved and then refused, that nothing was done. */
const showState = ({ status, outcome }: Approval): Html =>
  outcome?.status === 'error' ? pill('Failed', 'Approved, refused when carried out') : pill(status);

/** `isQueue`: these are waiting for this person, and the first has the focus; the arrow keys lead to the others. */
function approvalTable(
  visit: PageRequest,
  rows: readonly Approval[],
  { subjects, names, ownPostings }: Read & { ownPostings: ReadonlySet<string> },
  sort: Sorting,
  isQueue: boolean,
): Html {
  return table<Approval>(
    'Approvals',
    [
      {
        title: 'What',
        show: (row) =>
          html`<strong><a${isQueue && html` data-hit`}${isQueue && row === rows[0] && html` data-next`} href="${approvalsUrl}/${row.approval_id}">${actionWords[row.action]}</a></strong>${ownPostings.has(row.approval_id) && html` ${toned('wait', 'warning', 'own posting')}`}${row.request.operation === 'create_api_key' && showMarks([row.request.body['scopes']].flat())}<br><span class="details">${summarize(row, subjects)}</span>`,
      },
      numeric('Amount', (row) => html`<strong>${amountOf(row, subjects)}</strong>`),
      { title: 'Customer', show: (row) => html`<span class="long">${customersOf(row, subjects)}</span>` },
      { title: 'Asked by', show: ({ requested_by }) => showActor(requested_by, names) },
      {
        title: 'Asked',
        sort,
        show: ({ requested_at, status }) =>
          status === 'Waiting'
            ? html`<strong>${showAge(requested_at, visit.now)}</strong><br><span class="quiet">${showTime(requested_at)}</span>`
            : showTime(requested_at),
      },
      isQueue
        ? { title: 'Expires', show: ({ expires_at }) => showExpiry(expires_at, visit.now) }
        : {
            title: 'Status',
            show: (row) =>
              html`${showState(row)}${row.decided_by !== null && html`<br><span class="quiet">by ${showActor(row.decided_by, names)}<br>${showTime(row.decided_at)}</span>`}`,
          },
    ],
    rows,
    isQueue
      ? emptyState('Nothing waits for you.', { href: all, text: 'See all requests' })
      : 'No requests were found. A request appears here when somebody does something that requires a second person.',
  );
}

const soonMs = 4 * 60 * 60 * 1000;

/** When a request that waits expires, conspicuous in its last hours. */
function showExpiry(expires_at: string, now: number): Html {
  const minutes = Math.max(0, Math.floor((Date.parse(expires_at) - now) / 60_000));
  const text = minutes < 60 ? `in ${minutes} min` : `in ${Math.floor(minutes / 60)} h`;
  return Date.parse(expires_at) - now < soonMs ? toned('wait', 'warning', text) : html`${text}`;
}

const meanings: Record<Approval['status'], string> = {
  Waiting: 'A second person must decide. Nothing has been done yet.',
  Approved: 'It was approved.',
  Rejected: 'It was rejected and will not be executed.',
  Expired: 'Nobody decided in time, so it will not be executed. It can be requested again.',
};

/** What is read for the page of an approval. */
interface Facts extends Read {
  effects: Effects;
  /** While it is waiting: the day that it would close. */
  day: Html | false;
  /** While it is waiting: the latest notes on accounts and customers. */
  notes: Html | false;
  /** Once it is decided: the others that wait for this person, the oldest first. */
  waiting: readonly Approval[];
}

/**
 * The page of one approval: the exact request, who made it, its outcome, and the form for the
 * decision if this person may decide.
 */
function approvalPage(
  visit: PageRequest,
  approval: ShownApproval,
  { subjects, names, effects, day, notes, waiting }: Facts,
  wrong: Wrong,
): Html {
  const { status, request, requested_by, requested_at, expires_at, decided_by, decided_at, reason, approval_id } =
    approval;
  const isOwn = requested_by === visit.actor;
  const amount = amountOf(approval, subjects);
  const mayDecide = !isOwn && visit.person.scopes.has('approvals:write');
  const [next] = waiting;
  // A customer waits at the counter, and may have handed over cash for it.
  const isServed = isOwn && status === 'Waiting' && hasAny(visit.person.scopes, counterScopes);
  const hasSlip = isServed && amount !== undefined && bringsCash(approval);
  const served =
    isServed &&
    html`<a role="button" data-next href="${counterUrl}">Next customer</a> ${hasSlip && html`<button type="button" class="secondary" data-print hidden>Print</button> `}`;
  return html`<p class="actions">${served}${next && html`<a role="button" data-next href="${approvalsUrl}/${next.approval_id}">Next request (${waiting.length === 1 ? '1 waits' : `${countText(waiting)} wait`})</a> `}<a href="${approvalsUrl}"${mayDecide && status !== 'Waiting' && !next && html` data-next`}>To the approvals</a></p>
${visit.query.has('unknown') && notice('warning', 'The bank has not confirmed yet whether your decision was accepted. Open the page again in a moment. If the request is still waiting, you can decide again; the decision is applied at most once.', true)}
${approval.outcome === undefined && notice('info', html`${status === 'Waiting' && isOwn && html`<strong>Waiting for approval.</strong> `}${meanings[status]}${isOwn && status === 'Waiting' && ' You requested it, so somebody else must decide.'}`)}
${showOutcome(approval, subjects, visit.person)}
${desk(
  'What was asked for',
  html`<h2>What was asked for</h2>${facts([
    ['Action', actionWords[approval.action]],
    ['Amount', amount !== undefined && html`<strong class="balance">${amount}</strong>`],
    ...about(approval, subjects),
    ...effects.facts,
    ...Object.entries(request.body)
      .filter(([name]) => !(shownBefore.has(name) && (amount !== undefined || name.endsWith('_id'))))
      .filter(() => effects.changes.length === 0 || !isChangeOfFields.has(request.operation))
      .map(
        ([name, value]) =>
          [fieldLabel(name), html`<span class="wide">${showValue(value, approval, subjects)}</span>`] as const,
      ),
    ['State', showState(approval)],
    ['Asked by', showActor(requested_by, names)],
    ['Asked', showFullTime(requested_at)],
    ['Expires', status === 'Waiting' && showFullTime(expires_at)],
    ['Decided', decided_by !== null && html`${showFullTime(decided_at)} by ${showActor(decided_by, names)}`],
    ['Reason', reason],
    ['Id', idText(approval_id)],
  ])}${notes}`,
  html`${effects.refusal !== undefined && notice('warning', html`<strong>The bank would refuse this now.</strong> ${effects.refusal}`)}${effects.caution !== undefined && notice('warning', effects.caution)}${showChanges(approval, effects)}${day}
${mayDecide && status === 'Waiting' && decisionForm(visit, approval, amount, effects.refusal !== undefined, wrong)}`,
)}
<details><summary>For technicians</summary>${facts([['Request', html`<code class="long">${request.method} ${request.path}</code>`]])}
<pre class="payload" tabindex="0" aria-label="Body of the request">${JSON.stringify(request.body, null, 2)}</pre></details>${hasSlip && html`<p class="paper">${bankName()}: the cash was received, and is not posted yet. A second person must approve it first.</p><p class="paper signature">Signature of the bank</p>`}`;
}

function showChanges({ status, outcome }: Approval, { changes }: Effects): Html | false {
  const title =
    status === 'Waiting'
      ? 'What would change'
      : outcome?.status === 'error' || status !== 'Approved'
        ? 'What it would have changed'
        : 'What it changed';
  const heads = status === 'Waiting' ? (['Now', 'After'] as const) : (['Before', 'After'] as const);
  return changes.length > 0 && html`<h2>${title}</h2>${changeTable(title, heads, changes)}`;
}

/** The fields of a request that have words of their own: amounts with their currency, and what is named by its id. */
const shownBefore = new Set([
  'amount',
  'initial_deposit',
  'currency',
  'account_id',
  'from_account_id',
  'to_account_id',
  'client_id',
]);

/** Of these, every field is a row of what would change. */
const isChangeOfFields: ReadonlySet<string> = new Set([
  'set_account_limits',
  'create_api_key',
  'update_client',
  'update_webhook',
  'create_webhook',
]);

/** What the request is about, in the words of the counter; of a posting or a hold, its accounts too. */
function about(approval: Approval, subjects: Subjects): Fact[] {
  const { path: address, body } = approval.request;
  const words = { account_id: 'Account', client_id: 'Customer', from_account_id: 'From', to_account_id: 'To' };
  const named = `${address} ${JSON.stringify(body)}`;
  const parties = accountsOf(approval, subjects).filter(({ account_id }) => !named.includes(account_id));
  return [
    ...(address.match(/[a-z]{3}_[0-9a-f]{32}/g) ?? []).map((id) => ['About', showSubject(id, subjects)] as const),
    ...parties.map(({ account_id }) => ['Account', showSubject(account_id, subjects)] as const),
    ...Object.entries(words).flatMap(([name, word]) =>
      typeof body[name] === 'string' ? [[word, showSubject(body[name], subjects)] as const] : [],
    ),
  ];
}

/** The request may contain a `reason`, which differs from that of the decision, and the `status` of an account. */
function fieldLabel(name: string): string {
  const words: Record<string, string> = { reason: 'Reason given', status: 'New status' };
  return words[name] ?? fieldWords(name.replace(/_id$/, ''));
}

function showValue(value: unknown, approval: Approval, subjects: Subjects): Html | string {
  if (approval.request.operation === 'set_account_limits')
    return value === null ? 'no limit' : amountText(String(value), accountsOf(approval, subjects)[0]?.currency ?? null);
  if (Array.isArray(value)) return tags(value.map(String));
  if (typeof value !== 'string') return typeof value === 'object' ? JSON.stringify(value) : String(value);
  return resourcePage(value) === undefined ? value : idLink(value);
}

/** `isRefused`: the bank would refuse it now, so approving is not the obvious decision. */
function decisionForm(
  { person, fields }: PageRequest,
  { approval_id }: Approval,
  amount: string | undefined,
  isRefused: boolean,
  wrong: Wrong,
): Html {
  return html`<h2>Your decision</h2><form class="narrow" method="post" action="${approvalsUrl}/${approval_id}">${csrfField(person.csrf)}${once()}
${problem(wrong)}
${showField({ name: 'reason', label: 'Reason', type: 'textarea', maxLength: 500, isRequired: true, hint: 'Why you reject it; for an approval, if there is something to say.' }, fields, wrong)}
<div class="actions"><button name="decision" value="approval" formnovalidate${isRefused && html` class="secondary"`}>Approve${amount !== undefined && ` ${amount}`}</button> <button name="decision" value="rejection" class="danger quiet-danger">Reject</button></div>
</form>`;
}

/** What was made, as people know it; a posting with its receipt. */
function showMade(id: string, made: Record<string, unknown>, subjects: Subjects, { scopes }: Person): Html {
  if (!/^(txn|trf)_/.test(id))
    return typeof made['name'] === 'string' ? idLink(id, made['name']) : showSubject(id, subjects);
  const receipt = html`<a href="${counterUrl}/receipts/${id}">Receipt</a>`;
  // A receipt shows the account.
  return html`${idLink(id, 'The posting')}${scopes.has('accounts:read') && html` ${receipt}`}`;
}

const ids = ['transaction_id', 'transfer_id', 'account_id', 'key_id', 'client_id', 'webhook_id'];

function showOutcome({ status, outcome, request }: Approval, subjects: Subjects, person: Person): Html | false {
  if (status !== 'Approved') return false;
  if (outcome === undefined) return html`<p role="status">It is being executed. Open the page again in a moment.</p>`;
  if (outcome.status === 'error')
    return notice(
      'warning',
      html`It was approved, and refused when it was carried out: ${withNumbers(outcome.message, subjects)}`,
    );
  // The response to a capture contains the hold and the posting.
  const made = Object(outcome.data['transfer'] ?? outcome.data['transaction'] ?? outcome.data) as Record<
    string,
    unknown
  >;
  const id = ids
    .map((name) => made[name])
    .find((value) => typeof value === 'string' && resourcePage(value) !== undefined);
  const day = request.operation === 'close_day' && String(request.body['date']);
  return notice(
    'success',
    html`<strong>It has been done.</strong>${typeof id === 'string' && html` ${showMade(id, made, subjects, person)}`}${day !== false && html` <a href="${daysUrl}/${day}">${day}</a>`}`,
  );
}
