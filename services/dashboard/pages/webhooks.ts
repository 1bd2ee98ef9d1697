import type { FastifyInstance } from 'fastify';
import { type Delivery, deliveryStatus, type Webhook } from '#libs/contracts/webhooks.ts';
import { type Html, html } from '#libs/service/html.ts';
import { inTurns, known } from '../api.ts';
import { readActorNames, showActor } from '../html/actors.ts';
import {
  addFormPage,
  descriptionField,
  enteredIdempotencyKey,
  enteredIn,
  type Field,
  type FormParts,
  once,
  showFields,
  showForm,
  waitingFor,
} from '../html/forms.ts';
import { addForm, type PageRequest } from '../html/frame.ts';
import { csrfField } from '../html/layout.ts';
import { addListPage, type Sorting, withQuery } from '../html/lists.ts';
import {
  emptyState,
  facts,
  idLink,
  idText,
  notice,
  pill,
  showFullTime,
  showOptions,
  showSecond,
  showTime,
  table,
  tags,
  toned,
} from '../html/show.ts';
import { type Asked, announce, needsApproval } from './needs-approval.ts';
import { showSecret } from './secrets.ts';

const url = '/admin/ui/webhooks';
const scope = 'webhooks:manage';
const asked: Asked = { action: 'webhook' };

/**
 * Adds the pages of webhooks: the list, one webhook with its deliveries and their attempts, test events, and
 * redeliveries.
 */
export function addWebhooks(app: FastifyInstance): void {
  addListPage<Webhook>(app, url, { title: 'Webhooks', scope }, (visit) => ({
    path: '/webhooks',
    above: () => html`<p><a role="button" href="${url}/new">Create a webhook</a></p>`,
    show: async (webhooks, sort) => webhookTable(webhooks, await readReasons(visit, webhooks), sort),
  }));
  addFormPage(
    app,
    `${url}/new`,
    { title: 'Create a webhook', scope },
    {
      async draw(visit, values, wrong) {
        const { says, button } = await announce(visit, asked, 'Create');
        return webhookForm(visit, values, { wrong, button, cancel: url }, says);
      },
      async take(visit) {
        const { data } = await visit.api.post<WithSecret>(
          '/webhooks',
          toBody(visit.fields),
          enteredIdempotencyKey(visit),
        );
        return showSecret(visit, data.webhook_id ?? data.approval_id ?? '', data.secret);
      },
    },
  );
  addFormPage(
    app,
    `${url}/:webhook_id/change`,
    { title: 'Change a webhook', scope },
    {
      async draw(visit, values, wrong) {
        const { data } = await visit.api.get<Webhook>(webhookPath(visit));
        const { url: receiver, description, event_types } = data;
        const current = new URLSearchParams({
          url: receiver,
          description: description ?? '',
          event_types: event_types.join('\n'),
        });
        const cancel = `/admin/ui${webhookPath(visit)}`;
        // Another description needs no approval.
        const says =
          (await needsApproval(visit, asked)) &&
          notice(
            'warning',
            'Another receiver, or other event types, are used only after a second person has approved them.',
          );
        return webhookForm(visit, values.size > 0 ? values : current, { wrong, button: 'Save', cancel }, says);
      },
      async take(visit) {
        const { data } = await visit.api.patch(webhookPath(visit), toBody(visit.fields));
        return waitingFor(data) ?? { redirectTo: `/admin/ui${webhookPath(visit)}` };
      },
    },
  );
  addFormPage(
    app,
    `${url}/:webhook_id/rotation`,
    { title: 'Rotate the secret of a webhook', scope },
    {
      async draw(visit, _values, wrong) {
        const { says, button } = await announce(visit, asked, 'Rotate');
        return showForm(
          visit,
          { wrong, button, cancel: `/admin/ui${webhookPath(visit)}` },
          html`<p>Events are signed with a new secret. Until the old one ends, they are signed with both.</p>
<label>The old secret <select name="overlap_seconds">${showOptions(overlaps, 86_400)}</select></label>${says}`,
        );
      },
      async take(visit) {
        const body = { overlap_seconds: Number(visit.fields.get('overlap_seconds')) };
        const path = `${webhookPath(visit)}/secret-rotation`;
        const { data } = await visit.api.post<WithSecret>(path, body, enteredIdempotencyKey(visit));
        return showSecret(visit, data.webhook_id ?? data.approval_id ?? '', data.secret);
      },
    },
  );
  addForm(app, `${url}/:webhook_id/status`, { title: 'Webhook', scope }, async (visit) => {
    const { data } = await visit.api.patch(webhookPath(visit), { status: visit.fields.get('status') });
    return waitingFor(data) ?? { redirectTo: `/admin/ui${webhookPath(visit)}` };
  });
  const one = { title: 'Webhook', scope } as const;
  addListPage<Delivery>(app, `${url}/:webhook_id`, one, async (visit) => {
    const { data: webhook } = await visit.api.get<Webhook>(webhookPath(visit));
    return {
      path: `${webhookPath(visit)}/deliveries`,
      filters: [{ name: 'status', label: 'Status', options: deliveryStatus.options }],
      above: async () => ({
        title: `Webhook to ${new URL(webhook.url).host}`,
        content: await webhookPage(webhook, visit),
      }),
      show: (deliveries, sort) =>
        refreshing(visit, html`${showSent(visit, deliveries)}${deliveryTable(webhook, deliveries, sort, visit)}`),
      note: 'Delivered deliveries are kept for 7 days, Failed ones for 30 days.',
    };
  });
  addForm(app, `${url}/:webhook_id/test`, one, (visit) => sendAndReturn(visit, '/test'));
  addForm(app, `${url}/:webhook_id/deliveries/:delivery_id/redelivery`, one, (visit) =>
    sendAndReturn(visit, `/deliveries/${encodeURIComponent(visit.params['delivery_id'] ?? '')}/redelivery`),
  );
}

