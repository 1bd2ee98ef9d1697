import { startGenerator } from '../helper.ts';
import type { Target } from '../load-plan.ts';
import { best, inTurn, load, median, ratio, transfersOf } from '../measure.ts';
import type { Bench, Group, Outcome } from '../rows.ts';

/** Balance reads by account number: throughput, and latency while there are writes. */
export const reads: Group = {
  name: 'reads',
  quick: false,
  async measure(bench: Bench): Promise<Outcome> {
    const { world, effort } = bench;
    const bank = await world.bank();
    const most = await best(world, bank, effort);
    const half = Math.round(most.perSecond / 2);
    const balances: Target = { kind: 'balance', numbers: bank.numbers };
    const { connections } = await best(world, bank, effort, balances);
    const timing = { seconds: effort.seconds, warmUpSeconds: effort.warmUpSeconds };
    const second = startGenerator();
    try {
      const measured = await inTurn(effort.rounds, {
        reads: () => load(world, bank, { target: balances, connections, ...timing }),
        transfers: () => load(world, bank, { target: transfersOf(bank), connections: most.connections, ...timing }),
        async beside() {
          const writes = load(world, bank, { target: transfersOf(bank), connections: 256, rate: half, ...timing });
          const [read] = await Promise.all([
            load(world, bank, { target: balances, connections: 16, rate: 100, ...timing }, second),
            writes,
          ]);
          return read;
        },
      });
      const perSecond = (name: keyof typeof measured) => measured[name].map((one) => one.perSecond);
      return {
        lines: [
          {
            goal: 'reads-of-transfers',
            value: ratio(perSecond('reads'), perSecond('transfers')),
            note: `${Math.round(median(perSecond('reads')))}/s at ${connections} connections ÷ ${Math.round(median(perSecond('transfers')))}/s`,
          },
          {
            goal: 'read-p50',
            value: median(measured.beside.map((one) => one.latency.p50)),
            note: `p99 ${median(measured.beside.map((one) => one.latency.p99)).toFixed(1)} ms; 100 reads/s beside ${half} transfers/s`,
          },
        ],
        raw: { connections, measured },
      };
    } finally {
      second.stop();
    }
  },
};
