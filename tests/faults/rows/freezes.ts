import { setTimeout as sleep } from 'node:timers/promises';
import { trySignal } from '../../../tools/local/child.ts';
import type { Cluster, Server } from '../cluster.ts';
import { firstSuccess } from '../probe.ts';
import type { Bench, Row } from '../row.ts';
import { inTransaction } from './kills.ts';

/**
 * Processes that are frozen for 3 to 45 s (SIGSTOP) and then continue as if no time had passed
 * (SIGCONT).
 */
const shortestMs = 3_000;
const longestMs = 45_000;
/** The time for which a frozen process may keep its locks. */
const locksFreedMs = 10_000;

const someTime = ({ random, duration }: Bench) => random.int(shortestMs, duration(longestMs));

/** When the process continues, it has lost its partitions. It must not post, and others must not wait for it. */
const freezeLedger: Row = {
  name: 'freeze-ledger',
  title: (lasts) => `SIGSTOP of a ledger for ${lasts(longestMs)} in the middle of a transaction, then SIGCONT`,
  touches: ['ledger', 'rows', 'kafka', 'postgres'],
  recoveryMs: 10_000,
  async inject(bench) {
    const node = await inTransaction(bench, async (waiting) => waiting.signal('SIGSTOP'));
    const stoppedAt = performance.now();
    const freed = untilBooked(bench, stoppedAt);
    await sleep(bench.duration(longestMs));
    node.signal('SIGCONT');
    const goneAt = performance.now();
    const waitedMs = (await freed) - stoppedAt;
    bench.say(
      `the account that it had locked could be posted to again ${Math.round(waitedMs)} ms after the pause began`,
    );
    if (waitedMs > locksFreedMs * bench.slowness)
      throw new Error(
        `its locks were freed after ${Math.round(waitedMs)} ms, and ${locksFreedMs * bench.slowness} ms are allowed`,
      );
    return goneAt;
  },
};

function untilBooked({ load, accounts }: Bench, from: number): Promise<number> {
  return firstSuccess(async () => (await load.send(load.deposit(accounts.hot, 1))).status === 201, from + longestMs);
}

const freezeGateway: Row = {
  name: 'freeze-gateway',
  title: (lasts) => `SIGSTOP of a gateway for 3 s to ${lasts(longestMs)}, then SIGCONT`,
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
    title: (lasts) => `SIGSTOP of ${what} for 3 s to ${lasts(longestMs)}, then SIGCONT`,
    touches,
    recoveryMs: 10_000,
    async inject(bench) {
      const server = of(bench.cluster);
      // The parent is frozen first, so that it does not fork new children.
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
