import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPool } from '#libs/postgres/pool.ts';
import { silent } from '#libs/postgres/test/test-database.ts';
import { verifyBooks } from '#services/ledger/verify/verify-books.ts';
import { type Cluster, type Node, startCluster } from '../../tests/faults/cluster.ts';
import { createRandom } from '../../tests/faults/random.ts';
import { Callers } from './callers.ts';
import { expect, type Part } from './check.ts';

const names = ['ledger', 'ledger-2', 'ledger-3'];
/**
 * In cores. This is far below the chart's 0.4, which two cores that also run everything else do not reach. 64 callers exceed
 * it twice, and one caller does not.
 */
const averageCpu = 0.08;
const pollMs = 1_000;
const cpuPolls = 5;
const scaledWithinMs = 240_000;
/** The time for which the lowest wanted number must last before a process is stopped. The chart has ten minutes. */
const stabilizationPolls = 10;

/** Returns the number of processes that a HorizontalPodAutoscaler requests: what all use, divided by what each should. */
export function wanted(used: number, each: number, most: number): number {
  return Math.min(most, Math.max(1, Math.ceil(used / each)));
}

/**
 * Scales ledgers by their CPU with the formula of a HorizontalPodAutoscaler: 1, then 3 under load, then 1 again. Nothing may be lost.
 */
export const scaling: Part = {
  name: 'scaling',
  needsEngine: false,
  planted: {
    defect: 'CPU that is not monitored',
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
    const callers = await Callers.create(cluster.gateways[0]?.baseUrl ?? '', cluster.apiKey);
    const scaler = startScaler(cluster, check.selfTest ? async () => 0 : cpuReader(cluster));
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

/** Returns the CPU that the ledgers use in the latest seconds, in cores. */
function cpuReader({ nodes }: Cluster): () => Promise<number> {
  const read = async ({ healthUrl }: Node): Promise<number> => {
    const answer = await fetch(new URL('/metrics', healthUrl)).catch(() => undefined);
    const [, seconds = '0'] = /^process_cpu_seconds_total\S* (\S+)/m.exec((await answer?.text()) ?? '') ?? [];
    return Number(seconds);
  };
  const seen: { at: number; of: Map<string, number> }[] = [];
  return async () => {
    const ledgers = nodes.filter((node) => node.kind === 'ledger' && node.running());
    const of = new Map(await Promise.all(ledgers.map(async (node) => [node.name, await read(node)] as const)));
    seen.push({ at: performance.now(), of });
    if (seen.length > cpuPolls) seen.shift();
    const [first] = seen as [(typeof seen)[number]];
    // A process that has just started counts from then on.
    const used = [...of].map(([name, seconds]) => Math.max(0, seconds - (first.of.get(name) ?? seconds)));
    const elapsedMs = performance.now() - first.at;
    return elapsedMs > pollMs / 2 ? used.reduce((sum, each) => sum + each, 0) / (elapsedMs / 1_000) : 0;
  };
}

/**
 * Reads the CPU once a second. Starts processes immediately, and stops one if fewer were wanted for
 * the whole of a period.
 */
function startScaler(cluster: Cluster, cpu: () => Promise<number>) {
  const nodes = names.map((name) => cluster.node(name));
  const running = () => nodes.filter((node) => node.running());
  let [over, wishes, most] = [false, [] as number[], 0];
  const turn = async (): Promise<void> => {
    const used = await cpu();
    most = Math.max(most, used);
    wishes = [...wishes, wanted(used, averageCpu, names.length)].slice(-stabilizationPolls);
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
      expect(running().length === count, `${running().length} ledgers, which used ${most.toFixed(2)} cores at most`);
      return `after ${((performance.now() - startedAt) / 1000).toFixed(0)} s, ${most.toFixed(2)} cores at most`;
    },
    async stop(): Promise<void> {
      over = true;
      await turning;
    },
  };
}
