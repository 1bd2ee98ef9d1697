import type { Pool } from '#libs/postgres/pool.ts';
import { commandCounter, type Gauges } from '#libs/service/measures.ts';
import { kept, type Metrics } from '#libs/service/metrics.ts';
import type { Attempt, Verdict } from './deliveries/verdict.ts';

const askedOnceMs = 1_000;

/** Counts work as it happens. */
export function countWork(metrics: Metrics) {
  const attempts = metrics.histogram('webhook_attempt_duration_seconds', 'Duration of delivery attempts', ['outcome']);
  const ended = metrics.counter('webhook_deliveries_total', 'Finished deliveries: Delivered or Failed', ['status']);
  return {
    attempt({ status, duration_ms }: Attempt & Verdict): void {
      attempts.observe({ outcome: status === 'Delivered' ? 'delivered' : 'failed' }, duration_ms / 1000);
      if (status !== 'Pending') ended.inc({ status });
    },
    command: commandCounter(metrics),
    stored: metrics.counter('webhooks_events_total', 'Events stored for webhooks and GET /events'),
    unreadable: metrics.counter('webhooks_unreadable_events_total', 'Skipped invalid messages of event topics'),
    expired: metrics.counter(
      'webhooks_expired_events_total',
      'Events that a webhook had not received when they were deleted, because they were older than EVENTS_RETENTION_DAYS',
    ),
    forged: metrics.counter('webhooks_forged_events_total', 'Skipped events without a MAC of the bank'),
    disabled: metrics.counter('webhooks_disabled_total', 'Webhooks disabled by 410 or after five days of failures'),
  };
}

/**
 * Webhooks by status, with their Pending deliveries, by how many seconds the longest overdue one is late, and how long the
 * oldest event has waited since it occurred, or since its replay or redelivery was requested. Only those that begin the order
 * of their account are looked at, because the others are younger.
 */
const byStatus = `select status, count(webhook_id)::int as count, coalesce(sum(pending), 0)::int as pending,
    coalesce(max(late_s), 0)::float8 as late_s, coalesce(max(waits_s), 0)::float8 as waits_s
  from unnest(array['Active', 'Paused', 'Disabled']) as status left join webhooks w using (status)
  left join lateral (
    select extract(epoch from clock_timestamp() - least(
      (select min(waits_since) from deliveries d
       where d.webhook_id = w.webhook_id and d.status = 'Pending' and next_attempt_at is not null),
      (select min(e.occurred_at) from feeds f cross join lateral (
         select occurred_at from events where w.client_id is null and position > f.position order by position limit 1
       ) e where f.webhook_id = w.webhook_id and f.until_time is null and not f.is_over),
      (select min(e.occurred_at) from feeds f cross join lateral (
         select event_position from event_subjects s where s.subject = w.client_id and s.position > f.position
         order by s.position limit 1
       ) s join events e on e.position = s.event_position
       where f.webhook_id = w.webhook_id and f.until_time is null and not f.is_over)
    )) as waits_s
  ) o on true
  left join lateral (select
    (select count(*) from deliveries d where d.webhook_id = w.webhook_id and d.status = 'Pending') as pending,
    (select extract(epoch from clock_timestamp() - min(next_attempt_at)) from deliveries d
     where d.webhook_id = w.webhook_id and d.status = 'Pending' and next_attempt_at is not null) as late_s
  ) d on true group by status`;

/** Measures running requests, and `bank`, for one process (onDuty), rows that must not accumulate. */
export function measureDeliveries(metrics: Metrics, bank: Gauges, pool: Pool, deliverer: { underWay(): number }): void {
  type Row = { status: string; count: number; pending: number; late_s: number; waits_s: number };
  const read = kept(async () => (await pool.query<Row>(byStatus)).rows, askedOnceMs);
  const active = async () => (await read()).find(({ status }) => status === 'Active');
  bank.gauge(
    'webhook_deliveries_pending',
    'Pending deliveries of Active webhooks, including those waiting for a retry',
    async () => (await active())?.pending,
  );
  bank.gauge(
    'webhook_late_seconds',
    'How late the longest overdue delivery of an Active webhook is; 0 or less if none is',
    async () => (await active())?.late_s,
  );
  bank.gauge(
    'webhook_oldest_undelivered_seconds',
    'For how long the oldest event that an Active webhook has not received has waited; 0 if there is none',
    async () => (await active())?.waits_s,
  );
  metrics.gauge('webhook_requests_under_way', 'Running delivery attempts of this process', () => deliverer.underWay());
  bank.gauges('webhooks', 'Webhooks by status', ['status'], async () =>
    (await read()).map(({ status, count }) => ({ labels: { status }, value: count })),
  );
}
