import type { Pool } from '#libs/postgres/pool.ts';
import { commandCounter } from '#libs/service/measures.ts';
import { kept, type Metrics } from '#libs/service/metrics.ts';
import type { Attempt, Verdict } from './deliveries/verdict.ts';

const askedOnceMs = 1_000;

/** Counts work as it happens. */
export function countWork(metrics: Metrics) {
  const attempts = metrics.histogram('webhook_attempt_duration_seconds', 'Duration of delivery attempts, by outcome', [
    'outcome',
  ]);
  const ended = metrics.counter('webhook_deliveries_total', 'Finished deliveries: Delivered or Failed', ['status']);
  return {
    attempt({ status, duration_ms }: Attempt & Verdict): void {
      attempts.observe({ outcome: status === 'Delivered' ? 'delivered' : 'failed' }, duration_ms / 1000);
      if (status !== 'Pending') ended.inc({ status });
    },
    command: commandCounter(metrics),
    stored: metrics.counter('webhooks_events_total', 'Events stored for webhooks and GET /events'),
    unreadable: metrics.counter(
      'webhooks_unreadable_events_total',
      'Messages in event topics that were skipped because they are not valid events',
    ),
    disabled: metrics.counter(
      'webhooks_disabled_total',
      'Webhooks disabled because all deliveries failed or the receiver returned 410',
    ),
  };
}

/** Webhooks by status, with their Pending deliveries, and by how many seconds the longest overdue one is late. */
const byStatus = `select status, count(*)::int as count, sum(pending)::int as pending, max(late_s)::float8 as late_s
  from webhooks w cross join lateral (select
    (select count(*) from deliveries d where d.webhook_id = w.webhook_id and d.status = 'Pending') as pending,
    (select extract(epoch from clock_timestamp() - min(next_attempt_at)) from deliveries d
     where d.webhook_id = w.webhook_id and d.status = 'Pending' and next_attempt_at is not null) as late_s
  ) d where status <> 'Deleted' group by status`;

/** Measures rows that must not accumulate, and running requests. */
export function measureDeliveries(metrics: Metrics, pool: Pool, deliverer: { underWay(): number }): void {
  const read = kept(async () => {
    type Row = { status: string; count: number; pending: number; late_s: number | null };
    const { rows } = await pool.query<Row>(byStatus);
    return (status: string) => rows.find((row) => row.status === status);
  }, askedOnceMs);
  metrics.gauge(
    'webhook_deliveries_pending',
    'Pending deliveries of Active webhooks, including those waiting for a retry',
    async () => (await read())('Active')?.pending ?? 0,
  );
  metrics.gauge(
    'webhook_late_seconds',
    'How late the longest overdue delivery of an Active webhook is; 0 or less if none is',
    async () => (await read())('Active')?.late_s ?? 0,
  );
  metrics.gauge('webhook_requests_under_way', 'Running delivery attempts of this process', () => deliverer.underWay());
  metrics.gauges('webhooks', 'Webhooks by status', ['status'], async () => {
    const of = await read();
    return ['Active', 'Paused', 'Disabled'].map((status) => ({ labels: { status }, value: of(status)?.count ?? 0 }));
  });
}
