import type { Approval, ApprovalAction } from '#libs/contracts/approvals.ts';
import { fromMinor, isCurrency, toMinor } from '#libs/contracts/money.ts';
import type { Account } from '#libs/contracts/resources.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { KeyNames } from '../html/actors.ts';
import { actorOf } from '../html/actors.ts';
import type { Wrong } from '../html/forms.ts';
import { inputOf, once, problem } from '../html/forms.ts';
import type { Visit } from '../html/frame.ts';
import type { Person } from '../html/layout.ts';
import { csrfField } from '../html/layout.ts';
import type { Sorting } from '../html/lists.ts';
import {
  amountText,
  desk,
  facts,
  fullTimeOf,
  idLink,
  idText,
  moneyText,
  pageOf,
  parts,
  statusOf,
  table,
  timeOf,
} from '../html/show.ts';
import { shownOnce } from './api-keys.ts';

/** The approvals pages. */

export const approvalsUrl = '/admin/ui/approvals';

export type ShownApproval = Approval & { api_key?: string };

/** The actions in words. */
const actionWords: Record<ApprovalAction, string> = {
  reverse: 'Reversal',
  unfreeze: 'Unfreezing',
  create_key: 'API key',
  redrive: 'Dead letter sent again',
  post_above: 'Large posting',
  erase: 'Erasure of a client',
};

/** Accounts by their ids, if the person may read them. */
export type Known = ReadonlyMap<string, Account>;

/** Replaces account ids in a sentence by account numbers, and shortens other ids. */
function withNumbers(sentence: string, accounts: Known): string {
  return sentence.replace(
    /\b([a-z]{3}_[0-9a-f]{6})[0-9a-f]{26}\b/g,
    (id, short: string) => accounts.get(id)?.account_number ?? `${short}…`,
  );
}

/** Writes the amounts of a posting in the bank's format. Requests of other kinds may contain texts of people. */
function withAmounts(text: string, action: ApprovalAction): string {
  if (action !== 'post_above' && action !== 'reverse') return text;
  return text.replace(
    /([+-]?)(\d+(?:\.\d+)?) ([A-Z]{3})\b/g,
    (written, sign: string, amount: string, currency: string) =>
      isCurrency(currency) ? `${sign.replace('-', '−')}${amountText(amount, currency)}` : written,
  );
}

/** Says in one sentence what was asked for. */
export const summaryOf = ({ summary, action }: Approval, accounts: Known): string =>
  withNumbers(withAmounts(summary, action), accounts);

/** Does the same as withNumbers, with links to the resources. */
function linked(sentence: string, accounts: Known): Html {
  const parts = sentence.split(/\b([a-z]{3}_[0-9a-f]{32})\b/);
  return html`${parts.map((part, index) => (index % 2 === 1 ? idLink(part, withNumbers(part, accounts)) : part))}`;
}

/** `isQueue`: these are waiting for this person, and the first has the focus; the arrow keys lead to the others. */
export function approvalTable(
  rows: readonly Approval[],
  accounts: Known,
  names: KeyNames,
  sort: Sorting,
  isQueue: boolean,
): Html {
  return table<Approval>(
    'Approvals',
    [
      {
        title: 'Asked',
        sort,
        show: (row) =>
          html`<a${isQueue && html` data-hit`}${isQueue && row === rows[0] && html` data-next`} href="${approvalsUrl}/${row.approval_id}">${timeOf(row.requested_at)}</a>`,
      },
      {
        title: 'What',
        show: (row) =>
          html`<strong>${actionWords[row.action]}</strong><br><span class="details">${summaryOf(row, accounts)}</span>`,
      },
      {
        title: 'Before → after',
        show: (row) =>
          html`${changesOf(row, accounts).map(({ field, before, after }) => html`<div class="details">${field}: ${before !== null && html`${before} → `}<strong>${after ?? '–'}</strong></div>`)}`,
      },
      { title: 'Asked by', show: ({ requested_by }) => actorOf(requested_by, names) },
      {
        title: 'Status',
        show: (row) =>
          html`${statusOf(row.status)}${row.decided_by !== null && html`<br><span class="quiet">by ${actorOf(row.decided_by, names)}<br>${timeOf(row.decided_at)}</span>`}${row.outcome?.status === 'error' && html`<br><span class="quiet">refused when it was carried out</span>`}`,
      },
    ],
    rows,
    'There are no requests. A request appears here when somebody does something that requires a second person.',
  );
}

