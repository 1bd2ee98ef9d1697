import { setTimeout as sleep } from 'node:timers/promises';
import { trySignal } from '../../../deploy/local/child.ts';
import { eventually } from '../../support/eventually.ts';
import type { Cluster, Node, Server } from '../cluster.ts';
import { firstSuccess } from '../probe.ts';
import type { Bench, Row } from '../row.ts';

/** Processes that stand still for 3 to 45 s (SIGSTOP) and then go on as if no time had passed (SIGCONT). */
const shortestMs = 3_000;
const longestMs = 45_000;
/** How long a process that stands still may keep others out. */
const locksFreedMs = 10_000;

const someTime = ({ random, duration }: Bench) => random.int(shortestMs, duration(longestMs));

/** It has lost its partitions when it goes on: a zombie. It must not book, and others must not wait for it. */
const freezeLedger: Row = {
  name: 'freeze-ledger',
  title: 'SIGSTOP of a ledger for 45 s in the middle of a transaction, then SIGCONT',
  touches: ['ledger', 'rows', 'kafka', 'postgres'],
  recoveryMs: 10_000,
  async inject(bench) {
    const node = await stopInTransaction(bench);
    const stoppedAt = performance.now();
    const freed = untilBooked(bench, stoppedAt);
    await sleep(bench.duration(longestMs));
    node.signal('SIGCONT');
    const goneAt = performance.now();
    const waitedMs = (await freed) - stoppedAt;
    bench.say(`       the account that it had locked was booked on again ${Math.round(waitedMs)} ms after it stood still`);
    if (waitedMs > locksFreedMs * bench.slowness) throw new Error(`its locks were freed after ${Math.round(waitedMs)} ms, and ${locksFreedMs * bench.slowness} ms are allowed`);
    return goneAt;
  },
};

/** Makes a ledger wait for a row, stops it there, and lets it have the row: it then holds all that its batch touches. */
async function stopInTransaction({ pool, accounts, cluster }: Bench): Promise<Node> {
  const client = await pool.connect();
  try {
    await client.query('set idle_in_transaction_session_timeout = 0');
    await client.query('begin');
    await client.query("select from accounts where 'acc_' || replace(account_id::text, '-', '') = $1 for update", [accounts.hot]);
    const name = await eventually(async () => {
      const { rows } = await pool.query<{ name: string }>("select application_name as name from pg_stat_activity where application_name like 'ledger ledger%' and cardinality(pg_blocking_pids(pid)) > 0 order by query_start");
      return rows[0]?.name.replace('ledger ', '');
    }, 10_000);
    const node = cluster.node(name);
    node.signal('SIGSTOP');
    return node;
  } finally {
    await client.query('rollback').finally(() => client.release(true));
  }
}

function untilBooked({ load, accounts }: Bench, from: number): Promise<number> {
  return firstSuccess(async () => (await load.send(load.deposit(accounts.hot, 1))).status === 201, from + longestMs);
}

const freezeGateway: Row = {
  name: 'freeze-gateway',
  title: 'SIGSTOP of a gateway for 3-45 s, then SIGCONT',
  touches: ['gateway'],
  recoveryMs: 10_000,
  frozen: 'gateway-2',
  async inject(bench) {
    const node = bench.cluster.node('gateway-2');
    node.signal('SIGSTOP');
    await sleep(someTime(bench));
    node.signal('SIGCONT');
  },
};

function freezeServer(name: string, what: string, touches: string[], of: (cluster: Cluster) => Server): Row {
  return {
    name,
    title: `SIGSTOP of ${what} for 3-45 s, then SIGCONT`,
    touches,
    recoveryMs: 10_000,
    async inject(bench) {
      const server = of(bench.cluster);
      // The parent first: while it stands, no new child comes.
      trySignal(server.pid(), 'SIGSTOP');
      const pids = server.pids();
      for (const pid of pids) trySignal(pid, 'SIGSTOP');
      await sleep(someTime(bench));
      for (const pid of pids.reverse()) trySignal(pid, 'SIGCONT');
    },
  };
}

export const freezes: Row[] = [
  freezeLedger,
  freezeGateway,
  freezeServer('freeze-broker', 'the broker', ['kafka'], ({ broker }) => broker),
  freezeServer('freeze-postgres', 'Postgres', ['postgres'], ({ postgres }) => postgres),
];
