import type { ReceivedMessage } from '#libs/kafka/consume/consume.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { commandCounter, type Gauges } from '#libs/service/measures.ts';
import { kept, type Metrics } from '#libs/service/metrics.ts';
import { isSampled, type Tracing } from '#libs/service/tracing.ts';
import type { ConsumerDeps } from './consumers.ts';
import { countOpenDeadLetters } from './dead-letters/dead-letter-store.ts';

/** Returns a function that counts processed messages, and traces them. */
export function observeHandled(metrics: Metrics, tracing: Tracing | undefined): ConsumerDeps['observe'] {
  const handled = metrics.counter(
    'accounts_messages_total',
    "Processed messages by name: commands, queries, the ledger's replies, and listed dead letters",
    ['name'],
  );
  const duration = metrics.histogram(
    'accounts_batch_duration_seconds',
    'Time to process a batch of messages with one name, to its commit or reply',
    ['name'],
  );
  const count = commandCounter(metrics);
  return ({ name, messages, startedAt, outcomes }) => {
    if (tracing) trace(tracing, name, messages, startedAt);
    handled.inc({ name }, messages.length);
    duration.observe({ name }, (performance.now() - startedAt) / 1000);
    for (const decided of outcomes) count(decided.name, decided.outcome);
  };
}

/** Creates a span for each traced message, in its own trace: its transaction or read, which others may share. */
function trace(tracing: Tracing, name: string, messages: readonly ReceivedMessage[], startedAt: number): void {
  for (const { topic, headers } of messages) {
    const { traceparent } = headers;
    if (!isSampled(traceparent)) continue;
    const attributes = {
      'messaging.system': 'kafka',
      'messaging.destination.name': topic,
      'messaging.message.id': headers['ce_id'],
      'db.system.name': 'postgresql',
      request_id: headers['request-id'],
      messages: messages.length,
    };
    tracing.begin(`process ${name}`, { kind: 'consumer', traceparent, startedAt, attributes }).end();
  }
}

const askedOnceMs = 1_000;

/** Reports the number of rows that must not accumulate, for one process (onDuty). */
export function measureBacklogs(metrics: Gauges, pool: Pool): void {
  const steps = kept(async () => {
    const { rows } = await pool.query<{ steps: number; age_s: number }>(
      'select count(*)::int as steps, coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as age_s from saga_steps',
    );
    return rows[0];
  }, askedOnceMs);
  metrics.gauge('accounts_saga_steps', 'Saga steps without a reply', async () => (await steps())?.steps);
  metrics.gauge(
    'accounts_saga_oldest_age_seconds',
    'Age of the oldest saga step without a reply; 0 if there is none',
    async () => (await steps())?.age_s,
  );
  metrics.gauge('dead_letters_open', 'Dead letters that are not decided', () => countOpenDeadLetters(pool));
}
