import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { eventTopics, type TopicName, topicName } from '#libs/contracts/topics.ts';
import { createKafka } from '#libs/kafka/client.ts';
import { changeSettings } from '#libs/kafka/topics.ts';
import type { Pool } from '#libs/postgres/pool.ts';
import { type Bank, defaultBank, startBank } from '../bank.ts';
import { accountCount } from '../contenders/posting.ts';
import { best, defaultTarget, load } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';
import type { World } from '../world.ts';

const pacedRate = 200;
const publishedMs = 60_000;
const counted: TopicName[] = [...eventTopics, 'ledger.commands', 'replies'];

/**
 * Measures the bytes that a transfer adds to each topic and table, and to the write-ahead log: at saturation and at a
 * low rate, and with compressed events.
 */
export const bytes: Group = {
  name: 'bytes',
  quick: false,
  async measure({ world, effort }: Bench): Promise<Outcome> {
    const plain = await defaultBank(world);
    const zstd = await startBank(world, { name: 'zstd', accounts: accountCount });
    try {
      await compress(zstd);
      const { connections } = await best(world, plain, effort);
      const seconds = effort.seconds * 3;
      const added = (bank: Bank, rate?: number) =>
        world.withPool(bank.databaseUrl, 'ledger', async (pool) => {
          await published(pool);
          const before = await sizes(world, bank, pool);
          const reading = await load(world, bank, {
            target: defaultTarget(bank),
            connections: rate === undefined ? connections : 64,
            rate,
            seconds,
            // There is no warm-up, because all requests must be counted.
            warmUpSeconds: 0,
          });
          await published(pool);
          const after = await sizes(world, bank, pool);
          return [...after].map(
            ([name, size]) => [name, (size - (before.get(name) ?? 0)) / reading.completed] as const,
          );
        });
      const measured = {
        'at saturation': await added(plain),
        'the same with zstd': await added(zstd),
        [`at ${pacedRate}/s`]: await added(plain, pacedRate),
        [`at ${pacedRate}/s with zstd`]: await added(zstd, pacedRate),
      };
      return outcome(Object.fromEntries(Object.entries(measured).map(([name, each]) => [name, new Map(each)])));
    } finally {
      await zstd.stop();
    }
  },
};

function outcome(measured: Record<string, Map<string, number>>): Outcome {
  const loads = Object.keys(measured);
  const sum = (of: string, wanted: (name: string) => boolean) =>
    [...(measured[of] ?? [])].reduce((total, [name, size]) => total + (wanted(name) ? size : 0), 0) / 1000;
  const isEvents = (name: string) => eventTopics.some((topic) => name === `topic ${topic}`);
  const isBooks = (name: string) => name.startsWith('table ') && !name.startsWith('table outbox');
  const note = (wanted: (name: string) => boolean) =>
    loads.map((load) => `${load} ${sum(load, wanted).toFixed(2)} kB`).join(', ');
  const names = [...(measured['at saturation']?.keys() ?? [])];
  return {
    lines: [
      { goal: 'bytes-topics', value: sum('the same with zstd', isEvents), note: note(isEvents) },
      { goal: 'bytes-postgres', value: sum('at saturation', isBooks), note: note(isBooks) },
    ],
    figures: [
      {
        title: 'Bytes per transfer; an outbox row is deleted after its events are published',
        columns: ['', ...loads],
        rows: names
          .map((name) => [name, ...loads.map((load) => (measured[load]?.get(name) ?? 0).toFixed(0))])
          .filter(([, ...each]) => each.some((size) => size !== '0')),
      },
    ],
  };
}

/** Makes the broker compress event topics. */
async function compress({ brokers, topicPrefix }: Bank): Promise<void> {
  const kafka = createKafka({ brokers: brokers.split(','), client_id: 'bench' }, pino({ level: 'silent' }));
  const zstd = { 'compression.type': 'zstd' };
  await changeSettings(kafka, new Map(eventTopics.map((name) => [topicName(topicPrefix, name), zstd])));
}

/** Waits until all events are published. */
async function published(pool: Pool): Promise<void> {
  for (const end = performance.now() + publishedMs; performance.now() < end; await sleep(100)) {
    const { rows } = await pool.query('select from outbox_batches where published_at is null limit 1');
    if (rows.length === 0) return;
  }
  throw new Error('the outbox is not published');
}

async function sizes(world: World, bank: Bank, pool: Pool): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ name: string; size: bigint }>(
    `select 'table ' || relname as name, pg_total_relation_size(oid) as size from pg_class
       where relnamespace = 'ledger'::regnamespace and relkind in ('r', 'p')
     union all select 'write-ahead log', (pg_current_wal_lsn() - '0/0')::int8 order by 1`,
  );
  const topics = counted.map((name) => [`topic ${name}`, topicSize(world, topicName(bank.topicPrefix, name))] as const);
  return new Map([...topics, ...rows.map(({ name, size }) => [name, Number(size)] as const)]);
}

/** Returns the size of a topic's segments, without their indexes. */
function topicSize({ local }: World, topic: string): number {
  const data = join(local.path, 'kafka', 'data');
  return readdirSync(data)
    .filter((folder) => folder.replace(/-\d+$/, '') === topic)
    .flatMap((folder) => readdirSync(join(data, folder)).map((file) => join(data, folder, file)))
    .filter((file) => file.endsWith('.log'))
    .reduce((total, file) => total + statSync(file).size, 0);
}