const webhookPath = ({ id }: PageRequest) => `/webhooks/${id}`;

async function sendAndReturn(visit: PageRequest, action: string) {
  const path = `${webhookPath(visit)}${action}`;
  const { data } = await visit.api.post<Delivery>(path, {}, enteredIdempotencyKey(visit));
  return { redirectTo: `/admin/ui${webhookPath(visit)}?sent=${action === '/test' ? data.delivery_id : 'again'}` };
}

/** What is shown once, or, while a second person must approve, the approval. */
type WithSecret = Partial<Webhook> & { approval_id?: string; secret?: string };

/** The list of deliveries, which reads itself again, so that a response appears. */
const refreshing = ({ path, query }: PageRequest, content: Html): Html =>
  html`<div id="deliveries" hx-get="${withQuery(path, query)}" hx-trigger="every 5s, refresh" hx-select="#deliveries" hx-swap="outerHTML">${content}</div>`;

/** What became of the test event, or the delivery, that was sent from this page. */
function showSent({ query }: PageRequest, deliveries: readonly Delivery[]): Html | false {
  if (query.get('sent') === 'again') return notice('info', 'It is being sent again. The response appears below.');
  if (!query.has('sent')) return false;
  const attempt = deliveries.find(({ delivery_id }) => delivery_id === query.get('sent'))?.attempts.at(-1);
  if (!attempt) return notice('info', 'It is being sent. The response appears below.');
  const isTaken = attempt.response_status !== null && attempt.response_status < 300;
  return notice(isTaken ? 'success' : 'warning', html`It was sent. The receiver’s response: ${answerText(attempt)}.`);
}

function toBody(fields: URLSearchParams): object {
  const types = (fields.get('event_types') ?? '').split(/[\s,]+/).filter((type) => type !== '');
  const { url: receiver = '', description = null } = enteredIn(['url', 'description'], fields);
  return { url: receiver, event_types: types, description };
}

function webhookForm(visit: PageRequest, values: URLSearchParams, form: FormParts, says?: Html | false): Html {
  const receiver: Field = {
    name: 'url',
    label: 'Receiver',
    isRequired: true,
    maxLength: 2000,
    placeholder: 'https://…',
    hint: 'The https address to which events are sent.',
  };
  const types: Field = {
    name: 'event_types',
    label: 'Event types',
    type: 'textarea',
    isRequired: true,
    hint: 'One a line: * for every event, a group such as transaction.*, or one type such as account.opened.',
  };
  const fields = showFields([receiver, types, descriptionField('What it is for.')], values, form.wrong);
  return showForm(visit, form, html`${fields}${says}`);
}

const overlaps = [
  [0, 'ends at once'],
  [86_400, 'signs for one more day'],
  [604_800, 'signs for one more week'],
] as const;

const isFailing = ({ status, failing_since }: Webhook): boolean => status === 'Active' && failing_since !== null;

const showState = (webhook: Webhook): Html =>
  isFailing(webhook) ? toned('wait', 'warning', 'Active, failing') : pill(webhook.status);

/** A list with more failing webhooks says why for the first of them; the page of each one says so, too. */
const mostReasons = 10;

/** Returns why the newest delivery of failing webhooks has failed, by the webhook's id. */
async function readReasons({ api }: PageRequest, webhooks: readonly Webhook[]): Promise<ReadonlyMap<string, string>> {
  const reasons = new Map<string, string>();
  await inTurns(webhooks.filter(isFailing).slice(0, mostReasons), async ({ webhook_id }) => {
    const newest = await known(api.get<Delivery[]>(`/webhooks/${webhook_id}/deliveries?limit=10`));
    const attempt = newest?.data.flatMap(({ attempts }) => attempts.slice(-1))[0];
    if (attempt) reasons.set(webhook_id, answerText(attempt));
  });
  return reasons;
}

