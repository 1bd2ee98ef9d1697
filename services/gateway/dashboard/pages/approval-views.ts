import type { Approval } from '#libs/contracts/approvals.ts';
import { fromMinor, toMinor } from '#libs/contracts/money.ts';
import type { Account } from '#libs/contracts/resources.ts';
import { html } from '#libs/service/html.ts';
import type { Html } from '#libs/service/html.ts';
import { actorOf } from '../html/actors.ts';
import type { KeyNames } from '../html/actors.ts';
import { inputOf, once, problem } from '../html/forms.ts';
import type { Wrong } from '../html/forms.ts';
import type { Shown } from '../html/frame.ts';
import { csrfField } from '../html/layout.ts';
import type { Person } from '../html/layout.ts';
import type { Sorting } from '../html/lists.ts';
import { facts, idLink, moneyText, pageOf, statusOf, table, timeOf } from '../html/show.ts';
import { shownOnce } from './api-key-views.ts';

/** The approvals pages. */

export const approvalsUrl = '/admin/ui/approvals';

export type ShownApproval = Approval & { api_key?: string };

/** What a form that was to do something shows instead, where it must be approved first: the page of its approval. */
export function waitingFor(data: unknown): Shown | undefined {
  const { approval_id } = Object(data) as { approval_id?: unknown };
  return typeof approval_id === 'string' ? { goTo: `${approvalsUrl}/${approval_id}?asked` } : undefined;
}

export function approvalTable(rows: readonly Approval[], names: KeyNames, sort: Sorting): Html {
  return table<Approval>(
    'Approvals',
    [
      {
        title: 'Asked',
        sort,
        show: ({ approval_id, requested_at }) =>
          html`<a href="${approvalsUrl}/${approval_id}">${timeOf(requested_at)}</a>`,
      },
      {
        title: 'What',
        show: ({ action, summary }) => html`<strong>${action}</strong><br><span class="details">${summary}</span>`,
      },
      { title: 'Asked by', show: ({ requested_by }) => actorOf(requested_by, names) },
      {
        title: 'Status',
        show: (row) =>
          html`${statusOf(row.status)}${row.decided_by !== null && html`<br><span class="quiet">by ${actorOf(row.decided_by, names)}<br>${timeOf(row.decided_at)}</span>`}`,
      },
      {
        title: 'Outcome',
        show: ({ outcome }) => (outcome === undefined ? '–' : outcome.status === 'error' ? outcome.code : 'done'),
      },
    ],
    rows,
    'No approval fits.',
  );
}

const meanings: Record<Approval['status'], string> = {
  Waiting: 'It waits for a second person. Nothing has been done yet.',
  Approved: 'It was approved.',
  Rejected: 'It was rejected: it has not been done, and will not be.',
  Expired: 'Nobody decided in time: it has not been done, and will not be. It can be asked for again.',
};

const balanceField = /^balance of account (acc_[0-9a-f]{32})$/;

interface Change {
  field: Html | string;
  before: string | null;
  after: string | null;
}

/** What would change. While it waits, a balance is shown as it is now and as it would be, for those who may see it. */
export function changesOf({ changes, status }: Approval, accounts: ReadonlyMap<string, Account>): Change[] {
  return changes.map(({ field, before, after }) => {
    const account = accounts.get(balanceField.exec(field)?.[1] ?? '');
    if (!account) return { field, before, after };
    const name = html`balance of account ${idLink(account.account_id, account.account_number)}`;
    return status === 'Waiting' && after !== null
      ? { field: name, ...balances(account, after) }
      : { field: name, before, after };
  });
}

function balances({ balance, currency }: Account, change: string): Pick<Change, 'before' | 'after'> {
  const [moved, now] = [toMinor(change.replace(/^[+-]/, '').split(' ')[0] ?? '', currency), toMinor(balance, currency)];
  if (typeof moved !== 'bigint' || typeof now !== 'bigint') return { before: null, after: change };
  const text = (minor: bigint) => `${moneyText(fromMinor(minor, currency), currency)} ${currency}`;
  return { before: text(now), after: text(change.startsWith('-') ? now - moved : now + moved) };
}