const meanings: Record<Approval['status'], string> = {
  Waiting: 'A second person must decide. Nothing has been done yet.',
  Approved: 'It was approved.',
  Rejected: 'It was rejected and will not be executed.',
  Expired: 'Nobody decided in time, so it will not be executed. It can be requested again.',
};

const balanceField = /^balance of account (acc_[0-9a-f]{32})$/;

interface Change {
  field: Html | string;
  before: string | null;
  after: string | null;
}

/** Returns the changes. While the request is waiting, a balance is shown as it is now and as it would be. */
function changesOf({ changes, status, action }: Approval, accounts: Known): Change[] {
  const text = (value: string | null) => value && withAmounts(value, action);
  return changes.map(({ field, before, after }) => {
    const account = accounts.get(balanceField.exec(field)?.[1] ?? '');
    const isShown = account && status === 'Waiting' && after !== null;
    return {
      field: linked(field, accounts),
      ...(isShown ? balances(account, after) : { before: text(before), after: text(after) }),
    };
  });
}

function balances({ balance, currency }: Account, change: string): Pick<Change, 'before' | 'after'> {
  const [moved, now] = [toMinor(change.replace(/^[+-]/, '').split(' ')[0] ?? '', currency), toMinor(balance, currency)];
  if (typeof moved !== 'bigint' || typeof now !== 'bigint') return { before: null, after: change };
  const text = (minor: bigint) => amountText(fromMinor(minor, currency), currency);
  return { before: text(now), after: text(change.startsWith('-') ? now - moved : now + moved) };
}

function changeTable(changes: readonly Change[]): Html {
  return table<Change>(
    'What would change',
    [
      { title: 'What', isPlain: true, show: ({ field }) => html`<span class="details">${field}</span>` },
      { title: 'Before', isNumber: true, isPlain: true, show: ({ before }) => before ?? '–' },
      { title: 'After', isNumber: true, isPlain: true, show: ({ after }) => html`<strong>${after ?? '–'}</strong>` },
    ],
    changes,
    'Nothing.',
  );
}

const views = [
  [approvalsUrl, 'Waiting for me', 'approvals:write'],
  [`${approvalsUrl}/mine`, 'Asked by me', null],
  [`${approvalsUrl}/all`, 'All', 'approvals:write'],
] as const;

/** Links to the lists of approvals. */
export function approvalViews(here: string, { scopes }: Person): Html {
  const shown = views.filter(([, , scope]) => scope === null || scopes.has(scope));
  return parts(
    'Approvals',
    shown.map(([href, text]) => ({ href, text, isHere: href === here })),
  );
}

/**
 * The page of one approval: the exact request, who made it, its outcome, and the form for the
 * decision if this person may decide.
 */
