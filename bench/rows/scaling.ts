import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { type Bank, startBank } from '../bank.ts';
import { childPids } from '../cpu.ts';
import type { Reading } from '../load-plan.ts';
import { defaultTarget, load } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';
import type { World } from '../world.ts';

const counts = [1, 2, 4, 8];
const connections = 512;
const pacedRate = 200;
const sampleMs = 20;

/**
 * Runs 1, 2, 4, and 8 ledgers, then gateways, together on one core, and all other processes on the other cores. This
 * shows contention for locks of Postgres without contention for a core between ledgers and Postgres. Also runs one
 * ledger alone on its core at a low rate.
 */
export const scaling: Group = {
  name: 'scaling',
  quick: false,
  async measure({ world, effort }: Bench): Promise<Outcome> {
    if (availableParallelism() < 2 || spawnSync('taskset', ['--version']).status !== 0)
      throw new Error('needs two cores, and taskset of util-linux');
    const rows: string[][] = [];
    for (const kind of ['ledger', 'gateway'] as const)
      for (const count of counts) {
        const bank = await startBank(world, { name: `${kind}s_${count}`, accounts: 200, [`${kind}s`]: count });
        try {
          const target = defaultTarget(bank);
          const { seconds, warmUpSeconds, firstSeconds } = effort;
          const unpinned = await load(world, bank, { target, connections, seconds, warmUpSeconds: firstSeconds });
          const paced = { target, connections: 64, rate: pacedRate, seconds, warmUpSeconds };
          const pacedUnpinned = await load(world, bank, paced);
          pin(world, bank, kind);
          const waits = await sampleWaits(world, bank, async () => {
            const pinned = await load(world, bank, { target, connections, seconds, warmUpSeconds });
            const pacedPinned = await load(world, bank, paced);
            rows.push([
              `${count} ${kind}${count > 1 ? 's' : ''}`,
              ...[unpinned, pinned].map(({ perSecond }) => perSecond.toFixed(0)),
              formatCost(pinned),
              ...[pacedUnpinned, pacedPinned].map(({ latency }) => latency.p50.toFixed(1)),
              [unpinned, pacedUnpinned, pinned, pacedPinned].map(({ wrong }) => wrong).join(', '),
            ]);
          });
          rows.at(-1)?.push(waits);
        } finally {
          pin(world, undefined, kind);
          await bank.stop();
        }
      }
    return {
      lines: [],
      figures: [
        {
          title: 'Ledgers and gateways on one core, everything else on the other',
          columns: [
            'processes',
            'transfers/s, all cores',
            'transfers/s, pinned',
            'CPU µs each, pinned',
            `p50 ms at ${pacedRate}/s, all cores`,
            'the same, pinned',
            'not 2xx in each of the four loads',
            "what the ledgers' connections waited for, pinned, of their time in a statement",
          ],
          rows,
        },
      ],
    };
  },
};

function formatCost({ cpuMicros }: Reading): string {
  const sums = new Map<string, number>();
  for (const [name, micros] of Object.entries(cpuMicros)) {
    const kind = name.replace(/-\d+$/, '');
    sums.set(kind, (sums.get(kind) ?? 0) + micros);
  }
  return [...sums].map(([kind, micros]) => `${kind} ${micros.toFixed(0)}`).join(', ');
}

/**
 * Restricts processes of this kind to the first core and all others to the other cores. Without a bank, removes the
 * restriction.
 */
function pin(world: World, bank: Bank | undefined, kind: 'ledger' | 'gateway'): void {
  const last = availableParallelism() - 1;
  const isAlone = (name: string) => name.replace(/-\d+$/, '') === kind;
  const { kafka, postgres } = world.servers;
  for (const pid of [kafka, postgres, ...childPids(postgres), world.generator.pid])
    setCores(pid, bank ? `1-${last}` : `0-${last}`);
  for (const { name, pid } of bank?.processes ?? []) setCores(pid, isAlone(name) ? '0' : `1-${last}`);
}

function setCores(pid: number, cores: string): void {
  spawnSync('taskset', ['--all-tasks', '--cpu-list', '--pid', cores, String(pid)], { timeout: 5000 });
}

/** Returns the share of each wait event in the samples of active connections of the ledgers. */
async function sampleWaits(world: World, bank: Bank, run: () => Promise<void>): Promise<string> {
  const seen = new Map<string, number>();
  let running = true;
  await world.withPool(bank.databaseUrl, 'ledger', async (pool) => {
    const sampling = (async () => {
      while (running) {
        const { rows } = await pool.query<{ event: string }>(
          `select coalesce(wait_event_type || ' ' || wait_event, 'on a core, or waiting for one') as event from pg_stat_activity
             where datname = current_database() and usename = current_database() || '_ledger' and state = 'active'`,
        );
        for (const { event } of rows) seen.set(event, (seen.get(event) ?? 0) + 1);
        await new Promise((resolve) => setTimeout(resolve, sampleMs));
      }
    })();
    try {
      await run();
    } finally {
      running = false;
      await sampling;
    }
  });
  const all = [...seen.values()].reduce((sum, count) => sum + count, 0);
  return [...seen]
    .sort(([, one], [, other]) => other - one)
    .slice(0, 4)
    .map(([event, count]) => `${event} ${((100 * count) / all).toFixed(0)} %`)
    .join(', ');
}
