import { setTimeout as sleep } from 'node:timers/promises';
import { toUuid, unpackEvents } from '#libs/postgres/outbox/outbox-messages.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type Bank, defaultBank } from '../bank.ts';
import type { EventsPlan, EventsResult } from '../contenders/events.ts';
import { startHelper } from '../helper.ts';
import { Histogram, type Latency } from '../histogram.ts';
import { best, defaultTarget, inTurn, load, median, ratio } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';

const drainMs = 120_000;
const startMs = 60_000;

/** Measures the cost of publishing, the delay of events, and the speed with which a backlog is published. */
export const relay: Group = {
  name: 'relay',
  quick: false,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const bank = await defaultBank(world);
    const { connections, perSecond } = await best(world, bank, effort);
    const half = Math.round(perSecond / 2);
    const timing = { seconds: effort.seconds, warmUpSeconds: effort.warmUpSeconds };
    const transfers = () => load(world, bank, { target: defaultTarget(bank), connections, ...timing });
    const reader = startHelper<EventsPlan, EventsResult>('contenders/events.ts', {
      KAFKA_BROKERS: bank.brokers,
      TOPIC: `${bank.topicPrefix}transfers`,
    });
    try {
      await reader.ready(startMs);
      return await world.withPool(bank.databaseUrl, 'ledger', async (pool) => {
        const measured = await inTurn(effort.rounds, {
          on: transfers,
          async off() {
            await hold(pool);
            const begun = performance.now();
            const posted = await transfers();
            const postedMs = performance.now() - begun;
            return { ...posted, ...(await drain(pool, bank, postedMs)) };
          },
          async events() {
            const before = await lastBatch(pool);
            const [seen] = await Promise.all([
              reader.run(timing, (effort.seconds + 30) * 1000),
              load(world, bank, { target: defaultTarget(bank), connections: 256, rate: half, ...timing }),
            ]);
            return sinceCommit(pool, before, seen);
          },
        });
        return outcome(measured, half);
      });
    } finally {
      reader.stop();
    }
  },
};

type Posted = Awaited<ReturnType<typeof load>>;
type Drained = Posted & { drainRatio: number; backlog: number; drainedMs: number };

function outcome(measured: { on: Posted[]; off: Drained[]; events: Latency[] }, half: number): Outcome {
  const perSecond = (all: Posted[]) => all.map((one) => one.perSecond);
  const p = (field: 'p50' | 'p99') => median(measured.events.map((latency) => latency[field]));
  const of = (field: 'drainRatio' | 'backlog' | 'drainedMs') => median(measured.off.map((one) => one[field]));
  return {
    lines: [
      {
        goal: 'relay-on-off',
        value: ratio(perSecond(measured.on), perSecond(measured.off)),
        note: `${Math.round(median(perSecond(measured.on)))}/s ÷ ${Math.round(median(perSecond(measured.off)))}/s`,
      },
      {
        goal: 'event-p50',
        value: p('p50'),
        note: `from the commit, by Postgres' clock (track_commit_timestamp), to a consumer of transfers; at ${half}/s`,
      },
      { goal: 'event-p99', value: p('p99'), note: 'the same' },
      {
        goal: 'drain',
        value: of('drainRatio'),
        note: `${Math.round(of('backlog'))} messages in ${(of('drainedMs') / 1000).toFixed(1)} s, during which the relay could not get its lease`,
      },
    ],
    raw: measured,
  };
}

async function lastBatch(pool: Pool): Promise<bigint> {
  return (await pool.query<{ last: bigint | null }>('select max(batch_id) as last from outbox')).rows[0]?.last ?? 0n;
}

/** Measures the delay of each event after the commit of its batch. */
async function sinceCommit(pool: Pool, after: bigint, seen: EventsResult): Promise<Latency> {
  const { rows } = await pool.query<{ us: number; records: Buffer }>(
    'select extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1e6 as us, records from outbox where batch_id > $1',
    [after],
  );
  const committed = new Map(
    rows.flatMap(({ us, records }) => unpackEvents(records).map(({ id }) => [toUuid(id), us] as const)),
  );
  const histogram = new Histogram();
  for (const [id, at] of seen) {
    const us = committed.get(id);
    if (us !== undefined) histogram.record(at - us);
  }
  if (histogram.count === 0) throw new Error('no event was received');
  return histogram.summary();
}

/** Takes the lease from the ledger's relay, which is then on standby. */
async function hold(pool: Pool): Promise<void> {
  await pool.query("update outbox_lease set holder = 'bench', expires_at = clock_timestamp() + interval '1 hour'");
}

/** Returns the lease and waits until everything is published. Resolves with the speed relative to that of writing. */
async function drain(
  pool: Pool,
  bank: Bank,
  writtenMs: number,
): Promise<{ drainRatio: number; backlog: number; drainedMs: number }> {
  const unpublished = async () =>
    Number(
      (
        await pool.query<{ rows: bigint | null }>(
          'select sum(size)::int8 as rows from outbox_batches where published_at is null',
        )
      ).rows[0]?.rows ?? 0n,
    );
  const backlog = await unpublished();
  await pool.query('update outbox_lease set expires_at = clock_timestamp()');
  let begun = 0;
  for (const end = performance.now() + drainMs; performance.now() < end; await sleep(10)) {
    const left = await unpublished();
    // The relay checks its lease twice a second, so the time is measured from its first batch.
    if (begun === 0 && left < backlog) begun = performance.now();
    if (left === 0) {
      const drainedMs = performance.now() - begun;
      return { drainRatio: writtenMs / drainedMs, backlog, drainedMs };
    }
  }
  throw new Error(`${bank.name}: the outbox was not published within ${drainMs / 1000} s`);
}
