import type { FastifyInstance } from 'fastify';
import type { Operations } from '#libs/contracts/operations.ts';
import { type Html, html } from '#libs/service/html.ts';
import { addPage } from '../html/frame.ts';
import { facts, notice, numeric, refreshed, showTime, showVerdict, table } from '../html/show.ts';
import { actionWords } from './approval-words.ts';

const url = '/admin/ui/operations';

type Service = Operations['services'][number];
type Lag = NonNullable<Operations['consumer_lag']>[number];

/** Shows the state of every service, also of those that do not respond. The page refreshes itself. */
export function addOperations(app: FastifyInstance): void {
  addPage(app, url, { title: 'Operations', scope: 'books:read' }, async ({ api, now }) => {
    const { data } = await api.get<Operations>('/admin/operations');
    const content = html`${verdict(data)}${showSwitchedOff(data)}<h2>Services</h2>${services(data)}
<h2>Requests of this gateway</h2>${requests(data.requests)}
<h2>The last hour</h2>${lastHour(data.history ?? [])}
<h2>Dead letters</h2>${deadLetters(data.dead_letters_open)}
<h2>Consumer lag</h2>${lag(data.consumer_lag)}
<p class="quiet">Breakers, requests, and the last hour are those of the gateway that responded; if there are several, it may be another one each time.</p>`;
    return refreshed('operations', url, 10, now, content);
  });
}

/** Says which actions one person may do alone, and why. Only a bank in development needs no reason, and is told nothing. */
export function showSwitchedOff({ four_eyes: { off, reason } }: Operations): Html | false {
  return (
    off.length > 0 &&
    reason !== null &&
    notice(
      'warning',
      html`No second person must approve: ${off.map((action) => actionWords[action]).join(', ')}. Reason: ${reason}`,
    )
  );
}

/** As the alerts BankOutboxStuck and BankConsumerLag have them. */
const tooOldMs = 15_000;
const tooFarBehind = 2_000;

/** Says whether anything is not as it should be, and what. */
function verdict(state: Operations): Html {
  const { services: all, breakers, dead_letters_open, consumer_lag, last_verification: checked } = state;
  const { requests: recent, webhooks_failing } = state;
  const groups = Map.groupBy(withoutQueries(consumer_lag ?? []), ({ group }) => group);
  const behind = [...groups].map(
    ([group, rows]) => [group, rows.reduce((sum, { lag }) => sum + Number(lag), 0)] as const,
  );
  const wrong = [
    checked?.state === 'broken' && 'the last verification has found rules of the books or the audit that are broken',
    checked?.state === 'interrupted' && 'the last verification has not finished, and says nothing about the books',
    ...all.filter(({ answers }) => !answers).map(({ service }) => `${service} does not answer`),
    ...all.map(({ service, outbox, answers }) =>
      outbox === null
        ? answers && `it is not known what ${service} has not published`
        : Number(outbox.oldest_age_ms) > tooOldMs && `${service} does not publish its events`,
    ),
    ...breakers.filter(({ state }) => state !== 'closed').map(({ service }) => `requests to ${service} are stopped`),
    dead_letters_open === null && 'it is not known whether dead letters are open',
    Number(dead_letters_open) > 0 && `dead letters are open: ${dead_letters_open}`,
    Number(webhooks_failing) > 0 && `webhooks of the bank to which events cannot be delivered: ${webhooks_failing}`,
    consumer_lag === null && 'the broker does not answer',
    ...behind.flatMap(([group, lag]) => (lag > tooFarBehind ? [`${group} is ${lag} messages behind`] : [])),
    Number(recent.server_errors) > 0 && `responses that were errors of the bank: ${recent.server_errors}`,
  ].filter((text) => text !== false);
  return wrong.length === 0
    ? notice('success', 'Everything is as usual.')
    : notice('warning', html`<strong>Not as usual:</strong> ${wrong.join('; ')}.`);
}

function services({ services: rows, breakers }: Operations): Html {
  const breakerState = (service: string) => breakers.find((breaker) => breaker.service === service)?.state ?? 'closed';
  return table<Service>(
    'Services',
    [
      { title: 'Service', show: ({ service }) => html`<strong>${service}</strong>` },
      { title: 'Answers', show: ({ answers }) => showVerdict(answers ? 'yes' : 'no', answers) },
      {
        title: 'Breaker',
        show: ({ service }) => {
          const isClosed = breakerState(service) === 'closed';
          return showVerdict(isClosed ? 'requests pass' : 'requests are stopped', isClosed);
        },
      },
      numeric('Outbox rows', ({ outbox }) => (outbox === null ? 'not known' : String(outbox.rows))),
      numeric('Oldest', ({ outbox }) =>
        outbox === null ? 'not known' : `${(Number(outbox.oldest_age_ms) / 1000).toFixed(1)} s`,
      ),
    ],
    rows,
    'No service is known.',
  );
}

