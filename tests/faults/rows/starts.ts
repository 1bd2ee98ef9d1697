import { setTimeout as sleep } from 'node:timers/promises';
import { knownMigrations } from '#libs/postgres/migrate.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { migrations as ledgerMigrations } from '#services/ledger/schema.ts';
import { migrateService } from '../../../tools/local/bank.ts';
import { eventually } from '../../support/eventually.ts';
import { skewedClock } from '../../support/skewed-clock.ts';
import type { Cluster, Node } from '../cluster.ts';
import type { Bench, Row } from '../row.ts';
import { workingLedger } from './kills.ts';

/** Starts of a bank: with a wrong clock, before its servers, or several times concurrently. */
const recoveryMs = 15_000;
const skewHours = 2;
const skewedMs = 10_000;

/** The process is not ready because of its clock and does not post. Everything else continues. */
async function withWrongClock({ duration, slowness }: Bench, node: Node, hours: number): Promise<void> {
  await node.stop();
  node.start(skewedClock(hours));
  await eventually(
    async () => (await readChecks(node))['clock']?.reason?.includes("the database's") ?? false,
    15_000 * slowness,
  );
  await sleep(duration(skewedMs));
  if ((await readChecks(node))['clock']?.ok !== false)
    throw new Error(`${node.name} is ready with a clock that is ${hours} h off`);
  await node.stop();
  node.start();
}

async function readChecks({ healthUrl }: Node): Promise<Record<string, { ok: boolean; reason?: string }>> {
  const response = await fetch(healthUrl, { signal: AbortSignal.timeout(3000) });
  return ((await response.json()) as { checks: Record<string, { ok: boolean; reason?: string }> }).checks;
}

const wrongClock: Row = {
  name: 'clock-2h-off',
  title: (lasts) =>
    `the clock of one service 2 h off, for ${lasts(skewedMs)}: of a ledger, of a gateway, of accounts, one after the other`,
  touches: ['all'],
  recoveryMs,
  async inject(bench) {
    const { random, cluster, say } = bench;
    const names = random.shuffle(['ledger', 'gateway-2', 'accounts']);
    for (const name of names) {
      const node = name === 'ledger' ? await workingLedger(bench) : cluster.node(name);
      const hours = random.pick([-skewHours, skewHours]);
      say(`${node.name}: ${hours} h`);
      await withWrongClock(bench, node, hours);
      if (name !== names.at(-1)) await node.ready();
    }
  },
};

const lateMs = 60_000;

/** All processes are stopped. Then all servers except one start, in any order, and that server starts last. */
function coldStart(late: 'kafka' | 'postgres', what: string): Row {
  return {
    name: `cold-start-late-${late}`,
    title: (lasts) => `cold start in any order, with ${what} ${lasts(lateMs)} late`,
    touches: ['all'],
    recoveryMs,
    callers: 'cut',
    async inject({ cluster, random, duration }) {
      const running = cluster.nodes.filter((node) => node.running());
      const [last, other] = late === 'kafka' ? [cluster.broker, cluster.postgres] : [cluster.postgres, cluster.broker];
      await Promise.all([...running, last, other].map((process) => process.kill()));
      const starting: Promise<unknown>[] = [];
      for (const process of random.shuffle([...running, other])) {
        starting.push(Promise.resolve(process.start()));
        await sleep(random.int(0, 300));
      }
      // The other server has been running for a long time, even if 5 s are shorter than its start.
      await Promise.all([sleep(duration(lateMs)), ...starting]);
      return last.start();
    },
  };
}

const migrators = 3;

/** The migrations run on an empty database and, at the same time, on the one in use. */
const migrations: Row = {
  name: 'migrate-at-once',
  title: 'three ledgers migrate concurrently, on an empty database and on the one in use',
  touches: ['postgres'],
  recoveryMs,
  callers: 'nothing',
  async inject({ cluster, pool }) {
    const settings = cluster.nodeSettings('ledger');
    const fresh = `fresh_${Date.now()}`;
    const owner = new URL(settings.ownerUrl);
    await pool.query(`create database ${fresh} owner ${owner.username}`);
    owner.pathname = `/${fresh}`;
    const ofFresh = { ...settings, ownerUrl: owner.href };
    await Promise.all(
      Array.from({ length: migrators }, () => [
        migrateService('ledger', ofFresh),
        migrateService('ledger', settings),
      ]).flat(),
    );
    await expectMigratedOnce(cluster, fresh);
    await pool.query(`drop database ${fresh} with (force)`);
    await pool.query(`drop role ${fresh}_ledger`);
  },
};

async function expectMigratedOnce(cluster: Cluster, database: string): Promise<void> {
  const url = new URL(cluster.databaseUrl);
  url.pathname = `/${database}`;
  const pool = createPool({ url: url.href, application_name: 'checker', schema: 'ledger', max: 1 }, silent);
  try {
    const { rows } = await pool.query<{ name: string }>('select name from migrations order by id');
    const known = knownMigrations(ledgerMigrations).map(({ name }) => name);
    if (rows.map(({ name }) => name).join() !== known.join())
      throw new Error(`migrations run: ${rows.map(({ name }) => name).join(', ')}`);
  } finally {
    await pool.end();
  }
}

export const starts: Row[] = [wrongClock, coldStart('kafka', 'Kafka'), coldStart('postgres', 'Postgres'), migrations];
