import type { FastifyInstance } from 'fastify';
import type { Approval } from '#libs/contracts/approvals.ts';
import { approvalActions, approvalStatus } from '#libs/contracts/approvals.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { keyNamesOf } from '../html/actors.ts';
import type { CsvColumn } from '../html/csv.ts';
import type { Wrong } from '../html/forms.ts';
import { enteredIn, idempotencyKeyOf, takeForm } from '../html/forms.ts';
import type { Shown, Visit } from '../html/frame.ts';
import { addForm, addPage } from '../html/frame.ts';
import type { List } from '../html/lists.ts';
import { addListPage } from '../html/lists.ts';
import { accountsBy } from '../html/owners.ts';
import type { Known, ShownApproval } from './approval-views.ts';
import { approvalPage, approvalsUrl, approvalTable, approvalViews, summaryOf } from './approval-views.ts';

const path = '/admin/approvals';
const everybody = { scope: null } as const;

type Shows = Pick<List<Approval>, 'fixed' | 'filters' | 'note'> & { url: string; title: string };

const lists: readonly Shows[] = [
  {
    url: approvalsUrl,
    title: 'Approvals waiting for me',
    fixed: { status: 'Waiting', requested_by: 'others' },
    note: 'Requests of others that you can decide. A request that nobody decides within 24 hours expires.',
  },
  {
    url: `${approvalsUrl}/mine`,
    title: 'Approvals asked by me',
    fixed: { requested_by: 'me' },
    filters: [{ name: 'status', label: 'Status', options: approvalStatus.options }],
    note: 'Somebody else decides about your requests. A request that nobody decides within 24 hours expires; it can be made again.',
  },
  {
    url: `${approvalsUrl}/all`,
    title: 'All approvals',
    fixed: {},
    filters: [
      { name: 'status', label: 'Status', options: approvalStatus.options },
      { name: 'action', label: 'Action', options: approvalActions },
    ],
    note: 'Requests that you can decide or could have decided, and your own requests.',
  },
];

/** Adds the pages of approvals: the lists, one approval, and its decision. */
export function addApprovals(app: FastifyInstance): void {
  for (const list of lists) addList(app, list);
  addPage(app, `${approvalsUrl}/count`, { title: 'Approvals', ...everybody }, async (visit) => ({
    content: await countOf(visit),
  }));
  const url = `${approvalsUrl}/:approval_id`;
  addPage(app, url, { title: 'Approval', ...everybody }, (visit) => draw(visit, visit.fields, {}));
  addForm(app, url, { title: 'Approval', scope: 'approvals:write' }, (visit) =>
    takeForm(visit, { draw, take: decide }),
  );
}

async function decide(visit: Visit): Promise<Shown> {
  const decision = visit.fields.get('decision') === 'approval' ? 'approval' : 'rejection';
  // Each of the two buttons sends a separate request.
  const key = idempotencyKeyOf(visit);
  const body = enteredIn(['reason'], visit.fields);
  const post = () => visit.api.post(`${path}/${visit.id}/${decision}`, body, key && `${key}-${decision}`);
  return { goTo: `${approvalsUrl}/${visit.id}${(await isTaken(post)) ? '' : '?unknown'}` };
}

function addList(app: FastifyInstance, { url, title, ...list }: Shows): void {
  const listOf = (visit: Visit): List<Approval> => ({
    ...list,
    path,
    pageSize: 25,
    // No request waits for a person who may not decide, and such a person sees only their own requests.
    above: () =>
      url === `${approvalsUrl}/mine` || visit.person.scopes.has('approvals:write')
        ? approvalViews(url, visit.person)
        : { goTo: `${approvalsUrl}/mine` },
    async show(rows, sorting) {
      const [accounts, names] = await Promise.all([accountsOf(visit, rows), namesOf(visit, rows)]);
      return approvalTable(rows, accounts, names, sorting, url === approvalsUrl);
    },
  });
  addListPage(app, url, { title, ...everybody }, listOf, columns);
}

const columns: CsvColumn<Approval>[] = [
  'approval_id',
  'action',
  'summary',
  { title: 'changes', value: ({ changes }) => changes.map(changeText).join('; ') },
  'requested_by',
  'requested_at',
  'expires_at',
  'status',
  'decided_by',
  'decided_at',
  'reason',
];
const changeText = ({ field, before, after }: Approval['changes'][number]) =>
  `${field}: ${before ?? '–'} → ${after ?? '–'}`;

/** Returns false if the bank did not confirm the decision. The approval's page then shows its state. */
async function isTaken(decide: () => Promise<unknown>): Promise<boolean> {
  try {
    await decide();
    return true;
  } catch (error) {
    if (!(error instanceof ApiRefused) || error.status < 500) throw error;
    return false;
  }
}

const namesOf = (visit: Visit, rows: readonly Approval[]) => keyNamesOf(visit, rows, 'requested_by', 'decided_by');

async function draw(visit: Visit, _fields: URLSearchParams, wrong: Wrong): Promise<Shown> {
  const { data: approval } = await visit.api.get<ShownApproval>(`${path}/${visit.id}`);
  const [accounts, names] = await Promise.all([accountsOf(visit, [approval]), namesOf(visit, [approval])]);
  return { title: summaryOf(approval, accounts), content: approvalPage(visit, approval, accounts, names, wrong) };
}

/** Returns the accounts that the approvals are about, if the person may read them. */
function accountsOf(visit: Visit, rows: readonly Approval[]): Promise<Known> {
  const texts = rows.flatMap(({ summary, request, changes }) => [
    summary,
    request.path,
    ...changes.map(({ field }) => field),
  ]);
  return accountsBy(
    visit,
    texts.flatMap((text) => text.match(/acc_[0-9a-f]{32}/g) ?? []),
  );
}

const mostCounted = 100;

/** Returns how many are waiting for this person, with a + if there are more. */
export async function countWaiting({ api }: Pick<Visit, 'api'>): Promise<string> {
  const { data } = await api.get<Approval[]>(`${path}?status=Waiting&requested_by=others&limit=${mostCounted}`);
  return `${data.length}${data.length === mostCounted ? '+' : ''}`;
}

/** The number in the navigation, which loads it. If it cannot be read, it is omitted. */
async function countOf(visit: Visit): Promise<Html> {
  try {
    const waiting = await countWaiting(visit);
    return html`<span id="waiting-approvals">${waiting !== '0' && html`<strong class="count">${waiting}</strong>`}</span>`;
  } catch (error) {
    if (!(error instanceof ApiRefused)) throw error;
    return html`<span id="waiting-approvals"></span>`;
  }
}
