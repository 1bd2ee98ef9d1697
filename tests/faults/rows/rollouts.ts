import { setTimeout as sleep } from 'node:timers/promises';
import type { Bench, Row } from '../row.ts';

/** Regular operations under load, of which callers must not notice anything. */

async function restart({ cluster }: Bench, name: string): Promise<void> {
  const node = cluster.node(name);
  await node.stop();
  node.start();
  await node.ready();
}

const rollingRestart: Row = {
  name: 'rolling-restart',
  title: 'rolling restart of all services by SIGTERM',
  touches: ['all'],
  recoveryMs: 5000,
  callers: 'nothing',
  async inject(bench) {
    const { cluster } = bench;
    for (const name of ['ledger', 'ledger-2', 'gateway', 'gateway-2']) await restart(bench, name);
    // If a service has one process, the new process starts before the old one stops, as in a rolling update.
    const spare = cluster.node('accounts-2');
    spare.start();
    await spare.ready();
    await restart(bench, 'accounts');
    await spare.stop();
  },
};

const everyMs = 20_000;

const rebalances: Row = {
  name: 'rebalances',
  title: (lasts) => `rebalances under load: ledgers 1, 3, 1, 3, 1, every ${lasts(everyMs)}`,
  touches: ['all'],
  recoveryMs: 5000,
  callers: 'nothing',
  async inject({ cluster, duration }) {
    const [second, third] = [cluster.node('ledger-2'), cluster.node('ledger-3')];
    const rest = () => sleep(duration(everyMs));
    const toOne = () => Promise.all([second.stop(), third.stop()]);
    const toThree = async () => {
      second.start();
      third.start();
      await Promise.all([second.ready(), third.ready()]);
    };
    await toOne();
    for (let i = 0; i < 2; i++) {
      await rest();
      await toThree();
      await rest();
      await toOne();
    }
    second.start();
    await second.ready();
  },
};

export const rollouts: Row[] = [rollingRestart, rebalances];