function webhookTable(webhooks: readonly Webhook[], reasons: ReadonlyMap<string, string>, sort: Sorting): Html {
  return table<Webhook>(
    'Webhooks',
    [
      { title: 'Created', sort, show: ({ webhook_id, created_at }) => idLink(webhook_id, showTime(created_at)) },
      { title: 'Receiver', show: (row) => html`<span class="long">${row.url}</span>` },
      { title: 'Status', show: showState },
      { title: 'Event types', show: ({ event_types }) => tags(event_types) },
      {
        title: 'Failing since',
        show: ({ webhook_id, failing_since }) =>
          html`${failing_since !== null && showTime(failing_since)}${reasons.has(webhook_id) && html`<br><span class="quiet long">${reasons.get(webhook_id)}</span>`}`,
      },
      { title: 'Description', show: ({ description }) => html`<span class="text">${description}</span>` },
    ],
    webhooks,
    emptyState(
      'There is no webhook yet. A webhook sends the bank’s events, such as each posting, to a program of yours.',
      {
        href: `${url}/new`,
        text: 'Create the first one',
      },
    ),
  );
}

async function webhookPage(webhook: Webhook, visit: PageRequest): Promise<Html> {
  const { webhook_id, client_id, created_by } = webhook;
  const reasons = await readReasons(visit, [webhook]);
  const other = webhook.status === 'Active' ? (['Paused', 'Pause'] as const) : (['Active', 'Resume'] as const);
  return html`<p><a href="${url}">To the list</a></p>${isFailing(webhook) && /^HTTP 2/.test(reasons.get(webhook_id) ?? '') && notice('info', 'The receiver answers again. What waits is sent at its next attempt, or now with Send again.')}
${facts([
  ['Receiver', webhook.url],
  ['Status', showState(webhook)],
  ['Last response', reasons.get(webhook_id)],
  ['Event types', tags(webhook.event_types)],
  ['Events of', client_id === null ? 'the whole bank' : idLink(client_id)],
  ['Description', webhook.description],
  ['Failing since', webhook.failing_since !== null && showFullTime(webhook.failing_since)],
  [
    'Previous secret signs until',
    webhook.previous_secret_ends_at !== null && showFullTime(webhook.previous_secret_ends_at),
  ],
  [
    'Created',
    html`${showFullTime(webhook.created_at)} by ${showActor(created_by, await readActorNames(visit, [webhook], 'created_by'))}`,
  ],
  ['Id', idText(webhook_id)],
])}
<div class="actions">${webhook.status === 'Active' && button(`${url}/${webhook_id}/test`, 'Send a test event', visit)}<a role="button" class="secondary" href="${url}/${webhook_id}/change">Change</a> <a role="button" class="secondary" href="${url}/${webhook_id}/rotation">Rotate the secret</a>
<form method="post" action="${url}/${webhook_id}/status">${csrfField(visit.person.csrf)}<input type="hidden" name="status" value="${other[0]}"><button class="secondary">${other[1]}</button></form></div>
<h2>Deliveries</h2>`;
}

const button = (action: string, label: string, { person }: PageRequest) =>
  html`<form method="post" action="${action}">${csrfField(person.csrf)}${once()}<button class="secondary">${label}</button></form>`;

function deliveryTable(webhook: Webhook, deliveries: readonly Delivery[], sort: Sorting, visit: PageRequest): Html {
  return table<Delivery>(
    'Deliveries',
    [
      { title: 'Created', sort, show: ({ created_at }) => showSecond(created_at) },
      {
        title: 'Event',
        show: ({ event_type, event_id }) => html`${event_type}<br><code class="long">${event_id}</code>`,
      },
      { title: 'Status', show: showDelivery },
      { title: 'Attempts', show: attemptList },
      { title: 'Next attempt', show: ({ next_attempt_at }) => showTime(next_attempt_at) },
      {
        title: 'Send again',
        show: ({ delivery_id }) =>
          webhook.status === 'Active'
            ? button(`${url}/${webhook.webhook_id}/deliveries/${delivery_id}/redelivery`, 'Send again', visit)
            : '',
      },
    ],
    deliveries,
    'No delivery matches.',
  );
}

const showDelivery = ({ status, attempts }: Delivery): Html =>
  status === 'Pending' && attempts.length > 0
    ? toned('wait', 'warning', `Failed ${attempts.length === 1 ? 'once' : `${attempts.length} times`}, tries again`)
    : pill(status);

const answerText = ({ response_status, error }: Delivery['attempts'][number]): string =>
  response_status === null ? (error ?? 'no answer') : `HTTP ${response_status}`;

function attemptList({ attempts }: Delivery): Html | string {
  const last = attempts.at(-1);
  if (!last) return 'none yet';
  if (attempts.length === 1) return html`${answerText(last)}, ${last.duration_ms} ms`;
  return html`<details><summary>${attempts.length}, the last: ${answerText(last)}</summary><ol>${attempts.map((attempt) => html`<li>${showSecond(attempt.attempted_at)}: ${answerText(attempt)}, ${attempt.duration_ms} ms</li>`)}</ol></details>`;
}
