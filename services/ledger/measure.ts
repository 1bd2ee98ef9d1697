import type { ReplyBody } from '#libs/contracts/envelope.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { commandCounter, type Gauges, outcomeLabel } from '#libs/service/measures.ts';
import type { Metrics } from '#libs/service/metrics.ts';
import { kept } from '#libs/service/metrics.ts';
import type { Tracing } from '#libs/service/tracing.ts';
import { readLastResult } from '#libs/service/verifications.ts';
import type { DecidedBatch } from './batch/commands.ts';
import { batchTracer } from './trace.ts';

/**
 * Returns a function that records metrics and traces of a batch. Each message of a caller's batch counts as one
 * command; its items count in the batch size.
 */
export function observeBatches(metrics: Metrics, tracing: Tracing | undefined): (batch: DecidedBatch) => void {
  const sizes = metrics.histogram(
    'ledger_batch_commands',
    'Commands per batch',
    [],
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
  );
  const seconds = metrics.histogram(
    'ledger_batch_duration_seconds',
    "Time from the start of a batch's transaction to its commit",
  );
  const waits = metrics.histogram(
    'ledger_lock_wait_seconds',
    "Time from the start of a batch's transaction until its accounts are locked and its data is read: a round trip plus waiting for other writers",
  );
  const count = commandCounter(metrics);
  const trace = tracing && batchTracer(tracing);
  return (batch) => {
    const { commands, replies, times } = batch;
    sizes.observe(
      commands.reduce((sum, command) => sum + (command.name === 'create_batch' ? command.items.length : 1), 0),
    );
    seconds.observe((times.committed - times.begun) / 1000);
    waits.observe((times.read - times.begun) / 1000);
    for (const [i, command] of commands.entries()) {
      const isPoison = command.name === 'create_batch' && command.items.some((item) => item.isPoison);
      count(command.name, isPoison ? 'internal_error' : outcomeLabel(replies[i] as ReplyBody));
    }
    trace?.(batch);
  };
}

export function measurePartitions(metrics: Gauges, count: () => number): void {
  const help = 'Partitions of ledger.commands that this process executes; 0 in a hot spare';
  metrics.gauge('command_partitions', help, async () => count());
}

/** Reading all balances takes some tenths of a second for a million accounts. */
const balancesEveryMs = 60_000;
const askedOnceMs = 1_000;

/** Returns assets minus liabilities of each currency in minor units. If it is not 0, the books are wrong. */
async function readDifferences(pool: Pool): Promise<{ currency: string; difference: number }[]> {
  const { rows } = await pool.query<{ currency: string; difference: number }>(
    `select currency, sum(case class when 'asset' then balance_minor else -balance_minor end)::float8 as difference from accounts group by currency`,
  );
  return rows;
}

/** Returns how long the first closed day without totals has been closed, in seconds; 0 if every closed day has them. */
async function readWithoutTotals(pool: Pool): Promise<number | undefined> {
  const { rows } = await pool.query<{ age_s: number }>(
    `select coalesce(extract(epoch from clock_timestamp() - min(closed_at)), 0)::float8 as age_s from closed_days
     where date > coalesce((select max(date) from day_closings), '-infinity')`,
  );
  return rows[0]?.age_s;
}

/** Metrics of the books, for one ledger (onDuty). */
export function measureBooks(metrics: Gauges, pool: Pool): void {
  const differences = kept(() => readDifferences(pool), balancesEveryMs);
  const verification = kept(() => readLastResult(pool), askedOnceMs);
  metrics.gauges(
    'books_difference_minor',
    'Assets minus liabilities over all balances in minor units, read once a minute: must be 0',
    ['currency'],
    async () => (await differences()).map(({ currency, difference }) => ({ labels: { currency }, value: difference })),
  );
  metrics.gauge(
    'books_findings',
    'Rules violated according to the last verification: must be 0. Omitted before the first one',
    async () => (await verification())?.findings.length,
  );
  metrics.gauge('books_verified_age_seconds', 'Time since that verification ended', async () => {
    const ended_at = (await verification())?.ended_at;
    return ended_at == null ? undefined : (Date.now() - Date.parse(ended_at)) / 1000;
  });
  const withoutTotals = kept(() => readWithoutTotals(pool), askedOnceMs);
  metrics.gauge(
    'books_day_without_totals_seconds',
    'Time since the first closed day without totals was closed, 0 if there is none',
    withoutTotals,
  );
}
