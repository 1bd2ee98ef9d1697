import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { toUuid } from '#libs/postgres/outbox/outbox-messages.ts';
import { readOutbox } from '#libs/postgres/outbox/test/test-outbox.ts';
import { eventually } from '../../support/eventually.ts';
import type { Node, Server } from '../cluster.ts';
import type { Bench, Row } from '../row.ts';

/** Processes that are killed while they work, and restarted after 0 to 3 s. */
export async function killAndStart(process: Pick<Node, 'kill' | 'start'> | Server, { random }: Bench): Promise<number> {
  await process.kill();
  await sleep(random.int(0, 3000));
  await process.start();
  return performance.now();
}

/** Returns the ledger that executes single commands; the others are hot spares. If several do, any of them. */
export async function workingLedger({ cluster, random }: Bench): Promise<Node> {
  const names = random.shuffle(['ledger', 'ledger-2']);
  const found = await eventually(async () => {
    for (const name of names) {
      const node = cluster.node(name);
      const answer = await fetch(new URL('/metrics', node.healthUrl)).catch(() => undefined);
      const text = (await answer?.text()) ?? '';
      if (/^corebanking_command_partitions\{[^}]*\} [1-9]/m.test(text)) return node;
    }
    return undefined;
  }, 30_000);
  return found as Node;
}

const killLedger: Row = {
  name: 'kill-ledger',
  title: 'kill -9 of a ledger, started again after 0-3 s',
  touches: ['ledger'],
  recoveryMs: 5000,
  inject: async (bench) => killAndStart(await workingLedger(bench), bench),
};

const killGateway: Row = {
  name: 'kill-gateway',
  title: 'kill -9 of a gateway with requests in flight, started again after 0-3 s',
  touches: ['gateway'],
  recoveryMs: 5000,
  callers: 'cut',
  inject: (bench) => killAndStart(bench.random.pick(bench.cluster.gateways), bench),
};

const killsInTransaction = 3;
/** This is longer than the interval in which offsets are committed. */
const waitsMs = 1500;

/** The offsets of its messages are not committed, so another process must process them, from the committed offsets. */
const killInTransaction: Row = {
  name: 'kill-in-transaction',
  title: `kill -9 of a ledger whose transaction has waited for ${waitsMs / 1000} s, ${killsInTransaction} times, started again after 0-3 s`,
  touches: ['ledger', 'rows'],
  recoveryMs: 5000,
  async inject(bench) {
    let goneAt = performance.now();
    for (let kill = 0; kill < killsInTransaction; kill++) {
      const node = await inTransaction(bench, async (waiting) => {
        await sleep(waitsMs);
        await waiting.kill();
      });
      await sleep(bench.random.int(0, 3000));
      node.start();
      goneAt = performance.now();
      await node.ready();
    }
    return goneAt;
  },
};

/** Makes a ledger wait for a row lock, runs an action meanwhile, and then releases the lock. */
export async function inTransaction(
  { pool, accounts, cluster }: Bench,
  use: (node: Node) => Promise<void>,
): Promise<Node> {
  const client = await pool.connect();
  try {
    await client.query('set idle_in_transaction_session_timeout = 0');
    await client.query('begin');
    await client.query("select from accounts where 'acc_' || replace(account_id::text, '-', '') = $1 for update", [
      accounts.hot,
    ]);
    const name = await eventually(async () => {
      const { rows } = await pool.query<{ name: string }>(
        "select application_name as name from pg_stat_activity where application_name like 'ledger ledger%' and cardinality(pg_blocking_pids(pid)) > 0 order by query_start",
      );
      return rows[0]?.name.replace('ledger ', '');
    }, 10_000);
    const node = cluster.node(name);
    await use(node);
    return node;
  } finally {
    await client.query('rollback').finally(() => client.release(true));
  }
}

const openingsInFlight = 40;

const killAccounts: Row = {
  name: 'kill-accounts',
  title: `kill -9 of accounts in the middle of ${openingsInFlight} openings, started again after 0-3 s`,
  touches: ['accounts'],
  recoveryMs: 5000,
  async inject(bench) {
    const { load, random, cluster } = bench;
    const openings = Array.from({ length: openingsInFlight }, () => load.send(load.opening(random.int(1, 10_000))));
    await sleep(random.int(20, 300));
    const startedAt = await killAndStart(cluster.node('accounts'), bench);
    void Promise.all(openings);
    return startedAt;
  },
};

const batchesInFlight = 12;
const itemsOfEach = 200;

const killInBatches: Row = {
  name: 'kill-in-batches',
  title: `kill -9 of both ledgers, one after the other, in the middle of ${batchesInFlight} batches of ${itemsOfEach} items, started again after 0-3 s`,
  touches: ['ledger'],
  recoveryMs: 5000,
  async inject(bench) {
    const { load, random, cluster } = bench;
    const batches = Array.from({ length: batchesInFlight }, () => load.send(load.batch(itemsOfEach, random)));
    let startedAt = performance.now();
    for (const name of random.shuffle(['ledger', 'ledger-2'])) {
      await sleep(random.int(20, 300));
      startedAt = await killAndStart(cluster.node(name), bench);
    }
    void Promise.all(batches);
    return startedAt;
  },
};

const tries = 20;

/**
 * Blocks the relay's database connection, so that the events that it has published are not marked, and then kills it.
 */
const killRelay: Row = {
  name: 'kill-relay',
  title: 'kill -9 of the outbox relay between publish and mark, started again after 0-3 s',
  touches: ['ledger'],
  recoveryMs: 5000,
  async inject(bench) {
    const { cluster, say } = bench;
    for (let attempt = 1; attempt <= tries; attempt++) {
      const node = relayHolder(bench);
      const link = cluster.links.get(`${node.name}>postgres`);
      await link?.set({ kind: 'black_hole' });
      const unmarked = await eventually(() => publishedUnmarked(bench), 1000).catch(() => 0);
      if (unmarked === 0) {
        await link?.heal();
        await sleep(100);
        continue;
      }
      await node.kill();
      await link?.heal();
      say(`${unmarked} events were published and not marked when the relay was killed`);
      await sleep(bench.random.int(0, 3000));
      node.start();
      return performance.now();
    }
    throw new Error(`in ${tries} tries no event was published and unmarked`);
  },
};

/** Returns the events that are in the topics although their batch is not marked as published. */
async function publishedUnmarked({ pool, events }: Bench): Promise<number> {
  return (await readOutbox(pool)).filter(({ is_published, id }) => !is_published && events.has(toUuid(id))).length;
}

/** Returns the ledger that last reported to be the active relay. */
function relayHolder({ cluster }: Bench): Node {
  const said = ['ledger', 'ledger-2'].map((name) => {
    const node = cluster.node(name);
    const line =
      readFileSync(node.log, 'utf8')
        .split('\n')
        .findLast((text) => text.includes('this outbox relay is active')) ?? '{"time":""}';
    return { node, at: (JSON.parse(line) as { time: string }).time };
  });
  const last = said.sort((a, b) => b.at.localeCompare(a.at))[0];
  if (!last) throw new Error('there is no ledger');
  return last.node;
}

export const kills: Row[] = [killLedger, killInTransaction, killInBatches, killGateway, killAccounts, killRelay];
