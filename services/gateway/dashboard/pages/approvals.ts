import type { FastifyInstance } from 'fastify';
import { approvalActions, approvalStatus } from '#libs/contracts/approvals.ts';
import type { Approval } from '#libs/contracts/approvals.ts';
import type { Account } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import type { Html } from '#libs/service/html.ts';
import { ApiRefused } from '../api.ts';
import { keyNamesOf } from '../html/actors.ts';
import { idempotencyKeyOf, orForm } from '../html/forms.ts';
import type { Wrong } from '../html/forms.ts';
import { addForm, addPage } from '../html/frame.ts';
import type { FrameOptions, Visit } from '../html/frame.ts';
import { showList } from '../html/lists.ts';
import { approvalPage, approvalsUrl, approvalTable } from './approval-views.ts';
import type { ShownApproval } from './approval-views.ts';

const path = '/admin/approvals';
const everybody = { scope: null } as const;
const filters = [
  { name: 'status', label: 'Status', options: approvalStatus.options },
  { name: 'action', label: 'Action', options: approvalActions },
];

/** What waits for a second person: list, show, approve, reject. Without a filter those that wait are shown. */
export function addApprovals(app: FastifyInstance, options: Pick<FrameOptions, 'origin'>): void {
  addPage(app, approvalsUrl, { title: 'Approvals', ...everybody }, async (visit) => {
    const query = visit.query.size === 0 ? new URLSearchParams({ status: 'Waiting' }) : visit.query;
    const { status = 200, content } = await showList<Approval>(
      { ...visit, query },
      {
        url: approvalsUrl,
        path,
        filters,
        show: async (rows, sorting) => approvalTable(rows, await namesOf(visit, rows), sorting),
      },
    );
    return {
      status,
      content: html`${content}<p class="quiet">Times are UTC. What you asked for yourself is shown too; somebody else decides about it. What nobody decides within 24 hours expires.</p>`,
    };
  });
  addPage(app, `${approvalsUrl}/count`, { title: 'Approvals', ...everybody }, async (visit) => ({
    content: await countOf(visit),
  }));
  addPage(app, `${approvalsUrl}/:approval_id`, { title: 'Approval', ...everybody }, async (visit) => {
    const approval = await approvalOf(visit);
    return { title: approval.summary, content: await contentOf(visit, approval, {}) };
  });
  addForm(
    app,
    `${approvalsUrl}/:approval_id`,
    { title: 'Approval', scope: 'approvals:write' },
    (visit) =>
      orForm(
        async () => {
          const decision = visit.fields.get('decision') === 'approval' ? 'approval' : 'rejection';
          const reason = (visit.fields.get('reason') ?? '').trim();
          // Two buttons of one form: each is a request of its own.
          const key = idempotencyKeyOf(visit.fields);
          await visit.api.post<Approval>(
            `${path}/${idIn(visit)}/${decision}`,
            reason === '' ? {} : { reason },
            key && `${key}-${decision}`,
          );
          return { goTo: `${approvalsUrl}/${idIn(visit)}` };
        },
        async (wrong) => contentOf(visit, await approvalOf(visit), wrong),
      ),
    options,
  );
}

const idIn = ({ params }: Visit) => encodeURIComponent(params['approval_id'] ?? '');
const approvalOf = async (visit: Visit) => (await visit.api.get<ShownApproval>(`${path}/${idIn(visit)}`)).data;
const namesOf = (visit: Visit, rows: readonly Approval[]) =>
  keyNamesOf(
    visit,
    rows.flatMap(({ requested_by, decided_by }) => [requested_by, decided_by]),
  );

async function contentOf(visit: Visit, approval: ShownApproval, wrong: Wrong): Promise<Html> {
  const [accounts, names] = await Promise.all([accountsOf(visit, approval), namesOf(visit, [approval])]);
  return approvalPage({
    approval,
    accounts,
    names,
    person: visit.person,
    isOwn: approval.requested_by === visit.actor,
    fields: visit.fields,
    wrong,
  });
}

/** The accounts that it is about, as they are now, as far as the person may see them. */
async function accountsOf({ api, person }: Visit, { changes }: Approval): Promise<Map<string, Account>> {
  const known = new Map<string, Account>();
  if (!person.scopes.has('accounts:read')) return known;
  const ids = new Set(changes.flatMap(({ field }) => field.match(/acc_[0-9a-f]{32}/g) ?? []));
  await Promise.all(
    [...ids].map(async (id) => {
      try {
        known.set(id, (await api.get<Account>(`/accounts/${id}`)).data);
      } catch (error) {
        if (!(error instanceof ApiRefused)) throw error;
      }
    }),
  );
  return known;
}

const mostCounted = 100;

/** How many wait for this person: the navigation fetches it. A page is worth showing without it. */
async function countOf({ api, actor }: Visit): Promise<Html> {
  try {
    const { data } = await api.get<Approval[]>(`${path}?status=Waiting&limit=${mostCounted}`);
    const waiting = data.filter(({ requested_by }) => requested_by !== actor).length;
    return html`<span id="waiting-approvals">${waiting > 0 && html`<strong class="count">${String(waiting)}${waiting === mostCounted && '+'}</strong>`}</span>`;
  } catch (error) {
    if (!(error instanceof ApiRefused)) throw error;
    return html`<span id="waiting-approvals"></span>`;
  }
}