export function approvalPage(
  visit: Visit,
  approval: ShownApproval,
  accounts: Known,
  names: KeyNames,
  wrong: Wrong,
): Html {
  const { status, request, requested_by, requested_at, expires_at, decided_by, decided_at, reason, approval_id } =
    approval;
  const isOwn = requested_by === visit.actor;
  const mayDecide = !isOwn && visit.person.scopes.has('approvals:write');
  return html`<p><a href="${approvalsUrl}"${mayDecide && status !== 'Waiting' && html` data-next`}>To the approvals</a></p>
${visit.query.has('unknown') && html`<p class="notice wrong" role="alert">The bank has not confirmed yet whether your decision was accepted. Open the page again in a moment. If the request is still waiting, you can decide again; the decision is applied at most once.</p>`}
<p class="notice" role="status">${status === 'Waiting' && isOwn && html`<strong>Waiting for approval.</strong> `}${meanings[status]}${isOwn && status === 'Waiting' && ' You requested it, so somebody else must decide.'}</p>
${approval.api_key !== undefined && approval.outcome?.status === 'success' && shownOnce(approval.outcome.data as never, approval.api_key)}
${outcomeOf(approval)}
${desk(
  'What was asked for',
  html`<h2>What was asked for</h2>${facts([
    ['Action', actionWords[approval.action]],
    ['About', idsIn(request.path) !== '' && linked(idsIn(request.path), accounts)],
    ...Object.entries(request.body).map(
      ([name, value]) =>
        [labelOf(name), html`<span class="wide">${valueOf(name, value, approval, accounts)}</span>`] as const,
    ),
    ['Status', statusOf(status)],
    ['Asked by', actorOf(requested_by, names)],
    ['Asked', fullTimeOf(requested_at)],
    ['Waits until', status === 'Waiting' && fullTimeOf(expires_at)],
    ['Decided', decided_by !== null && html`${fullTimeOf(decided_at)} by ${actorOf(decided_by, names)}`],
    ['Reason', reason],
    ['Id', idText(approval_id)],
  ])}`,
  html`<h2>What would change</h2>${changeTable(changesOf(approval, accounts))}
${mayDecide && status === 'Waiting' && decisionForm(visit, approval, wrong)}`,
)}
<details><summary>For technicians</summary>${facts([['Request', html`<code class="long">${request.method} ${request.path}</code>`]])}
<pre class="payload" tabindex="0" aria-label="Body of the request">${JSON.stringify(request.body, null, 2)}</pre></details>`;
}

/** The request may contain a `reason`, which differs from that of the decision. */
const labelOf = (name: string): string =>
  name === 'reason'
    ? 'Reason given'
    : `${name.charAt(0).toUpperCase()}${name.slice(1)}`.replace(/_id$/, '').replaceAll('_', ' ');

function valueOf(name: string, value: unknown, { request: { body } }: Approval, accounts: Known): Html | string {
  if (typeof value !== 'string') return typeof value === 'object' ? JSON.stringify(value) : String(value);
  if (/^(amount|initial_deposit)$/.test(name) && /^\d+(\.\d+)?$/.test(value))
    return moneyText(value, body['currency'] === undefined ? null : String(body['currency']));
  return pageOf(value) === undefined ? value : idLink(value, accounts.get(value)?.account_number);
}

const idsIn = (path: string): string => (path.match(/[a-z]{3}_[0-9a-f]{32}/g) ?? []).join(', ');

function decisionForm({ person, fields }: Visit, { approval_id }: Approval, wrong: Wrong): Html {
  return html`<h2>Your decision</h2><form class="narrow" method="post" action="${approvalsUrl}/${approval_id}">${csrfField(person.csrf)}${once()}
${problem(wrong)}
${inputOf({ name: 'reason', label: 'Reason', type: 'textarea', maxLength: 500, hint: 'Required for a rejection. Stored with the approval.' }, fields, wrong)}
<div class="actions"><button name="decision" value="approval">Approve</button> <button name="decision" value="rejection" class="danger">Reject</button></div>
</form>`;
}

const ids = ['transaction_id', 'transfer_id', 'account_id', 'key_id', 'dead_letter_id', 'client_id'];

function outcomeOf({ status, outcome }: Approval): Html | false {
  if (status !== 'Approved') return false;
  if (outcome === undefined) return html`<p role="status">It is being executed. Open the page again in a moment.</p>`;
  if (outcome.status === 'error')
    return html`<p class="notice wrong" role="status">It was refused when it was carried out: ${outcome.message}</p>`;
  // The response to a capture contains the hold and the posting.
  const made = Object(outcome.data['transfer'] ?? outcome.data['transaction'] ?? outcome.data) as Record<
    string,
    unknown
  >;
  const id = ids.map((name) => made[name]).find((value) => typeof value === 'string' && pageOf(value) !== undefined);
  return html`<p class="notice" role="status"><strong>It has been done.</strong>${typeof id === 'string' && html` ${idLink(id)}`}</p>`;
}
