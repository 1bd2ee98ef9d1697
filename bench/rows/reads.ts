import { defaultBank } from '../bank.ts';
import { startGenerator } from '../helper.ts';
import { best, defaultTarget, inTurn, load, median } from '../measure.ts';
import type { Bench, Group, Outcome } from '../row.ts';

const readsPerSecond = 100;

/** Measures balance reads by account number while there are writes. */
export const reads: Group = {
  name: 'reads',
  quick: false,
  async measure({ world, effort }: Bench): Promise<Outcome> {
    const bank = await defaultBank(world);
    const half = Math.round((await best(world, bank, effort)).perSecond / 2);
    const timing = { seconds: effort.seconds, warmUpSeconds: effort.warmUpSeconds };
    const second = startGenerator();
    try {
      const { beside } = await inTurn(effort.rounds, {
        async beside() {
          const writes = load(world, bank, { target: defaultTarget(bank), connections: 256, rate: half, ...timing });
          const target = { kind: 'balance' as const, numbers: bank.numbers };
          const [read] = await Promise.all([
            load(world, bank, { target, connections: 16, rate: readsPerSecond, ...timing }, second),
            writes,
          ]);
          return read;
        },
      });
      return {
        lines: [
          {
            goal: 'read-beside',
            value: median(beside.map((one) => one.latency.p50)),
            note: `p99 ${median(beside.map((one) => one.latency.p99)).toFixed(1)} ms; ${readsPerSecond} reads/s beside ${half} transfers/s`,
          },
        ],
        raw: beside,
      };
    } finally {
      second.stop();
    }
  },
};
