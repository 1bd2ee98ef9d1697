import { setTimeout as sleep } from 'node:timers/promises';
import type { Node } from '../cluster.ts';
import type { Bench, Row } from '../row.ts';

/** Processes that are killed with work in flight, and started again after 0 to 3 s. */

async function killAndStart(node: Node, { random }: Bench): Promise<number> {
  await node.kill();
  await sleep(random.int(0, 3000));
  node.start();
  return performance.now();
}

const killLedger: Row = {
  name: 'kill-ledger',
  title: 'kill -9 of a ledger, started again after 0-3 s',
  touches: ['ledger'],
  recoveryMs: 5000,
  inject: (bench) => killAndStart(bench.cluster.node('ledger'), bench),
};

export const kills: Row[] = [killLedger];