function requests({ window_seconds, count, server_errors, mean_ms, slowest_ms }: Operations['requests']): Html {
  const ms = (value: number | null) => (value === null ? '–' : `${Number(value).toFixed(1)} ms`);
  return facts([
    [`Last ${window_seconds} s`, `${count}, ${(Number(count) / Number(window_seconds)).toFixed(1)} a second`],
    ['Server errors', String(server_errors)],
    ['Mean, slowest', `${ms(mean_ms)}, ${ms(slowest_ms)}`],
  ]);
}

type Sample = Operations['history'][number];

/** Fewer are a diagonal, and no picture of an hour. */
const fewestSamples = 5;

/** Lag and latency as pictures. Their figures are in the text, too. */
function lastHour(samples: readonly Sample[]): Html {
  if (samples.length < fewestSamples)
    return html`<p role="status">This gateway has just started: pictures need ${String(fewestSamples)} samples, and it takes one each minute.</p>`;
  const [from, to] = [samples[0], samples.at(-1)].map((sample) => showTime(sample?.at ?? null));
  const picture = (title: string, unit: string, read: (sample: Sample) => number | string | null) =>
    html`<figure class="picture">${line(
      title,
      unit,
      samples.map((sample) => (read(sample) === null ? null : Number(read(sample)))),
    )}<p class="ends">${from}${to}</p></figure>`;
  return html`<div class="lines-of-time">${picture('Messages behind', '', ({ lag }) => lag)}${picture('Mean time of a request', ' ms', ({ mean_ms }) => mean_ms)}${picture('Slowest request', ' ms', ({ slowest_ms }) => slowest_ms)}${picture('Requests a minute', '', ({ count }) => count)}</div>`;
}

const size = { width: 300, height: 60 };

/** A line over time, with a gap where nothing is known. */
function line(title: string, unit: string, values: readonly (number | null)[]): Html {
  const known = values.filter((value) => value !== null);
  const text = (value: number | undefined) => (value === undefined ? '–' : `${Number(value.toFixed(1))}${unit}`);
  const most = Math.max(1, ...known);
  const step = size.width / Math.max(1, values.length - 1);
  const points = values.map((value, i) =>
    value === null
      ? undefined
      : `${(i * step).toFixed(1)} ${(size.height - 2 - (value / most) * (size.height - 4)).toFixed(1)}`,
  );
  // Each point is drawn to from the one before it, if that is known.
  const path = points
    .map((point, i) => (point === undefined ? '' : `${points[i - 1] === undefined ? 'M' : 'L'}${point}`))
    .join('');
  const middle = known.toSorted((a, b) => a - b)[Math.floor(known.length / 2)];
  const usual = `usually ${text(middle)}, at most ${text(known.length > 0 ? Math.max(...known) : undefined)}`;
  const says = `now ${text(known.at(-1))}, ${usual}`;
  return html`<figcaption>${title}<br><strong class="sum">${text(known.at(-1))}</strong> <span class="quiet">${usual}</span></figcaption><svg viewBox="0 0 ${size.width} ${size.height}" role="img" aria-label="${title}, the last hour: ${says}" preserveAspectRatio="none"><path d="${path}" fill="none" stroke="currentColor" stroke-width="2" vector-effect="non-scaling-stroke"/></svg>`;
}

function deadLetters(open: number | null): Html {
  if (open === null)
    return notice('warning', 'The number of open dead letters is not known, because accounts does not respond.');
  if (Number(open) === 0) return notice('success', 'None is open.');
  return notice(
    'warning',
    html`${open} open: messages that could not be processed. Tell whoever runs the bank’s services: they redrive or drop each with <code>bank dead-letters</code>.`,
  );
}

/** Queries are behind for a moment because the page asks. */
const withoutQueries = (rows: readonly Lag[]) => rows.filter(({ topic }) => !topic.endsWith('.queries'));

/** Shows the lag per group and topic, with the partitions that are behind. */
function lag(rows: readonly Lag[] | null): Html {
  if (rows === null) return notice('warning', 'The broker does not report the lag.');
  const byGroup = [...Map.groupBy(withoutQueries(rows), ({ group, topic }) => `${group} ${topic}`).values()];
  const behind = byGroup
    .map((partitions) => partitions.filter((row) => Number(row.lag) > 0))
    .filter((partitions) => partitions.length > 0);
  const rest = byGroup.length - behind.length;
  return html`${table<Lag[]>(
    'Consumer lag',
    [
      { title: 'Group', show: ([first]) => first?.group ?? '' },
      { title: 'Topic', show: ([first]) => first?.topic ?? '' },
      numeric('Messages behind', (partitions) => String(partitions.reduce((sum, row) => sum + Number(row.lag), 0))),
      {
        title: 'By partition',
        show: (partitions) => partitions.map((row) => `${row.partition}: ${row.lag}`).join(', '),
      },
    ],
    behind,
    html``,
  )}<p>${rest === 0 && byGroup.length === 0 ? 'No group has committed anything yet.' : `Up to date: ${rest} of ${byGroup.length} groups and topics.`}</p>`;
}
