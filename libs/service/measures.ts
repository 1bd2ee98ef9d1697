import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { Relay } from '#libs/postgres/outbox/relay.ts';
import type { Clock } from './clock.ts';
import type { CheckResult } from './health.ts';
import type { Metrics } from './metrics.ts';
import { kept } from './metrics.ts';
import type { PublishTracer } from './tracing.ts';

/** Metrics that several services have under the same name; the label `service` distinguishes them. */

/** Returns the outcome of a command as a label: `done`, `replayed` (a duplicate), or the code of the refusal. */
export function outcomeLabel(reply: ReplyBody): string {
  if (reply.replayed === true) return 'replayed';
  return reply.ok ? 'done' : reply.refusal.code;
}

/** Counts commands by outcomeLabel, or as `begun` if a saga decides the outcome later. */
export function commandCounter(metrics: Metrics): (name: string, outcome: string) => void {
  const commands = metrics.counter(
    'commands_total',
    'Commands by name and outcome: done, begun (a saga, counted again when it ends), replayed (a duplicate), or the code of the refusal',
    ['name', 'outcome'],
  );
  return (name, outcome) => commands.inc({ name, outcome });
}

/** Counts dead-lettered messages. Topic names have no prefix. */
export function deadLetterCounter(metrics: Metrics, prefix: string): (topic: string, code: string) => void {
  const letters = metrics.counter('dead_letters_total', 'Dead-lettered messages by original topic and error code', [
    'topic',
    'code',
  ]);
  return (topic, code) => letters.inc({ topic: topic.slice(prefix.length), code });
}

/** Reports whether commands can be executed. */
export function measureExecution(metrics: Metrics, execution: { health(): CheckResult }): void {
  const help = '1 while every attempt to execute commands fails because of a fault, otherwise 0';
  metrics.gauge('execution_failing', help, () => Number(!execution.health().ok));
}

export type Gauges = Pick<Metrics, 'gauge' | 'gauges'>;

/** Gauges of the whole bank: of several processes of a service, only the one on duty (with the active relay) reports them. */
export function onDuty(metrics: Gauges, isOnDuty: () => boolean): Gauges {
  return {
    gauge: (name, help, read) => metrics.gauge(name, help, () => (isOnDuty() ? read() : undefined)),
    gauges: (name, help, labels, read) => metrics.gauges(name, help, labels, () => (isOnDuty() ? read() : [])),
  };
}

const askedOnceMs = 1_000;

/**
 * Measures the outbox of a service. Rows and age are the same in all of its processes, and reported by all of
 * them, because they show that no relay works. Returns a function that counts published messages and passes them to `trace`.
 */
export function measureOutbox(
  metrics: Metrics,
  relay: () => Pick<Relay, 'stats' | 'active'>,
  trace?: PublishTracer,
): PublishTracer {
  const stats = kept(() => relay().stats(), askedOnceMs);
  metrics.gauge(
    'outbox_rows',
    'Committed messages in the outbox that are not yet marked as published, over all processes of the service',
    async () => (await stats()).rows,
  );
  metrics.gauge(
    'outbox_oldest_age_seconds',
    'Age of the oldest message in the outbox that is not yet marked as published; 0 if there is none',
    async () => (await stats()).oldest_age_ms / 1000,
  );
  metrics.gauge('outbox_relay_active', '1 in the process with the active outbox relay, 0 in standby processes', () =>
    Number(relay().active()),
  );
  const published = metrics.counter(
    'outbox_published_total',
    'Messages of the outbox that were published to all in-sync replicas',
  );
  return (messages, begunAt) => {
    published.inc(messages.length);
    trace?.(messages, begunAt);
  };
}

/** Measures the number of callers that wait for a connection to Postgres. */
export function measurePools(metrics: Metrics, pools: Record<string, { waitingCount: number }>): void {
  metrics.gauges('database_waiting', 'Callers waiting for a connection to Postgres, by pool', ['pool'], () =>
    Object.entries(pools).map(([pool, { waitingCount }]) => ({ labels: { pool }, value: waitingCount })),
  );
}

export function measureClock(metrics: Metrics, clock: Pick<Clock, 'skewMs'>): void {
  metrics.gauge('clock_skew_seconds', "How far this host's clock is ahead of the database's", () => {
    const skewMs = clock.skewMs();
    return skewMs === undefined ? undefined : skewMs / 1000;
  });
}
