import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench } from '../faults/row.ts';
import { eventually } from '../support/eventually.ts';
import type { HaCluster } from './cluster.ts';
import type { Member } from './database.ts';
import { type HaRow, haRow } from './measure.ts';

const clusterDatabase = ({ cluster }: Bench) => (cluster as HaCluster).database;
const promotionMs = 60_000;
const recoveryMs = 10_000;
/**
 * Patroni waits up to its ttl of 8 s for a silent primary, and then promotes the standby. Ten seconds later, everything
 * must be normal.
 */
const failoverMs = 18_000;
const pausedMs = 10_000;

export async function promoted(bench: Bench, before: Member): Promise<Member> {
  return eventually(async () => {
    const now = await clusterDatabase(bench).primary();
    return now === before ? undefined : now;
  }, promotionMs);
}

async function members(bench: Bench): Promise<{ primary: Member; standby: Member }> {
  const database = clusterDatabase(bench);
  await database.paired();
  const [primary, standby] = [await database.primary(), await database.standby()];
  if (!primary || !standby) throw new Error('there is no pair of primary and standby');
  return { primary, standby };
}

const killPrimary = haRow({
  name: 'postgres-kill-primary',
  title: 'kill -9 of the primary with its Patroni; the standby is promoted; the old primary returns as a standby',
  touches: ['postgres'],
  outageMs: failoverMs,
  recoveryMs,
  async inject(bench, mark) {
    const { primary } = await members(bench);
    const killedAt = performance.now();
    mark(`kill -9 of ${primary.name}`);
    await primary.kill();
    const next = await promoted(bench, primary);
    bench.say(`${next.name} was promoted ${Math.round(performance.now() - killedAt)} ms after the kill`);
    await sleep(bench.quick ? 2000 : pausedMs);
    mark(`${primary.name} comes back`);
    await primary.start();
    await clusterDatabase(bench).paired();
  },
});

const switchover = haRow({
  name: 'postgres-switchover',
  title: 'a controlled switchover, and back',
  touches: ['postgres'],
  outageMs: recoveryMs,
  recoveryMs,
  async inject(bench, mark) {
    for (let round = 0; round < (bench.quick ? 1 : 2); round++) {
      const { standby } = await members(bench);
      mark(`switchover to ${standby.name}`);
      await clusterDatabase(bench).switchover();
      await clusterDatabase(bench).paired();
      await sleep(bench.quick ? 0 : 3000);
    }
  },
});

/**
 * Writes stop until Patroni removes the standby from synchronous_standby_names. From then on there is one copy, and no
 * failover.
 */
const standbyLost = haRow({
  name: 'postgres-standby-lost',
  title:
    'the synchronous standby killed for 20 s: writes continue with one copy, and nothing is promoted until it is back and in sync',
  touches: ['postgres'],
  outageMs: recoveryMs,
  recoveryMs,
  async inject(bench, mark) {
    const { primary, standby } = await members(bench);
    mark(`kill -9 of ${standby.name}`);
    await standby.kill();
    await sleep(bench.quick ? 8000 : 20_000);
    const { rows } = await bench.pool.query<{ setting: string }>(
      "select current_setting('synchronous_standby_names') as setting",
    );
    if (rows[0]?.setting !== '') throw new Error(`synchronous_standby_names is still ${rows[0]?.setting}`);
    if ((await clusterDatabase(bench).primary()) !== primary) throw new Error('there is another primary');
    mark(`${standby.name} comes back`);
    await standby.start();
    await clusterDatabase(bench).paired();
  },
});

export const postgresRows: HaRow[] = [killPrimary, switchover, standbyLost];
