import { setTimeout as sleep } from 'node:timers/promises';
import type { Proxy } from '../../support/proxy.ts';
import type { Cluster } from '../cluster.ts';
import { firstSuccess } from '../probe.ts';
import type { Bench, Row } from '../row.ts';
import { workingLedger } from './kills.ts';

/** Network faults on the links between one process and one server, or on all links. */
const recoveryMs = 5_000;
const faultMs = 30_000;

const faultTime = ({ duration }: Bench) => duration(faultMs);

function getLink({ links }: Cluster, name: string): Proxy {
  const link = links.get(name);
  if (!link) throw new Error(`the cluster has no link ${name}`);
  return link;
}

const linksOf = (service: string, server: string): string[] => [`${service}>${server}`, `${service}-2>${server}`];

/** Returns the link of a node; of the ledgers, of the one that works. */
async function getLinkOf(bench: Bench, node: string, server: string): Promise<Proxy> {
  const { name } = node === 'ledger' ? await workingLedger(bench) : { name: node };
  return getLink(bench.cluster, `${name}>${server}`);
}

/**
 * A row in which no bytes pass and no connection is reset. Messages in flight arrive after heal(), long after they
 * timed out.
 */
function blackHole(node: string, server: 'kafka' | 'postgres', title: string): Row {
  return {
    name: `black-hole-${node.replace(/-2$/, '')}-${server}`,
    title: (lasts) => `black hole without reset for ${lasts(faultMs)}: ${title}`,
    touches: node === 'ledger' ? linksOf('ledger', server) : [`${node}>${server}`],
    recoveryMs,
    async inject(bench) {
      const proxy = await getLinkOf(bench, node, server);
      await proxy.set({ kind: 'black_hole' });
      await sleep(faultTime(bench));
      await proxy.heal();
    },
  };
}

/** A process that cannot use the database leaves its groups within 5 s. Then the others join again. */
const takenOverMs = 10_000;

/** The same for a process whose partitions others can take. They must have them before the fault ends, also in the quick form. */
function takenOver(node: string, server: 'postgres', title: string): Row {
  const row = blackHole(node, server, title);
  return {
    ...row,
    title: `black hole without reset for ${faultMs / 1000} s, but for ${takenOverMs / 1000} s at most until every account gets 201 again: ${title}`,
    async inject(bench) {
      const proxy = await getLinkOf(bench, node, server);
      await proxy.set({ kind: 'black_hole' });
      const begun = performance.now();
      const { load, accounts, slowness, say } = bench;
      const posts = [...accounts.crossed, ...accounts.probes, accounts.hot].map((account) =>
        firstSuccess(async () => (await load.send(load.deposit(account, 1))).status === 201, begun + faultMs),
      );
      const tookMs = Math.max(...(await Promise.all(posts))) - begun;
      await sleep(Math.max(0, begun + faultMs - performance.now()));
      await proxy.heal();
      if (tookMs > takenOverMs * slowness)
        throw new Error(`I11: during the fault, an account got no 201 for ${Math.min(faultMs, tookMs) / 1000} s`);
      say(`every account got 201 again ${(tookMs / 1000).toFixed(1)} s after the fault began`);
    },
  };
}

const cutEveryMs = 250;

/** The request is executed, but its sender cannot know that. */
function cutAnswers(server: 'kafka' | 'postgres', what: string): Row {
  return {
    name: `cut-answers-${server}`,
    title: (lasts) => `${what} executed and their responses cut, on every link, four a second for ${lasts(faultMs)}`,
    touches: [server],
    recoveryMs,
    async inject(bench) {
      const { random, say } = bench;
      const proxies = linksTo(bench, server);
      const before = cuts(proxies);
      const until = performance.now() + faultTime(bench);
      while (performance.now() < until) {
        await random.pick(proxies).set({
          kind: 'cut_answers',
          which: server === 'kafka' ? random.pick(['any', 'produce']) : random.pick(['any', 'commit']),
          times: 1,
        });
        await sleep(cutEveryMs);
      }
      for (const proxy of proxies) await proxy.heal();
      say(`${cuts(proxies) - before} answers were cut`);
      if (cuts(proxies) === before) throw new Error('no answer was cut');
    },
  };
}

/** Returns the links of running processes. */
function linksTo({ cluster }: Bench, server: string): Proxy[] {
  return cluster.nodes
    .filter((node) => node.running())
    .flatMap(({ name }) => cluster.links.get(`${name}>${server}`) ?? []);
}

function cuts(proxies: Proxy[]): number {
  return proxies.reduce((sum, proxy) => sum + proxy.cuts, 0);
}

function onAllLinks(name: string, what: string, fault: Parameters<Proxy['set']>[0]): Row {
  return {
    name,
    title: (lasts) => `${what} for ${lasts(faultMs)}`,
    touches: ['all'],
    recoveryMs,
    async inject(bench) {
      const proxies = [...bench.cluster.links.values()];
      for (const proxy of proxies) await proxy.set(fault);
      await sleep(faultTime(bench));
      for (const proxy of proxies) await proxy.heal();
    },
  };
}

export const links: Row[] = [
  blackHole('gateway-2', 'kafka', 'a gateway to Kafka'),
  blackHole('ledger', 'kafka', 'a ledger to Kafka'),
  blackHole('accounts', 'kafka', 'accounts to Kafka'),
  takenOver('ledger', 'postgres', 'a ledger to Postgres'),
  blackHole('accounts', 'postgres', 'accounts to Postgres'),
  cutAnswers('kafka', 'requests to Kafka'),
  cutAnswers('postgres', 'statements and COMMITs to Postgres'),
  onAllLinks('latency', '200 ± 200 ms of latency on every link in both directions', {
    kind: 'latency',
    minMs: 0,
    maxMs: 400,
  }),
  onAllLinks('sliced', 'slow bytes on every link (64 at a time, one chunk per 2 ms)', {
    kind: 'sliced',
    bytes: 64,
    everyMs: 2,
  }),
];
