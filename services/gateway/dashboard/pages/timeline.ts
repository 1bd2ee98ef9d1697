import type { Timeline } from '#libs/contracts/administration.ts';
import type { Html } from '#libs/service/html.ts';
import { html } from '#libs/service/html.ts';
import type { KeyNames } from '../html/actors.ts';
import { actorOf } from '../html/actors.ts';
import { amountText, facts, idLink, moneyText, statusOf, table } from '../html/show.ts';

type TimelineEntry = Timeline['entries'][number];
type TimelineEvent = Timeline['events'][number];

/** The history of a transaction: request, command, entries on both sides, events. */
export function timelineOf(
  { transaction, request, command, booked_at, entries, events }: Timeline,
  names: KeyNames,
): Html {
  return html`<h2>Timeline</h2><ol class="timeline">
<li><h3>Request</h3>${facts([
    ['Accepted', moment(request.accepted_at, request.accepted_at)],
    ['Caller', actorOf(request.actor, names)],
    [
      'Request id',
      html`<a href="/admin/ui/audit?request_id=${encodeURIComponent(request.request_id)}"><code>${request.request_id}</code></a>`,
    ],
    ['Idempotency key', request.idempotency_key !== null && html`<code>${request.idempotency_key}</code>`],
  ])}</li>
<li><h3>Command</h3>${facts([
    ['Name', command.name],
    ['ce_id', html`<code>${command.id}</code>`],
    ['Topic', `${command.topic}, partition ${command.partition}`],
  ])}</li>
<li><h3>Entries</h3>${booked_at === null ? html`<p>Nothing was posted${transaction.failure_code !== undefined && html`: ${transaction.failure_code}`}.</p>` : html`${facts([['Posted', moment(booked_at, request.accepted_at)]])}${entryRows(entries)}`}</li>
<li><h3>Events</h3>${eventRows(events, request.accepted_at)}</li>
</ol><p class="quiet">Times are UTC, to the millisecond, with the time since the request was accepted.</p>`;
}

/** Shows a time to the millisecond, and the time since the first step. */
function moment(iso: string, since: string): Html {
  const after = Date.parse(iso) - Date.parse(since);
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 23)}</time>${iso !== since && html` <span class="quiet after">(${after < 0 ? '−' : '+'}${Math.abs(after)} ms)</span>`}`;
}

const isOwn = ({ account_type }: TimelineEntry) => account_type === 'Teller' || account_type === 'Vault';

function entryRows(entries: readonly TimelineEntry[]): Html {
  return table<TimelineEntry>(
    'Entries of the operation',
    [
      {
        title: 'Account',
        show: (row) => (isOwn(row) ? row.account_number : idLink(row.account_id, row.account_number)),
      },
      { title: 'Kind', show: (row) => row.account_type },
      { title: 'Debit', isNumber: true, show: (row) => (row.side === 'DR' ? moneyText(row.amount, row.currency) : '') },
      {
        title: 'Credit',
        isNumber: true,
        show: (row) => (row.side === 'CR' ? moneyText(row.amount, row.currency) : ''),
      },
      {
        title: 'Balance after',
        isNumber: true,
        show: (row) => amountText(row.balance_after, row.currency),
      },
      { title: 'No.', isNumber: true, show: (row) => String(row.sequence) },
    ],
    entries,
    'No entry is known.',
  );
}

function eventRows(events: readonly TimelineEvent[], since: string): Html {
  return table<TimelineEvent>(
    'Events',
    [
      { title: 'Event', show: (row) => html`<span class="wide">${row.type}</span>` },
      { title: 'ce_id', show: (row) => html`<code class="long">${row.ce_id}</code>` },
      { title: 'Topic', show: (row) => row.topic },
      { title: 'State', show: ({ state }) => statusOf(state === 'not_kept' ? 'no longer kept' : state) },
      { title: 'Recorded', show: ({ recorded_at }) => (recorded_at === null ? '–' : moment(recorded_at, since)) },
      { title: 'Published', show: ({ published_at }) => (published_at === null ? '–' : moment(published_at, since)) },
    ],
    events,
    'There is no event.',
  );
}
