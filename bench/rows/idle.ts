import { setTimeout as sleep } from 'node:timers/promises';
import { defaultBank } from '../bank.ts';
import type { Bench, Group, Outcome } from '../row.ts';

const quietMs = 5_000;

/** Measures the CPU use of an idle bank. */
export const idle: Group = {
  name: 'idle',
  quick: false,
  async measure({ world, quick }: Bench): Promise<Outcome> {
    const bank = await defaultBank(world);
    await sleep(quietMs);
    const side = { processes: bank.processes, usesBroker: false };
    const before = world.readCpu(side);
    const seconds = quick ? 10 : 30;
    await sleep(seconds * 1000);
    const after = world.readCpu(side);
    const shares = Object.entries(after).map(
      ([name, used]) => [name, ((used - (before[name] ?? 0)) * 100) / seconds] as const,
    );
    const note = `${shares.map(([name, share]) => `${name} ${share.toFixed(2)} %`).join(', ')}; over ${seconds} s`;
    return { lines: [{ goal: 'idle', value: shares.reduce((sum, [, share]) => sum + share, 0), note }] };
  },
};