function changeTable(changes: readonly Change[]): Html {
  return table<Change>(
    'What would change',
    [
      { title: 'What', isPlain: true, show: ({ field }) => html`<span class="details">${field}</span>` },
      { title: 'Before', isPlain: true, show: ({ before }) => before ?? '–' },
      { title: 'After', isPlain: true, show: ({ after }) => html`<strong>${after ?? '–'}</strong>` },
    ],
    changes,
    'Nothing.',
  );
}

export interface ApprovalPage {
  approval: ShownApproval;
  accounts: ReadonlyMap<string, Account>;
  names: KeyNames;
  person: Person;
  isOwn: boolean;
  fields: URLSearchParams;
  wrong: Wrong;
}

/** All of one: what exactly is asked for, by whom, what became of it, and the decision where it is this person's to make. */
export function approvalPage({ approval, accounts, names, person, isOwn, fields, wrong }: ApprovalPage): Html {
  const { status, request, requested_by, requested_at, expires_at, decided_by, decided_at, reason, approval_id } =
    approval;
  return html`<p><a href="${approvalsUrl}">To the approvals</a></p>
<p class="notice" role="status">${status === 'Waiting' && isOwn && html`<strong>Waiting for approval.</strong> `}${meanings[status]}${isOwn && status === 'Waiting' && ' You asked for it: somebody else must decide.'}</p>
${approval.api_key !== undefined && approval.outcome?.status === 'success' && shownOnce(approval.outcome.data as never, approval.api_key)}
${outcomeOf(approval)}
<h2>What would change</h2>${changeTable(changesOf(approval, accounts))}
<h2>What was asked for</h2>${facts([
    ['Action', approval.action],
    ['Status', statusOf(status)],
    ['Asked by', actorOf(requested_by, names)],
    ['Asked', html`${timeOf(requested_at)} UTC`],
    ['Waits until', status === 'Waiting' && html`${timeOf(expires_at)} UTC`],
    ['Decided', decided_by !== null && html`${timeOf(decided_at)} UTC by ${actorOf(decided_by, names)}`],
    ['Reason', reason],
    ['Request', html`<code class="long">${request.method} ${request.path}</code>`],
    ['Id', html`<code>${approval_id}</code>`],
  ])}
<pre class="payload" tabindex="0" aria-label="Body of the request">${JSON.stringify(request.body, null, 2)}</pre>
${status === 'Waiting' && !isOwn && person.scopes.has('approvals:write') && decisionForm(person, approval, fields, wrong)}`;
}

function decisionForm(person: Person, { approval_id }: Approval, fields: URLSearchParams, wrong: Wrong): Html {
  return html`<h2>Your decision</h2><form class="narrow" method="post" action="${approvalsUrl}/${approval_id}">${csrfField(person.csrf)}${once()}
${problem(wrong)}
${inputOf({ name: 'reason', label: 'Reason', type: 'textarea', maxLength: 500, hint: 'Needed to reject. Stands with the approval.' }, fields, wrong)}
<div class="actions"><button name="decision" value="approval">Approve</button> <button name="decision" value="rejection" class="danger">Reject</button></div>
</form>`;
}

const ids = ['transaction_id', 'transfer_id', 'account_id', 'key_id', 'dead_letter_id'];

function outcomeOf({ status, outcome }: Approval): Html | false {
  if (status !== 'Approved') return false;
  if (outcome === undefined)
    return html`<p role="status">It is being carried out. Open the page again in a moment.</p>`;
  if (outcome.status === 'error')
    return html`<p class="notice wrong" role="status">It was refused when it was carried out: ${outcome.message}</p>`;
  const id = ids
    .map((name) => outcome.data[name])
    .find((value) => typeof value === 'string' && pageOf(value) !== undefined);
  return html`<p class="notice" role="status"><strong>It has been done.</strong>${typeof id === 'string' && html` ${idLink(id)}`}</p>`;
}
