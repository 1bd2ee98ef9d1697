import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { topicName } from '#libs/contracts/topics.ts';
import { createKafka, type KafkaClient } from '#libs/kafka/client.ts';
import { groupLag } from '#libs/kafka/topics.ts';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { verifyBooks } from '#services/ledger/verify/verify-books.ts';
import { type Cluster, startCluster } from '../../tests/faults/cluster.ts';
import { createRandom } from '../../tests/faults/random.ts';
import { Callers } from './callers.ts';
import { expect, type Part } from './check.ts';

const names = ['ledger', 'ledger-2', 'ledger-3'];
/**
 * This lag is far below the chart's 500, which two cores that also run everything else do not reach. 64 callers exceed
 * it three times, and one caller does not reach it.
 */
const lagThreshold = 15;
const pollMs = 1_000;
const scaledWithinMs = 240_000;
/** The time for which the lowest wanted number must last before a process is stopped. The chart has ten minutes. */
const stabilizationPolls = 10;

/**
 * Returns the number of processes that KEDA's trigger `kafka` requests through its HorizontalPodAutoscaler: the lag
 * divided by the lag per process.
 */
export function wanted(lag: number, threshold: number, most: number): number {
  return Math.min(most, Math.max(1, Math.ceil(lag / threshold)));
}

/**
 * Scales ledgers by their consumers' lag with KEDA's formula: 1, then 3 under load, then 1 again. Nothing may be lost.
 */
export const scaling: Part = {
  name: 'scaling',
  needsEngine: false,
  planted: {
    defect: 'a lag that is not monitored',
    foundBy: 'with more callers there are three ledgers',
    says: /^1 ledgers/,
  },
  async run(check) {
    const cluster = await check.step('a bank with one ledger', async () => {
      const made = await startCluster(join(check.dir, 'scaled'), createRandom('scaling'));
      check.onEnd(() => made.stop());
      await made.node('ledger-2').stop();
      return made;
    });
    const kafka = createKafka({ brokers: [cluster.brokers], client_id: 'scaling' }, silent);
    const callers = await Callers.create(cluster.gateways[0]?.baseUrl ?? '', cluster.apiKey);
    const scaler = startScaler(cluster, check.selfTest ? async () => 0 : () => readLag(kafka, cluster));
    check.onEnd(() => scaler.stop());
    await check.step('with more callers there are three ledgers', async () => {
      callers.start(64);
      return scaler.until(3);
    });
    await check.step('three ledgers run for ten seconds', () => sleep(10_000));
    await check.step('with fewer callers there is one ledger, and the remaining callers are served', async () => {
      const seen = await callers.stop();
      callers.start(1);
      const took = await scaler.until(1);
      return `${took}; ${seen}, then ${await callers.stop()}`;
    });
    await check.step('every deposit was posted once, and the books balance', async () => {
      const pool = createPool(
        { url: cluster.databaseUrl, application_name: 'check', schema: 'ledger', max: 2 },
        silent,
      );
      const findings = await verifyBooks(pool).finally(() => pool.end());
      expect(findings.length === 0, JSON.stringify(findings));
      return callers.expectPosted();
    });
  },
};

async function readLag(kafka: KafkaClient, { topicPrefix }: Cluster): Promise<number> {
  const parts = await groupLag(kafka, `${topicPrefix}ledger`, [topicName(topicPrefix, 'ledger.commands')]);
  return parts.reduce((sum, { lag }) => sum + Number(lag), 0);
}

/**
 * Reads the lag once a second. Starts processes immediately, and stops one if fewer were wanted for
 * the whole of a period.
 */
function startScaler(cluster: Cluster, lag: () => Promise<number>) {
  const nodes = names.map((name) => cluster.node(name));
  const running = () => nodes.filter((node) => node.running());
  let [over, wishes, most] = [false, [] as number[], 0];
  const turn = async (): Promise<void> => {
    const behind = await lag();
    most = Math.max(most, behind);
    wishes = [...wishes, wanted(behind, lagThreshold, names.length)].slice(-stabilizationPolls);
    const wish = Math.max(...wishes);
    for (const node of nodes.filter((node) => !node.running()).slice(0, Math.max(0, wish - running().length))) {
      node.start();
      await node.ready();
    }
    if (wishes.length === stabilizationPolls && wish < running().length) await running().at(-1)?.stop();
  };
  const turning = (async () => {
    for (; !over; await sleep(pollMs)) await turn().catch(() => undefined);
  })();
  return {
    async until(count: number): Promise<string> {
      const startedAt = performance.now();
      while (running().length !== count && performance.now() - startedAt < scaledWithinMs) await sleep(pollMs / 4);
      expect(running().length === count, `${running().length} ledgers, at most ${most} messages behind`);
      return `after ${((performance.now() - startedAt) / 1000).toFixed(0)} s, ${most} messages behind at most`;
    },
    async stop(): Promise<void> {
      over = true;
      await turning;
    },
  };
}
