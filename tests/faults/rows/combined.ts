import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Row } from '../row.ts';
import { freezes } from './freezes.ts';
import { kills } from './kills.ts';
import { links } from './links.ts';
import { rollouts } from './rollouts.ts';
import { servers } from './servers.ts';
import { together } from './together.ts';

/** Concurrent faults, and faults that begin before the previous one has ended. */
const parts = [...kills, ...freezes, ...links, ...rollouts, ...servers];
const named = (...names: string[]): Row[] => names.map((name) => parts.find((row) => row.name === name) as Row);

const generations = 3;
const betweenMs = 1500;

const inTurn: Row = {
  name: 'kill-all-in-turn',
  title: `kill -9 of every process in turn, including broker and Postgres, one up to ${betweenMs / 1000} s after the other and each restarted immediately, ${generations} times`,
  touches: ['all'],
  recoveryMs: 10_000,
  callers: 'cut',
  async inject({ cluster, random }: Bench) {
    let goneAt = performance.now();
    for (let generation = 0; generation < generations; generation++) {
      const services = cluster.nodes.filter((node) => node.running());
      for (const process of random.shuffle([...services, cluster.broker, cluster.postgres])) {
        await process.kill();
        await process.start();
        goneAt = performance.now();
        await sleep(random.int(0, betweenMs));
      }
    }
    return goneAt;
  },
};

export const combined: Row[] = [
  together(named('freeze-broker', 'kill-ledger'), [0, 2000], 'freeze-broker+kill-ledger'),
  together(named('rebalances', 'kill-postgres'), [0, 1000], 'rebalances+kill-postgres'),
  together(named('kill-postgres', 'kill-broker'), [0, 500], 'kill-postgres+kill-broker'),
  together(named('cut-answers-postgres', 'kill-gateway', 'kill-accounts'), [0, 1000, 2000], 'cut-answers+kills'),
  inTurn,
];
