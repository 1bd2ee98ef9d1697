import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cluster, startCluster } from '../../tests/faults/cluster.ts';
import { createRandom } from '../../tests/faults/random.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { fastTime } from '../../tests/support/fast-time.ts';
import { migrateService } from '../../tools/local/bank.ts';
import { probeStatus } from '../../tools/local/ready.ts';
import { Callers } from './callers.ts';
import { type Check, expect, type Part } from './check.ts';

const hourMs = 60 * 60_000;
/** The chart's liveness probe restarts a container after this many consecutive failures. */
const restartedAfter = 6;
const names = ['gateway', 'ledger', 'accounts', 'webhooks'];
/** This limit only detects hanging. The measured time is reported. */
const recoveryMs = 120_000;
/**
 * The factor by which the clocks of the processes run faster during an outage, which for them lasts an hour. While
 * Postgres is unreachable, Kafka runs and must respond within their shortened time limits.
 */
const servers = [
  ['Kafka', 30],
  ['Postgres', 10],
] as const;

/**
 * Kafka and Postgres are unreachable for an hour each, from before the start of the processes, and again later. No
 * process may exit or become not alive, which would make an orchestrator restart it. All must be ready again
 * afterwards.
 */
export const outages: Part = {
  name: 'outages',
  needsEngine: false,
  planted: {
    defect: 'a process that exits during the outage',
    foundBy: 'Kafka is away for an hour, from before the start',
    says: /^ledger: no answer/,
  },
  async run(check) {
    const cluster = await check.step('a bank with one process of each service', () => openBank(check));
    const callers = await Callers.create(cluster.gateways[0]?.baseUrl ?? '', cluster.apiKey);
    for (const [server, speed] of servers)
      for (const when of ['from before the start', 'later'] as const)
        await check.step(`${server} is away for an hour, ${when}`, () =>
          suffer(cluster, { server, speed, when }, callers, check.selfTest),
        );
  },
};

async function openBank(check: Check): Promise<Cluster> {
  const cluster = await startCluster(join(check.dir, 'outages'), createRandom('outages'));
  check.onEnd(() => cluster.stop());
  await migrateService('webhooks', cluster.nodeSettings('webhooks'));
  await Promise.all(cluster.nodes.map((node) => (names.includes(node.name) ? undefined : node.stop())));
  cluster.node('webhooks').start();
  await cluster.node('webhooks').ready();
  return cluster;
}

interface Outage {
  server: string;
  speed: number;
  when: 'from before the start' | 'later';
}

/** Resolves with the time that each process needed after the outage. */
async function suffer(
  cluster: Cluster,
  { server, speed, when }: Outage,
  callers: Callers,
  selfTest: boolean,
): Promise<string> {
  const nodes = names.map((name) => cluster.node(name));
  const findLink = (name: string) => cluster.links.get(`${name}>${server.toLowerCase()}`);
  const links = names.flatMap((name) => findLink(name) ?? []);
  const isStart = when !== 'later';
  if (isStart) await Promise.all(nodes.map((node) => node.stop()));
  await Promise.all(links.map((link) => link.set({ kind: 'refuse' })));
  if (isStart) for (const node of nodes) node.start(fastTime(speed));
  const live = (name: string) => fetch(new URL('/livez', cluster.node(name).healthUrl)).catch(() => undefined);
  for (const name of names) await eventually(() => live(name), recoveryMs);
  for (const node of nodes) node.signal('SIGWINCH');
  if (selfTest) await cluster.node('ledger').kill();
  const misses = new Map<string, number>();
  for (const until = performance.now() + hourMs / speed; performance.now() < until; await sleep(500))
    for (const name of names) {
      const answer = await live(name);
      const missed = answer?.status === 200 ? 0 : (misses.get(name) ?? 0) + 1;
      misses.set(name, missed);
      expect(missed < restartedAfter, `${name}: ${(await answer?.text()) ?? 'no answer'}`);
    }
  // A gateway that has been ready stays so, and answers 503 (decision 15).
  for (const { name, healthUrl } of nodes.filter(({ name }) => findLink(name) && (isStart || name !== 'gateway')))
    expect((await probeStatus({ url: healthUrl })) !== 200, `${name} is ready without ${server}`);
  for (const node of nodes) node.signal('SIGWINCH');
  const backAt = performance.now();
  await Promise.all(links.map((link) => link.heal()));
  const took = nodes.map(async (node) => {
    await node.ready(recoveryMs);
    return `${node.name} ${((performance.now() - backAt) / 1000).toFixed(1)} s`;
  });
  const times = (await Promise.all(took)).join(', ');
  expect(cluster.unexpectedExits.length === 0, cluster.unexpectedExits.join(', '));
  callers.start();
  await callers.calm();
  await callers.stop();
  return `ready again after: ${times}; ${await callers.expectPosted()}`;
}
