import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../support/eventually.ts';
import type { Node } from './cluster.ts';
import { isThere } from './entrance.ts';
import { idIn, type Operation } from './journal.ts';
import type { Bench } from './row.ts';

/** A response within this time is normal. */
const normalMs = 1000;
const everyMs = 150;
/** The number of concurrent attempts of one kind, limited so that a slow bank is not overloaded. */
const atOnce = 6;

/**
 * Tests from `goneAt` on until everything works normally: a deposit through each gateway, a transfer, and an opening
 * must each get 201 within a second, and the event of such a deposit must be published. Resolves with the milliseconds
 * that each took; at most `patienceMs`.
 */
export async function recovery(bench: Bench, goneAt: number, patienceMs: number): Promise<Record<string, number>> {
  const { cluster, load, accounts, events } = bench;
  const [first = '', second = ''] = accounts.probes;
  const until = goneAt + patienceMs;
  const took: Record<string, number> = {};
  const part = async (name: string, attempt: () => Promise<boolean>) => {
    took[name] = Number.POSITIVE_INFINITY;
    took[name] = (await firstSuccess(attempt, until)) - goneAt;
  };
  const normal = async (operation: Operation, gateway: Node) => {
    const { status, tookMs } = await load.send(operation, gateway);
    return status === 201 && tookMs <= normalMs * bench.slowness ? operation : undefined;
  };
  const running = cluster.gateways.filter((gateway) => gateway.running());
  const some = () => bench.random.pick(running);
  await Promise.all([
    ...running.map((gateway) =>
      part(
        `deposit through ${gateway.name}`,
        // A load balancer does not send a request to a gateway that is still starting.
        async () => (await isThere(gateway)) && (await normal(load.deposit(first, 1), gateway)) !== undefined,
      ),
    ),
    part('transfer', async () => (await normal(load.transfer(first, second, 1), some())) !== undefined),
    part('opening', async () => (await normal(load.opening(1), some())) !== undefined),
    part('event', async () => {
      const deposited = await normal(load.deposit(second, 1), some());
      const transaction = deposited?.decided && idIn(deposited.decided);
      if (transaction === undefined) return false;
      return eventually(async () => events.transactions.has(transaction), Math.max(0, until - performance.now())).catch(
        () => false,
      );
    }),
  ]);
  return took;
}

/**
 * Resolves with the time at which the first of the attempts succeeded. They start one after the other without waiting
 * for the previous ones.
 */
export async function firstSuccess(attempt: () => Promise<boolean>, until: number): Promise<number> {
  let at = Number.POSITIVE_INFINITY;
  const running = new Set<Promise<void>>();
  while (at === Number.POSITIVE_INFINITY && performance.now() < until) {
    if (running.size < atOnce) {
      const one: Promise<void> = attempt().then((worked) => {
        running.delete(one);
        if (worked) at = Math.min(at, performance.now());
      });
      running.add(one);
    }
    // The wait ends when an attempt succeeds. An attempt that fails immediately must not cause a busy loop.
    await sleep(everyMs);
  }
  await Promise.race([Promise.all(running), sleep(normalMs)]);
  return at;
}
