import type { FastifyInstance } from 'fastify';
import { type Delivery, deliveryStatus, type Webhook } from '#libs/contracts/webhooks.ts';
import { type Html, html } from '#libs/service/html.ts';
import { readKeyNames, showActor } from '../html/actors.ts';
import { enteredIdempotencyKey, once } from '../html/forms.ts';
import { addForm, type PageRequest } from '../html/frame.ts';
import { csrfField } from '../html/layout.ts';
import { addListPage, type Sorting } from '../html/lists.ts';
import { facts, idLink, idText, notice, pill, showFullTime, showTime, table, tags } from '../html/show.ts';

const url = '/admin/ui/webhooks';
const scope = 'webhooks:manage';

/**
 * Adds the pages of webhooks: the list, one webhook with its deliveries and their attempts, test events, and
 * redeliveries.
 */
export function addWebhooks(app: FastifyInstance): void {
  addListPage<Webhook>(app, url, { title: 'Webhooks', scope }, () => ({
    path: '/webhooks',
    show: webhookTable,
    note: 'Webhooks are created by the API: POST /webhooks.',
  }));
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
      show: (deliveries, sort) => deliveryTable(webhook, deliveries, sort, visit),
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
  await visit.api.post(`${webhookPath(visit)}${action}`, {}, enteredIdempotencyKey(visit));
  return { redirectTo: `/admin/ui${webhookPath(visit)}?sent` };
}

function webhookTable(webhooks: readonly Webhook[], sort: Sorting): Html {
  return table<Webhook>(
    'Webhooks',
    [
      { title: 'Created', sort, show: ({ webhook_id, created_at }) => idLink(webhook_id, showTime(created_at)) },
      { title: 'Receiver', show: (row) => html`<span class="long">${row.url}</span>` },
      { title: 'Status', show: ({ status }) => pill(status) },
      { title: 'Event types', show: ({ event_types }) => tags(event_types) },
      { title: 'Failing since', show: ({ failing_since }) => showTime(failing_since) },
      { title: 'Description', show: ({ description }) => html`<span class="text">${description}</span>` },
    ],
    webhooks,
    'There is no webhook yet.',
  );
}

async function webhookPage(webhook: Webhook, visit: PageRequest): Promise<Html> {
  const { webhook_id, client_id, created_by } = webhook;
  return html`<p><a href="${url}">To the list</a></p>${visit.query.has('sent') && notice('info', 'It is being sent. Reload this page to see the response.')}
${facts([
  ['Receiver', webhook.url],
  ['Status', pill(webhook.status)],
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
    html`${showFullTime(webhook.created_at)} by ${showActor(created_by, await readKeyNames(visit, [webhook], 'created_by'))}`,
  ],
  ['Id', idText(webhook_id)],
])}
${webhook.status === 'Active' && button(`${url}/${webhook_id}/test`, 'Send a test event', visit)}
<h2>Deliveries</h2>`;
}

const button = (action: string, label: string, { person }: PageRequest) =>
  html`<form method="post" action="${action}">${csrfField(person.csrf)}${once()}<button class="secondary">${label}</button></form>`;

function deliveryTable(webhook: Webhook, deliveries: readonly Delivery[], sort: Sorting, visit: PageRequest): Html {
  return table<Delivery>(
    'Deliveries',
    [
      { title: 'Created', sort, show: ({ created_at }) => showTime(created_at) },
      {
        title: 'Event',
        show: ({ event_type, event_id }) => html`${event_type}<br><code class="long">${event_id}</code>`,
      },
      { title: 'Status', show: ({ status }) => pill(status) },
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

function attemptList({ attempts }: Delivery): Html | string {
  const last = attempts.at(-1);
  if (!last) return 'none yet';
  const answer = ({ response_status, error }: Delivery['attempts'][number]) =>
    response_status === null ? (error ?? 'no answer') : `HTTP ${response_status}`;
  if (attempts.length === 1) return html`${answer(last)}, ${last.duration_ms} ms`;
  return html`<details><summary>${attempts.length}, the last: ${answer(last)}</summary><ol>${attempts.map((attempt) => html`<li>${showTime(attempt.attempted_at)}: ${answer(attempt)}, ${attempt.duration_ms} ms</li>`)}</ol></details>`;
}
