import { setTimeout as sleep } from 'node:timers/promises';
import { createKafka } from '#libs/kafka/client.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import type { Server } from '../faults/processes.ts';
import type { Bench } from '../faults/row.ts';
import { eventually } from '../support/eventually.ts';
import type { HaCluster } from './cluster.ts';
import { type HaRow, haRow, type Mark } from './measure.ts';

const outageMs = 5000;
const awayMs = 12_000;
const quickAwayMs = 8000;
const frozenMs = 40_000;
const cutMs = 25_000;
/**
 * After a broker was disconnected, leaders move back, and consumer groups with them. The next broker is disconnected
 * after that.
 */
const settleMs = 15_000;
const catchUpMs = 120_000;

const clusterBrokers = ({ cluster }: Bench) => (cluster as HaCluster).brokers3;
/** The outage is long enough to show the time after the limit. It is shorter in the quick form. */
const away = ({ quick }: Bench, ms: number) => sleep(quick ? quickAwayMs : ms);

/**
 * Resolves when every partition of the bank's topics and of the offsets has all replicas in sync.
 */
export async function caughtUp({ cluster }: Bench): Promise<void> {
  const kafka = createKafka({ brokers: cluster.brokers.split(','), client_id: 'checker-replicas' }, silent);
  const isCaughtUp = () =>
    kafka.withAdmin(async (admin) => {
      const { topics } = await admin.fetchTopicMetadata();
      return topics.every(({ partitions }) => partitions.every(({ isr }) => isr.length === 3));
    });
  await eventually(isCaughtUp, catchUpMs);
}

/**
 * Stops and starts these brokers in turn, each when all replicas are in sync again. Resolves with the time at which the
 * last one was available again.
 */
async function inTurn(
  bench: Bench,
  mark: Mark,
  brokers: readonly Server[],
  what: string,
  end: (broker: Server) => Promise<void>,
): Promise<number> {
  let startedAt = 0;
  for (const broker of brokers) {
    await caughtUp(bench);
    mark(`${what} ${broker.name}`);
    await end(broker);
    startedAt = await broker.start();
  }
  await caughtUp(bench);
  return startedAt;
}

/** A rolling restart of all brokers. */
export function restartBrokers(bench: Bench, mark: Mark): Promise<number> {
  return inTurn(bench, mark, clusterBrokers(bench).all, 'restart of', (broker) => broker.stop());
}

/** Each broker is stopped for a while, or only one of them in the quick form. */
function eachAway(bench: Bench, mark: Mark, what: string, end: (broker: Server) => Promise<void>): Promise<number> {
  const { all } = clusterBrokers(bench);
  return inTurn(bench, mark, bench.quick ? [bench.random.pick(all)] : all, what, async (broker) => {
    await end(broker);
    await away(bench, awayMs);
    mark(`${broker.name} starts`);
  });
}

const killEach = haRow({
  name: 'broker-kill-each',
  title: 'kill -9 of each broker in turn, started again after 12 s (partition leaders and the controller among them)',
  touches: ['kafka'],
  outageMs,
  inject: (bench, mark) => eachAway(bench, mark, 'kill -9 of', (broker) => broker.kill()),
});

const stopEach = haRow({
  name: 'broker-stop-each',
  title: 'each broker stopped gracefully (SIGTERM) in turn, started again after 12 s',
  touches: ['kafka'],
  outageMs,
  inject: (bench, mark) => eachAway(bench, mark, 'SIGTERM to', (broker) => broker.stop()),
});

const rollingRestart = haRow({
  name: 'broker-rolling-restart',
  title: 'rolling restart of all three brokers',
  touches: ['kafka'],
  outageMs: 0,
  callers: 'nothing',
  inject: restartBrokers,
});

const freeze = haRow({
  name: 'broker-freeze',
  title: 'one broker frozen (SIGSTOP) for 40 s, then another',
  touches: ['kafka'],
  outageMs,
  async inject(bench, mark) {
    const { all } = clusterBrokers(bench);
    for (const broker of bench.quick ? [bench.random.pick(all)] : bench.random.shuffle(all).slice(0, 2)) {
      await caughtUp(bench);
      mark(`${broker.name} frozen`);
      broker.signal('SIGSTOP');
      await away(bench, frozenMs);
      mark(`${broker.name} continues`);
      broker.signal('SIGCONT');
      await sleep(outageMs);
    }
    await caughtUp(bench);
  },
});

const cutOne = haRow({
  name: 'broker-cut',
  title: 'one broker cut from the other two for 25 s, while services reach all three; then another',
  touches: ['kafka'],
  outageMs,
  async inject(bench, mark) {
    const { quick } = bench;
    const { all, brokerLinks } = clusterBrokers(bench);
    for (const broker of quick ? [bench.random.pick(all)] : bench.random.shuffle(all).slice(0, 2)) {
      await caughtUp(bench);
      mark(`${broker.name} cut from the others`);
      await Promise.all(brokerLinks(broker).map((link) => link.set({ kind: 'black_hole' })));
      await away(bench, cutMs);
      mark(`${broker.name} joined again`);
      await Promise.all(brokerLinks(broker).map((link) => link.heal()));
      await sleep(quick ? outageMs : settleMs);
    }
    await caughtUp(bench);
  },
});

/** While two brokers are stopped, nothing can be written. The measurement begins when both are available again. */
const twoOfThree = haRow({
  name: 'broker-two-of-three',
  title: 'two of three brokers killed and started again',
  touches: ['kafka'],
  outageMs,
  recoveryMs: outageMs,
  async inject(bench, mark) {
    await caughtUp(bench);
    const two = bench.random.shuffle(clusterBrokers(bench).all).slice(0, 2);
    await Promise.all(two.map((broker) => broker.kill()));
    await sleep(bench.quick ? 2000 : 10_000);
    await Promise.all(two.map((broker) => broker.start()));
    mark('two brokers serve again');
    const backAt = performance.now();
    await caughtUp(bench);
    return backAt;
  },
});

export const kafkaRows: HaRow[] = [killEach, stopEach, rollingRestart, freeze, cutOne, twoOfThree];
