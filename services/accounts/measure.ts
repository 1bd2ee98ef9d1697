import type { Pool } from '#libs/postgres/pool.ts';
import { commandCounter } from '#libs/service/measures.ts';
import type { Metrics } from '#libs/service/metrics.ts';
import type { ConsumerDeps } from './consumer.ts';
import { countOpenDeadLetters } from './dead-letter-store.ts';

/** Counts what was handled. */
export function handlingMetrics(metrics: Metrics): ConsumerDeps['observe'] {
  const handled = metrics.counter('accounts_messages_total', "Messages handled, by name: commands, queries, the ledger's replies, and queries that came too late", ['name']);
  const duration = metrics.histogram('accounts_batch_duration_seconds', 'From the start of handling a batch of one name to its commit or answer', ['name']);
  const count = commandCounter(metrics);
  return ({ name, messages, startedAt, outcomes }) => {
    handled.inc({ name }, messages.length);
    duration.observe({ name }, (performance.now() - startedAt) / 1000);
    for (const decided of outcomes) count(decided.name, decided.outcome);
  };
}

/** What the database of accounts holds that must not stay. */
export function measureBacklogs(metrics: Metrics, pool: Pool): void {
  metrics.gauge('accounts_saga_steps', 'Steps of sagas that the ledger has not answered', async () => {
    const result = await pool.query<{ steps: bigint }>('select count(*) as steps from saga_steps');
    return Number(result.rows[0]?.steps ?? 0);
  });
  metrics.gauge('dead_letters_open', 'Dead letters about which nothing was decided', () => countOpenDeadLetters(pool));
}
